//! The specification: what is there, what may happen to it, and which rule stands in the way of what.
//!
//! One Run wants one Call of one effect class. Two workers, A and B, can drive it; the store knows the epoch, the
//! intent and the settlement; the target keeps a ledger of what landed. Time is counted in ticks, and everything that
//! may happen may happen at any tick, in any order, or never: a worker that does nothing for ever has died or is
//! paused, and one that goes on afterwards is a zombie.
//!
//! # The rules
//! 1. **Fence.** A commit holds the epoch of the last claim, or it is refused. A claim needs a lapsed lease.
//! 2. **Window.** A Call is sent only within its dispatch window, which ends before the lease does by as much as a
//!    worker's clock may be slow. Past it nothing is sent and the Call is intended anew.
//! 3. **Landing bound.** What was sent lands before `abort_by` + bound, or never. This one is an assumption about the
//!    world: no program can hold it.
//! 4. **Read, Billable.** An open Call runs again; of a billable one the lost attempt is charged.
//! 5. **Once.** An open Call settles as unknown, and a person is asked in the same commit.
//! 6. **Keyed.** Every intent after the first one is made only while the *last possible landing* of it lies within
//!    `dedup_for` of the first intent. Counted to the attempt's deadline, it is not kept. Later: as Once.
//! 7. **Probed.** The target is asked. Landed: settle. Not landed counts only after `abort_by` + bound of the last
//!    intent; then the Call is intended anew. Unclear: as Once.
//! 8. **Late result.** A fenced worker that holds a result deposits it: it settles an open Call, or resolves an
//!    unknown one and withdraws the question. It is never a second settlement.
//! 9. **Person.** Whoever is asked looks at the ledger. What is there has landed; what is not there counts as not
//!    landed only after `abort_by` + bound, like a probe.
//! 10. **Earlier attempts.** That one attempt was refused, or that a wanted Call shall not be sent any more, says
//!     nothing about the attempts before it. While one of those is in doubt the Call is not settled as failed and not
//!     cancelled as "never sent": it is recovered, or a person is asked.

use super::world::Call::{Failed, Landed, Open, Resolved, Unknown, Wanted};
use super::world::Phase::{Idle, NotThere, Permit, Refused, Result, Sent};
use super::world::{Action, Bytes, LEASE, Left, State, Violation};

/// Ticks by which a worker's clock may be slow.
const SKEW: u8 = 1;
/// Ticks in which an intended Call may be sent.
const WINDOW: u8 = 1;
/// Ticks until an attempt is given up.
const TIMEOUT: u8 = 2;
/// Ticks after that in which what was sent may still land.
const LANDING: u8 = 1;
/// Ticks in which the target of a keyed Call knows a key again.
const DEDUP: u8 = 5;
/// How often the Run is claimed.
const CLAIMS: u8 = 3;
/// How often a Call is intended.
const INTENTS: u8 = 3;

/// What recovery may do. Pure is Read, Transactional is never open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Read,
    Once,
    Keyed,
    Probed,
    Billable,
}

/// The one rule that is not kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// All are kept.
    None,
    /// Rule 2: a permit is used whenever its worker comes to it.
    WindowIgnored,
    /// Rule 2: the window ends with the lease, though the worker's clock is slow.
    SkewForgotten,
    /// Rule 3: something in between holds the bytes for longer.
    LandingUnbounded,
    /// Rule 7: "not landed" is believed at once.
    ProbeBelieved,
    /// Rule 1: any epoch may commit.
    EpochUnchecked,
    /// Rule 6: a keyed Call is sent again however old it is.
    DedupIgnored,
    /// Rule 6: only the deadline of an attempt has to lie within `dedup_for`, not its last possible landing.
    DedupToDeadline,
    /// Rule 9: the person answers before nothing can land any more.
    PersonHasty,
    /// Rule 10: the refusal of the last attempt settles the Call.
    RefusalBelieved,
    /// Rule 10: a wanted Call was never sent.
    WantedIsUnsent,
}

/// The class and the flaw: what does not change while the model runs.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    pub class: Class,
    pub flaw: Flaw,
    /// Whether the person who is asked may say "do it again". Without it, a way to a violation is the machine's own.
    pub retries: bool,
}

impl Spec {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    /// True for classes whose effect must not happen twice.
    pub fn is_exclusive(&self) -> bool {
        matches!(self.class, Class::Once | Class::Keyed | Class::Probed)
    }

    /// What is wrong with this state.
    pub fn violation(&self, state: &State) -> Option<Violation> {
        let says_landed = matches!(state.call, Landed | Resolved(true));
        let says_nothing = matches!(state.call, Failed | Resolved(false));
        if self.is_exclusive() && state.ledger > 1 {
            Some(Violation::Doubled)
        } else if state.settlements > 1 {
            Some(Violation::SettledTwice)
        } else if (says_landed && state.ledger == 0) || (self.is_exclusive() && says_nothing && state.ledger > 0) {
            Some(Violation::Untrue)
        } else if self.class == Class::Billable && state.ledger > state.charged + 1 {
            Some(Violation::Uncharged)
        } else {
            None
        }
    }

