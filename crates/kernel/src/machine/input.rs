//! Inputs: facts from outside, and the Entries that record them.

use super::answer::accepts;
use super::probe::ProbeAnswer;
use super::{Env, MachineError, Refused, Work};
use crate::budget::{Limits, RETRIES};
use crate::child::{ChildNews, Parent};
use crate::digest::Digest;
use crate::effect::{EffectClass, Recovery};
use crate::entry::PayloadWriter;
use crate::failure::{Disposition, Failure};
use crate::ids::{CallId, Epoch, QuestionId, Seq, TimerId};
use crate::model::Constants;
use crate::outcome::{Interrupt, Outcome};
use crate::projection::{Call, Projection, Status, Target};
use crate::question::QuestionEnd;
use crate::record::{
    Attempted, BudgetChanged, CancelRequested, Exchanged, Parked, Record, Recovered, Reopened, Setback, Settled,
    Settlement, Signal, Started, TimerFired,
};
use crate::transcript;
use crate::units::{MicroUsd, TimeMs, Usage};
use crate::upgrade::{self, Fit};
use alloc::string::String;
use alloc::vec::Vec;

/// Crash recoveries in a row without progress after which a Run is parked as poisoned.
const MAX_RECOVERIES: u32 = 3;

/// Lost attempts of a billable Call after which recovery gives it up.
pub(super) const MAX_LOST_ATTEMPTS: u32 = 3;

/// Why a keyed Call that is not sent again is in doubt.
pub(super) const EARLIER: &str = "an earlier attempt of this call may have happened";

/// The first pause before a keyed Call in doubt is sent again; it doubles.
pub(super) const RESEND_MS: u64 = 500;

/// Later than every decision.
pub(super) const EVERY: Seq = Seq(u64::MAX);

/// How a Run starts.
#[derive(Clone, Debug)]
pub struct Admission {
    /// The outermost scope.
    pub tenant: String,
    /// The input as JSON text.
    pub input: String,
    /// The limits.
    pub limits: Limits,
    /// The caller's key for starting once.
    pub key: Option<String>,
}

/// How a Call settled, as its performer saw it.
#[derive(Clone, Debug)]
pub enum Settling {
    /// It returned: the output of a tool, or the JSON of a model's reply.
    Landed(String),
    /// It returned, and the exact bodies of the request and the response are kept with it.
    Kept {
        /// The JSON of the model's reply.
        output: String,
        /// The request's body.
        request: Constants,
        /// The response's body.
        response: Constants,
    },
    /// It failed.
    Failed(Failure, Disposition),
    /// It was interrupted while it ran.
    Interrupted(String),
}

