//! The requests, a method for each, in the order of `docs/server.md`.

use crate::client::{keyed, matching, read, read_text, send};
use crate::{Client, Error};
use loopd_protocol::{
    Actor, ActorKey, ActorKind, Agent, AgentApplied, Answer, Artifact, Budget, Called, ChangeConversation,
    Conversation, ConversationId, HarnessCall, HarnessCallId, MemberChange, Message, MessageId, NewCall,
    NewConversation, NewToken, Page, Question, QuestionId, Said, Say, Steer, Steered, Target, Token, TokenId,
    TokenMade, WhoAmI,
};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::json;

/// A part of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// `next` of the part before.
    pub cursor: Option<String>,
    /// At most this many; without it, the usual number.
    pub limit: Option<u32>,
}

impl Part {
    /// At most this many, from the beginning.
    #[must_use]
    pub const fn first(limit: u32) -> Self {
        Self { cursor: None, limit: Some(limit) }
    }
}

/// Which Messages of a Conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The last ones.
    Latest,
    /// The first ones behind this seq.
    After(u64),
    /// The last ones before this seq.
    Before(u64),
}

/// The form of an exported Conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Document {
    /// For programs.
    Json,
    /// For people.
    Markdown,
}

/// The parameters of a query, as far as they are there.
fn query<'a, const N: usize>(pairs: [(&'a str, Option<&'a str>); N]) -> Vec<(&'a str, &'a str)> {
    pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