    /// What is wrong with doing this now.
    pub fn wrong_step(&self, state: &State, action: Action) -> Option<Violation> {
        let Action::Sends(worker) = action else { return None };
        (state.workers[worker].epoch != state.epoch).then_some(Violation::SentByZombie)
    }

    /// Everything that may happen next.
    pub fn next(&self, state: &State, mut take: impl FnMut(Action, State)) {
        let mut next = *state;
        next.tick();
        take(Action::Tick, next);
        self.land(state, &mut take);
        if state.call == Unknown {
            self.person(state, &mut take);
        }
        // B first: of two shortest ways the one with a takeover reads better.
        for worker in [1, 0] {
            self.lease(state, worker, &mut take);
            self.perform(state, worker, &mut take);
            if self.may_commit(state, worker) {
                self.commit(state, worker, &mut take);
            } else if state.workers[worker].phase == Result {
                take(Action::DepositsLateResult(worker), Self::late(state, worker));
            }
        }
    }

    /// Rule 10. Of a probed Call the earlier attempts are known not to have landed, of one of class Once there are none.
    fn in_doubt(&self, earlier: u8) -> bool {
        self.class == Class::Keyed && earlier > 0
    }

    /// Rule 1.
    fn may_commit(&self, state: &State, worker: usize) -> bool {
        let epoch = state.workers[worker].epoch;
        epoch == state.epoch || (epoch > 0 && self.has(Flaw::EpochUnchecked))
    }

    fn lease(&self, state: &State, worker: usize, take: &mut impl FnMut(Action, State)) {
        // Nobody holds or takes a Run whose Call has come to its end.
        if state.is_settled() && state.call != Unknown {
            return;
        }
        let mut next = *state;
        if state.workers[worker].epoch != state.epoch {
            if state.lease.is_over() && state.epoch < CLAIMS && !state.is_settled() {
                next.forget(worker);
                next.epoch += 1;
                next.lease = Left(LEASE);
                next.workers[worker].epoch = next.epoch;
                take(Action::Claims(worker), next);
            }
            return;
        }
        if state.lease < Left(LEASE) {
            next.lease = Left(LEASE);
            take(Action::Renews(worker), next);
        }
        // The last one to claim lives, so that every Call can come to its end. A death frees the lease at once.
        if state.epoch < CLAIMS {
            next.forget(worker);
            next.workers[worker].epoch = 0;
            next.lease = Left(0);
            take(Action::Dies(worker), next);
        }
    }

    /// What a worker does without the store: it sends, hears, and gives up.
    fn perform(&self, state: &State, worker: usize, take: &mut impl FnMut(Action, State)) {
        let mut next = *state;
        match state.workers[worker].phase {
            Permit { window, abort } => {
                let free = state.wire[0] == Bytes::default();
                if free && (!window.is_over() || self.has(Flaw::WindowIgnored)) {
                    let held = if self.has(Flaw::LandingUnbounded) { DEDUP } else { 0 };
                    let left = Left(abort.0.max(1) + LANDING + held);
                    next.wire[0] = Bytes { left, waits: worker as u8 + 1 };
                    next.sort_wire();
                    next.workers[worker].phase = Sent { abort, landed: false };
                    take(Action::Sends(worker), next);
                }
            }
            Sent { landed: true, .. } => {
                next.workers[worker].phase = Result;
                take(Action::Replies(worker), next);
            }
            Sent { landed: false, .. } => {
                if let Some(bytes) = next.wire.iter_mut().find(|bytes| usize::from(bytes.waits) == worker + 1) {
                    *bytes = Bytes::default();
                    next.sort_wire();
                    next.workers[worker].phase = Refused;
                    take(Action::Refuses(worker), next);
                }
            }
            Idle | Result | Refused | NotThere => {}
        }
        if let Sent { abort, .. } = state.workers[worker].phase
            && abort.is_over()
        {
            let mut next = *state;
            next.forget(worker);
            take(Action::GivesUp(worker), next);
        }
    }

    /// Bytes reach the target: whichever, and whenever they may.
    fn land(&self, state: &State, take: &mut impl FnMut(Action, State)) {
        for (at, bytes) in state.wire.iter().enumerate().filter(|(_, bytes)| !bytes.left.is_over()) {
            let mut next = *state;
            let known = self.class == Class::Keyed && !state.memory.is_over();
            if !known {
                next.ledger += 1;
                next.memory = Left(if self.class == Class::Keyed { DEDUP } else { 0 });
            }
            if let Some(waits) = usize::from(bytes.waits).checked_sub(1)
                && let Sent { landed, .. } = &mut next.workers[waits].phase
            {
                *landed = true;
            }
            next.wire[at] = Bytes::default();
            next.sort_wire();
            take(Action::Lands, next);
        }
    }

