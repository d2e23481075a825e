//! Ways off the usual one that a worker may go with families, builds and turns, each with the right behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use loopd_kernel::budget::Limits;
use loopd_kernel::child::{Recipient, Spawn};
use loopd_kernel::machine::Admission;
use loopd_kernel::{Action, Cx, Decision, ErasedLoop, Event, Failure, Loop, Outcome, RunId, Upgrade, erase};
use loopd_runtime::{Config, Driven, FixedPrograms, Program, RunEnd, Runtime, Started};
use loopd_store::{InboxBody, MemoryStore, RunFilter, RunRow, RunStatus, Store};
use std::sync::Arc;
use std::time::Duration;
use world::{CountedEntropy, VirtualClock, World, panics, set_panics, show_end};

/// A Loop whose State is its input; `step` sees both.
struct Kin {
    name: &'static str,
    step: fn(&str, Event) -> Result<Decision, Failure>,
    schema: u32,
    upgrade: Upgrade,
}

impl Loop for Kin {
    type Input = String;
    type State = String;
    type Output = serde_json::Value;

    fn name(&self) -> &str {
        self.name
    }
    fn state_version(&self) -> u32 {
        self.schema
    }
    fn upgrade(&self) -> Upgrade {
        self.upgrade
    }
    fn migrate(&self, _: u32, _: &str) -> Result<String, Failure> {
        panic!("a defect in a migration")
    }
    fn init(&self, input: String) -> Result<String, Failure> {
        Ok(input)
    }
    fn transition(&self, _: &Cx, state: &mut String, event: Event) -> Result<Decision, Failure> {
        (self.step)(state, event)
    }
}

fn program(name: &'static str, step: fn(&str, Event) -> Result<Decision, Failure>) -> Program {
    Program::new(erase(Kin { name, step, schema: 1, upgrade: Upgrade::Adopt }, Vec::new()))
}

struct Bench {
    store: MemoryStore,
    clock: Arc<VirtualClock>,
}

impl Bench {
    fn new() -> Self {
        Self { store: MemoryStore::new(), clock: Arc::default() }
    }

    async fn worker(&self, n: u64, claims: bool, programs: &[Arc<Program>]) -> Runtime {
        Runtime::builder(Arc::new(self.store.clone()), Arc::new(FixedPrograms::new(programs.iter().cloned())))
            .config(Config { claims, ..Config::default() })
            .world(self.clock.clone(), Arc::new(CountedEntropy::of(n)))
            .start()
            .await
            .unwrap()
    }

    async fn row(&self, run: RunId) -> RunRow {
        self.store.run(run).await.unwrap().unwrap()
    }

    async fn children(&self, of: RunId) -> Vec<RunRow> {
        let filter = RunFilter { limit: 10, parent: Some(of), ..Default::default() };
        self.store.runs(filter).await.unwrap().items
    }
}

async fn begin(runtime: &Runtime, program: &Arc<Program>, input: &str) -> Driven {
    let input = serde_json::to_string(input).unwrap();
    let admission = Admission { tenant: "t".into(), input, limits: Limits::default(), key: None };
    let Started::New(driven) = runtime.start(program, admission).await.unwrap() else { panic!() };
    driven
}

async fn end(driven: Driven) -> String {
    match tokio::time::timeout(Duration::from_secs(3_600), driven.wait()).await {
        Ok(end) => show_end(&end),
        Err(_) => "nothing for an hour".into(),
    }
}

fn signal(name: &str) -> InboxBody {
    InboxBody::Signal { name: name.into(), body: "1".into() }
}

