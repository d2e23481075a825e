//! A platform over one in-memory store, with people, an Operator and a virtual clock.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod agents;
pub mod between;

use loopd_kernel::TimeMs;
use loopd_platform::{Caller, Config, Error, FeedName, Paging, Platform, Window};
use loopd_protocol::{
    Block, Conversation, ConversationId, Event, FeedEvent, KnownBlock, Message, NewConversation, Registration, Role,
    Say,
};
use loopd_runtime::{Clock, Entropy};
use loopd_store::{MemoryStore, Store};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Virtual time: that of tokio, which tests pause.
pub struct VirtualClock(tokio::time::Instant);

impl Clock for VirtualClock {
    fn now(&self) -> TimeMs {
        TimeMs(1_000_000).after(self.steady_ms())
    }

    fn steady_ms(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap()
    }
}

/// Counts, in the stream of one process.
pub struct Counted(AtomicU64, u64);

impl Entropy for Counted {
    fn salt(&self) -> [u8; 32] {
        let mut salt = [0; 32];
        salt[..8].copy_from_slice(&self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes());
        salt[8..16].copy_from_slice(&self.1.to_le_bytes());
        // The first bytes must differ, identities are made of them.
        salt[..10].rotate_left(4);
        salt
    }
}

pub struct Stage {
    pub store: MemoryStore,
    pub clock: Arc<VirtualClock>,
    pub platform: Platform,
    processes: AtomicU64,
}

pub fn person(name: &str) -> Caller {
    Caller::new(format!("person/{name}").parse().unwrap(), Role::Member)
}

pub fn operator(name: &str) -> Caller {
    Caller::new(format!("operator/{name}").parse().unwrap(), Role::Operator)
}

pub fn admin() -> Caller {
    Caller::new("person/root".parse().unwrap(), Role::Admin)
}

pub fn text(text: &str) -> Block {
    Block::Known(KnownBlock::Text { text: text.into() })
}

pub fn say(words: &str) -> Say {
    Say { actor: None, to: Vec::new(), reply_to: None, blocks: vec![text(words)] }
}

impl Stage {
    pub fn new() -> Self {
        Self::with(Config::default())
    }

    pub fn with(config: Config) -> Self {
        let (store, clock) = (MemoryStore::new(), Arc::new(VirtualClock(tokio::time::Instant::now())));
        let platform = Platform::new(Arc::new(store.clone()), config)
            .world(clock.clone(), Arc::new(Counted(AtomicU64::new(0), 0)));
        Self { store, clock, platform, processes: AtomicU64::new(0) }
    }

    /// The platform through another handle on the store, as another process has it.
    pub fn through(&self, store: Arc<dyn Store>) -> Platform {
        let config = self.platform.config().clone();
        Platform::new(store, config).world(self.clock.clone(), self.entropy())
    }

    pub fn entropy(&self) -> Arc<Counted> {
        Arc::new(Counted(AtomicU64::new(0), self.processes.fetch_add(1, Ordering::SeqCst) + 1))
    }

    /// A Conversation of ann, bob and the Operator `router`.
    pub async fn room(&self) -> ConversationId {
        let router = operator("router");
        let registration = Registration { name: "Router".into(), description: String::new(), lease_s: 60 };
        self.platform.register(&router, &router.actor, registration).await.unwrap();
        self.open("ann", &["person/bob"]).await.id
    }

    pub async fn open(&self, by: &str, members: &[&str]) -> Conversation {
        let members = members.iter().map(|member| member.parse().unwrap()).collect();
        let new = NewConversation { title: "Room".into(), members };
        self.platform.open(&person(by), "", new).await.unwrap().0
    }

    pub async fn messages(&self, room: ConversationId) -> Vec<Message> {
        self.platform.messages(&admin(), room, Window::After(0), 200).await.unwrap()
    }

    /// What a Conversation holds, as text.
    pub async fn told(&self, room: ConversationId) -> String {
        let mut told = String::new();
        for message in self.messages(room).await {
            let to: Vec<_> = message.to.iter().map(ToString::to_string).collect();
            let to = if to.is_empty() { String::new() } else { format!(" > {}", to.join(" ")) };
            let status = format!("{:?}", message.status).to_lowercase();
            writeln!(told, "{} {}{to} [{status}]", message.seq, message.from).unwrap();
            for block in &message.blocks {
                writeln!(told, "    {}", shown(block)).unwrap();
            }
            if let Some(error) = &message.error {
                writeln!(told, "    ! {} {}", error.code, error.message).unwrap();
            }
        }
        told
    }

    pub async fn events(&self, feed: &FeedName) -> Vec<FeedEvent> {
        self.platform.events(feed, 0, 10_000).await.unwrap().0
    }

    /// The Feed of a Conversation as text: positions are dense, and the same fold as the rows.
    pub async fn feed(&self, room: ConversationId) -> String {
        let mut told = String::new();
        for (event, number) in self.events(&FeedName::Conversation(room)).await.iter().zip(1..) {
            assert_eq!(event.position, number);
            writeln!(told, "{}", happened(&event.event)).unwrap();
        }
        told
    }
}

pub fn shown(block: &Block) -> String {
    match block {
        Block::Known(KnownBlock::Tool { name, status, args, output, .. }) => {
            format!("tool {name} {args} {status:?} {output}")
        }
        Block::Known(KnownBlock::Result { json: Some(json), .. }) => format!("result {json}"),
        Block::Known(KnownBlock::Reply { snapshot }) => {
            format!(
                "reply {:?} {}",
                snapshot.status,
                snapshot.value.as_ref().map(ToString::to_string).unwrap_or_default()
            )
        }
        block => format!("{} {}", block.kind(), block.words()),
    }
}

pub fn happened(event: &Event) -> String {
    match event {
        Event::Conversation { conversation } => {
            format!("conversation r{} {}", conversation.revision, conversation.title)
        }
        Event::ConversationDeleted { .. } => "deleted".into(),
        Event::Message { message } => format!("message {} {} {:?}", message.seq, message.from, message.status),
        Event::MessageUpdated { revision, ops, .. } => format!("updated r{revision} {}", ops.len()),
        Event::MessageEnded { message } => format!("ended {} r{} {:?}", message.seq, message.revision, message.status),
        Event::Question { question } => format!("question {:?} {}", question.status, question.prompt),
        Event::Call { call } => {
            let reason = call.reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
            format!("call {}{reason}", call.phase.name())
        }
        Event::Steered { steer, .. } => format!("steered {steer}"),
        Event::Read { actor, seq } => format!("read {actor} {seq}"),
        Event::Wake(wake) => format!("wake {}", wake.reason),
    }
}

/// The code of a refusal.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    let error = result.unwrap_err();
    match &error {
        Error::Invalid { field, .. } => format!("invalid {field}"),
        error => error.code().to_owned(),
    }
}

pub const ALL: Paging = Paging { cursor: None, limit: 200 };
