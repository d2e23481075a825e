//! What a Run says, asks and comes to, written in the commits of the Run itself: a Message and the decision that
//! produced it are durable together or not at all.
//!
//! The output Message, its Blocks and the Questions of a Run have one writer: whoever drives the Run. So nothing here
//! expects anything, and nothing can conflict.

pub(super) mod asks;
mod parts;

use super::Inner;
use super::stored::{Ending, Stored, end, write};
use super::wishes::{DEADLINE, ON_PARK, STEERED, call_record};
use crate::error::Error;
use crate::messages;
use crate::rows::{conversation_feed, publish, put};
use asks::Asking;
use async_trait::async_trait;
use loopd_kernel::outcome::{Interrupt, Outcome};
use loopd_kernel::record::Record as Said;
use loopd_kernel::{CallId, Entry, RunId, TimeMs};
use loopd_protocol::{BlockOp, CallPhase, Event, HarnessCall, HarnessCallId, MessageId, OnPark, Spent};
use loopd_runtime::{Outlet, Stepped};
use loopd_store::{InboxBody, InboxItem, Place, Record, RunStatus, StoreError, Table, Write};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Runs whose call is remembered.
const REMEMBERED: usize = 100_000;

/// The outlet of Runs that are calls, and of their children.
pub(super) struct Voice {
    inner: Arc<Inner>,
    /// Which call a Run works for; a Run that is no call's is remembered, too.
    bound: Mutex<HashMap<RunId, Option<RunId>>>,
}

/// One step of a Run, and what is to be said of it.
struct Telling<'a> {
    step: Stepped<'a>,
    call: (Record, Stored),
    output: (Record, messages::Stored),
    at: TimeMs,
    ops: Vec<BlockOp>,
    writes: Vec<Write>,
}

impl Voice {
    pub fn new(inner: Arc<Inner>) -> Self {
        Self { inner, bound: Mutex::default() }
    }

    fn bound(&self) -> MutexGuard<'_, HashMap<RunId, Option<RunId>>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The Run of the call that this Run works for: itself, or the eldest of its parents.
    async fn root(&self, step: &Stepped<'_>) -> Result<Option<RunId>, Error> {
        let run = step.after.run;
        if let Some(known) = self.bound().get(&run) {
            return Ok(*known);
        }
        let mut eldest = run;
        let mut parent = step.after.parent.as_ref().map(|parent| parent.run);
        while let Some(next) = parent {
            eldest = next;
            parent = self.inner.platform.store.run(next).await?.and_then(|row| row.parent);
        }
        let call = self.inner.platform.get(Table::Call, call_record(eldest)).await?;
        let root = call.map(|_| eldest);
        let mut bound = self.bound();
        if bound.len() >= REMEMBERED {
            bound.clear();
        }
        bound.insert(run, root);
        Ok(root)
    }

    async fn told(&self, step: Stepped<'_>) -> Result<Vec<Write>, Error> {
        // The first commit is the engine's own, or a parent's.
        if step.before.head.0 == 0 {
            return Ok(Vec::new());
        }
        let Some(root) = self.root(&step).await? else { return Ok(Vec::new()) };
        let platform = &self.inner.platform;
        let Some(call) = platform.call_row(HarnessCallId(root.0)).await? else { return Ok(Vec::new()) };
        let at = step.after.head.at;
        let mut asking = Asking { step: &step, call: &call.1.call, at, writes: Vec::new() };
        asking.questions(platform).await?;
        let writes = asking.writes;
        if call.1.call.phase.is_final() || step.after.run != root {
            return Ok(writes);
        }
        let output = platform.output_of(&call.1.call).await?;
        let mut telling = Telling { step, call, output, at, ops: Vec::new(), writes };
        telling.parts(platform).await?;
        if let Some(call) = telling.settled() {
            self.inner.deltas.settle(root, call);
        }
        telling.steered();
        Ok(telling.come_to(&self.inner))
    }
}

#[async_trait]
impl Outlet for Voice {
    async fn beside(&self, step: Stepped<'_>) -> Result<Vec<Write>, StoreError> {
        self.told(step).await.map_err(|error| match error {
            Error::Store(error) => error,
            error => StoreError::Corrupt(error.to_string()),
        })
    }
}