/// What waits behind an item that parks the Run waits on: "signals to a parked run queue without reopening it".
#[tokio::test(start_paused = true)]
async fn what_waits_behind_an_item_that_parks_the_run_is_not_lost() {
    let world = World::new(|_, state, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::wait("a"),
            Event::SignalReceived { name, .. } => {
                assert!(!panics(), "a defect");
                state.push(name);
                if state.len() == 2 { Decision::finish(state) } else { Decision::wait("b") }
            }
            other => return Err(Failure::unexpected(&other)),
        })
    });
    assert!(matches!(world.run().await, RunEnd::Suspended(_)));
    world.tell("1", signal("a")).await;
    world.tell("2", signal("b")).await;
    set_panics(true);
    assert!(matches!(world.resume().await, RunEnd::Ended(Outcome::Interrupted { .. })));
    set_panics(false);
    world.tell("3", InboxBody::Reopen { actor: "ann".into(), raise: Limits::default() }).await;
    let end = world.resume().await;
    assert!(matches!(end, RunEnd::Ended(Outcome::Completed { .. })), "the second signal is gone: {end:?}");
}

fn recurses(input: &str, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } if input == "parent" => Decision::spawn("one", "kin", &"child"),
        Event::IterationStarted { .. } => Decision::finish(&"child"),
        Event::ChildEnded { .. } => Decision::finish(&"parent"),
        other => return Err(Failure::unexpected(&other)),
    })
}

/// A parent that only waits must not hold the turn that its child waits for.
#[tokio::test(start_paused = true)]
async fn a_child_of_a_loop_with_a_limit_gets_its_turn_while_its_parent_waits() {
    let bench = Bench::new();
    let kin = Arc::new(program("kin", recurses).max_active(1));
    let runtime = bench.worker(1, false, std::slice::from_ref(&kin)).await;
    let ended = end(begin(&runtime, &kin, "parent").await).await;
    assert!(ended.starts_with("Ended Completed"), "{ended}");
}

fn child_of_few_iterations(_: &str, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { iteration: 3 } => Decision::finish(&"child"),
        Event::IterationStarted { .. } => Decision::none(),
        other => return Err(Failure::unexpected(&other)),
    })
}

fn raises(_: &str, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => {
            let limits = Limits { iterations: Some(1), ..Limits::default() };
            Decision::none().and(Action::Spawn(Spawn { limits, ..Spawn::new("one", "child", "\"in\"") }))
        }
        // Not at once, so that the child has left by then.
        Event::ChildParked { .. } => Decision::sleep(1_000),
        Event::TimerFired { .. } => {
            let by = Limits { iterations: Some(5), ..Limits::default() };
            Decision::none().and(Action::RaiseChild { child: "one".into(), by })
        }
        Event::ChildEnded { .. } => Decision::finish(&"parent"),
        other => return Err(Failure::unexpected(&other)),
    })
}

/// Where nothing is claimed, a child that its parent raises goes on here: nobody else will come to it.
#[tokio::test(start_paused = true)]
async fn a_child_that_is_raised_is_driven_again_where_nothing_is_claimed() {
    let bench = Bench::new();
    let (parent, child) = (Arc::new(program("parent", raises)), Arc::new(program("child", child_of_few_iterations)));
    let runtime = bench.worker(1, false, &[parent.clone(), child]).await;
    let ended = end(begin(&runtime, &parent, "in").await).await;
    assert!(ended.starts_with("Ended Completed"), "{ended}");
}

fn signals_later(_: &str, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::spawn("one", "child", &"in").and(Action::Sleep { ms: 1_000 }),
        Event::TimerFired { .. } => {
            let to = Recipient::Child("one".into());
            Decision::none().and(Action::Signal { to, name: "go".into(), body: "1".into() })
        }
        Event::ChildEnded { .. } => Decision::finish(&"parent"),
        other => return Err(Failure::unexpected(&other)),
    })
}

fn waits_to_go(_: &str, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::wait("go"),
        Event::SignalReceived { .. } => Decision::finish(&"child"),
        other => return Err(Failure::unexpected(&other)),
    })
}

/// The same of a child that waited for a signal of its parent.
#[tokio::test(start_paused = true)]
async fn a_child_that_is_signalled_is_driven_again_where_nothing_is_claimed() {
    let bench = Bench::new();
    let (parent, child) = (Arc::new(program("parent", signals_later)), Arc::new(program("child", waits_to_go)));
    let runtime = bench.worker(1, false, &[parent.clone(), child]).await;
    let ended = end(begin(&runtime, &parent, "in").await).await;
    assert!(ended.starts_with("Ended Completed"), "{ended}");
}

