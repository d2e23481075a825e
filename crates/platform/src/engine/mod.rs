//! Stub.
#![allow(unused, missing_docs)]
use crate::*;
use loopd_protocol::*;
#[derive(Clone, Debug)]
pub struct Engine {
    platform: Platform,
}
#[derive(Clone, Debug)]
pub struct Deltas;
impl Deltas {
    pub fn subscribe(&self, conversation: ConversationId) -> (Vec<Delta>, tokio::sync::broadcast::Receiver<Delta>) {
        (Vec::new(), tokio::sync::broadcast::channel(1).1)
    }
}
impl Engine {
    pub fn platform(&self) -> &Platform {
        &self.platform
    }
}
impl Engine {
    pub async fn call(
        &self,
        by: &Caller,
        conversation: ConversationId,
        key: &str,
        new: NewCall,
    ) -> Result<Called, Error> {
        Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned())))
    }
    pub async fn say(&self, by: &Caller, conversation: ConversationId, key: &str, say: Say) -> Result<Said, Error> {
        Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned())))
    }
    pub async fn harness_call(&self, by: &Caller, id: HarnessCallId) -> Result<HarnessCall, Error> {
        Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned())))
    }
    pub async fn harness_calls(
        &self,
        by: &Caller,
        conversation: ConversationId,
        paging: Paging,
    ) -> Result<Page<HarnessCall>, Error> {
        Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned())))
    }
    pub async fn cancel(&self, by: &Caller, id: HarnessCallId, reason: &str) -> Result<HarnessCall, Error> {
        Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned())))
    }
    pub async fn resume(&self, by: &Caller, id: HarnessCallId, raise: Budget) -> Result<HarnessCall, Error> {
        Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned())))
    }
    pub async fn steer(&self, by: &Caller, id: HarnessCallId, key: &str, steer: Steer) -> Result<Steered, Error> {
        Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned())))
    }
    pub async fn targets(&self) -> Vec<Target> {
        Vec::new()
    }
    pub fn deltas(&self) -> Deltas {
        Deltas
    }
    pub async fn drain(&self) {}
    pub fn is_draining(&self) -> bool {
        false
    }
}
