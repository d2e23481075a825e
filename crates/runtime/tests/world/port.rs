//! A worker's own door to the shared in-memory store: it can be paused with its worker, answers late, loses and
//! doubles hints, and counts what was committed.

use loopd_kernel::{Digest, Entry, RunId, Seq, TimeMs};
use loopd_store::{
    Batch, Claim, Claimed, Counter, Feed, FeedItem, Hint, Hints, InboxItem, MemoryStore, Page, Query, QuestionRow,
    Receipt, Record, RunFilter, RunRow, Snapshot, Store, StoreError, WorkerId, Write,
};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::time::Instant;

/// Whatever passes it waits while its worker is paused.
#[derive(Clone)]
pub struct Gate(Arc<Mutex<Instant>>);

impl Gate {
    pub fn open() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    /// A shorter pause does not end a longer one.
    pub fn close_for(&self, pause: Duration) {
        let mut until = self.0.lock().unwrap();
        *until = (*until).max(Instant::now() + pause);
    }

    pub async fn pass(&self) {
        self.pass_at(Instant::now()).await;
    }

    /// The same for somebody who has just looked at the clock.
    async fn pass_at(&self, mut now: Instant) {
        loop {
            let until = *self.0.lock().unwrap();
            if until <= now {
                return;
            }
            tokio::time::sleep_until(until).await;
            now = Instant::now();
        }
    }
}

/// How long the answer to commit number n takes, and how long the whole worker is paused after it.
type Pauses = Box<dyn FnMut(u64) -> (Duration, Duration) + Send>;

/// What becomes of a hint: how often it arrives.
type Echoes = Box<dyn FnMut(Hint) -> usize + Send>;

/// More requests than any worker makes within one millisecond.
const MANY: u32 = 10_000;

pub struct Port {
    inner: MemoryStore,
    pub gate: Gate,
    /// Until when the store knows this worker to be alive.
    pub lease: Arc<AtomicI64>,
    /// Batches with Entries that the store took: steps of the kernel.
    pub steps: Arc<AtomicU64>,
    /// Set when the worker asked the store for ever at one instant.
    pub spins: Arc<AtomicBool>,
    asked: Mutex<(Instant, u32)>,
    /// How long each of the next heartbeats is held up.
    pub slow_beats: Mutex<VecDeque<Duration>>,
    /// While it is set no heartbeat reaches the store.
    pub unheard: Arc<AtomicBool>,
    /// While it is set the store is out of reach: nothing arrives, and everybody hears so at once.
    pub cut: Arc<AtomicBool>,
    commits: AtomicU64,
    pauses: Mutex<Pauses>,
    hints: Option<broadcast::Sender<Hint>>,
}

impl Port {
    pub fn new(inner: MemoryStore) -> Self {
        Self {
            inner,
            gate: Gate::open(),
            lease: Arc::default(),
            steps: Arc::default(),
            spins: Arc::default(),
            asked: Mutex::new((Instant::now(), 0)),
            slow_beats: Mutex::default(),
            unheard: Arc::default(),
            cut: Arc::default(),
            commits: AtomicU64::new(0),
            pauses: Mutex::new(Box::new(|_| (Duration::ZERO, Duration::ZERO))),
            hints: None,
        }
    }

    /// The answer to commit number `n`, counted from 1, comes late.
    pub fn answering_late(self, n: u64, late: Duration) -> Self {
        self.pausing(move |commit| (if commit == n { late } else { Duration::ZERO }, Duration::ZERO))
    }

    pub fn pausing(mut self, pauses: impl FnMut(u64) -> (Duration, Duration) + Send + 'static) -> Self {
        self.pauses = Mutex::new(Box::new(pauses));
        self
    }

    /// Hints arrive as often as `echoes` says: not at all, once, twice. Must be called within tokio.
    pub fn echoing(mut self, echoes: impl FnMut(Hint) -> usize + Send + 'static) -> Self {
        let (mut hints, sender) = (self.inner.hints(), broadcast::Sender::new(64));
        let (mut echoes, forward): (Echoes, _) = (Box::new(echoes), sender.clone());
        tokio::spawn(async move {
            while let Ok(hint) = hints.recv().await {
                for _ in 0..echoes(hint) {
                    let _ = forward.send(hint);
                }
            }
        });
        self.hints = Some(sender);
        self
    }