    /// Rule 9.
    fn person(&self, state: &State, take: &mut impl FnMut(Action, State)) {
        let mut next = *state;
        if state.ledger > 0 {
            next.call = Resolved(true);
            take(Action::PersonSaysLanded, next);
        } else if state.quiet.is_over() || self.has(Flaw::PersonHasty) {
            next.call = Resolved(false);
            take(Action::PersonSaysNot, next);
            if self.retries && !state.retried {
                // A new Call for the same effect: the first one keeps its one settlement.
                let fresh = State { call: Wanted, retried: true, intents: 0, settlements: 0, ..*state };
                take(Action::PersonSaysRetry, fresh);
            }
        }
    }

    /// Rule 8.
    fn late(state: &State, worker: usize) -> State {
        let mut next = *state;
        next.workers[worker].phase = Idle;
        match state.call {
            Wanted | Open => {
                next.settle(Landed);
                if let Some(holder) = state.holder() {
                    next.forget(holder);
                }
            }
            Unknown => next.call = Resolved(true),
            Landed | Failed | Resolved(_) => {}
        }
        next
    }

    /// What a worker that holds the Run may record.
    fn commit(&self, state: &State, worker: usize, take: &mut impl FnMut(Action, State)) {
        let mut next = *state;
        match (state.workers[worker].phase, state.call) {
            (Idle, Wanted) => {
                self.intend(state, worker, take);
                if self.in_doubt(state.intents) && !self.has(Flaw::WantedIsUnsent) {
                    next.settle(Unknown);
                    take(Action::Asks(worker), next);
                } else {
                    next.settle(Failed);
                    take(Action::Cancels(worker), next);
                }
            }
            (Idle, Open) => self.recover(state, worker, take),
            (Permit { window, .. }, Open) if window.is_over() => {
                // Rule 2: it was not sent, and its worker knows that.
                next.workers[worker].phase = Idle;
                next.call = Wanted;
                take(Action::WindowCloses(worker), next);
            }
            (NotThere, Open) => {
                next.workers[worker].phase = Idle;
                next.call = Wanted;
                take(Action::WantsAgain(worker), next);
            }
            (Refused, Open) => {
                next.workers[worker].phase = Idle;
                if self.in_doubt(state.intents - 1) && !self.has(Flaw::RefusalBelieved) {
                    take(Action::GivesUp(worker), next);
                } else {
                    next.settle(Failed);
                    take(Action::Fails(worker), next);
                }
            }
            // What another epoch has written meanwhile is not seen by whoever does not have to compare.
            (Result, call) if call == Open || state.workers[worker].epoch != state.epoch => {
                next.workers[worker].phase = Idle;
                next.settle(Landed);
                take(Action::Settles(worker), next);
            }
            (Idle | Permit { .. } | Sent { .. } | Result | Refused | NotThere, _) => {}
        }
    }

    fn intend(&self, state: &State, worker: usize, take: &mut impl FnMut(Action, State)) {
        let mut next = *state;
        if state.intents == INTENTS || !self.may_intend(state) {
            if self.in_doubt(state.intents) {
                next.settle(Unknown);
                take(Action::Asks(worker), next);
            } else {
                next.settle(Failed);
                take(Action::Fails(worker), next);
            }
            return;
        }
        // Rule 2. The worker stops at what its slow clock calls the end of the window.
        let window = match self.has(Flaw::SkewForgotten) {
            true => state.lease.0.min(WINDOW) + SKEW,
            false if state.lease.0 > SKEW => state.lease.0.min(WINDOW + SKEW),
            false => 0,
        };
        next.workers[worker].phase = Permit { window: Left(window), abort: Left(TIMEOUT) };
        next.call = Open;
        next.quiet = Left(TIMEOUT + LANDING);
        next.intents += 1;
        if self.class == Class::Keyed && state.intents == 0 {
            next.dedup = Left(DEDUP);
        }
        take(Action::Intends(worker), next);
    }

    /// Rule 6.
    fn may_intend(&self, state: &State) -> bool {
        let enough = if self.has(Flaw::DedupToDeadline) { TIMEOUT } else { TIMEOUT + LANDING };
        let in_time = state.dedup >= Left(enough) || self.has(Flaw::DedupIgnored);
        self.class != Class::Keyed || state.intents == 0 || in_time
    }

    /// Rules 4 to 7: an intent without a settlement, and nobody here knows what became of it.
    fn recover(&self, state: &State, worker: usize, take: &mut impl FnMut(Action, State)) {
        let mut next = *state;
        let mut asked = *state;
        asked.settle(Unknown);
        match self.class {
            Class::Read | Class::Billable => {
                next.charged += u8::from(self.class == Class::Billable);
                next.call = Wanted;
                take(Action::RunsAgain(worker), next);
            }
            Class::Once => take(Action::Asks(worker), asked),
            Class::Keyed if self.may_intend(state) => {
                next.call = Wanted;
                take(Action::RunsAgain(worker), next);
            }
            Class::Keyed => take(Action::Asks(worker), asked),
            Class::Probed => {
                take(Action::Asks(worker), asked);
                if state.ledger > 0 {
                    next.workers[worker].phase = Result;
                    take(Action::ProbesLanded(worker), next);
                } else if state.quiet.is_over() || self.has(Flaw::ProbeBelieved) {
                    next.workers[worker].phase = NotThere;
                    take(Action::ProbesNothing(worker), next);
                }
            }
        }
    }
}
