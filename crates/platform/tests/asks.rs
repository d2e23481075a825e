//! Questions to people.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod stage;

use expect_test::expect;
use loopd_platform::{FeedName, Platform};
use loopd_protocol::{
    Answer, AskKind, Authorises, Choice, ConversationId, NewQuestion, Question, QuestionId, QuestionStatus, Scope,
};
use loopd_store::memory::Fault;
use serde_json::{Value, json};
use stage::{ALL, Stage, operator, person, refused};
use std::sync::Arc;
use std::time::Duration;

fn new(kind: AskKind) -> NewQuestion {
    NewQuestion {
        actor: None,
        kind,
        to: None,
        title: String::new(),
        prompt: "Well?".into(),
        choices: Vec::new(),
        free_text: false,
        schema: None,
        authorises: None,
        timeout_s: 60,
        reply_to: None,
    }
}

fn answered(value: impl Into<Option<Value>>) -> Answer {
    Answer { status: QuestionStatus::Answered, value: value.into(), scope: Scope::Once }
}

fn ended(status: QuestionStatus) -> Answer {
    Answer { status, value: None, scope: Scope::Once }
}

/// A room in which the Operator may ask.
async fn stage() -> (Stage, ConversationId) {
    let stage = Stage::new();
    let room = stage.room().await;
    let router = operator("router");
    let said = loopd_protocol::Say { to: vec![router.actor.clone()], ..stage::say("Go.") };
    stage.platform.say(&person("ann"), room, "", said).await.unwrap();
    (stage, room)
}

async fn ask(stage: &Stage, room: ConversationId, question: NewQuestion) -> Question {
    stage.platform.ask(&operator("router"), room, "", question).await.unwrap().0
}

