//! A Loop whose calls do nothing but return fresh bytes: what remains is the price of durability.

use async_trait::async_trait;
use loopd_kernel::machine::{ModelTerms, ToolTerms};
use loopd_kernel::model::{ModelCall, ModelReply, ToolOffer};
use loopd_kernel::{Cx, Decision, EffectClass, Event, Failure, Loop, erase};
use loopd_runtime::{CallContext, Model, ModelAnswer, ModelError, ModelRequest, Program, Tool, ToolError};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// `bytes` of text that does not compress, new at each call.
pub fn fresh_text(bytes: usize) -> String {
    static STATE: AtomicU64 = AtomicU64::new(0x9E37_79B9_7F4A_7C15);
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut x = STATE.fetch_add(0xD1B5_4A32_D192_ED03, Ordering::Relaxed) | 1;
    let mut text = String::with_capacity(bytes);
    while text.len() < bytes {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        text.push(char::from(ALPHABET[(x & 63) as usize]));
    }
    text
}

/// What the Loop does.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Plan {
    /// Iterations of one model call and one tool call.
    pub iterations: u64,
    /// Afterwards it waits for a signal instead of finishing, and again after each signal.
    pub waits: bool,
}

pub struct Noop;

impl Loop for Noop {
    type Input = Plan;
    type State = (Plan, u64);
    type Output = u64;

    fn name(&self) -> &'static str {
        "noop"
    }

    fn init(&self, plan: Plan) -> Result<(Plan, u64), Failure> {
        Ok((plan, 0))
    }

    fn transition(&self, cx: &Cx, (plan, signals): &mut (Plan, u64), event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { iteration } if iteration > plan.iterations => {
                if plan.waits {
                    Decision::wait("go")
                } else {
                    Decision::finish(&cx.iteration)
                }
            }
            Event::IterationStarted { .. } => Decision::model(ModelCall::prompt("noop", "next")),
            Event::ModelReplied { .. } => Decision::tool("noop", &0),
            Event::SignalReceived { .. } => {
                *signals += 1;
                Decision::none()
            }
            Event::ToolReturned(_) => Decision::none(),
            other => return Err(Failure::unexpected(&other)),
        })
    }
}

/// A model or tool that returns `payload` fresh bytes at once.
pub struct Instant {
    offer: ToolOffer,
    payload: usize,
}

#[async_trait]
impl Model for Instant {
    fn terms(&self) -> ModelTerms {
        ModelTerms { price: None, timeout_ms: 60_000, max_attempts: 3 }
    }

    async fn call(&self, _: ModelRequest, _: CallContext) -> Result<ModelAnswer, ModelError> {
        let usage = loopd_kernel::Usage { input: 1, output: 1, ..Default::default() };
        Ok(ModelAnswer { reply: ModelReply::text(fresh_text(self.payload)), usage: Some(usage) })
    }
}

#[async_trait]
impl Tool for Instant {
    fn offer(&self) -> &ToolOffer {
        &self.offer
    }

    fn terms(&self) -> ToolTerms {
        ToolTerms { class: EffectClass::Read, timeout_ms: 60_000 }
    }

    async fn call(&self, _: &str, _: &CallContext) -> Result<String, ToolError> {
        Ok(fresh_text(self.payload))
    }
}

/// The tools of the measured agent.
pub fn agent_tools(payload: usize) -> Vec<Arc<dyn Tool>> {
    let parameters = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
    let offer = ToolOffer { name: "noop".into(), description: "Does nothing.".into(), parameters: parameters.into() };
    vec![Arc::new(Instant { offer, payload })]
}

/// The Program: a no-op model and a no-op tool. The tool reads, so that a killed workload can be resumed
/// without a person; its class changes nothing about what a step costs.
pub fn program(payload: usize) -> Arc<Program> {
    let instant = || {
        let offer = ToolOffer { name: "noop".into(), description: String::new(), parameters: "{}".into() };
        Arc::new(Instant { offer, payload })
    };
    Arc::new(Program::new(erase(Noop, Vec::new())).model("noop", instant()).tool(instant()))
}