/// A fact from outside.
#[derive(Clone, Debug)]
pub enum Input {
    /// The Run begins.
    Start(Admission),
    /// A child Run begins.
    Born {
        /// With this.
        admission: Admission,
        /// Its parent.
        parent: Parent,
        /// It cannot begin: the Loop panicked over its input.
        refused: Option<Failure>,
    },
    /// From here on the definition of [`Env`] decides: it is another one than that which decided so far.
    ChangeDefinition,
    /// A worker took the Run over from one that died.
    Recover,
    /// A Call settled.
    Settle {
        /// The Call.
        call: CallId,
        /// How.
        settling: Settling,
        /// Usage; `None` is unknown.
        usage: Option<Usage>,
        /// Cost; `None` is unknown.
        cost: Option<MicroUsd>,
    },
    /// An attempt failed and shall be repeated.
    Retry {
        /// The Call.
        call: CallId,
        /// Why it failed.
        failure: Failure,
        /// Whether it failed, was stopped, or was never sent.
        setback: Setback,
        /// Usage; `None` is unknown and charged at the reservation.
        usage: Option<Usage>,
        /// Cost; `None` is unknown.
        cost: Option<MicroUsd>,
        /// Not again before this.
        retry_at: TimeMs,
    },
    /// The target of a Call was asked whether it happened.
    Probed {
        /// The Call.
        call: CallId,
        /// When the question was sent.
        asked_at: TimeMs,
        /// The answer.
        answer: ProbeAnswer,
    },
    /// A worker that does not drive the Run any more had the result of a Call.
    Late {
        /// The Call.
        call: CallId,
        /// The epoch of that worker.
        epoch: Epoch,
        /// The output.
        output: String,
    },
    /// A child has ended or is parked.
    News(ChildNews),
    /// A signal arrived.
    Signal {
        /// Its name.
        name: String,
        /// Its body.
        body: String,
    },
    /// A Question ended.
    Answer {
        /// The Question.
        question: QuestionId,
        /// How.
        end: QuestionEnd,
        /// Who.
        actor: String,
        /// The answer as JSON text.
        value: String,
        /// When it was given. It may have waited since, and says nothing about what happened after it.
        given_at: TimeMs,
    },
    /// A timer is due.
    Timer(TimerId),
    /// Somebody cancels the Run.
    Cancel {
        /// Who.
        actor: String,
        /// Why.
        reason: String,
    },
    /// Somebody reopens a parked Run, perhaps with raised limits.
    Reopen {
        /// Who.
        actor: String,
        /// The raised limits.
        raise: Limits,
    },
    /// The driver parks the Run: something is in doubt.
    Park(Interrupt),
    /// Taking this input made a transition panic: the fact is recorded, the Run is parked as poisoned,
    /// and the transition is run again when somebody reopens it.
    Poisoned {
        /// The input.
        during: alloc::boxed::Box<Input>,
        /// The panic's text.
        reason: String,
    },
    /// Go on after a step that said `more`.
    Continue,
}

/// Checks an input against the Run before anything changes.
pub(super) fn check(projection: &Projection, input: &Input, env: &Env<'_>) -> Result<(), Refused> {
    if let Input::Poisoned { during, .. } = input {
        return check(projection, during, env);
    }
    let open_call = |id: &CallId| projection.open.iter().any(|call| call.id == *id);
    match (&projection.status, input) {
        (Status::Ended(_), _) => return Err(Refused::Ended),
        (Status::Open, Input::Reopen { raise, .. }) if *raise == Limits::default() => return Err(Refused::NotParked),
        (Status::Open, _) | (Status::Parked(_), Input::Reopen { .. } | Input::Cancel { .. }) => {}
        // What was in flight when the Run was parked settles all the same.
        (
            Status::Parked(_),
            Input::Settle { .. }
            | Input::Retry { .. }
            | Input::Probed { .. }
            | Input::Recover
            | Input::ChangeDefinition,
        ) => {}
        (Status::Parked(_), _) => return Err(Refused::Parked),
    }
    match input {
        Input::Settle { call, .. } | Input::Retry { call, .. } if !open_call(call) => Err(Refused::NotOpen(*call)),
        Input::Late { call, .. } if !projection.call(*call).is_some_and(may_land_late) => Err(Refused::NotOpen(*call)),
        Input::Timer(id) if !projection.timers.iter().any(|timer| timer.id == *id) => Err(Refused::NoSuchTimer(*id)),
        Input::Answer { question, end, value, given_at, .. } => {
            let open = projection.questions.iter().find(|open| open.id == *question);
            let open = open.ok_or(Refused::NoSuchQuestion(*question))?;
            let looked_at = env.now.min(*given_at);
            accepts(open, *end, value, looked_at, env.skew_ms)
        }
        Input::Settle { .. }
        | Input::Retry { .. }
        | Input::Timer(_)
        | Input::Start(_)
        | Input::Born { .. }
        | Input::ChangeDefinition
        | Input::Probed { .. }
        | Input::Late { .. }
        | Input::News(_)
        | Input::Recover
        | Input::Signal { .. }
        | Input::Cancel { .. }
        | Input::Reopen { .. }
        | Input::Park(_)
        | Input::Poisoned { .. }
        | Input::Continue => Ok(()),
    }
}

