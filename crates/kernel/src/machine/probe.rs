//! Calls that may have happened: asking their target, and results that come late.

use super::input::RESEND_MS;
use super::{MachineError, Pace, Work};
use crate::effect::{EffectClass, EffectKey};
use crate::ids::{CallId, Epoch, QuestionId, RunId};
use crate::projection::{Call, Status, Target};
use crate::question::{Ask, QuestionEnd, Resolution};
use crate::record::{Found, LateResult, Probed, QuestionEnded, Record, Resolved, Settlement};
use crate::units::TimeMs;
use alloc::string::String;
use alloc::vec::Vec;

/// Unclear answers after which a person is asked.
const MAX_UNCLEAR: u32 = 3;

/// A Call whose target is to be asked whether it happened. Asking changes nothing, so it needs no intent and may be
/// done again.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The Run.
    pub run: RunId,
    /// The Call.
    pub call: Call,
    /// The stable identity of the effect.
    pub key: EffectKey,
}

/// What a target says about a Call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProbeAnswer {
    /// It has happened; this is its output.
    Landed(String),
    /// It has not happened.
    NotLanded,
    /// The target cannot be asked now, or cannot say.
    Unclear(String),
}

impl Work<'_, '_, '_> {
    /// The probes that are due.
    pub(super) fn due_probes(&self) -> Vec<Probe> {
        if self.env.pace == Pace::Drain || self.projection.status != Status::Open {
            return Vec::new();
        }
        let run = self.projection.run;
        let due = |call: &&Call| call.not_before.is_none_or(|at| at <= self.now()) && self.can_be_probed(call);
        let due = self.projection.wanted.iter().filter(due);
        due.map(|call| Probe { run, key: call.effect_key(run), call: call.clone() }).collect()
    }

    /// True when the Call may have happened and its target can say so.
    pub(super) fn can_be_probed(&self, call: &Call) -> bool {
        let Target::Tool { tool, .. } = &call.target else { return false };
        // Nearly no Call is in doubt, and the catalog is asked for those alone.
        let class = || self.env.catalog.tool(tool).map(|terms| terms.class);
        call.doubt.is_some() && class() == Some(EffectClass::Probed)
    }

    /// The target was asked at `asked_at`. "Not landed" says something only once nothing can land any more.
    pub(super) fn probed(&mut self, id: CallId, asked_at: TimeMs, answer: ProbeAnswer) -> Result<(), MachineError> {
        let Some((doubt, until)) = self.doubt(id) else { return Err(super::Refused::NotOpen(id).into()) };
        let quiet_at = until.after(self.env.skew_ms).after(1);
        let record = |found, again_at| Record::Probed(Probed { call: id, found, asked_at, again_at });
        match answer {
            ProbeAnswer::Landed(output) => {
                self.push(&record(Found::Landed, None), Vec::new())?;
                self.settled(id, Settlement::Landed, None, output, None, None)
            }
            ProbeAnswer::NotLanded if !doubt.bounded => {
                self.push(&record(Found::NotLanded, None), Vec::new())?;
                let reason = "it has not happened so far, and its tool does not declare how late it may land";
                self.settled(id, Settlement::Unknown, Some("call.unbounded"), reason.into(), None, None)
            }
            ProbeAnswer::NotLanded => {
                // Counted on from the Journal, which may be ahead of a clock that was set back.
                let again_at = (asked_at < quiet_at).then(|| self.now().after(quiet_at.since(asked_at)));
                self.push(&record(Found::NotLanded, again_at), Vec::new())
            }
            ProbeAnswer::Unclear(reason) if doubt.unclear + 1 < MAX_UNCLEAR => {
                let again_at = Some(self.now().after(RESEND_MS << doubt.unclear));
                self.push(&record(Found::Unclear, again_at), reason.into_bytes())
            }
            ProbeAnswer::Unclear(reason) => {
                self.push(&record(Found::Unclear, None), reason.clone().into_bytes())?;
                self.settled(id, Settlement::Unknown, Some("call.unclear"), reason, None, None)
            }
        }
    }

    fn doubt(&self, id: CallId) -> Option<(crate::projection::Doubt, TimeMs)> {
        let call = self.projection.wanted.iter().find(|call| call.id == id)?;
        Some((call.doubt?, call.lands_until.unwrap_or_default()))
    }

    /// A worker of an earlier epoch had the result. It settles a Call that nobody has settled, or resolves an unknown
    /// one and withdraws its question; it is never a second settlement.
    pub(super) fn late(&mut self, id: CallId, epoch: Epoch, output: String) -> Result<(), MachineError> {
        self.push(&Record::LateResult(LateResult { call: id, epoch }), Vec::new())?;
        let Some(doubt) = self.projection.in_doubt.iter().find(|call| call.id == id) else {
            // What is in flight for the same effect is of no use any more.
            self.step.aborted.push(id);
            return self.settled(id, Settlement::Landed, None, output, None, None);
        };
        let joins = doubt.target.joins();
        if let Some(question) = self.question_about(id) {
            let (end, actor) = (QuestionEnd::Withdrawn, String::from("loopd"));
            let record = QuestionEnded { question, end, actor, joins: None };
            self.push(&Record::QuestionEnded(record), Vec::new())?;
        }
        let by = alloc::format!("the worker of epoch {epoch}");
        let resolution = Resolution::Landed { output };
        self.push(&Record::Resolved(Resolved { call: id, by, resolution, joins }), Vec::new())
    }

    fn question_about(&self, id: CallId) -> Option<QuestionId> {
        let about = |ask: &Ask| matches!(ask, Ask::Resolve { call, .. } if *call == id);
        self.projection.questions.iter().find(|open| about(&open.ask)).map(|open| open.id)
    }
}
