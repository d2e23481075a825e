//! Running transitions until nothing moves: Event → decision → intents → rest.

use super::input::EVERY;
use super::{ITERATIONS_PER_COMMIT, MachineError, Pace, STATE_LIMIT, Work};
use crate::action::{Action, Decision, Join, ParallelCall};
use crate::budget::{Breach, Dimension, Reservation};
use crate::child::Spawn;
use crate::definition::{Cx, ErasedLoop};
use crate::digest::Digest;
use crate::effect::EffectClass;
use crate::entry::PayloadWriter;
use crate::failure::Failure;
use crate::ids::{CallId, QuestionId, Seq, TimerId};
use crate::model::{Constants, ModelCall};
use crate::outcome::{Interrupt, Outcome};
use crate::patch::StatePatch;
use crate::projection::{Pending, Projection, Status};
use crate::question::{Ask, QuestionEnd};
use crate::record::{ActionRecord, Decided, Ended, IterationStarted, Joins, QuestionEnded, Record, Settlement};
use crate::units::MicroUsd;
use alloc::string::String;
use alloc::vec::Vec;

impl Work<'_, '_, '_> {
    /// Goes on until the Run waits, is parked or has ended.
    pub(super) fn run_to_rest(&mut self) -> Result<(), MachineError> {
        let mut iterations = 0;
        while self.projection.status == Status::Open {
            self.cancel_losers()?;
            if self.projection.cancel.is_some() {
                return self.finish_cancel();
            }
            if self.projection.finishing.is_some() {
                return self.seal();
            }
            if !self.projection.events.is_empty() {
                let pending = self.projection.events.remove(0);
                self.decide(pending)?;
            } else if self.env.pace == Pace::Drain {
                return Ok(());
            } else if self.admit_next()? {
                // One more Call is intended, settled, or the Run is parked.
            } else if !self.projection.at_rest() {
                return Ok(());
            } else if let Some(breach) = self.iteration_breach() {
                self.park(Outcome::BudgetExceeded { breach })?;
            } else if iterations == ITERATIONS_PER_COMMIT {
                self.step.more = true;
                return Ok(());
            } else {
                iterations += 1;
                let iteration = self.projection.iteration + 1;
                self.push(&Record::IterationStarted(IterationStarted { iteration }), Vec::new())?;
            }
        }
        Ok(())
    }

    fn decide(&mut self, pending: Pending) -> Result<(), MachineError> {
        let decided = transition(self.env.definition, self.projection, pending);
        let fresh = |name: &Digest| !self.projection.constants.contains(name);
        let constants: Vec<_> = decided.constants.into_iter().filter(|c| fresh(&c.name.digest)).collect();
        let tells = decided.record.actions.iter().any(ActionRecord::tells);
        let told = tells.then(|| (decided.record.actions.clone(), decided.payload.clone()));
        let cuts = decided.record.actions.contains(&ActionRecord::CancelCalls);
        let asked = self.projection.last_question;
        self.push(&Record::Decided(decided.record), decided.payload)?;
        if cuts {
            self.cancel_open(EffectClass::may_be_cut, self.projection.head.seq)?;
            self.withdraw(asked)?;
        }
        if let Some((actions, payload)) = told {
            self.post(self.projection.head.seq, &actions, &payload);
        }
        self.step.constants.extend(constants);
        Ok(())
    }

    /// Withdraws the Loop's own Questions up to `last`. What became of a Call is still asked.
    fn withdraw(&mut self, last: QuestionId) -> Result<(), MachineError> {
        let own = self.projection.questions.iter().filter(|open| open.id <= last);
        let own: Vec<_> = own
            .filter_map(|open| match &open.ask {
                Ask::Ask { reply_to, .. } => Some((open.id, Joins::reply(reply_to.as_ref(), None))),
                Ask::Confirm { .. } => Some((open.id, None)),
                Ask::Resolve { .. } => None,
            })
            .collect();
        for (question, joins) in own {
            let (end, actor) = (QuestionEnd::Withdrawn, String::from("loopd"));
            self.push(&Record::QuestionEnded(QuestionEnded { question, end, actor, joins }), Vec::new())?;
        }
        Ok(())
    }

    /// Cancels the Calls that lost a race which others have won.
    fn cancel_losers(&mut self) -> Result<(), MachineError> {
        let won = self.projection.joins.iter().filter(|join| join.is_won());
        let losers: Vec<CallId> = won.flat_map(|join| join.left.iter().copied()).collect();
        for id in losers {
            let open = self.projection.open.iter().any(|call| call.id == id);
            let (cost, why) = if open { (None, "another call was first") } else { (Some(MicroUsd(0)), "never sent") };
            if open {
                self.step.aborted.push(id);
            }
            self.settled(id, Settlement::Cancelled, Some("call.lost_the_race"), why.into(), None, cost)?;
        }
        Ok(())
    }

    /// A limit that forbids the next iteration.
    fn iteration_breach(&self) -> Option<Breach> {
        let projection = &*self.projection;
        if let Some(limit) = projection.limits.iterations
            && projection.ledger.iterations >= limit
        {
            let used = projection.ledger.iterations;
            return Some(Breach { dimension: Dimension::Iterations, limit, used, needed: 1 });
        }
        self.wall_breach().or_else(|| projection.ledger.breach(&projection.limits, &Reservation::default()))
    }

    /// The wall-time limit, once it has passed.
    pub(super) fn wall_breach(&self) -> Option<Breach> {
        let limit = self.projection.limits.wall_ms?;
        let used = self.now().since(self.projection.started_at);
        (used >= limit).then_some(Breach { dimension: Dimension::WallMs, limit, used, needed: 0 })
    }

    /// Ends a cancelled Run once nothing that may have an effect is in flight.
    fn finish_cancel(&mut self) -> Result<(), MachineError> {
        self.cancel_open(EffectClass::may_be_cut, EVERY)?;
        self.close_children()?;
        if self.is_undecided() {
            return Ok(());
        }
        let Some(cancel) = self.projection.cancel.clone() else { return Ok(()) };
        let interrupt = Interrupt::Cancelled { actor: cancel.actor, reason: cancel.reason };
        self.end(Outcome::Interrupted { interrupt })
    }

    /// Ends a Run whose Loop has finished; what is still in flight is cancelled.
    fn seal(&mut self) -> Result<(), MachineError> {
        self.cancel_open(EffectClass::may_be_cut, EVERY)?;
        self.close_children()?;
        if self.is_undecided() {
            return Ok(());
        }
        match self.projection.finishing.clone() {
            Some(outcome) => self.end(outcome),
            None => Ok(()),
        }
    }

    /// True while an effect may still happen or nobody knows whether it did: a Run is not sealed over it.
    fn is_undecided(&self) -> bool {
        let Projection { open, wanted, in_doubt, .. } = &*self.projection;
        !open.is_empty() || !wanted.is_empty() || !in_doubt.is_empty()
    }

    pub(super) fn end(&mut self, outcome: Outcome) -> Result<(), MachineError> {
        let open: Vec<QuestionId> = self.projection.questions.iter().map(|open| open.id).collect();
        for question in open {
            let end = QuestionEnd::Withdrawn;
            let record = QuestionEnded { question, end, actor: String::from("loopd"), joins: None };
            self.push(&Record::QuestionEnded(record), Vec::new())?;
        }
        let told = outcome.clone();
        // The output is a body; the record only says that there is one.
        let (output, outcome) = outcome.split();
        let totals = self.projection.ledger;
        let head = self.projection.head.hash;
        self.push(&Record::Ended(Ended { outcome, totals, head }), output.into_bytes())?;
        self.tell_parent(told);
        Ok(())
    }
}