fn panics_at_first(_: &str, _: Event) -> Result<Decision, Failure> {
    panic!("a defect of the first transition")
}

fn spawns_child(_: &str, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::spawn("one", "child", &"in"),
        Event::ChildParked { .. } => Decision::none(),
        Event::ChildEnded { .. } => Decision::finish(&"parent"),
        other => return Err(Failure::unexpected(&other)),
    })
}

/// A panic parks a Run as poisoned, a child's first transition as any other one.
#[tokio::test(start_paused = true)]
async fn a_child_whose_first_transition_panics_is_parked_and_not_sealed() {
    let bench = Bench::new();
    let (parent, child) = (Arc::new(program("parent", spawns_child)), Arc::new(program("child", panics_at_first)));
    let runtime = bench.worker(1, false, &[parent.clone(), child]).await;
    let driven = begin(&runtime, &parent, "in").await;
    let run = driven.run;
    let _ = end(driven).await;
    let child = bench.children(run).await.pop().unwrap();
    assert_eq!((child.status, child.outcome.as_deref()), (RunStatus::Parked, Some("Interrupted")));
}

fn sleeps(input: &str, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::sleep(if input == "short" { 60_000 } else { 120_000 }),
        Event::TimerFired { .. } => Decision::finish(&"awake"),
        other => return Err(Failure::unexpected(&other)),
    })
}

/// A migration that panics is a defect of one Loop; the worker goes on with everything else.
#[tokio::test(start_paused = true)]
async fn a_migration_that_panics_does_not_stop_the_worker() {
    let bench = Bench::new();
    let (old, neighbour) = (Arc::new(program("old", sleeps)), Arc::new(program("neighbour", sleeps)));
    let first = bench.worker(1, false, &[old.clone(), neighbour.clone()]).await;
    let one = begin(&first, &old, "short").await;
    let two = begin(&first, &neighbour, "long").await;
    let run = two.run;
    let _ = (end(one).await, end(two).await);
    first.shutdown().await;

    let newer = Program::new(erase(Kin { name: "old", step: sleeps, schema: 2, upgrade: Upgrade::Adopt }, Vec::new()));
    let _second = bench.worker(2, true, &[Arc::new(newer), neighbour]).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(bench.row(run).await.status, RunStatus::Ended, "the neighbour was due eight minutes ago");
}

/// A child that its parent let go of before anybody began to drive it must not pay first and be cancelled then.
#[tokio::test(start_paused = true)]
async fn a_child_that_was_cancelled_before_it_began_calls_nothing() {
    fn lets_go(_: &str, event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::spawn("one", "closure", &"in").and(Action::Sleep { ms: 1_000 }),
            Event::TimerFired { .. } => Decision::finish(&"without it"),
            other => return Err(Failure::unexpected(&other)),
        })
    }
    let bench = Bench::new();
    let parent = Arc::new(program("parent", lets_go));
    let first = bench.worker(1, false, std::slice::from_ref(&parent)).await;
    let driven = begin(&first, &parent, "in").await;
    let run = driven.run;
    assert!(end(driven).await.starts_with("Ended Completed"));
    first.shutdown().await;
    let child = bench.children(run).await.pop().unwrap();
    assert_eq!(child.head.0, 0);

    let world = World::new(|_, _, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::tool("pay", &42),
            Event::ToolReturned(_) => Decision::finish(&"paid"),
            other => return Err(Failure::unexpected(&other)),
        })
    })
    .tool("pay", loopd_kernel::EffectClass::Once);
    let second = bench.worker(2, false, &[Arc::new(world.program().clone())]).await;
    let _ = end(second.resume(child.run).await.unwrap()).await;
    assert_eq!(world.calls("pay"), 0, "it was cancelled before it began, and paid all the same");
}

