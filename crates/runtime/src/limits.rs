//! What all Calls to one provider share, whichever Run they belong to: a gate that closes when the provider asks for
//! a pause, and the seats of a model that serves so many at once.

use crate::config::Config;
use crate::deadline::Window;
use crate::ports::{Clock, Entropy, Model, ModelAnswer, ModelError};
use crate::seats::{Place, Seat, Seats};
use loopd_kernel::{CallId, RunId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// How long the place of a Call is kept beyond the moment at which it is due again: longer than a step takes.
const KEPT_MS: u64 = 60_000;

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The providers of a worker.
#[derive(Default)]
pub struct Limits(Mutex<HashMap<Key, Known>>);

/// The model object whose lane it is, where it is one's own, and the lane.
type Known = (Option<Weak<dyn Model>>, Arc<Lane>);

#[derive(PartialEq, Eq, Hash)]
enum Key {
    Named(String),
    /// A model that names no key shares nothing with another object. The address is one's own while it lives.
    Object(usize),
}

impl Limits {
    /// What the model shares with others of its limits key.
    pub fn lane(&self, model: &Arc<dyn Model>) -> Arc<Lane> {
        let (key, object) = match model.limits_key() {
            Some(name) => (Key::Named(name.to_owned()), None),
            None => (Key::Object(Arc::as_ptr(model).cast::<()>().addr()), Some(Arc::downgrade(model))),
        };
        let mut lanes = locked(&self.0);
        let lives = |object: &Option<Weak<dyn Model>>| object.as_ref().is_none_or(|model| model.strong_count() > 0);
        match lanes.get(&key) {
            Some((object, lane)) if lives(object) => lane.clone(),
            Some(_) | None => {
                lanes.retain(|_, (object, _)| lives(object));
                let lane = Arc::<Lane>::default();
                lanes.insert(key, (object, lane.clone()));
                lane
            }
        }
    }
}

/// What surrounds one attempt to send.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    pub clock: &'a dyn Clock,
    pub entropy: &'a dyn Entropy,
    pub config: &'a Config,
    pub window: Window,
    pub call: (RunId, CallId),
}

impl Asking<'_> {
    /// Between nothing and a quarter of `of`, so that a thousand Calls that wait for one moment do not come at once.
    fn jitter(&self, of: u64) -> u64 {
        u64::from(self.entropy.salt()[0]).saturating_mul(of) / 1024
    }
}

/// Why a Call may not be sent now, and when it may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotNow {
    /// For whoever reads the Journal.
    pub why: &'static str,
    /// Milliseconds from now.
    pub again_in_ms: u64,
}

/// What the Calls to one provider share.
#[derive(Default)]
pub struct Lane {
    gate: Mutex<Gate>,
    seats: Arc<Seats>,
    kept: Mutex<HashMap<(RunId, CallId), Kept>>,
}

/// The place of a Call that waits in its Run for another try.
struct Kept {
    place: Place,
    tries: u32,
    until_ms: u64,
}

impl Lane {
    /// Lets a Call in, with a seat when the model serves only so many at once. It waits for that no longer than its
    /// dispatch window, and keeps its place in the queue for the next try.
    ///
    /// # Errors
    /// [`NotNow`]; nothing was sent.
    pub async fn enter(&self, most: Option<usize>, asking: Asking<'_>) -> Result<Option<Seat>, NotNow> {
        self.pass_gate(asking)?;
        let Some(most) = most else { return Ok(None) };
        let (place, tries) = match locked(&self.kept).remove(&asking.call) {
            Some(kept) => (kept.place, kept.tries),
            None => (self.seats.place(0), 0),
        };
        let left = asking.window.left(asking.clock);
        let refused = match tokio::time::timeout(left, self.seats.take(&place, most.max(1))).await {
            // It may have closed while the Call waited.
            Ok(seat) => match self.pass_gate(asking) {
                Ok(()) => return Ok(Some(seat)),
                Err(not_now) => not_now,
            },
            Err(_) => {
                // A pause as long as the window leaves no seat empty for long while many wait.
                let longest = ms(asking.config.dispatch_window);
                let pause = ms(asking.config.backoff.saturating_mul(2_u32.saturating_pow(tries))).min(longest).max(1);
                let again_in_ms = pause.saturating_add(asking.jitter(pause));
                NotNow { why: "the model serves no more at once", again_in_ms }
            }
        };
        self.keep(place, tries, refused.again_in_ms, asking);
        Err(refused)
    }

    fn keep(&self, place: Place, tries: u32, again_in_ms: u64, asking: Asking<'_>) {
        let now = asking.clock.steady_ms();
        let mut kept = locked(&self.kept);
        kept.retain(|_, kept| kept.until_ms > now);
        let until_ms = now.saturating_add(again_in_ms).saturating_add(KEPT_MS);
        kept.insert(asking.call, Kept { place, tries: tries.saturating_add(1), until_ms });
    }

