//! One Run while a bare worker drives it: input, apply, commit, and only then what is permitted.

use super::World;
use super::agenda::{Done, What};
use super::loops::{Offers, named};
use super::outside::{Answer, Sending};
use super::worker::{Me, SKEW_MS, ready};
use loopd_kernel::failure::Disposition;
use loopd_kernel::machine::{Env, Input, MachineError, Pace, Probe, Refused, Settling, Step};
use loopd_kernel::projection::Status;
use loopd_kernel::question::{OpenQuestion, QuestionEnd};
use loopd_kernel::record::Setback;
use loopd_kernel::{
    CallId, Epoch, ErasedLoop, Failure, Machine, MicroUsd, Permit, Projection, RunId, Seq, TimeMs, Usage,
};
use loopd_runtime::driver::{self, Holder, Loaded};
use loopd_store::{Batch, Expectation, InboxItem, Store, StoreError, Write};
use std::collections::{BTreeMap, VecDeque};

/// Entries after which a snapshot is taken.
const SNAPSHOT: u64 = 32;
/// A Run that waits for a time nearer than this stays.
const LINGER_MS: u64 = 5_000;

/// A step that was handed to the store, and whose answer has not come yet.
struct Unanswered {
    step: Step,
    before: Seq,
    questions: Vec<OpenQuestion>,
    item: Option<i64>,
    /// The result of an effect that is being recorded.
    result: Option<(CallId, String)>,
    applied: Applied,
    keeps: bool,
    snapshot: bool,
    /// An earlier try may have been written.
    unsure: bool,
    committed: bool,
}

/// When a step was applied, and how long its Calls may be sent.
#[derive(Clone, Copy)]
struct Applied {
    now: u64,
    /// The time that its Entries bear.
    entered: TimeMs,
    window_ms: u64,
}

pub struct Drive {
    pub epoch: Epoch,
    machine: Machine,
    definition: &'static dyn ErasedLoop,
    queue: VecDeque<(Input, Option<i64>)>,
    /// The request that is under way for a Call.
    flights: BTreeMap<CallId, u64>,
    unanswered: Option<Unanswered>,
    since_snapshot: u64,
    /// The inbox may hold more than was read.
    more: bool,
    blocked: bool,
    /// Nothing was intended, since there was no lease.
    drained: bool,
    /// Something may have come while it waited for the store.
    missed: bool,
    looked_at: TimeMs,
    wake: u64,
    /// It was given up in a commit, or taken away.
    over: bool,
}

impl Drive {
    pub fn new(loaded: Loaded, epoch: Epoch, loop_name: &str) -> Self {
        Self {
            epoch,
            machine: Machine::new(loaded.projection),
            definition: named(loop_name),
            queue: VecDeque::new(),
            flights: BTreeMap::new(),
            unanswered: None,
            since_snapshot: loaded.since_snapshot,
            more: false,
            blocked: false,
            drained: false,
            missed: false,
            looked_at: TimeMs(i64::MIN),
            wake: u64::MAX,
            over: false,
        }
    }

    fn projection(&self) -> &Projection {
        self.machine.projection()
    }

    fn run(&self) -> RunId {
        self.projection().run
    }

    pub fn push(&mut self, input: Input) {
        self.queue.push_back((input, None));
    }

    /// A request has ended, unless nobody waits for it any more.
    pub fn settle(&mut self, done: Done) {
        if self.flights.get(&done.call) == Some(&done.number) {
            self.flights.remove(&done.call);
            self.push(done.input);
        }
    }

    /// Drives it as far as it goes. False: it is not driven here any more.
    pub fn go(&mut self, me: &mut Me, world: &mut World) -> bool {
        while me.alive && !self.over && self.unanswered.is_none() {
            if let Some((input, item)) = self.queue.pop_front() {
                self.step(input, item, me, world);
            } else if self.missed {
                self.look_around(me, world);
            } else if self.rests(me, world) || self.more {
                // Whatever came meanwhile moves it before it is released.
                if !self.read_inbox(me, world) && self.rests(me, world) {
                    self.hand_over(Step::default(), None, None, self.applied(me, world), me, world);
                } else if self.queue.is_empty() {
                    break;
                }
            } else {
                break;
            }
        }
        let idle = !self.over && self.unanswered.is_none();
        if let Some(at) = self.projection().wake_after(self.looked_at).filter(|_| idle) {
            let now = world.agenda.now;
            let in_ms = at.since(me.wall(now)).max(1);
            if self.wake <= now || self.wake > now + in_ms {
                self.wake = now + in_ms;
                world.agenda.add(in_ms, What::Hint(me.number, self.run()));
            }
        }
        !self.over && me.alive
    }