/// What a child says of its end waits behind an item that parks its parent: it says so once.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_child_is_not_lost_when_its_parent_is_parked() {
    fn parent(_: &str, event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::spawn("one", "child", &"short"),
            Event::SignalReceived { .. } => {
                assert!(!panics(), "a defect");
                Decision::none()
            }
            Event::ChildEnded { .. } => Decision::finish(&"parent"),
            other => return Err(Failure::unexpected(&other)),
        })
    }
    let bench = Bench::new();
    let (parent, child) = (Arc::new(program("parent", parent)), Arc::new(program("child", waits_to_go)));
    let runtime = bench.worker(1, false, &[parent.clone(), child]).await;
    let driven = begin(&runtime, &parent, "in").await;
    let run = driven.run;
    let waits = end(driven).await;
    assert!(waits.starts_with("Suspended"), "{waits}");
    runtime.tell(run, "1", signal("hello")).await.unwrap();
    let child = bench.children(run).await.pop().unwrap().run;
    runtime.tell(child, "go", signal("go")).await.unwrap();
    let _ = end(runtime.resume(child).await.unwrap()).await;
    assert_eq!(bench.row(child).await.status, RunStatus::Ended);
    set_panics(true);
    let parked = end(runtime.resume(run).await.unwrap()).await;
    assert!(parked.starts_with("Ended Interrupted"), "{parked}");
    set_panics(false);
    runtime.tell(run, "2", InboxBody::Reopen { actor: "ann".into(), raise: Limits::default() }).await.unwrap();
    let ended = end(runtime.resume(run).await.unwrap()).await;
    assert!(ended.starts_with("Ended Completed"), "its child ended, and it will never hear of it: {ended}");
}

/// Of two definitions of one Loop a child runs the one that its parent named.
#[tokio::test(start_paused = true)]
async fn a_child_runs_the_definition_that_was_asked_for() {
    fn constants(text: &str) -> loopd_kernel::model::Constants {
        let bytes: Arc<[u8]> = text.as_bytes().into();
        let digest = loopd_kernel::Digest::sha256(&[&bytes]);
        let name = loopd_kernel::model::ConstantsRef { digest, bytes: bytes.len() as u64 };
        loopd_kernel::model::Constants { name, bytes }
    }
    fn asks_for_b(_: &str, event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { .. } => {
                let definition = Some(constants("B"));
                Decision::none().and(Action::Spawn(Spawn { definition, ..Spawn::new("one", "child", "\"in\"") }))
            }
            Event::ChildEnded { outcome: Outcome::Completed { output }, .. } => Decision::finish(&output),
            other => return Err(Failure::unexpected(&other)),
        })
    }
    let bench = Bench::new();
    let parent = Arc::new(program("parent", asks_for_b));
    let child = |step, bytes: &str| {
        Arc::new(Program::new(erase(Kin { name: "child", step, schema: 1, upgrade: Upgrade::Adopt }, bytes.into())))
    };
    let a = child(|_, _| Ok(Decision::finish(&"A")), "A");
    let b = child(|_, _| Ok(Decision::finish(&"B")), "B");
    let runtime = bench.worker(1, false, &[parent.clone(), a, b]).await;
    let ended = end(begin(&runtime, &parent, "in").await).await;
    assert!(ended.contains('B') && !ended.contains('A'), "{ended}");
}

fn spawns_two(input: &str, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } if input == "parent" => Decision::none()
            .and(Action::Spawn(Spawn::new("one", "kin", "\"child\"")))
            .and(Action::Spawn(Spawn::new("two", "kin", "\"child\""))),
        Event::IterationStarted { .. } => Decision::finish(&"child"),
        Event::ChildEnded { name, .. } if name == "two" => Decision::finish(&"parent"),
        Event::ChildEnded { .. } => Decision::none(),
        other => return Err(Failure::unexpected(&other)),
    })
}

