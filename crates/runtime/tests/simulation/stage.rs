//! What all workers of one story share, and how a worker comes to be.

use crate::chance::Chance;
use crate::scripts::{Effects, Side};
use crate::world::port::{Gate, Port};
use crate::world::{CountedEntropy, VirtualClock};
use loopd_kernel::budget::Limits;
use loopd_kernel::machine::Admission;
use loopd_kernel::{MicroUsd, RunId, Seq};
use loopd_runtime::{Config, FixedPrograms, Program, Runtime, Started};
use loopd_store::memory::Fault;
use loopd_store::{MemoryStore, RunFilter, Store};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

pub struct Stage {
    pub seed: u64,
    pub store: MemoryStore,
    pub effects: Effects,
    pub clock: Arc<VirtualClock>,
    steps: Arc<AtomicU64>,
    /// True: faults, pauses and lost hints are over.
    quiet: Arc<AtomicBool>,
    spins: Arc<AtomicBool>,
}

/// A worker of a story.
pub struct Worker {
    pub runtime: Runtime,
    pub programs: Vec<Arc<Program>>,
    gate: Gate,
}

impl Worker {
    /// The process is gone: nothing that it waits for ever comes.
    pub fn die(&self) {
        self.gate.close_for(Duration::from_secs(1_000_000));
    }
}

impl Stage {
    pub fn new(seed: u64, steps: Arc<AtomicU64>) -> Self {
        Self {
            seed,
            store: MemoryStore::new(),
            effects: Effects::default(),
            clock: Arc::default(),
            steps,
            quiet: Arc::default(),
            spins: Arc::default(),
        }
    }

    /// A worker with its own door to the store. One that cannot announce itself tries again.
    pub async fn worker(&self, number: u64, programs: impl Fn(&Side) -> Vec<Program>) -> Worker {
        let port = self.port(number);
        let gate = port.gate.clone();
        let side = Side {
            seed: self.seed,
            store: self.store.clone(),
            effects: self.effects.clone(),
            gate: gate.clone(),
            lease: port.lease.clone(),
            clock: self.clock.clone(),
        };
        let programs: Vec<_> = programs(&side).into_iter().map(Arc::new).collect();
        let config = Config { snapshot_entries: 24, ..Config::default() };
        let runtime = Runtime::builder(Arc::new(port), Arc::new(FixedPrograms::new(programs.clone())))
            .config(config)
            .world(self.clock.clone(), Arc::new(CountedEntropy::of(number)))
            .start()
            .await;
        Worker { runtime: runtime.unwrap(), programs, gate }
    }

    fn port(&self, number: u64) -> Port {
        let mut chance = Chance::new(self.seed, 1_000 + number);
        let quiet = self.quiet.clone();
        let faulty = self.store.faulty(move |_| match chance.below(80) {
            _ if quiet.load(Ordering::Relaxed) => None,
            0..6 => Some(Fault::Unavailable),
            6..12 => Some(Fault::AmbiguousCommitted),
            12..18 => Some(Fault::AmbiguousLost),
            18 => Some(Fault::Full),
            _ => None,
        });
        let (mut pauses, quiet) = (Chance::new(self.seed, 2_000 + number), self.quiet.clone());
        let pausing = move |_| {
            let seconds = |of: &mut Chance, most: u64| Duration::from_millis(of.below(most * 1_000));
            let late = if pauses.one_in(10) { seconds(&mut pauses, 4) } else { Duration::ZERO };
            let pause = if pauses.one_in(12) { seconds(&mut pauses, 40) } else { Duration::ZERO };
            if quiet.load(Ordering::Relaxed) { (Duration::ZERO, Duration::ZERO) } else { (late, pause) }
        };
        let (mut echoes, quiet) = (Chance::new(self.seed, 3_000 + number), self.quiet.clone());
        let echoing = move |_| if quiet.load(Ordering::Relaxed) { 1 } else { echoes.below(3) as usize };
        Port::new(faulty).pausing(pausing).echoing(echoing).counting(self.steps.clone()).telling(self.spins.clone())
    }

    /// Starts the Run through `worker`; a start that failed is made again under the same key.
    pub async fn start(&self, worker: &Worker, budget: MicroUsd) -> RunId {
        let limits = Limits { micro_usd: Some(budget), iterations: Some(60), ..Limits::default() };
        loop {
            let key = Some("errand".into());
            let admission = Admission { tenant: "default".into(), input: "\"in\"".into(), limits, key };
            match worker.runtime.start(&worker.programs[0], admission).await {
                Ok(Started::New(driven)) => return driven.run,
                Ok(Started::Already(run)) => return run,
                Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        }
    }

    /// Whether faults, pauses and lost hints are over from now on.
    pub fn calm_down(&self, quiet: bool) {
        assert!(!self.spins.load(Ordering::Relaxed), "a worker asks the store for ever while time stands still");
        self.quiet.store(quiet, Ordering::Relaxed);
    }
}

/// A check that fails leaves the Journals behind, so that one look at the output says what happened.
impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut telling = pin!(tell_all(&self.store, &self.effects));
            let _ = telling.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}

async fn tell_all(store: &MemoryStore, effects: &Effects) {
    for row in store.runs(RunFilter { limit: 99, ..RunFilter::default() }).await.unwrap().items {
        eprintln!("{} {} {}", row.run, row.loop_name, row.status.name());
        for entry in store.entries(row.run, Seq(0), 10_000).await.unwrap() {
            let payload = String::from_utf8_lossy(&entry.payload);
            eprintln!("  {} at {} {} {} {payload}", entry.seq, entry.at.0, entry.kind, entry.record);
        }
        for item in store.inbox(row.run, 99).await.unwrap() {
            eprintln!("  waits: {item:?}");
        }
    }
    effects.all().iter().for_each(|effect| eprintln!("{effect:?}"));
}
