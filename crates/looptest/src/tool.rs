//! A tool that counts what reaches it.

use crate::fail::fail;
use async_trait::async_trait;
use loopd_kernel::effect::EffectKey;
use loopd_kernel::machine::ToolTerms;
use loopd_kernel::model::ToolOffer;
use loopd_kernel::{CallId, EffectClass, RunId};
use loopd_runtime::{CallContext, Tool, ToolError};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A call that reached the tool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// The Run.
    pub run: RunId,
    /// The Call.
    pub call: CallId,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// The stable identity of the effect.
    pub key: EffectKey,
    /// The arguments, exactly.
    pub args: String,
}

type Answer = dyn Fn(&str) -> Result<String, ToolError> + Send + Sync;

/// A tool made of a function from arguments to output, both text. Clones share their count, so that a test can keep one and
/// give the other away.
#[derive(Clone)]
pub struct CountingTool {
    offer: ToolOffer,
    terms: ToolTerms,
    answer: Arc<Answer>,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl fmt::Debug for CountingTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountingTool").field("name", &self.offer.name).finish_non_exhaustive()
    }
}

impl CountingTool {
    /// A tool that answers with what `answer` returns.
    #[must_use]
    pub fn new(
        name: &str,
        class: EffectClass,
        answer: impl Fn(&str) -> Result<String, ToolError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            offer: ToolOffer {
                name: name.into(),
                description: format!("The test double of {name}."),
                parameters: r#"{"type":"object"}"#.into(),
            },
            terms: ToolTerms { class, timeout_ms: 60_000 },
            answer: Arc::new(answer),
            sent: Arc::default(),
        }
    }

    /// A tool that always answers with `output`.
    #[must_use]
    pub fn returning(name: &str, class: EffectClass, output: impl Into<String>) -> Self {
        let output = output.into();
        Self::new(name, class, move |_| Ok(output.clone()))
    }

    /// Sets the JSON Schema of the arguments.
    #[must_use]
    pub fn parameters(mut self, schema: impl fmt::Display) -> Self {
        self.offer.parameters = schema.to_string();
        self
    }

    /// The calls that reached it, in order.
    #[must_use]
    pub fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many calls reached it.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.sent().len()
    }

    /// Exactly so many calls reached it.
    ///
    /// # Panics
    /// When it was another number.
    #[track_caller]
    pub fn expect_calls(&self, expected: usize) -> &Self {
        let sent = self.sent();
        if sent.len() != expected {
            let name = &self.offer.name;
            fail(format!("expected {expected} calls of {name}, and there were {}\n{}", sent.len(), listed(&sent)));
        }
        self
    }

    /// No effect was asked for twice: what has to hold of a tool of class `Once`, whatever crashed.
    ///
    /// # Panics
    /// When one was.
    #[track_caller]
    pub fn expect_no_effect_twice(&self) -> &Self {
        let sent = self.sent();
        let mut keys: Vec<_> = sent.iter().map(|sent| (sent.run, sent.key.0)).collect();
        keys.sort_unstable();
        if keys.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
            fail(format!("the same effect of {} was asked for twice\n{}", self.offer.name, listed(&sent)));
        }
        self
    }
}

fn listed(sent: &[Sent]) -> String {
    let line = |sent: &Sent| {
        let args = loopd_fixture::excerpt::line(&sent.args, 120);
        format!("  {} {} attempt {} key {} {args}\n", sent.run, sent.call, sent.attempt, sent.key.0.short())
    };
    sent.iter().map(line).collect()
}

#[async_trait]
impl Tool for CountingTool {
    fn offer(&self) -> &ToolOffer {
        &self.offer
    }

    fn terms(&self) -> ToolTerms {
        self.terms
    }

    async fn call(&self, args: &str, context: &CallContext) -> Result<String, ToolError> {
        let sent = Sent {
            run: context.run,
            call: context.call,
            attempt: context.attempt,
            key: context.key,
            args: args.into(),
        };
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).push(sent);
        (self.answer)(args)
    }
}
