//! The ports through which a Run touches the world.

use async_trait::async_trait;
use loopd_kernel::failure::{Disposition, Failure};
pub use loopd_kernel::machine::ProbeAnswer;
use loopd_kernel::machine::{ModelTerms, ToolTerms};
use loopd_kernel::model::{Message, ModelConstants, ModelReply, ToolOffer};
use loopd_kernel::{CallId, EffectKey, RunId, TimeMs, Usage};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What surrounds one attempt of a Call.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The Run.
    pub run: RunId,
    /// The Call.
    pub call: CallId,
    /// The stable identity of the effect: the same over attempts, for targets that remove doubles.
    pub key: EffectKey,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// The attempt is given up after this long.
    pub timeout: Duration,
    /// Cancelled when nobody wants the result any more.
    pub cancel: CancellationToken,
    /// Where streamed text goes; it is for watching only and is never the answer.
    pub deltas: Option<mpsc::UnboundedSender<Delta>>,
}

/// Streamed text of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// The Run.
    pub run: RunId,
    /// The Call.
    pub call: CallId,
    /// The attempt: a new one starts the text afresh.
    pub attempt: u32,
    /// The text.
    pub text: String,
}

/// A provider-neutral request.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The model's name as the runtime knows it.
    pub model: String,
    /// System text, tools and output schema.
    pub constants: Arc<ModelConstants>,
    /// The messages, in order; never empty.
    pub messages: Vec<Arc<Message>>,
    /// The largest number of output tokens.
    pub max_output_tokens: u64,
    /// Temperature in thousandths.
    pub temperature_milli: Option<u32>,
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The reply.
    pub reply: ModelReply,
    /// Usage; `None` when the provider did not say, which is charged at the reservation.
    pub usage: Option<Usage>,
}

/// Why an attempt of a model call failed, divided by what the caller can do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Too many requests; `retry_after` as the provider asked, rounded up.
    #[error("rate limited: {message}")]
    RateLimited {
        /// The provider's words.
        message: String,
        /// How long to wait at least.
        retry_after: Option<Duration>,
    },
    /// It was not reached, or it is overloaded. Nothing was generated.
    #[error("unavailable: {message}")]
    Unavailable {
        /// What happened.
        message: String,
        /// How long to wait at least.
        retry_after: Option<Duration>,
    },
    /// The answer broke off: what came is no answer, and what it cost is known only where `usage` says so.
    #[error("interrupted: {message}")]
    Interrupted {
        /// What happened.
        message: String,
        /// Usage, where the provider had said it already.
        usage: Option<Usage>,
    },
    /// The provider answered with something that is no answer.
    #[error("malformed answer: {message}")]
    Malformed {
        /// What was expected and what came, bounded.
        message: String,
        /// Usage, where the provider said it.
        usage: Option<Usage>,
    },
    /// The provider began to answer and then stopped for good: sending it again would not help, and what came
    /// cost something.
    #[error("stopped: {message}")]
    Stopped {
        /// The provider's words.
        message: String,
        /// Usage, where the provider said it.
        usage: Option<Usage>,
    },
    /// The request is wrong and stays wrong.
    #[error("rejected: {0}")]
    Rejected(String),
    /// The request is larger than the model's window.
    #[error("too large: {0}")]
    TooLarge(String),
    /// The key is missing, wrong, or may not use this model.
    #[error("unauthorised: {0}")]
    Unauthorised(String),
}

impl ModelError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. } | Self::Unavailable { .. } | Self::Interrupted { .. } | Self::Malformed { .. } => {
                true
            }
            Self::Stopped { .. } | Self::Rejected(_) | Self::TooLarge(_) | Self::Unauthorised(_) => false,
        }
    }

    /// The stable code, recorded with the attempt.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::RateLimited { .. } => "model.rate_limited",
            Self::Unavailable { .. } => "model.unavailable",
            Self::Interrupted { .. } => "model.interrupted",
            Self::Malformed { .. } => "model.malformed",
            Self::Stopped { .. } => "model.stopped",
            Self::Rejected(_) => "model.rejected",
            Self::TooLarge(_) => "model.too_large",
            Self::Unauthorised(_) => "model.unauthorised",
        }
    }

    /// What the failed attempt used: zero where the provider certainly generated nothing, unknown else.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        match self {
            Self::RateLimited { .. }
            | Self::Unavailable { .. }
            | Self::Rejected(_)
            | Self::TooLarge(_)
            | Self::Unauthorised(_) => Some(Usage::default()),
            Self::Interrupted { usage, .. } | Self::Malformed { usage, .. } | Self::Stopped { usage, .. } => *usage,
        }
    }

    /// How long the provider asked to wait.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Unavailable { retry_after, .. } => *retry_after,
            Self::Interrupted { .. }
            | Self::Malformed { .. }
            | Self::Stopped { .. }
            | Self::Rejected(_)
            | Self::TooLarge(_)
            | Self::Unauthorised(_) => None,
        }
    }
}

