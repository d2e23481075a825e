//! What a worker has heard and cannot use now is kept, and what it may not do any more is not done. Each was found by
//! the simulation.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use loopd_kernel::budget::Limits;
use loopd_kernel::machine::Admission;
use loopd_kernel::{Decision, EffectClass, Event, Failure};
use loopd_runtime::{Clock, Config, FixedPrograms, RunEnd, Runtime, Started};
use loopd_store::{Claim, InboxBody, MemoryStore, RunStatus, Store, WorkerId};
use std::sync::Arc;
use std::time::Duration;
use world::port::Port;
use world::{CountedEntropy, Step, VirtualClock, World, panics, set_panics, show_end};

#[tokio::test(start_paused = true)]
async fn what_was_read_before_a_run_was_parked_is_heard_once_it_is_reopened() {
    let step: Step = |_, state, event| {
        Ok(match event {
            Event::IterationStarted { .. } if state.len() < 2 => Decision::wait("go"),
            Event::IterationStarted { .. } => Decision::finish(state),
            Event::SignalReceived { body, .. } => {
                assert!(!panics(), "as scripted");
                state.push(body);
                Decision::none()
            }
            other => return Err(Failure::unexpected(&other)),
        })
    };
    let world = World::new(step);
    world.run().await;
    for body in ["first", "second"] {
        world.tell(body, InboxBody::Signal { name: "go".into(), body: body.into() }).await;
    }
    set_panics(true);
    // Both are read at once; over the first one the Run is parked.
    let RunEnd::Ended(parked) = world.resume().await else { panic!() };
    assert_eq!(parked.name(), "Interrupted");
    set_panics(false);
    world.tell("reopen", InboxBody::Reopen { actor: "ann".into(), raise: Limits::default() }).await;
    let end = world.resume().await;
    assert_eq!(show_end(&end), r#"Ended Completed {"output":"[\"first\",\"second\"]"}"#);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_time_was_over_before_its_intent_was_acknowledged_is_not_sent() {
    let step: Step = |_, _, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::tool("pay", &42),
            Event::CallFailed { failure, .. } => Decision::finish(&failure.code),
            other => return Err(Failure::unexpected(&other)),
        })
    };
    let world = World::new(step).tool("pay", EffectClass::Once);
    let program = Arc::new(world.program().clone());
    // The second commit holds the intent. Its answer comes within the dispatch window and after the Call's deadline.
    let port = Port::new(MemoryStore::new()).answering_late(2, Duration::from_secs(3));
    let runtime = Runtime::builder(Arc::new(port), Arc::new(FixedPrograms::new([program.clone()])))
        .config(Config { claims: false, ..Config::default() })
        .world(Arc::new(VirtualClock::default()), Arc::new(CountedEntropy::default()))
        .start()
        .await
        .unwrap();
    let limits = Limits { wall_ms: Some(2_000), ..Limits::default() };
    let admission = Admission { tenant: "default".into(), input: "\"in\"".into(), limits, key: None };
    let Started::New(driven) = runtime.start(&program, admission).await.unwrap() else { panic!() };
    let end = driven.wait().await;
    assert_eq!(world.calls("pay"), 0, "sent after its deadline");
    assert_eq!(show_end(&end), r#"Ended Completed {"output":"\"call.too_late\""}"#);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_was_held_up_does_not_shorten_the_lease() {
    let step: Step = |_, _, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::wait("go"),
            Event::SignalReceived { .. } => Decision::tool("pay", &42),
            other => return Err(Failure::unexpected(&other)),
        })
    };
    let program = Arc::new(World::new(step).tool_taking("pay", EffectClass::Once, 600_000).program().clone());
    let (store, clock) = (MemoryStore::new(), Arc::new(VirtualClock::default()));
    let port = Port::new(store.clone());
    // The second one hangs for twenty seconds, and so do those from the fourth on, which would mend what it left.
    let slow = Duration::from_secs(20);
    *port.slow_beats.lock().unwrap() = [Duration::ZERO, slow, Duration::ZERO, slow, slow, slow].into();
    let runtime = Runtime::builder(Arc::new(port), Arc::new(FixedPrograms::new([program.clone()])))
        .world(clock.clone(), Arc::new(CountedEntropy::default()))
        .start()
        .await
        .unwrap();
    let admission =
        Admission { tenant: "default".into(), input: "\"in\"".into(), limits: Limits::default(), key: None };
    let Started::New(driven) = runtime.start(&program, admission).await.unwrap() else { panic!() };
    let run = driven.run;
    driven.wait().await;
    tokio::time::sleep(Duration::from_secs(22)).await;
    // Its lease has lapsed: it renews it before it claims the Run that this wakes.
    runtime.tell(run, "go", InboxBody::Signal { name: "go".into(), body: String::new() }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(store.run(run).await.unwrap().unwrap().status, RunStatus::Running);
    let claim = Claim { worker: WorkerId(7), now: clock.now(), loops: Vec::new(), limit: 1, only: None };
    assert_eq!(store.claim(claim).await.unwrap(), [], "it was promised more time");
}
