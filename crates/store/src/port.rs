//! The port: commit, claim and heartbeat to write; a handful of reads.

use crate::batch::Batch;
use crate::error::StoreError;
use crate::records::{Counter, Feed, FeedItem, Query, Record};
use crate::rows::{InboxItem, QuestionRow, RunRow, RunStatus, Snapshot, WorkerId};
use async_trait::async_trait;
use loopd_kernel::{Digest, Entry, RunId, Seq, TimeMs};
use tokio::sync::broadcast;

/// Proof that a Batch is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// How many Batches shared the flush, this one included.
    pub group: u32,
}

/// Which Runs a worker wants to drive.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The worker.
    pub worker: WorkerId,
    /// Now.
    pub now: TimeMs,
    /// Runs that it can drive: those that one of these fits; empty means any.
    pub loops: Vec<Runnable>,
    /// At most this many.
    pub limit: usize,
    /// Only this Run, and also when nothing is due for it (not when it is sealed, and not when a live
    /// other worker drives it).
    pub only: Option<RunId>,
}

/// Runs of a Loop that a worker can drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runnable {
    /// The Loop's name.
    pub loop_name: String,
    /// Only Runs recorded under this major version: the part of [`RunRow::version`] before its first dot. A Run
    /// without a version has not begun, and fits every one.
    pub major: Option<String>,
    /// Only Runs recorded under exactly this version, or that have not begun.
    pub version: Option<String>,
    /// Only Runs with exactly this definition.
    pub definition: Option<Digest>,
}

impl Runnable {
    /// Every Run of this Loop.
    #[must_use]
    pub fn any(loop_name: impl Into<String>) -> Self {
        Self { loop_name: loop_name.into(), major: None, version: None, definition: None }
    }

    /// Whether the Run is one of them.
    #[must_use]
    pub fn fits(&self, row: &RunRow) -> bool {
        let major = row.version.split('.').next();
        let version = |version: &String| *version == row.version;
        self.loop_name == row.loop_name
            && (row.version.is_empty()
                || (self.major.as_ref().is_none_or(|wanted| major == Some(wanted.as_str()))
                    && self.version.as_ref().is_none_or(version)))
            && self.definition.is_none_or(|wanted| {
                // A child that named no definition takes whichever there is.
                let unnamed = row.version.is_empty() && row.definition == Digest::sha256(&[]);
                wanted == row.definition || unnamed
            })
    }
}

/// A Run that now belongs to the claiming worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The row after the claim: epoch raised by one, worker set, status `Running` unless it is parked.
    pub row: RunRow,
    /// True when it was running under a worker that is gone (or under an earlier claim of this worker):
    /// open Calls have to be recovered.
    pub crashed: bool,
}

/// Which Runs a list shows.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only these statuses; empty means all.
    pub statuses: Vec<RunStatus>,
    /// Only this Loop.
    pub loop_name: Option<String>,
    /// Only the children of this Run.
    pub parent: Option<RunId>,
    /// Only the Run with this admission key.
    pub admission: Option<(String, String)>,
    /// Older than this Run (a cursor: the last Run of the page before).
    pub before: Option<RunId>,
    /// At most this many.
    pub limit: usize,
}

/// A page, newest first, and the cursor of the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// The cursor for the next page, when there is one.
    pub next: Option<RunId>,
}

impl Page<RunRow> {
    /// The page of at most `limit` Runs, from the first `limit + 1` of them: the last one only says that
    /// there is another page.
    #[must_use]
    pub fn of_rows(mut rows: Vec<RunRow>, limit: usize) -> Self {
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = if more { rows.last().map(|row| row.run) } else { None };
        Self { items: rows, next }
    }
}

impl RunFilter {
    /// Whether a list shows the row, wherever its pages begin and end. For stores.
    #[must_use]
    pub fn shows(&self, row: &RunRow) -> bool {
        let admitted = |(tenant, key): &(String, String)| *tenant == row.tenant && row.admission.as_ref() == Some(key);
        (self.statuses.is_empty() || self.statuses.contains(&row.status))
            && self.loop_name.as_ref().is_none_or(|name| *name == row.loop_name)
            && self.parent.is_none_or(|parent| row.parent == Some(parent))
            && self.admission.as_ref().is_none_or(admitted)
    }
}

