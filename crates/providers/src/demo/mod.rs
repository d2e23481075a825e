//! The demo model: plays a script, needs no network and no key, and says that it is a demo.
//!
//! Its reply depends on the request alone, and its faults on the recorded attempt number; it remembers nothing.
//! So a Run that is killed and resumed in another process sees the same model.

#[cfg(test)]
mod tests;

pub use loopd_script::{
    Fault, FaultKind, Pace, Script as DemoScript, ScriptError, ScriptTurn as DemoTurn, ScriptUse as DemoUse,
    TemplateError, When,
};

use crate::catalogue::ModelFacts;
use crate::wire::within;
use async_trait::async_trait;
use loopd_kernel::machine::ModelTerms;
use loopd_kernel::model::Part;
use loopd_kernel::units::Price;
use loopd_runtime::{CallContext, Delta, Model, ModelAnswer, ModelError, ModelRequest};
use loopd_script::{Asked, Played, Scene};
use std::time::Duration;

/// The name under which it answers.
pub const MODEL: &str = "demo";

/// What its texts begin with, unless the script says.
const LABEL: &str = "(demo model)";

/// Whose reasoning it is.
const ORIGIN: &str = "demo/demo";

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
        script.check_without_server()?;
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
        let scene = Scene::of(Asked {
            model: &request.model,
            constants: &request.constants,
            messages: &request.messages,
            max_output_tokens: request.max_output_tokens,
        });
        let (_, turn) = self
            .script
            .turn_for(&scene, |_| true)
            .ok_or_else(|| ModelError::Rejected(format!("no turn of the demo script fits: {}", scene.describe())))?;
        let pace = turn.pace.unwrap_or(self.script.pace);
        let fault = turn.faults.iter().find(|fault| fault.attempt == context.attempt);
        let answer = signed(turn.answer(&scene, self.script.label.as_deref().unwrap_or(LABEL), "demo"));
        pause(pace.delay_ms).await;
        let words = match fault {
            Some(fault) if fault.error == Some(FaultKind::Cut) => fault.after_words,
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

/// Says whose answer it is.
fn signed(played: Played) -> ModelAnswer {
    let Played { mut reply, usage } = played;
    reply.model = MODEL.into();
    for part in &mut reply.parts {
        if let Part::Reasoning { origin, .. } = part {
            *origin = ORIGIN.into();
        }
    }
    ModelAnswer { reply, usage: Some(usage) }
}

async fn failure(fault: &Fault) -> ModelError {
    let message = String::from("(demo model) a fault of the script");
    let retry_after = fault.retry_after_ms.map(Duration::from_millis);
    // A fault without one is refused with its script.
    match fault.error.unwrap_or(FaultKind::Unavailable) {
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
