//! The crash matrix over the in-memory store: a reference Run dies before and after every one of its
//! commits, is taken over, and is driven to its end. The table says what ran again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use expect_test::{Expect, expect};
use loopd_kernel::question::{Ask, QuestionEnd};
use loopd_kernel::{Cx, Decision, EffectClass, Event, Failure};
use loopd_runtime::RunEnd;
use loopd_store::InboxBody;
use std::fmt::Write as _;
use world::dying::Death;
use world::{Step, World, show_end};

/// Runs the matrix and compares its table. `calls` of the table are counted over both processes.
async fn check(step: Step, prepare: fn(World) -> World, expect: Expect) {
    let mut table = String::new();
    for death in [Death::Before, Death::After] {
        for cut in 1.. {
            let mut world = prepare(World::new(step)).dying(cut, death);
            let first = world.try_run().await;
            let died = world.is_dead();
            let mut asked = 0;
            let end = if died {
                world = world.take_over().await;
                if world.started().await { finish(&world, &mut asked).await } else { "never started".into() }
            } else {
                show_end(&first.unwrap())
            };
            let calls = world.all_calls();
            assert!(world.calls("pay") <= 1, "cut {cut} {death:?}: a Once effect happened twice");
            if !died {
                break;
            }
            writeln!(table, "{death:?} {cut}: {calls} asked={asked} {end}").unwrap();
            world.verify().await;
        }
    }
    expect.assert_eq(&table);
}

/// Drives to the end; whoever is asked what became of a payment looks at the ledger and says so.
async fn finish(world: &World, asked: &mut u32) -> String {
    loop {
        match world.resume().await {
            RunEnd::Suspended(waits) if !waits.questions.is_empty() => {
                // What was sent may still land: nobody says before that it did not.
                tokio::time::advance(std::time::Duration::from_secs(2 * 3600)).await;
                for open in &waits.questions {
                    *asked += 1;
                    let value = match (&open.ask, world.calls("pay")) {
                        (Ask::Resolve { .. }, 0) => r#"{"call":"retry"}"#.to_owned(),
                        (Ask::Resolve { .. }, _) => r#"{"call":"landed","output":"\"paid\""}"#.to_owned(),
                        _ => "true".to_owned(),
                    };
                    let end = QuestionEnd::Answered;
                    let body = InboxBody::Answer { question: open.id, end, actor: "ann".into(), value };
                    world.tell(&format!("answer-{}", open.id), body).await;
                }
            }
            RunEnd::Suspended(_) => tokio::time::advance(std::time::Duration::from_secs(3600)).await,
            end => return show_end(&end),
        }
    }
}

fn pay_step(_: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::tool("look", &"A17"),
        Event::ToolReturned(r) if r.tool == "look" => Decision::tool("pay", &42),
        Event::ToolReturned(r) => {
            state.push(r.tool);
            Decision::finish(state)
        }
        other => return Err(Failure::unexpected(&other)),
    })
}

#[tokio::test(start_paused = true)]
async fn look_then_pay() {
    let prepare = |world: World| world.tool("look", EffectClass::Read).tool("pay", EffectClass::Once);
    check(
        pay_step,
        prepare,
        expect![[r#"
        Before 1: look=0 pay=0 asked=0 never started
        Before 2: look=1 pay=1 asked=0 Ended Completed {"output":"[\"pay\"]"}
        Before 3: look=2 pay=1 asked=0 Ended Completed {"output":"[\"pay\"]"}
        Before 4: look=1 pay=1 asked=1 Ended Completed {"output":"[\"pay\"]"}
        After 1: look=1 pay=1 asked=0 Ended Completed {"output":"[\"pay\"]"}
        After 2: look=1 pay=1 asked=0 Ended Completed {"output":"[\"pay\"]"}
        After 3: look=1 pay=1 asked=1 Ended Completed {"output":"[\"pay\"]"}
        After 4: look=1 pay=1 asked=0 Ended Completed {"output":"[\"pay\"]"}
    "#]],
    )
    .await;
}

fn parallel_step(_: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => {
            Decision::none().and_tool("pay", &42).and_tool("look", &1).and_tool("look", &2)
        }
        Event::ToolReturned(r) => {
            state.push(r.tool);
            Decision::none()
        }
        Event::IterationStarted { .. } => {
            state.sort();
            Decision::finish(state)
        }
        other => return Err(Failure::unexpected(&other)),
    })
}

