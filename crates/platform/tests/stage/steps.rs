//! An agent in Rust: its input says what it does.

use loopd_kernel::effect::EffectClass;
use loopd_kernel::question::{Ask, QuestionEnd};
use loopd_kernel::{Action, Cx, Decision, Event, Failure, Loop, erase};
use loopd_runtime::{Program, tool_fn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Does one step per word of its input: `speak:x`, `pay:5` (which may be done again), `refund:5` (which may not),
/// `ask:q`, `confirm:q`, `wait`, `sleep:ms`, `fail`, `done`.
pub struct Steps;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Left(Vec<String>);

impl Loop for Steps {
    type Input = String;
    type State = Left;
    type Output = serde_json::Value;

    fn name(&self) -> &str {
        "steps"
    }

    fn init(&self, input: String) -> Result<Left, Failure> {
        let input = input.rsplit("---\n\n").next().unwrap_or_default().to_owned();
        Ok(Left(input.split_whitespace().filter(|word| !word.starts_with('@')).map(str::to_owned).rev().collect()))
    }

    fn transition(&self, _: &Cx, state: &mut Left, event: Event) -> Result<Decision, Failure> {
        if let Event::CallFailed { failure, .. } = event {
            return Ok(Decision::fail(failure));
        }
        if let Event::Answered { end, value, .. } = &event
            && (*end == QuestionEnd::Declined || value == "false")
        {
            return Ok(Decision::fail(Failure::new("steps.declined", "somebody said no")));
        }
        let Some(word) = state.0.pop() else { return Ok(Decision::finish(&"done")) };
        let (verb, rest) = word.split_once(':').unwrap_or((&word, ""));
        Ok(match verb {
            "speak" => Decision::none().and(Action::Speak(rest.into())),
            "pay" => Decision::tool("pay", &Pay { amount: rest.parse().unwrap_or_default() }),
            "refund" => Decision::tool("refund", &Pay { amount: rest.parse().unwrap_or_default() }),
            "ask" => Decision::ask(rest),
            "soon" => Decision::none().and(Action::Ask(Ask::Ask {
                prompt: rest.into(),
                schema: None,
                expires_in_ms: Some(60_000),
                reply_to: None,
            })),
            "confirm" => Decision::confirm(rest),
            "spawn" => Decision::spawn("kid", "steps", &rest),
            "wait" => Decision::wait("message"),
            "sleep" => Decision::sleep(rest.parse().unwrap_or_default()),
            "fail" => Decision::fail(Failure::new("steps.fail", "as it was told")),
            "json" => Decision::finish(&serde_json::json!({ "answer": rest })),
            _ => Decision::finish(&word),
        })
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Pay {
    amount: u32,
}

/// How often each amount was paid.
pub type Paid = Arc<AtomicU32>;

pub fn steps(paid: &Paid) -> Arc<Program> {
    let tool = |name, says, class| {
        let paid = paid.clone();
        let tool = tool_fn(name, says, move |pay: Pay| {
            let paid = paid.clone();
            async move {
                paid.fetch_add(1, Ordering::SeqCst);
                Ok(pay.amount)
            }
        });
        Arc::new(tool.class(class))
    };
    let program = Program::new(erase(Steps, Vec::new()));
    Arc::new(program.tool(tool("pay", "Pays.", EffectClass::Read)).tool(tool("refund", "Refunds.", EffectClass::Once)))
}
