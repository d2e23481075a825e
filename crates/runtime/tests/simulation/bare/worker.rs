//! A worker without a runtime: it claims Runs, and takes turns at driving them.

use super::World;
use super::agenda::{Done, What};
use super::drive::Drive;
use crate::chance::Chance;
use loopd_kernel::machine::{Input, Settling};
use loopd_kernel::{CallId, Epoch, RunId, Seq, TimeMs};
use loopd_runtime::driver;
use loopd_store::{Batch, Claim, InboxBody, InboxItem, MemoryStore, RunStatus, Store, StoreError, WorkerId, Write};
use std::collections::BTreeMap;

/// How long a lease lasts without a heartbeat.
const LEASE_MS: u64 = 15_000;
/// How far the clocks of two workers may differ.
pub const SKEW_MS: u64 = 1_000;
/// How long after its intent a Call may still be sent.
const WINDOW_MS: u64 = 5_000;

/// What a worker is, beside the Runs that it drives.
pub struct Me {
    pub number: usize,
    pub id: WorkerId,
    /// A door to the store that fails at times.
    pub store: MemoryStore,
    /// How far its clock is ahead.
    ahead_ms: u64,
    /// Until when it holds its lease, by the world's time and by its own.
    lease: (u64, TimeMs),
    /// Nothing that happens before reaches it.
    pub paused: u64,
    pub alive: bool,
    pub chance: Chance,
    salts: Chance,
}

impl Me {
    pub fn wall(&self, now: u64) -> TimeMs {
        TimeMs(1_000_000).after(now + self.ahead_ms)
    }

    /// How long what it intends may be sent: never as long as somebody else could hold its Runs.
    pub fn window_ms(&self, now: u64) -> u64 {
        let left = self.lease.0.saturating_sub(now).min(self.lease.1.since(self.wall(now)));
        WINDOW_MS.min(left.saturating_sub(SKEW_MS))
    }

    /// Until when nobody else takes its Runs over, by the world's time.
    pub const fn lease_ms(&self) -> u64 {
        self.lease.0
    }

    pub fn salt(&mut self) -> [u8; 32] {
        let mut salt = [0; 32];
        salt.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&self.salts.word().to_be_bytes()));
        salt
    }
}

pub struct Worker {
    pub me: Me,
    pub runs: BTreeMap<RunId, Box<Drive>>,
}

impl Worker {
    pub fn new(number: usize, world: &World) -> Self {
        let me = Me {
            number,
            id: WorkerId(number as u64),
            store: world.door(number as u64),
            ahead_ms: Chance::new(world.seed, 500 + number as u64).below(SKEW_MS),
            lease: (0, TimeMs(0)),
            paused: 0,
            alive: true,
            chance: Chance::new(world.seed, 600 + number as u64),
            salts: Chance::new(world.seed, 700 + number as u64),
        };
        Self { me, runs: BTreeMap::new() }
    }

    /// The clock is set, ahead or back.
    pub fn set_clock(&mut self) {
        self.me.ahead_ms = self.me.chance.below(SKEW_MS);
    }

    pub fn happens(&mut self, what: What, world: &mut World) {
        match what {
            What::Beat(_) => self.beat(world),
            What::Hint(_, run) => self.with(run, world, |drive, me, world| {
                drive.look_around(me, world);
            }),
            What::Answer(_, run, epoch) => self.with(run, world, |drive, me, world| {
                if drive.epoch == epoch {
                    drive.answered(me, world);
                }
            }),
            What::Done(_, run, epoch, done) => self.done((run, epoch), *done, world),
            What::People | What::Fate => unreachable!("that is the world's"),
        }
    }

    /// Something happens to a Run, and then it is driven as far as it goes.
    fn with(&mut self, run: RunId, world: &mut World, happens: impl FnOnce(&mut Drive, &mut Me, &mut World)) {
        let Some(drive) = self.runs.get_mut(&run) else { return };
        happens(drive, &mut self.me, world);
        if !drive.go(&mut self.me, world)
            && let Some(mut gone) = self.runs.remove(&run)
            && self.me.alive
        {
            for (call, output) in gone.leftovers() {
                deposit(&mut self.me, (run, gone.epoch), call, output, world);
            }
        }
    }

    fn beat(&mut self, world: &mut World) {
        let now = world.agenda.now;
        let until = self.me.wall(now).after(LEASE_MS);
        ready(self.me.store.heartbeat(self.me.id, until)).unwrap();
        self.me.lease = (now + LEASE_MS, until);
        world.agenda.add(3_000 + self.me.chance.below(2_000), What::Beat(self.me.number));
        let claim = Claim { worker: self.me.id, now: self.me.wall(now), loops: Vec::new(), limit: 4, only: None };
        for claimed in ready(self.me.store.claim(claim)).unwrap() {
            let row = claimed.row;
            let parked = row.status == RunStatus::Parked;
            let loaded = ready(driver::load(&self.me.store, &row)).unwrap();
            let recover = loaded.projection.is_in_flight() || (claimed.crashed && !parked);
            let mut drive = Drive::new(loaded, row.epoch, &row.loop_name);
            if row.head > Seq(0) {
                drive.push(if recover { Input::Recover } else { Input::Continue });
            }
            if let Some(mut before) = self.runs.insert(row.run, Box::new(drive)) {
                // The lease lapsed, and this worker itself was the next to claim.
                for (call, output) in before.leftovers() {
                    deposit(&mut self.me, (row.run, before.epoch), call, output, world);
                }
            }
        }
        // What it heard nothing of.
        let runs: Vec<RunId> = self.runs.keys().copied().collect();
        for run in runs {
            self.with(run, world, |drive, me, world| drive.look_around(me, world));
        }
    }

    /// A request has ended, perhaps for a Run that is not driven here any more.
    fn done(&mut self, (run, epoch): (RunId, Epoch), done: Done, world: &mut World) {
        if self.runs.get(&run).is_some_and(|drive| drive.epoch == epoch) {
            self.with(run, world, |drive, _, _| drive.settle(done));
        } else if let Input::Settle { call, settling: Settling::Landed(output), .. } = done.input
            && world.is_effect(run, call)
        {
            deposit(&mut self.me, (run, epoch), call, output, world);
        }
    }
}

/// Hands a result in for a Run that is not driven here any more.
fn deposit(me: &mut Me, (run, epoch): (RunId, Epoch), call: CallId, output: String, world: &mut World) {
    let body = InboxBody::Late { call, epoch, output };
    let item = InboxItem { id: 0, run, key: format!("late:{epoch}:{call}"), at: me.wall(world.agenda.now), body };
    let batch = Batch { expect: Vec::new(), writes: vec![Write::AddInbox(item)] };
    for _ in 0..4 {
        match ready(me.store.commit(batch.clone())) {
            Err(StoreError::Unavailable(_) | StoreError::Ambiguous(_)) => {}
            Ok(_) | Err(_) => break,
        }
    }
    world.hints.push(run);
}

/// What the in-memory store answers: it never waits.
pub fn ready<T>(answer: impl Future<Output = T>) -> T {
    let mut answer = std::pin::pin!(answer);
    match answer.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(answer) => answer,
        std::task::Poll::Pending => panic!("the in-memory store waits for nobody"),
    }
}
