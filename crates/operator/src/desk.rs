//! The port between an Operator and the platform that it works for.

use crate::Error;
use async_trait::async_trait;
use loopd_protocol::{
    ActorKey, Conversation, ConversationId, End, FeedEvent, HarnessCall, HarnessCallId, Keyed, Lease, Message,
    MessageId, NewLease, Open, Page, Place, Polled, Question, QuestionId, Registration, Steer, Steered, Target, Turn,
    Turned, Update, Wake,
};
use std::fmt::Debug;

/// Where an Operator makes its requests: over HTTP ([`crate::Http`]), or inside the process of the platform.
///
/// Whoever asks is known to the desk. Each method is one request, sent once; an [`Error::Retryable`] leaves open whether
/// it was done.
#[async_trait]
pub trait Desk: Debug + Send + Sync + 'static {
    /// Announces an Actor, or renews its lease.
    async fn register(&self, actor: &ActorKey, registration: &Registration) -> Result<(), Error>;
    /// What calls may be made to.
    async fn targets(&self) -> Result<Vec<Target>, Error>;
    /// Listens to a Feed, `conversation/con_…` or `actor/kind/key`, from now on.
    async fn listen(&self, feed: &str) -> Result<Box<dyn Ear>, Error>;
    /// A part of the list of Conversations with something unhandled.
    async fn unhandled(&self, cursor: Option<String>) -> Result<Page<Wake>, Error>;
    /// What a Conversation says of itself.
    async fn conversation(&self, id: ConversationId) -> Result<Conversation, Error>;
    /// The work conversations of a Conversation.
    async fn work(&self, id: ConversationId) -> Result<Vec<Conversation>, Error>;
    /// The last Messages before this seq, in the order of their seq.
    async fn messages(&self, id: ConversationId, before: u64, limit: u32) -> Result<Vec<Message>, Error>;
    /// Asks for the lease on a Conversation, renews it or gives it back.
    async fn lease(&self, id: ConversationId, wish: &NewLease) -> Result<Lease, Error>;
    /// Whole Messages behind the cursor, at most this many.
    async fn poll(&self, id: ConversationId, limit: u32) -> Result<Polled, Error>;
    /// What each of these keys of this Actor did, in their order; at most 50.
    async fn keyed(
        &self,
        id: ConversationId,
        place: Place,
        actor: Option<&ActorKey>,
        keys: &[String],
    ) -> Result<Vec<Keyed>, Error>;
    /// Does a Turn, all of it or nothing.
    async fn turn(&self, id: ConversationId, turn: &Turn) -> Result<Turned, Error>;
    /// Begins a Message that goes on.
    async fn begin(&self, id: ConversationId, key: &str, open: &Open) -> Result<Message, Error>;
    /// Goes on with it.
    async fn update(&self, id: MessageId, update: &Update) -> Result<Message, Error>;
    /// Ends it.
    async fn end(&self, id: MessageId, end: &End) -> Result<Message, Error>;
    /// A call.
    async fn call(&self, id: HarnessCallId) -> Result<HarnessCall, Error>;
    /// Wishes that a call ends.
    async fn cancel(&self, id: HarnessCallId, reason: &str) -> Result<HarnessCall, Error>;
    /// Sends text to a call that runs.
    async fn steer(&self, id: HarnessCallId, key: &str, steer: &Steer) -> Result<Steered, Error>;
    /// A Question.
    async fn question(&self, id: QuestionId) -> Result<Question, Error>;
    /// Takes a Question back.
    async fn withdraw(&self, id: QuestionId) -> Result<Question, Error>;
}

/// What listens to a Feed.
#[async_trait]
pub trait Ear: Send {
    /// What is heard next; it waits as long as it takes, and comes back after every loss. `None` once nothing more
    /// comes. It may be dropped at any point and called again.
    ///
    /// # Errors
    /// Where coming back is no use.
    async fn hear(&mut self) -> Result<Option<Heard>, Error>;
}

/// What is heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// It listens, for the first time or again: what was there before is looked at now.
    Here,
    /// Something happened.
    Event(Box<FeedEvent>),
}
