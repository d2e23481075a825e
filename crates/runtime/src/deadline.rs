//! Limits in time that neither a suspended machine nor a changed wall clock stretches.

use crate::ports::Clock;
use loopd_kernel::TimeMs;
use std::pin::pin;
use std::time::Duration;

/// The longest sleep between two looks at the clocks: the timers of the async runtime stand still while the
/// machine is suspended, so a longer one would overlook that much of the time after it.
const SLICE: Duration = Duration::from_secs(1);

/// The moment at which a step was applied, and how long its Calls may be sent from then on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Window {
    /// The time that the step's Entries bear.
    entered: TimeMs,
    opened_ms: u64,
    lasts_ms: u64,
}

impl Window {
    /// It opens now, before the wall clock is read for the same step, so that it closes no later than by that clock.
    /// `head` is the time of the Entry before the step: a Journal's time does not go back with a clock.
    pub fn open(clock: &dyn Clock, lasts_ms: u64, head: TimeMs) -> Self {
        let opened_ms = clock.steady_ms();
        Self { entered: clock.now().max(head), opened_ms, lasts_ms }
    }

    /// True while a Call of this step may still be sent.
    pub fn is_open(&self, clock: &dyn Clock) -> bool {
        clock.steady_ms().saturating_sub(self.opened_ms) <= self.lasts_ms
    }

    /// How long it is still open.
    pub fn left(&self, clock: &dyn Clock) -> Duration {
        let gone = clock.steady_ms().saturating_sub(self.opened_ms);
        Duration::from_millis(self.lasts_ms.saturating_sub(gone))
    }
}

/// The moment at which a Call is given up: whichever clock comes to it first.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    wall: TimeMs,
    steady_ms: u64,
}

impl Deadline {
    /// `wall`, and as far from the step that named it on the steady clock.
    pub const fn of(step: &Window, wall: TimeMs) -> Self {
        Self { wall, steady_ms: step.opened_ms.saturating_add(wall.since(step.entered)) }
    }

    /// How long until then.
    pub fn left(&self, clock: &dyn Clock) -> Duration {
        let steady = self.steady_ms.saturating_sub(clock.steady_ms());
        Duration::from_millis(steady.min(self.wall.since(clock.now())))
    }
}

/// The deadline came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elapsed;

/// What `work` comes to, unless the deadline comes first: after a suspend that is noticed within a second.
///
/// # Errors
/// [`Elapsed`]; the work was dropped.
pub async fn within<T>(clock: &dyn Clock, deadline: Deadline, work: impl Future<Output = T>) -> Result<T, Elapsed> {
    let mut work = pin!(work);
    loop {
        let slice = deadline.left(clock).min(SLICE);
        match tokio::time::timeout(slice, work.as_mut()).await {
            Ok(done) => return Ok(done),
            Err(_) if deadline.left(clock).is_zero() => return Err(Elapsed),
            Err(_) => {}
        }
    }
}
