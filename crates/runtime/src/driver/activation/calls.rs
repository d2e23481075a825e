//! Calls in flight: how they begin, how they are stopped, and what a broken one means.

use super::super::late::Leftovers;
use super::super::perform::{Work, settle};
use super::{Activation, DriveError, Grace};
use crate::results::JournalResults;
use loopd_kernel::failure::Disposition;
use loopd_kernel::machine::{Input, Permit, Probe, ProbeAnswer, Settling};
use loopd_kernel::model::{ConstantsRef, Message, ModelConstants};
use loopd_kernel::projection::{Call, Target};
use loopd_kernel::record::Setback;
use loopd_kernel::transcript::capped;
use loopd_kernel::{CallId, Failure};
use loopd_store::StoreError;
use std::sync::Arc;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

/// Something under way for a Call.
pub(super) struct Flight {
    handle: AbortHandle,
    cancel: CancellationToken,
    what: What,
}

/// What is under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// A Call that may be cut: whatever becomes of it, the world is the same.
    Cuttable,
    /// A Call that may change the world.
    Effect,
    /// A question to the target of a Call.
    Probe,
}

impl Flight {
    /// Asks it to stop, and stops waiting for it.
    pub(super) fn stop(&self) {
        self.cancel.cancel();
        self.handle.abort();
    }
}

impl Activation {
    /// A Call whose task panicked or was given up: nobody knows whether it had an effect.
    pub(super) fn broken_task(&self, error: &tokio::task::JoinError) -> (CallId, Input) {
        let lost = self.handles.iter().find(|(_, flight)| flight.handle.id() == error.id());
        let (call, what) = lost.map_or((CallId(0), What::Cuttable), |(call, flight)| (*call, flight.what));
        if what == What::Probe {
            if !error.is_panic() {
                return (call, Input::Continue);
            }
            let answer = ProbeAnswer::Unclear("the code that asked the target panicked".into());
            return (call, Input::Probed { call, asked_at: self.performer.clock.now(), answer });
        }
        if error.is_panic() {
            let failure = Failure::new("call.panicked", "the code that performed this call panicked");
            return (call, settle(call, Settling::Failed(failure, Disposition::InDoubt), None, None));
        }
        let class = self.machine.projection().call(call).and_then(|call| call.intent.as_ref()).map(|i| i.class);
        // The machine decides about a Call that may change the world: ask, or send again with its key.
        if class.is_none_or(|class| !class.may_be_cut()) {
            return (call, settle(call, Settling::Interrupted("given up while it ran".into()), None, None));
        }
        // What may run again is no failure of the Run: it is wanted again, here or by the next worker.
        let failure = Failure::new("call.stopped", "the worker stopped while it ran");
        let retry_at = self.performer.clock.now();
        (call, Input::Retry { call, failure, setback: Setback::Stopped, usage: None, cost: None, retry_at })
    }

    /// Gives up what is still in flight; each Call settles as interrupted or is wanted again.
    pub(super) fn give_up(&mut self) {
        self.grace = Grace::GivenUp(tokio::time::Instant::now() + self.config.grace);
        for flight in self.handles.values() {
            flight.stop();
        }
    }

    /// True when nothing is in flight but questions to targets.
    pub(super) fn only_probes(&self) -> bool {
        self.handles.values().all(|flight| flight.what == What::Probe)
    }

    /// Asks targets whether Calls happened, unless they are being asked.
    pub(super) fn probe(&mut self, probes: Vec<Probe>) {
        if matches!(self.grace, Grace::GivenUp(_)) {
            return;
        }
        for probe in probes {
            let Target::Tool { tool, .. } = &probe.call.target else { continue };
            let (id, tool) = (probe.call.id, self.program.find_tool(tool).cloned());
            let (Some(tool), false) = (tool, self.handles.contains_key(&id)) else { continue };
            let cancel = CancellationToken::new();
            let asking = self.performer.clone().probe(tool, probe, cancel.clone());
            let handle = self.inflight.spawn(async move { (id, asking.await) });
            self.handles.insert(id, Flight { handle, cancel, what: What::Probe });
        }
    }

    /// The result of a Call that may have changed the world, when this input is one.
    pub(super) fn effect_result(&self, input: &Input) -> Option<(CallId, String)> {
        let Input::Settle { call, settling: Settling::Landed(output), .. } = input else { return None };
        let class = self.machine.projection().call(*call)?.class()?;
        (!class.may_be_cut()).then(|| (*call, output.clone()))
    }