/// A model.
///
/// # Guarantees an implementation gives
/// One `call` sends at most one request: retries belong to the runtime, which records them. An answer is
/// returned only when the provider said that it was complete.
#[async_trait]
pub trait Model: Send + Sync + 'static {
    /// Price, timeout and attempts.
    fn terms(&self) -> ModelTerms;

    /// Where the price of [`Model::terms`] is from, in a few words that name a version or a digest, for example
    /// `genai-prices 0.2.1`. It is recorded with every Call. `None` where the price is unknown or nobody says.
    fn price_source(&self) -> Option<String> {
        None
    }

    /// The most tokens of one call, prompt and reply together; `None` is unknown, and no bound.
    fn context_window(&self) -> Option<u64> {
        None
    }

    /// What shares its limits with others: models of one worker with the same key wait together when one of them is
    /// rate limited, and share their [`Model::max_in_flight`]. An account at a provider is a good key. Without one
    /// this object shares with nobody but its own Calls.
    fn limits_key(&self) -> Option<&str> {
        None
    }

    /// How many Calls are sent at once by one worker; more wait, first come first served. Models that share a
    /// [`Model::limits_key`] should say the same number. `None`: any number.
    fn max_in_flight(&self) -> Option<usize> {
        None
    }

    /// Sends one request.
    ///
    /// # Errors
    /// [`ModelError`].
    async fn call(&self, request: ModelRequest, context: CallContext) -> Result<ModelAnswer, ModelError>;

    /// The same, with the exact bytes of the exchange where they are to be kept with the settlement.
    ///
    /// # Errors
    /// [`ModelError`].
    async fn call_kept(
        &self,
        request: ModelRequest,
        context: CallContext,
    ) -> Result<(ModelAnswer, Option<Exchange>), ModelError> {
        Ok((self.call(request, context).await?, None))
    }
}

/// The bodies of a request and its response, byte for byte. Headers are not in it, and so no key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exchange {
    /// What was sent.
    pub request: Vec<u8>,
    /// What came.
    pub response: Vec<u8>,
}

/// Why a tool failed, and whether the effect happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{failure}")]
pub struct ToolError {
    /// What happened.
    pub failure: Failure,
    /// Whether the effect happened.
    pub disposition: Disposition,
}

impl ToolError {
    /// It certainly did not happen.
    #[must_use]
    pub fn did_not_happen(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { failure: Failure::new(code, message), disposition: Disposition::DidNotHappen }
    }

    /// Nobody can know: a tool that may change the world then asks a person.
    #[must_use]
    pub fn in_doubt(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { failure: Failure::new(code, message), disposition: Disposition::InDoubt }
    }

    /// The arguments do not fit.
    #[must_use]
    pub fn invalid_args(message: impl Into<String>) -> Self {
        Self::did_not_happen("tool.invalid_args", message)
    }
}

/// A tool.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// Name, description and schema, as a model sees them.
    fn offer(&self) -> &ToolOffer;

    /// Effect class and timeout.
    fn terms(&self) -> ToolTerms;

    /// How long the target knows an effect key, for a tool of class `keyed`. Without it an open Call is never
    /// sent again, and a person is asked.
    fn dedup_for(&self) -> Option<Duration> {
        None
    }

    /// How late an attempt that was given up may still land, for a tool of class `probed`: network, queues and the
    /// target's own delays together. Without it "not landed" is never believed, and a person is asked.
    fn landing_bound(&self) -> Option<Duration> {
        None
    }

    /// Asks the target whether the Call with this effect key has happened, for a tool of class `probed`. It must change
    /// nothing, and it may be asked several times.
    async fn probe(&self, args: &str, context: &CallContext) -> ProbeAnswer {
        let (_, _) = (args, context);
        ProbeAnswer::Unclear("this tool cannot ask its target".into())
    }

    /// Calls it with JSON text. The output is text, by convention JSON.
    ///
    /// # Errors
    /// [`ToolError`].
    async fn call(&self, args: &str, context: &CallContext) -> Result<String, ToolError>;

    /// Calls it with what the Run's earlier Calls returned at hand. Only a tool that reads them replaces this.
    ///
    /// # Errors
    /// [`ToolError`].
    async fn call_with(&self, args: &str, context: &CallContext, earlier: &dyn Results) -> Result<String, ToolError> {
        let _ = earlier;
        self.call(args, context).await
    }
}

/// What the Calls of a Run returned, as its Journal holds it.
#[async_trait]
pub trait Results: Send + Sync {
    /// The whole output of a Call that landed; `None` when there is none.
    ///
    /// # Errors
    /// [`ToolError`] when the store cannot be read.
    async fn output(&self, call: CallId) -> Result<Option<String>, ToolError>;
}

/// The clocks. Both must count while the machine is suspended, as far as the machine has such clocks.
pub trait Clock: Send + Sync + 'static {
    /// Now, by the wall clock: what other machines agree on, and what somebody may set.
    fn now(&self) -> TimeMs;

    /// Milliseconds since some fixed moment. It never runs backwards and nobody can set it.
    ///
    /// There is no default: a clock that is derived from [`Clock::now`] would be set with it.
    fn steady_ms(&self) -> u64;
}

/// Randomness: salts and identities.
pub trait Entropy: Send + Sync + 'static {
    /// 32 random bytes.
    fn salt(&self) -> [u8; 32];
}
