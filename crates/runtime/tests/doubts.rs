//! What a worker does when it cannot be sure: of a commit, of its lease, of a snapshot.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use expect_test::expect;
use loopd_kernel::budget::Limits;
use loopd_kernel::entry::FORMAT;
use loopd_kernel::machine::{Admission, ModelTerms};
use loopd_kernel::model::{ModelCall, ModelReply};
use loopd_kernel::record::{Record, Settlement, Signal};
use loopd_kernel::units::Price;
use loopd_kernel::{Cx, Decision, Digest, EffectClass, Entry, Event, Failure, MicroUsd, Salt, Seq, TimeMs, Usage};
use loopd_runtime::{
    CallContext, Config, DriveError, Driven, FixedPrograms, Model, ModelAnswer, ModelError, ModelRequest, Program,
    RunEnd, Runtime, StartError, Started,
};
use loopd_store::memory::Fault;
use loopd_store::{Batch, Claim, Expect, InboxBody, MemoryStore, Store, WorkerId, Write};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use world::port::Port;
use world::{CountedEntropy, VirtualClock, World, show_end};

fn pay(_: &Cx, _: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::tool("pay", &42),
        Event::ToolReturned(r) => Decision::finish(&r.output),
        other => return Err(Failure::unexpected(&other)),
    })
}

/// The commit number `n`, counted from 1, meets `fault`.
fn nth(n: u32, fault: Fault) -> impl FnMut(&Batch) -> Option<Fault> + Send + 'static {
    let mut seen = 0;
    move |_| {
        seen += 1;
        (seen == n).then_some(fault)
    }
}

const PAID: &str = r#"Ended Completed {"output":"\"pay(42) #1\""}"#;

#[tokio::test(start_paused = true)]
async fn a_commit_that_landed_unheard_is_found_by_reading_back() {
    for n in 1..=3 {
        let world = World::new(pay).tool("pay", EffectClass::Once).faulty(nth(n, Fault::AmbiguousCommitted));
        assert_eq!((show_end(&world.run().await).as_str(), world.calls("pay")), (PAID, 1), "commit {n}");
        world.verify().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_was_lost_is_made_again_before_anything_is_sent() {
    for n in 1..=3 {
        let world = World::new(pay).tool("pay", EffectClass::Once).faulty(nth(n, Fault::AmbiguousLost));
        assert_eq!((show_end(&world.run().await).as_str(), world.calls("pay")), (PAID, 1), "commit {n}");
        world.verify().await;
    }
}

/// What the in-memory store answers, it answers at once.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the in-memory store waits"),
    }
}

