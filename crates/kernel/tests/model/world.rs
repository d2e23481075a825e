//! What there is: a store, two workers, the wire, a target. Nothing here is a rule.

use Call::{Failed, Landed, Open, Resolved, Unknown, Wanted};
use Phase::{Idle, NotThere, Permit, Refused, Result, Sent};

/// Ticks of a lease.
pub const LEASE: u8 = 2;

/// Ticks that are left, this one included; zero is over.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, PartialOrd, Ord)]
pub struct Left(pub u8);

impl Left {
    pub const fn is_over(self) -> bool {
        self.0 == 0
    }

    pub const fn tick(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }
}

/// What the store says about the Call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    Wanted,
    Open,
    Landed,
    Failed,
    /// Settled as unknown; the question is open.
    Unknown,
    /// A person or a late result said whether it landed.
    Resolved(bool),
}

/// What a worker holds in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    Idle,
    Permit {
        window: Left,
        abort: Left,
    },
    /// `landed`: the reply is on its way.
    Sent {
        abort: Left,
        landed: bool,
    },
    /// A reply that is not recorded yet.
    Result,
    /// This attempt certainly had no effect.
    Refused,
    /// The probe said so, and may be believed.
    NotThere,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Worker {
    /// Of its claim; zero: there is no such process.
    pub epoch: u8,
    pub phase: Phase,
}

/// A request that has left its worker and not reached the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, PartialOrd, Ord)]
pub struct Bytes {
    pub left: Left,
    /// Who waits for the reply: 1 is A, 2 is B, 0 nobody any more.
    pub waits: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    // The store.
    pub epoch: u8,
    pub lease: Left,
    pub call: Call,
    pub intents: u8,
    pub settlements: u8,
    pub charged: u8,
    pub retried: bool,
    /// Until nothing that was sent so far can land any more.
    pub quiet: Left,
    /// `dedup_for`, from the first intent.
    pub dedup: Left,
    // The workers and the wire.
    pub workers: [Worker; 2],
    pub wire: [Bytes; 3],
    // The target.
    pub ledger: u8,
    pub memory: Left,
}

/// Something that happens. The number is the worker: 0 is A, 1 is B.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    Tick,
    Dies(usize),
    Claims(usize),
    Renews(usize),
    Intends(usize),
    Sends(usize),
    WindowCloses(usize),
    Lands,
    Replies(usize),
    Refuses(usize),
    GivesUp(usize),
    RunsAgain(usize),
    Asks(usize),
    ProbesLanded(usize),
    ProbesNothing(usize),
    WantsAgain(usize),
    Settles(usize),
    Fails(usize),
    Cancels(usize),
    DepositsLateResult(usize),
    PersonSaysLanded,
    PersonSaysNot,
    PersonSaysRetry,
}

/// What must never be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Violation {
    /// The effect happened twice.
    Doubled,
    /// The Call has two settlements.
    SettledTwice,
    /// The Journal says what is not so.
    Untrue,
    /// An attempt was neither settled nor charged.
    Uncharged,
    /// A worker sent something after another one had taken over.
    SentByZombie,
    /// The Call can no longer come to a settlement.
    NeverSettles,
}

impl State {
    /// A has claimed the Run, and nothing else has happened.
    pub const START: Self = Self {
        epoch: 1,
        lease: Left(LEASE),
        call: Wanted,
        intents: 0,
        settlements: 0,
        charged: 0,
        retried: false,
        quiet: Left(0),
        dedup: Left(0),
        workers: [Worker { epoch: 1, phase: Idle }, Worker { epoch: 0, phase: Idle }],
        wire: [Bytes { left: Left(0), waits: 0 }; 3],
        ledger: 0,
        memory: Left(0),
    };

    /// True once the Call has settled, or a person is asked.
    pub const fn is_settled(&self) -> bool {
        !matches!(self.call, Wanted | Open)
    }

    /// The state as a number, for comparing: no count reaches sixteen.
    pub fn packed(&self) -> u128 {
        let call = match self.call {
            Wanted => 0,
            Open => 1,
            Landed => 2,
            Failed => 3,
            Unknown => 4,
            Resolved(landed) => 5 + u8::from(landed),
        };
        let worker = |worker: &Worker| match worker.phase {
            Idle => [pair(worker.epoch, 0), 0],
            Permit { window, abort } => [pair(worker.epoch, 1), pair(window.0, abort.0)],
            Sent { abort, landed } => [pair(worker.epoch, 2), pair(u8::from(landed), abort.0)],
            Result => [pair(worker.epoch, 3), 0],
            NotThere => [pair(worker.epoch, 4), 0],
            Refused => [pair(worker.epoch, 5), 0],
        };
        let [a, b] = [worker(&self.workers[0]), worker(&self.workers[1])];
        let wire = |at: usize| pair(self.wire[at].left.0, self.wire[at].waits);
        let store = [pair(self.epoch, self.lease.0), pair(call, self.intents), pair(self.settlements, self.charged)];
        let rest = [pair(u8::from(self.retried), self.quiet.0), pair(self.dedup.0, self.ledger), self.memory.0];
        let [s0, s1, s2] = store;
        let [r0, r1, r2] = rest;
        u128::from_be_bytes([0, 0, 0, s0, s1, s2, r0, r1, r2, a[0], a[1], b[0], b[1], wire(0), wire(1), wire(2)])
    }

    pub fn tick(&mut self) {
        for left in [&mut self.lease, &mut self.quiet, &mut self.dedup, &mut self.memory] {
            left.tick();
        }
        for worker in &mut self.workers {
            match &mut worker.phase {
                Permit { window, abort } => {
                    window.tick();
                    abort.tick();
                }
                Sent { abort, .. } => abort.tick(),
                Idle | Result | Refused | NotThere => {}
            }
        }
        for bytes in &mut self.wire {
            bytes.left.tick();
            if bytes.left.is_over() {
                *bytes = Bytes::default();
            }
        }
        self.sort_wire();
    }

    /// The order of what is on the wire means nothing, so states that differ only in it are one.
    pub fn sort_wire(&mut self) {
        for (a, b) in [(0, 1), (1, 2), (0, 1)] {
            if self.wire[a] > self.wire[b] {
                self.wire.swap(a, b);
            }
        }
    }

    /// Nobody waits for what this worker had sent.
    pub fn forget(&mut self, worker: usize) {
        for bytes in &mut self.wire {
            if usize::from(bytes.waits) == worker + 1 {
                bytes.waits = 0;
            }
        }
        self.sort_wire();
        self.workers[worker].phase = Idle;
    }

    pub fn settle(&mut self, call: Call) {
        self.call = call;
        self.settlements = (self.settlements + 1).min(2);
    }

    /// The worker that holds the Run, while it lives.
    pub fn holder(&self) -> Option<usize> {
        self.workers.iter().position(|worker| worker.epoch == self.epoch)
    }
}

/// Two counts in one byte.
const fn pair(high: u8, low: u8) -> u8 {
    high << 4 | low
}
