//! What came in time goes before what is due, however much came before it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use loopd_kernel::question::{Ask, QuestionEnd};
use loopd_kernel::{Action, Cx, Decision, Event, Failure, QuestionId};
use loopd_runtime::RunEnd;
use loopd_store::InboxBody;
use std::time::Duration;
use world::{Step, World, show_end};

/// More than one read of the inbox brings.
const MANY: u32 = 200;

fn asks(_: &Cx, _: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    let ask = Ask::Confirm { prompt: "go on?".into(), expires_in_ms: Some(60_000) };
    Ok(match event {
        Event::IterationStarted { .. } => Decision::none().and(Action::Ask(ask)),
        Event::Answered { end, .. } => Decision::finish(&format!("{end:?}")),
        _ => Decision::none(),
    })
}

fn waits(_: &Cx, _: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => {
            Decision::none().and(Action::Wait { signals: vec!["go".into()], timeout_ms: Some(60_000) })
        }
        Event::SignalReceived { name, .. } if name == "go" => Decision::finish(&"heard"),
        Event::TimerFired { .. } => Decision::finish(&"timed out"),
        _ => Decision::none(),
    })
}

fn signal(name: &str) -> InboxBody {
    InboxBody::Signal { name: name.into(), body: "1".into() }
}

/// A Run that waits hears `last` only after its time is over, behind many signals or none.
async fn check(step: Step, last: InboxBody, expect: &str) {
    for before in [0, 1, 63, 64, 65, MANY] {
        let world = World::new(step);
        let RunEnd::Suspended(_) = world.run().await else { panic!("it should wait") };
        for n in 0..before {
            world.tell(&format!("other-{n}"), signal("other")).await;
        }
        world.tell("last", last.clone()).await;
        tokio::time::advance(Duration::from_secs(120)).await;
        assert_eq!(show_end(&world.resume().await), expect, "behind {before}");
        world.verify().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_the_inbox_goes_before_the_expiry_of_its_question() {
    let (question, end) = (QuestionId(1), QuestionEnd::Answered);
    let answer = InboxBody::Answer { question, end, actor: "ann".into(), value: "true".into() };
    check(asks, answer, r#"Ended Completed {"output":"\"Answered\""}"#).await;
}

#[tokio::test(start_paused = true)]
async fn a_signal_in_the_inbox_goes_before_the_end_of_the_wait_for_it() {
    check(waits, signal("go"), r#"Ended Completed {"output":"\"heard\""}"#).await;
}

#[tokio::test(start_paused = true)]
async fn without_it_the_time_is_over_all_the_same() {
    check(asks, signal("other"), r#"Ended Completed {"output":"\"TimedOut\""}"#).await;
    check(waits, signal("other"), r#"Ended Completed {"output":"\"timed out\""}"#).await;
}
