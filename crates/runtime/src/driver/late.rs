//! What is left in the hands of a worker that has lost a Run: results that it may still hand in.

use super::patience::Patience;
use crate::handle::tell;
use crate::ports::Clock;
use loopd_kernel::machine::{Input, Settling};
use loopd_kernel::{CallId, Epoch, RunId};
use loopd_store::{InboxBody, Store, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;

/// The results of Calls that may have changed the world, and those that are still under way.
pub struct Leftovers {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub patience: Patience,
    pub run: RunId,
    pub epoch: Epoch,
    pub done: Vec<(CallId, String)>,
    pub inflight: JoinSet<(CallId, Input)>,
    /// The Calls whose results are worth it: anything else is done again at no harm.
    pub effects: BTreeSet<CallId>,
}

impl Leftovers {
    /// True when there is nothing to hand in and nothing to wait for.
    pub fn is_empty(&self) -> bool {
        self.done.is_empty() && self.effects.is_empty()
    }

    /// Puts each result into the Run's inbox, where whoever drives the Run now finds it. Waits for Calls under way
    /// until they end or the worker stops.
    pub async fn hand_in(mut self) {
        for (call, output) in std::mem::take(&mut self.done) {
            self.deposit(call, output).await;
        }
        while !self.effects.is_empty() {
            let next = tokio::select! {
                next = self.inflight.join_next() => next,
                () = stopped(&self.patience) => None,
            };
            match next {
                Some(Ok((call, Input::Settle { settling: Settling::Landed(output), .. })))
                    if self.effects.remove(&call) =>
                {
                    self.deposit(call, output).await;
                }
                Some(Ok((call, _))) => drop(self.effects.remove(&call)),
                Some(Err(_)) => {}
                None => return,
            }
        }
    }

    async fn deposit(&self, call: CallId, output: String) {
        let (run, epoch) = (self.run, self.epoch);
        let mut waiting = self.patience.begin();
        loop {
            let body = InboxBody::Late { call, epoch, output: output.clone() };
            let key = format!("late:{epoch}:{call}");
            match tell(&*self.store, run, key, self.clock.now(), body).await {
                Ok(()) => {
                    tracing::info!(%run, %call, "a result was handed in for a run that is not driven here any more");
                    return;
                }
                // The same key again is one item.
                Err(StoreError::Unavailable(_) | StoreError::Ambiguous(_)) if waiting.pause().await => {}
                Err(error) => {
                    tracing::warn!(%run, %call, %error, "a late result could not be handed in");
                    return;
                }
            }
        }
    }
}

/// The worker stops, and the grace time is over.
async fn stopped(patience: &Patience) {
    patience.drain.cancelled().await;
    tokio::time::sleep(patience.grace).await;
}