/// The first child has all tokens, so the second one waits for it. A parent that waits for nothing else is a row: it
/// neither stays in memory nor keeps the turn that its child needs. Also where everything is claimed.
#[tokio::test(start_paused = true)]
async fn a_parent_that_has_to_wait_for_its_child_with_a_call_gives_its_turn_back() {
    let bench = Bench::new();
    let kin = Arc::new(program("kin", spawns_two).max_active(1));
    let runtime = bench.worker(1, true, std::slice::from_ref(&kin)).await;
    let limits = Limits { tokens: Some(100), ..Limits::default() };
    let admission = Admission { tenant: "t".into(), input: "\"parent\"".into(), limits, key: None };
    let Started::New(driven) = runtime.start(&kin, admission).await.unwrap() else { panic!() };
    tokio::time::sleep(Duration::from_secs(600)).await;
    let row = bench.row(driven.run).await;
    assert_eq!(row.status, RunStatus::Ended, "after ten minutes: {row:?}");
}

/// A Run that is driven here is held here: its row must not say that anybody may take it.
#[tokio::test(start_paused = true)]
async fn a_parent_that_stays_for_its_child_still_holds_its_run() {
    fn child(_: &str, event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::sleep(3_000),
            Event::TimerFired { .. } => Decision::finish(&"child"),
            other => return Err(Failure::unexpected(&other)),
        })
    }
    let bench = Bench::new();
    let (parent, child) = (Arc::new(program("parent", spawns_child)), Arc::new(program("child", child)));
    let runtime = bench.worker(1, false, &[parent.clone(), child.clone()]).await;
    let driven = begin(&runtime, &parent, "in").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(runtime.driven(driven.run).is_some(), "it is driven here");
    let row = bench.row(driven.run).await;
    assert!(row.worker.is_some(), "and its row says that nobody drives it: {row:?}");
}

/// As `loopctl cancel` does it: a Loop that is never asked, and a worker that stops already.
struct Mute;

impl ErasedLoop for Mute {
    fn name(&self) -> &str {
        "child"
    }
    fn version(&self) -> &str {
        "1"
    }
    fn definition(&self) -> &[u8] {
        &[]
    }
    fn upgrade(&self) -> Upgrade {
        Upgrade::Unasked
    }
    fn reads(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }
    fn init(&self, _: &str) -> Result<String, Failure> {
        Err(Failure::new("loopctl.cancelling", "a run that is being cancelled decides nothing"))
    }
    fn transition(&self, _: &Cx, _: &str, _: Event) -> Result<(Decision, String), Failure> {
        Err(Failure::new("loopctl.cancelling", "a run that is being cancelled decides nothing"))
    }
}

/// Cancelling a child that has not begun cancels it; it has not failed.
#[tokio::test(start_paused = true)]
async fn a_child_that_has_not_begun_is_cancelled_without_its_program() {
    let bench = Bench::new();
    let parent = Arc::new(program("parent", spawns_child));
    let first = bench.worker(1, false, std::slice::from_ref(&parent)).await;
    let driven = begin(&first, &parent, "in").await;
    let run = driven.run;
    let _ = end(driven).await;
    first.shutdown().await;
    let child = bench.children(run).await.pop().unwrap().run;
    let second = bench.worker(2, false, &[Arc::new(Program::new(Arc::new(Mute)))]).await;
    second.tell(child, "1", InboxBody::Cancel { actor: "ann".into(), reason: "no".into() }).await.unwrap();
    second.shutdown().await;
    let _ = end(second.resume(child).await.unwrap()).await;
    assert_eq!(bench.row(child).await.outcome.as_deref(), Some("Interrupted"));
}

/// A pinned Loop whose definition has bytes: a child that was spawned without naming them has not begun, so it fits.
#[tokio::test(start_paused = true)]
async fn a_child_of_a_pinned_loop_is_claimed() {
    let bench = Bench::new();
    let parent = Arc::new(program("parent", spawns_child));
    let pinned = Kin { name: "child", step: |_, _| Ok(Decision::finish(&"A")), schema: 1, upgrade: Upgrade::Pin };
    let child = Arc::new(Program::new(erase(pinned, b"A".to_vec())));
    let runtime = bench.worker(1, true, &[parent.clone(), child]).await;
    let driven = begin(&runtime, &parent, "in").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(bench.row(driven.run).await.status, RunStatus::Ended);
}

