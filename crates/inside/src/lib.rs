//! The desk of an Operator that runs inside the process of the platform: its requests are calls of the [`Engine`], with
//! the same answers and refusals as over HTTP. With the feature `kit`, a whole platform for tests of Operators: `kit`.
#![forbid(unsafe_code)]

mod ear;
#[cfg(feature = "kit")]
pub mod kit;

use async_trait::async_trait;
use ear::Inner;
use loopd_operator::{Desk, Ear, Error};
use loopd_platform::{Caller, Engine, Error as Refused, FeedName, Paging, Window};
use loopd_protocol::{
    ActorKey, Conversation, ConversationId, End, HarnessCall, HarnessCallId, Keyed, Lease, Message, MessageId,
    NewLease, Open, Page, Place, Polled, Question, QuestionId, Registration, Role, Steer, Steered, Target, Turn,
    Turned, Update, Wake,
};
use loopd_store::StoreError;
use std::time::Duration;

/// Conversations of one part of a list.
const PART: usize = 200;

/// Requests in process, of one Operator.
#[derive(Debug, Clone)]
pub struct Inside {
    engine: Engine,
    by: Caller,
}

impl Inside {
    /// The desk of this Operator at this engine.
    #[must_use]
    pub fn new(engine: Engine, operator: ActorKey) -> Self {
        Self { engine, by: Caller::new(operator, Role::Operator) }
    }
}

/// What the platform says, as Operators know it.
fn said(error: Refused) -> Error {
    let (code, detail) = (error.code().to_owned(), error.to_string());
    match error {
        Refused::Busy { code: "draining", .. } => Error::Retryable { code, detail },
        Refused::Busy { retry_after_s, .. } => {
            Error::Capacity { code, detail, after: Some(Duration::from_secs(retry_after_s)) }
        }
        Refused::Conflict { .. } => Error::Conflict { code, detail },
        // What HTTP says of these is that it may be tried again, too.
        Refused::Store(StoreError::Full(_) | StoreError::Corrupt(_) | StoreError::TooNew { .. }) => {
            Error::Refused { code, detail }
        }
        Refused::Store(_) => Error::Retryable { code, detail },
        Refused::NotFound { .. } | Refused::Forbidden(_) | Refused::Invalid { .. } | Refused::TooLarge { .. } => {
            Error::Refused { code, detail }
        }
    }
}

fn many(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

#[async_trait]
impl Desk for Inside {
    async fn register(&self, actor: &ActorKey, registration: &Registration) -> Result<(), Error> {
        let done = self.engine.platform().register(&self.by, actor, registration.clone()).await;
        done.map(drop).map_err(said)
    }

    async fn targets(&self) -> Result<Vec<Target>, Error> {
        Ok(self.engine.targets())
    }

    async fn listen(&self, feed: &str) -> Result<Box<dyn Ear>, Error> {
        let platform = self.engine.platform();
        let name: FeedName = feed.parse().map_err(said)?;
        platform.may_follow(&self.by, &name).await.map_err(said)?;
        Ok(Box::new(Inner::new(platform.clone(), self.by.clone(), name)))
    }

    async fn unhandled(&self, cursor: Option<String>) -> Result<Page<Wake>, Error> {
        self.engine.platform().unhandled(&self.by, Paging { cursor, limit: PART }).await.map_err(said)
    }

    async fn conversation(&self, id: ConversationId) -> Result<Conversation, Error> {
        self.engine.platform().conversation(&self.by, id).await.map_err(said)
    }

    async fn work(&self, id: ConversationId) -> Result<Vec<Conversation>, Error> {
        self.engine.platform().work_conversations(&self.by, id).await.map_err(said)
    }

    async fn messages(&self, id: ConversationId, before: u64, limit: u32) -> Result<Vec<Message>, Error> {
        let window = Window::Before(before);
        self.engine.platform().messages(&self.by, id, window, many(limit)).await.map_err(said)
    }

    async fn lease(&self, id: ConversationId, wish: &NewLease) -> Result<Lease, Error> {
        self.engine.platform().lease(&self.by, id, wish.clone()).await.map_err(said)
    }

    async fn poll(&self, id: ConversationId, limit: u32) -> Result<Polled, Error> {
        self.engine.platform().poll(&self.by, id, many(limit), false).await.map_err(said)
    }

    async fn keyed(
        &self,
        id: ConversationId,
        place: Place,
        actor: Option<&ActorKey>,
        keys: &[String],
    ) -> Result<Vec<Keyed>, Error> {
        self.engine.keyed(&self.by, id, (place, actor.cloned(), keys)).await.map_err(said)
    }

    async fn turn(&self, id: ConversationId, turn: &Turn) -> Result<Turned, Error> {
        self.engine.turn(&self.by, id, turn.clone()).await.map_err(said)
    }

    async fn begin(&self, id: ConversationId, key: &str, open: &Open) -> Result<Message, Error> {
        let done = self.engine.platform().begin(&self.by, id, key, open.clone()).await;
        done.map(|done| done.message).map_err(said)
    }

    async fn update(&self, id: MessageId, update: &Update) -> Result<Message, Error> {
        self.engine.platform().update(&self.by, id, update.clone()).await.map_err(said)
    }

    async fn end(&self, id: MessageId, end: &End) -> Result<Message, Error> {
        self.engine.platform().end(&self.by, id, end.clone()).await.map_err(said)
    }

    async fn call(&self, id: HarnessCallId) -> Result<HarnessCall, Error> {
        self.engine.harness_call(&self.by, id).await.map_err(said)
    }

    async fn cancel(&self, id: HarnessCallId, reason: &str) -> Result<HarnessCall, Error> {
        self.engine.cancel(&self.by, id, reason).await.map_err(said)
    }

    async fn steer(&self, id: HarnessCallId, key: &str, steer: &Steer) -> Result<Steered, Error> {
        self.engine.steer(&self.by, id, key, steer.clone()).await.map_err(said)
    }

    async fn question(&self, id: QuestionId) -> Result<Question, Error> {
        self.engine.platform().question(&self.by, id).await.map_err(said)
    }

    async fn withdraw(&self, id: QuestionId) -> Result<Question, Error> {
        self.engine.platform().withdraw(&self.by, id).await.map_err(said)
    }
}

/// What the guide shows is compiled; here, because it shows the kit, too.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/operators.md")]
struct Guide;
