//! The fold: the only place where a Projection changes.

use super::{Call, Doubt, FoldError, FoldProblem, Intent, Pending, Projection, Status, Target, Timer, Waiting};
use crate::budget::Limits;
use crate::child::Spent;
use crate::digest::Digest;
use crate::effect::{EffectClass, Recovery};
use crate::entry::{Entry, Span};
use crate::ids::{CallId, QuestionId, Seq};
use crate::model::ModelCall;
use crate::outcome::Outcome;
use crate::patch::StatePatch;
use crate::question::{Ask, OpenQuestion, Resolution};
use crate::record::{
    ActionRecord, Attempted, Decided, DefinitionChanged, Ended, Found, Intended, Probed, Record, Recovered, Resolved,
    Setback, Settled, Settlement, Started,
};
use crate::units::TimeMs;
use alloc::string::String;
use alloc::vec::Vec;

type Folded = Result<(), FoldProblem>;

impl Projection {
    /// Folds the next Entry of a Journal.
    ///
    /// # Errors
    /// [`FoldError`], naming the Entry; the projection is then not to be used.
    pub fn fold(&mut self, entry: &Entry) -> Result<(), FoldError> {
        let record = Record::decode(entry.kind, &entry.record).map_err(FoldProblem::Record);
        record.and_then(|record| self.fold_record(entry, &record)).map_err(|why| FoldError {
            seq: entry.seq,
            kind: entry.kind,
            why,
        })
    }

    /// Folds an Entry whose record is decoded already.
    pub(crate) fn fold_record(&mut self, entry: &Entry, record: &Record) -> Folded {
        if entry.seq != self.head.seq.next() || entry.run != self.run {
            return Err(FoldProblem::OutOfOrder);
        }
        if matches!(self.status, Status::Ended(_)) {
            return Err(FoldProblem::AfterEnd);
        }
        if (entry.seq == Seq(1)) != matches!(record, Record::Started(_)) {
            return Err(FoldProblem::NotStarted);
        }
        let event = self.event(record, &entry.payload)?;
        self.apply(entry, record)?;
        // A Run that is about to end consults no transition any more; a parked one does when it is reopened.
        let consults = self.cancel.is_none() && self.finishing.is_none() && !matches!(self.status, Status::Ended(_));
        if let Some(event) = event.filter(|_| consults) {
            self.deliver(Pending { seq: entry.seq, at: entry.at, event });
        }
        self.transcript.take(entry.seq, record, &entry.payload);
        self.head = super::Head { seq: entry.seq, hash: entry.hash, at: entry.at };
        Ok(())
    }

    fn apply(&mut self, entry: &Entry, record: &Record) -> Folded {
        match record {
            Record::Started(started) => self.started(entry, started),
            Record::IterationStarted(started) => {
                self.iteration = started.iteration;
                self.ledger.iterations += 1;
                Ok(())
            }
            Record::Decided(decided) => self.decided(entry, decided),
            Record::Recovered(recovered) => self.recovered(recovered),
            Record::Parked(parked) => {
                self.status = Status::Parked(parked.outcome.clone());
                Ok(())
            }
            Record::Reopened(reopened) => {
                self.status = Status::Open;
                self.recoveries = 0;
                self.limits = self.limits.raised(&reopened.raise);
                Ok(())
            }
            Record::BudgetChanged(changed) => {
                self.limits = self.limits.raised(&changed.raise);
                Ok(())
            }
            Record::Ended(ended) => self.ended(entry, ended),
            Record::Intended(intended) => self.intended(entry, intended),
            Record::DefinitionChanged(changed) => self.definition_changed(changed),
            Record::Attempted(attempted) => self.attempted(attempted),
            Record::Settled(settled) => self.settled(entry, settled),
            Record::Probed(probed) => self.probed(probed),
            // The Entry after it settles or resolves the Call.
            Record::LateResult(late) => match self.call(late.call) {
                Some(_) => Ok(()),
                None => Err(FoldProblem::NoSuchCall(late.call)),
            },
            Record::ChildEnded(ended) => self.child_ended(ended),
            Record::ChildParked(parked) => self.child_parked(parked),
            Record::Resolved(resolved) => self.resolved(resolved),
            Record::Signal(signal) => {
                if self.waiting.as_ref().is_some_and(|wait| wait.signals.contains(&signal.name)) {
                    self.end_wait();
                }
                Ok(())
            }
            Record::QuestionEnded(ended) => self.question_ended(ended.question),
            Record::TimerFired(fired) => {
                let at = self.timers.iter().position(|timer| timer.id == fired.timer);
                self.timers.remove(at.ok_or(FoldProblem::NoSuchTimer(fired.timer))?);
                if self.waiting.as_ref().is_some_and(|wait| wait.timer == Some(fired.timer)) {
                    self.waiting = None;
                }
                Ok(())
            }
            Record::CancelRequested(asked) => {
                self.cancel = Some(super::Cancel { actor: asked.actor.clone(), reason: asked.reason.clone() });
                self.status = Status::Open;
                // A Run that waits for its seal can be cancelled as well, and has one outcome.
                self.finishing = None;
                self.events.clear();
                self.joins.clear();
                Ok(())
            }
        }
    }

