//! Defects of driver and machine that were found once, each with the right behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

mod world;

use loopd_kernel::budget::Limits;
use loopd_kernel::machine::{Admission, Env, Input, Pace, ToolTerms};
use loopd_kernel::model::ToolOffer;
use loopd_kernel::question::QuestionEnd;
use loopd_kernel::record::{Record, Settled, Settlement};
use loopd_kernel::{
    Cx, Decision, EffectClass, Entry, Epoch, Event, Failure, Loop, Machine, Outcome, Projection, QuestionId, RunId,
    Seq, TimeMs, erase,
};
use loopd_runtime::{
    CallContext, Clock, Config, Driven, FixedPrograms, Program, RunEnd, Runtime, Started, Tool, ToolError,
};
use loopd_store::memory::Fault;
use loopd_store::{
    Batch, Claim, Claimed, InboxBody, InboxItem, MemoryStore, Receipt, RunRow, RunStatus, Store, StoreError, Through,
    Write,
};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;
use world::{CountedEntropy, Step, World, show_end};

struct Closure(Step, &'static str);

impl Loop for Closure {
    type Input = String;
    type State = Vec<String>;
    type Output = serde_json::Value;
    fn name(&self) -> &str {
        self.1
    }
    fn init(&self, _: String) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }
    fn transition(&self, cx: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
        (self.0)(cx, state, event)
    }
}

struct Slow(ToolOffer, EffectClass, u64, Arc<AtomicU32>);

#[async_trait::async_trait]
impl Tool for Slow {
    fn offer(&self) -> &ToolOffer {
        &self.0
    }
    fn terms(&self) -> ToolTerms {
        ToolTerms { class: self.1, timeout_ms: 36_000_000 }
    }
    async fn call(&self, _: &str, _: &CallContext) -> Result<String, ToolError> {
        self.3.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(self.2)).await;
        Ok("\"done\"".into())
    }
}

fn slow(name: &str, class: EffectClass, ms: u64, calls: &Arc<AtomicU32>) -> Arc<dyn Tool> {
    let offer = ToolOffer { name: name.into(), description: String::new(), parameters: "{}".into() };
    Arc::new(Slow(offer, class, ms, calls.clone()))
}

/// Tokio's clock, plus what the machine slept.
struct Wall(tokio::time::Instant, AtomicI64);

