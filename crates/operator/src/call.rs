//! Handles of calls: they are rebuilt from an id, and own nothing.

use crate::desk::Desk;
use crate::error::{Error, patiently};
use crate::lasting::Lasting;
use loopd_protocol::{HarnessCall, HarnessCallId, Steer, Steered};
use serde_json::Value;
use std::sync::Arc;

/// A HarnessCall, as it was when it was last looked at.
///
/// The call goes on whether or not somebody has a handle of it; dropping one, also in the middle of [`Call::wait`], ends
/// nothing.
#[derive(Debug, Clone)]
pub struct Call {
    desk: Arc<dyn Desk>,
    state: HarnessCall,
}

impl Call {
    /// The call with this id.
    ///
    /// # Errors
    /// [`Error::Refused`] `not_found`.
    pub async fn of(desk: Arc<dyn Desk>, id: HarnessCallId) -> Result<Self, Error> {
        let state = patiently(|| desk.call(id)).await?;
        Ok(Self { desk, state })
    }

    pub(crate) const fn known(desk: Arc<dyn Desk>, state: HarnessCall) -> Self {
        Self { desk, state }
    }

    /// Its identity.
    #[must_use]
    pub const fn id(&self) -> HarnessCallId {
        self.state.id
    }

    /// As it was when it was last looked at.
    #[must_use]
    pub const fn state(&self) -> &HarnessCall {
        &self.state
    }

    /// Whether nothing of it changes any more.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.state.phase.is_final()
    }

    /// Its result, once it has succeeded.
    #[must_use]
    pub const fn result(&self) -> Option<&Value> {
        self.state.result.as_ref()
    }

    /// Its result as text: of a JSON value what it is written as.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        self.result().map(|result| result.as_str().map_or_else(|| result.to_string(), str::to_owned))
    }

    /// Looks at it again.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn look(&mut self) -> Result<&HarnessCall, Error> {
        self.state = self.state.look(&*self.desk).await?;
        Ok(&self.state)
    }

    /// Waits until it is over, by its Conversation's Feed. In a Reconcile it is better to return
    /// [`crate::Next::Done`]: the end of the call wakes the Operator, and no slot is held meanwhile.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn wait(&mut self) -> Result<&HarnessCall, Error> {
        self.state.last(&*self.desk).await?;
        Ok(&self.state)
    }

    /// Wishes that it ends; whether it did, its phase tells.
    ///
    /// # Errors
    /// [`Error::Conflict`] `call_final`.
    pub async fn cancel(&mut self, reason: &str) -> Result<&HarnessCall, Error> {
        self.state = patiently(|| self.desk.cancel(self.state.id, reason)).await?;
        Ok(&self.state)
    }

    /// Says something to it while it runs, once per key.
    ///
    /// # Errors
    /// [`Error::Conflict`] `call_final`, `call_queued`, `call_not_steerable`.
    pub async fn steer(&self, key: &str, text: impl Into<String>) -> Result<Steered, Error> {
        let steer = Steer { text: text.into() };
        patiently(|| self.desk.steer(self.state.id, key, &steer)).await
    }
}