    fn started(&mut self, entry: &Entry, started: &Started) -> Folded {
        self.loop_name.clone_from(&started.loop_name);
        self.version.clone_from(&started.version);
        self.definition = started.definition;
        self.state_version = started.state_version;
        self.tenant.clone_from(&started.tenant);
        self.parent = started.parent;
        self.limits = started.limits;
        self.started_at = entry.at;
        self.state = text(started.state, &entry.payload)?.into();
        Ok(())
    }

    fn definition_changed(&mut self, changed: &DefinitionChanged) -> Folded {
        self.patch_state(&changed.patch, changed.state)?;
        self.version.clone_from(&changed.version);
        (self.definition, self.state_version) = (changed.definition, changed.state_version);
        Ok(())
    }

    fn patch_state(&mut self, patch: &StatePatch, after: Option<Digest>) -> Folded {
        patch.apply(&mut self.state).map_err(|_| FoldProblem::PatchDoesNotFit)?;
        if let Some(expected) = after
            && Digest::sha256(&[self.state.as_bytes()]) != expected
        {
            return Err(FoldProblem::StateDigest);
        }
        Ok(())
    }

    fn attempted(&mut self, attempted: &Attempted) -> Folded {
        let mut call = take(&mut self.open, attempted.call)?;
        self.ledger.spend(&call.reserved(), attempted.usage.as_ref(), attempted.cost);
        match attempted.setback {
            Setback::Failed => {
                call.attempts += 1;
                self.ledger.retries += 1;
            }
            Setback::Stopped => lose(&mut call),
            Setback::NotSent => {}
        }
        call.not_before = Some(attempted.retry_at);
        call.intent = None;
        self.wanted.insert(0, call);
        Ok(())
    }

    fn probed(&mut self, probed: &Probed) -> Folded {
        let call = self.wanted.iter_mut().find(|call| call.id == probed.call);
        let call = call.ok_or(FoldProblem::NoSuchCall(probed.call))?;
        let doubt = call.doubt.as_mut().ok_or(FoldProblem::NoSuchCall(probed.call))?;
        doubt.unclear += u32::from(probed.found == Found::Unclear);
        call.not_before = probed.again_at;
        if probed.found == Found::NotLanded && probed.again_at.is_none() && doubt.bounded {
            call.doubt = None;
        }
        Ok(())
    }

    fn decided(&mut self, entry: &Entry, decided: &Decided) -> Folded {
        self.patch_state(&decided.patch, decided.state)?;
        self.recoveries = 0;
        self.events.retain(|pending| pending.seq.0 != decided.consumed);
        for (ordinal, action) in decided.actions.iter().enumerate() {
            self.action(entry, ordinal as u32, action)?;
        }
        Ok(())
    }

