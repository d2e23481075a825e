//! The platform, the people who talk there, and what can be seen of it.

use super::agent::Agent;
use super::fail::{fail, must};
use super::running::{Process, Running, registration};
use super::told;
use crate::Inside;
use loopd_kernel::TimeMs;
use loopd_operator::{Desk, Reconcile};
use loopd_platform::engine::{Executes, TargetSpec};
use loopd_platform::{Caller, Config, Engine, Paging, Platform, Window};
use loopd_protocol::{
    ActorKey, ActorKind, Answer, Block, ConversationId, HarnessCall, KnownBlock, Message, MessageStatus,
    NewConversation, Question, QuestionStatus, Role, Say, Scope,
};
use loopd_runtime::{Clock, Entropy, FixedPrograms, Runtime};
use loopd_store::MemoryStore;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Who speaks where nobody else is named.
const ANN: &str = "person/ann";

/// So often it is looked whether what is waited for has come.
const LOOK: Duration = Duration::from_millis(20);

/// Items of one list.
const ALL: usize = 200;

/// tokio's time, which tests pause.
#[derive(Debug)]
struct Ticking(Instant);

impl Clock for Ticking {
    fn now(&self) -> TimeMs {
        // Some time after 1970, so that leases of before have a past.
        TimeMs(1_000_000).after(self.steady_ms())
    }

