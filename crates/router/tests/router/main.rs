//! The Router on a whole platform, with agents that play scripts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod deaths;
mod faults;
mod flows;

use loopd_inside::kit::{Agent, Script, World};
use serde_json::{Value, json};

/// The Operator under test.
pub const ROUTER: &str = "operator/router";

/// An agent that plays these turns.
pub fn agent(name: &str, turns: Value) -> Agent {
    Agent::new(name, Script::from_json(&json!({ "turns": turns }).to_string()).unwrap())
}

/// A plan of two tasks.
pub fn two_tasks() -> Value {
    json!({"kind": "complex", "tasks": [
        {"title": "Left", "agent": "finder", "prompt": "left of {{line}}"},
        {"title": "Right", "agent": "writer", "prompt": "right of {{line}}"},
    ]})
}

/// What the planner says to a prompt to plan, to plan anew, and to sum up.
pub fn planner(plan: Value, replan: Value, sum: &str) -> Agent {
    agent(
        "planner",
        json!([
            {"when": {"user_contains": "Your last reply was not"}, "say": "still no plan"},
            {"when": {"user_contains": "Work on it has begun"}, "json": replan},
            {"when": {"user_contains": "You plan how"}, "json": plan},
            {"when": {"user_contains": "Several agents"}, "say": sum},
        ]),
    )
}

/// A planner that plans two tasks, and two agents that do what they are told.
pub async fn usual() -> World {
    let planner = planner(two_tasks(), json!({"kind": "complex", "tasks": []}), "Both: {{line}}");
    World::new([planner, Agent::says("finder", "It is left."), Agent::says("writer", "It is right.")]).await
}
