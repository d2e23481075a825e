//! Calls in flight: how they begin, how they are stopped, and what a broken one means.

use super::super::perform::{Work, settle};
use super::{Activation, DriveError, Grace};
use loopd_kernel::failure::Disposition;
use loopd_kernel::machine::{Input, Permit, Settling};
use loopd_kernel::model::{ConstantsRef, ModelConstants};
use loopd_kernel::projection::Target;
use loopd_kernel::record::Setback;
use loopd_kernel::{CallId, Failure};
use loopd_store::StoreError;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

impl Activation {
    /// A Call whose task panicked or was given up: nobody knows whether it had an effect.
    pub(super) fn broken_task(&self, error: &tokio::task::JoinError) -> (CallId, Input) {
        let lost = self.handles.iter().find(|(_, (handle, _))| handle.id() == error.id());
        let call = lost.map_or(CallId(0), |(call, _)| *call);
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
        for (handle, cancel) in self.handles.values() {
            cancel.cancel();
            handle.abort();
        }
    }

    /// Asks what is still in flight to stop once somebody has cancelled the Run.
    pub(super) fn soften_cancel(&mut self) {
        let cancelled = self.machine.projection().cancel.is_some() && !self.handles.is_empty();
        if cancelled && matches!(self.grace, Grace::Unlimited) {
            self.grace = Grace::Until(tokio::time::Instant::now() + self.config.grace);
            for (_, cancel) in self.handles.values() {
                cancel.cancel();
            }
        }
    }

    pub(super) async fn perform(&mut self, permit: Permit) -> Result<(), DriveError> {
        let call = permit.call();
        let work = self.work(call).await?;
        let cancel = CancellationToken::new();
        let performing = self.performer.clone().perform(permit, self.run(), self.window, work, cancel.clone());
        let handle = self.inflight.spawn(async move { (call, performing.await) });
        self.handles.insert(call, (handle, cancel));
        Ok(())
    }

    /// Finds what a Call calls, and builds a model's request from what was said before its intent.
    async fn work(&mut self, id: CallId) -> Result<Work, DriveError> {
        let projection = self.machine.projection();
        let Some(call) = projection.open.iter().find(|call| call.id == id) else { return Ok(Work::Gone) };
        let wanted = match &call.target {
            Target::Tool { tool, .. } => {
                return Ok(self.program.find_tool(tool).map_or(Work::Gone, |tool| Work::Tool(tool.clone())));
            }
            Target::Model(wanted) => wanted.clone(),
        };
        let Some(model) = self.program.find_model(&wanted.model).cloned() else { return Ok(Work::Gone) };
        let intent = call.intent.as_ref().map_or(projection.head.seq, |intent| intent.seq);
        let mut messages = if wanted.transcript {
            self.cache.before(&*self.store, projection, intent).await.map_err(DriveError::Load)?
        } else {
            Vec::new()
        };
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