#[tokio::test(start_paused = true)]
async fn a_batch_with_one_payment() {
    let prepare =
        |world: World| world.tool_taking("look", EffectClass::Read, 20).tool_taking("pay", EffectClass::Once, 10);
    check(
        parallel_step,
        prepare,
        expect![[r#"
        Before 1: look=0 pay=0 asked=0 never started
        Before 2: look=2 pay=1 asked=0 Ended Completed {"output":"[\"look\",\"look\",\"pay\"]"}
        Before 3: look=4 pay=1 asked=1 Ended Completed {"output":"[\"look\",\"look\",\"pay\"]"}
        Before 4: look=4 pay=1 asked=0 Ended Completed {"output":"[\"look\",\"look\",\"pay\"]"}
        Before 5: look=3 pay=1 asked=0 Ended Completed {"output":"[\"look\",\"look\",\"pay\"]"}
        After 1: look=2 pay=1 asked=0 Ended Completed {"output":"[\"look\",\"look\",\"pay\"]"}
        After 2: look=2 pay=1 asked=1 Ended Completed {"output":"[\"look\",\"look\",\"pay\"]"}
        After 3: look=4 pay=1 asked=0 Ended Completed {"output":"[\"look\",\"look\",\"pay\"]"}
        After 4: look=3 pay=1 asked=0 Ended Completed {"output":"[\"look\",\"look\",\"pay\"]"}
        After 5: look=2 pay=1 asked=0 Ended Completed {"output":"[\"look\",\"look\",\"pay\"]"}
    "#]],
    )
    .await;
}

fn person_step(_: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => Decision::sleep(1_000),
        Event::TimerFired { .. } => Decision::confirm("pay?"),
        Event::Answered { value, .. } if value == "true" => Decision::tool("pay", &42),
        Event::ToolReturned(r) => {
            state.push(r.tool);
            Decision::finish(state)
        }
        other => return Err(Failure::unexpected(&other)),
    })
}

#[tokio::test(start_paused = true)]
async fn a_timer_a_person_and_a_payment() {
    let prepare = |world: World| world.tool("pay", EffectClass::Once);
    check(
        person_step,
        prepare,
        expect![[r#"
        Before 1: pay=0 asked=0 never started
        Before 2: pay=1 asked=1 Ended Completed {"output":"[\"pay\"]"}
        Before 3: pay=1 asked=1 Ended Completed {"output":"[\"pay\"]"}
        Before 4: pay=1 asked=1 Ended Completed {"output":"[\"pay\"]"}
        Before 5: pay=1 asked=0 Ended Completed {"output":"[\"pay\"]"}
        Before 6: pay=1 asked=1 Ended Completed {"output":"[\"pay\"]"}
        After 1: pay=1 asked=1 Ended Completed {"output":"[\"pay\"]"}
        After 2: pay=1 asked=1 Ended Completed {"output":"[\"pay\"]"}
        After 3: pay=1 asked=1 Ended Completed {"output":"[\"pay\"]"}
        After 4: pay=1 asked=0 Ended Completed {"output":"[\"pay\"]"}
        After 5: pay=1 asked=1 Ended Completed {"output":"[\"pay\"]"}
        After 6: pay=1 asked=0 Ended Completed {"output":"[\"pay\"]"}
    "#]],
    )
    .await;
}

fn model_step(_: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::model(loopd_kernel::model::ModelCall::transcript("scripted")),
        Event::ModelReplied { reply, .. } => {
            state.push(reply.joined_text());
            if state.len() == 1 { Decision::tool("pay", &42) } else { Decision::finish(state) }
        }
        Event::ToolReturned(_) => Decision::none(),
        other => return Err(Failure::unexpected(&other)),
    })
}

#[tokio::test(start_paused = true)]
async fn a_model_decides_and_a_lost_model_call_is_sent_again_and_charged() {
    let prepare = |world: World| world.tool("pay", EffectClass::Once).scripted_model("scripted");
    check(
        model_step,
        prepare,
        expect![[r#"
        Before 1: model=0 pay=0 asked=0 never started
        Before 2: model=2 pay=1 asked=0 Ended Completed {"output":"[\"turn 0\",\"turn 1\"]"}
        Before 3: model=3 pay=1 asked=0 Ended Completed {"output":"[\"turn 0\",\"turn 1\"]"}
        Before 4: model=2 pay=1 asked=1 Ended Completed {"output":"[\"turn 0\",\"turn 1\"]"}
        Before 5: model=3 pay=1 asked=0 Ended Completed {"output":"[\"turn 0\",\"turn 1\"]"}
        After 1: model=2 pay=1 asked=0 Ended Completed {"output":"[\"turn 0\",\"turn 1\"]"}
        After 2: model=2 pay=1 asked=0 Ended Completed {"output":"[\"turn 0\",\"turn 1\"]"}
        After 3: model=2 pay=1 asked=1 Ended Completed {"output":"[\"turn 0\",\"turn 1\"]"}
        After 4: model=2 pay=1 asked=0 Ended Completed {"output":"[\"turn 0\",\"turn 1\"]"}
        After 5: model=2 pay=1 asked=0 Ended Completed {"output":"[\"turn 0\",\"turn 1\"]"}
    "#]],
    )
    .await;
}