impl Client {
    /// Whom the server takes this client for.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn whoami(&self) -> Result<WhoAmI, Error> {
        read(self.request(Method::GET, "/v1/whoami", &[])).await
    }

    pub(crate) async fn list<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        part: &Part,
        more: &[(&str, &str)],
    ) -> Result<Page<T>, Error> {
        let limit = part.limit.map(|limit| limit.to_string());
        let mut pairs = query([("cursor", part.cursor.as_deref()), ("limit", limit.as_deref())]);
        pairs.extend_from_slice(more);
        read(self.request(Method::GET, path, &pairs)).await
    }

    /// Who can be addressed.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn actors(&self, kind: Option<ActorKind>, part: &Part) -> Result<Page<Actor>, Error> {
        let kind = query([("kind", kind.map(ActorKind::name))]);
        self.list("/v1/actors", part, &kind).await
    }

    /// An Actor.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn actor(&self, key: &ActorKey) -> Result<Actor, Error> {
        read(self.request(Method::GET, &format!("/v1/actors/{key}"), &[])).await
    }

    /// What calls may execute on.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn targets(&self) -> Result<Page<Target>, Error> {
        self.list("/v1/targets", &Part::default(), &[]).await
    }

    /// The agents of the server.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn agents(&self) -> Result<Page<Agent>, Error> {
        self.list("/v1/agents", &Part::default(), &[]).await
    }

    /// One of them.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn agent(&self, name: &str) -> Result<Agent, Error> {
        read(self.request(Method::GET, &agent_path(name)?, &[])).await
    }

    /// Keeps a manifest, which is YAML, under this name. The same again changes nothing.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn apply_agent(&self, name: &str, manifest: Vec<u8>) -> Result<AgentApplied, Error> {
        let request = self.request(Method::PUT, &agent_path(name)?, &[]);
        read(request.header(CONTENT_TYPE, "application/yaml").body(manifest)).await
    }

    /// Keeps the manifest of an agent no longer.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete_agent(&self, name: &str) -> Result<(), Error> {
        send(self.request(Method::DELETE, &agent_path(name)?, &[])).await.map(drop)
    }

    /// Conversations, the one where something happened last first.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn conversations(&self, archived: bool, part: &Part) -> Result<Page<Conversation>, Error> {
        let archived = query([("archived", archived.then_some("true"))]);
        self.list("/v1/conversations", part, &archived).await
    }

    /// Opens a Conversation; the same key again is the same one.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn open(&self, key: &str, new: &NewConversation) -> Result<Conversation, Error> {
        read(keyed(self.write(Method::POST, "/v1/conversations", new)?, key)).await
    }

    /// What a Conversation says of itself.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn conversation(&self, id: ConversationId) -> Result<Conversation, Error> {
        read(self.request(Method::GET, &format!("/v1/conversations/{id}"), &[])).await
    }

    /// Changes title or archive, where nobody else was faster than this revision.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn change(
        &self,
        id: ConversationId,
        revision: Option<u64>,
        change: &ChangeConversation,
    ) -> Result<Conversation, Error> {
        let request = self.write(Method::PATCH, &format!("/v1/conversations/{id}"), change)?;
        read(matching(request, revision)).await
    }

    /// Adds and removes members, where nobody else was faster than this revision.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn change_members(
        &self,
        id: ConversationId,
        revision: Option<u64>,
        change: &MemberChange,
    ) -> Result<Conversation, Error> {
        let request = self.write(Method::POST, &format!("/v1/conversations/{id}/members"), change)?;
        read(matching(request, revision)).await
    }

    /// Deletes a Conversation and erases what was said in it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn delete(&self, id: ConversationId) -> Result<(), Error> {
        send(self.request(Method::DELETE, &format!("/v1/conversations/{id}"), &[])).await.map(drop)
    }

    /// A whole Conversation as one document, as the server writes it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn export(&self, id: ConversationId, form: Document) -> Result<String, Error> {
        let form = match form {
            Document::Json => "json",
            Document::Markdown => "markdown",
        };
        read_text(self.request(Method::GET, &format!("/v1/conversations/{id}/export"), &[("format", form)])).await
    }

    /// Messages in the order of their seq.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn messages(&self, id: ConversationId, window: Window, limit: u32) -> Result<Vec<Message>, Error> {
        let (name, seq) = match window {
            Window::Latest => ("", 0),
            Window::After(seq) => ("after", seq),
            Window::Before(seq) => ("before", seq),
        };
        let seq = seq.to_string();
        let window = if name.is_empty() { Vec::new() } else { vec![(name, seq.as_str())] };
        let page: Page<Message> =
            self.list(&format!("/v1/conversations/{id}/messages"), &Part::first(limit), &window).await?;
        Ok(page.items)
    }

    /// A Message with all its Blocks.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn message(&self, id: MessageId) -> Result<Message, Error> {
        read(self.request(Method::GET, &format!("/v1/messages/{id}"), &[])).await
    }

    /// Says a Message; the same key again is the same one.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn say(&self, id: ConversationId, key: &str, say: &Say) -> Result<Said, Error> {
        read(keyed(self.write(Method::POST, &format!("/v1/conversations/{id}/messages"), say)?, key)).await
    }

    /// Finds Messages that have all these words.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn search(
        &self,
        words: &str,
        within: Option<ConversationId>,
        limit: Option<u32>,
    ) -> Result<Vec<Message>, Error> {
        let (within, limit) = (within.map(|id| id.to_string()), limit.map(|limit| limit.to_string()));
        let pairs = query([("q", Some(words)), ("conversation", within.as_deref()), ("limit", limit.as_deref())]);
        let page: Page<Message> = read(self.request(Method::GET, "/v1/search", &pairs)).await?;
        Ok(page.items)
    }

    /// Attaches a file. The key makes it one, however often it is sent.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn attach(
        &self,
        id: ConversationId,
        key: &str,
        (name, media_type): (&str, &str),
        bytes: Vec<u8>,
    ) -> Result<Artifact, Error> {
        let request = self.request(Method::POST, &format!("/v1/conversations/{id}/artifacts"), &[("name", name)]);
        read(keyed(request.header(CONTENT_TYPE, media_type).body(bytes), key)).await
    }

    /// Open Questions: of one Conversation, or of all.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn questions(&self, of: Option<ConversationId>, part: &Part) -> Result<Page<Question>, Error> {
        match of {
            Some(id) => self.list(&format!("/v1/conversations/{id}/questions"), part, &[]).await,
            None => self.list("/v1/questions", part, &[]).await,
        }
    }

    /// A Question.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn question(&self, id: QuestionId) -> Result<Question, Error> {
        read(self.request(Method::GET, &format!("/v1/questions/{id}"), &[])).await
    }

    /// Ends a Question by hand. The same answer again changes nothing.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn answer(&self, id: QuestionId, answer: &Answer) -> Result<Question, Error> {
        read(self.write(Method::POST, &format!("/v1/questions/{id}/answer"), answer)?).await
    }

    /// The calls of a Conversation, newest first.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn calls(&self, id: ConversationId, part: &Part) -> Result<Page<HarnessCall>, Error> {
        self.list(&format!("/v1/conversations/{id}/calls"), part, &[]).await
    }

    /// A call.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn call(&self, id: HarnessCallId) -> Result<HarnessCall, Error> {
        read(self.request(Method::GET, &format!("/v1/calls/{id}"), &[])).await
    }

    /// Calls a Harness; the same key again is the same call.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn start(&self, id: ConversationId, key: &str, new: &NewCall) -> Result<Called, Error> {
        read(keyed(self.write(Method::POST, &format!("/v1/conversations/{id}/calls"), new)?, key)).await
    }

    /// Wishes that a call ends.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn cancel(&self, id: HarnessCallId, reason: &str) -> Result<HarnessCall, Error> {
        read(self.write(Method::POST, &format!("/v1/calls/{id}/cancel"), &json!({ "reason": reason }))?).await
    }

    /// Goes on with a call at its limit, under these limits.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn resume(&self, id: HarnessCallId, limits: &Budget) -> Result<HarnessCall, Error> {
        read(self.write(Method::POST, &format!("/v1/calls/{id}/resume"), limits)?).await
    }

    /// Sends text to a call that runs.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn steer(&self, id: HarnessCallId, key: &str, steer: &Steer) -> Result<Steered, Error> {
        read(keyed(self.write(Method::POST, &format!("/v1/calls/{id}/steer"), steer)?, key)).await
    }

    /// Tokens without their secrets, oldest first.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn tokens(&self, part: &Part) -> Result<Page<Token>, Error> {
        self.list("/v1/tokens", part, &[]).await
    }

    /// Makes a token: its secret is in this answer and nowhere else.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn make_token(&self, new: &NewToken) -> Result<TokenMade, Error> {
        read(self.write(Method::POST, "/v1/tokens", new)?).await
    }

    /// Revokes a token.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn revoke_token(&self, id: TokenId) -> Result<Token, Error> {
        read(self.request(Method::DELETE, &format!("/v1/tokens/{id}"), &[])).await
    }
}

/// What is no name would lead elsewhere.
fn agent_path(name: &str) -> Result<String, Error> {
    match ActorKey::new(ActorKind::Harness, name) {
        Ok(_) => Ok(format!("/v1/agents/{name}")),
        Err(wrong) => Err(Error::Address(format!("`{name}` is no name of an agent: {wrong}"))),
    }
}
