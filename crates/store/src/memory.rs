//! The in-memory store: for tests, for simulation, and as the model that other stores are compared with.

mod faults;
mod records;
mod state;

pub use faults::Fault;

use crate::batch::Batch;
use crate::error::StoreError;
use crate::port::{Claim, Claimed, Hint, Hints, Page, Receipt, RunFilter, Store};
use crate::records::{Counter, Feed, FeedItem, Query, Record};
use crate::rows::{InboxItem, QuestionRow, RunRow, Snapshot, WorkerId};
use async_trait::async_trait;
use faults::Policy;
use loopd_kernel::{Digest, Entry, RunId, Seq, TimeMs};
use state::State;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast;

/// How many hints wait for a slow listener before it loses the oldest.
const HINTS: usize = 1024;

/// A [`Store`] in memory. Clones are handles to the same rows.
///
/// # Guarantees
/// Those of [`Store`], for as long as one handle lives. Every Batch is a group of its own.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    role: Role,
    faults: Option<Arc<Mutex<Policy>>>,
}

struct Shared {
    state: Mutex<State>,
    hints: broadcast::Sender<Hint>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Driver,
    Client,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        let shared = Shared { state: Mutex::default(), hints: broadcast::Sender::new(HINTS) };
        Self { shared: Arc::new(shared), role: Role::Driver, faults: None }
    }

    /// An empty store whose commits fail as `policy` says; see [`MemoryStore::faulty`].
    #[must_use]
    pub fn with_faults(policy: impl FnMut(&Batch) -> Option<Fault> + Send + 'static) -> Self {
        Self::new().faulty(policy)
    }

    /// A handle to the same rows whose commits fail as `policy` says. It is asked once per commit, in the
    /// order in which they arrive; `None` lets the commit through. Other handles are not affected.
    #[must_use]
    pub fn faulty(&self, policy: impl FnMut(&Batch) -> Option<Fault> + Send + 'static) -> Self {
        Self { faults: Some(Arc::new(Mutex::new(Box::new(policy)))), ..self.clone() }
    }

    /// A handle to the same rows whose next commits meet these faults, one each, and then none.
    #[must_use]
    pub fn scripted(&self, faults: impl IntoIterator<Item = Option<Fault>>) -> Self {
        let mut faults = faults.into_iter().collect::<Vec<_>>().into_iter();
        self.faulty(move |_| faults.next().flatten())
    }

    /// A client handle to the same rows: it reads, and adds inbox items.
    #[must_use]
    pub fn client(&self) -> Self {
        Self { role: Role::Client, ..self.clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the state is half changed, so a poisoned lock still guards whole rows.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self, batch: &Batch) -> Option<Fault> {
        let policy = self.faults.as_ref()?;
        policy.lock().unwrap_or_else(PoisonError::into_inner)(batch)
    }

    fn only_driver(&self) -> Result<(), StoreError> {
        match self.role {
            Role::Driver => Ok(()),
            Role::Client => Err(StoreError::ClientOnly),
        }
    }

    fn apply(&self, batch: Batch) -> Result<Receipt, StoreError> {
        let hints = if self.shared.hints.receiver_count() == 0 { Vec::new() } else { batch.hints() };
        self.state().commit(batch)?;
        for hint in hints {
            // Nobody listens: then nobody needs it.
            let _ = self.shared.hints.send(hint);
        }
        Ok(Receipt { group: 1 })
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("role", &self.role).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn commit(&self, batch: Batch) -> Result<Receipt, StoreError> {
        if !batch.is_client_batch() {
            self.only_driver()?;
        }
        match self.fault(&batch) {
            None => self.apply(batch),
            Some(fault) => {
                let error = fault.error(&batch);
                if fault == Fault::AmbiguousCommitted {
                    self.apply(batch)?;
                }
                Err(error)
            }
        }
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        self.only_driver()?;
        Ok(self.state().claim(&claim))
    }

    async fn heartbeat(&self, worker: WorkerId, until: TimeMs) -> Result<(), StoreError> {
        self.only_driver()?;
        self.state().heartbeat(worker, until);
        Ok(())
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        Ok(self.state().run(run))
    }

    async fn runs(&self, filter: RunFilter) -> Result<Page<RunRow>, StoreError> {
        Ok(self.state().runs(&filter))
    }

    async fn entries(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Entry>, StoreError> {
        Ok(self.state().entries(run, after, limit))
    }

    async fn snapshot(&self, run: RunId) -> Result<Option<Snapshot>, StoreError> {
        Ok(self.state().snapshot(run))
    }

    async fn inbox(&self, run: RunId, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
        Ok(self.state().inbox(run, limit))
    }

    async fn questions(&self, run: Option<RunId>, limit: usize) -> Result<Vec<QuestionRow>, StoreError> {
        Ok(self.state().questions(run, limit))
    }

    async fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.state().blob(digest))
    }

    async fn next_wake(&self) -> Result<Option<TimeMs>, StoreError> {
        Ok(self.state().next_wake())
    }

    async fn records(&self, query: Query) -> Result<Vec<Record>, StoreError> {
        Ok(self.state().records.find(&query))
    }

    async fn feed(&self, feed: Feed, after: u64, limit: usize) -> Result<Vec<FeedItem>, StoreError> {
        Ok(self.state().records.feed(feed, after, limit))
    }

    async fn feed_heads(&self, feeds: &[Feed]) -> Result<Vec<u64>, StoreError> {
        let state = self.state();
        Ok(feeds.iter().map(|feed| state.records.head(*feed)).collect())
    }

    async fn counter(&self, counter: Counter) -> Result<u64, StoreError> {
        Ok(self.state().records.counter(&counter))
    }

    fn hints(&self) -> Hints {
        self.shared.hints.subscribe()
    }
}