/// What a transition decided, in recorded form.
pub(crate) struct Transitioned {
    pub(crate) record: Decided,
    pub(crate) payload: Vec<u8>,
    pub(crate) constants: Vec<crate::model::Constants>,
}

/// Runs one transition. It is the same function live and in verification; a transition that fails
/// decides to fail and leaves State as it was.
pub(crate) fn transition(definition: &dyn ErasedLoop, projection: &Projection, pending: Pending) -> Transitioned {
    let Pending { seq: consumed, at, event } = pending;
    let (run, iteration, transcript) = (projection.run, projection.iteration, projection.transcript);
    let cx = Cx { run, consumed, now: at, iteration, transcript };
    let result = definition.transition(&cx, &projection.state, event).and_then(|(decision, state)| {
        if state.len() > STATE_LIMIT {
            let message = alloc::format!("the State is {} bytes; the limit is {STATE_LIMIT}", state.len());
            return Err(Failure::new("loop.state_too_large", message));
        }
        let compacts = |action: &Action| matches!(action, Action::Compact(_));
        if decision.actions.iter().skip(1).any(compacts) {
            return Err(Failure::new("loop.compact", "a summary comes first, and once"));
        }
        if decision.actions.first().is_some_and(compacts) && projection.owes_a_reply() {
            let message = "a call or question still has to reply to what the summary would replace";
            return Err(Failure::new("loop.compact", message));
        }
        Ok((decision, state))
    });
    let (decision, state) = match result {
        Ok((decision, state)) => (decision, Some(state)),
        Err(failure) => (Decision::fail(failure), None),
    };
    let patch = state.as_ref().map_or(StatePatch::Same, |new| StatePatch::between(&projection.state, new));
    let state = match (&patch, state) {
        (StatePatch::Same, _) | (_, None) => None,
        (StatePatch::Splice(..) | StatePatch::Set(_), Some(new)) => Some(Digest::sha256(&[new.as_bytes()])),
    };
    let mut recorder = Recorder {
        payload: PayloadWriter::default(),
        call: projection.last_call,
        question: projection.last_question,
        timer: projection.last_timer,
        compacted: projection.transcript.mark.map_or(projection.head.seq, |mark| mark.after),
        constants: decision.constants,
        actions: Vec::new(),
    };
    for action in decision.actions {
        let record = recorder.record(action);
        recorder.actions.push(record);
    }
    let Recorder { payload, constants, actions, .. } = recorder;
    let record = Decided { consumed: consumed.0, actions, patch, state };
    Transitioned { record, payload: payload.finish(), constants }
}

