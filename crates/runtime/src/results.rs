//! Earlier results of a Run: read from its Journal, for the tool by which a model reads what a request left out.

use crate::ports::{CallContext, Results, Tool, ToolError};
use async_trait::async_trait;
use loopd_kernel::entry::Kind;
use loopd_kernel::machine::ToolTerms;
use loopd_kernel::model::ToolOffer;
use loopd_kernel::question::Resolution;
use loopd_kernel::record::{Record, Settlement};
use loopd_kernel::transcript::{READ_BYTES, read_result_offer};
use loopd_kernel::{CallId, EffectClass, Entry, Outcome, RunId, Seq};
use loopd_store::Store;
use serde::Deserialize;
use std::sync::{Arc, LazyLock};

const PAGE: usize = 1024;

/// Bytes that one use of the tool returns at most.
const MOST: usize = 64 * 1024;

/// The results in the Journal of one Run.
pub struct JournalResults {
    pub store: Arc<dyn Store>,
    pub run: RunId,
}

#[async_trait]
impl Results for JournalResults {
    async fn output(&self, call: CallId) -> Result<Option<String>, ToolError> {
        let mut after = Seq(0);
        loop {
            let page = self.store.entries(self.run, after, PAGE).await;
            let page = page.map_err(|error| ToolError::did_not_happen("tool.store", error.to_string()))?;
            let Some(last) = page.last() else { return Ok(None) };
            after = last.seq;
            if let Some(output) = page.iter().find_map(|entry| landed(entry, call)) {
                return Ok(Some(output));
            }
        }
    }
}

/// The output of `call`, when this Entry holds it.
fn landed(entry: &Entry, call: CallId) -> Option<String> {
    if !matches!(entry.kind, Kind::Settled | Kind::Resolved | Kind::ChildEnded) {
        return None;
    }
    let whole = || String::from_utf8(entry.payload.clone()).ok();
    match Record::decode(entry.kind, &entry.record).ok()? {
        Record::Settled(settled) if settled.call == call => match settled.how {
            Settlement::Landed | Settlement::Failed | Settlement::Denied => whole(),
            Settlement::Cancelled | Settlement::Unknown => None,
        },
        Record::ChildEnded(ended) if ended.call == call && matches!(ended.outcome, Outcome::Completed { .. }) => {
            whole()
        }
        Record::Resolved(resolved) if resolved.call == call => match resolved.resolution {
            Resolution::Landed { output } => Some(output),
            Resolution::Failed { .. } | Resolution::Unknown { .. } | Resolution::Retry => None,
        },
        _ => None,
    }
}

/// The tool.
pub fn read_result() -> &'static Arc<dyn Tool> {
    static TOOL: LazyLock<Arc<dyn Tool>> =
        LazyLock::new(|| Arc::new(ReadResult { offer: read_result_offer(MOST as u64) }));
    &TOOL
}

struct ReadResult {
    offer: ToolOffer,
}

#[derive(Deserialize)]
struct Args {
    call: String,
    #[serde(default)]
    from: usize,
    bytes: Option<usize>,
}

#[async_trait]
impl Tool for ReadResult {
    fn offer(&self) -> &ToolOffer {
        &self.offer
    }

    fn terms(&self) -> ToolTerms {
        ToolTerms { class: EffectClass::Read, timeout_ms: 30_000 }
    }

    async fn call(&self, _: &str, _: &CallContext) -> Result<String, ToolError> {
        Err(ToolError::did_not_happen("tool.results", "there are no earlier results here"))
    }

    async fn call_with(&self, args: &str, _: &CallContext, earlier: &dyn Results) -> Result<String, ToolError> {
        let args: Args = serde_json::from_str(args).map_err(|error| ToolError::invalid_args(error.to_string()))?;
        let call: CallId = args
            .call
            .parse()
            .map_err(|_| ToolError::invalid_args("`call` is a call as the line names it, for example call-12"))?;
        let Some(output) = earlier.output(call).await? else {
            let message = format!("{call} has no result in this run");
            return Err(ToolError::did_not_happen("tool.no_result", message));
        };
        part(&output, args.from, args.bytes.unwrap_or(READ_BYTES as usize))
    }
}

/// The bytes from `from`, at most `bytes` of them, widened to whole characters, with their place in the whole.
fn part(output: &str, from: usize, bytes: usize) -> Result<String, ToolError> {
    if from >= output.len() {
        let message = format!("the result has {} bytes; `from` is {from}", output.len());
        return Err(ToolError::invalid_args(message));
    }
    let begin = output.floor_char_boundary(from);
    let end = output.ceil_char_boundary(from.saturating_add(bytes.clamp(1, MOST)).min(output.len()));
    let text = output.get(begin..end).unwrap_or_default();
    Ok(format!("[bytes {begin} to {end} of {}]\n{text}", output.len()))
}
