//! Who asks too often, and how many streams and uploads there are at once.

use crate::config::Limits;
use crate::locked;
use crate::refusal::{Answer, Refusal};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::Instant;

/// Whoever is counted: a token, a signed-in browser, or an address.
pub(crate) type Who = [u8; 16];

/// Buckets that are kept; those that are full again are forgotten first.
const KEPT: usize = 10_000;

/// Buckets that hold `burst` and gain one per `period`, each kept as the one moment at which it is full again.
#[derive(Debug)]
struct Buckets {
    period: Duration,
    burst: u32,
    full_at: Mutex<HashMap<Who, Instant>>,
}

impl Buckets {
    fn new(period: Duration, burst: u32) -> Self {
        Self { period, burst: burst.max(1), full_at: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Who, Instant>> {
        // Nothing panics while the map is half changed.
        locked(&self.full_at)
    }

    /// Takes one, or says how long to wait for it.
    fn take(&self, who: Who, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.lock();
        if buckets.len() >= KEPT && !buckets.contains_key(&who) {
            buckets.retain(|_, full_at| *full_at > now);
        }
        // When even that leaves no room, the newcomers share one bucket: memory is bounded, and nobody gets in free.
        let who = if buckets.len() >= KEPT && !buckets.contains_key(&who) { Who::default() } else { who };
        let full_at = self.without_one(buckets.get(&who), now)?;
        buckets.insert(who, full_at);
        Ok(())
    }

    /// Whether one could be taken, or how long to wait for it.
    fn has_one(&self, who: Who, now: Instant) -> Result<(), Duration> {
        self.without_one(self.lock().get(&who), now).map(|_| ())
    }

    /// When the bucket is full again once one more is taken.
    fn without_one(&self, full_at: Option<&Instant>, now: Instant) -> Result<Instant, Duration> {
        let full_at = full_at.copied().unwrap_or(now).max(now) + self.period;
        let lacks = full_at.duration_since(now);
        match lacks.checked_sub(self.period.saturating_mul(self.burst)) {
            Some(wait) if !wait.is_zero() => Err(wait),
            Some(_) | None => Ok(full_at),
        }
    }

    fn knows(&self, who: Who) -> bool {
        self.lock().contains_key(&who)
    }
}

/// Counters of what runs now, per somebody and in total.
#[derive(Debug, Default)]
struct Slots {
    total: AtomicUsize,
    of: Mutex<HashMap<Who, usize>>,
}

/// A place among the streams or the uploads; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
    who: Who,
}

impl Slots {
    fn take(self: &Arc<Self>, who: Who, per_one: usize, total: usize) -> Option<Slot> {
        let mut of = locked(&self.of);
        let mine = of.get(&who).copied().unwrap_or(0);
        if mine >= per_one || self.total.load(Ordering::Relaxed) >= total {
            return None;
        }
        of.insert(who, mine + 1);
        self.total.fetch_add(1, Ordering::Relaxed);
        Some(Slot { slots: Arc::clone(self), who })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut of = locked(&self.slots.of);
        self.slots.total.fetch_sub(1, Ordering::Relaxed);
        match of.get_mut(&self.who) {
            Some(mine) if *mine > 1 => *mine -= 1,
            Some(_) | None => {
                of.remove(&self.who);
            }
        }
    }
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Rates {
    requests: Buckets,
    of_operators: Buckets,
    failures: Buckets,
    streams: Arc<Slots>,
    uploads: Arc<Slots>,
}

impl Rates {
    pub(crate) fn new(limits: &Limits) -> Self {
        let per_s = |times: u32| Duration::from_secs(1) / times.max(1);
        let per_minute = Duration::from_secs(60) / limits.failures_per_minute.max(1);
        Self {
            requests: Buckets::new(per_s(limits.requests_per_s), limits.requests_burst),
            of_operators: Buckets::new(per_s(limits.operator_requests_per_s), limits.operator_requests_burst),
            failures: Buckets::new(per_minute, limits.failures_per_minute),
            streams: Arc::default(),
            uploads: Arc::default(),
        }
    }

    pub(crate) fn request(&self, who: Who, is_operator: bool) -> Answer<()> {
        let requests = if is_operator { &self.of_operators } else { &self.requests };
        let wait = requests.take(who, Instant::now());
        wait.map_err(|wait| too_many("rate", "too many requests", wait))
    }

    /// Whether this one authenticated before: what strangers at the same address do is not held against it.
    pub(crate) fn knows(&self, who: Who) -> bool {
        self.requests.knows(who) || self.of_operators.knows(who)
    }

    pub(crate) fn may_try(&self, peer: Who) -> Answer<()> {
        let wait = self.failures.has_one(peer, Instant::now());
        wait.map_err(|wait| too_many("rate", "too many failed attempts to authenticate from this address", wait))
    }

    pub(crate) fn failed(&self, peer: Who) {
        // An empty bucket stays empty.
        let _ = self.failures.take(peer, Instant::now());
    }

    pub(crate) fn stream(&self, who: Who, limits: &Limits) -> Answer<Slot> {
        let slot = self.streams.take(who, limits.streams_per_token, limits.streams);
        slot.ok_or_else(|| {
            Refusal::too_many("streams", "too many streams are open: close one, or ask one for many feeds", 5)
        })
    }

    pub(crate) fn upload(&self, who: Who, limits: &Limits) -> Answer<Slot> {
        let slot = self.uploads.take(who, limits.uploads, limits.uploads);
        slot.ok_or_else(|| Refusal::too_many("uploads", "too many files are received at this moment", 1))
    }

    pub(crate) fn open_streams(&self) -> usize {
        self.streams.total.load(Ordering::Relaxed)
    }
}

fn too_many(code: &'static str, what: &str, wait: Duration) -> Refusal {
    let seconds = wait.as_millis().div_ceil(1000);
    let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
    Refusal::too_many(code, format!("{what}; try again in {seconds} s"), seconds)
}

/// An address as it is counted: a network of 64 bits is one household.
pub(crate) fn who_is(peer: Option<IpAddr>) -> Who {
    let mut who = Who::default();
    match peer {
        Some(IpAddr::V4(v4)) => {
            let (kind, rest) = who.split_at_mut(12);
            kind.fill(0xff);
            rest.copy_from_slice(&v4.octets());
        }
        Some(IpAddr::V6(v6)) => match v6.to_ipv4_mapped() {
            Some(v4) => return who_is(Some(IpAddr::V4(v4))),
            None => {
                let (network, _) = who.split_at_mut(8);
                network.copy_from_slice(v6.octets().get(..8).unwrap_or(&[0; 8]));
            }
        },
        None => who = [1; 16],
    }
    who
}
