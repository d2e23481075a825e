//! Clocks that a test turns.

use loopd_kernel::TimeMs;
use loopd_runtime::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Two clocks that can be turned by themselves, in milliseconds; the timers of the async runtime hear nothing of it.
pub struct Turned {
    since: tokio::time::Instant,
    pub wall: AtomicI64,
    pub steady: AtomicI64,
}

impl Turned {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { since: tokio::time::Instant::now(), wall: AtomicI64::new(0), steady: AtomicI64::new(0) })
    }
}

impl Clock for Turned {
    fn now(&self) -> TimeMs {
        TimeMs(10_000_000 + self.wall.load(Ordering::SeqCst)).after(self.since.elapsed().as_millis() as u64)
    }

    fn steady_ms(&self) -> u64 {
        self.since.elapsed().as_millis() as u64 + self.steady.load(Ordering::SeqCst) as u64
    }
}