    /// Whatever may still be handed in for a Run that is lost; what may be cut is stopped.
    pub(super) fn leftovers(mut self) -> Leftovers {
        let queued: Vec<_> = self.queue.iter().filter_map(|(input, _)| self.effect_result(input)).collect();
        let done = self.unrecorded.take().into_iter().chain(queued).collect();
        for flight in self.handles.values().filter(|flight| flight.what != What::Effect) {
            flight.stop();
        }
        let effects = self.handles.iter().filter(|(_, flight)| flight.what == What::Effect).map(|(call, _)| *call);
        Leftovers {
            done,
            effects: effects.collect(),
            inflight: std::mem::take(&mut self.inflight),
            store: self.store.clone(),
            clock: self.performer.clock.clone(),
            patience: self.performer.patience.clone(),
            run: self.run(),
            epoch: self.holder.epoch,
        }
    }

    /// Asks what is still in flight to stop once somebody has cancelled the Run.
    pub(super) fn soften_cancel(&mut self) {
        let cancelled = self.machine.projection().cancel.is_some() && !self.only_probes();
        if cancelled && matches!(self.grace, Grace::Unlimited) {
            self.grace = Grace::Until(tokio::time::Instant::now() + self.config.grace);
            for flight in self.handles.values().filter(|flight| flight.what != What::Probe) {
                flight.cancel.cancel();
            }
        }
    }

    pub(super) async fn perform(&mut self, permit: Permit) -> Result<(), DriveError> {
        let call = permit.call();
        let work = self.work(call).await?;
        let cancel = CancellationToken::new();
        let performing = self.performer.clone().perform(permit, self.run(), self.window, work, cancel.clone());
        let handle = self.inflight.spawn(async move { (call, performing.await) });
        let class = self.machine.projection().call(call).and_then(Call::class);
        let cuttable = class.is_some_and(|class| class.may_be_cut());
        let what = if cuttable { What::Cuttable } else { What::Effect };
        self.handles.insert(call, Flight { handle, cancel, what });
        Ok(())
    }

    /// Finds what a Call calls, and builds a model's request from what was said before its intent.
    async fn work(&mut self, id: CallId) -> Result<Work, DriveError> {
        let projection = self.machine.projection();
        let Some(call) = projection.open.iter().find(|call| call.id == id) else { return Ok(Work::Gone) };
        let wanted = match &call.target {
            Target::Tool { tool, .. } => {
                let earlier = Arc::new(JournalResults { store: self.store.clone(), run: projection.run });
                return Ok(self.program.find_tool(tool).map_or(Work::Gone, |tool| Work::Tool(tool.clone(), earlier)));
            }
            Target::Model(wanted) => wanted.clone(),
            // Nobody performs a child.
            Target::Child(_) => return Ok(Work::Gone),
        };
        let Some(model) = self.program.find_model(&wanted.model).cloned() else { return Ok(Work::Gone) };
        let intent = call.intent.as_ref().map_or(projection.head.seq, |intent| intent.seq);
        let mut messages = if wanted.transcript {
            self.cache.before(&*self.store, projection, intent).await.map_err(DriveError::Load)?
        } else {
            Vec::new()
        };
        if let Some(cap) = wanted.result_cap {
            messages.iter_mut().for_each(|message| cut(message, cap));
        }
        messages.extend(wanted.messages.into_iter().map(Arc::new));
        let constants = match wanted.constants {
            Some(name) => self.find_constants(name).await?,
            None => Arc::default(),
        };
        Ok(Work::Model { model, constants, messages })
    }

    async fn find_constants(&mut self, name: ConstantsRef) -> Result<Arc<ModelConstants>, DriveError> {
        if let Some(known) = self.constants.get(&name.digest) {
            return Ok(known.clone());
        }
        let missing = || DriveError::Store(StoreError::Corrupt(format!("the constants {} do not read", name.digest)));
        let bytes = self.store.blob(name.digest).await?.ok_or_else(missing)?;
        let parsed: Arc<ModelConstants> = Arc::new(serde_json::from_slice(&bytes).map_err(|_| missing())?);
        self.constants.insert(name.digest, parsed.clone());
        Ok(parsed)
    }
}

/// Leaves the middle of a long tool result out of a request.
fn cut(message: &mut Arc<Message>, cap: u64) {
    if let Message::Tool { id, text, error } = &**message
        && text.len() as u64 > cap
    {
        let (id, text, error) = (id.clone(), capped(text, cap, None).into_owned(), *error);
        *message = Arc::new(Message::Tool { id, text, error });
    }
}
