//! What the counting model server says.

use looptest::fake::{FakeModel, Script};
use serde_json::{Value, json};

/// What the answer to `long N` is: long enough to be cut in the middle.
pub const LONG: &str = "One word follows the other until all of them are there, and this is the last one of them.";

/// The agent that asks this server.
pub fn agent(url: &str) -> String {
    format!(
        "apiVersion: loopd.dev/v1alpha1
kind: Agent
metadata: {{ name: helper }}
spec:
  model: {{ provider: openai, baseUrl: \"{url}\", name: fake-model }}
  tools: [{{ use: ask }}]
  limits: {{ iterations: 10 }}
"
    )
}

/// A server that stops in the middle of the answer to `long N` until gate `long-N` is opened, and at the head of what
/// follows the answer to `ask N`.
pub async fn start(rounds: usize) -> FakeModel {
    let mut turns = Vec::new();
    for round in 0..rounds {
        let gate = format!("long-{round}-");
        turns.push(json!({
            "when": { "line_contains": format!("long-{round}-") }, "say": LONG,
            "on_wire": { "stall": { "at": { "events": 6 }, "gate": gate } },
        }));
    }
    turns.extend([
        json!({ "when": { "last_tool": "ask" }, "say": "You chose {{tool.ask}}." }),
        json!({
            "when": { "line_contains": "ask-" }, "say": "I have to ask.",
            "use": [{ "tool": "ask", "args": { "question": "Which colour?", "choices": ["red", "blue"] } }],
        }),
        json!({ "say": "Done: {{line}}" }),
    ]);
    let script = json!({ "pace": { "delay_ms": 20 }, "turns": turns });
    FakeModel::start(Script::from_json(&script.to_string()).expect("a script")).await
}

/// How many requests had this as the last line that a person said.
pub fn asked(fake: &FakeModel, marker: &str) -> usize {
    asked_with(fake, "", marker)
}

/// How many requests had the marker in the last line, and the text anywhere in what was said last.
pub fn asked_with(fake: &FakeModel, within: &str, marker: &str) -> usize {
    let about = |body: &Value| {
        let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let last = messages.iter().rfind(|message| message["role"] == "user").map(|message| &message["content"]);
        let text = last.and_then(|content| content.as_str().or_else(|| content[0]["text"].as_str()));
        let text = text.filter(|text| text.contains(within));
        text.and_then(|text| text.lines().next_back()).is_some_and(|line| line.contains(marker))
    };
    fake.journal().iter().filter(|heard| heard.is_call() && about(&heard.body)).count()
}
