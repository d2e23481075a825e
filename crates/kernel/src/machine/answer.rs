//! Answers: whether one fits its Question, and what it records.

use super::{MachineError, Refused, Work};
use crate::ids::{CallId, QuestionId};
use crate::question::{Ask, OpenQuestion, QuestionEnd, Resolution};
use crate::record::{Joins, QuestionEnded, Record, Resolved};
use crate::units::TimeMs;
use alloc::string::String;
use alloc::vec::Vec;

/// Whether a Run takes this end of an open Question, as far as the Question tells: whoever passes an answer on asks
/// before, because a Run that refuses one tells nobody. A JSON Schema is checked by whoever takes the answer.
///
/// # Errors
/// [`Refused::BadAnswer`], with what does not fit.
pub fn accepts(open: &OpenQuestion, end: QuestionEnd, value: &str, now: TimeMs, skew_ms: u64) -> Result<(), Refused> {
    let wrong = |why: String| Refused::BadAnswer(open.id, why);
    match end {
        QuestionEnd::Answered => fits(&open.ask, value, now, skew_ms).map_err(wrong),
        // Nobody may walk away from a Call that may have moved money; it stays open until resolved.
        QuestionEnd::Declined | QuestionEnd::Dismissed | QuestionEnd::TimedOut => match open.ask {
            Ask::Resolve { .. } => Err(wrong("an unknown call has to be resolved".into())),
            Ask::Ask { .. } | Ask::Confirm { .. } => Ok(()),
        },
        QuestionEnd::Withdrawn => Err(wrong("only the run itself withdraws a question".into())),
    }
}

fn fits(ask: &Ask, value: &str, now: TimeMs, skew_ms: u64) -> Result<(), String> {
    let text = |error: serde_json::Error| alloc::format!("{error}");
    let may_land = |until: &Option<TimeMs>| until.is_some_and(|until| now <= until.after(skew_ms));
    match ask {
        Ask::Ask { .. } => serde_json::from_str::<&serde_json::value::RawValue>(value).map(drop).map_err(text),
        Ask::Confirm { .. } => serde_json::from_str::<bool>(value).map(drop).map_err(text),
        Ask::Resolve { lands_until, .. } => match serde_json::from_str::<Resolution>(value).map_err(text)? {
            Resolution::Retry | Resolution::Failed { .. } if may_land(lands_until) => {
                Err("what was sent may still land: look again when its time is over, and answer then".into())
            }
            Resolution::Landed { .. } | Resolution::Failed { .. } | Resolution::Retry | Resolution::Unknown { .. } => {
                Ok(())
            }
        },
    }
}

impl Work<'_, '_, '_> {
    pub(super) fn answer(
        &mut self,
        id: QuestionId,
        end: QuestionEnd,
        actor: String,
        value: String,
    ) -> Result<(), MachineError> {
        let open = self.projection.questions.iter().find(|open| open.id == id);
        let ask = open.map(|open| open.ask.clone()).ok_or(Refused::NoSuchQuestion(id))?;
        let resolved = match &ask {
            Ask::Resolve { call, .. } => Some(self.resolution(id, *call, &actor, &value)?),
            Ask::Ask { .. } | Ask::Confirm { .. } => None,
        };
        let joins = match &ask {
            Ask::Ask { reply_to, .. } => Joins::reply(reply_to.as_ref(), None),
            Ask::Confirm { .. } | Ask::Resolve { .. } => None,
        };
        self.push(&Record::QuestionEnded(QuestionEnded { question: id, end, actor, joins }), value.into_bytes())?;
        match resolved {
            Some(resolved) => self.push(&Record::Resolved(resolved), Vec::new()),
            None => Ok(()),
        }
    }

    fn resolution(&self, id: QuestionId, call: CallId, actor: &str, value: &str) -> Result<Resolved, MachineError> {
        let resolution = serde_json::from_str(value).map_err(|e| Refused::BadAnswer(id, alloc::format!("{e}")))?;
        let doubt = self.projection.in_doubt.iter().find(|doubt| doubt.id == call).ok_or(Refused::NotOpen(call))?;
        Ok(Resolved { call, by: actor.into(), resolution, joins: doubt.target.joins() })
    }
}