    /// Every request passes here. Virtual time stands still while somebody spins, so a request too many ends it.
    async fn pass(&self) -> Result<(), StoreError> {
        let now = Instant::now();
        {
            let mut asked = self.asked.lock().unwrap();
            *asked = if asked.0 == now { (now, asked.1 + 1) } else { (now, 0) };
            if asked.1 > MANY {
                self.spins.store(true, Ordering::Relaxed);
            }
        }
        if self.spins.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        self.gate.pass_at(now).await;
        if self.cut.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable("nobody answers".into()));
        }
        Ok(())
    }

    /// Shares the note that the worker spins.
    pub fn telling(mut self, spins: Arc<AtomicBool>) -> Self {
        self.spins = spins;
        self
    }

    pub fn counting(mut self, steps: Arc<AtomicU64>) -> Self {
        self.steps = steps;
        self
    }
}

#[async_trait::async_trait]
impl Store for Port {
    async fn commit(&self, batch: Batch) -> Result<Receipt, StoreError> {
        self.pass().await?;
        let is_step = batch.writes.iter().any(|write| matches!(write, Write::Append { .. }));
        let answer = self.inner.commit(batch).await;
        if is_step && answer.is_ok() {
            self.steps.fetch_add(1, Ordering::Relaxed);
        }
        let n = self.commits.fetch_add(1, Ordering::Relaxed) + 1;
        let (late, pause) = (self.pauses.lock().unwrap())(n);
        if !late.is_zero() {
            tokio::time::sleep(late).await;
        }
        if !pause.is_zero() {
            self.gate.close_for(pause);
        }
        self.gate.pass().await;
        answer
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        self.pass().await?;
        self.inner.claim(claim).await
    }

    async fn heartbeat(&self, worker: WorkerId, until: TimeMs) -> Result<(), StoreError> {
        self.pass().await?;
        let held_up = self.slow_beats.lock().unwrap().pop_front();
        if let Some(held_up) = held_up {
            tokio::time::sleep(held_up).await;
        }
        if self.unheard.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable("nobody hears it".into()));
        }
        self.inner.heartbeat(worker, until).await?;
        self.lease.store(until.0, Ordering::Relaxed);
        Ok(())
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        self.pass().await?;
        self.inner.run(run).await
    }

    async fn runs(&self, filter: RunFilter) -> Result<Page<RunRow>, StoreError> {
        self.pass().await?;
        self.inner.runs(filter).await
    }

    async fn entries(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.pass().await?;
        self.inner.entries(run, after, limit).await
    }

    async fn snapshot(&self, run: RunId) -> Result<Option<Snapshot>, StoreError> {
        self.pass().await?;
        self.inner.snapshot(run).await
    }

    async fn inbox(&self, run: RunId, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
        self.pass().await?;
        self.inner.inbox(run, limit).await
    }

    async fn questions(&self, run: Option<RunId>, limit: usize) -> Result<Vec<QuestionRow>, StoreError> {
        self.pass().await?;
        self.inner.questions(run, limit).await
    }

    async fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.pass().await?;
        self.inner.blob(digest).await
    }

    async fn next_wake(&self) -> Result<Option<TimeMs>, StoreError> {
        self.pass().await?;
        self.inner.next_wake().await
    }

    async fn records(&self, query: Query) -> Result<Vec<Record>, StoreError> {
        self.pass().await?;
        self.inner.records(query).await
    }

    async fn feed(&self, feed: Feed, after: u64, limit: usize) -> Result<Vec<FeedItem>, StoreError> {
        self.pass().await?;
        self.inner.feed(feed, after, limit).await
    }

    async fn feed_heads(&self, feeds: &[Feed]) -> Result<Vec<u64>, StoreError> {
        self.pass().await?;
        self.inner.feed_heads(feeds).await
    }

    async fn counter(&self, counter: Counter) -> Result<u64, StoreError> {
        self.pass().await?;
        self.inner.counter(counter).await
    }

    fn hints(&self) -> Hints {
        self.hints.as_ref().map_or_else(|| self.inner.hints(), broadcast::Sender::subscribe)
    }
}
