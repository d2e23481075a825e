//! Stores that stand in front of another one.

use crate::{
    Batch, Claim, Claimed, Counter, Feed, FeedItem, Hints, InboxItem, Page, Query, QuestionRow, Receipt, Record,
    RunFilter, RunRow, Snapshot, Store, StoreError, WorkerId,
};
use async_trait::async_trait;
use loopd_kernel::{Digest, Entry, RunId, Seq, TimeMs};

/// A [`Store`] that lets through to another one whatever it has no method of its own for.
///
/// For doubles and watchers that change one thing: what they do not name goes on as it came.
#[async_trait]
pub trait Through: Send + Sync + 'static {
    /// The store behind it.
    fn through(&self) -> &dyn Store;

    /// [`Store::commit`].
    async fn commit(&self, batch: Batch) -> Result<Receipt, StoreError> {
        self.through().commit(batch).await
    }

    /// [`Store::claim`].
    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        self.through().claim(claim).await
    }

    /// [`Store::heartbeat`].
    async fn heartbeat(&self, worker: WorkerId, until: TimeMs) -> Result<(), StoreError> {
        self.through().heartbeat(worker, until).await
    }

    /// [`Store::run`].
    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        self.through().run(run).await
    }

    /// [`Store::runs`].
    async fn runs(&self, filter: RunFilter) -> Result<Page<RunRow>, StoreError> {
        self.through().runs(filter).await
    }

    /// [`Store::entries`].
    async fn entries(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.through().entries(run, after, limit).await
    }

    /// [`Store::snapshot`].
    async fn snapshot(&self, run: RunId) -> Result<Option<Snapshot>, StoreError> {
        self.through().snapshot(run).await
    }

    /// [`Store::inbox`].
    async fn inbox(&self, run: RunId, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
        self.through().inbox(run, limit).await
    }

    /// [`Store::questions`].
    async fn questions(&self, run: Option<RunId>, limit: usize) -> Result<Vec<QuestionRow>, StoreError> {
        self.through().questions(run, limit).await
    }

    /// [`Store::blob`].
    async fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.through().blob(digest).await
    }

    /// [`Store::next_wake`].
    async fn next_wake(&self) -> Result<Option<TimeMs>, StoreError> {
        self.through().next_wake().await
    }

    /// [`Store::records`].
    async fn records(&self, query: Query) -> Result<Vec<Record>, StoreError> {
        self.through().records(query).await
    }

    /// [`Store::feed`].
    async fn feed(&self, feed: Feed, after: u64, limit: usize) -> Result<Vec<FeedItem>, StoreError> {
        self.through().feed(feed, after, limit).await
    }

    /// [`Store::feed_heads`].
    async fn feed_heads(&self, feeds: &[Feed]) -> Result<Vec<u64>, StoreError> {
        self.through().feed_heads(feeds).await
    }

    /// [`Store::counter`].
    async fn counter(&self, counter: Counter) -> Result<u64, StoreError> {
        self.through().counter(counter).await
    }

    /// [`Store::hints`].
    fn hints(&self) -> Hints {
        self.through().hints()
    }
}

#[async_trait]
impl<T: Through> Store for T {
    async fn commit(&self, batch: Batch) -> Result<Receipt, StoreError> {
        Through::commit(self, batch).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        Through::claim(self, claim).await
    }

    async fn heartbeat(&self, worker: WorkerId, until: TimeMs) -> Result<(), StoreError> {
        Through::heartbeat(self, worker, until).await
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        Through::run(self, run).await
    }

    async fn runs(&self, filter: RunFilter) -> Result<Page<RunRow>, StoreError> {
        Through::runs(self, filter).await
    }

    async fn entries(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Entry>, StoreError> {
        Through::entries(self, run, after, limit).await
    }

    async fn snapshot(&self, run: RunId) -> Result<Option<Snapshot>, StoreError> {
        Through::snapshot(self, run).await
    }

    async fn inbox(&self, run: RunId, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
        Through::inbox(self, run, limit).await
    }

    async fn questions(&self, run: Option<RunId>, limit: usize) -> Result<Vec<QuestionRow>, StoreError> {
        Through::questions(self, run, limit).await
    }

    async fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Through::blob(self, digest).await
    }

    async fn next_wake(&self) -> Result<Option<TimeMs>, StoreError> {
        Through::next_wake(self).await
    }

    async fn records(&self, query: Query) -> Result<Vec<Record>, StoreError> {
        Through::records(self, query).await
    }

    async fn feed(&self, feed: Feed, after: u64, limit: usize) -> Result<Vec<FeedItem>, StoreError> {
        Through::feed(self, feed, after, limit).await
    }

    async fn feed_heads(&self, feeds: &[Feed]) -> Result<Vec<u64>, StoreError> {
        Through::feed_heads(self, feeds).await
    }

    async fn counter(&self, counter: Counter) -> Result<u64, StoreError> {
        Through::counter(self, counter).await
    }

    fn hints(&self) -> Hints {
        Through::hints(self)
    }
}
