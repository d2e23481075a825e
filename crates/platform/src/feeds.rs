//! Stub.
#![allow(unused, missing_docs)]
use crate::*;
use loopd_protocol::*;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FeedName { Conversation(ConversationId), Actor(ActorKey) }
impl std::fmt::Display for FeedName { fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { match self { Self::Conversation(id) => write!(f, "conversation/{id}"), Self::Actor(key) => write!(f, "actor/{key}") } } }
impl std::str::FromStr for FeedName { type Err = Error; fn from_str(text: &str) -> Result<Self, Error> { let wrong = || Error::invalid("feed", "a feed is `conversation/con_…` or `actor/kind/key`"); match text.split_once('/') { Some(("conversation", id)) => id.parse().map(Self::Conversation).map_err(|_| wrong()), Some(("actor", key)) => key.parse().map(Self::Actor).map_err(|_| wrong()), _ => Err(wrong()) } } }
impl FeedName { pub fn feed(&self) -> loopd_store::Feed { let (kind, id) = match self { Self::Conversation(id) => (loopd_store::FeedKind::Conversation, loopd_store::RecordId(id.0)), Self::Actor(key) => (loopd_store::FeedKind::Actor, crate::rows::named(key.as_str())) }; loopd_store::Feed { kind, id } } }
impl Platform {
    pub async fn may_follow(&self, by: &Caller, feed: &FeedName) -> Result<(), Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn events(&self, feed: &FeedName, after: u64, limit: usize) -> Result<Vec<FeedEvent>, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
    pub async fn positions(&self, feeds: &[FeedName]) -> Result<Vec<u64>, Error> { Err(Error::Store(loopd_store::StoreError::Unavailable("not built yet".to_owned()))) }
}
