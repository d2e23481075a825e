//! A Loop with a limit: so many of its Runs are driven at once by one worker, and no more are claimed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use loopd_kernel::machine::{Admission, ToolTerms};
use loopd_kernel::model::ToolOffer;
use loopd_kernel::{Decision, EffectClass, Event, Failure, Limits, RunId};
use loopd_runtime::*;
use loopd_store::{MemoryStore, RunStatus, Store};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use world::{CountedEntropy, Step, VirtualClock, World};

/// A tool that takes ten seconds and notes who is in it.
struct Bench {
    offer: ToolOffer,
    inside: AtomicUsize,
    busiest: AtomicUsize,
    order: Mutex<Vec<RunId>>,
}

impl Bench {
    fn new() -> Arc<Self> {
        let offer = ToolOffer { name: "work".into(), description: String::new(), parameters: "{}".into() };
        Arc::new(Self { offer, inside: AtomicUsize::new(0), busiest: AtomicUsize::new(0), order: Mutex::default() })
    }
}

#[async_trait::async_trait]
impl Tool for Bench {
    fn offer(&self) -> &ToolOffer {
        &self.offer
    }

    fn terms(&self) -> ToolTerms {
        ToolTerms { class: EffectClass::Read, timeout_ms: 60_000 }
    }

    async fn call(&self, _: &str, context: &CallContext) -> Result<String, ToolError> {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.busiest.fetch_max(inside, Ordering::SeqCst);
        self.order.lock().unwrap().push(context.run);
        tokio::time::sleep(Duration::from_secs(10)).await;
        self.inside.fetch_sub(1, Ordering::SeqCst);
        Ok("1".into())
    }
}

async fn worker(
    store: &MemoryStore,
    program: &Arc<Program>,
    clock: &Arc<VirtualClock>,
    n: u64,
    claims: bool,
) -> Runtime {
    Runtime::builder(Arc::new(store.clone()), Arc::new(FixedPrograms::new([program.clone()])))
        .config(Config { claims, ..Config::default() })
        .world(clock.clone(), Arc::new(CountedEntropy::of(n)))
        .start()
        .await
        .unwrap()
}

async fn begin(runtime: &Runtime, program: &Arc<Program>) -> Driven {
    let admission = Admission { tenant: "t".into(), input: "\"in\"".into(), limits: Limits::default(), key: None };
    let Started::New(driven) = runtime.start(program, admission).await.unwrap() else { panic!() };
    driven
}

const WORK: Step = |_, _, event| {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::tool("work", &1),
        Event::ToolReturned(_) => Decision::finish(&"done"),
        other => return Err(Failure::unexpected(&other)),
    })
};

const WORK_LATER: Step = |_, _, event| {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::sleep(30_000),
        Event::TimerFired { .. } => Decision::tool("work", &1),
        Event::ToolReturned(_) => Decision::finish(&"done"),
        other => return Err(Failure::unexpected(&other)),
    })
};

fn limited(step: Step, bench: &Arc<Bench>, most: usize) -> Arc<Program> {
    Arc::new(World::new(step).program().clone().tool(bench.clone()).max_active(most))
}

#[tokio::test(start_paused = true)]
async fn runs_beyond_the_limit_of_their_loop_are_started_and_wait_their_turn() {
    let (store, bench, clock) = (MemoryStore::new(), Bench::new(), Arc::default());
    let program = limited(WORK, &bench, 2);
    let runtime = worker(&store, &program, &clock, 1, false).await;
    let began = tokio::time::Instant::now();
    let mut driven = Vec::new();
    for _ in 0..5 {
        driven.push(begin(&runtime, &program).await);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(began.elapsed() < Duration::from_secs(1), "a start waits for nobody");
    let runs: Vec<RunId> = driven.iter().map(|one| one.run).collect();
    for one in driven {
        assert!(matches!(one.wait().await, RunEnd::Ended(_)));
    }
    assert_eq!(bench.busiest.load(Ordering::SeqCst), 2);
    assert_eq!(*bench.order.lock().unwrap(), runs, "first come, first served");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_gives_those_back_that_wait_for_their_turn() {
    let (store, bench, clock) = (MemoryStore::new(), Bench::new(), Arc::default());
    let program = limited(WORK, &bench, 1);
    let first = worker(&store, &program, &clock, 1, false).await;
    let _one = begin(&first, &program).await;
    let two = begin(&first, &program).await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    let asked = tokio::time::Instant::now();
    first.shutdown().await;
    assert!(asked.elapsed() <= Duration::from_secs(5));
    assert_eq!(two.clone().wait().await, RunEnd::Released);
    let row = store.run(two.run).await.unwrap().unwrap();
    assert_eq!((row.status, row.worker), (RunStatus::Running, None));
    let second = worker(&store, &program, &clock, 2, true).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(second.ended(two.run).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn due_runs_of_a_full_loop_stay_in_the_store_for_others() {
    let (store, clock) = (MemoryStore::new(), Arc::default());
    let program = limited(WORK_LATER, &Bench::new(), 9);
    let starter = worker(&store, &program, &clock, 1, false).await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        let driven = begin(&starter, &program).await;
        runs.push(driven.run);
        assert!(matches!(driven.wait().await, RunEnd::Suspended(_)));
    }
    starter.shutdown().await;
    tokio::time::advance(Duration::from_secs(31)).await;
    let benches = [Bench::new(), Bench::new()];
    let programs = benches.each_ref().map(|bench| limited(WORK_LATER, bench, 2));
    let one = worker(&store, &programs[0], &clock, 2, true).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let other = worker(&store, &programs[1], &clock, 3, true).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let inside = benches.each_ref().map(|bench| bench.inside.load(Ordering::SeqCst));
    assert_eq!(inside, [2, 2]);
    tokio::time::sleep(Duration::from_secs(30)).await;
    for run in runs {
        assert!(one.ended(run).await.unwrap().is_some());
    }
    assert_eq!(benches.each_ref().map(|bench| bench.busiest.load(Ordering::SeqCst)), [2, 2]);
    drop(other);
}
