//! The operating system's clock and randomness.

use crate::ports::{Clock, Entropy};
use loopd_kernel::TimeMs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The wall clock, and the time since the machine started. On Linux both go on while the machine sleeps. Elsewhere
/// the steady clock may stand still then, and a suspend is noticed by the wall clock alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this adapter is where the wall clock enters")]
    fn now(&self) -> TimeMs {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        TimeMs(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    #[cfg(target_os = "linux")]
    fn steady_ms(&self) -> u64 {
        // `Instant` is the clock that stands still during a suspend.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        seconds.saturating_mul(1_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000)
    }

    #[cfg(not(target_os = "linux"))]
    fn steady_ms(&self) -> u64 {
        static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        let first = FIRST.get_or_init(std::time::Instant::now);
        u64::try_from(first.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The operating system's random source, mixed through SHA-256 so that a short read never repeats a salt.
#[derive(Debug, Default)]
pub struct SystemEntropy {
    counter: std::sync::atomic::AtomicU64,
}

impl Entropy for SystemEntropy {
    fn salt(&self) -> [u8; 32] {
        let mut seed = [0_u8; 32];
        let filled = getrandom::fill(&mut seed).is_ok();
        let count = self.counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if filled {
            return seed;
        }
        let now = SystemClock.now().0;
        let parts: [&[u8]; 3] = [&count.to_be_bytes(), &now.to_be_bytes(), &std::process::id().to_be_bytes()];
        loopd_kernel::Digest::of("loopd-entropy/1", &parts).0
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_steady_clock_is_the_time_since_boot() {
        // The kernel writes the same clock there, in seconds.
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let seconds: u64 = uptime.split('.').next().unwrap().parse().unwrap();
        let steady = SystemClock.steady_ms();
        assert!((seconds..seconds + 60).contains(&(steady / 1_000)), "{seconds} s, {steady} ms");
    }
}
