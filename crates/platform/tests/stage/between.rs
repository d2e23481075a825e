//! A store in which something happens between a decision and its commit.

use async_trait::async_trait;
use loopd_kernel::entry::Entry;
use loopd_kernel::{Digest, RunId, Seq, TimeMs};
use loopd_store::{
    Batch, Claim, Claimed, Counter, Feed, FeedItem, Hints, InboxItem, MemoryStore, Page, Query, QuestionRow, Receipt,
    Record, RunFilter, RunRow, Snapshot, Store, StoreError, WorkerId,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;

type Happening = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Something happens once, before the first commit that is meant.
pub struct Between {
    inner: MemoryStore,
    meant: fn(&Batch) -> bool,
    happening: Mutex<Option<Happening>>,
}

impl Between {
    pub fn new(
        inner: &MemoryStore,
        meant: fn(&Batch) -> bool,
        happening: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self { inner: inner.clone(), meant, happening: Mutex::new(Some(Box::pin(happening))) }
    }

    pub fn has_happened(&self) -> bool {
        self.happening.lock().unwrap().is_none()
    }
}

#[async_trait]
impl Store for Between {
    async fn commit(&self, batch: Batch) -> Result<Receipt, StoreError> {
        if (self.meant)(&batch) {
            let happening = self.happening.lock().unwrap().take();
            if let Some(happening) = happening {
                happening.await;
            }
        }
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