    /// True when the Run has an outcome, or waits for longer than is worth keeping it.
    fn rests(&self, me: &Me, world: &World) -> bool {
        let projection = self.projection();
        if !self.flights.is_empty() || !self.queue.is_empty() {
            return false;
        }
        let soon = me.wall(world.agenda.now).after(LINGER_MS);
        let waits = projection.is_suspended() || (self.blocked && projection.only_children());
        projection.status != Status::Open || (waits && projection.wake_at().is_none_or(|at| at > soon))
    }

    /// Reads the inbox, and queues what is due.
    pub fn look_around(&mut self, me: &mut Me, world: &mut World) {
        // While it waits for the store it looks at nothing else.
        self.missed = self.unanswered.is_some();
        if !me.alive || self.over || self.missed {
            return;
        }
        self.read_inbox(me, world);
        let now = me.wall(world.agenda.now);
        self.looked_at = now;
        let Projection { timers, questions, wanted, status, .. } = self.machine.projection();
        if *status != Status::Open {
            return;
        }
        let timers = timers.iter().filter(|timer| timer.at <= now).map(|timer| Input::Timer(timer.id));
        let expired = questions.iter().filter(|open| open.expires_at.is_some_and(|at| at <= now)).map(|open| {
            let (question, end, actor) = (open.id, QuestionEnd::TimedOut, "loopd".to_owned());
            Input::Answer { question, end, actor, value: String::new(), given_at: now }
        });
        let again =
            std::mem::take(&mut self.drained) || wanted.iter().any(|call| call.not_before.is_some_and(|at| at <= now));
        self.queue.extend(timers.chain(expired).chain(again.then_some(Input::Continue)).map(|input| (input, None)));
    }

    /// True: there were items that apply.
    fn read_inbox(&mut self, me: &Me, _: &World) -> bool {
        let parked = matches!(self.projection().status, Status::Parked(_));
        let items = ready(me.store.inbox(self.run(), 64)).unwrap();
        let read = items.len();
        let taken = self.unanswered.as_ref().and_then(|step| step.item);
        let known = |id: i64| taken == Some(id) || self.queue.iter().any(|(_, item)| *item == Some(id));
        let applies = |item: &InboxItem| !known(item.id) && (!parked || item.body.moves_parked());
        let fresh: Vec<InboxItem> = items.into_iter().filter(applies).collect();
        let found = !fresh.is_empty();
        self.more = found && parked && fresh.len() < read;
        self.queue
            .extend(fresh.into_iter().map(|item| (item.id, driver::input_of(item))).map(|(id, it)| (it, Some(id))));
        found
    }

    fn applied(&self, me: &Me, world: &World) -> Applied {
        let now = world.agenda.now;
        let entered = me.wall(now).max(self.projection().head.at);
        Applied { now, entered, window_ms: me.window_ms(now) }
    }

    /// Applies one input and hands the step to the store.
    fn step(&mut self, input: Input, item: Option<i64>, me: &mut Me, world: &mut World) {
        let (applied, before) = (self.applied(me, world), self.projection().head.seq);
        let questions = self.projection().questions.clone();
        let result = self.effect_result(&input);
        self.drained = applied.window_ms == 0;
        let mut env = Env {
            now: me.wall(applied.now),
            epoch: self.epoch,
            dispatch_window_ms: applied.window_ms,
            skew_ms: SKEW_MS,
            // Without a lease nothing may be sent, so nothing is intended.
            pace: if applied.window_ms == 0 { Pace::Drain } else { Pace::Full },
            catalog: &Offers,
            definition: self.definition,
            salt: &mut || me.salt(),
        };
        let step = match self.machine.apply(input, &mut env) {
            Ok(step) => step,
            Err(MachineError::Refused(Refused::Parked)) if item.is_some() => return,
            // The fact came too late or does not fit; its item is taken so that it is not tried for ever.
            Err(MachineError::Refused(_)) => Step::default(),
            Err(error) => panic!("{error}"),
        };
        self.blocked = step.blocked;
        if step.more {
            self.push(Input::Continue);
        }
        if step.entries.is_empty() && item.is_none() {
            self.probe(&step.probes, me, world);
            return;
        }
        let unanswered = (before, questions);
        self.hand_over(step, item, Some(unanswered), applied, me, world);
        if let Some(unanswered) = &mut self.unanswered {
            unanswered.result = result;
        }
    }