    fn steady_ms(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Counts: the same test has the same identities.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Entropy for Counting {
    fn salt(&self) -> [u8; 32] {
        // Identities are made of the first bytes.
        let number = self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes();
        let mut salt = [0; 32];
        for (byte, of) in salt.iter_mut().skip(2).zip(number) {
            *byte = of;
        }
        salt
    }
}

/// What a [`World`] is made of.
#[derive(Debug)]
pub struct Builder {
    config: Config,
    agents: Vec<Agent>,
    targets: Vec<TargetSpec>,
    patience: Duration,
}

impl Builder {
    /// One more agent.
    #[must_use]
    pub fn agent(mut self, agent: Agent) -> Self {
        self.agents.push(agent);
        self
    }

    /// One more target: a Loop in Rust, an agent with tools, or something outside.
    #[must_use]
    pub fn target(mut self, target: TargetSpec) -> Self {
        self.targets.push(target);
        self
    }

    /// The platform's limits.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// How long something is waited for before the test fails: five minutes, unless this says otherwise.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Starts the platform.
    ///
    /// # Panics
    /// When two targets have one name, or a name is none.
    pub async fn start(self) -> World {
        let Self { config, agents, targets, patience } = self;
        let (store, clock) = (MemoryStore::new(), Arc::new(Ticking(Instant::now())));
        let entropy = Arc::new(Counting::default());
        let shared = Arc::new(store.clone());
        let platform = Platform::new(shared.clone(), config).world(clock.clone(), entropy.clone());
        let of_targets = targets.iter().filter_map(|target| match &target.executes {
            Ok(Executes::Loop { program, .. }) => Some(program.clone()),
            Ok(Executes::External(_)) | Err(_) => None,
        });
        let programs: Vec<_> = agents.iter().map(|agent| agent.program.clone()).chain(of_targets).collect();
        let specs = agents.iter().map(|agent| agent.spec.clone()).chain(targets).collect();
        let engine = must("the targets", Engine::new(platform, specs));
        let outlet = must("the engine", engine.outlet().await);
        let (sender, deltas) = tokio::sync::mpsc::unbounded_channel();
        let runtime = Runtime::builder(shared, Arc::new(FixedPrograms::new(programs)))
            .world(clock, entropy)
            .outlet(outlet)
            .deltas(sender)
            .start()
            .await;
        let runtime = must("the worker", runtime);
        must("the engine", engine.start(runtime.clone(), deltas).await);
        World { store, engine, runtime, agents, patience, said: AtomicU64::new(0), operators: Mutex::default() }
    }
}

/// A platform in memory, with people. See the [module](super).
#[derive(Debug)]
pub struct World {
    store: MemoryStore,
    engine: Engine,
    runtime: Runtime,
    agents: Vec<Agent>,
    patience: Duration,
    said: AtomicU64,
    /// The Operators that there are.
    operators: Mutex<BTreeSet<ActorKey>>,
}

impl World {
    /// A platform on which these agents can be called.
    ///
    /// # Panics
    /// As [`Builder::start`].
    pub async fn new(agents: impl IntoIterator<Item = Agent>) -> Self {
        agents.into_iter().fold(Self::builder(), Builder::agent).start().await
    }

    /// A platform with more than agents.
    #[must_use]
    pub fn builder() -> Builder {
        let patience = Duration::from_secs(300);
        Builder { config: Config::default(), agents: Vec::new(), targets: Vec::new(), patience }
    }

    /// The engine, for what the kit has no word for.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The platform.
    #[must_use]
    pub fn platform(&self) -> &Platform {
        self.engine.platform()
    }

    /// The store, which another process could share.
    #[must_use]
    pub const fn store(&self) -> &MemoryStore {
        &self.store
    }

    /// The worker that drives the Runs of calls.
    #[must_use]
    pub const fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The desk of an Operator here.
    ///
    /// # Panics
    /// When the key is no Actor's.
    #[must_use]
    pub fn desk(&self, operator: &str) -> Arc<dyn Desk> {
        Arc::new(Inside::new(self.engine.clone(), key(operator)))
    }

    /// Starts a process of an Operator, `operator/NAME`, under the name `one`.
    ///
    /// # Panics
    /// When the key is no Actor's.
    pub fn start<R: Reconcile>(&self, operator: &str, reconcile: R) -> Running<R> {
        self.start_as(operator, reconcile, Process::named("one"))
    }

    /// Starts a process of an Operator that runs like this.
    ///
    /// # Panics
    /// When the key is no Actor's.
    pub fn start_as<R: Reconcile>(&self, operator: &str, reconcile: R, process: Process) -> Running<R> {
        self.know(key(operator));
        Running::start(self.desk(operator), &key(operator), reconcile, process)
    }

    /// Announces an Operator, as one that ran before: it can be addressed, and may be started later.
    ///
    /// # Panics
    /// When the key is no Operator's.
    pub async fn announce(&self, operator: &str) {
        let operator = key(operator);
        let by = Caller::new(operator.clone(), Role::Operator);
        must("the operator", self.platform().register(&by, &operator, registration(&operator)).await);
        self.know(operator);
    }

    fn know(&self, operator: ActorKey) {
        self.operators.lock().unwrap_or_else(PoisonError::into_inner).insert(operator);
    }

    fn known(&self) -> BTreeSet<ActorKey> {
        self.operators.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A new Conversation of ann.
    pub async fn room(&self) -> ConversationId {
        self.room_with(&[]).await
    }

    /// A new Conversation of ann with others.
    ///
    /// # Panics
    /// When a key is no Actor's.
    pub async fn room_with(&self, members: &[&str]) -> ConversationId {
        let new = NewConversation { title: "Room".to_owned(), members: members.iter().map(|one| key(one)).collect() };
        must("the room", self.platform().open(&caller(ANN), "", new).await).0.id
    }

    /// ann says something to somebody: `operator/NAME`, `harness/NAME`; to everybody with `""`. An Operator that never ran
    /// is announced first, as one that ran before.
    pub async fn say(&self, room: ConversationId, to: &str, text: &str) -> Message {
        self.say_as(ANN, room, to, text).await
    }

    /// The same, by somebody else.
    ///
    /// # Panics
    /// When the platform refuses it, and when a key is no Actor's.
    pub async fn say_as(&self, who: &str, room: ConversationId, to: &str, text: &str) -> Message {
        let to: Vec<ActorKey> = if to.is_empty() { Vec::new() } else { vec![key(to)] };
        for operator in to.iter().filter(|to| to.kind() == ActorKind::Operator).map(ActorKey::owner) {
            if self.platform().actor(&operator).await.is_err() {
                self.announce(operator.as_str()).await;
            }
        }
        let blocks = vec![Block::Known(KnownBlock::Text { text: text.to_owned() })];
        let say = Say { actor: None, to, reply_to: None, blocks };
        let number = self.said.fetch_add(1, Ordering::SeqCst);
        must("the message", self.engine.say(&caller(who), room, &format!("said/{number}"), say).await).message
    }

    /// The next open Question of a Conversation, the oldest first; waits for one.
    pub async fn question(&self, room: ConversationId) -> Question {
        let begun = Instant::now();
        loop {
            if let Some(first) = self.questions(room).await.into_iter().next() {
                return first;
            }
            self.wait(begun, room, "no question").await;
        }
    }

    /// The open Questions of a Conversation, the oldest first.
    pub async fn questions(&self, room: ConversationId) -> Vec<Question> {
        let open = self.platform().questions(&admin(), Some(room), all()).await;
        let mut open = must("the questions", open).items;
        open.sort_by_key(|question| (question.asked_at, question.id.0));
        open
    }

    /// ann answers a Question with a value: of one with choices one of them, of a form an object.
    pub async fn answer(&self, question: &Question, value: impl Into<Value>) {
        self.end(question, QuestionStatus::Answered, Some(value.into())).await;
    }

    /// ann accepts a Confirm.
    pub async fn accept(&self, question: &Question) {
        self.end(question, QuestionStatus::Answered, None).await;
    }

    /// ann says no.
    pub async fn decline(&self, question: &Question) {
        self.end(question, QuestionStatus::Declined, None).await;
    }

    /// ann closes a Question without an answer.
    pub async fn dismiss(&self, question: &Question) {
        self.end(question, QuestionStatus::Dismissed, None).await;
    }

    async fn end(&self, question: &Question, status: QuestionStatus, value: Option<Value>) {
        let by = question.to.as_ref().map_or_else(|| caller(ANN), |to| Caller::new(to.clone(), Role::Member));
        let answer = Answer { status, value, scope: Scope::Once };
        must("the answer", self.platform().answer(&by, question.id, answer).await);
    }

    /// The words of what an Operator answers to a Message; waits for it.
    pub async fn answer_of(&self, said: &Message) -> String {
        let begun = Instant::now();
        loop {
            if let Some(answer) = self.answers_of(said).await.into_iter().next() {
                return answer;
            }
            self.wait(begun, said.conversation, "no answer").await;
        }
    }

    /// The words of all that Operators have answered to a Message so far, but for Questions.
    pub async fn answers_of(&self, said: &Message) -> Vec<String> {
        let is_answer = |message: &&Message| {
            let is_question = message.blocks.iter().any(|block| matches!(block.kind(), "ask" | "confirm"));
            let is_whole = message.status == MessageStatus::Completed && !is_question;
            message.reply_to == Some(said.id) && message.from.kind() == ActorKind::Operator && is_whole
        };
        self.messages(said.conversation).await.iter().filter(is_answer).map(told::words).collect()
    }

    /// All Messages of a Conversation, in order.
    pub async fn messages(&self, room: ConversationId) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        loop {
            let after = messages.last().map_or(0, |message| message.seq);
            let read = self.platform().messages(&admin(), room, Window::After(after), ALL).await;
            let read = must("the messages", read);
            if read.is_empty() {
                return messages;
            }
            messages.extend(read);
        }
    }

    /// The work conversations of a Conversation.
    pub async fn work(&self, room: ConversationId) -> Vec<ConversationId> {
        let works = must("the work", self.platform().work_conversations(&admin(), room).await);
        works.into_iter().map(|work| work.id).collect()
    }

    /// The calls that were made in a Conversation and in its work conversations, each in order.
    pub async fn calls(&self, room: ConversationId) -> Vec<HarnessCall> {
        let mut calls = Vec::new();
        for room in std::iter::once(room).chain(self.work(room).await) {
            let made = must("the calls", self.engine.harness_calls(&admin(), room, all()).await).items;
            calls.extend(made.into_iter().rev());
        }
        calls
    }

    /// The call number so many, from 0, of [`World::calls`], as soon as it is made; waits for it.
    pub async fn call(&self, room: ConversationId, number: usize) -> HarnessCall {
        let begun = Instant::now();
        loop {
            if let Some(call) = self.calls(room).await.into_iter().nth(number) {
                return call;
            }
            self.wait(begun, room, "no such call").await;
        }
    }

    /// What the model of an agent was asked, attempts that failed included: the last user message of each request.
    ///
    /// # Panics
    /// When there is no such [`Agent`].
    #[must_use]
    pub fn asked(&self, agent: &str) -> Vec<String> {
        match self.agents.iter().find(|one| one.spec.name == agent) {
            Some(agent) => agent.heard.all(),
            None => fail(format!("there is no agent {agent}")),
        }
    }

    /// Lets time pass. Paused, it does at once, and what is due in it happens.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// All that there is of a Conversation, as text: its Messages, those of its work conversations, calls, what is not
    /// handled, and how often each model was asked.
    pub async fn told(&self, room: ConversationId) -> String {
        let mut told = told::messages(&self.messages(room).await);
        for work in self.work(room).await {
            told.push_str("at work\n");
            told.push_str(&told::messages(&self.messages(work).await));
        }
        for call in self.calls(room).await {
            told.push_str(&format!("call of {} {}\n", call.target, call.phase.name()));
        }
        for agent in &self.agents {
            told.push_str(&format!("{} was asked {} times\n", agent.spec.name, agent.heard.all().len()));
        }
        for operator in self.known() {
            let left = must("what is unhandled", self.desk(operator.as_str()).unhandled(None).await).items.len();
            told.push_str(&format!("{operator} has {left} conversations to look at\n"));
        }
        told
    }

    /// Waits a little for what has not come, but not for ever.
    async fn wait(&self, begun: Instant, room: ConversationId, without: &str) {
        if begun.elapsed() > self.patience {
            fail(format!("{without} after {:?}:\n{}", self.patience, self.told(room).await));
        }
        // Who has waited for long need not look so often.
        tokio::time::sleep(LOOK.max(begun.elapsed() / 20)).await;
    }
}

fn key(key: &str) -> ActorKey {
    must(key, key.parse())
}

/// The one who asks, in the role that Actors of this kind have.
fn caller(who: &str) -> Caller {
    let who = key(who);
    let role = if who.kind() == ActorKind::Operator { Role::Operator } else { Role::Member };
    Caller::new(who, role)
}

/// Sees everything, and says nothing.
fn admin() -> Caller {
    Caller::new(key("person/root"), Role::Admin)
}

const fn all() -> Paging {
    Paging { cursor: None, limit: ALL }
}
