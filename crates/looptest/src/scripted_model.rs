//! A model that says what a test told it to.

use async_trait::async_trait;
use loopd_kernel::machine::ModelTerms;
use loopd_kernel::model::{Message, ModelReply, Part, StopReason};
use loopd_kernel::units::{Price, Usage};
use loopd_kernel::{CallId, RunId};
use loopd_runtime::{CallContext, Model, ModelAnswer, ModelError, ModelRequest};
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

/// A request that reached the model.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The Run.
    pub run: RunId,
    /// The Call.
    pub call: CallId,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// What was asked.
    pub request: ModelRequest,
}

/// A model that replies from a script.
///
/// A reply is chosen by what the request says, never by how many requests came before: turn *n* answers a request in
/// which the model has spoken *n* times already. So a Run that is killed and taken over by another process, with
/// another copy of the same script, is told the same.
///
/// # Expected flow
/// Turns in order ([`ScriptedModel::says`], [`ScriptedModel::asks`], [`ScriptedModel::replies`]), errors before the turn that
/// they delay, and [`ScriptedModel::when`] for requests without a Transcript. Clones share their count.
#[derive(Clone, Debug)]
pub struct ScriptedModel {
    terms: ModelTerms,
    usage: Option<Usage>,
    turns: Vec<Turn>,
    errors: Vec<ModelError>,
    rules: Vec<(String, ModelReply)>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

#[derive(Clone, Debug)]
struct Turn {
    /// What the attempts before the reply fail with.
    errors: Vec<ModelError>,
    reply: ModelReply,
}

impl Default for ScriptedModel {
    fn default() -> Self {
        let price = Price { input: 1_000_000, output: 1_000_000, reasoning: 1_000_000, ..Price::default() };
        Self {
            terms: ModelTerms { price: Some(price), timeout_ms: 60_000, max_attempts: 3 },
            usage: Some(Usage { input: 10, output: 5, ..Usage::default() }),
            turns: Vec::new(),
            errors: Vec::new(),
            rules: Vec::new(),
            asked: Arc::default(),
        }
    }
}

impl ScriptedModel {
    /// A model with an empty script, a price of one micro-dollar a token, and 10 + 5 tokens a reply.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The next turn: the model says this and is done.
    #[must_use]
    pub fn says(self, text: impl Into<String>) -> Self {
        self.replies(ModelReply::text(text))
    }

    /// The next turn: the model asks for one tool. The arguments are a `serde_json::Value` or the exact text, garbage
    /// included.
    #[must_use]
    pub fn asks(self, tool: &str, args: impl Display) -> Self {
        let id = format!("use-{}", self.turns.len() + 1);
        let part = Part::ToolUse { id, name: tool.into(), args: args.to_string() };
        self.replies(ModelReply { parts: vec![part], stop: StopReason::ToolUse, model: String::new() })
    }

    /// The next turn: this reply.
    #[must_use]
    pub fn replies(mut self, reply: ModelReply) -> Self {
        let errors = std::mem::take(&mut self.errors);
        self.turns.push(Turn { errors, reply });
        self
    }

    /// The next turn fails with this first. Several errors fail as many attempts.
    #[must_use]
    pub fn fails(mut self, error: ModelError) -> Self {
        self.errors.push(error);
        self
    }

    /// A request whose last message contains `text` gets this reply, whatever turn it is.
    #[must_use]
    pub fn when(mut self, text: impl Into<String>, reply: ModelReply) -> Self {
        self.rules.push((text.into(), reply));
        self
    }

    /// What each reply is said to have used; `None` is what a provider does that does not say.
    #[must_use]
    pub const fn usage(mut self, usage: Option<Usage>) -> Self {
        self.usage = usage;
        self
    }

    /// Price, timeout and attempts.
    #[must_use]
    pub const fn terms(mut self, terms: ModelTerms) -> Self {
        self.terms = terms;
        self
    }

    /// How many requests reached the model, failed ones included.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.log(|asked| asked.len())
    }

    /// The requests that reached the model, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.log(|asked| asked.clone())
    }

    fn log<T>(&self, look: impl FnOnce(&mut Vec<Asked>) -> T) -> T {
        look(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn answer(&self, request: &ModelRequest, attempt: u32) -> Result<ModelReply, ModelError> {
        let last = request.messages.last().map(|message| said(message)).unwrap_or_default();
        if let Some((_, reply)) = self.rules.iter().find(|(text, _)| last.contains(text)) {
            return Ok(reply.clone());
        }
        let spoken = request.messages.iter().filter(|message| matches!(***message, Message::Assistant { .. })).count();
        let Some(turn) = self.turns.get(spoken) else {
            if let Some(error) = self.errors.get(attempt.saturating_sub(1) as usize).or(self.errors.last()) {
                return Err(error.clone());
            }
            let turns = self.turns.len();
            let message = format!("the script has {turns} turns; this request needs turn {}: {last}", spoken + 1);
            return Err(ModelError::Rejected(message));
        };
        let error = usize::try_from(attempt).ok().and_then(|n| turn.errors.get(n.saturating_sub(1)));
        error.cloned().map_or_else(|| Ok(turn.reply.clone()), Err)
    }
}

/// The text of a message.
fn said(message: &Message) -> String {
    match message {
        Message::User { text, .. } | Message::Tool { text, .. } => text.clone(),
        Message::Assistant { parts } => {
            ModelReply { parts: parts.clone(), stop: StopReason::EndTurn, model: String::new() }.joined_text()
        }
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn terms(&self) -> ModelTerms {
        self.terms
    }

    async fn call(&self, request: ModelRequest, context: CallContext) -> Result<ModelAnswer, ModelError> {
        let answer = self.answer(&request, context.attempt);
        let asked = Asked { run: context.run, call: context.call, attempt: context.attempt, request };
        self.log(|log| log.push(asked));
        Ok(ModelAnswer { reply: answer?, usage: self.usage })
    }
}