    fn action(&mut self, entry: &Entry, ordinal: u32, action: &ActionRecord) -> Folded {
        let payload = &entry.payload;
        match action {
            ActionRecord::Model { id, call, messages } => {
                let messages = match messages {
                    Some(span) => serde_json::from_str(text(*span, payload)?).map_err(|_| FoldProblem::BadPayload)?,
                    None => Vec::new(),
                };
                let call = ModelCall { messages, ..call.clone() };
                if let Some(constants) = call.constants.filter(|name| !self.constants.contains(&name.digest)) {
                    self.constants.push(constants.digest);
                }
                self.want(*id, entry.seq, ordinal, Target::Model(call));
            }
            ActionRecord::Tool { id, tool, args, reply_to, cap } => {
                let args = text(*args, payload)?.into();
                let target = Target::Tool { tool: tool.clone(), args, reply_to: reply_to.clone(), cap: *cap };
                self.want(*id, entry.seq, ordinal, target);
            }
            ActionRecord::Join { calls, ok } => self.join(*calls, *ok)?,
            ActionRecord::Spawn { input, .. } => {
                self.want_child(entry.seq, ordinal, action, text(*input, payload)?);
            }
            ActionRecord::RaiseChild { child, by } => self.raise_child((entry.seq, ordinal), child, by),
            ActionRecord::Ask { id, ask } => self.open_question(*id, ask.clone(), entry.at),
            ActionRecord::Wait { signals, timeout } => {
                if let Some((timer, ms)) = timeout {
                    self.set_timer(*timer, entry.at.after(*ms));
                }
                let timer = timeout.map(|(timer, _)| timer);
                self.waiting = Some(Waiting { signals: signals.clone(), timer });
            }
            ActionRecord::Sleep { id, ms } => self.set_timer(*id, entry.at.after(*ms)),
            ActionRecord::Label(key, value) => {
                self.labels.insert(key.clone(), value.clone());
            }
            ActionRecord::Finish(span) => {
                self.finishing = Some(Outcome::Completed { output: text(*span, payload)?.into() });
            }
            ActionRecord::Fail(failure) => self.finishing = Some(Outcome::Failed { failure: failure.clone() }),
            ActionRecord::Speak(_)
            | ActionRecord::Note(_)
            | ActionRecord::Compact { .. }
            | ActionRecord::CancelCalls
            | ActionRecord::Signal { .. }
            | ActionRecord::CancelChild { .. } => {}
        }
        Ok(())
    }

    fn want(&mut self, id: CallId, decided: Seq, ordinal: u32, target: Target) {
        self.last_call = self.last_call.max(id);
        self.wanted.push(Call::wanted(id, decided, ordinal, target));
    }

    fn set_timer(&mut self, id: crate::ids::TimerId, at: TimeMs) {
        self.last_timer = self.last_timer.max(id);
        self.timers.push(Timer { id, at });
    }

    fn open_question(&mut self, id: QuestionId, ask: Ask, asked_at: TimeMs) {
        self.last_question = self.last_question.max(id);
        let expires_at = ask.expires_in_ms().map(|ms| asked_at.after(ms));
        self.questions.push(OpenQuestion { id, ask, asked_at, expires_at });
    }

    fn end_wait(&mut self) {
        if let Some(wait) = self.waiting.take() {
            self.timers.retain(|timer| Some(timer.id) != wait.timer);
        }
    }

    fn recovered(&mut self, recovered: &Recovered) -> Folded {
        self.epoch = recovered.epoch;
        self.recoveries += 1;
        let mut again = Vec::new();
        for id in &recovered.again {
            let mut call = take(&mut self.open, *id)?;
            if call.intent.as_ref().is_some_and(|intent| intent.class == EffectClass::Billable) {
                // Nobody knows what the lost attempt cost: it is charged as if it had cost all it might.
                self.ledger.spend(&call.reserved(), None, None);
            }
            if call.intent.as_ref().is_some_and(|intent| intent.class.recovery() != Recovery::RunAgain) {
                lose(&mut call);
            }
            call.intent = None;
            again.push(call);
        }
        again.append(&mut self.wanted);
        self.wanted = again;
        Ok(())
    }

    fn ended(&mut self, entry: &Entry, ended: &Ended) -> Folded {
        let output = core::str::from_utf8(&entry.payload).map_err(|_| FoldProblem::BadPayload)?;
        let outcome = ended.outcome.clone().join(output.into());
        // The chain covers the bytes of a seal, not their truth.
        let decided = self.finishing.as_ref().is_none_or(|decided| *decided == outcome);
        if !decided || ended.head != self.head.hash || ended.totals != self.ledger {
            return Err(FoldProblem::WrongSeal);
        }
        self.status = Status::Ended(outcome);
        self.finishing = None;
        self.events.clear();
        self.wanted.clear();
        self.joins.clear();
        self.timers.clear();
        self.waiting = None;
        Ok(())
    }

