//! Counts for benchmarks: they do not depend on the machine.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a [`SqliteStore`](crate::SqliteStore) has done since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Requests that reached the writer: commits, claims, heartbeats.
    pub requests: u64,
    /// Batches that were committed.
    pub batches: u64,
    /// Transactions that changed something: each is one flush of the WAL.
    pub groups: u64,
    /// Reads.
    pub reads: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    requests: AtomicU64,
    batches: AtomicU64,
    groups: AtomicU64,
    reads: AtomicU64,
}

impl Counters {
    pub(crate) fn group(&self, requests: usize, batches: usize, flushed: bool) {
        self.requests.fetch_add(requests as u64, Ordering::Relaxed);
        self.batches.fetch_add(batches as u64, Ordering::Relaxed);
        self.groups.fetch_add(u64::from(flushed), Ordering::Relaxed);
    }

    pub(crate) fn read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> Stats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            requests: get(&self.requests),
            batches: get(&self.batches),
            groups: get(&self.groups),
            reads: get(&self.reads),
        }
    }
}
