//! The runtime's limits. Each has a default that is safe on a laptop.

use std::time::Duration;

/// Settings of a [`crate::Runtime`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// How long a worker's lease lasts without a heartbeat.
    pub lease: Duration,
    /// How long after its intent a Call may still be sent. Shorter than the lease, so that a worker that
    /// was paused past its lease sends nothing.
    pub dispatch_window: Duration,
    /// How far clocks may differ: a Call is not sent this close to the end of the lease.
    pub skew: Duration,
    /// A Run that waits for a time nearer than this stays in memory; any other wait is a row.
    pub linger: Duration,
    /// How long open Calls may still settle after a stop or a cancel.
    pub grace: Duration,
    /// The first pause after a failed attempt; it doubles with each further one.
    pub backoff: Duration,
    /// The longest pause after a failed attempt, unless the provider asks for more.
    pub backoff_cap: Duration,
    /// How long a commit is repeated, and a read, while the store is out of reach: what finished meanwhile is in
    /// memory and nowhere else. A worker that stops waits no longer than `grace`.
    pub commit_patience: Duration,
    /// Entries after which a snapshot is taken.
    pub snapshot_entries: u64,
    /// Bytes of records and patches after which a snapshot is taken.
    pub snapshot_bytes: usize,
    /// Runs that are driven at the same time; more wait as rows.
    pub concurrency: usize,
    /// How long a Run whose crash recoveries led nowhere waits before it is recovered once more; it doubles with each
    /// further one. Such Runs are driven one at a time, so that the one that kills its process kills it alone.
    pub suspect_backoff: Duration,
    /// The longest of these waits.
    pub suspect_backoff_cap: Duration,
    /// How long such a Run may keep the next one waiting while it neither gets on nor rests.
    pub suspect_hold: Duration,
    /// True: the worker takes over everything that is due in the store. False: it drives only Runs that
    /// were started or resumed through it.
    pub claims: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            dispatch_window: Duration::from_secs(5),
            skew: Duration::from_secs(1),
            linger: Duration::from_secs(5),
            grace: Duration::from_secs(5),
            backoff: Duration::from_millis(500),
            backoff_cap: Duration::from_secs(30),
            commit_patience: Duration::from_secs(150),
            snapshot_entries: 256,
            snapshot_bytes: 64 * 1024,
            concurrency: 1024,
            suspect_backoff: Duration::from_secs(1),
            suspect_backoff_cap: Duration::from_secs(60),
            suspect_hold: Duration::from_secs(30),
            claims: true,
        }
    }
}