impl Wall {
    fn new() -> Arc<Self> {
        Arc::new(Self(tokio::time::Instant::now(), AtomicI64::new(1_000_000)))
    }
    fn jump(&self, ms: i64) {
        self.1.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for Wall {
    fn now(&self) -> TimeMs {
        TimeMs(self.1.load(Ordering::SeqCst)).after(self.0.elapsed().as_millis() as u64)
    }
    // Its jumps are suspends: every clock counts them.
    fn steady_ms(&self) -> u64 {
        self.now().since(TimeMs(0))
    }
}

/// A store that counts, and that takes a turn of the scheduler for each request, like a real one.
struct Counting {
    inner: MemoryStore,
    wakes: AtomicU32,
    yields: bool,
}

impl Counting {
    fn new(inner: MemoryStore, yields: bool) -> Arc<Self> {
        Arc::new(Self { inner, wakes: AtomicU32::new(0), yields })
    }
    async fn turn(&self) {
        if self.yields {
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait::async_trait]
impl Through for Counting {
    fn through(&self) -> &dyn Store {
        &self.inner
    }

    async fn commit(&self, batch: Batch) -> Result<Receipt, StoreError> {
        self.turn().await;
        let done = self.inner.commit(batch).await;
        self.turn().await;
        done
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        for _ in 0..if claim.only.is_some() { 12 } else { 1 } {
            self.turn().await;
        }
        self.inner.claim(claim).await
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        self.turn().await;
        self.inner.run(run).await
    }

    async fn entries(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.turn().await;
        self.inner.entries(run, after, limit).await
    }

    async fn inbox(&self, run: RunId, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
        self.turn().await;
        self.inner.inbox(run, limit).await
    }

    async fn next_wake(&self) -> Result<Option<TimeMs>, StoreError> {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        self.inner.next_wake().await
    }
}

async fn worker(store: Arc<dyn Store>, program: &Program, clock: Arc<dyn Clock>, config: Config) -> Runtime {
    let programs = Arc::new(FixedPrograms::new([Arc::new(program.clone())]));
    Runtime::builder(store, programs)
        .config(config)
        .world(clock, Arc::new(CountedEntropy::default()))
        .start()
        .await
        .unwrap()
}

async fn begin(runtime: &Runtime, program: &Program, limits: Limits) -> Driven {
    let admission = Admission { tenant: "default".into(), input: "\"in\"".into(), limits, key: None };
    match runtime.start(&Arc::new(program.clone()), admission).await.unwrap() {
        Started::New(driven) => driven,
        Started::Already(run) => panic!("{run}"),
    }
}

async fn settlements(store: &MemoryStore, run: RunId) -> Vec<(u64, Settlement)> {
    let entries = store.entries(run, Seq(0), 10_000).await.unwrap();
    let settled = entries.iter().filter_map(|entry| match Record::decode(entry.kind, &entry.record).unwrap() {
        Record::Settled(Settled { call, how, .. }) => Some((call.0, how)),
        _ => None,
    });
    settled.collect()
}

const HOUR: Duration = Duration::from_secs(3600);

fn signal(name: &str) -> InboxBody {
    InboxBody::Signal { name: name.into(), body: "\"x\"".into() }
}

fn reopen() -> InboxBody {
    InboxBody::Reopen { actor: "ann".into(), raise: Limits::default() }
}

fn cancel() -> InboxBody {
    InboxBody::Cancel { actor: "ann".into(), reason: "enough".into() }
}

#[tokio::test(start_paused = true)]
async fn a_panic_beside_a_payment_in_flight_loses_no_result() {
    let world = World::new(|_, state, event| {
        Ok(match event {
            Event::IterationStarted { iteration: 1 } => Decision::none().and_tool("pay", &1).and_tool("look", &2),
            Event::ToolReturned(r) if r.tool == "look" && world::panics() => panic!("look"),
            Event::ToolReturned(r) => {
                state.push(r.tool);
                Decision::none()
            }
            _ => {
                state.sort();
                Decision::finish(state)
            }
        })
    })
    .tool_taking("pay", EffectClass::Once, 1_000)
    .tool_taking("look", EffectClass::Read, 10);
    world::set_panics(true);
    assert!(show_end(&world.run().await).contains("poisoned"));
    world::set_panics(false);
    world.tell("r1", reopen()).await;
    let end = tokio::time::timeout(HOUR, world.resume()).await.expect("the reopened run is stuck");
    assert_eq!(show_end(&end), r#"Ended Completed {"output":"[\"look\",\"pay\"]"}"#);
    assert_eq!(world.calls("pay"), 1);
}

thread_local! {
    static TRIES: Cell<u32> = const { Cell::new(0) };
}

#[tokio::test(start_paused = true)]
async fn a_reopened_run_that_panics_again_is_parked_again() {
    TRIES.set(0);
    let world = World::new(|_, _, _| {
        TRIES.set(TRIES.get() + 1);
        assert!(TRIES.get() > 50, "always");
        Ok(Decision::finish(&"the driver tried it 50 times in a row"))
    });
    assert!(show_end(&world.run().await).contains("poisoned"));
    world.tell("r1", reopen()).await;
    let end = show_end(&world.resume().await);
    assert!(end.contains("poisoned"), "{end}");
    assert!(TRIES.get() <= 3, "{} tries", TRIES.get());
}

#[tokio::test(start_paused = true)]
async fn a_polite_stop_does_not_fail_a_run_whose_read_takes_longer_than_the_grace() {
    let world = World::new(|_, _, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::tool("look", &1),
            Event::ToolReturned(r) => Decision::finish(&r.output),
            other => return Err(Failure::unexpected(&other)),
        })
    })
    .tool_taking("look", EffectClass::Read, 30_000);
    let driven = world.start().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let waiting = tokio::spawn(driven.wait());
    world.shutdown().await;
    let end = waiting.await.unwrap();
    assert_eq!(end, RunEnd::Released, "SIGTERM sealed the run");
}

#[tokio::test(start_paused = true)]
async fn finishing_beside_a_payment_in_flight_does_not_call_it_cancelled() {
    let calls = Arc::default();
    let program = Program::new(erase(
        Closure(
            |_, _, event| {
                Ok(match event {
                    Event::IterationStarted { .. } => Decision::none().and_tool("pay", &1).and_tool("look", &2),
                    Event::ToolReturned(r) => Decision::finish(&r.tool),
                    other => return Err(Failure::unexpected(&other)),
                })
            },
            "closure",
        ),
        Vec::new(),
    ))
    .tool(slow("pay", EffectClass::Once, 1_000, &calls))
    .tool(slow("look", EffectClass::Read, 10, &Arc::default()));
    let store = MemoryStore::new();
    let runtime = worker(Arc::new(store.clone()), &program, Wall::new(), Config::default()).await;
    let driven = begin(&runtime, &program, Limits::default()).await;
    let run = driven.run;
    let _ = driven.wait().await;
    assert_eq!(calls.load(Ordering::SeqCst), 1, "the payment was sent");
    let settled = settlements(&store, run).await;
    assert!(!settled.contains(&(1, Settlement::Cancelled)), "a payment that was sent is recorded as {settled:?}");
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_run_whose_payment_ends_in_doubt_asks_a_person() {
    let program = Program::new(erase(Closure(|_, _, _| Ok(Decision::tool("pay", &1)), "closure"), Vec::new()))
        .tool(slow("pay", EffectClass::Once, 600_000, &Arc::default()));
    let store = MemoryStore::new();
    let runtime = worker(Arc::new(store.clone()), &program, Wall::new(), Config::default()).await;
    let driven = begin(&runtime, &program, Limits::default()).await;
    let run = driven.run;
    tokio::time::sleep(Duration::from_millis(100)).await;
    runtime.tell(run, "c", cancel()).await.unwrap();
    let _ = driven.wait().await;
    assert_eq!(settlements(&store, run).await, [(1, Settlement::Unknown)]);
    assert_eq!(store.questions(Some(run), 9).await.unwrap().len(), 1, "nobody is asked what became of the payment");
}

#[tokio::test(start_paused = true)]
async fn nobody_withdraws_the_question_about_an_unknown_payment() {
    let program = Program::new(erase(
        Closure(
            |cx, _, _| Ok(if cx.iteration == 1 { Decision::tool("pay", &1) } else { Decision::finish(&"went on") }),
            "closure",
        ),
        Vec::new(),
    ))
    .tool(slow("pay", EffectClass::Once, 600_000, &Arc::default()));
    let store = MemoryStore::new();
    let clock = Wall::new();
    let first = worker(Arc::new(store.clone()), &program, clock.clone(), Config::default()).await;
    let driven = begin(&first, &program, Limits::default()).await;
    let run = driven.run;
    tokio::time::sleep(Duration::from_millis(100)).await;
    first.shutdown().await;
    let second = worker(Arc::new(store.clone()), &program, clock, Config::default()).await;
    assert_eq!(store.questions(Some(run), 9).await.unwrap().len(), 1);
    let end = QuestionEnd::Withdrawn;
    let body = InboxBody::Answer { question: QuestionId(1), end, actor: "x".into(), value: String::new() };
    second.tell(run, "w", body).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let row = store.run(run).await.unwrap().unwrap();
    assert_eq!(row.status, RunStatus::Suspended, "the run went on without knowing: {:?}", row.outcome);
}

#[tokio::test(start_paused = true)]
async fn a_parked_run_with_many_signals_can_still_be_reopened() {
    let program = Program::new(erase(Closure(|_, _, _| Ok(Decision::none()), "closure"), Vec::new()));
    let store = MemoryStore::new();
    let runtime = worker(Arc::new(store.clone()), &program, Wall::new(), Config::default()).await;
    let driven = begin(&runtime, &program, Limits { iterations: Some(3), ..Limits::default() }).await;
    let run = driven.run;
    let _ = driven.wait().await;
    for n in 0..70 {
        runtime.tell(run, format!("s{n}"), signal("message")).await.unwrap();
    }
    runtime.tell(run, "c", cancel()).await.unwrap();
    tokio::time::sleep(HOUR).await;
    let row = store.run(run).await.unwrap().unwrap();
    assert_eq!((row.status, row.worker), (RunStatus::Ended, None), "not cancelled after an hour");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_given_up_for_a_full_disk_goes_on_when_there_is_room() {
    let program = Program::new(erase(
        Closure(
            |cx, _, event| {
                Ok(match event {
                    Event::IterationStarted { iteration: 5 } => Decision::finish(&cx.iteration),
                    Event::IterationStarted { .. } => Decision::tool("look", &cx.iteration),
                    _ => Decision::none(),
                })
            },
            "closure",
        ),
        Vec::new(),
    ))
    .tool(slow("look", EffectClass::Read, 10, &Arc::default()));
    let store = MemoryStore::new();
    let faulty = store.scripted([None, None, Some(Fault::Full)]);
    let runtime = worker(Arc::new(faulty), &program, Wall::new(), Config::default()).await;
    let driven = begin(&runtime, &program, Limits::default()).await;
    let run = driven.run;
    assert!(matches!(driven.wait().await, RunEnd::Lost(_)));
    tokio::time::sleep(HOUR).await;
    let row = store.run(run).await.unwrap().unwrap();
    assert_eq!(row.status, RunStatus::Ended, "still {:?} under a worker that does not drive it", row.status);
}

#[tokio::test(start_paused = true)]
async fn a_parked_run_that_was_looked_at_can_be_reopened_later() {
    let program = Program::new(erase(Closure(|_, _, _| Ok(Decision::none()), "closure"), Vec::new()));
    let store = MemoryStore::new();
    let runtime = worker(Arc::new(store.clone()), &program, Wall::new(), Config::default()).await;
    let driven = begin(&runtime, &program, Limits { iterations: Some(3), ..Limits::default() }).await;
    let run = driven.run;
    let _ = driven.wait().await;
    let _ = runtime.resume(run).await.unwrap().wait().await;
    let raise = Limits { iterations: Some(4), ..Limits::default() };
    runtime.tell(run, "r", InboxBody::Reopen { actor: "ann".into(), raise }).await.unwrap();
    tokio::time::sleep(HOUR).await;
    let row = store.run(run).await.unwrap().unwrap();
    assert_eq!((row.iteration, row.worker), (4, None), "nobody reopened it");
}

#[tokio::test(start_paused = true)]
async fn a_laptop_that_slept_does_not_steal_its_own_runs() {
    let pays = Arc::default();
    let step: Step = |_, _, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::wait("go"),
            Event::SignalReceived { .. } => Decision::tool("pay", &1),
            Event::ToolReturned(r) => Decision::finish(&r.output),
            other => return Err(Failure::unexpected(&other)),
        })
    };
    let program =
        Program::new(erase(Closure(step, "closure"), Vec::new())).tool(slow("pay", EffectClass::Once, 60_000, &pays));
    let store = MemoryStore::new();
    let clock = Wall::new();
    let runtime = worker(Arc::new(store.clone()), &program, clock.clone(), Config::default()).await;
    let one = begin(&runtime, &program, Limits::default()).await;
    let other = begin(&runtime, &program, Limits::default()).await;
    let run = one.run;
    tokio::time::sleep(Duration::from_millis(10)).await;
    runtime.tell(run, "g", signal("go")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(pays.load(Ordering::SeqCst), 1);
    // The lid closes for an hour: the wall clock goes on, the monotonic one does not. Then anything at all happens.
    clock.jump(3_600_000);
    runtime.tell(other.run, "g", signal("else")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(120)).await;
    let row = store.run(run).await.unwrap().unwrap();
    assert_eq!(settlements(&store, run).await, [(1, Settlement::Landed)], "epoch {:?}", row.epoch);
}

#[tokio::test(start_paused = true)]
async fn a_due_run_of_a_loop_that_is_not_here_does_not_make_the_keeper_spin() {
    let step: Step = |_, _, _| Ok(Decision::sleep(10_000));
    let theirs = Program::new(erase(Closure(step, "theirs"), Vec::new()));
    let ours = Program::new(erase(Closure(step, "ours"), Vec::new()));
    let store = MemoryStore::new();
    let clock = Wall::new();
    let first =
        worker(Arc::new(store.clone()), &theirs, clock.clone(), Config { claims: false, ..Config::default() }).await;
    let _ = begin(&first, &theirs, Limits::default()).await.wait().await;
    first.shutdown().await;
    tokio::time::advance(Duration::from_secs(11)).await;
    let counting = Counting::new(store.clone(), true);
    let _second = worker(counting.clone(), &ours, clock, Config::default()).await;
    for _ in 0..100 {
        tokio::time::advance(Duration::from_millis(100)).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    let looks = counting.wakes.load(Ordering::SeqCst);
    assert!(looks < 100, "{looks} looks in ten seconds");
}

struct Renamed;

impl Loop for Renamed {
    type Input = String;
    type State = std::collections::BTreeMap<String, u32>;
    type Output = serde_json::Value;
    fn name(&self) -> &'static str {
        "closure"
    }
    fn version(&self) -> &'static str {
        "2"
    }
    fn init(&self, _: String) -> Result<Self::State, Failure> {
        Ok(Self::State::new())
    }
    fn transition(&self, _: &Cx, _: &mut Self::State, _: Event) -> Result<Decision, Failure> {
        Ok(Decision::finish(&"two"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_build_whose_state_does_not_fit_leaves_the_run_open() {
    let old = Program::new(erase(Closure(|_, _, _| Ok(Decision::wait("go")), "closure"), Vec::new()));
    let new = Program::new(erase(Renamed, Vec::new()));
    let store = MemoryStore::new();
    let clock = Wall::new();
    let first = worker(Arc::new(store.clone()), &old, clock.clone(), Config::default()).await;
    let driven = begin(&first, &old, Limits::default()).await;
    let run = driven.run;
    let _ = driven.wait().await;
    first.shutdown().await;
    let second = worker(Arc::new(store.clone()), &new, clock, Config::default()).await;
    second.tell(run, "g", signal("go")).await.unwrap();
    tokio::time::sleep(HOUR).await;
    let row = store.run(run).await.unwrap().unwrap();
    assert_ne!(row.status, RunStatus::Ended, "a deploy sealed it as {:?}", row.outcome);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_loop_that_decides_nothing_can_be_cancelled() {
    let program = Program::new(erase(Closure(|_, _, _| Ok(Decision::none()), "closure"), Vec::new()));
    let store = MemoryStore::new();
    let runtime = worker(Arc::new(store.clone()), &program, Wall::new(), Config::default()).await;
    let limits = Limits { iterations: Some(200_000), ..Limits::default() };
    let driven = begin(&runtime, &program, limits).await;
    let run = driven.run;
    tokio::time::sleep(Duration::from_millis(50)).await;
    runtime.tell(run, "c", cancel()).await.unwrap();
    let end = tokio::time::timeout(Duration::from_secs(120), driven.wait()).await.unwrap();
    assert!(matches!(end, RunEnd::Ended(Outcome::Interrupted { .. })), "{}", show_end(&end));
    let iterations = store.run(run).await.unwrap().unwrap().iteration;
    assert!(iterations < 200_000, "it heard the cancel only when its limit had stopped it");
}

struct NoTools;

impl loopd_kernel::machine::Catalog for NoTools {
    fn tool(&self, _: &str) -> Option<ToolTerms> {
        None
    }
    fn model(&self, _: &str) -> Option<loopd_kernel::machine::ModelTerms> {
        None
    }
}

#[test]
fn a_recovery_is_recorded_before_anything_that_may_kill_the_worker_again() {
    let definition = erase(
        Closure(
            |_, _, _| {
                TRIES.set(TRIES.get() + 1);
                Ok(Decision::sleep(1))
            },
            "closure",
        ),
        Vec::new(),
    );
    let mut salt = || [7; 32];
    let mut machine = Machine::new(Projection::new(RunId([1; 16])));
    let admission = Admission { tenant: "t".into(), input: "\"in\"".into(), limits: Limits::default(), key: None };
    let mut env = Env {
        now: TimeMs(1),
        epoch: Epoch(1),
        dispatch_window_ms: 1,
        skew_ms: 0,
        pace: Pace::Drain,
        catalog: &NoTools,
        definition: &*definition,
        salt: &mut salt,
    };
    let _ = machine.apply(Input::Start(admission), &mut env).unwrap();
    (env.pace, env.epoch) = (Pace::Full, Epoch(2));
    TRIES.set(0);
    let _ = machine.apply(Input::Recover, &mut env).unwrap();
    assert_eq!(TRIES.get(), 0, "a transition that aborts the process takes the uncommitted `recovered` with it");
}

#[tokio::test(start_paused = true)]
async fn runs_that_are_woken_together_are_each_driven_once_and_hear_a_cancel() {
    let step: Step = |_, _, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::wait("go"),
            Event::SignalReceived { .. } => Decision::tool("look", &1),
            _ => Decision::none(),
        })
    };
    let program = Program::new(erase(Closure(step, "closure"), Vec::new())).tool(slow(
        "look",
        EffectClass::Read,
        36_000_000,
        &Arc::default(),
    ));
    let store = MemoryStore::new();
    let counting = Counting::new(store.clone(), true);
    let runtime = worker(counting, &program, Wall::new(), Config::default()).await;
    let mut runs = Vec::new();
    for _ in 0..50 {
        let driven = begin(&runtime, &program, Limits::default()).await;
        runs.push(driven.run);
        let _ = driven.wait().await;
    }
    for run in &runs {
        runtime.tell(*run, "g", signal("go")).await.unwrap();
    }
    // Turns instead of time: virtual time stands still while the keeper is busy.
    for _ in 0..20_000 {
        tokio::task::yield_now().await;
    }
    let mut claims = 0;
    for run in &runs {
        claims += store.run(*run).await.unwrap().unwrap().epoch.0 - 1;
    }
    assert_eq!(claims, 50, "claims of 50 runs that were woken once each");
    for run in &runs {
        runtime.tell(*run, "c", cancel()).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    let mut deaf = 0;
    for run in &runs {
        deaf += u32::from(store.run(*run).await.unwrap().unwrap().status != RunStatus::Ended);
    }
    assert_eq!(deaf, 0, "deaf to a cancel");
}

#[tokio::test(start_paused = true)]
async fn a_run_of_many_short_activations_gets_snapshots() {
    let program = Program::new(erase(Closure(|_, _, _| Ok(Decision::sleep(60_000)), "closure"), Vec::new()));
    let store = MemoryStore::new();
    let config = Config { snapshot_entries: 16, ..Config::default() };
    let runtime = worker(Arc::new(store.clone()), &program, Wall::new(), config).await;
    let driven = begin(&runtime, &program, Limits::default()).await;
    tokio::time::sleep(HOUR * 2).await;
    let row = store.run(driven.run).await.unwrap().unwrap();
    assert!(row.head.0 > 200, "{}", row.head);
    assert!(store.snapshot(driven.run).await.unwrap().is_some(), "{} entries and no snapshot", row.head);
}

#[tokio::test(start_paused = true)]
async fn an_ambiguous_commit_that_only_takes_an_item_is_no_loss() {
    let program = Program::new(erase(Closure(|_, _, _| Ok(Decision::wait("go")), "closure"), Vec::new()));
    let store = MemoryStore::new();
    let once = Cell::new(true);
    let faulty = store.faulty(move |batch| {
        let takes = batch.writes.iter().any(|write| matches!(write, Write::TakeInbox { .. }));
        let appends = batch.writes.iter().any(|write| matches!(write, Write::Append { .. }));
        (takes && !appends && once.replace(false)).then_some(Fault::AmbiguousCommitted)
    });
    let config = Config { claims: false, ..Config::default() };
    let runtime = worker(Arc::new(faulty), &program, Wall::new(), config).await;
    let driven = begin(&runtime, &program, Limits::default()).await;
    let run = driven.run;
    let _ = driven.wait().await;
    let end = QuestionEnd::Answered;
    let body = InboxBody::Answer { question: QuestionId(9), end, actor: "ann".into(), value: "1".into() };
    runtime.tell(run, "a", body).await.unwrap();
    let end = runtime.resume(run).await.unwrap().wait().await;
    assert!(matches!(end, RunEnd::Suspended(_)), "{}", show_end(&end));
}

#[tokio::test(start_paused = true)]
async fn two_resumes_at_once_are_one_activation() {
    let pays = Arc::default();
    let step: Step = |_, _, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::sleep(1_000),
            Event::TimerFired { .. } => Decision::tool("pay", &1),
            Event::ToolReturned(r) => Decision::finish(&r.output),
            other => return Err(Failure::unexpected(&other)),
        })
    };
    let program =
        Program::new(erase(Closure(step, "closure"), Vec::new())).tool(slow("pay", EffectClass::Once, 5_000, &pays));
    let mut bad = Vec::new();
    for lag in 0..24 {
        let store = MemoryStore::new();
        let counting = Counting::new(store.clone(), true);
        let config = Config { claims: false, ..Config::default() };
        let runtime = worker(counting, &program, Wall::new(), config).await;
        let driven = begin(&runtime, &program, Limits::default()).await;
        let run = driven.run;
        let _ = driven.wait().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let late = runtime.clone();
        let second = tokio::spawn(async move { late.resume(run).await.map(Driven::wait) });
        for _ in 0..lag {
            tokio::task::yield_now().await;
        }
        let first = runtime.resume(run).await;
        let _ = second.await;
        drop(first);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let settled = settlements(&store, run).await;
        if settled != [(1, Settlement::Landed)] {
            bad.push((lag, settled));
        }
    }
    assert_eq!(bad, [], "payments that landed and are recorded otherwise");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn runs_that_are_woken_together_in_real_time_are_each_claimed_once() {
    let step: Step = |_, _, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::wait("go"),
            Event::SignalReceived { .. } => Decision::finish(&"woken"),
            other => return Err(Failure::unexpected(&other)),
        })
    };
    let program = Program::new(erase(Closure(step, "closure"), Vec::new()));
    let store = MemoryStore::new();
    let runtime = worker(Counting::new(store.clone(), true), &program, Wall::new(), Config::default()).await;
    let mut runs = Vec::new();
    for _ in 0..200 {
        let driven = begin(&runtime, &program, Limits::default()).await;
        runs.push(driven.run);
        let _ = driven.wait().await;
    }
    for run in &runs {
        runtime.tell(*run, "g", signal("go")).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (mut claims, mut ended) = (0, 0);
    for run in &runs {
        let row = store.run(*run).await.unwrap().unwrap();
        claims += row.epoch.0 - 1;
        ended += u32::from(row.status == RunStatus::Ended);
    }
    assert_eq!((claims, ended), (200, 200), "claims, ended of 200 runs that were woken once each");
}
