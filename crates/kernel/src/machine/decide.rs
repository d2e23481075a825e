//! Running transitions until nothing moves: Event → decision → intents → rest.

use super::{ITERATIONS_PER_COMMIT, MachineError, Pace, STATE_LIMIT, Work};
use crate::action::{Action, Decision};
use crate::budget::{Breach, Dimension, Reservation};
use crate::definition::{Cx, ErasedLoop};
use crate::digest::Digest;
use crate::effect::EffectClass;
use crate::entry::PayloadWriter;
use crate::failure::Failure;
use crate::ids::{CallId, QuestionId, TimerId};
use crate::model::ModelCall;
use crate::outcome::{Interrupt, Outcome};
use crate::patch::StatePatch;
use crate::projection::{Pending, Projection, Status};
use crate::question::{Ask, QuestionEnd};
use crate::record::{ActionRecord, Decided, Ended, IterationStarted, QuestionEnded, Record};
use alloc::string::String;
use alloc::vec::Vec;

impl Work<'_, '_, '_> {
    /// Goes on until the Run waits, is parked or has ended.
    pub(super) fn run_to_rest(&mut self) -> Result<(), MachineError> {
        let mut iterations = 0;
        while self.projection.status == Status::Open {
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
        self.push(&Record::Decided(decided.record), decided.payload)?;
        self.step.constants.extend(constants);
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
        self.cancel_open(EffectClass::may_be_cut)?;
        if self.is_undecided() {
            return Ok(());
        }
        let Some(cancel) = self.projection.cancel.clone() else { return Ok(()) };
        let interrupt = Interrupt::Cancelled { actor: cancel.actor, reason: cancel.reason };
        self.end(Outcome::Interrupted { interrupt })
    }

    /// Ends a Run whose Loop has finished; what is still in flight is cancelled.
    fn seal(&mut self) -> Result<(), MachineError> {
        self.cancel_open(EffectClass::may_be_cut)?;
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
        !self.projection.open.is_empty() || !self.projection.in_doubt.is_empty()
    }

    fn end(&mut self, outcome: Outcome) -> Result<(), MachineError> {
        let open: Vec<QuestionId> = self.projection.questions.iter().map(|open| open.id).collect();
        for question in open {
            let end = QuestionEnd::Withdrawn;
            let record = QuestionEnded { question, end, actor: String::from("loopd"), joins: None };
            self.push(&Record::QuestionEnded(record), Vec::new())?;
        }
        let (payload, outcome) = match outcome {
            // The output is a body; the record only says that there is one.
            Outcome::Completed { output } => (output.into_bytes(), Outcome::Completed { output: String::new() }),
            Outcome::BudgetExceeded { .. }
            | Outcome::Stuck { .. }
            | Outcome::Interrupted { .. }
            | Outcome::PolicyDenied { .. }
            | Outcome::Failed { .. } => (Vec::new(), outcome),
        };
        let totals = self.projection.ledger;
        let head = self.projection.head.hash;
        self.push(&Record::Ended(Ended { outcome, totals, head }), payload)
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
    let cx = Cx { run: projection.run, consumed, now: at, iteration: projection.iteration };
    let result = definition.transition(&cx, &projection.state, event).and_then(|(decision, state)| {
        if state.len() > STATE_LIMIT {
            let message = alloc::format!("the State is {} bytes; the limit is {STATE_LIMIT}", state.len());
            return Err(Failure::new("loop.state_too_large", message));
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
    };
    let actions = decision.actions.into_iter().map(|action| recorder.record(action)).collect();
    Transitioned {
        record: Decided { consumed: consumed.0, actions, patch, state },
        payload: recorder.payload.finish(),
        constants: decision.constants,
    }
}

/// Turns Actions into their recorded form, numbering Calls, Questions and timers.
struct Recorder {
    payload: PayloadWriter,
    call: CallId,
    question: QuestionId,
    timer: TimerId,
}

impl Recorder {
    fn record(&mut self, action: Action) -> ActionRecord {
        match action {
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
                ActionRecord::Tool { id: self.call, tool: call.tool, args, reply_to: call.reply_to }
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
            Action::Label { key, value } => ActionRecord::Label(key, value),
            Action::Finish(output) => ActionRecord::Finish(self.payload.add(output.as_bytes())),
            Action::Fail(failure) => ActionRecord::Fail(failure),
        }
    }

    fn next_timer(&mut self) -> TimerId {
        self.timer = self.timer.next();
        self.timer
    }
}
