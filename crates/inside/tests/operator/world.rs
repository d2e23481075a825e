//! A platform with the agent `steps`, people who answer, and processes of the Operator `router`.

use crate::script::{Script, words};
use crate::steps::{Paid, steps};
use loopd_inside::kit::{self, Fated, Process, Running};
use loopd_kernel::Limits;
use loopd_operator::Desk;
use loopd_platform::engine::{Executes, TargetSpec};
use loopd_platform::{Caller, Paging};
use loopd_protocol::{ActorKey, AskKind, ConversationId, Message, MessageStatus, Question, Registration, Role};
use serde_json::json;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

pub const ROUTER: &str = "operator/router";

pub fn router() -> ActorKey {
    ROUTER.parse().unwrap()
}

pub fn registration() -> Registration {
    Registration { name: "Router".into(), description: "Does as it is told.".into(), lease_s: 60 }
}

pub fn person(name: &str) -> Caller {
    Caller::new(format!("person/{name}").parse().unwrap(), Role::Member)
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
    pub kit: kit::World,
    pub paid: Paid,
    pub room: ConversationId,
}

impl Deref for World {
    type Target = kit::World;

    fn deref(&self) -> &kit::World {
        &self.kit
    }
}

/// The platform that executes `steps`.
pub async fn platform(config: loopd_platform::Config, paid: &Paid) -> kit::World {
    let executes = Ok(Executes::Loop { program: steps(paid), limits: Limits::default(), demo: false });
    let target = TargetSpec { name: "steps".into(), description: "Does as it is told.".into(), slots: None, executes };
    kit::World::builder().config(config).target(target).start().await
}

impl World {
    pub async fn new() -> Self {
        Self::with(loopd_platform::Config::default()).await
    }

    pub async fn with(config: loopd_platform::Config) -> Self {
        let paid = Paid::default();
        let kit = platform(config, &paid).await;
        kit.announce(ROUTER).await;
        let room = kit.room_with(&["person/bob"]).await;
        Self { kit, paid, room }
    }

    pub fn desk(&self) -> Arc<dyn Desk> {
        self.kit.desk(ROUTER)
    }

    pub fn start(&self, holder: &str, script: Script, fated: Option<Fated>) -> Running<Script> {
        self.kit.start_as(ROUTER, script, Process { fated, ..Process::named(holder) })
    }

    pub async fn say(&self, room: ConversationId, text: &str) {
        self.kit.say(room, ROUTER, text).await;
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
            let open = self.platform().questions(&person("ann"), Some(room), ALL).await.unwrap();
            for question in open.items {
                self.platform().answer(&person("ann"), question.id, answer_to(&question)).await.unwrap();
            }
        }
        panic!("no answer: {}", self.told(room).await);
    }

    /// What the Operator answered to people.
    pub async fn answers(&self, room: ConversationId) -> Vec<String> {
        let is_answer = |message: &Message| {
            message.from == router() && message.reply_to.is_some() && message.status == MessageStatus::Completed
        };
        self.messages(room).await.iter().filter(|message| is_answer(message)).map(words).collect()
    }
}

const ALL: Paging = Paging { cursor: None, limit: 200 };
