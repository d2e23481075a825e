//! Stub.
#![allow(unused, missing_docs)]
use crate::*;
use loopd_protocol::*;
impl Platform {
    pub async fn ask(&self, by: &Caller, conversation: ConversationId, key: &str, new: NewQuestion) -> Result<(Question, bool), Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn question(&self, by: &Caller, id: QuestionId) -> Result<Question, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn answer(&self, by: &Caller, id: QuestionId, answer: Answer) -> Result<Question, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn withdraw(&self, by: &Caller, id: QuestionId) -> Result<Question, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn questions(&self, by: &Caller, conversation: Option<ConversationId>, paging: Paging) -> Result<Page<Question>, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
}
