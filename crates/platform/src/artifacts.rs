//! Stub.
#![allow(unused, missing_docs)]
use crate::*;
use loopd_protocol::*;
impl Platform {
    pub async fn attach(&self, by: &Caller, conversation: ConversationId, name: &str, media_type: &str, bytes: Vec<u8>) -> Result<Artifact, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn artifact(&self, by: &Caller, id: ArtifactId) -> Result<(Artifact, Vec<u8>), Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
}