/// Turns Actions into their recorded form, numbering Calls, Questions and timers.
struct Recorder {
    payload: PayloadWriter,
    call: CallId,
    question: QuestionId,
    timer: TimerId,
    compacted: Seq,
    constants: Vec<Constants>,
    actions: Vec<ActionRecord>,
}

impl Recorder {
    /// Parallel Calls are recorded one by one, and then as joined.
    fn parallel(&mut self, calls: Vec<ParallelCall>, join: Join) -> ActionRecord {
        let count = calls.len() as u32;
        for call in calls {
            let record = match call {
                ParallelCall::Model(call) => self.record(Action::CallModel(call)),
                ParallelCall::Tool(call) => self.record(Action::CallTool(call)),
            };
            self.actions.push(record);
        }
        let ok = match join {
            Join::All => None,
            Join::FirstOk(ok) => Some(ok.clamp(1, count.max(1))),
        };
        ActionRecord::Join { calls: count, ok }
    }

    fn record(&mut self, action: Action) -> ActionRecord {
        match action {
            Action::Parallel { calls, join } => self.parallel(calls, join),
            Action::Spawn(spawn) => self.spawn(spawn),
            Action::Signal { to, name, body } => {
                ActionRecord::Signal { to, name, body: self.payload.add(body.as_bytes()) }
            }
            Action::RaiseChild { child, by } => ActionRecord::RaiseChild { child, by },
            Action::CancelChild { child, reason } => ActionRecord::CancelChild { child, reason },
            Action::CallModel(call) => {
                self.call = self.call.next();
                let messages = (!call.messages.is_empty())
                    .then(|| self.payload.add(&serde_json::to_vec(&call.messages).unwrap_or_default()));
                let call = ModelCall { messages: Vec::new(), ..call };
                ActionRecord::Model { id: self.call, call, messages }
            }
            Action::CallTool(call) => {
                self.call = self.call.next();
                let args = self.payload.add(call.args.as_bytes());
                ActionRecord::Tool { id: self.call, tool: call.tool, args, reply_to: call.reply_to, cap: call.cap }
            }
            Action::Speak(text) => ActionRecord::Speak(self.payload.add(text.as_bytes())),
            Action::Ask(Ask::Resolve { .. }) => {
                ActionRecord::Fail(Failure::new("loop.resolve", "only the engine asks what became of a call"))
            }
            Action::Ask(ask) => {
                self.question = self.question.next();
                ActionRecord::Ask { id: self.question, ask }
            }
            Action::Wait { signals, timeout_ms } => {
                let timeout = timeout_ms.map(|ms| (self.next_timer(), ms));
                ActionRecord::Wait { signals, timeout }
            }
            Action::Sleep { ms } => ActionRecord::Sleep { id: self.next_timer(), ms },
            Action::Note(message) => {
                let json = serde_json::to_vec(&message).unwrap_or_default();
                ActionRecord::Note(self.payload.add(&json))
            }
            Action::Compact(summary) => {
                ActionRecord::Compact { summary: self.payload.add(summary.as_bytes()), after: self.compacted }
            }
            Action::CancelCalls => ActionRecord::CancelCalls,
            Action::Label { key, value } => ActionRecord::Label(key, value),
            Action::Finish(output) => ActionRecord::Finish(self.payload.add(output.as_bytes())),
            Action::Fail(failure) => ActionRecord::Fail(failure),
        }
    }

    fn spawn(&mut self, spawn: Spawn) -> ActionRecord {
        self.call = self.call.next();
        let Spawn { name, loop_name, definition, input, limits, close, reply_to, cap } = spawn;
        let input = self.payload.add(input.as_bytes());
        let digest = definition.as_ref().map(|constants| constants.name.digest);
        self.constants.extend(definition);
        ActionRecord::Spawn { id: self.call, name, loop_name, definition: digest, input, limits, close, reply_to, cap }
    }

    fn next_timer(&mut self) -> TimerId {
        self.timer = self.timer.next();
        self.timer
    }
}
