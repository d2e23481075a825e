//! The demo model: plays a script, needs no network and no key, and says that it is a demo.
//!
//! Its reply depends on the request alone, and its faults on the recorded attempt number; it remembers nothing.
//! So a Run that is killed and resumed in another process sees the same model.

mod scene;
mod script;
mod template;

#[cfg(test)]
mod tests;

pub use script::{DemoScript, DemoTurn, DemoUse, Fault, FaultKind, Pace, ScriptError, When};
pub use template::TemplateError;

use crate::catalogue::ModelFacts;
use crate::wire::within;
use async_trait::async_trait;
use loopd_kernel::Usage;
use loopd_kernel::machine::ModelTerms;
use loopd_kernel::model::{Message, ModelReply, Part, StopReason};
use loopd_kernel::units::Price;
use loopd_runtime::{CallContext, Delta, Model, ModelAnswer, ModelError, ModelRequest};
use scene::Scene;
use std::time::Duration;
use template::{Template, fill};

/// The name under which it answers.
pub const MODEL: &str = "demo";

/// The estimate where a script gives no usage.
const BYTES_PER_TOKEN: usize = 4;

/// The demo model.
#[derive(Debug, Clone)]
pub struct Demo {
    script: DemoScript,
    terms: ModelTerms,
    facts: ModelFacts,
}

impl Default for Demo {
    fn default() -> Self {
        Self { script: DemoScript::default(), terms: free(), facts: ModelFacts::default() }
    }
}

/// It costs nothing, and that is known.
const fn free() -> ModelTerms {
    let price = Price { input: 0, cache_read: 0, cache_write: 0, output: 0, reasoning: 0 };
    ModelTerms { price: Some(price), timeout_ms: 300_000, max_attempts: 4 }
}

impl Demo {
    /// Plays `script`.
    ///
    /// # Errors
    /// [`ScriptError`] when it cannot be played.
    pub fn new(script: DemoScript) -> Result<Self, ScriptError> {
        script.check()?;
        Ok(Self { script, terms: free(), facts: ModelFacts::default() })
    }

    /// The same with other terms.
    #[must_use]
    pub const fn with_terms(mut self, terms: ModelTerms) -> Self {
        self.terms = terms;
        self
    }

    /// The same with what was declared of it. The price itself is part of its terms.
    #[must_use]
    pub fn with_facts(mut self, facts: ModelFacts) -> Self {
        self.facts = facts;
        self
    }

    async fn play(&self, request: &ModelRequest, context: &CallContext) -> Result<ModelAnswer, ModelError> {
        let scene = Scene::of(request);
        let turn =
            self.script.turns.iter().find(|turn| scene.fits(&turn.when)).ok_or_else(|| {
                ModelError::Rejected(format!("no turn of the demo script fits: {}", scene.describe()))
            })?;
        let pace = turn.pace.unwrap_or(self.script.pace);
        let fault = turn.faults.iter().find(|fault| fault.attempt == context.attempt);
        let answer = self.answer(turn, &scene, request);
        pause(pace.delay_ms).await;
        let words = match fault {
            Some(fault) if fault.error == FaultKind::Cut => fault.after_words,
            Some(_) => 0,
            None => usize::MAX,
        };
        let text = answer.reply.joined_text();
        for (at, word) in text.split_inclusive(' ').take(words).enumerate() {
            pause(if at == 0 { 0 } else { pace.word_ms }).await;
            show(context, word);
        }
        match fault {
            Some(fault) => Err(failure(fault).await),
            None => Ok(answer),
        }
    }