/// Something may have changed. A hint may be lost or repeated: the rows are the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// Entries of this Run.
    Run(RunId),
    /// The inbox of this Run.
    Inbox(RunId),
    /// Items of this Feed.
    Feed(Feed),
    /// Another process wrote something.
    Foreign,
}

/// A stream of hints.
pub type Hints = broadcast::Receiver<Hint>;

/// A store of Journals and of what surrounds them.
///
/// # Guarantees
/// After `commit` returned a [`Receipt`], the whole Batch survives `kill -9` and power loss (the
/// in-memory store: as long as the process lives). Concurrent Batches may share one flush; a Batch that
/// conflicts leaves nothing of itself and everything of its neighbours.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Commits a Batch, all or nothing.
    ///
    /// A crash before it: nothing. During it: all or nothing, to be read back. After it: all.
    ///
    /// # Errors
    /// [`StoreError`]; only `Ambiguous` leaves open whether it was written.
    async fn commit(&self, batch: Batch) -> Result<Receipt, StoreError>;

    /// Takes over Runs that are due: running under a worker whose lease lapsed, suspended with an inbox
    /// item or a timer due, or parked with an inbox item that moves it. A crash after the claim is
    /// repaired by the next claim once this worker's lease has lapsed. A worker that never announced
    /// itself by a heartbeat counts as lapsed. Longest untouched Runs come first, so that a small limit
    /// starves nobody.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError>;

    /// Extends the worker's lease until `until`. The first call announces the worker.
    ///
    /// # Errors
    /// `Fenced` when another process has taken the driver role.
    async fn heartbeat(&self, worker: WorkerId, until: TimeMs) -> Result<(), StoreError>;

    /// The Run's row.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError>;

    /// A page of Runs, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn runs(&self, filter: RunFilter) -> Result<Page<RunRow>, StoreError>;

    /// At most `limit` Entries after `after`, in order.
    ///
    /// # Errors
    /// `Corrupt` names the first Entry that does not read.
    async fn entries(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Entry>, StoreError>;

    /// The Run's snapshot.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn snapshot(&self, run: RunId) -> Result<Option<Snapshot>, StoreError>;

    /// The Run's waiting inbox items, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn inbox(&self, run: RunId, limit: usize) -> Result<Vec<InboxItem>, StoreError>;

    /// Open Questions, oldest first; of one Run, or of all.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn questions(&self, run: Option<RunId>, limit: usize) -> Result<Vec<QuestionRow>, StoreError>;

    /// A content-addressed body.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError>;

    /// The earliest `wake_at` of all suspended Runs that no worker drives: those that a claim at that
    /// moment would take.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn next_wake(&self) -> Result<Option<TimeMs>, StoreError>;

    /// The Records that the query asks for, all as of one moment and without their words.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn records(&self, query: Query) -> Result<Vec<Record>, StoreError>;

    /// At most `limit` items of a Feed after a position, in order. Items that were erased are missing at the front. It
    /// ends early with the item that brings the bodies to [`FEED_BYTES`] or more: whoever is given that much, or `limit`
    /// items, asks for what follows.
    ///
    /// [`FEED_BYTES`]: crate::FEED_BYTES
    ///
    /// # Errors
    /// [`StoreError`].
    async fn feed(&self, feed: Feed, after: u64, limit: usize) -> Result<Vec<FeedItem>, StoreError>;

    /// The last position that each of these Feeds has given, in this order; 0 where nothing was published yet.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn feed_heads(&self, feeds: &[Feed]) -> Result<Vec<u64>, StoreError>;

    /// What a counter stands at; 0 when nobody has counted.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn counter(&self, counter: Counter) -> Result<u64, StoreError>;

    /// Hints from now on.
    fn hints(&self) -> Hints;
}
