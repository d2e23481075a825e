//! Which Event an Entry means to a transition. Asked before the Entry is folded.

use super::{FoldProblem, Projection};
use crate::event::{Event, ToolReturned};
use crate::failure::Failure;
use crate::ids::CallId;
use crate::projection::Target;
use crate::question::Resolution;
use crate::record::{Record, Settled, Settlement};
use alloc::string::String;

impl Projection {
    /// The Event that the Entry with this record means, if a transition sees it at all.
    ///
    /// # Errors
    /// [`FoldProblem`] when the Entry speaks of a Call that is not there or its payload does not read.
    pub(super) fn event(&self, record: &Record, payload: &[u8]) -> Result<Option<Event>, FoldProblem> {
        let text = || core::str::from_utf8(payload).map(String::from).map_err(|_| FoldProblem::BadPayload);
        Ok(match record {
            Record::IterationStarted(started) => Some(Event::IterationStarted { iteration: started.iteration }),
            Record::Settled(settled) => self.settled_event(settled, payload)?,
            Record::Resolved(resolved) => {
                let call = self.in_doubt_call(resolved.call)?;
                let (id, target) = (call.id, String::from(call.target.name()));
                match &resolved.resolution {
                    Resolution::Landed { output } => {
                        Some(Event::ToolReturned(ToolReturned { call: id, tool: target, output: output.clone() }))
                    }
                    Resolution::Failed { evidence } => {
                        Some(Event::CallFailed { call: id, target, failure: Resolution::failure(evidence) })
                    }
                    Resolution::Unknown { evidence } => {
                        Some(Event::CallUnknown { call: id, target, evidence: evidence.clone() })
                    }
                    Resolution::Retry => None,
                }
            }
            Record::QuestionEnded(ended) => {
                let is_resolve = self.is_resolve(ended.question);
                (!is_resolve).then_some(Event::Answered { question: ended.question, end: ended.end, value: text()? })
            }
            Record::Signal(signal) => Some(Event::SignalReceived { name: signal.name.clone(), body: text()? }),
            Record::ChildEnded(ended) => {
                let outcome = ended.outcome.clone().join(text()?);
                let name = self.child_name(ended.call)?;
                Some(Event::ChildEnded { call: ended.call, child: ended.child, name, outcome })
            }
            Record::ChildParked(parked) => {
                let (call, child, outcome) = (parked.call, parked.child, parked.outcome.clone());
                Some(Event::ChildParked { call, child, name: self.child_name(call)?, outcome })
            }
            Record::TimerFired(fired) => Some(Event::TimerFired { timer: fired.timer }),
            Record::Started(_)
            | Record::Decided(_)
            | Record::Recovered(_)
            | Record::Parked(_)
            | Record::Reopened(_)
            | Record::Ended(_)
            | Record::Intended(_)
            | Record::Attempted(_)
            | Record::DefinitionChanged(_)
            | Record::Probed(_)
            | Record::LateResult(_)
            | Record::CancelRequested(_)
            | Record::BudgetChanged(_) => None,
        })
    }

    fn settled_event(&self, settled: &Settled, payload: &[u8]) -> Result<Option<Event>, FoldProblem> {
        let call = self.call(settled.call).ok_or(FoldProblem::NoSuchCall(settled.call))?;
        let body = core::str::from_utf8(payload).map_err(|_| FoldProblem::BadPayload)?;
        let id = settled.call;
        let target = || String::from(call.target.name());
        let failure = || Failure::new(settled.code.clone().unwrap_or_else(|| "call.failed".into()), body);
        Ok(match settled.how {
            Settlement::Landed => Some(match &call.target {
                Target::Model(model) => {
                    let reply = serde_json::from_str(body).map_err(|_| FoldProblem::BadPayload)?;
                    let max_output = call.intent.as_ref().and_then(|intent| intent.max_output);
                    let clamped = max_output.is_some_and(|max| max < model.max_output_tokens);
                    Event::ModelReplied { call: id, reply, clamped, usage: settled.usage }
                }
                Target::Tool { tool, .. } => {
                    Event::ToolReturned(ToolReturned { call: id, tool: tool.clone(), output: body.into() })
                }
                Target::Child(_) => return Err(FoldProblem::NoSuchCall(id)),
            }),
            Settlement::Failed => Some(Event::CallFailed { call: id, target: target(), failure: failure() }),
            Settlement::Denied => Some(Event::CallDenied { call: id, target: target(), failure: failure() }),
            // Only a Run that is about to end cancels its Calls, and an unknown Call speaks when resolved.
            Settlement::Cancelled | Settlement::Unknown => None,
        })
    }

    fn child_name(&self, id: CallId) -> Result<String, FoldProblem> {
        let (_, child) = self.children().find(|(call, _)| *call == id).ok_or(FoldProblem::NoSuchCall(id))?;
        Ok(child.name.clone())
    }

    fn in_doubt_call(&self, id: CallId) -> Result<&super::Call, FoldProblem> {
        self.in_doubt.iter().find(|call| call.id == id).ok_or(FoldProblem::NoSuchCall(id))
    }
}
