//! A platform, people who answer, and processes of the Operator `router`.

use crate::fate::{Fate, Fated};
use crate::script::{Script, words};
use crate::stage::agents::{Paid, Process};
use crate::stage::{ALL, Stage, person, say};
use loopd_inside::Inside;
use loopd_operator::{Config, Counted, Desk, Operator};
use loopd_protocol::{ActorKey, AskKind, ConversationId, Message, MessageStatus, Question, Registration, Say};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub fn router() -> ActorKey {
    "operator/router".parse().unwrap()
}

pub fn registration() -> Registration {
    Registration { name: "Router".into(), description: "Does as it is told.".into(), lease_s: 60 }
}

/// The answer of a person to a Question.
pub fn answer_to(question: &Question) -> loopd_protocol::Answer {
    let value = match question.kind {
        AskKind::Confirm | AskKind::Resolve => serde_json::Value::Null,
        AskKind::Ask => question.choices.first().map_or(json!("because"), |choice| json!(choice.value)),
    };
    let value = Some(value).filter(|value| !value.is_null());
    serde_json::from_value(json!({"status": "answered", "value": value})).unwrap()
}

pub struct World {
    pub stage: Stage,
    pub process: Process,
    pub paid: Paid,
    pub room: ConversationId,
}

/// A process of the Operator. Dropped, it is dead.
pub struct Running {
    operator: Arc<Operator<Script>>,
    pub stop: CancellationToken,
    pub task: JoinHandle<Result<(), loopd_operator::Error>>,
    pub desk: Arc<Fated>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Running {
    pub fn counted(&self) -> Counted {
        self.operator.counted()
    }
}

impl World {
    pub async fn new() -> Self {
        Self::with(loopd_platform::Config::default()).await
    }

    pub async fn with(config: loopd_platform::Config) -> Self {
        let (stage, paid) = (Stage::with(config), Paid::default());
        let process = stage.process(&paid).await;
        let room = stage.room().await;
        Self { stage, process, paid, room }
    }

    pub fn desk(&self) -> Arc<dyn Desk> {
        Arc::new(Inside::new(self.process.engine.clone(), router()))
    }

    pub fn start(&self, holder: &str, script: Script, fate: Option<(&'static str, usize, Fate)>) -> Running {
        let desk = Fated::new(self.desk(), fate);
        let operator = Operator::new(desk.clone(), router(), registration(), script, Config::new(holder));
        let (operator, stop) = (Arc::new(operator), CancellationToken::new());
        let (running, stopped) = (operator.clone(), stop.clone());
        let task = tokio::spawn(async move { running.run(stopped).await });
        Running { operator, stop, task, desk }
    }

    pub async fn say(&self, room: ConversationId, text: &str) {
        let say = Say { to: vec![router()], ..say(text) };
        self.stage.platform.say(&person("ann"), room, "", say).await.unwrap();
    }

    /// Lets time pass, in which ann answers what she is asked, until there are so many answers in the room.
    pub async fn until(&self, room: ConversationId, answers: usize) {
        for _ in 0..4000 {
            if self.answers(room).await.len() >= answers {
                // What comes after that comes by then.
                tokio::time::sleep(Duration::from_secs(70)).await;
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            let open = self.stage.platform.questions(&person("ann"), Some(room), ALL).await.unwrap();
            for question in open.items {
                self.stage.platform.answer(&person("ann"), question.id, answer_to(&question)).await.unwrap();
            }
        }
        panic!("no answer: {}", self.stage.told(room).await);
    }

    /// What the Operator answered to people.
    pub async fn answers(&self, room: ConversationId) -> Vec<String> {
        let is_answer = |message: &Message| {
            message.from == router() && message.reply_to.is_some() && message.status == MessageStatus::Completed
        };
        self.stage.messages(room).await.iter().filter(|message| is_answer(message)).map(words).collect()
    }

    /// Everything that is there of a room, and what it cost.
    pub async fn there(&self, room: ConversationId) -> String {
        let mut told = self.stage.told(room).await;
        for work in self.stage.platform.work_conversations(&person("ann"), room).await.unwrap() {
            let calls = self.process.engine.harness_calls(&person("ann"), work.id, ALL).await.unwrap().items.len();
            told.push_str(&format!("at work, {calls} calls\n{}", self.stage.told(work.id).await));
        }
        let unhandled = self.desk().unhandled(None).await.unwrap().items.len();
        format!("{told}paid {}, unhandled {unhandled}\n", self.paid.load(Ordering::SeqCst))
    }
}
