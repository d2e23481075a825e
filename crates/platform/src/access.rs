//! Stub.
#![allow(unused, missing_docs)]
use crate::*;
use loopd_protocol::*;
pub struct Secret;
impl Platform {
    pub async fn make_token(&self, by: &Caller, new: NewToken) -> Result<TokenMade, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn tokens(&self, by: &Caller, paging: Paging) -> Result<Page<Token>, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn revoke_token(&self, by: &Caller, id: TokenId) -> Result<Token, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn authenticate(&self, secret: &str) -> Result<Option<Caller>, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn audit(&self, by: &Caller, paging: Paging) -> Result<Page<AuditEntry>, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn note(&self, by: &Caller, action: &str, subject: &str, detail: &str) -> Result<(), Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
}
