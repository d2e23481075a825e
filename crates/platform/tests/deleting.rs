//! Deleting: all or nothing for whoever asks, and to the end whatever happens. Members: out is out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod stage;

use loopd_protocol::{ConversationId, MemberChange, NewCall, Say};
use loopd_store::memory::Fault;
use loopd_store::{List, Query, RecordId, Store, Table};
use stage::agents::Paid;
use stage::{ALL, Stage, admin, operator, person, refused, say};
use std::sync::Arc;
use std::time::Duration;

/// A room in which the router was addressed, and its work conversation.
async fn with_work(stage: &Stage) -> (ConversationId, ConversationId) {
    let room = stage.room().await;
    let to_router = Say { to: vec![operator("router").actor], ..say("Go.") };
    stage.platform.say(&person("ann"), room, "", to_router).await.unwrap();
    let works = stage.platform.work_conversations(&person("ann"), room).await.unwrap();
    let [work] = works.as_slice() else { panic!("{works:?}") };
    stage.platform.say(&operator("router"), work.id, "", say("I plan.")).await.unwrap();
    (room, work.id)
}

/// How much there is of a Conversation beside its identity.
async fn left(stage: &Stage, place: ConversationId) -> usize {
    let mut count = 0;
    for table in [Table::Message, Table::Question, Table::Call, Table::Artifact, Table::Cursor] {
        let scope = RecordId(place.0);
        let list = List { table, scope, beyond: None, newest_first: false, limit: usize::MAX };
        count += stage.store.records(Query::List(list)).await.unwrap().len();
    }
    count
}

fn call(prompt: &str) -> NewCall {
    serde_json::from_value(serde_json::json!({ "target": "steps", "prompt": prompt })).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_refused_deletion_deletes_nothing() {
    let stage = Stage::new();
    let (room, work) = with_work(&stage).await;
    let process = stage.process(&Paid::default()).await;
    let ann = person("ann");
    let called = process.engine.call(&ann, room, "", call("wait done")).await.unwrap().call;
    let before = left(&stage, work).await;
    assert_eq!(refused(stage.platform.delete(&ann, room).await), "calls_open");
    assert_eq!(refused(stage.platform.delete(&person("bob"), room).await), "forbidden");
    assert_eq!(refused(stage.platform.delete(&admin(), work).await), "forbidden");
    assert_eq!((left(&stage, work).await, before > 0), (before, true));
    process.engine.cancel(&ann, called.id, "").await.unwrap();
    while !process.engine.harness_call(&ann, called.id).await.unwrap().phase.is_final() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stage.platform.delete(&ann, room).await.unwrap();
    assert_eq!((left(&stage, room).await, left(&stage, work).await), (0, 0));
    for place in [room, work] {
        assert_eq!(refused(stage.platform.conversation(&admin(), place).await), "not_found");
    }
    let lines = stage.platform.audit(&admin(), ALL).await.unwrap().items;
    assert_eq!(lines.iter().filter(|line| line.action == "conversation.delete").count(), 1);
}

/// The process dies after the decision: the next one erases what is left. Also when a call was accepted just before.
#[tokio::test(start_paused = true)]
async fn a_deletion_that_is_interrupted_goes_on() {
    let stage = Stage::new();
    let (room, work) = with_work(&stage).await;
    // The decision lands, and nothing after it does.
    let dying = stage.store.scripted([None, Some(Fault::Unavailable), Some(Fault::Unavailable)]);
    stage.through(Arc::new(dying)).delete(&person("ann"), room).await.unwrap();
    assert_eq!(refused(stage.platform.conversation(&admin(), room).await), "not_found");
    assert!(left(&stage, room).await > 0 && left(&stage, work).await > 0);
    let _process = stage.process(&Paid::default()).await;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!((left(&stage, room).await, left(&stage, work).await), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn who_is_removed_is_out_of_the_work_conversations_too() {
    let stage = Stage::new();
    let (room, work) = with_work(&stage).await;
    let (ann, bob) = (person("ann"), person("bob"));
    assert!(stage.platform.conversation(&bob, work).await.is_ok());
    // They are in, and the Operator hears nobody there.
    assert_eq!(refused(stage.platform.say(&bob, work, "", say("And tea?")).await), "invalid to");
    let change = MemberChange { add: vec![bob.actor.clone()], remove: Vec::new() };
    assert_eq!(refused(stage.platform.change_members(&bob, work, None, change).await), "invalid add");
    let change = MemberChange { add: Vec::new(), remove: vec![bob.actor.clone()] };
    stage.platform.change_members(&ann, room, None, change).await.unwrap();
    assert_eq!(refused(stage.platform.conversation(&bob, work).await), "not_found");
    assert_eq!(refused(stage.platform.say(&bob, work, "", say("And now?")).await), "not_found");
    assert_eq!(stage.platform.search(&bob, "plan", None, 10).await.unwrap(), []);
    assert_eq!(refused(stage.platform.search(&bob, "plan", Some(work), 10).await), "not_found");
    // Who is in the parent is in the work, from the first moment.
    let change = MemberChange { add: vec!["person/eve".parse().unwrap()], remove: Vec::new() };
    stage.platform.change_members(&ann, room, None, change).await.unwrap();
    assert!(stage.platform.conversation(&person("eve"), work).await.is_ok());
}
