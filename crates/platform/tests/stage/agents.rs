//! Agents in Rust for the engine's tests: their input says what they do.

use super::Stage;
use loopd_kernel::effect::EffectClass;
use loopd_kernel::question::Ask;
use loopd_kernel::{Action, Cx, Decision, Event, Failure, Limits, Loop, erase};
use loopd_platform::engine::{Executes, TargetSpec};
use loopd_platform::{Engine, Platform};
use loopd_runtime::{Config, FixedPrograms, Program, Runtime, tool_fn};
use loopd_store::Store;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Does one step per word of its input: `speak:x`, `pay:5`, `ask:q`, `confirm:q`, `wait`, `sleep:ms`, `fail`, `done`.
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
        if let Event::Answered { value, .. } = &event
            && value == "false"
        {
            return Ok(Decision::fail(Failure::new("steps.declined", "somebody said no")));
        }
        let Some(word) = state.0.pop() else { return Ok(Decision::finish(&"done")) };
        let (verb, rest) = word.split_once(':').unwrap_or((&word, ""));
        Ok(match verb {
            "speak" => Decision::none().and(Action::Speak(rest.into())),
            "pay" => Decision::tool("pay", &Pay { amount: rest.parse().unwrap_or_default() }),
            "ask" => Decision::ask(rest),
            "soon" => Decision::none().and(Action::Ask(Ask::Ask {
                prompt: rest.into(),
                schema: None,
                expires_in_ms: Some(60_000),
                reply_to: None,
            })),
            "confirm" => Decision::confirm(rest),
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

/// A process: an engine and the worker of its Runs.
pub struct Process {
    pub engine: Engine,
    pub runtime: Runtime,
}

/// How often each amount was paid.
pub type Paid = Arc<AtomicU32>;

pub fn steps(paid: &Paid) -> Arc<Program> {
    let paid = paid.clone();
    let pay = tool_fn("pay", "Pays.", move |pay: Pay| {
        let paid = paid.clone();
        async move {
            paid.fetch_add(1, Ordering::SeqCst);
            Ok(pay.amount)
        }
    });
    Arc::new(Program::new(erase(Steps, Vec::new())).tool(Arc::new(pay.class(EffectClass::Read))))
}

impl Stage {
    /// A process that can execute `steps`.
    pub async fn process(&self, paid: &Paid) -> Process {
        self.process_over(Arc::new(self.store.clone()), paid, Vec::new()).await.unwrap()
    }

    pub async fn process_over(&self, store: Arc<dyn Store>, paid: &Paid, more: Vec<TargetSpec>) -> Option<Process> {
        let platform: Platform = self.through(store.clone());
        let program = steps(paid);
        let target = TargetSpec {
            name: "steps".into(),
            description: "Does as it is told.".into(),
            slots: None,
            executes: Ok(Executes::Loop { program: program.clone(), limits: Limits::default(), demo: false }),
        };
        let engine = Engine::new(platform, std::iter::once(target).chain(more).collect()).unwrap();
        let outlet = engine.outlet().await.ok()?;
        let (sender, deltas) = tokio::sync::mpsc::unbounded_channel();
        let runtime = Runtime::builder(store, Arc::new(FixedPrograms::new([program])))
            .config(Config::default())
            .world(self.clock.clone(), self.entropy())
            .outlet(outlet)
            .deltas(sender)
            .start()
            .await
            .ok()?;
        if engine.start(runtime.clone(), deltas).await.is_err() {
            // Its process ends here, and takes nothing over any more.
            runtime.shutdown().await;
            return None;
        }
        Some(Process { engine, runtime })
    }
}
