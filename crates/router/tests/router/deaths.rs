//! Killed before and after each of its requests, and with each of them lost: the same is told, and no model is asked
//! twice.

use crate::{ROUTER, agent, planner, two_tasks, usual};
use loopd_inside::kit::{Agent, World, survives};
use loopd_router::Router;
use serde_json::json;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn at_every_request_of_an_answer_in_parts() {
    let story = survives(usual, ROUTER, Router::default, async |world, room| {
        let said = world.say(room, ROUTER, "Where is it?").await;
        assert_eq!(world.answer_of(&said).await, "Both: Where is it?");
    });
    let story = story.await;
    assert!(story.requests.len() > 20, "{:?}", story.requests);
}

#[tokio::test(start_paused = true)]
async fn at_every_request_while_a_plan_is_repaired_and_a_task_repeated() {
    let make = async || {
        let planner = agent("planner", json!([{"say": "no plan"}]));
        let fails = json!([{"when": {"user_contains": "never"}, "say": "x"}]);
        World::new([planner, agent("assistant", fails)]).await
    };
    survives(make, ROUTER, Router::default, async |world, room| {
        let said = world.say(room, ROUTER, "Where is it?").await;
        assert!(world.answer_of(&said).await.starts_with("I have no answer."));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn at_every_request_while_more_is_said() {
    let make = async || {
        let one = json!({"kind": "complex", "tasks": [{"title": "Up", "agent": "finder", "prompt": "up"}]});
        // Slow enough that a process which waits for the leases of the one before comes in time.
        let slow = json!([{"pace": {"delay_ms": 80_000}, "say": "It is right."}]);
        let finder = Agent::says("finder", "It is there.");
        World::new([planner(two_tasks(), one, "All."), finder, agent("writer", slow)]).await
    };
    survives(make, ROUTER, Router::default, async |world, room| {
        let said = world.say(room, ROUTER, "Where is it?").await;
        world.pass(Duration::from_secs(40)).await;
        world.say(room, ROUTER, "And up?").await;
        assert_eq!(world.answer_of(&said).await, "All.");
    })
    .await;
}