/// Another worker claims the only Run, as if every lease had lapsed, and writes one Entry.
fn usurp(store: &MemoryStore) {
    let claim = Claim { worker: WorkerId(99), now: TimeMs(i64::MAX), loops: Vec::new(), limit: 1, only: None };
    let row = at_once(store.claim(claim)).unwrap().pop().unwrap().row;
    let record = Record::Signal(Signal { name: "usurped".into() });
    let mut entry = Entry {
        run: row.run,
        seq: row.head.next(),
        kind: record.kind(),
        format: FORMAT,
        at: row.updated_at,
        salt: Salt([7; 16]),
        record: record.encode().unwrap(),
        payload: b"1".to_vec(),
        hash: Digest::default(),
    };
    entry.hash = entry.hash_after(&row.hash);
    let expect = vec![Expect::RunAt { run: row.run, seq: row.head, epoch: row.epoch }];
    at_once(store.commit(Batch { expect, writes: vec![Write::Append { run: row.run, entries: vec![entry] }] }))
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn entries_of_somebody_else_are_not_taken_for_ones_own() {
    let store = MemoryStore::new();
    let (rows, mut lost) = (store.clone(), nth(2, Fault::AmbiguousLost));
    let faulty = store.faulty(move |batch| lost(batch).inspect(|_| usurp(&rows)));
    let world = World::new(pay).tool("pay", EffectClass::Once).over(faulty);
    assert_eq!(world.run().await, RunEnd::Lost(DriveError::Fenced));
    assert_eq!(world.calls("pay"), 0, "paid without a durable intent");
}

async fn worker(store: Arc<dyn Store>, program: &Program, config: Config) -> Runtime {
    let programs = Arc::new(FixedPrograms::new([Arc::new(program.clone())]));
    let clock = Arc::new(VirtualClock::default());
    let entropy = Arc::new(CountedEntropy::of(WORKERS.fetch_add(1, Ordering::SeqCst)));
    Runtime::builder(store, programs).config(config).world(clock, entropy).start().await.unwrap()
}

static WORKERS: AtomicU64 = AtomicU64::new(1);

async fn begin(runtime: &Runtime, program: &Program, limits: Limits) -> Driven {
    let admission = Admission { tenant: "default".into(), input: "\"in\"".into(), limits, key: None };
    match runtime.start(&Arc::new(program.clone()), admission).await.unwrap() {
        Started::New(driven) => driven,
        Started::Already(run) => panic!("{run}"),
    }
}

async fn records(store: &MemoryStore, driven: &Driven) -> Vec<Record> {
    let entries = store.entries(driven.run, Seq(0), 10_000).await.unwrap();
    entries.iter().map(|entry| Record::decode(entry.kind, &entry.record).unwrap()).collect()
}

/// A worker hears only after 20 seconds that its first intent is durable.
async fn paused(config: Config) -> (String, u32) {
    let world = World::new(pay).tool("pay", EffectClass::Once);
    let store = MemoryStore::new();
    let port = Arc::new(Port::new(store.clone()).answering_late(2, Duration::from_secs(20)));
    let runtime = worker(port, world.program(), Config { claims: false, ..config }).await;
    let driven = begin(&runtime, world.program(), Limits::default()).await;
    let end = show_end(&driven.clone().wait().await);
    let kinds: Vec<String> = records(&store, &driven).await.iter().map(|r| r.kind().to_string()).collect();
    (format!("{} | {end}", kinds.join(" ")), world.calls("pay"))
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_paused_between_commit_and_send_sends_nothing() {
    let (journal, calls) = paused(Config::default()).await;
    // The intent whose window had closed was not sent; it was intended anew.
    expect![[r#"started iteration_started decided intended attempted intended settled decided ended | Ended Completed {"output":"\"pay(42) #1\""}"#]]
        .assert_eq(&journal);
    assert_eq!(calls, 1);
}

#[tokio::test(start_paused = true)]
async fn a_dispatch_window_ends_before_the_lease_whatever_is_configured() {
    let (journal, calls) = paused(Config { dispatch_window: Duration::from_secs(3_600), ..Config::default() }).await;
    expect![[r#"started iteration_started decided intended attempted intended settled decided ended | Ended Completed {"output":"\"pay(42) #1\""}"#]]
        .assert_eq(&journal);
    assert_eq!(calls, 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_lease_has_lapsed_sends_nothing() {
    let world = World::new(|_, _, event| {
        Ok(match event {
            Event::IterationStarted { iteration: 1 } => Decision::tool("look", &1),
            Event::IterationStarted { .. } => Decision::tool("pay", &2),
            Event::ToolReturned(r) if r.tool == "pay" => Decision::finish(&r.output),
            _ => Decision::none(),
        })
    })
    .tool_taking("look", EffectClass::Read, 40_000)
    .tool("pay", EffectClass::Once);
    let port = Port::new(MemoryStore::new());
    let unheard = port.unheard.clone();
    let runtime = worker(Arc::new(port), world.program(), Config { claims: false, ..Config::default() }).await;
    // From now on no heartbeat arrives: after 15 seconds anybody may claim the Run.
    unheard.store(true, Ordering::SeqCst);
    let driven = begin(&runtime, world.program(), Limits::default()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.calls("pay"), 0, "paid 25 seconds after the lease had lapsed");
    unheard.store(false, Ordering::SeqCst);
    assert_eq!(show_end(&driven.wait().await), r#"Ended Completed {"output":"\"pay(2) #1\""}"#);
}

fn remember(_: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => {
            state.push("honest".into());
            Decision::wait("go")
        }
        Event::SignalReceived { .. } => Decision::finish(state),
        other => return Err(Failure::unexpected(&other)),
    })
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_with_a_changed_byte_is_not_believed() {
    let world = World::new(remember);
    let store = MemoryStore::new();
    let config = Config { claims: false, snapshot_entries: 2, ..Config::default() };
    let runtime = worker(Arc::new(store.clone()), world.program(), config).await;
    let driven = begin(&runtime, world.program(), Limits::default()).await;
    let run = driven.run;
    assert!(matches!(driven.wait().await, RunEnd::Suspended(_)));
    let mut snapshot = store.snapshot(run).await.unwrap().expect("a snapshot");
    let at = snapshot.body.windows(6).position(|bytes| bytes == b"honest").expect("the state is in it");
    snapshot.body[at..at + 6].copy_from_slice(b"crooks");
    store.commit(Batch { expect: Vec::new(), writes: vec![Write::PutSnapshot(snapshot)] }).await.unwrap();
    runtime.tell(run, "go", InboxBody::Signal { name: "go".into(), body: "1".into() }).await.unwrap();
    let end = show_end(&runtime.resume(run).await.unwrap().wait().await);
    assert_eq!(end, r#"Ended Completed {"output":"[\"honest\"]"}"#);
}

/// A model that notes how much it was allowed to say.
struct Terse(Arc<Mutex<Vec<u64>>>);

#[async_trait::async_trait]
impl Model for Terse {
    fn terms(&self) -> ModelTerms {
        let price = Price { input: 1_000_000, output: 1_000_000, ..Price::default() };
        ModelTerms { price: Some(price), timeout_ms: 60_000, max_attempts: 3 }
    }

    async fn call(&self, request: ModelRequest, _: CallContext) -> Result<ModelAnswer, ModelError> {
        self.0.lock().unwrap().push(request.max_output_tokens);
        let usage = Usage { input: 10, output: 5, ..Usage::default() };
        Ok(ModelAnswer { reply: ModelReply::text("yes"), usage: Some(usage) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_is_allowed_no_more_than_the_budget_leaves() {
    let world = World::new(|_, _, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::model(ModelCall::prompt("terse", "well?")),
            Event::ModelReplied { clamped, .. } => Decision::finish(&clamped),
            other => return Err(Failure::unexpected(&other)),
        })
    });
    let asked = Arc::new(Mutex::new(Vec::new()));
    let program = world.program().clone().model("terse", Arc::new(Terse(asked.clone())));
    let store = MemoryStore::new();
    let runtime = worker(Arc::new(store.clone()), &program, Config { claims: false, ..Config::default() }).await;
    let limits = Limits { micro_usd: Some(MicroUsd(500)), ..Limits::default() };
    let driven = begin(&runtime, &program, limits).await;
    assert_eq!(show_end(&driven.clone().wait().await), r#"Ended Completed {"output":"true"}"#);
    let intended = records(&store, &driven).await.into_iter().find_map(|record| match record {
        Record::Intended(intended) => Some(intended),
        _ => None,
    });
    let clamp = intended.unwrap().max_output.expect("a clamp");
    assert!(clamp < 500, "{clamp}");
    assert_eq!(*asked.lock().unwrap(), [clamp]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_parked_beside_a_payment_in_flight_is_not_given_away() {
    let world = World::new(|_, _, event| {
        Ok(match event {
            Event::IterationStarted { iteration: 1 } => Decision::none().and_tool("pay", &1).and_tool("look", &2),
            Event::ToolReturned(r) if r.tool == "look" && world::panics() => panic!("look"),
            Event::ToolReturned(_) => Decision::none(),
            _ => Decision::finish(&"both"),
        })
    })
    .tool_taking("pay", EffectClass::Once, 4_000)
    .tool_taking("look", EffectClass::Read, 10);
    world::set_panics(true);
    let store = MemoryStore::new();
    let config = Config { claims: false, ..Config::default() };
    let first = worker(Arc::new(store.clone()), world.program(), config).await;
    let second = worker(Arc::new(store.clone()), world.program(), config).await;
    let driven = begin(&first, world.program(), Limits::default()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    world::set_panics(false);
    let taken = second.resume(driven.run).await.map(|driven| driven.run);
    assert_eq!(taken, Err(StartError::NotClaimable("parked")));
    let reopen = InboxBody::Reopen { actor: "ann".into(), raise: Limits::default() };
    first.tell(driven.run, "r", reopen).await.unwrap();
    assert_eq!(show_end(&driven.clone().wait().await), r#"Ended Completed {"output":"\"both\""}"#);
    for record in records(&store, &driven).await {
        if let Record::Settled(settled) = record {
            assert_eq!(settled.how, Settlement::Landed, "{settled:?}");
        }
    }
    assert_eq!(world.calls("pay"), 1);
}
