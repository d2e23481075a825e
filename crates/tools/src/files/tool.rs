//! A tool whose work blocks: it runs beside the async workers, and stops when nobody waits for it any more.

use super::root::Root;
use async_trait::async_trait;
use loopd_kernel::EffectClass;
use loopd_kernel::machine::ToolTerms;
use loopd_kernel::model::ToolOffer;
use loopd_runtime::{CallContext, Tool, ToolError};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Milliseconds after which a call is given up.
const TIMEOUT_MS: u64 = 30_000;

/// Tells blocking work to stop. Whoever awaited it may be gone already.
pub(super) struct Stop {
    until: Instant,
    cancel: tokio_util::sync::CancellationToken,
}

impl Stop {
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

/// What the work is: a function of the root, typed arguments and the wish to stop.
pub(super) type Work<A, R> = fn(&Root, A, &Stop) -> Result<R, ToolError>;

/// A tool over the root.
pub(super) struct BlockingTool<A, R> {
    offer: ToolOffer,
    root: Arc<Root>,
    work: Work<A, R>,
}

impl<A, R> BlockingTool<A, R> {
    pub(super) fn new(offer: ToolOffer, root: &Arc<Root>, work: Work<A, R>) -> Self {
        Self { offer, root: Arc::clone(root), work }
    }
}

impl<A, R> fmt::Debug for BlockingTool<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingTool").field("offer", &self.offer.name).finish_non_exhaustive()
    }
}

/// The offer of a tool with arguments of type `A`.
pub(super) fn offer<A: JsonSchema>(name: &str, description: &str) -> ToolOffer {
    let mut schema = schemars::schema_for!(A);
    // Said of the tool already, and paid for with every request.
    for said in ["$schema", "title", "description"] {
        schema.remove(said);
    }
    ToolOffer { name: name.into(), description: description.into(), parameters: schema.as_value().to_string() }
}

fn parse<A: DeserializeOwned>(args: &str) -> Result<A, ToolError> {
    let text = if args.trim().is_empty() { "{}" } else { args };
    // Serde would take an array for the fields in their order.
    if !text.trim_start().starts_with('{') {
        return Err(ToolError::invalid_args("expected a JSON object"));
    }
    serde_json::from_str(text).map_err(|error| ToolError::invalid_args(error.to_string()))
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
        ToolTerms { class: EffectClass::Read, timeout_ms: TIMEOUT_MS }
    }

    async fn call(&self, args: &str, context: &CallContext) -> Result<String, ToolError> {
        let args: A = parse(args)?;
        let stop = Stop { until: Instant::now() + context.timeout, cancel: context.cancel.clone() };
        let (root, work) = (Arc::clone(&self.root), self.work);
        let done = tokio::task::spawn_blocking(move || {
            let result = work(&root, args, &stop)?;
            serde_json::to_string(&result).map_err(|error| ToolError::did_not_happen("tool.output", error.to_string()))
        });
        // The task is not aborted by anybody: what is left is a panic, which is a bug of ours and not of the Run.
        done.await.map_err(|error| ToolError::did_not_happen("tool.panicked", error.to_string()))?
    }
}
