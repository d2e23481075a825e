//! A store handle whose process dies at a chosen commit: before it, or right after it was durable.

use loopd_kernel::{Digest, Entry, Epoch, RunId, Seq, TimeMs};
use loopd_store::{
    Batch, Claim, Claimed, Counter, Feed, FeedItem, Hints, InboxItem, MemoryStore, Page, Query, QuestionRow, Receipt,
    Record, RunFilter, RunRow, Snapshot, Store, StoreError, WorkerId,
};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Death {
    Before,
    After,
}

pub struct Dying {
    inner: MemoryStore,
    at: u32,
    death: Death,
    commits: AtomicU32,
    dead: AtomicBool,
}

impl Dying {
    pub fn new(inner: MemoryStore, at: u32, death: Death) -> Self {
        Self { inner, at, death, commits: AtomicU32::new(0), dead: AtomicBool::new(false) }
    }

    /// The process dies now.
    pub fn die(&self) {
        self.dead.store(true, Ordering::SeqCst);
    }

    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    fn alive(&self) -> Result<(), StoreError> {
        // A dead process hears nothing; for the code under test that is the same as being fenced.
        if self.is_dead() { Err(StoreError::Fenced(Epoch(0))) } else { Ok(()) }
    }
}

#[async_trait::async_trait]
impl Store for Dying {
    async fn commit(&self, batch: Batch) -> Result<Receipt, StoreError> {
        self.alive()?;
        let dies = self.commits.fetch_add(1, Ordering::SeqCst) + 1 == self.at;
        if dies {
            self.dead.store(true, Ordering::SeqCst);
            if self.death == Death::After {
                self.inner.commit(batch).await?;
            }
            return Err(StoreError::Fenced(Epoch(0)));
        }
        self.inner.commit(batch).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        self.alive()?;
        self.inner.claim(claim).await
    }

    async fn heartbeat(&self, worker: WorkerId, until: TimeMs) -> Result<(), StoreError> {
        self.alive()?;
        self.inner.heartbeat(worker, until).await
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        self.alive()?;
        self.inner.run(run).await
    }

    async fn runs(&self, filter: RunFilter) -> Result<Page<RunRow>, StoreError> {
        self.inner.runs(filter).await
    }

    async fn entries(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.alive()?;
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
        self.inner.feed(feed, after, limit).await
    }

    async fn feed_heads(&self, feeds: &[Feed]) -> Result<Vec<u64>, StoreError> {
        self.inner.feed_heads(feeds).await
    }

    async fn counter(&self, counter: Counter) -> Result<u64, StoreError> {
        self.inner.counter(counter).await
    }

    fn hints(&self) -> Hints {
        self.inner.hints()
    }
}
