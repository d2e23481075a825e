//! The interview in a process of its own that is killed after every answer, against a server that listens.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use loopd_client::{Client, Follow, Start, Told};
use loopd_operator::markdown;
use loopd_platform::{Caller, Config, Engine, Platform};
use loopd_protocol::{
    Answer, Block, ConversationId, Event, NewConversation, NewToken, Question, QuestionStatus, Role, Say,
};
use loopd_runtime::{FixedPrograms, Runtime};
use loopd_server::{Server, ServerConfig};
use loopd_store::MemoryStore;
use serde_json::{Value, json};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Longer than anything here takes: what does not come by then does not come.
const NEVER: Duration = Duration::from_secs(60);

const OPERATOR: &str = "operator/interview";

struct Serving {
    platform: Platform,
    address: String,
}

impl Serving {
    async fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let platform = Platform::new(store.clone(), Config::default());
        let engine = Engine::new(platform.clone(), Vec::new()).unwrap();
        let (sender, deltas) = tokio::sync::mpsc::unbounded_channel();
        let runtime = Runtime::builder(store, Arc::new(FixedPrograms::new([])))
            .deltas(sender)
            .outlet(engine.outlet().await.unwrap())
            .start()
            .await
            .unwrap();
        engine.start(runtime, deltas).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = Server::new(engine, ServerConfig::new([1; 16]).unwrap());
        tokio::spawn(async move { server.serve(listener, std::future::pending()).await });
        Self { platform, address }
    }

    async fn token(&self, actor: &str, role: Role) -> String {
        let root = Caller::new("person/root".parse().unwrap(), Role::Admin);
        let new = NewToken { name: String::new(), actor: actor.parse().unwrap(), roles: vec![role], days: None };
        self.platform.make_token(&root, "", new).await.unwrap().secret
    }

    async fn client(&self, actor: &str, role: Role) -> Client {
        Client::new(&self.address, Some(&self.token(actor, role).await)).unwrap()
    }
}

/// The process. Dropped, it is killed.
struct Process(Child);

impl Process {
    fn start(serving: &Serving, token: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_interview"));
        command.env("LOOPD_SERVER", &serving.address).env("LOOPD_TOKEN", token);
        Self(command.spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

struct Room {
    client: Client,
    id: ConversationId,
    follow: Follow,
}

impl Room {
    /// ann has said hello.
    async fn new(serving: &Serving) -> Self {
        let client = serving.client("person/ann", Role::Member).await;
        let members = vec![OPERATOR.parse().unwrap()];
        let new = NewConversation { title: "Interview".to_owned(), members };
        let id = client.open("", &new).await.unwrap().id;
        let mut follow = Follow::new(client.clone(), vec![format!("conversation/{id}")], Start::Now);
        while !matches!(follow.next().await.unwrap(), Some(Told::Hello(_))) {}
        let hello = Say { to: vec![OPERATOR.parse().unwrap()], ..markdown("Hello") };
        client.say(id, "", &hello).await.unwrap();
        Self { client, id, follow }
    }

    /// What happens next that is meant.
    async fn next<T>(&mut self, meant: impl Fn(Event) -> Option<T>) -> T {
        let next = async {
            loop {
                if let Some(Told::Event(event)) = self.follow.next().await.unwrap()
                    && let Some(found) = meant(event.event)
                {
                    return found;
                }
            }
        };
        tokio::time::timeout(NEVER, next).await.expect("nothing comes")
    }

    async fn question(&mut self) -> Question {
        self.next(|event| match event {
            Event::Question { question } if question.status == QuestionStatus::Open => Some(*question),
            _ => None,
        })
        .await
    }

    async fn answer(&self, question: &Question, status: QuestionStatus, value: Option<Value>) {
        let answer = Answer { status, value, scope: loopd_protocol::Scope::Once };
        self.client.answer(question.id, &answer).await.unwrap();
    }

    async fn end(&mut self) -> String {
        self.next(|event| match event {
            Event::Message { message } if message.from.as_str() == OPERATOR && !message.to.is_empty() => {
                let text: String = message.blocks.iter().map(Block::words).collect();
                (message.blocks.iter().all(|block| block.kind() == "markdown")).then_some(text)
            }
            _ => None,
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_asks_each_question_once_although_it_is_killed_before_every_answer() {
    let serving = Serving::new().await;
    let token = serving.token(OPERATOR, Role::Operator).await;
    let mut room = Room::new(&serving).await;
    let mut prompts = Vec::new();
    for answer in [Some(json!("Ann")), Some(json!("Rust")), Some(json!({"years": 7})), None] {
        let process = Process::start(&serving, &token);
        let question = room.question().await;
        drop(process);
        room.answer(&question, QuestionStatus::Answered, answer).await;
        prompts.push(question.prompt);
    }
    let _process = Process::start(&serving, &token);
    assert_eq!(room.end().await, "Thank you. This is noted:\n\n- name: Ann\n- language: Rust\n- years: 7");
    assert_eq!(prompts[..3], ["What is your name?", "Which language do you write most?", "For how many years?"]);
    assert_eq!(prompts[3], "Is this right?\n\n- name: Ann\n- language: Rust\n- years: 7");
    // Hello, four questions with their answers, the summary.
    let messages = room.client.messages(room.id, loopd_client::Window::Latest, 100).await.unwrap();
    assert_eq!(messages.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_says_no_is_not_noted() {
    for number in 0..4 {
        let serving = Serving::new().await;
        let _process = Process::start(&serving, &serving.token(OPERATOR, Role::Operator).await);
        let mut room = Room::new(&serving).await;
        for value in [json!("Ann"), json!("Go"), json!({"years": 0})].into_iter().take(number) {
            let question = room.question().await;
            room.answer(&question, QuestionStatus::Answered, Some(value)).await;
        }
        let question = room.question().await;
        room.answer(&question, QuestionStatus::Declined, None).await;
        assert_eq!(room.end().await, "The interview is over: you said no. Nothing is noted.");
    }
}
