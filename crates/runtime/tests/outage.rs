//! A store that is out of reach for a minute loses nothing and asks nobody.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use loopd_kernel::machine::Admission;
use loopd_kernel::{Decision, EffectClass, Event, Failure, Limits};
use loopd_runtime::*;
use loopd_store::MemoryStore;
use loopd_store::memory::Fault;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use world::port::Port;
use world::{CountedEntropy, VirtualClock, World, show_end};

fn pay() -> World {
    let world = World::new(|_, _, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::tool("pay", &42),
            Event::ToolReturned(r) => Decision::finish(&r.output),
            other => return Err(Failure::unexpected(&other)),
        })
    });
    world.tool_taking("pay", EffectClass::Once, 5_000)
}

const PAID: &str = r#"Ended Completed {"output":"\"pay(42) #1\""}"#;

#[tokio::test(start_paused = true)]
async fn a_result_that_came_while_no_commit_was_taken_is_settled_by_the_commit_that_is() {
    let began = tokio::time::Instant::now();
    let out = move |_: &_| (3..63).contains(&began.elapsed().as_secs()).then_some(Fault::Unavailable);
    let world = pay().faulty(out);
    let end = world.run().await;
    assert_eq!((show_end(&end).as_str(), world.calls("pay")), (PAID, 1));
    assert!((63..65).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    world.verify().await;
}

/// A worker, and the switch that cuts it off.
async fn begin(world: &World, config: Config) -> (Runtime, Driven, Arc<std::sync::atomic::AtomicBool>) {
    let port = Port::new(MemoryStore::new());
    let cut = port.cut.clone();
    let program = Arc::new(world.program().clone());
    let runtime = Runtime::builder(Arc::new(port), Arc::new(FixedPrograms::new([program.clone()])))
        .config(config)
        .world(Arc::new(VirtualClock::default()), Arc::new(CountedEntropy::default()))
        .start()
        .await
        .unwrap();
    let admission = Admission { tenant: "t".into(), input: "\"in\"".into(), limits: Limits::default(), key: None };
    let Started::New(driven) = runtime.start(&Arc::new(world.program().clone()), admission).await.unwrap() else {
        panic!()
    };
    (runtime, driven, cut)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_while_the_store_answers_nothing_at_all() {
    let world = pay();
    let (runtime, driven, cut) = begin(&world, Config::default()).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    cut.store(true, Ordering::SeqCst);
    // Somebody tells the worker to look into the inbox meanwhile.
    let told = runtime.tell(driven.run, "x", loopd_store::InboxBody::Signal { name: "x".into(), body: "1".into() });
    assert!(told.await.is_err(), "a reader of its own hears at once that the store does not answer");
    tokio::time::sleep(Duration::from_secs(60)).await;
    cut.store(false, Ordering::SeqCst);
    let back = tokio::time::Instant::now();
    assert_eq!((show_end(&driven.wait().await).as_str(), world.calls("pay")), (PAID, 1));
    assert!(back.elapsed() <= Duration::from_secs(10), "{:?}", back.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_waits_for_the_store_no_longer_than_the_grace_time() {
    let world = pay();
    let (runtime, driven, cut) = begin(&world, Config::default()).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    cut.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let asked = tokio::time::Instant::now();
    runtime.shutdown().await;
    assert!(asked.elapsed() <= Duration::from_secs(12), "{:?}", asked.elapsed());
    assert!(matches!(driven.wait().await, RunEnd::Lost(DriveError::Store(_))));
}

#[tokio::test(start_paused = true)]
async fn whoever_starts_a_run_hears_soon_that_the_store_does_not_answer() {
    let world = pay();
    let (runtime, _driven, cut) = begin(&world, Config::default()).await;
    cut.store(true, Ordering::SeqCst);
    let asked = tokio::time::Instant::now();
    let admission = Admission { tenant: "t".into(), input: "\"in\"".into(), limits: Limits::default(), key: None };
    let started = runtime.start(&Arc::new(world.program().clone()), admission).await;
    assert!(matches!(started, Err(StartError::Commit(_))), "{started:?}");
    assert!(asked.elapsed() <= Duration::from_secs(5), "{:?}", asked.elapsed());
}
