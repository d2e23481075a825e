//! Stub.
#![allow(unused, missing_docs)]
use crate::*;
use loopd_protocol::*;
impl Platform {
    pub async fn open(&self, by: &Caller, key: &str, new: NewConversation) -> Result<(Conversation, bool ), Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn conversation(&self, by: &Caller, id: ConversationId) -> Result<Conversation, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn conversations(&self, by: &Caller, archived: bool, paging: Paging) -> Result<Page<Conversation>, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn change(&self, by: &Caller, id: ConversationId, revision: Option<u64>, change: ChangeConversation) -> Result<Conversation, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn change_members(&self, by: &Caller, id: ConversationId, revision: Option<u64>, change: MemberChange) -> Result<Conversation, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn delete(&self, by: &Caller, id: ConversationId) -> Result<(), Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn work_conversations(&self, by: &Caller, id: ConversationId) -> Result<Vec<Conversation>, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
}
