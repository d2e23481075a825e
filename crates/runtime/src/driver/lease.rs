//! How long this worker still holds its lease, as far as it can know.

use crate::ports::Clock;
use loopd_kernel::TimeMs;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The end of the worker's lease on both clocks. Others judge it by the wall clock; the steady one is there because
/// a wall clock that was set back would make this worker believe in a lease that lapsed long ago.
#[derive(Debug, Default)]
pub struct Lease {
    wall: AtomicI64,
    steady_ms: AtomicU64,
}

impl Lease {
    /// It lasts until then. Both moments are counted from before the store was asked.
    pub fn renew(&self, wall: TimeMs, steady_ms: u64) {
        self.wall.store(wall.0, Ordering::Relaxed);
        self.steady_ms.store(steady_ms, Ordering::Relaxed);
    }

    /// Milliseconds until it lapses by whichever clock comes first; 0 when it has.
    #[must_use]
    pub fn left_ms(&self, clock: &dyn Clock) -> u64 {
        let steady = self.steady_ms.load(Ordering::Relaxed).saturating_sub(clock.steady_ms());
        steady.min(TimeMs(self.wall.load(Ordering::Relaxed)).since(clock.now()))
    }
}
