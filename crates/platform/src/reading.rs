//! Stub.
#![allow(unused, missing_docs)]
use crate::*;
use loopd_protocol::*;
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
pub struct Polled { pub seq: u64, pub messages: Vec<Message>, pub more: bool }
impl Platform {
    pub async fn poll(&self, by: &Caller, conversation: ConversationId, limit: usize, streaming: bool) -> Result<Polled, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn commit(&self, by: &Caller, conversation: ConversationId, seq: u64) -> Result<u64, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
}