    fn intended(&mut self, entry: &Entry, intended: &Intended) -> Folded {
        let mut call = take(&mut self.wanted, intended.call)?;
        self.epoch = intended.epoch;
        self.ledger.reserve(&intended.reserve);
        call.not_before = None;
        // The target counts from the first attempt that reached it, which was not before the first intent.
        call.resend_until = call.resend_until.or(intended.dedup_ms.map(|ms| entry.at.after(ms)));
        let abort_by = entry.at.after(intended.abort_ms);
        let lands_by = intended.landing_ms.map(|ms| abort_by.after(ms));
        call.lands_until = call.lands_until.max(lands_by).max(Some(abort_by));
        if let Target::Child(child) = &mut call.target {
            child.limits = intended.slice.unwrap_or(child.limits);
        }
        call.intent = Some(Intent {
            seq: entry.seq,
            class: intended.class,
            request: intended.request,
            epoch: intended.epoch,
            send_by: entry.at.after(intended.send_ms),
            abort_by,
            lands_by,
            max_output: intended.max_output,
            reserve: intended.reserve,
        });
        self.open.push(call);
        Ok(())
    }

    fn settled(&mut self, entry: &Entry, settled: &Settled) -> Folded {
        // A Call that was never intended settles too: an unknown tool, a denial, a cancelled wish.
        let call = take(&mut self.open, settled.call).or_else(|_| take(&mut self.wanted, settled.call))?;
        self.recoveries = 0;
        if settled.how == Settlement::Cancelled {
            self.leave_join(call.id);
        }
        let reserved = call.reserved();
        match call.target {
            Target::Model(_) => {
                self.ledger.model_calls += 1;
                self.ledger.spend(&reserved, settled.usage.as_ref(), settled.cost);
            }
            Target::Tool { .. } => {
                self.ledger.tool_calls += 1;
                self.ledger.spend(&reserved, None, settled.cost);
            }
            // Nobody knows what a child that goes on will consume: what it was given is charged.
            Target::Child(ref child) => {
                let given = if call.intent.is_some() { child.limits } else { Limits::default() };
                let (tokens, money) = (given.tokens.unwrap_or(0), given.micro_usd.unwrap_or_default());
                let spent = Spent { charged_tokens: tokens, money, ..Spent::default() };
                self.ledger.spend_child(&reserved, &spent);
            }
        }
        if settled.how == Settlement::Unknown {
            let (tool, args) = match &call.target {
                Target::Tool { tool, args, .. } => (tool.clone(), args.clone()),
                Target::Model(_) | Target::Child(_) => (call.target.name().into(), String::new()),
            };
            let reason = core::str::from_utf8(&entry.payload).map_err(|_| FoldProblem::BadPayload)?.into();
            let ask = Ask::Resolve { call: call.id, tool, args, reason, lands_until: call.lands_until };
            self.open_question(self.last_question.next(), ask, entry.at);
            self.in_doubt.push(call);
        }
        Ok(())
    }

    fn resolved(&mut self, resolved: &Resolved) -> Folded {
        let call = take(&mut self.in_doubt, resolved.call)?;
        if resolved.resolution == Resolution::Retry {
            // A new Call for the same effect: the first one keeps its one settlement.
            let id = self.last_call.next();
            self.rename_joined(call.id, id);
            self.want(id, call.decided, call.ordinal, call.target);
        }
        Ok(())
    }

    fn question_ended(&mut self, id: QuestionId) -> Folded {
        let at = self.questions.iter().position(|question| question.id == id);
        self.questions.remove(at.ok_or(FoldProblem::NoSuchQuestion(id))?);
        Ok(())
    }

    /// True when the open Question asks what became of a Call.
    pub(crate) fn is_resolve(&self, id: QuestionId) -> bool {
        self.questions.iter().any(|question| question.id == id && matches!(question.ask, Ask::Resolve { .. }))
    }
}

/// An attempt was lost: it may have happened.
fn lose(call: &mut Call) {
    call.lost += 1;
    if let Some(intent) = call.intent.as_ref().filter(|intent| intent.class == EffectClass::Probed) {
        call.doubt = Some(Doubt { bounded: intent.lands_by.is_some(), unclear: 0 });
    }
}

fn text(span: Span, payload: &[u8]) -> Result<&str, FoldProblem> {
    span.text(payload).ok_or(FoldProblem::BadPayload)
}

pub(super) fn take(calls: &mut Vec<Call>, id: CallId) -> Result<Call, FoldProblem> {
    let at = calls.iter().position(|call| call.id == id).ok_or(FoldProblem::NoSuchCall(id))?;
    Ok(calls.remove(at))
}
