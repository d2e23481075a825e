//! A desk at which something happens to one request.

use async_trait::async_trait;
use loopd_operator::{Desk, Ear, Error, Place};
use loopd_protocol::{
    ActorKey, Conversation, ConversationId, End, HarnessCall, HarnessCallId, Keyed, Lease, Message, MessageId,
    NewLease, Open, Page, Polled, Question, QuestionId, Registration, Steer, Steered, Target, Turn, Turned, Update,
    Wake,
};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// What happens to a request of an Operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The process dies before it sends the request.
    DieBefore,
    /// The request is done, and the process dies before it has the answer.
    DieAfter,
    /// The request is lost; the process gets a retryable error.
    LoseBefore,
    /// The request is done, and its answer is lost; the process gets a retryable error.
    LoseAfter,
    /// The request waits until [`super::Running::release`].
    Hold,
}

impl Fate {
    /// It happens to the `number`th request of this kind, from 0. A kind is a method of [`Desk`], for example `turn`.
    #[must_use]
    pub const fn at(self, request: &'static str, number: usize) -> Fated {
        Fated { request: Some(request), number, fate: self }
    }

    /// It happens to the `number`th request, from 0. Announcing the Operator goes on with time, and does not count.
    #[must_use]
    pub const fn at_any(self, number: usize) -> Fated {
        Fated { request: None, number, fate: self }
    }

    /// Whether the process dies of it.
    #[must_use]
    pub const fn is_death(self) -> bool {
        matches!(self, Self::DieBefore | Self::DieAfter)
    }
}

/// A [`Fate`] and the request that meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fated {
    request: Option<&'static str>,
    number: usize,
    fate: Fate,
}

impl Fated {
    /// What happens.
    #[must_use]
    pub const fn fate(self) -> Fate {
        self.fate
    }
}

/// A desk with a fate.
#[derive(Debug)]
pub(super) struct FatedDesk {
    inner: Arc<dyn Desk>,
    fated: Option<Fated>,
    seen: Mutex<Vec<&'static str>>,
    /// It has happened.
    pub(super) happened: Notify,
    pub(super) release: Notify,
}

impl FatedDesk {
    pub(super) fn new(inner: Arc<dyn Desk>, fated: Option<Fated>) -> Arc<Self> {
        let (happened, release) = (Notify::new(), Notify::new());
        Arc::new(Self { inner, fated, seen: Mutex::default(), happened, release })
    }

    /// The requests so far.
    pub(super) fn seen(&self) -> Vec<&'static str> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What happens to the request that comes now.
    fn comes(&self, name: &'static str) -> Option<Fate> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = name != "register";
        if counts {
            seen.push(name);
        }
        let Fated { request, number, fate } = self.fated?;
        let is_meant = request.map_or(counts, |request| request == name);
        let before = seen.iter().filter(|seen| request.is_none_or(|request| request == **seen)).count();
        (is_meant && before == number + 1).then_some(fate)
    }

    async fn pass<T>(&self, name: &'static str, sending: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let lost = || Error::Retryable { code: "lost".to_owned(), detail: "the line is dead".to_owned() };
        match self.comes(name) {
            None => sending.await,
            Some(Fate::DieBefore) => {
                self.happened.notify_one();
                std::future::pending().await
            }
            Some(Fate::DieAfter) => {
                drop(sending.await);
                self.happened.notify_one();
                std::future::pending().await
            }
            Some(Fate::LoseBefore) => {
                self.happened.notify_one();
                Err(lost())
            }
            Some(Fate::LoseAfter) => {
                let done = sending.await;
                self.happened.notify_one();
                done.and_then(|_| Err(lost()))
            }
            Some(Fate::Hold) => {
                self.happened.notify_one();
                self.release.notified().await;
                sending.await
            }
        }
    }
}

macro_rules! pass {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        #[async_trait]
        impl Desk for FatedDesk {
            $(async fn $name(&self, $($arg: $type),*) -> Result<$out, Error> {
                self.pass(stringify!($name), self.inner.$name($($arg),*)).await
            })*
        }
    };
}

pass! {
    register(actor: &ActorKey, registration: &Registration) -> ();
    targets() -> Vec<Target>;
    listen(feed: &str) -> Box<dyn Ear>;
    unhandled(cursor: Option<String>) -> Page<Wake>;
    conversation(id: ConversationId) -> Conversation;
    work(id: ConversationId) -> Vec<Conversation>;
    messages(id: ConversationId, before: u64, limit: u32) -> Vec<Message>;
    lease(id: ConversationId, wish: &NewLease) -> Lease;
    poll(id: ConversationId, limit: u32) -> Polled;
    keyed(id: ConversationId, place: Place, actor: Option<&ActorKey>, keys: &[String]) -> Vec<Keyed>;
    turn(id: ConversationId, turn: &Turn) -> Turned;
    begin(id: ConversationId, key: &str, open: &Open) -> Message;
    update(id: MessageId, update: &Update) -> Message;
    end(id: MessageId, end: &End) -> Message;
    call(id: HarnessCallId) -> HarnessCall;
    cancel(id: HarnessCallId, reason: &str) -> HarnessCall;
    steer(id: HarnessCallId, key: &str, steer: &Steer) -> Steered;
    question(id: QuestionId) -> Question;
    withdraw(id: QuestionId) -> Question;
}
