//! Stub.
#![allow(unused, missing_docs)]
use crate::*;
use loopd_protocol::*;
impl Platform {
    pub async fn register(&self, by: &Caller, key: &ActorKey, registration: Registration) -> Result<Actor, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn actor(&self, key: &ActorKey) -> Result<Actor, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn actors(&self, kind: Option<ActorKind>, paging: Paging) -> Result<Page<Actor>, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
}
