//! Stub.
#![allow(unused, missing_docs)]
use crate::*;
use loopd_protocol::*;
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct Exported { pub conversation: Conversation, pub messages: Vec<Message>, pub questions: Vec<Question>, pub calls: Vec<HarnessCall> }
impl Exported { pub fn markdown(&self) -> String { String::new() } }
impl Platform {
    pub async fn search(&self, by: &Caller, text: &str, within: Option<ConversationId>, limit: usize) -> Result<Vec<Message>, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn export(&self, by: &Caller, id: ConversationId) -> Result<Exported, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
}