    fn hand_over(
        &mut self,
        step: Step,
        item: Option<i64>,
        base: Option<(Seq, Vec<OpenQuestion>)>,
        applied: Applied,
        me: &mut Me,
        world: &mut World,
    ) {
        let (before, questions) =
            base.unwrap_or_else(|| (self.projection().head.seq, self.projection().questions.clone()));
        self.since_snapshot += step.entries.len() as u64;
        let sealed = matches!(self.projection().status, Status::Ended(_));
        let goes_on = step.more || self.more || !self.rests(me, world);
        let keeps = goes_on && !sealed;
        let snapshot = self.since_snapshot >= SNAPSHOT && !step.entries.is_empty();
        let (result, unsure, committed) = (None, false, false);
        let unanswered =
            Unanswered { step, before, questions, item, result, applied, keeps, snapshot, unsure, committed };
        self.unanswered = Some(unanswered);
        self.answered(me, world);
    }

    fn batch(&self, unanswered: &Unanswered, me: &Me) -> Batch {
        let Unanswered { step, before, questions, item, keeps, snapshot, .. } = unanswered;
        let holder = Holder { epoch: self.epoch, worker: me.id, keeps: *keeps };
        let mut batch = driver::batch(self.projection(), step, *before, questions, &holder, *snapshot);
        if step.definition_changed {
            let Projection { run, version, definition, .. } = self.projection();
            batch.writes.push(Write::ChangeDefinition { run: *run, version: version.clone(), definition: *definition });
        }
        batch.writes.extend(item.map(|id| Write::TakeInbox { run: self.run(), id }));
        batch
    }

    /// Commits, or hears that it was committed, and performs what that permits.
    pub fn answered(&mut self, me: &mut Me, world: &mut World) {
        let Some(mut unanswered) = self.unanswered.take() else { return };
        if !unanswered.committed {
            if world.dies(me) {
                return;
            }
            let answer = ready(me.store.commit(self.batch(&unanswered, me)));
            match self.meant(answer.err(), &mut unanswered, me) {
                Meant::Committed => unanswered.committed = true,
                Meant::Unclear => {
                    world.agenda.add(5 + me.chance.below(1_000), What::Answer(me.number, self.run(), self.epoch));
                    self.unanswered = Some(unanswered);
                    return;
                }
                Meant::Lost => {
                    self.over = true;
                    self.unanswered = Some(unanswered);
                    return;
                }
            }
            world.committed(&unanswered.step, self.projection());
            if world.dies(me) {
                return;
            }
            if let Some(late) = world.late(me) {
                world.agenda.add(late, What::Answer(me.number, self.run(), self.epoch));
                self.unanswered = Some(unanswered);
                return;
            }
        }
        let Unanswered { step, applied, keeps, snapshot, .. } = unanswered;
        self.over = !keeps;
        if snapshot {
            self.since_snapshot = 0;
        }
        for call in &step.aborted {
            self.flights.remove(call);
        }
        self.probe(&step.probes, me, world);
        for permit in step.committed() {
            self.send(permit, applied, me, world);
        }
    }

    fn meant(&self, error: Option<StoreError>, unanswered: &mut Unanswered, me: &Me) -> Meant {
        let entries = &unanswered.step.entries;
        let found = || ready(me.store.entries(self.run(), unanswered.before, entries.len() + 1)).unwrap();
        match error {
            None => Meant::Committed,
            Some(StoreError::Conflict(Expectation::Head { .. })) if unanswered.unsure && found() == *entries => {
                Meant::Committed
            }
            Some(StoreError::Fenced(_) | StoreError::Conflict(Expectation::Head { .. })) => Meant::Lost,
            // The first try of a commit without Entries has taken the item.
            Some(StoreError::Conflict(Expectation::InboxItem(_))) if unanswered.unsure && entries.is_empty() => {
                Meant::Committed
            }
            Some(StoreError::Ambiguous(_)) => {
                unanswered.unsure = true;
                if entries.is_empty() {
                    return Meant::Unclear;
                }
                match found() {
                    found if found.is_empty() => Meant::Unclear,
                    found if found == *entries => Meant::Committed,
                    _ => Meant::Lost,
                }
            }
            Some(StoreError::Unavailable(_)) => Meant::Unclear,
            Some(error) => panic!("{error}"),
        }
    }

