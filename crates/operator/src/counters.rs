//! What an Operator has done, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What an Operator has done since it began to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Conversations that wait for their Reconcile.
    pub waiting: u64,
    /// Reconciles that are running.
    pub running: u64,
    /// Reconciles that were begun.
    pub reconciles: u64,
    /// Turns that were committed: a Reconcile with nothing to commit has none.
    pub turns: u64,
    /// Acts in them.
    pub acts: u64,
    /// Reconciles that failed: in the author's code, or because of a refusal.
    pub failures: u64,
    /// Turns that were refused because another process has the Conversation.
    pub fenced: u64,
    /// Reconciles that did not begin because another process has the Conversation.
    pub elsewhere: u64,
    /// Microseconds from wake to Reconcile, over all of them.
    pub waited_us: u64,
    /// Microseconds in Reconciles with the commits of their Turns, over all of them.
    pub worked_us: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    reconciles: AtomicU64,
    turns: AtomicU64,
    acts: AtomicU64,
    failures: AtomicU64,
    fenced: AtomicU64,
    elsewhere: AtomicU64,
    waited_us: AtomicU64,
    worked_us: AtomicU64,
}

fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// A time, as it is counted.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Counters {
    pub(crate) fn begun(&self, waited: Duration) {
        add(&self.reconciles, 1);
        add(&self.waited_us, micros(waited));
    }

    pub(crate) fn worked(&self, time: Duration) {
        add(&self.worked_us, micros(time));
    }

    pub(crate) fn turn(&self, acts: usize) {
        add(&self.turns, 1);
        add(&self.acts, acts as u64);
    }

    pub(crate) fn failed(&self) {
        add(&self.failures, 1);
    }

    pub(crate) fn fenced(&self) {
        add(&self.fenced, 1);
    }

    pub(crate) fn elsewhere(&self) {
        add(&self.elsewhere, 1);
    }

    pub(crate) fn read(&self, (waiting, running): (usize, usize)) -> Counted {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted {
            waiting: waiting as u64,
            running: running as u64,
            reconciles: of(&self.reconciles),
            turns: of(&self.turns),
            acts: of(&self.acts),
            failures: of(&self.failures),
            fenced: of(&self.fenced),
            elsewhere: of(&self.elsewhere),
            waited_us: of(&self.waited_us),
            worked_us: of(&self.worked_us),
        }
    }
}
