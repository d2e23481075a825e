//! The requests of Operators.

use crate::client::{keyed, read};
use crate::{Client, Error, Part};
use loopd_protocol::{
    Actor, ActorKey, Conversation, ConversationId, End, Keyed, Lease, Message, MessageId, NewLease, Open, Page, Place,
    Polled, Question, QuestionId, Registration, Said, Turn, Turned, Update, Wake,
};
use reqwest::Method;

impl Client {
    /// Announces an Actor, or renews its lease.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn register(&self, key: &ActorKey, registration: &Registration) -> Result<Actor, Error> {
        read(self.write(Method::PUT, &format!("/v1/actors/{key}"), registration)?).await
    }

    /// Where there is something that the caller has not handled.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn unhandled(&self, part: &Part) -> Result<Page<Wake>, Error> {
        self.list("/v1/unhandled", part, &[]).await
    }

    /// The work conversations of a Conversation.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn work(&self, id: ConversationId) -> Result<Vec<Conversation>, Error> {
        let page: Page<Conversation> =
            read(self.request(Method::GET, &format!("/v1/conversations/{id}/work"), &[])).await?;
        Ok(page.items)
    }

    /// Asks for the lease on a Conversation, renews it or gives it back.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn lease(&self, id: ConversationId, wish: &NewLease) -> Result<Lease, Error> {
        read(self.write(Method::POST, &format!("/v1/conversations/{id}/lease"), wish)?).await
    }

    /// What is behind the caller's cursor and whole.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn poll(&self, id: ConversationId, limit: u32) -> Result<Polled, Error> {
        let limit = limit.to_string();
        read(self.request(Method::GET, &format!("/v1/conversations/{id}/poll"), &[("limit", &limit)])).await
    }

    /// Does a Turn; what its keys did before is not done again.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn turn(&self, id: ConversationId, turn: &Turn) -> Result<Turned, Error> {
        read(self.write(Method::POST, &format!("/v1/conversations/{id}/turn"), turn)?).await
    }

    /// What was said, called and asked under a key, by the caller or a role of theirs.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn keyed(
        &self,
        id: ConversationId,
        place: Place,
        actor: Option<&ActorKey>,
        keys: &[String],
    ) -> Result<Vec<Keyed>, Error> {
        let keys = keys.join(" ");
        let mut query = vec![("key", keys.as_str()), ("place", place.name())];
        query.extend(actor.map(|actor| ("actor", actor.as_str())));
        let page: Page<Keyed> =
            read(self.request(Method::GET, &format!("/v1/conversations/{id}/keyed"), &query)).await?;
        Ok(page.items)
    }

    /// Begins a Message that goes on; the same key again is the same one.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn begin(&self, id: ConversationId, key: &str, open: &Open) -> Result<Said, Error> {
        read(keyed(self.write(Method::POST, &format!("/v1/conversations/{id}/messages/begin"), open)?, key)).await
    }

    /// Goes on with an open Message; the same update at the same revision again changes nothing.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn update(&self, id: MessageId, update: &Update) -> Result<Message, Error> {
        read(self.write(Method::PATCH, &format!("/v1/messages/{id}"), update)?).await
    }

    /// Ends an open Message; the same end again changes nothing.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn end(&self, id: MessageId, end: &End) -> Result<Message, Error> {
        read(self.write(Method::POST, &format!("/v1/messages/{id}/end"), end)?).await
    }

    /// Takes a Question back.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn withdraw(&self, id: QuestionId) -> Result<Question, Error> {
        read(self.request(Method::POST, &format!("/v1/questions/{id}/withdraw"), &[])).await
    }
}
