//! How long a store that is out of reach is waited for.

use async_trait::async_trait;
use loopd_kernel::{Digest, Entry, RunId, Seq, TimeMs};
use loopd_store::{
    Batch, Claim, Claimed, Counter, Feed, FeedItem, Hints, InboxItem, Page, Query, QuestionRow, Receipt, Record,
    RunFilter, RunRow, Snapshot, Store, StoreError, WorkerId,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The first pause between two tries; it doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(5);

/// The longest pause: the store is noticed at most this long after it is back.
const LONGEST: Duration = Duration::from_secs(1);

/// How long a store that does not answer is asked again: while work is under way for long, since what is in
/// memory is worth it; once the worker stops for no longer than the grace time.
#[derive(Debug, Clone)]
pub struct Patience {
    /// The longest time.
    pub limit: Duration,
    /// The worker is about to stop.
    pub drain: CancellationToken,
    /// The longest time after that.
    pub grace: Duration,
}

impl Patience {
    /// Begins to count.
    #[must_use]
    pub fn begin(&self) -> Waiting<'_> {
        Waiting { patience: self, until: Instant::now() + self.limit, pause: FIRST, drains: false }
    }

    /// The same, for at most `limit`.
    #[must_use]
    pub fn at_most(&self, limit: Duration) -> Self {
        Self { limit: self.limit.min(limit), ..self.clone() }
    }
}

/// Patience that runs out.
#[derive(Debug)]
pub struct Waiting<'a> {
    patience: &'a Patience,
    until: Instant,
    pause: Duration,
    drains: bool,
}

impl Waiting<'_> {
    /// Waits before the next try. False: it was the last one.
    pub async fn pause(&mut self) -> bool {
        if !self.drains {
            tokio::select! {
                () = tokio::time::sleep(self.pause) => {}
                () = self.patience.drain.cancelled() => {
                    self.drains = true;
                    self.until = self.until.min(Instant::now() + self.patience.grace);
                    self.pause = FIRST;
                }
            }
        }
        if self.drains {
            tokio::time::sleep(self.pause).await;
        }
        self.pause = (self.pause * 2).min(LONGEST);
        Instant::now() <= self.until
    }
}

/// A store whose reads wait until it is in reach. Commits pass: what became of one is for its caller to find out.
pub struct PatientStore {
    inner: Arc<dyn Store>,
    patience: Patience,
}

impl PatientStore {
    /// `inner`, read with patience.
    pub fn new(inner: Arc<dyn Store>, patience: Patience) -> Self {
        Self { inner, patience }
    }

    async fn read<T, F>(&self, ask: impl Fn() -> F + Send + Sync) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        let mut waiting = self.patience.begin();
        loop {
            match ask().await {
                Err(StoreError::Unavailable(_)) if waiting.pause().await => {}
                answer => return answer,
            }
        }
    }
}

#[async_trait]
impl Store for PatientStore {
    async fn commit(&self, batch: Batch) -> Result<Receipt, StoreError> {
        self.inner.commit(batch).await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        self.inner.claim(claim).await
    }

    async fn heartbeat(&self, worker: WorkerId, until: TimeMs) -> Result<(), StoreError> {
        self.inner.heartbeat(worker, until).await
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        self.read(|| self.inner.run(run)).await
    }

    async fn runs(&self, filter: RunFilter) -> Result<Page<RunRow>, StoreError> {
        self.read(|| self.inner.runs(filter.clone())).await
    }

    async fn entries(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.read(|| self.inner.entries(run, after, limit)).await
    }

    async fn snapshot(&self, run: RunId) -> Result<Option<Snapshot>, StoreError> {
        self.read(|| self.inner.snapshot(run)).await
    }

    async fn inbox(&self, run: RunId, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
        self.read(|| self.inner.inbox(run, limit)).await
    }

    async fn questions(&self, run: Option<RunId>, limit: usize) -> Result<Vec<QuestionRow>, StoreError> {
        self.read(|| self.inner.questions(run, limit)).await
    }

    async fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|| self.inner.blob(digest)).await
    }

    async fn next_wake(&self) -> Result<Option<TimeMs>, StoreError> {
        self.inner.next_wake().await
    }

    async fn records(&self, query: Query) -> Result<Vec<Record>, StoreError> {
        self.read(|| self.inner.records(query.clone())).await
    }

    async fn feed(&self, feed: Feed, after: u64, limit: usize) -> Result<Vec<FeedItem>, StoreError> {
        self.read(|| self.inner.feed(feed, after, limit)).await
    }

    async fn feed_heads(&self, feeds: &[Feed]) -> Result<Vec<u64>, StoreError> {
        self.read(|| self.inner.feed_heads(feeds)).await
    }

    async fn counter(&self, counter: Counter) -> Result<u64, StoreError> {
        self.read(|| self.inner.counter(counter.clone())).await
    }

    fn hints(&self) -> Hints {
        self.inner.hints()
    }
}