impl Work<'_, '_, '_> {
    /// Records the input.
    pub(super) fn take(&mut self, input: Input) -> Result<(), MachineError> {
        match input {
            Input::Start(admission) => {
                let state = self.env.definition.init(&admission.input).map_err(Refused::Input)?;
                self.start(admission, None, state)
            }
            Input::Born { admission, parent, refused } => self.be_born(admission, parent, refused),
            Input::ChangeDefinition => self.change_definition(),
            Input::Recover => self.recover(),
            Input::Settle { call, settling, usage, cost } => self.settle(call, settling, usage, cost),
            Input::Retry { call, failure, setback, usage, cost, retry_at } => {
                let failed = setback == Setback::Failed;
                if failed && self.projection.ledger.retries >= self.projection.limits.retries.unwrap_or(RETRIES) {
                    let message = alloc::format!("{}; the run has no retries left", failure.message);
                    return self.settled(call, Settlement::Failed, Some(&failure.code), message, usage, cost);
                }
                let n = self.open_call(call)?.attempts + u32::from(failed);
                let mut payload = PayloadWriter::default();
                let message = payload.add(failure.message.as_bytes());
                let code = failure.code;
                let record = Attempted { call, n, setback, code, message, usage, cost, retry_at };
                self.push(&Record::Attempted(record), payload.finish())
            }
            Input::Probed { call, asked_at, answer } => self.probed(call, asked_at, answer),
            Input::Late { call, epoch, output } => self.late(call, epoch, output),
            Input::News(news) => self.news(news),
            Input::Signal { name, body } => self.push(&Record::Signal(Signal { name }), body.into_bytes()),
            Input::Answer { question, end, actor, value, given_at: _ } => self.answer(question, end, actor, value),
            Input::Timer(timer) => self.push(&Record::TimerFired(TimerFired { timer }), Vec::new()),
            Input::Cancel { actor, reason } => {
                self.push(&Record::CancelRequested(CancelRequested { actor, reason }), Vec::new())?;
                self.cancel_open(EffectClass::may_be_cut, EVERY)
            }
            Input::Reopen { actor, raise } if matches!(self.projection.status, Status::Open) => {
                self.push(&Record::BudgetChanged(BudgetChanged { by: actor, raise }), Vec::new())
            }
            Input::Reopen { actor, raise } => self.push(&Record::Reopened(Reopened { by: actor, raise }), Vec::new()),
            Input::Park(interrupt) => self.park(Outcome::Interrupted { interrupt }),
            Input::Poisoned { during, reason } => {
                self.take(*during)?;
                self.park(Outcome::Interrupted { interrupt: Interrupt::Poisoned { reason } })
            }
            Input::Continue => Ok(()),
        }
    }

    pub(super) fn park(&mut self, outcome: Outcome) -> Result<(), MachineError> {
        self.push(&Record::Parked(Parked { outcome: outcome.clone() }), Vec::new())?;
        self.tell_parent(outcome);
        Ok(())
    }

    pub(super) fn start(
        &mut self,
        admission: Admission,
        parent: Option<Parent>,
        state: String,
    ) -> Result<(), MachineError> {
        let mut payload = PayloadWriter::default();
        let started = Started {
            tenant: admission.tenant,
            loop_name: self.env.definition.name().into(),
            version: self.env.definition.version().into(),
            definition: Digest::sha256(&[self.env.definition.definition()]),
            input: payload.add(admission.input.as_bytes()),
            state: payload.add(state.as_bytes()),
            limits: admission.limits,
            projection: transcript::PROJECTION,
            admission: admission.key,
            state_version: self.env.definition.state_version(),
            parent,
        };
        self.push(&Record::Started(started), payload.finish())
    }

    fn change_definition(&mut self) -> Result<(), MachineError> {
        let changed = match upgrade::fit(self.projection, self.env.definition).map_err(Refused::Unfit)? {
            Fit::Same => return Ok(()),
            Fit::Changes(changed) => changed,
        };
        self.step.definition_changed = true;
        self.push(&Record::DefinitionChanged(changed), Vec::new())
    }

    fn recover(&mut self) -> Result<(), MachineError> {
        let (mut again, mut unknown, mut lost) = (Vec::new(), Vec::new(), Vec::new());
        for call in &self.projection.open {
            let class = call.intent.as_ref().map_or(EffectClass::Once, |intent| intent.class);
            match class.recovery() {
                Recovery::RunAgain => again.push(call.id),
                Recovery::ChargeAndRunAgain if call.lost + 1 >= MAX_LOST_ATTEMPTS => lost.push(call.id),
                Recovery::ChargeAndRunAgain => again.push(call.id),
                Recovery::SendAgainWithKey if self.knows_key(call) => again.push(call.id),
                Recovery::AskTarget => again.push(call.id),
                Recovery::Keep => {}
                Recovery::SendAgainWithKey | Recovery::AskPerson => unknown.push(call.id),
            }
        }
        let poisoned = self.projection.recoveries >= MAX_RECOVERIES;
        self.push(&Record::Recovered(Recovered { epoch: self.env.epoch, again }), Vec::new())?;
        for id in unknown {
            let reason = "the worker died after it might have sent this call and before it recorded a result";
            self.settled(id, Settlement::Unknown, None, reason.into(), None, None)?;
        }
        for id in lost {
            let reason = "the call was lost with its worker too often";
            self.settled(id, Settlement::Failed, Some("call.lost"), reason.into(), None, None)?;
        }
        if poisoned && self.projection.status == Status::Open {
            let reason = alloc::format!("{} recoveries in a row without progress", self.projection.recoveries);
            self.park(Outcome::Interrupted { interrupt: Interrupt::Poisoned { reason } })?;
        }
        Ok(())
    }

    fn settle(
        &mut self,
        id: CallId,
        settling: Settling,
        usage: Option<Usage>,
        cost: Option<MicroUsd>,
    ) -> Result<(), MachineError> {
        let call = self.open_call(id)?;
        let class = call.intent.as_ref().map_or(EffectClass::Once, |intent| intent.class);
        let asks = !class.may_be_cut();
        let doubtful = call.may_have_happened();
        let again = match class.recovery() {
            Recovery::SendAgainWithKey => self.knows_key(call),
            Recovery::AskTarget => true,
            Recovery::RunAgain | Recovery::ChargeAndRunAgain | Recovery::AskPerson | Recovery::Keep => false,
        };
        match settling {
            // Whether it happened does not matter to a target that knows the key, and another one can be asked.
            Settling::Failed(failure, Disposition::InDoubt) if again => self.send_again(id, &failure),
            Settling::Interrupted(reason) if again => self.send_again(id, &Failure::new("call.interrupted", reason)),
            Settling::Landed(output) => self.settled(id, Settlement::Landed, None, output, usage, cost),
            Settling::Kept { output, request, response } => {
                let exchange = Some(Exchanged { request: request.name.digest, response: response.name.digest });
                let record = Settled { exchange, ..self.settlement(id, Settlement::Landed, None, usage, cost)? };
                self.push(&Record::Settled(record), output.into_bytes())?;
                self.step.constants.extend([request, response]);
                Ok(())
            }
            Settling::Failed(failure, _) if doubtful => {
                self.settled(id, Settlement::Unknown, Some(&failure.code), failure.message, usage, cost)
            }
            // What has happened has not failed, though nobody here has its result.
            Settling::Failed(failure, Disposition::InDoubt | Disposition::Landed) if asks => {
                self.settled(id, Settlement::Unknown, Some(&failure.code), failure.message, usage, cost)
            }
            Settling::Failed(failure, _) => {
                self.settled(id, Settlement::Failed, Some(&failure.code), failure.message, usage, cost)
            }
            Settling::Interrupted(reason) if asks => {
                self.settled(id, Settlement::Unknown, Some("call.interrupted"), reason, usage, cost)
            }
            Settling::Interrupted(reason) => {
                self.settled(id, Settlement::Failed, Some("call.interrupted"), reason, usage, cost)
            }
        }
    }

    pub(super) fn settled(
        &mut self,
        id: CallId,
        how: Settlement,
        code: Option<&str>,
        body: String,
        usage: Option<Usage>,
        cost: Option<MicroUsd>,
    ) -> Result<(), MachineError> {
        let record = self.settlement(id, how, code, usage, cost)?;
        self.push(&Record::Settled(record), body.into_bytes())
    }

    fn settlement(
        &self,
        id: CallId,
        how: Settlement,
        code: Option<&str>,
        usage: Option<Usage>,
        cost: Option<MicroUsd>,
    ) -> Result<Settled, MachineError> {
        let joins = self.projection.call(id).ok_or(Refused::NotOpen(id))?.target.joins();
        Ok(Settled { call: id, how, code: code.map(String::from), usage, cost, joins, exchange: None })
    }

    /// Whether the target of a keyed Call still knows the key, and the Call was not lost too often.
    fn knows_key(&self, call: &Call) -> bool {
        call.lost + 1 < MAX_LOST_ATTEMPTS && call.resend_until.is_some_and(|until| self.now() < until)
    }

    fn send_again(&mut self, id: CallId, failure: &Failure) -> Result<(), MachineError> {
        let call = self.open_call(id)?;
        let retry_at = self.env.now.after(RESEND_MS << call.lost);
        let (n, setback, code) = (call.attempts, Setback::Stopped, failure.code.clone());
        let mut payload = PayloadWriter::default();
        let message = payload.add(failure.message.as_bytes());
        let record = Attempted { call: id, n, setback, code, message, usage: None, cost: None, retry_at };
        self.push(&Record::Attempted(record), payload.finish())
    }

    /// Settles as cancelled every open Call whose class `may` be cut, and every wanted one, of those that were decided
    /// before `decided`.
    pub(super) fn cancel_open(&mut self, may: impl Fn(EffectClass) -> bool, decided: Seq) -> Result<(), MachineError> {
        let cut = |call: &&Call| call.decided < decided && call.intent.as_ref().is_none_or(|intent| may(intent.class));
        let open: Vec<CallId> = self.projection.open.iter().filter(cut).map(|call| call.id).collect();
        // Whatever its target says, it is heard before the Run ends.
        let early = self.projection.wanted.iter().filter(|call| call.decided < decided);
        let wanted = early.filter(|call| !self.can_be_probed(call));
        let wanted: Vec<CallId> = wanted.map(|call| call.id).collect();
        self.step.aborted.extend_from_slice(&open);
        for id in open {
            self.settled(id, Settlement::Cancelled, Some("call.cancelled"), "interrupted".into(), None, None)?;
        }
        for id in wanted {
            if self.projection.call(id).is_some_and(Call::may_have_happened) {
                self.settled(id, Settlement::Unknown, Some("call.in_doubt"), EARLIER.into(), None, None)?;
                continue;
            }
            let never = Some(MicroUsd(0));
            self.settled(id, Settlement::Cancelled, Some("call.cancelled"), "never sent".into(), None, never)?;
        }
        Ok(())
    }

    fn open_call(&self, id: CallId) -> Result<&Call, MachineError> {
        let call = self.projection.open.iter().find(|call| call.id == id);
        Ok(call.ok_or(Refused::NotOpen(id))?)
    }
}

/// Whether a result of an earlier epoch is news: the Call is open, in doubt, or was sent before.
const fn may_land_late(call: &Call) -> bool {
    call.intent.is_some() || call.lost > 0
}

/// True when the target is a model.
pub(super) const fn is_model(target: &Target) -> bool {
    matches!(target, Target::Model(_))
}
