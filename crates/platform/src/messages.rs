//! Stub.
#![allow(unused, missing_docs)]
use crate::*;
use loopd_protocol::*;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window { After(u64), Before(u64), Latest }
impl Platform {
    pub async fn say(&self, by: &Caller, conversation: ConversationId, key: &str, say: Say) -> Result<Said, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn begin(&self, by: &Caller, conversation: ConversationId, key: &str, open: Open) -> Result<Said, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn update(&self, by: &Caller, message: MessageId, update: Update) -> Result<Message, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn end(&self, by: &Caller, message: MessageId, end: End) -> Result<Message, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn messages(&self, by: &Caller, conversation: ConversationId, window: Window , limit: usize) -> Result<Vec<Message>, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn message(&self, by: &Caller, message: MessageId) -> Result<Message, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
}
