//! A store in memory that counts what is asked of it.

use loopd_store::{Batch, Feed, FeedItem, Hint, Hints, MemoryStore, Receipt, Store, StoreError, Through};
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
impl Through for Watched {
    fn through(&self) -> &dyn Store {
        &self.inner
    }

    async fn commit(&self, batch: Batch) -> Result<Receipt, StoreError> {
        self.commits.fetch_add(1, Ordering::SeqCst);
        self.inner.commit(batch).await
    }

    async fn feed(&self, feed: Feed, after: u64, limit: usize) -> Result<Vec<FeedItem>, StoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.feed(feed, after, limit).await
    }

    fn hints(&self) -> Hints {
        match &self.silence {
            Some(silence) => silence.subscribe(),
            None => self.inner.hints(),
        }
    }
}
