//! A store handle whose process dies at a chosen commit: before it, or right after it was durable.

use loopd_kernel::{Entry, Epoch, RunId, Seq, TimeMs};
use loopd_store::{Batch, Claim, Claimed, MemoryStore, Receipt, RunRow, Store, StoreError, Through, WorkerId};
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
impl Through for Dying {
    fn through(&self) -> &dyn Store {
        &self.inner
    }

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

    async fn entries(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.alive()?;
        self.inner.entries(run, after, limit).await
    }
}
