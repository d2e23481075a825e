//! Plans: what a model has to reply, and what is taken of it.

use jsonschema::Validator;
use loopd_protocol::{Block, KnownBlock, Message, Target};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Characters of a task's prompt.
const PROMPT: usize = 32 << 10;

/// Bytes of a whole plan: with its calls it is one Turn, and has to fit into a Message.
const PLAN: usize = 256 << 10;

/// Characters of a title.
const TITLE: usize = 120;

/// How a question is answered. What is stored is this, and never the reply that it was read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// Whether the one task is the answer.
    pub kind: Kind,
    /// What is done, side by side.
    #[serde(default)]
    pub tasks: Vec<Part>,
    /// Tasks of earlier plans that are of no use any more, as `1.2`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
    /// Why it is not what the planner replied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

/// What kind of plan it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// One agent answers.
    Simple,
    /// What several find becomes the answer.
    Complex,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// What it is, in a few words.
    pub title: String,
    /// The target that does it.
    pub agent: String,
    /// What that is told; of the task of a simple plan, nothing: it is told what was asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prompt: String,
}

/// The form of a reply.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Reply {
    Simple {
        agent: String,
    },
    Complex {
        tasks: Vec<Part>,
        #[serde(default)]
        drop: Vec<String>,
    },
}

impl Plan {
    /// One agent answers.
    pub fn simple(agent: &str) -> Self {
        let task = Part { title: "Answer".to_owned(), agent: agent.to_owned(), prompt: String::new() };
        Self { kind: Kind::Simple, tasks: vec![task], drop: Vec::new(), instead: None }
    }

    /// Nothing more is done: what was found is enough.
    pub const fn enough() -> Self {
        Self { kind: Kind::Complex, tasks: Vec::new(), drop: Vec::new(), instead: None }
    }

    /// The same, with the reason why the planner's own is not followed.
    pub fn instead(self, why: impl Into<String>) -> Self {
        Self { instead: Some(why.into()), ..self }
    }

    /// What a reply plans; the error says what is wrong with it, for the model and for people.
    pub fn read(reply: &str, form: &Form<'_>) -> Result<Self, String> {
        let value = object_in(reply).ok_or("there is no JSON object in it")?;
        let errors: Vec<_> = form.schema().iter_errors(&value).take(3).map(|error| told(&error)).collect();
        if !errors.is_empty() {
            return Err(errors.join("\n"));
        }
        let plan = match serde_json::from_value(value).map_err(|error| error.to_string())? {
            Reply::Simple { agent } => Self::simple(&agent),
            Reply::Complex { tasks, drop } => {
                Self { kind: Kind::Complex, tasks, drop: drop.into_iter().take(100).collect(), instead: None }
            }
        };
        match serde_json::to_vec(&plan).map_err(|error| error.to_string())?.len() {
            bytes if bytes > PLAN => Err(format!("it has {bytes} bytes, and may have {PLAN} at most")),
            _ => Ok(plan),
        }
    }

    /// The plan that a Message tells.
    pub fn told_in(message: &Message) -> Option<Self> {
        message.blocks.iter().find_map(|block| match block {
            Block::Known(KnownBlock::Result { json: Some(json), .. }) => serde_json::from_value(json.clone()).ok(),
            _ => None,
        })
    }
}

/// What a plan may hold here and now.
pub(crate) struct Form<'a> {
    /// Whom it may give work to.
    pub agents: &'a [Target],
    /// Tasks at most.
    pub max_tasks: usize,
    /// Whether something was found before, so that no task at all is a plan as well.
    pub has_evidence: bool,
}

impl Form<'_> {
    fn schema(&self) -> Validator {
        let agents: BTreeSet<_> = self.agents.iter().map(|agent| agent.name.as_str()).collect();
        let agent = json!({"enum": agents});
        let text = |most: usize| json!({"type": "string", "minLength": 1, "maxLength": most});
        let task = json!({
            "type": "object",
            "properties": {"title": text(TITLE), "agent": agent, "prompt": text(PROMPT)},
            "required": ["title", "agent", "prompt"]
        });
        let least = usize::from(!self.has_evidence);
        let schema = json!({
            "type": "object",
            "properties": {"kind": {"enum": ["simple", "complex"]}},
            "required": ["kind"],
            "if": {"properties": {"kind": {"const": "simple"}}},
            "then": {"properties": {"agent": agent}, "required": ["agent"]},
            "else": {
                "properties": {
                    "tasks": {"type": "array", "items": task, "minItems": least, "maxItems": self.max_tasks},
                    "drop": {"type": "array", "items": {"type": "string"}}
                },
                "required": ["tasks"]
            }
        });
        // A schema that is written here is one; were it none, nothing would fit it.
        jsonschema::validator_for(&schema).unwrap_or_else(|_| never())
    }
}

fn never() -> Validator {
    #[expect(clippy::expect_used, reason = "`false` is a schema")]
    jsonschema::validator_for(&Value::Bool(false)).expect("a schema")
}

