//! Plans that are none, tasks that fail, and limits.

use crate::{ROUTER, agent, planner, two_tasks};
use expect_test::{Expect, expect};
use loopd_inside::kit::{Agent, World};
use loopd_router::{Config, Router};
use serde_json::{Value, json};

/// The answer, and what each call came to, with a planner and agents that play these turns.
async fn check_with(plan: Value, agents: [(&str, Value); 2], config: Config, expected: Expect) {
    let planner = match plan {
        Value::String(text) => agent("planner", json!([{"say": text}])),
        plan => planner(plan, json!({}), "Summed up."),
    };
    let [finder, writer] = agents.map(|(name, turns)| agent(name, turns));
    let world = World::new([planner, finder, writer]).await;
    let room = world.room().await;
    let _running = world.start(ROUTER, Router::new(config));
    let said = world.say(room, ROUTER, "Where is it?").await;
    let answer = world.answer_of(&said).await;
    let calls = world.calls(room).await;
    let calls = calls.iter().map(|call| {
        let why = call.error.as_ref().map(|error| format!(" ({})", error.code)).unwrap_or_default();
        format!("{} by {}: {}{why}\n", call.effect_key, call.target, call.phase.name())
    });
    expected.assert_eq(&format!("{}{answer}\n", calls.collect::<String>()));
}

async fn check(plan: Value, expected: Expect) {
    let found = json!([{"say": "Found."}]);
    check_with(plan, [("finder", found.clone()), ("writer", found)], Config::default(), expected).await;
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_is_none_is_repaired_once_and_then_somebody_answers() {
    check(
        json!("I would not know."),
        expect![[r#"
        plan by planner: succeeded
        plan/repair by planner: succeeded
        work/1 by finder: succeeded
        Found.
    "#]],
    )
    .await;
    check(
        json!({"kind": "simple", "agent": "nobody"}),
        expect![[r#"
        plan by planner: succeeded
        plan/repair by planner: succeeded
        work/1 by finder: succeeded
        Found.
    "#]],
    )
    .await;
    check(
        json!({"kind": "simple", "agent": "router"}),
        expect![[r#"
        plan by planner: succeeded
        plan/repair by planner: succeeded
        work/1 by finder: succeeded
        Found.
    "#]],
    )
    .await;
    let many: Vec<_> = (0..1000).map(|n| json!({"title": "T", "agent": "finder", "prompt": format!("{n}")})).collect();
    check(
        json!({"kind": "complex", "tasks": many}),
        expect![[r#"
        plan by planner: failed (agent.output_truncated)
        plan/again by planner: failed (agent.output_truncated)
        work/1 by finder: succeeded
        Found.
    "#]],
    )
    .await;
}

/// A plan of two tasks, of which the second comes to what these turns do.
async fn second(turns: Value, config: Config, expected: Expect) {
    check_with(two_tasks(), [("finder", json!([{"say": "Found."}])), ("writer", turns)], config, expected).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_is_repeated_once_and_named() {
    let fails = |error: &str| json!([{"say": "x", "faults": [{"attempt": 1, "error": error}]}]);
    second(
        fails("unauthorised"),
        Config::default(),
        expect![[r#"
        plan by planner: succeeded
        work/1 by finder: succeeded
        work/2 by writer: failed (model.unauthorised)
        work/2/again by writer: failed (model.unauthorised)
        sum by planner: succeeded
        Summed up.

        ---

        Not everything went well:

        - **Right** (writer), twice: unauthorised: (demo model) a fault of the script
    "#]],
    )
    .await;
    second(json!([{"when": {"user_contains": "never"}, "say": "x"}]), Config::default(), expect![[r#"
        plan by planner: succeeded
        work/1 by finder: succeeded
        work/2 by writer: failed (model.rejected)
        work/2/again by writer: failed (model.rejected)
        sum by planner: succeeded
        Summed up.

        ---

        Not everything went well:

        - **Right** (writer), twice: rejected: no turn of the demo script fits: turn 1, step 1, fresh results of [], last user message "right of Where is it?"
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_hangs_is_given_up() {
    let hangs = json!([{"pace": {"delay_ms": 10_000_000}, "say": "late"}]);
    second(
        hangs,
        Config { timeout_s: 60, ..Config::default() },
        expect![[r#"
        plan by planner: succeeded
        work/1 by finder: succeeded
        work/2 by writer: timed_out (call.timed_out)
        work/2/again by writer: timed_out (call.timed_out)
        sum by planner: succeeded
        Summed up.

        ---

        Not everything went well:

        - **Right** (writer), twice: its time was over
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_needs_more_than_its_share_ends_and_is_named() {
    let dear = json!([{"usage": {"input": 10, "output": 100_000}, "say": "dear"}]);
    second(dear, Config { tokens: Some(20_000), ..Config::default() }, expect![[r#"
        plan by planner: succeeded
        work/1 by finder: succeeded
        work/2 by writer: failed (agent.output_truncated)
        work/2/again by writer: failed (agent.output_truncated)
        sum by planner: succeeded
        Summed up.

        ---

        Not everything went well:

        - **Right** (writer), twice: the output limit of 4096 tokens cut the answer; raise spec.model.maxOutputTokens. It began: dear
    "#]]).await;
    second(
        json!([{"say": "x"}]),
        Config { tokens: Some(500), ..Config::default() },
        expect![[r#"
        I have no answer: the budget of this answer is used up.
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn where_nothing_was_found_there_is_no_sum() {
    let fails = json!([{"when": {"user_contains": "never"}, "say": "x"}]);
    check_with(two_tasks(), [("finder", fails.clone()), ("writer", fails)], Config::default(), expect![[r#"
        plan by planner: succeeded
        work/1 by finder: failed (model.rejected)
        work/2 by writer: failed (model.rejected)
        work/1/again by finder: failed (model.rejected)
        work/2/again by writer: failed (model.rejected)
        I have no answer.

        - **Left** (finder), twice: rejected: no turn of the demo script fits: turn 1, step 1, fresh results of [], last user message "left of Where is it?"
        - **Right** (writer), twice: rejected: no turn of the demo script fits: turn 1, step 1, fresh results of [], last user message "right of Where is it?"
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_planner_that_fails_leaves_it_to_the_usual_agent() {
    let world = World::new([
        agent("planner", json!([{"when": {"user_contains": "never"}, "say": "x"}])),
        Agent::says("assistant", "I answer."),
    ])
    .await;
    let room = world.room().await;
    let _running = world.start(ROUTER, Router::default());
    let said = world.say(room, ROUTER, "Where is it?").await;
    assert_eq!(world.answer_of(&said).await, "I answer.");
}

#[tokio::test(start_paused = true)]
async fn without_any_agent_it_says_so() {
    let world = World::new([]).await;
    let room = world.room().await;
    let _running = world.start(ROUTER, Router::default());
    let said = world.say(room, ROUTER, "Where is it?").await;
    assert_eq!(
        world.answer_of(&said).await,
        "I have no answer: there is no agent that I may ask and that takes calls."
    );
    let said = world.say(room, ROUTER, " ").await;
    assert_eq!(world.answer_of(&said).await, "There is nothing in your message that I can read.");
}
