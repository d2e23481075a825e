//! A store in memory that counts what is asked of it.

use loopd_kernel::{Digest, Entry, RunId, Seq, TimeMs};
use loopd_store::{
    Batch, Claim, Claimed, Counter, Feed, FeedItem, Hint, Hints, InboxItem, MemoryStore, Page, Query, QuestionRow,
    Receipt, Record, RunFilter, RunRow, Snapshot, Store, StoreError, WorkerId,
};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::broadcast;

#[derive(Default)]
pub struct Watched {
    inner: MemoryStore,
    /// What is heard instead of hints.
    silence: Option<broadcast::Sender<Hint>>,
    commits: AtomicU64,
    reads: AtomicU64,
}

impl Watched {
    /// It hears no hints, as if all of them were lost.
    pub fn deaf() -> Self {
        Self { silence: Some(broadcast::Sender::new(1)), ..Self::default() }
    }

    /// How often something was to be written.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    /// How often a part of a Feed was read.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }
}

#[async_trait::async_trait]
impl Store for Watched {
    async fn commit(&self, batch: Batch) -> Result<Receipt, StoreError> {
        self.commits.fetch_add(1, Ordering::SeqCst);
        self.inner.commit(batch).await
    }
    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        self.inner.claim(claim).await
    }
    async fn heartbeat(&self, worker: WorkerId, until: TimeMs) -> Result<(), StoreError> {
        self.inner.heartbeat(worker, until).await
    }
    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        self.inner.run(run).await
    }
    async fn runs(&self, filter: RunFilter) -> Result<Page<RunRow>, StoreError> {
        self.inner.runs(filter).await
    }
    async fn entries(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.inner.entries(run, after, limit).await
    }
    async fn snapshot(&self, run: RunId) -> Result<Option<Snapshot>, StoreError> {
        self.inner.snapshot(run).await
    }
    async fn inbox(&self, run: RunId, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
        self.inner.inbox(run, limit).await
    }
    async fn questions(&self, run: Option<RunId>, limit: usize) -> Result<Vec<QuestionRow>, StoreError> {
        self.inner.questions(run, limit).await
    }
    async fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.blob(digest).await
    }
    async fn next_wake(&self) -> Result<Option<TimeMs>, StoreError> {
        self.inner.next_wake().await
    }
    async fn records(&self, query: Query) -> Result<Vec<Record>, StoreError> {
        self.inner.records(query).await
    }
    async fn feed(&self, feed: Feed, after: u64, limit: usize) -> Result<Vec<FeedItem>, StoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.feed(feed, after, limit).await
    }
    async fn feed_heads(&self, feeds: &[Feed]) -> Result<Vec<u64>, StoreError> {
        self.inner.feed_heads(feeds).await
    }
    async fn counter(&self, counter: Counter) -> Result<u64, StoreError> {
        self.inner.counter(counter).await
    }
    fn hints(&self) -> Hints {
        match &self.silence {
            Some(silence) => silence.subscribe(),
            None => self.inner.hints(),
        }
    }
}