/// A rollout was rolled back: many Runs have a State that is too new for this build. They stay as they are, and
/// everything else is driven.
#[tokio::test(start_paused = true)]
async fn runs_that_cannot_be_driven_here_do_not_starve_the_others() {
    let bench = Bench::new();
    let of = |schema| {
        Arc::new(Program::new(erase(Kin { name: "old", step: sleeps, schema, upgrade: Upgrade::Adopt }, Vec::new())))
    };
    let (newer, neighbour) = (of(2), Arc::new(program("neighbour", sleeps)));
    let first = bench.worker(1, false, &[newer.clone(), neighbour.clone()]).await;
    for _ in 0..64 {
        let _ = end(begin(&first, &newer, "short").await).await;
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    let driven = begin(&first, &neighbour, "short").await;
    let run = driven.run;
    let _ = end(driven).await;
    first.shutdown().await;

    let _second = bench.worker(2, true, &[of(1), neighbour]).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(
        bench.row(run).await.status,
        RunStatus::Ended,
        "nine minutes late, behind 64 that nobody here can drive"
    );
}

static RAISES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// Nothing is left for a parked child: giving it "more" gives nothing, and must not go round at the speed of the store.
#[tokio::test(start_paused = true)]
async fn raising_a_child_by_nothing_does_not_go_round_for_ever() {
    fn raises_always(_: &str, event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::spawn("one", "child", &"in"),
            Event::ChildParked { .. } if RAISES.fetch_add(1, std::sync::atomic::Ordering::SeqCst) > 100 => {
                Decision::finish(&"it would never have ended")
            }
            Event::ChildParked { .. } => {
                let by = Limits { tokens: Some(50), ..Limits::default() };
                Decision::none().and(Action::RaiseChild { child: "one".into(), by })
            }
            other => return Err(Failure::unexpected(&other)),
        })
    }
    fn talks(_: &str, event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { .. } | Event::ModelReplied { .. } => {
                Decision::model(loopd_kernel::model::ModelCall::prompt("m", "hello"))
            }
            other => return Err(Failure::unexpected(&other)),
        })
    }
    let bench = Bench::new();
    let model = Arc::new(Talker);
    let parent = Arc::new(program("parent", raises_always));
    let child = Arc::new(program("child", talks).model("m", model));
    let runtime = bench.worker(1, true, &[parent.clone(), child]).await;
    let limits = Limits { tokens: Some(300), ..Limits::default() };
    let admission = Admission { tenant: "t".into(), input: "\"parent\"".into(), limits, key: None };
    let Started::New(_) = runtime.start(&parent, admission).await.unwrap() else { panic!() };
    tokio::time::sleep(Duration::from_secs(5)).await;
    let raises = RAISES.load(std::sync::atomic::Ordering::SeqCst);
    assert!(raises < 100, "{raises} raises by nothing within five seconds");
}

struct Talker;

#[async_trait::async_trait]
impl loopd_runtime::Model for Talker {
    fn terms(&self) -> loopd_kernel::machine::ModelTerms {
        loopd_kernel::machine::ModelTerms { price: None, timeout_ms: 60_000, max_attempts: 3 }
    }
    async fn call(
        &self,
        _: loopd_runtime::ModelRequest,
        _: loopd_runtime::CallContext,
    ) -> Result<loopd_runtime::ModelAnswer, loopd_runtime::ModelError> {
        let usage = loopd_kernel::Usage { input: 50, output: 5, ..Default::default() };
        let reply = loopd_kernel::model::ModelReply::text("hi");
        Ok(loopd_runtime::ModelAnswer { reply, usage: Some(usage) })
    }
}
