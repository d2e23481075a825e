//! A target that removes doubles by a key: what a crash may send again, and until when.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use loopd_kernel::question::Ask;
use loopd_kernel::{Cx, Decision, Event, Failure};
use loopd_runtime::{RunEnd, ToolError, keyed_tool_fn};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use world::World;
use world::dying::Death;

/// A target: how often it was asked, and which effects it has had.
#[derive(Default)]
struct Target {
    asked: u32,
    effects: BTreeSet<String>,
    silent: u32,
}

fn step(_: &Cx, _: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::tool("charge", &42),
        Event::ToolReturned(r) => Decision::finish(&r.output),
        other => return Err(Failure::unexpected(&other)),
    })
}

/// A world with the keyed tool `charge`; the first `silent` attempts have their effect and no answer.
fn world(silent: u32, dedup_for: Duration) -> (World, Arc<Mutex<Target>>) {
    let target = Arc::new(Mutex::new(Target { silent, ..Target::default() }));
    let inside = target.clone();
    let charge = keyed_tool_fn("charge", "Charges.", dedup_for, move |cents: u64, key| {
        let inside = inside.clone();
        async move {
            let mut target = inside.lock().unwrap();
            target.asked += 1;
            target.effects.insert(key.0.text());
            if target.asked <= target.silent {
                return Err(ToolError::in_doubt("net.cut", "the connection broke"));
            }
            Ok(format!("charged {cents}"))
        }
    });
    (World::new(step).with_tool(Arc::new(charge)), target)
}

fn check(target: &Mutex<Target>, asked: u32) {
    let target = target.lock().unwrap();
    assert_eq!((target.asked, target.effects.len()), (asked, 1), "asked, effects");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_with_the_call_open_sends_it_again_with_the_same_key() {
    for death in [Death::Before, Death::After] {
        let (world, target) = world(0, Duration::from_secs(3600));
        // Commit 3 settles the call: before it, the effect has happened and nobody knows.
        let world = world.dying(3, death);
        let _ = world.try_run().await;
        let world = world.take_over().await;
        assert!(world.started().await);
        assert!(matches!(world.resume().await, RunEnd::Ended(_)), "{death:?}");
        check(&target, if death == Death::Before { 2 } else { 1 });
        world.verify().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_doubt_is_asked_for_again_and_three_are_enough() {
    let (world, target) = world(1, Duration::from_secs(3600));
    assert!(matches!(world.run().await, RunEnd::Ended(_)));
    check(&target, 2);
    let (world, target) = self::world(9, Duration::from_secs(3600));
    let RunEnd::Suspended(waits) = world.run().await else { panic!() };
    assert!(matches!(waits.questions[0].ask, Ask::Resolve { .. }));
    check(&target, 3);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_the_target_may_have_forgotten_is_never_sent_again() {
    let (world, target) = world(0, Duration::from_secs(30));
    let world = world.dying(3, Death::Before);
    let _ = world.try_run().await;
    // Taking over waits for the lease; by then the key is older than the target promised.
    let world = world.take_over().await;
    assert!(world.started().await);
    let RunEnd::Suspended(waits) = world.resume().await else { panic!() };
    assert!(matches!(waits.questions[0].ask, Ask::Resolve { .. }));
    check(&target, 1);
}
