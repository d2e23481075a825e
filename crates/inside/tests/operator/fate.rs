//! A desk at which something happens to one request.

use async_trait::async_trait;
use loopd_operator::{Desk, Ear, Error, Place};
use loopd_protocol::{
    ActorKey, Conversation, ConversationId, End, HarnessCall, HarnessCallId, Keyed, Lease, Message, MessageId,
    NewLease, Open, Page, Polled, Question, QuestionId, Registration, Steer, Steered, Target, Turn, Turned, Update,
    Wake,
};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The process dies before it sends the request.
    DieBefore,
    /// The process dies before it has the answer.
    DieAfter,
    /// The request is lost.
    LoseBefore,
    /// The answer is lost.
    LoseAfter,
    /// The request waits until [`Fated::release`].
    Hold,
}

/// A desk with a fate.
#[derive(Debug)]
pub struct Fated {
    inner: Arc<dyn Desk>,
    /// Which request of this kind, from 0; of all without a name.
    fate: Option<(&'static str, usize, Fate)>,
    seen: Mutex<Vec<&'static str>>,
    /// It has happened.
    pub happened: Notify,
    pub release: Notify,
}

impl Fated {
    pub fn new(inner: Arc<dyn Desk>, fate: Option<(&'static str, usize, Fate)>) -> Arc<Self> {
        let (happened, release) = (Notify::new(), Notify::new());
        Arc::new(Self { inner, fate, seen: Mutex::default(), happened, release })
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<&'static str> {
        self.seen.lock().unwrap().clone()
    }

    async fn pass<T>(&self, name: &'static str, sending: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let number = {
            let mut seen = self.seen.lock().unwrap();
            // Announcing goes on with time, and is no part of the order of things.
            if name != "register" {
                seen.push(name);
            }
            let all = |kind: &str| kind.is_empty() && name != "register" || kind == name;
            let (kind, at, fate) = self.fate.unwrap_or(("nothing", 0, Fate::Hold));
            let meant = seen.iter().filter(|one| kind.is_empty() || **one == kind).count();
            (all(kind) && meant == at + 1).then_some(fate)
        };
        let lost = || Error::Retryable { code: "lost".into(), detail: "the line is dead".into() };
        let Some(fate) = number else { return sending.await };
        match fate {
            Fate::DieBefore => {
                self.happened.notify_one();
                std::future::pending().await
            }
            Fate::DieAfter => {
                let _ = sending.await;
                self.happened.notify_one();
                std::future::pending().await
            }
            Fate::LoseBefore => Err(lost()),
            Fate::LoseAfter => sending.await.and_then(|_| Err(lost())),
            Fate::Hold => {
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
        impl Desk for Fated {
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
    keyed(id: ConversationId, place: Place, actor: Option<&ActorKey>, key: &str) -> Keyed;
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
