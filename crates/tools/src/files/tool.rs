//! A tool whose work blocks: it runs beside the async workers, and stops when nobody waits for it any more.

use super::root::Root;
use crate::args::parse;
use async_trait::async_trait;
use loopd_kernel::machine::ToolTerms;
use loopd_kernel::model::ToolOffer;
use loopd_kernel::{EffectClass, EffectKey};
use loopd_runtime::{CallContext, ProbeAnswer, Tool, ToolError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Milliseconds after which a call that only reads is given up.
const READ_TIMEOUT_MS: u64 = 30_000;

/// Milliseconds after which a call that writes is given up. Recovery waits as long before it believes that nothing
/// was written.
const WRITE_TIMEOUT_MS: u64 = 10_000;

/// How late a write that was given up may still land: the last look at the time is right before the renaming.
const LANDING_BOUND: Duration = Duration::from_secs(2);

/// Tells blocking work to stop. Whoever awaited it may be gone already.
pub(super) struct Stop {
    until: Instant,
    cancel: CancellationToken,
}

impl Stop {
    /// Goes on however long it takes.
    #[cfg(test)]
    pub(super) fn never() -> Self {
        Self { until: Instant::now() + Duration::from_secs(3600), cancel: CancellationToken::new() }
    }

    /// An error once nobody waits any more.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        if self.cancel.is_cancelled() {
            return Err(ToolError::did_not_happen("tool.cancelled", "nobody waits for the result any more"));
        }
        if Instant::now() >= self.until {
            return Err(ToolError::did_not_happen("tool.timeout", "it took too long; ask for less at once"));
        }
        Ok(())
    }
}

/// What the work knows of the Call that it is done for.
pub(super) struct Attempt {
    pub(super) stop: Stop,
    /// The same in every attempt of the Call, and in no other Call.
    pub(super) key: EffectKey,
}

/// What the work is: a function of the root, typed arguments and the attempt.
pub(super) type Work<A, R> = fn(&Root, A, &Attempt) -> Result<R, ToolError>;

/// Finds out whether the work has been done. It changes nothing.
pub(super) type Look<A> = fn(&Root, A, &Attempt) -> ProbeAnswer;

/// A tool over the root.
pub(super) struct BlockingTool<A, R> {
    offer: ToolOffer,
    class: EffectClass,
    root: Arc<Root>,
    work: Work<A, R>,
    look: Option<Look<A>>,
}

impl<A, R> BlockingTool<A, R> {
    pub(super) fn new(offer: ToolOffer, class: EffectClass, root: &Arc<Root>, work: Work<A, R>) -> Self {
        Self { offer, class, root: Arc::clone(root), work, look: None }
    }

    /// With a way to ask whether it has happened.
    pub(super) fn probed_by(self, look: Look<A>) -> Self {
        Self { look: Some(look), ..self }
    }
}

impl<A, R> fmt::Debug for BlockingTool<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingTool").field("offer", &self.offer.name).finish_non_exhaustive()
    }
}

/// Runs `work` beside the async workers. When this future is dropped, the work is told to stop.
async fn beside<T: Send + 'static>(
    context: &CallContext,
    work: impl FnOnce(&Attempt) -> T + Send + 'static,
) -> Result<T, String> {
    let cancel = context.cancel.child_token();
    let _dropped = cancel.clone().drop_guard();
    let attempt = Attempt { stop: Stop { until: Instant::now() + context.timeout, cancel }, key: context.key };
    // The task is not aborted by anybody: what is left is a panic, which is a bug of ours and not of the Run.
    tokio::task::spawn_blocking(move || work(&attempt)).await.map_err(|error| error.to_string())
}

#[async_trait]
impl<A, R> Tool for BlockingTool<A, R>
where
    A: DeserializeOwned + Send + 'static,
    R: Serialize + Send + 'static,
{
    fn offer(&self) -> &ToolOffer {
        &self.offer
    }

    fn terms(&self) -> ToolTerms {
        let timeout_ms = if self.class.may_be_cut() { READ_TIMEOUT_MS } else { WRITE_TIMEOUT_MS };
        ToolTerms { class: self.class, timeout_ms }
    }

    fn landing_bound(&self) -> Option<Duration> {
        self.look.map(|_| LANDING_BOUND)
    }

    async fn probe(&self, args: &str, context: &CallContext) -> ProbeAnswer {
        let Some(look) = self.look else { return ProbeAnswer::Unclear("this tool cannot look".into()) };
        let args: A = match parse(args) {
            Ok(args) => args,
            Err(error) => return ProbeAnswer::Unclear(error.to_string()),
        };
        let root = Arc::clone(&self.root);
        beside(context, move |attempt| look(&root, args, attempt)).await.unwrap_or_else(ProbeAnswer::Unclear)
    }

    async fn call(&self, args: &str, context: &CallContext) -> Result<String, ToolError> {
        let args: A = parse(args)?;
        let (root, work) = (Arc::clone(&self.root), self.work);
        // What only reads has changed nothing, however it ended.
        let broke = if self.class.may_be_cut() { ToolError::did_not_happen } else { ToolError::in_doubt };
        let done = beside(context, move |attempt| {
            let result = work(&root, args, attempt)?;
            serde_json::to_string(&result).map_err(|error| broke("tool.output".to_owned(), error.to_string()))
        });
        done.await.map_err(|error| broke("tool.panicked".to_owned(), error))?
    }
}
