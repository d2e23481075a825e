//! What an Operator finds where it joins, and what its work may use.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod stage;

use expect_test::{Expect, expect};
use loopd_platform::Engine;
use loopd_protocol::{ConversationId, NewLease, Say};
use serde_json::{Value, json};
use stage::agents::Paid;
use stage::{ALL, Stage, operator, person, refused, say};

fn to_router(words: &str) -> Say {
    Say { to: vec!["operator/router".parse().unwrap()], ..say(words) }
}

/// What the Operator finds in the Conversation: the numbers of the Messages that it has not handled.
async fn found(stage: &Stage, room: ConversationId) -> Vec<u64> {
    let polled = stage.platform.poll(&operator("router"), room, 100, false).await.unwrap();
    polled.messages.iter().map(|message| message.seq).collect()
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_joins_begins_with_what_is_said_from_then_on() {
    let stage = Stage::new();
    stage.room().await;
    let ann = person("ann");
    let said = async |room, say| stage.platform.say(&ann, room, "", say).await.unwrap();
    // It is addressed.
    let room = stage.open("ann", &["person/bob"]).await.id;
    said(room, say("One.")).await;
    said(room, say("Two.")).await;
    said(room, to_router("Three?")).await;
    said(room, say("Four.")).await;
    assert_eq!(found(&stage, room).await, [3, 4]);
    // It is invited.
    let other = stage.open("ann", &["person/bob"]).await;
    said(other.id, say("One.")).await;
    let change = async |change| {
        let change = serde_json::from_value(change).unwrap();
        stage.platform.change_members(&ann, other.id, None, change).await.unwrap();
    };
    change(json!({"add": ["operator/router"]})).await;
    said(other.id, say("Two.")).await;
    assert_eq!(found(&stage, other.id).await, [2]);
    // It was there from the start.
    let third = stage.open("ann", &["operator/router"]).await.id;
    said(third, say("One.")).await;
    assert_eq!(found(&stage, third).await, [1]);
    // It comes back: what it has handled stays handled, and what it has missed is there.
    change(json!({"remove": ["operator/router"]})).await;
    said(other.id, say("Three.")).await;
    said(other.id, to_router("Four?")).await;
    assert_eq!(found(&stage, other.id).await, [2, 3, 4]);
}

/// A call that the Operator makes at work, with the files.
async fn check(engine: &Engine, room: ConversationId, files: &[Value], expected: Expect) {
    let act = json!({"act": "call", "key": format!("{files:?}").replace(' ', ""), "place": "work",
        "call": {"target": "steps", "prompt": "done", "artifacts": files}});
    let turn = serde_json::from_value(json!({"epoch": 1, "acts": [act]})).unwrap();
    let told = match engine.turn(&operator("router"), room, turn).await {
        Ok(turned) => format!("{} done", turned.acts.len()),
        Err(error) => refused(Err::<(), _>(error)),
    };
    expected.assert_eq(&told);
}

#[tokio::test(start_paused = true)]
async fn at_work_the_files_of_the_question_are_at_hand_and_no_others() {
    let stage = Stage::new();
    let process = stage.process(&Paid::default()).await;
    let (room, other) = (stage.room().await, stage.room().await);
    stage.platform.say(&person("ann"), room, "", to_router("See the file.")).await.unwrap();
    let file = async |room| {
        let file = ("a.txt", "text/plain");
        json!(stage.platform.attach(&person("ann"), room, "", file, b"bytes".to_vec()).await.unwrap().0.id)
    };
    let (of_the_question, of_another) = (file(room).await, file(other).await);
    let wish = NewLease { holder: "one".into(), epoch: None, lease_s: 60 };
    stage.platform.lease(&operator("router"), room, wish).await.unwrap();
    check(&process.engine, room, std::slice::from_ref(&of_the_question), expect!["1 done"]).await;
    check(&process.engine, room, &[of_the_question, of_another], expect!["invalid artifacts"]).await;
    let works = stage.platform.work_conversations(&operator("router"), room).await.unwrap();
    let calls = process.engine.harness_calls(&operator("router"), works[0].id, ALL).await.unwrap().items;
    assert_eq!(calls[0].artifacts.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn at_work_nothing_is_said_that_nobody_hears() {
    let stage = Stage::new();
    let process = stage.process(&Paid::default()).await;
    let room = stage.room().await;
    stage.platform.say(&person("ann"), room, "", to_router("Hello?")).await.unwrap();
    let work = stage.platform.work_conversations(&operator("router"), room).await.unwrap()[0].id;
    let ann = person("ann");
    for (to, expected) in [
        (vec![], Some("invalid to")),
        (vec!["operator/router"], Some("invalid to")),
        (vec!["person/bob"], Some("invalid to")),
        (vec!["harness/steps", "operator/router"], Some("invalid to")),
        (vec!["harness/steps"], None),
    ] {
        let say = Say { to: to.iter().map(|to| to.parse().unwrap()).collect(), ..say("done") };
        let said = process.engine.say(&ann, work, "", say).await;
        assert_eq!(said.err().map(|error| refused(Err::<(), _>(error))).as_deref(), expected, "{to:?}");
    }
    // The Operator itself says there what it does.
    stage.platform.say(&operator("router"), work, "", say("I plan.")).await.unwrap();
}
