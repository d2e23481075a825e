//! Which Conversation is looked at next: each once, one at a time, later each time it fails. It knows no clock.

use loopd_protocol::ConversationId;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tokio::time::Instant;

/// How a Reconcile ended, as far as the queue is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Until somebody wakes it.
    Done,
    /// After this time, or when somebody wakes it.
    Again(Duration),
    /// It failed: later each time, and not before this time. A wake does not shorten that.
    Failed(Duration),
}

/// One Conversation.
#[derive(Debug, Default)]
struct Entry {
    /// When it is due, unless it is running.
    at: Option<(Instant, u64)>,
    /// Since when somebody wants it to be looked at.
    woken: Option<Instant>,
    running: bool,
    failures: u32,
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Queue {
    first: Duration,
    longest: Duration,
    entries: HashMap<ConversationId, Entry>,
    due: BTreeMap<(Instant, u64), ConversationId>,
    /// Who came first among those that are due at one moment.
    order: u64,
    running: usize,
}

impl Queue {
    /// The first pause after a failure, which doubles with each further one in a row, and the longest.
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, entries: HashMap::new(), due: BTreeMap::new(), order: 0, running: 0 }
    }

    /// How many wait, and how many run.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        (self.due.len(), self.running)
    }

    /// There is something for it.
    pub(crate) fn wake(&mut self, id: ConversationId, now: Instant) {
        let entry = self.entries.entry(id).or_default();
        entry.woken.get_or_insert(now);
        let sooner = entry.at.is_none_or(|(at, _)| at > now && entry.failures == 0);
        if !entry.running && sooner {
            self.put(id, now);
        }
    }

    fn put(&mut self, id: ConversationId, at: Instant) {
        self.order += 1;
        let place = (at, self.order);
        if let Some(before) = self.entries.entry(id).or_default().at.replace(place) {
            self.due.remove(&before);
        }
        self.due.insert(place, id);
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.keys().next().map(|(at, _)| *at)
    }

    /// The one that is due longest, and since when somebody wanted it. It runs until [`Queue::ended`].
    pub(crate) fn take(&mut self, now: Instant) -> Option<(ConversationId, Instant)> {
        let first = self.due.first_entry().filter(|first| first.key().0 <= now)?;
        let ((at, _), id) = first.remove_entry();
        let entry = self.entries.entry(id).or_default();
        (entry.at, entry.running) = (None, true);
        self.running += 1;
        Some((id, entry.woken.take().unwrap_or(at)))
    }

    /// Its Reconcile has ended.
    pub(crate) fn ended(&mut self, id: ConversationId, how: Ended, now: Instant) {
        self.running = self.running.saturating_sub(1);
        let entry = self.entries.entry(id).or_default();
        entry.running = false;
        let woken = entry.woken.is_some();
        let at = match how {
            Ended::Failed(least) => {
                entry.failures = entry.failures.saturating_add(1);
                let pause = 1_u32.checked_shl(entry.failures - 1).and_then(|times| self.first.checked_mul(times));
                Some(now + pause.unwrap_or(self.longest).min(self.longest).max(least))
            }
            Ended::Done | Ended::Again(_) if woken => Some(now),
            Ended::Done => None,
            Ended::Again(after) => Some(now + after),
        };
        if !matches!(how, Ended::Failed(_)) {
            entry.failures = 0;
        }
        match at {
            Some(at) => self.put(id, at),
            None => drop(self.entries.remove(&id)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(100);

    fn id(number: u8) -> ConversationId {
        ConversationId([number; 16])
    }

    struct Table {
        queue: Queue,
        zero: Instant,
    }

    impl Table {
        fn new() -> Self {
            Self { queue: Queue::new(FIRST, Duration::from_secs(1)), zero: Instant::now() }
        }

        fn at(&self, ms: u64) -> Instant {
            self.zero + Duration::from_millis(ms)
        }

        fn wake(&mut self, number: u8, ms: u64) {
            self.queue.wake(id(number), self.at(ms));
        }

        fn take(&mut self, ms: u64) -> Option<u8> {
            self.queue.take(self.at(ms)).map(|(id, _)| id.0[0])
        }

        fn ended(&mut self, number: u8, how: Ended, ms: u64) {
            self.queue.ended(id(number), how, self.at(ms));
        }

        fn next(&self) -> Option<u128> {
            self.queue.next().map(|at| (at - self.zero).as_millis())
        }
    }

    #[test]
    fn who_is_woken_twice_is_looked_at_once_and_in_turn() {
        let mut table = Table::new();
        for number in [1, 2, 1, 3, 2] {
            table.wake(number, 0);
        }
        assert_eq!([table.take(0), table.take(0), table.take(0), table.take(0)], [Some(1), Some(2), Some(3), None]);
        assert_eq!(table.queue.sizes(), (0, 3));
    }

    #[test]
    fn one_that_runs_is_not_run_beside_itself_and_a_wake_is_not_lost() {
        let mut table = Table::new();
        table.wake(1, 0);
        assert_eq!(table.take(0), Some(1));
        table.wake(1, 5);
        assert_eq!(table.take(5), None);
        table.ended(1, Ended::Done, 10);
        assert_eq!(table.take(10), Some(1));
        table.ended(1, Ended::Done, 20);
        assert_eq!((table.take(1000), table.queue.entries.len()), (None, 0));
    }

    #[test]
    fn failures_wait_twice_as_long_each_time_and_a_wake_does_not_shorten_that() {
        let mut table = Table::new();
        let mut waits = Vec::new();
        let mut now = 0;
        table.wake(1, now);
        for _ in 0..6 {
            assert_eq!(table.take(now), Some(1));
            table.ended(1, Ended::Failed(Duration::ZERO), now);
            table.wake(1, now);
            let next = u64::try_from(table.next().unwrap()).unwrap();
            assert_eq!(table.take(next - 1), None);
            waits.push(next - now);
            now = next;
        }
        assert_eq!(waits, [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(table.take(now), Some(1));
        table.ended(1, Ended::Again(Duration::from_millis(7)), now);
        assert_eq!(table.next(), Some(u128::from(now + 7)));
        assert_eq!(table.take(now + 7), Some(1));
        table.ended(1, Ended::Failed(Duration::from_secs(9)), now + 7);
        assert_eq!(table.next(), Some(u128::from(now + 7 + 9000)));
    }

    #[test]
    fn a_wake_comes_before_a_time_that_was_only_planned() {
        let mut table = Table::new();
        table.wake(1, 0);
        assert_eq!(table.take(0), Some(1));
        table.ended(1, Ended::Again(Duration::from_secs(60)), 0);
        table.wake(1, 30);
        assert_eq!((table.take(30), table.queue.due.len()), (Some(1), 0));
    }
}