    fn answer(&self, turn: &DemoTurn, scene: &Scene<'_>, request: &ModelRequest) -> ModelAnswer {
        let said = turn.say.as_ref().map(|say| {
            let text = Template::parse(say).map_or_else(|_| say.clone(), |say| say.text(scene));
            if self.script.label.is_empty() { text } else { format!("{} {text}", self.script.label) }
        });
        let text = said.or_else(|| turn.json.as_ref().map(|json| fill(json, scene).to_string()));
        let mut parts: Vec<Part> = text.map(|text| Part::Text { text }).into_iter().collect();
        for (slot, tool) in turn.uses.iter().enumerate() {
            let args = match fill(&tool.args, scene) {
                serde_json::Value::String(text) => text,
                args => args.to_string(),
            };
            let id = format!("demo_{}_{slot}", scene.turn);
            parts.push(Part::ToolUse { id, name: tool.tool.clone(), args });
        }
        let stop = turn.stop.clone().unwrap_or(match turn.uses.is_empty() {
            true => StopReason::EndTurn,
            false => StopReason::ToolUse,
        });
        let reply = ModelReply { parts, stop, model: MODEL.into() };
        limited(reply, turn.usage, request)
    }
}

#[async_trait]
impl Model for Demo {
    fn terms(&self) -> ModelTerms {
        self.terms
    }

    fn price_source(&self) -> Option<String> {
        self.facts.price_source()
    }

    fn context_window(&self) -> Option<u64> {
        self.facts.window()
    }

    async fn call(&self, request: ModelRequest, context: CallContext) -> Result<ModelAnswer, ModelError> {
        within(&context, self.play(&request, &context)).await
    }
}

/// Holds to the output limit as a real model does: it stops in the middle, and then asks for no tool.
fn limited(mut reply: ModelReply, usage: Option<Usage>, request: &ModelRequest) -> ModelAnswer {
    let mut usage = usage.unwrap_or_else(|| Usage {
        input: tokens(request_bytes(request)),
        output: tokens(reply.parts.iter().map(part_bytes).sum()),
        ..Usage::default()
    });
    let limit = request.max_output_tokens;
    if usage.output.saturating_add(usage.reasoning) > limit {
        let mut text = reply.joined_text();
        let bytes = usize::try_from(limit).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
        text.truncate(text.floor_char_boundary(bytes));
        reply = ModelReply { parts: vec![Part::Text { text }], stop: StopReason::Length, model: reply.model };
        usage.reasoning = usage.reasoning.min(limit);
        usage.output = limit - usage.reasoning;
    }
    ModelAnswer { reply, usage: Some(usage) }
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN) as u64
}

fn request_bytes(request: &ModelRequest) -> usize {
    let constants = &request.constants;
    let system = constants.system.as_ref().map_or(0, String::len);
    let tools = constants.tools.iter().map(|tool| tool.name.len() + tool.description.len() + tool.parameters.len());
    let messages = request.messages.iter().map(|message| match message.as_ref() {
        Message::User { text, .. } | Message::Tool { text, .. } => text.len(),
        Message::Assistant { parts } => parts.iter().map(part_bytes).sum(),
    });
    system + tools.sum::<usize>() + messages.sum::<usize>()
}

fn part_bytes(part: &Part) -> usize {
    match part {
        Part::Text { text } => text.len(),
        Part::ToolUse { name, args, .. } => name.len() + args.len(),
        Part::Reasoning { opaque, .. } => opaque.len(),
    }
}

async fn failure(fault: &Fault) -> ModelError {
    let message = String::from("(demo model) a fault of the script");
    let retry_after = fault.retry_after_ms.map(Duration::from_millis);
    match fault.error {
        FaultKind::RateLimited => ModelError::RateLimited { message, retry_after },
        FaultKind::Unavailable => ModelError::Unavailable { message, retry_after },
        FaultKind::Cut => ModelError::Interrupted { message, usage: None },
        // The time of the attempt ends it.
        FaultKind::Hang => std::future::pending().await,
        FaultKind::Malformed => ModelError::Malformed { message, usage: None },
        FaultKind::Rejected => ModelError::Rejected(message),
        FaultKind::TooLarge => ModelError::TooLarge(message),
        FaultKind::Unauthorised => ModelError::Unauthorised(message),
    }
}

async fn pause(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

fn show(context: &CallContext, word: &str) {
    if let Some(deltas) = &context.deltas {
        let (run, call, attempt) = (context.run, context.call, context.attempt);
        // Whoever watched may have gone; the answer does not depend on it.
        let _ = deltas.send(Delta { run, call, attempt, text: word.to_owned() });
    }
}
