//! Calls whose Events wait for each other.

use super::{FoldProblem, Pending, Projection};
use crate::event::Event;
use crate::ids::CallId;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Parallel Calls of one decision whose Events come together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Joined {
    /// The Calls, in the order in which they were decided.
    pub calls: Vec<CallId>,
    /// Those that have not settled.
    pub left: Vec<CallId>,
    /// How many have to land; without it all have to settle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<u32>,
    /// How many have landed.
    #[serde(default)]
    pub landed: u32,
    /// Events that wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Pending>,
}

impl Joined {
    /// True once enough have landed: what is left has lost.
    #[must_use]
    pub fn is_won(&self) -> bool {
        self.ok.is_some_and(|ok| self.landed >= ok)
    }

    fn is_lost(&self) -> bool {
        self.ok.is_some_and(|ok| (self.landed as usize).saturating_add(self.left.len()) < ok as usize)
    }
}

/// The Call that an Event is about.
const fn call_of(event: &Event) -> Option<CallId> {
    match event {
        Event::ModelReplied { call, .. }
        | Event::CallFailed { call, .. }
        | Event::CallDenied { call, .. }
        | Event::CallUnknown { call, .. }
        | Event::ChildEnded { call, .. } => Some(*call),
        Event::ToolReturned(returned) => Some(returned.call),
        Event::IterationStarted { .. }
        | Event::Answered { .. }
        | Event::SignalReceived { .. }
        | Event::TimerFired { .. }
        | Event::ChildParked { .. } => None,
    }
}

impl Projection {
    /// Joins the last `calls` wanted Calls.
    pub(super) fn join(&mut self, calls: u32, ok: Option<u32>) -> Result<(), FoldProblem> {
        let from = self.wanted.len().checked_sub(calls as usize).ok_or(FoldProblem::BadJoin)?;
        let calls: Vec<CallId> = self.wanted.iter().skip(from).map(|call| call.id).collect();
        if !calls.is_empty() {
            self.joins.push(Joined { left: calls.clone(), calls, ok, landed: 0, held: Vec::new() });
        }
        Ok(())
    }

    /// Queues an Event, or holds it until those that it waits for have come.
    pub(super) fn deliver(&mut self, pending: Pending) {
        let call = call_of(&pending.event);
        let joined = self.joins.iter_mut().find(|join| call.is_some_and(|call| join.left.contains(&call)));
        let (Some(joined), Some(call)) = (joined, call) else {
            self.events.push(pending);
            return;
        };
        joined.left.retain(|left| *left != call);
        let landed = matches!(pending.event, Event::ModelReplied { .. } | Event::ToolReturned(_));
        if joined.ok.is_some() && landed {
            joined.landed += 1;
            self.events.push(pending);
        } else {
            joined.held.push(pending);
        }
        self.release_joined();
    }

    /// A Call was cancelled: nobody hears of it.
    pub(super) fn leave_join(&mut self, call: CallId) {
        for join in &mut self.joins {
            join.left.retain(|left| *left != call);
        }
        self.release_joined();
    }

    /// A Call goes on under another identity.
    pub(super) fn rename_joined(&mut self, old: CallId, new: CallId) {
        for id in self.joins.iter_mut().flat_map(|join| join.calls.iter_mut().chain(&mut join.left)) {
            if *id == old {
                *id = new;
            }
        }
    }

    /// Joins that are through: all settled, or not enough can land any more.
    fn release_joined(&mut self) {
        for join in core::mem::take(&mut self.joins) {
            if !join.left.is_empty() && !join.is_lost() {
                self.joins.push(join);
                continue;
            }
            // The failures of those that lost a race that was won say nothing.
            if !join.is_won() {
                let Joined { calls, mut held, .. } = join;
                let place = |pending: &Pending| calls.iter().position(|call| Some(*call) == call_of(&pending.event));
                held.sort_by_key(place);
                self.events.append(&mut held);
            }
        }
    }
}