async fn answer(platform: &Platform, id: QuestionId, by: &str, answer: Answer) -> String {
    match platform.answer(&person(by), id, answer).await {
        Ok(question) => format!("{:?}", question.status),
        Err(error) => refused::<()>(Err(error)),
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_asked_once_answered_once_and_told() {
    let (stage, room) = stage().await;
    let router = operator("router");
    let question =
        NewQuestion { authorises: Some(Authorises { tool: "pay".into(), args: "{}".into() }), ..new(AskKind::Confirm) };
    let (first, already) = stage.platform.ask(&router, room, "q", question.clone()).await.unwrap();
    tokio::time::advance(Duration::from_secs(10)).await;
    let (again, known) = stage.platform.ask(&router, room, "q", question.clone()).await.unwrap();
    assert_eq!((already, known, again.id, again.deadline), (false, true, first.id, first.deadline));
    let other = NewQuestion { prompt: "Other?".into(), ..question };
    assert_eq!(refused(stage.platform.ask(&router, room, "q", other).await), "key_taken");
    let open = stage.platform.questions(&person("bob"), None, ALL).await.unwrap().items;
    assert_eq!(open.iter().map(|question| question.id).collect::<Vec<_>>(), [first.id]);
    assert_eq!(stage.platform.questions(&person("eve"), None, ALL).await.unwrap().items, []);
    assert_eq!(answer(&stage.platform, first.id, "bob", answered(None)).await, "Answered");
    // The same by the same person is no change; by somebody else, or otherwise, it is too late.
    assert_eq!(answer(&stage.platform, first.id, "bob", answered(None)).await, "Answered");
    assert_eq!(answer(&stage.platform, first.id, "ann", answered(None)).await, "question_closed");
    assert_eq!(answer(&stage.platform, first.id, "bob", ended(QuestionStatus::Declined)).await, "question_closed");
    assert_eq!(refused(stage.platform.withdraw(&router, first.id).await), "question_closed");
    assert_eq!(stage.platform.questions(&person("bob"), None, ALL).await.unwrap().items, []);
    expect![[r#"
        1 person/ann > operator/router [completed]
            text Go.
        2 operator/router [completed]
            confirm Well?
        3 person/bob > operator/router [completed]
            reply Answered 
    "#]]
    .assert_eq(&stage.told(room).await);
    let woken = stage.events(&FeedName::Actor(router.actor)).await;
    assert_eq!(
        woken.iter().map(|event| stage::happened(&event.event)).collect::<Vec<_>>(),
        ["wake message", "wake question"]
    );
}

#[tokio::test(start_paused = true)]
async fn two_answers_at_once_are_one() {
    for fault in [None, Some(Fault::AmbiguousCommitted), Some(Fault::AmbiguousLost)] {
        let (stage, room) = stage().await;
        let question = ask(&stage, room, new(AskKind::Confirm)).await;
        let unsure = stage.through(Arc::new(stage.store.scripted([fault])));
        let (yes, no) = tokio::join!(
            answer(&unsure, question.id, "ann", answered(None)),
            answer(&stage.platform, question.id, "bob", ended(QuestionStatus::Declined)),
        );
        let mut both = [yes.as_str(), no.as_str()];
        both.sort_unstable();
        assert_eq!(both[1], "question_closed", "{both:?}");
        // One end, one reply.
        assert_eq!(stage.messages(room).await.len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_it_by_the_servers_time() {
    let (stage, room) = stage().await;
    let late = ask(&stage, room, new(AskKind::Ask)).await;
    let swept = ask(&stage, room, new(AskKind::Ask)).await;
    tokio::time::advance(Duration::from_millis(59_999)).await;
    let just = ask(&stage, room, NewQuestion { timeout_s: 1, ..new(AskKind::Ask) }).await;
    assert_eq!(answer(&stage.platform, just.id, "ann", answered(json!("in time"))).await, "Answered");
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(answer(&stage.platform, late.id, "ann", answered(json!("late"))).await, "question_closed");
    assert_eq!(stage.platform.expire_questions().await.unwrap(), 1);
    assert_eq!(stage.platform.expire_questions().await.unwrap(), 0);
    for id in [late.id, swept.id] {
        let question = stage.platform.question(&person("ann"), id).await.unwrap();
        assert_eq!((question.status, question.answer), (QuestionStatus::TimedOut, None));
    }
    // Nobody said anything, so nothing is said in anybody's name.
    assert!(!stage.told(room).await.contains("reply TimedOut"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_has_to_fit() {
    let (stage, room) = stage().await;
    let choice = |value: &str| Choice { value: value.into(), label: String::new(), description: String::new() };
    let choices = NewQuestion { choices: vec![choice("a"), choice("b")], ..new(AskKind::Ask) };
    let open_choices = NewQuestion { free_text: true, ..choices.clone() };
    let form = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let form = NewQuestion { schema: Some(form), ..new(AskKind::Ask) };
    for (question, value, expected) in [
        (new(AskKind::Ask), json!("anything"), "Answered"),
        (new(AskKind::Ask), json!(7), "invalid value"),
        (choices.clone(), json!("b"), "Answered"),
        (choices, json!("c"), "invalid value"),
        (open_choices, json!("c"), "Answered"),
        (form.clone(), json!({ "n": 1 }), "Answered"),
        (form, json!({ "n": "1" }), "invalid value"),
        (new(AskKind::Confirm), json!(true), "Answered"),
        // No is not an answer of a Confirm: it is declined.
        (new(AskKind::Confirm), json!(false), "invalid value"),
        (new(AskKind::Confirm), json!("yes"), "invalid value"),
    ] {
        let asked = ask(&stage, room, question).await;
        assert_eq!(answer(&stage.platform, asked.id, "ann", answered(value.clone())).await, expected, "{value}");
    }
    let asked = ask(&stage, room, new(AskKind::Ask)).await;
    assert_eq!(answer(&stage.platform, asked.id, "ann", answered(None)).await, "invalid value");
    assert_eq!(answer(&stage.platform, asked.id, "ann", ended(QuestionStatus::TimedOut)).await, "invalid status");
    assert_eq!(answer(&stage.platform, asked.id, "eve", answered(json!("x"))).await, "not_found");
    // An Operator never consents, whatever it may do otherwise.
    let robot = loopd_platform::Caller::new("operator/router".parse().unwrap(), loopd_protocol::Role::Admin);
    assert_eq!(refused(stage.platform.answer(&robot, asked.id, answered(json!("x"))).await), "forbidden");
    let hers =
        ask(&stage, room, NewQuestion { to: Some("person/ann".parse().unwrap()), ..new(AskKind::Confirm) }).await;
    assert_eq!(answer(&stage.platform, hers.id, "bob", answered(None)).await, "forbidden");
    assert_eq!(answer(&stage.platform, hers.id, "ann", ended(QuestionStatus::Dismissed)).await, "Dismissed");
    let back = ask(&stage, room, new(AskKind::Confirm)).await;
    assert_eq!(refused(stage.platform.withdraw(&operator("other"), back.id).await), "not_found");
    stage.platform.withdraw(&operator("router"), back.id).await.unwrap();
    stage.platform.withdraw(&operator("router"), back.id).await.unwrap();
    assert_eq!(answer(&stage.platform, back.id, "ann", answered(None)).await, "question_closed");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_asked_is_refused() {
    let (stage, room) = stage().await;
    let choice = || Choice { value: "a".into(), label: String::new(), description: String::new() };
    for (question, wrong) in [
        (new(AskKind::Resolve), "invalid kind"),
        (NewQuestion { prompt: " ".into(), ..new(AskKind::Ask) }, "invalid prompt"),
        (NewQuestion { prompt: "x".repeat(10_001), ..new(AskKind::Ask) }, "invalid prompt"),
        (NewQuestion { timeout_s: 0, ..new(AskKind::Ask) }, "invalid timeout_s"),
        (NewQuestion { timeout_s: u64::MAX, ..new(AskKind::Ask) }, "invalid timeout_s"),
        (NewQuestion { to: Some("person/eve".parse().unwrap()), ..new(AskKind::Ask) }, "invalid to"),
        (NewQuestion { to: Some("operator/router".parse().unwrap()), ..new(AskKind::Ask) }, "invalid to"),
        (NewQuestion { choices: vec![choice(), choice()], ..new(AskKind::Ask) }, "invalid choices"),
        (NewQuestion { choices: vec![choice()], ..new(AskKind::Confirm) }, "invalid kind"),
        (NewQuestion { schema: Some(json!({ "type": 7 })), ..new(AskKind::Ask) }, "invalid schema"),
        (NewQuestion { schema: Some(json!({})), free_text: true, ..new(AskKind::Ask) }, "invalid schema"),
        (NewQuestion { actor: Some("operator/other".parse().unwrap()), ..new(AskKind::Ask) }, "forbidden"),
    ] {
        assert_eq!(refused(stage.platform.ask(&operator("router"), room, "", question).await), wrong);
    }
    assert_eq!(refused(stage.platform.ask(&person("ann"), room, "", new(AskKind::Ask)).await), "forbidden");
    assert_eq!(stage.messages(room).await.len(), 1);
}
