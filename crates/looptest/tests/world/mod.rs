//! Runs over the in-memory store with a clock and salts that are the same in every test, and their recordings.
#![allow(dead_code, reason = "each test binary uses its part")]

use loopd_agent::{Agent, Manifest};
use loopd_fixture::Fixture;
use loopd_kernel::budget::Limits;
use loopd_kernel::machine::Admission;
use loopd_kernel::{
    Action, Cx, Decision, Digest, EffectClass, ErasedLoop, Event, Failure, Loop, TimeMs, ToolCall, erase,
};
use loopd_runtime::{Clock, Config, Entropy, FixedPrograms, Program, RunEnd, Runtime, Started};
use loopd_store::{MemoryStore, Store};
use looptest::{CountingTool, ScriptedModel, record};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Reads a price, refunds it, says so.
pub struct Refund {
    pub greeting: &'static str,
    pub percent: u64,
}

impl Default for Refund {
    fn default() -> Self {
        Self { greeting: "Refunded", percent: 100 }
    }
}

#[derive(Serialize, Deserialize, Default, PartialEq, Eq, Debug)]
pub struct Seen {
    pub prices: BTreeMap<String, u64>,
}

#[derive(Serialize, Deserialize, PartialEq, Eq, Debug)]
pub struct Receipt {
    pub cents: u64,
}

impl Loop for Refund {
    type Input = String;
    type State = Seen;
    type Output = Receipt;

    fn name(&self) -> &str {
        "refund"
    }

    fn init(&self, _order: String) -> Result<Seen, Failure> {
        Ok(Seen::default())
    }

    fn transition(&self, _cx: &Cx, state: &mut Seen, event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::tool("price", &"A17"),
            Event::ToolReturned(done) if done.tool == "price" => {
                let cents = done.json()?;
                state.prices.insert("A17".into(), cents);
                let args = format!(r#"{{"order":"A17","cents":{}}}"#, cents * self.percent / 100);
                let call = ToolCall { tool: "refund".into(), args, reply_to: None, cap: None };
                Decision::none().and(Action::CallTool(call))
            }
            Event::ToolReturned(_) => {
                let cents = state.prices.values().sum();
                let said = format!("{} {cents} cents", self.greeting);
                Decision::finish(&Receipt { cents }).and(Action::Speak(said))
            }
            other => return Err(Failure::unexpected(&other)),
        })
    }
}

/// Half past nothing in particular, for ever.
struct Still;

impl Clock for Still {
    fn now(&self) -> TimeMs {
        TimeMs(1_700_000_000_000)
    }

    fn steady_ms(&self) -> u64 {
        0
    }
}

#[derive(Default)]
struct Counted(AtomicU32);

impl Entropy for Counted {
    fn salt(&self) -> [u8; 32] {
        let n = self.0.fetch_add(1, Ordering::SeqCst);
        Digest::sha256(&[&n.to_be_bytes()]).0
    }
}

struct Closure(fn(Event) -> Result<Decision, Failure>);

impl Loop for Closure {
    type Input = String;
    type State = ();
    type Output = serde_json::Value;

    fn name(&self) -> &str {
        "closure"
    }

    fn init(&self, _: String) -> Result<(), Failure> {
        Ok(())
    }

    fn transition(&self, _: &Cx, (): &mut (), event: Event) -> Result<Decision, Failure> {
        (self.0)(event)
    }
}

/// A Loop made of a function.
pub fn closure(step: fn(Event) -> Result<Decision, Failure>) -> Arc<dyn ErasedLoop> {
    erase(Closure(step), Vec::new())
}

/// How a Run starts here.
pub fn admission(input: &str) -> Admission {
    Admission { tenant: "default".into(), input: input.into(), limits: Limits::default(), key: None }
}

/// A worker over a store.
pub async fn worker(store: Arc<MemoryStore>, program: &Arc<Program>) -> Runtime {
    let programs = Arc::new(FixedPrograms::new([program.clone()]));
    // Time stands still here, so a back-off must not have to pass.
    let config = Config { backoff: Duration::ZERO, ..Config::default() };
    let builder = Runtime::builder(store, programs).config(config);
    builder.world(Arc::new(Still), Arc::new(Counted::default())).start().await.unwrap()
}

/// Drives a program to its end and records it.
pub async fn run(program: Program, input: &str) -> (RunEnd, Fixture) {
    let store = Arc::new(MemoryStore::new());
    let program = Arc::new(program);
    let runtime = worker(store.clone(), &program).await;
    let limits = Limits::default();
    let admission = Admission { tenant: "default".into(), input: input.into(), limits, key: None };
    let Started::New(driven) = runtime.start(&program, admission).await.unwrap() else { panic!("it is new") };
    let id = driven.run;
    let end = driven.wait().await;
    runtime.shutdown().await;
    let store: Arc<dyn Store> = store;
    (end, record(&*store, id).await)
}

pub fn price() -> CountingTool {
    CountingTool::returning("price", EffectClass::Read, "4200")
}

pub fn refund() -> CountingTool {
    CountingTool::returning("refund", EffectClass::Once, r#"{"ok":true}"#)
}

pub async fn refunded() -> Fixture {
    let program = Program::new(erase(Refund::default(), Vec::new())).tool(Arc::new(price())).tool(Arc::new(refund()));
    run(program, "\"A17\"").await.1
}

pub fn agent(instructions: &str) -> Agent {
    let yaml = format!(
        "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: {{ name: clerk }}\nspec:\n  model: {{ provider: demo, \
         script: clerk.json }}\n  instructions: {instructions}\n  tools:\n    - {{ native: price }}\n"
    );
    let manifest = Manifest::parse("agent.yaml", yaml.as_bytes()).unwrap();
    let offer = loopd_runtime::Tool::offer(&price()).clone();
    Agent::from_manifest(manifest, vec![offer]).unwrap()
}

pub fn script() -> ScriptedModel {
    ScriptedModel::new().asks("price", r#"{"order":"A17"}"#).says("It costs $42.")
}

pub async fn asked(model: &ScriptedModel) -> Fixture {
    let definition: Arc<dyn ErasedLoop> = Arc::new(agent("Be brief."));
    let program = Program::new(definition).model("demo", Arc::new(model.clone())).tool(Arc::new(price()));
    run(program, "\"What does A17 cost?\"").await.1
}