impl Telling<'_> {
    /// The newest Call of which nothing is streamed any more.
    fn settled(&self) -> Option<CallId> {
        if self.step.status == RunStatus::Ended {
            return Some(CallId(u64::MAX));
        }
        let settled = |entry: &Entry| match Said::decode(entry.kind, &entry.record) {
            Ok(Said::Settled(settled)) => Some(settled.call),
            Ok(_) | Err(_) => None,
        };
        self.step.entries.iter().filter_map(settled).max()
    }

    /// Tells that a text which was sent while the Run worked has been seen.
    fn steered(&mut self) {
        let Some(steer) = self.step.item.and_then(|item| item.strip_prefix(STEERED)) else { return };
        let event = Event::Steered { call: self.call.1.call.id, steer: steer.to_owned() };
        self.writes.push(publish(conversation_feed(self.call.0.scope), self.at, None, &event));
    }

    /// The writes: the Blocks, and where the call stands after this.
    fn come_to(mut self, inner: &Inner) -> Vec<Write> {
        let call = &self.call.1.call;
        let ledger = &self.step.after.ledger;
        let spent = Spent { tokens: ledger.tokens(), micro_usd: ledger.spent.0, iterations: self.step.after.iteration };
        let id = call.id;
        let may_have_changed = call.may_have_changed || self.may_change();
        match self.step.status {
            RunStatus::Ended => {
                let ending = self.ending();
                let call = HarnessCall { spent, may_have_changed, ..call.clone() };
                let stored = Stored { call, ..self.call.1.clone() };
                let output = (&self.output.0, &self.output.1, std::mem::take(&mut self.ops));
                self.writes.extend(end((&self.call.0, &stored), output, ending, self.at));
                inner.leave(id);
                self.writes
            }
            status => {
                self.go_on();
                let (phase, reason) = self.standing(status);
                let call = &self.call.1.call;
                if (phase, &reason, may_have_changed) == (call.phase, &call.reason, call.may_have_changed) {
                    return self.writes;
                }
                match phase {
                    CallPhase::Running => inner.lock_slots().enter(id, &call.target),
                    _ => inner.leave(id),
                }
                if status == RunStatus::Parked && call.on_park == OnPark::Fail {
                    let reason = "its caller does not wait for a limit to be raised".to_owned();
                    let body = InboxBody::Cancel { actor: ON_PARK.to_owned(), reason };
                    let (run, at, key) = (self.step.after.run, self.at, "cancel on park".to_owned());
                    self.writes.push(Write::Notify(InboxItem { id: 0, run, key, at, body }));
                }
                let call = HarnessCall { phase, reason, spent, may_have_changed, ..call.clone() };
                let next = Stored { call, ..self.call.1.clone() };
                self.writes.extend(write(&next, self.call.0.key.clone(), self.at));
                self.writes
            }
        }
    }

    /// The step begins what may change the world.
    fn may_change(&self) -> bool {
        let changes = |entry: &Entry| match Said::decode(entry.kind, &entry.record) {
            Ok(Said::Intended(intended)) => !intended.class.may_be_cut(),
            Ok(_) | Err(_) => false,
        };
        self.step.entries.iter().any(changes)
    }

    /// Writes the Blocks that this step has added or changed.
    fn go_on(&mut self) {
        if self.ops.is_empty() {
            return;
        }
        let (row, said) = &self.output;
        let bytes = said.bytes + serde_json::to_vec(&self.ops).unwrap_or_default().len() as u64;
        let said = messages::Stored { updated_at: self.at.0, bytes, ..said.clone() };
        self.writes.push(put(messages::rewritten(row, &said), Place::Keep));
        let (message, ops) = (MessageId(row.id.0), std::mem::take(&mut self.ops));
        let event = Event::MessageUpdated { message, revision: row.rev + 1, ops };
        self.writes.push(publish(conversation_feed(row.scope), self.at, Some((Table::Message, row.id)), &event));
    }

    /// Where a call stands whose Run has not ended, and why.
    fn standing(&self, status: RunStatus) -> (CallPhase, Option<String>) {
        let outcome = self.step.after.outcome().map(|(outcome, _)| outcome.name().to_owned());
        match status {
            RunStatus::Parked => (CallPhase::Waiting, outcome),
            RunStatus::Suspended if !self.step.after.questions.is_empty() => {
                (CallPhase::Waiting, Some("question".to_owned()))
            }
            RunStatus::Suspended | RunStatus::Running | RunStatus::Ended => (CallPhase::Running, None),
        }
    }

    /// How the call ends with its Run.
    fn ending(&self) -> Ending {
        let Some((outcome, _)) = self.step.after.outcome() else {
            return Ending::failed(CallPhase::Unknown, "call.no_outcome", "the run is sealed without an outcome");
        };
        let name = Some(outcome.name().to_owned());
        let failed = |phase, code: &str, message: String| Ending {
            reason: name.clone(),
            ..Ending::failed(phase, code, message)
        };
        match outcome {
            Outcome::Completed { output } => {
                let text = || serde_json::Value::String(output.clone());
                let result = Some(serde_json::from_str(output).unwrap_or_else(|_| text()));
                Ending { phase: CallPhase::Succeeded, reason: name, error: None, result }
            }
            Outcome::Failed { failure } => failed(CallPhase::Failed, &failure.code, failure.message.clone()),
            Outcome::PolicyDenied { denial } => {
                failed(CallPhase::Failed, "call.policy_denied", format!("the rule {} forbids it", denial.rule))
            }
            Outcome::BudgetExceeded { breach } => failed(
                CallPhase::Failed,
                "call.budget_exceeded",
                format!("{:?} reached {}", breach.dimension, breach.limit),
            ),
            Outcome::Stuck { stall } => failed(CallPhase::Failed, "call.stuck", stall.evidence.clone()),
            Outcome::Interrupted { interrupt } => self.interrupted(interrupt, name.clone()),
        }
    }

    fn interrupted(&self, interrupt: &Interrupt, name: Option<String>) -> Ending {
        let ending = match interrupt {
            Interrupt::Cancelled { actor, .. } if actor == DEADLINE => {
                Ending::failed(CallPhase::TimedOut, "call.timed_out", "its time was over")
            }
            Interrupt::Cancelled { actor, .. } if actor == ON_PARK => {
                let parked = self.call.1.call.reason.clone();
                let message = format!("it parked ({}), and its caller does not wait", parked.as_deref().unwrap_or("-"));
                return Ending { reason: parked, ..Ending::failed(CallPhase::Failed, "call.parked", message) };
            }
            Interrupt::Cancelled { actor, reason } => {
                Ending::failed(CallPhase::Cancelled, "call.cancelled", format!("{actor} ended it: {reason}"))
            }
            Interrupt::Shutdown => Ending::failed(CallPhase::Failed, "call.interrupted", "its worker stopped"),
            Interrupt::InDoubt { reason } | Interrupt::Poisoned { reason } => {
                Ending::failed(CallPhase::Failed, "call.interrupted", reason.clone())
            }
        };
        Ending { reason: name, ..ending }
    }
}

/// What a text is shortened to in a Block.
fn short(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let kept = text.get(..text.floor_char_boundary(bytes)).unwrap_or_default();
    format!("{kept}… ({} bytes in all)", text.len())
}