    fn pass_gate(&self, asking: Asking<'_>) -> Result<(), NotNow> {
        let (left, closure) = {
            let gate = locked(&self.gate);
            (gate.left_ms(asking.clock.steady_ms()), gate.until_ms - gate.closed_ms)
        };
        if left == 0 {
            return Ok(());
        }
        let again_in_ms = left.saturating_add(asking.jitter(closure));
        Err(NotNow { why: "the provider asked for a pause", again_in_ms })
    }

    /// How long the gate stays closed, in milliseconds.
    pub fn left_ms(&self, clock: &dyn Clock) -> u64 {
        locked(&self.gate).left_ms(clock.steady_ms())
    }

    /// Draws the conclusion of an answer to a Call that was sent at `sent_ms`.
    pub fn hear(&self, answer: Result<&ModelAnswer, &ModelError>, sent_ms: u64, clock: &dyn Clock, config: &Config) {
        let now = clock.steady_ms();
        match answer {
            Ok(_) => locked(&self.gate).open(sent_ms),
            Err(ModelError::RateLimited { retry_after: None, .. }) => {
                locked(&self.gate).close_doubling(sent_ms, now, config);
            }
            Err(ModelError::RateLimited { retry_after: Some(wait), .. })
            | Err(ModelError::Unavailable { retry_after: Some(wait), .. }) => {
                locked(&self.gate).close(now, ms(*wait));
            }
            Err(
                ModelError::Unavailable { retry_after: None, .. }
                | ModelError::Interrupted { .. }
                | ModelError::Malformed { .. }
                | ModelError::Stopped { .. }
                | ModelError::Rejected(_)
                | ModelError::TooLarge(_)
                | ModelError::Unauthorised(_),
            ) => {}
        }
    }
}

/// Closed until a moment on the steady clock.
#[derive(Debug, Default)]
struct Gate {
    closed_ms: u64,
    until_ms: u64,
    /// Rate limits in a row that named no time.
    streak: u32,
}

impl Gate {
    const fn left_ms(&self, now: u64) -> u64 {
        self.until_ms.saturating_sub(now)
    }

    fn close(&mut self, now: u64, for_ms: u64) {
        let until = now.saturating_add(for_ms);
        if until > self.until_ms {
            (self.closed_ms, self.until_ms) = (now, until);
        }
    }

    /// Calls that were under way together are refused together: that is one refusal, not many in a row.
    fn close_doubling(&mut self, sent: u64, now: u64, config: &Config) {
        if self.streak > 0 && sent < self.until_ms {
            return;
        }
        let factor = 2_u32.saturating_pow(self.streak);
        self.streak = self.streak.saturating_add(1);
        self.close(now, ms(config.backoff.saturating_mul(factor).min(config.backoff_cap)));
    }

    /// A success opens it, unless it answers a Call from before it closed: that says nothing of the time since.
    fn open(&mut self, sent: u64) {
        if sent >= self.closed_ms {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config { backoff: Duration::from_millis(500), backoff_cap: Duration::from_secs(2), ..Config::default() }
    }

    #[test]
    fn rate_limits_in_a_row_double_the_pause_and_a_wave_of_them_is_one() {
        let (mut gate, config) = (Gate::default(), config());
        gate.close_doubling(1_000, 1_100, &config);
        assert_eq!(gate.until_ms, 1_600);
        // Sent before it closed, refused later.
        gate.close_doubling(1_050, 1_200, &config);
        assert_eq!(gate.until_ms, 1_600);
        gate.close_doubling(1_600, 1_600, &config);
        assert_eq!(gate.until_ms, 2_600);
        gate.close_doubling(2_600, 2_600, &config);
        assert_eq!(gate.until_ms, 4_600);
        gate.close_doubling(4_600, 4_600, &config);
        assert_eq!(gate.until_ms, 6_600);
    }

    #[test]
    fn a_success_opens_the_gate_only_when_it_was_sent_after_it_closed() {
        let mut gate = Gate::default();
        gate.close(1_000, 60_000);
        gate.open(900);
        assert_eq!(gate.left_ms(2_000), 59_000);
        gate.open(61_000);
        assert_eq!((gate.left_ms(2_000), gate.streak), (0, 0));
    }

    #[test]
    fn a_shorter_pause_does_not_shorten_a_longer_one() {
        let mut gate = Gate::default();
        gate.close(1_000, 60_000);
        gate.close(2_000, 1_000);
        assert_eq!(gate.left_ms(2_000), 59_000);
    }
}