fn told(error: &jsonschema::ValidationError<'_>) -> String {
    let at = error.instance_path().to_string();
    let what = Some(error.to_string()).filter(|what| what.len() <= 300).unwrap_or_else(|| error.masked().to_string());
    if at.is_empty() { what } else { format!("{at}: {what}") }
}

/// The JSON object of a reply: all of it, or what stands in a fence, or between the first and the last brace.
fn object_in(reply: &str) -> Option<Value> {
    let read = |text: &str| serde_json::from_str(text.trim()).ok().filter(Value::is_object);
    let fenced = || {
        let (_, behind) = reply.split_once("```")?;
        let (inside, _) = behind.split_once("```")?;
        read(inside.trim_start_matches("json"))
    };
    let braced = || read(reply.get(reply.find('{')?..=reply.rfind('}')?)?);
    read(reply).or_else(fenced).or_else(braced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn target(name: &str) -> Target {
        let target = json!({"name": name, "description": "", "adapter": "loop", "actor": format!("harness/{name}"),
            "slots": 1, "running": 0, "queued": 0});
        serde_json::from_value(target).unwrap()
    }

    #[track_caller]
    fn check(reply: &str, expected: Expect) {
        let agents = [target("finder"), target("writer")];
        let plan = Plan::read(reply, &Form { agents: &agents, max_tasks: 2, has_evidence: false });
        expected.assert_eq(&plan.map_or_else(|why| format!("no: {why}"), |plan| json!(plan).to_string()));
    }

    #[test]
    fn a_plan_is_read_wherever_it_stands_in_the_reply() {
        let simple = || expect![[r#"{"kind":"simple","tasks":[{"agent":"writer","title":"Answer"}]}"#]];
        for reply in [
            r#"{"kind":"simple","agent":"writer"}"#,
            "Sure!\n```json\n{\"kind\":\"simple\",\"agent\":\"writer\"}\n```\nThat is it.",
            "Here: {\"kind\":\"simple\",\"agent\":\"writer\",\"why\":\"{}\"} Good luck.",
        ] {
            check(reply, simple());
        }
        check(
            r#"{"kind":"complex","tasks":[{"title":"A","agent":"finder","prompt":"a"},{"title":"B","agent":"writer","prompt":"b"}]}"#,
            expect![[
                r#"{"kind":"complex","tasks":[{"agent":"finder","prompt":"a","title":"A"},{"agent":"writer","prompt":"b","title":"B"}]}"#
            ]],
        );
    }

    #[test]
    fn what_is_no_plan_is_told_to_whoever_made_it() {
        check("I think we should just do it.", expect!["no: there is no JSON object in it"]);
        check("[1]", expect!["no: there is no JSON object in it"]);
        check(
            r#"{"kind":"hard"}"#,
            expect![[r#"
            no: /kind: "hard" is not one of "simple" or "complex"
            "tasks" is a required property"#]],
        );
        check(
            r#"{"kind":"simple","agent":"operator/router"}"#,
            expect![[r#"no: /agent: "operator/router" is not one of "finder" or "writer""#]],
        );
        check(r#"{"kind":"simple"}"#, expect![[r#"no: "agent" is a required property"#]]);
        check(r#"{"kind":"complex","tasks":[]}"#, expect!["no: /tasks: [] has less than 1 item"]);
        let many = vec![r#"{"title":"A","agent":"finder","prompt":"a"}"#; 1000].join(",");
        check(&format!(r#"{{"kind":"complex","tasks":[{many}]}}"#), expect!["no: /tasks: value has more than 2 items"]);
        check(
            r#"{"kind":"complex","tasks":[{"title":"A","agent":"nobody","prompt":""}]}"#,
            expect![[r#"
            no: /tasks/0/agent: "nobody" is not one of "finder" or "writer"
            /tasks/0/prompt: "" is shorter than 1 character"#]],
        );
    }

    #[test]
    fn what_is_too_much_for_one_turn_is_no_plan() {
        let agents = [target("finder")];
        let form = Form { agents: &agents, max_tasks: 40, has_evidence: false };
        let read = |prompt: &str| {
            let tasks = vec![json!({"title": "A", "agent": "finder", "prompt": prompt}); 40];
            Plan::read(&json!({"kind": "complex", "tasks": tasks}).to_string(), &form).map(|plan| plan.tasks.len())
        };
        assert_eq!(read(&"x".repeat(6_000)), Ok(40));
        assert_eq!(read(&"ä".repeat(6_000)), Err("it has 481748 bytes, and may have 262144 at most".to_owned()));
        let long = json!({"kind": "complex", "tasks": [], "drop": ["1.1".repeat(100_000)]}).to_string();
        let form = Form { has_evidence: true, ..form };
        assert_eq!(Plan::read(&long, &form), Err("it has 300041 bytes, and may have 262144 at most".to_owned()));
    }

    #[test]
    fn where_something_was_found_no_task_is_needed() {
        let agents = [target("finder")];
        let form = Form { agents: &agents, max_tasks: 2, has_evidence: true };
        let plan = Plan::read(r#"{"kind":"complex","tasks":[],"drop":["1.1"]}"#, &form).unwrap();
        assert_eq!((plan.tasks.len(), plan.drop), (0, vec!["1.1".to_owned()]));
    }
}
