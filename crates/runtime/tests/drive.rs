//! Driving Runs over the in-memory store, in virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use expect_test::expect;
use loopd_kernel::budget::Limits;
use loopd_kernel::question::QuestionEnd;
use loopd_kernel::{Decision, EffectClass, Event, Failure, QuestionId};
use loopd_runtime::{Config, RunEnd};
use loopd_store::InboxBody;
use world::{World, show_end};

#[tokio::test(start_paused = true)]
async fn a_run_calls_its_tools_and_completes() {
    let world = World::new(|_, state, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::tool("price", &"A17"),
            Event::ToolReturned(r) if r.tool == "price" => {
                state.push(r.output);
                Decision::tool("refund", &state)
            }
            Event::ToolReturned(r) => Decision::finish(&r.output),
            other => return Err(Failure::unexpected(&other)),
        })
    })
    .tool("price", EffectClass::Read)
    .tool("refund", EffectClass::Once);
    let end = world.run().await;
    expect![[r#"Ended Completed {"output":"\"refund([\\\"price(\\\\\\\"A17\\\\\\\") #1\\\"]) #1\""}"#]]
        .assert_eq(&show_end(&end));
    expect![[r#"
        1 started
        2 iteration_started
        3 decided
        4 intended
        5 settled
        6 decided
        7 intended
        8 settled
        9 decided
        10 ended
    "#]]
    .assert_eq(&world.journal().await);
    assert_eq!(world.calls("refund"), 1);
}

#[tokio::test(start_paused = true)]
async fn parallel_calls_settle_in_recorded_order_and_the_next_iteration_waits_for_all() {
    let world = World::new(|_, state, event| {
        Ok(match event {
            Event::IterationStarted { iteration: 1 } => {
                Decision::none().and_tool("a", &1).and_tool("b", &2).and_tool("c", &3)
            }
            Event::ToolReturned(r) => {
                state.push(r.tool);
                Decision::none()
            }
            _ => Decision::finish(state),
        })
    })
    .tool_taking("a", EffectClass::Read, 30)
    .tool_taking("b", EffectClass::Read, 10)
    .tool_taking("c", EffectClass::Read, 20);
    expect![[r#"Ended Completed {"output":"[\"b\",\"c\",\"a\"]"}"#]].assert_eq(&show_end(&world.run().await));
}

#[tokio::test(start_paused = true)]
async fn a_question_suspends_the_run_and_an_answer_from_elsewhere_moves_it() {
    let world = World::new(|_, _, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::confirm("refund 42?"),
            Event::Answered { value, end: QuestionEnd::Answered, .. } => Decision::finish(&value),
            other => return Err(Failure::unexpected(&other)),
        })
    });
    let end = world.run().await;
    let RunEnd::Suspended(waits) = &end else { panic!("{end:?}") };
    assert_eq!(waits.questions.len(), 1);
    let answer = |value: &str| InboxBody::Answer {
        question: QuestionId(1),
        end: QuestionEnd::Answered,
        actor: "ann".into(),
        value: value.into(),
    };
    world.tell("a1", answer("perhaps")).await;
    assert!(matches!(world.resume().await, RunEnd::Suspended(_)), "an answer that does not fit changes nothing");
    world.tell("a2", answer("true")).await;
    world.tell("a2", answer("false")).await;
    expect![[r#"Ended Completed {"output":"\"true\""}"#]].assert_eq(&show_end(&world.resume().await));
}

#[tokio::test(start_paused = true)]
async fn sleep_and_signal_waits_are_rows_until_they_are_due() {
    let world = World::new(|_, state, event| {
        Ok(match event {
            Event::IterationStarted { iteration: 1 } => Decision::sleep(60_000),
            Event::IterationStarted { .. } => Decision::wait("go"),
            Event::TimerFired { timer } => {
                state.push(timer.to_string());
                Decision::none()
            }
            Event::SignalReceived { name, body } if name == "go" => {
                state.push(body);
                Decision::finish(state)
            }
            Event::SignalReceived { .. } => Decision::none(),
            other => return Err(Failure::unexpected(&other)),
        })
    });
    assert!(matches!(world.run().await, RunEnd::Suspended(_)));
    assert!(matches!(world.resume().await, RunEnd::Suspended(_)), "not due yet");
    tokio::time::advance(std::time::Duration::from_secs(61)).await;
    assert!(matches!(world.resume().await, RunEnd::Suspended(_)), "now it waits for the signal");
    let signal = |name: &str| InboxBody::Signal { name: name.into(), body: "\"now\"".into() };
    world.tell("s1", signal("other")).await;
    assert!(matches!(world.resume().await, RunEnd::Suspended(_)));
    world.tell("s2", signal("go")).await;
    expect![[r#"Ended Completed {"output":"[\"timer-1\",\"\\\"now\\\"\"]"}"#]]
        .assert_eq(&show_end(&world.resume().await));
}

#[tokio::test(start_paused = true)]
async fn limits_park_a_run_and_raising_them_goes_on() {
    let world = World::new(|cx, _, event| {
        Ok(match event {
            Event::IterationStarted { iteration: 5 } => Decision::finish(&cx.iteration),
            Event::IterationStarted { .. } => Decision::tool("look", &cx.iteration),
            _ => Decision::none(),
        })
    })
    .tool("look", EffectClass::Read)
    .limits(Limits { iterations: Some(3), ..Limits::default() });
    expect![[r#"Ended BudgetExceeded {"breach":{"dimension":"iterations","limit":3,"needed":1,"used":3}}"#]]
        .assert_eq(&show_end(&world.run().await));
    let raise = Limits { iterations: Some(9), ..Limits::default() };
    world.tell("r1", InboxBody::Reopen { actor: "ann".into(), raise }).await;
    expect![[r#"Ended Completed {"output":"5"}"#]].assert_eq(&show_end(&world.resume().await));
    assert_eq!(world.calls("look"), 4);
}

#[tokio::test(start_paused = true)]
async fn a_panicking_transition_parks_the_run_and_loses_no_result() {
    let world = World::new(|_, _, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::tool("refund", &42),
            Event::ToolReturned(r) if world::panics() => panic!("no idea what {} is", r.output),
            Event::ToolReturned(r) => Decision::finish(&r.output),
            other => return Err(Failure::unexpected(&other)),
        })
    })
    .tool("refund", EffectClass::Once);
    world::set_panics(true);
    expect![[r#"Ended Interrupted {"interrupt":{"by":"poisoned","reason":"a transition panicked: no idea what refund(42) #1 is"}}"#]]
        .assert_eq(&show_end(&world.run().await));
    world::set_panics(false);
    world.tell("r1", InboxBody::Reopen { actor: "ann".into(), raise: Limits::default() }).await;
    expect![[r#"Ended Completed {"output":"\"refund(42) #1\""}"#]].assert_eq(&show_end(&world.resume().await));
    assert_eq!(world.calls("refund"), 1);
}

#[tokio::test(start_paused = true)]
async fn cancelling_cuts_what_may_be_cut_and_waits_for_what_may_not() {
    let world = World::new(|_, _, _| Ok(Decision::none().and_tool("read", &1).and_tool("pay", &2)))
        .tool_taking("read", EffectClass::Read, 1_000_000)
        .tool_taking("pay", EffectClass::Once, 1_000);
    let driven = world.start().await;
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    world.tell("c1", InboxBody::Cancel { actor: "ann".into(), reason: "enough".into() }).await;
    expect![[r#"Ended Interrupted {"interrupt":{"actor":"ann","by":"cancelled","reason":"enough"}}"#]]
        .assert_eq(&show_end(&driven.wait().await));
    expect![[r#"
        1 started
        2 iteration_started
        3 decided
        4 intended
        5 intended
        6 cancel_requested
        7 settled
        8 settled
        9 ended
    "#]]
    .assert_eq(&world.journal().await);
}

#[tokio::test(start_paused = true)]
async fn a_drained_worker_releases_the_run_and_the_next_one_goes_on() {
    let world = World::new(|_, _, event| {
        Ok(match event {
            Event::IterationStarted { iteration: 4 } => Decision::finish(&"done"),
            Event::IterationStarted { iteration } => Decision::tool("pay", &iteration),
            _ => Decision::none(),
        })
    })
    .tool_taking("pay", EffectClass::Once, 100);
    let driven = world.start().await;
    tokio::time::sleep(std::time::Duration::from_millis(150)).await;
    let waiting = tokio::spawn(driven.wait());
    world.shutdown().await;
    assert_eq!(waiting.await.unwrap(), RunEnd::Released);
    assert_eq!(world.calls("pay"), 2, "the call in flight settles, no new one starts");
    let world = world.restart(Config::default()).await;
    expect![[r#"Ended Completed {"output":"\"done\""}"#]].assert_eq(&show_end(&world.resume().await));
    assert_eq!(world.calls("pay"), 3);
}