    fn send(&mut self, permit: Permit, applied: Applied, me: &mut Me, world: &mut World) {
        let (now, call) = (world.agenda.now, permit.call());
        let wall = me.wall(now);
        // A wall clock that was set back does not widen the window.
        let in_time = now - applied.now <= applied.window_ms;
        let Ok(dispatch) = permit.send(if in_time { wall } else { TimeMs(i64::MAX) }) else {
            let failure = Failure::new("call.not_sent", "the dispatch window closed before the call was sent");
            let (setback, usage, cost) = (Setback::NotSent, Some(Usage::default()), Some(MicroUsd(0)));
            self.push(Input::Retry { call, failure, setback, usage, cost, retry_at: wall });
            return;
        };
        let steady = (applied.now + dispatch.abort_by.since(applied.entered)).saturating_sub(now);
        let left = steady.min(dispatch.abort_by.since(wall));
        if left == 0 {
            let failure = Failure::new("call.too_late", "its time was over before it could be sent");
            let settling = Settling::Failed(failure, Disposition::DidNotHappen);
            self.push(Input::Settle { call, settling, usage: Some(Usage::default()), cost: Some(MicroUsd(0)) });
            return;
        }
        let head = world.is_intended(dispatch.run, call, self.epoch);
        let (at, lease) = (TimeMs(0).after(now), TimeMs(0).after(me.lease_ms()));
        let answer = world.outside.call(&dispatch, Sending { at, wall, lease, head, left });
        self.flies(call, answer, me, world);
    }

    fn probe(&mut self, probes: &[Probe], me: &mut Me, world: &mut World) {
        for probe in probes {
            if !self.flights.contains_key(&probe.call.id) {
                let now = world.agenda.now;
                let answer = world.outside.probe(probe, TimeMs(0).after(now), me.wall(now));
                self.flies(probe.call.id, answer, me, world);
            }
        }
    }

    fn flies(&mut self, call: CallId, answer: Answer, me: &Me, world: &mut World) {
        let number = world.agenda.number;
        self.flights.insert(call, number);
        let done = Box::new(Done { call, number, input: answer.input });
        let done = What::Done(me.number, self.run(), self.epoch, done);
        world.agenda.add(answer.after_ms, done);
    }

    /// The result of a Call that may have changed the world, when this input is one.
    fn effect_result(&self, input: &Input) -> Option<(CallId, String)> {
        let Input::Settle { call, settling: Settling::Landed(output), .. } = input else { return None };
        let class = self.projection().call(*call)?.class()?;
        (!class.may_be_cut()).then(|| (*call, output.clone()))
    }

    /// What may still be handed in of a Run that is lost.
    pub fn leftovers(&mut self) -> Vec<(CallId, String)> {
        let unrecorded = self.unanswered.take().filter(|step| !step.committed).and_then(|step| step.result);
        let queued = self.queue.iter().filter_map(|(input, _)| self.effect_result(input));
        unrecorded.into_iter().chain(queued).collect()
    }
}

impl std::fmt::Debug for Drive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { epoch, queue, flights, unanswered, more, blocked, drained, missed, wake, over, .. } = self;
        let waits = unanswered.as_ref().map(|step| (step.before, step.unsure, step.committed));
        write!(
            f,
            "{epoch} {queue:?} flights={flights:?} waits={waits:?} more={more} blocked={blocked} drained={drained} "
        )?;
        write!(f, "missed={missed} wake={wake} over={over} {:?}", self.projection())
    }
}

/// What the answer to a commit means.
enum Meant {
    Committed,
    /// It has to be made again.
    Unclear,
    /// Somebody else drives the Run.
    Lost,
}
