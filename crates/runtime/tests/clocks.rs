//! Neither a wall clock that is set nor a machine that sleeps gives a Call more time than it has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use loopd_kernel::machine::{Admission, ToolTerms};
use loopd_kernel::model::ToolOffer;
use loopd_kernel::record::{Record, Setback};
use loopd_kernel::{Decision, EffectClass, Event, Failure, Limits, Seq};
use loopd_runtime::*;
use loopd_store::{MemoryStore, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use world::port::Port;
use world::turned::Turned;
use world::{CountedEntropy, World, show_end};

/// A tool of class `once` that takes ten minutes and is given one.
struct Slow(ToolOffer, Arc<AtomicU32>);

#[async_trait::async_trait]
impl Tool for Slow {
    fn offer(&self) -> &ToolOffer {
        &self.0
    }

    fn terms(&self) -> ToolTerms {
        ToolTerms { class: EffectClass::Once, timeout_ms: 60_000 }
    }

    async fn call(&self, _: &str, _: &CallContext) -> Result<String, ToolError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(600)).await;
        Ok("1".into())
    }
}

async fn begin(port: Port, world: &World, clock: Arc<Turned>) -> (Runtime, Driven) {
    let program = Arc::new(world.program().clone());
    let runtime = Runtime::builder(Arc::new(port), Arc::new(FixedPrograms::new([program.clone()])))
        .world(clock, Arc::new(CountedEntropy::default()))
        .start()
        .await
        .unwrap();
    let admission = Admission { tenant: "t".into(), input: "\"in\"".into(), limits: Limits::default(), key: None };
    let Started::New(driven) = runtime.start(&program, admission).await.unwrap() else { panic!() };
    (runtime, driven)
}

fn pay() -> World {
    World::new(|_, _, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::tool("pay", &42),
            Event::ToolReturned(r) => Decision::finish(&r.output),
            other => return Err(Failure::unexpected(&other)),
        })
    })
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_during_a_pause_does_not_widen_the_dispatch_window() {
    let world = pay().tool("pay", EffectClass::Once);
    let (store, clock) = (MemoryStore::new(), Turned::new());
    let port = Port::new(store.clone()).answering_late(2, Duration::from_secs(30));
    let (_runtime, driven) = begin(port, &world, clock.clone()).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    clock.wall.fetch_sub(30_000, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(19_900)).await;
    assert_eq!(world.calls("pay"), 0);
    let run = driven.run;
    assert_eq!(show_end(&driven.wait().await), r#"Ended Completed {"output":"\"pay(42) #1\""}"#);
    let entries = store.entries(run, Seq(0), 1_000).await.unwrap();
    let setbacks = entries.iter().filter_map(|entry| match Record::decode(entry.kind, &entry.record).unwrap() {
        Record::Attempted(attempted) => Some(attempted.setback),
        _ => None,
    });
    assert_eq!(
        setbacks.collect::<Vec<_>>(),
        [Setback::NotSent],
        "what was intended before the pause was sent after it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_not_believed_in_for_longer_because_the_clock_was_set_back() {
    let (store, clock) = (MemoryStore::new(), Turned::new());
    let port = Port::new(store.clone());
    let unheard = port.unheard.clone();
    let step = |_: &_, state: &mut Vec<String>, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::tool("look", &1),
            Event::ToolReturned(r) if r.tool == "look" => Decision::tool("pay", &42),
            Event::ToolReturned(_) => Decision::finish(state),
            other => return Err(Failure::unexpected(&other)),
        })
    };
    let world = World::new(step).tool_taking("look", EffectClass::Read, 20_000).tool("pay", EffectClass::Once);
    let (_runtime, _driven) = begin(port, &world, clock.clone()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // No heartbeat arrives any more; the wall clock says that it is early.
    unheard.store(true, Ordering::SeqCst);
    clock.wall.fetch_sub(60_000, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!((world.calls("look"), world.calls("pay")), (1, 0));
    unheard.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(world.calls("pay"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_given_up_within_a_second_after_a_suspend_by_whichever_clock_noticed() {
    const HOUR: i64 = 3_600_000;
    for (wall, steady) in [(HOUR, HOUR), (HOUR, 0), (0, HOUR), (-HOUR, HOUR)] {
        let calls = Arc::new(AtomicU32::new(0));
        let offer = ToolOffer { name: "pay".into(), description: String::new(), parameters: "{}".into() };
        let world = pay().with_tool(Arc::new(Slow(offer, calls.clone())));
        let (store, clock) = (MemoryStore::new(), Turned::new());
        let (_runtime, driven) = begin(Port::new(store.clone()), &world, clock.clone()).await;
        tokio::time::sleep(Duration::from_millis(10_300)).await;
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        clock.wall.fetch_add(wall, Ordering::SeqCst);
        clock.steady.fetch_add(steady, Ordering::SeqCst);
        let woke = tokio::time::Instant::now();
        let end = driven.wait().await;
        assert!(woke.elapsed() <= Duration::from_secs(1), "{:?} for {wall} {steady}", woke.elapsed());
        let RunEnd::Suspended(waits) = end else { panic!("{end:?}") };
        assert_eq!(waits.questions.len(), 1, "nobody knows whether it happened");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_suspend_a_call_has_exactly_its_time() {
    let offer = ToolOffer { name: "pay".into(), description: String::new(), parameters: "{}".into() };
    let world = pay().with_tool(Arc::new(Slow(offer, Arc::default())));
    let (_runtime, driven) = begin(Port::new(MemoryStore::new()), &world, Turned::new()).await;
    let began = tokio::time::Instant::now();
    assert!(matches!(driven.wait().await, RunEnd::Suspended(_)));
    assert_eq!(began.elapsed(), Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_counted_from_the_step_that_named_it() {
    let offer = ToolOffer { name: "pay".into(), description: String::new(), parameters: "{}".into() };
    let world = pay().with_tool(Arc::new(Slow(offer, Arc::default())));
    let clock = Turned::new();
    let port = Port::new(MemoryStore::new()).answering_late(2, Duration::from_secs(2));
    let began = tokio::time::Instant::now();
    let (_runtime, driven) = begin(port, &world, clock.clone()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // It is sent after this, within its window.
    clock.wall.fetch_sub(3_600_000, Ordering::SeqCst);
    assert!(matches!(driven.wait().await, RunEnd::Suspended(_)));
    assert_eq!(began.elapsed(), Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_run_whose_clock_was_set_back_has_no_more_time_than_any_other() {
    let offer = ToolOffer { name: "pay".into(), description: String::new(), parameters: "{}".into() };
    let world = World::new(|_, _, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::tool("look", &1),
            Event::ToolReturned(_) => Decision::tool("pay", &42),
            other => return Err(Failure::unexpected(&other)),
        })
    });
    let world = world.tool_taking("look", EffectClass::Read, 2_000).with_tool(Arc::new(Slow(offer, Arc::default())));
    let clock = Turned::new();
    let began = tokio::time::Instant::now();
    let (_runtime, driven) = begin(Port::new(MemoryStore::new()), &world, clock.clone()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // What follows in the Journal bears the time from before.
    clock.wall.fetch_sub(3_600_000, Ordering::SeqCst);
    assert!(matches!(driven.wait().await, RunEnd::Suspended(_)));
    assert_eq!(began.elapsed(), Duration::from_secs(62));
}
