//! The desk of an Operator that is a process of its own.

use crate::desk::{Desk, Ear, Heard};
use crate::error::Error;
use async_trait::async_trait;
use loopd_client::{Client, Follow, Part, Start, Told, Window};
use loopd_protocol::{
    ActorKey, Conversation, ConversationId, End, HarnessCall, HarnessCallId, Keyed, Lease, Message, MessageId,
    NewLease, Open, Page, Place, Polled, Question, QuestionId, Registration, Steer, Steered, Target, Turn, Turned,
    Update, Wake,
};

/// Conversations of one part of a list.
const PART: u32 = 200;

/// Requests over HTTP, with the token of the Operator.
#[derive(Debug, Clone)]
pub struct Http(Client);

impl Http {
    /// Requests that this client sends; its token is the Operator's.
    #[must_use]
    pub const fn new(client: Client) -> Self {
        Self(client)
    }
}

#[async_trait]
impl Desk for Http {
    async fn register(&self, actor: &ActorKey, registration: &Registration) -> Result<(), Error> {
        Ok(self.0.register(actor, registration).await.map(drop)?)
    }

    async fn targets(&self) -> Result<Vec<Target>, Error> {
        Ok(self.0.targets().await?.items)
    }

    async fn listen(&self, feed: &str) -> Result<Box<dyn Ear>, Error> {
        Ok(Box::new(Stream(Follow::new(self.0.clone(), vec![feed.to_owned()], Start::Now))))
    }

    async fn unhandled(&self, cursor: Option<String>) -> Result<Page<Wake>, Error> {
        Ok(self.0.unhandled(&Part { cursor, limit: Some(PART) }).await?)
    }

    async fn conversation(&self, id: ConversationId) -> Result<Conversation, Error> {
        Ok(self.0.conversation(id).await?)
    }

    async fn work(&self, id: ConversationId) -> Result<Vec<Conversation>, Error> {
        Ok(self.0.work(id).await?)
    }

    async fn messages(&self, id: ConversationId, before: u64, limit: u32) -> Result<Vec<Message>, Error> {
        Ok(self.0.messages(id, Window::Before(before), limit).await?)
    }

    async fn lease(&self, id: ConversationId, wish: &NewLease) -> Result<Lease, Error> {
        Ok(self.0.lease(id, wish).await?)
    }

    async fn poll(&self, id: ConversationId, limit: u32) -> Result<Polled, Error> {
        Ok(self.0.poll(id, limit).await?)
    }

    async fn keyed(
        &self,
        id: ConversationId,
        place: Place,
        actor: Option<&ActorKey>,
        keys: &[String],
    ) -> Result<Vec<Keyed>, Error> {
        Ok(self.0.keyed(id, place, actor, keys).await?)
    }

    async fn turn(&self, id: ConversationId, turn: &Turn) -> Result<Turned, Error> {
        Ok(self.0.turn(id, turn).await?)
    }

    async fn begin(&self, id: ConversationId, key: &str, open: &Open) -> Result<Message, Error> {
        Ok(self.0.begin(id, key, open).await?.message)
    }

    async fn update(&self, id: MessageId, update: &Update) -> Result<Message, Error> {
        Ok(self.0.update(id, update).await?)
    }

    async fn end(&self, id: MessageId, end: &End) -> Result<Message, Error> {
        Ok(self.0.end(id, end).await?)
    }

    async fn call(&self, id: HarnessCallId) -> Result<HarnessCall, Error> {
        Ok(self.0.call(id).await?)
    }

    async fn cancel(&self, id: HarnessCallId, reason: &str) -> Result<HarnessCall, Error> {
        Ok(self.0.cancel(id, reason).await?)
    }

    async fn steer(&self, id: HarnessCallId, key: &str, steer: &Steer) -> Result<Steered, Error> {
        Ok(self.0.steer(id, key, steer).await?)
    }

    async fn question(&self, id: QuestionId) -> Result<Question, Error> {
        Ok(self.0.question(id).await?)
    }

    async fn withdraw(&self, id: QuestionId) -> Result<Question, Error> {
        Ok(self.0.withdraw(id).await?)
    }
}

struct Stream(Follow);

#[async_trait]
impl Ear for Stream {
    async fn hear(&mut self) -> Result<Option<Heard>, Error> {
        loop {
            return Ok(match self.0.next().await? {
                Some(Told::Hello(_) | Told::Reset(_)) => Some(Heard::Here),
                Some(Told::Event(event)) => Some(Heard::Event(event)),
                Some(Told::Lost(why)) => {
                    tracing::debug!(%why, "the stream broke off");
                    continue;
                }
                Some(Told::Delta(_) | Told::Closed { .. }) => continue,
                None => None,
            });
        }
    }
}
