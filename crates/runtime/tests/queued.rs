//! What waits for a Run is not lost by what comes before it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use loopd_kernel::budget::Limits;
use loopd_kernel::{Cx, Decision, Event, Failure};
use loopd_runtime::RunEnd;
use loopd_store::InboxBody;
use world::{World, show_end};

fn two_signals(_: &Cx, heard: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::SignalReceived { name, .. } => {
            heard.push(name);
            if heard.len() == 2 { Decision::finish(heard) } else { Decision::none() }
        }
        _ if heard.is_empty() => Decision::wait("first"),
        _ => Decision::wait("second"),
    })
}

/// The first signal starts an iteration that the limit forbids, so the Run is parked with the second one in hand.
#[tokio::test(start_paused = true)]
async fn a_signal_behind_the_one_that_parked_the_run_is_heard_when_it_goes_on() {
    let world = World::new(two_signals).limits(Limits { iterations: Some(1), ..Limits::default() });
    let RunEnd::Suspended(_) = world.try_start_and_wait().await.unwrap() else { panic!("it should wait") };
    for name in ["first", "second"] {
        world.tell(name, InboxBody::Signal { name: name.into(), body: "1".into() }).await;
    }
    assert!(show_end(&world.resume().await).contains("BudgetExceeded"));
    let raise = Limits { iterations: Some(9), ..Limits::default() };
    world.tell("raise", InboxBody::Reopen { actor: "ann".into(), raise }).await;
    assert_eq!(show_end(&world.resume().await), r#"Ended Completed {"output":"[\"first\",\"second\"]"}"#);
}
