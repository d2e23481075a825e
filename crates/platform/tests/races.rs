//! What happens between a decision and its commit, and what happens to who goes away in the middle.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod stage;

use loopd_platform::{Config, Engine};
use loopd_protocol::{Answer, CallPhase, HarnessCallId, NewCall, QuestionStatus, Scope};
use loopd_store::{Batch, Query, Store, Table, Write};
use serde_json::json;
use stage::agents::Paid;
use stage::between::Between;
use stage::{ALL, Stage, admin, person, refused};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn steps(prompt: &str) -> NewCall {
    serde_json::from_value(json!({ "target": "steps", "prompt": prompt })).unwrap()
}

async fn ended(engine: &Engine, id: HarnessCallId) -> CallPhase {
    for _ in 0..20_000 {
        let call = engine.harness_call(&admin(), id).await.unwrap();
        if call.phase.is_final() {
            return call.phase;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it does not end");
}

fn writes(batch: &Batch, table: Table) -> bool {
    batch.writes.iter().any(|write| matches!(write, Write::PutRecord(row, _) if row.table == table))
}

/// Whoever asked goes away at any of its waits: what was accepted executes all the same, also without a second try.
#[tokio::test(start_paused = true)]
async fn a_call_whose_caller_goes_away_executes() {
    let (stage, paid) = (Stage::new(), Paid::default());
    let room = stage.room().await;
    let process = stage.process(&paid).await;
    let engine = process.engine.clone();
    let ann = person("ann");
    tokio::select! {
        biased;
        called = engine.call(&ann, room, "k", steps("pay:5")) => panic!("{called:?}"),
        () = std::future::ready(()) => {}
    }
    let calls = async || engine.harness_calls(&admin(), room, ALL).await.unwrap().items;
    while calls().await.is_empty() {
        tokio::task::yield_now().await;
    }
    let [call] = &calls().await[..] else { panic!("one call") };
    assert_eq!(ended(&engine, call.id).await, CallPhase::Succeeded);
    let again = engine.call(&person("ann"), room, "k", steps("pay:5")).await.unwrap();
    assert_eq!((again.already, again.call.id), (true, call.id));
    assert_eq!(paid.load(Ordering::SeqCst), 1);
}

/// The commit lands, and the process that made it cannot even read any more: the line is compared with the store.
#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_put_into_the_line_begins() {
    let (stage, paid) = (Stage::new(), Paid::default());
    let room = stage.room().await;
    let process = stage.process(&paid).await;
    // Another process on the same store accepts it and dies: this one learns of it from the store alone.
    let other = stage.process(&paid).await;
    other.engine.drain().await;
    let died = Engine::new(stage.through(Arc::new(stage.store.clone())), targets(&stage, &paid)).unwrap();
    let call = died.call(&person("ann"), room, "", steps("pay:5")).await.unwrap().call;
    assert_eq!(ended(&process.engine, call.id).await, CallPhase::Succeeded);
    assert_eq!(paid.load(Ordering::SeqCst), 1);
    assert_eq!(process.engine.targets()[0].running, 0);
}

fn targets(_: &Stage, paid: &Paid) -> Vec<loopd_platform::engine::TargetSpec> {
    let executes = loopd_platform::engine::Executes::Loop {
        program: stage::agents::steps(paid),
        limits: loopd_kernel::Limits::default(),
        demo: false,
    };
    vec![loopd_platform::engine::TargetSpec {
        name: "steps".into(),
        description: String::new(),
        slots: None,
        executes: Ok(executes),
    }]
}

/// A call that is accepted between the look for open calls and the decision to delete is ended, gives its place back, and
/// everything is erased.
#[tokio::test(start_paused = true)]
async fn a_call_that_slips_into_a_deletion_is_ended() {
    let stage = Stage::with(Config { slots: 1, queue: 1, ..Config::default() });
    let room = stage.room().await;
    let process = stage.process(&Paid::default()).await;
    let engine = process.engine.clone();
    let accepted = async move {
        let call = engine.call(&person("bob"), room, "", steps("wait done")).await.unwrap().call;
        while engine.harness_call(&admin(), call.id).await.unwrap().phase != CallPhase::Running {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let store = Arc::new(Between::new(&stage.store, |batch| writes(batch, Table::Conversation), accepted));
    stage.through(store.clone()).delete(&person("ann"), room).await.unwrap();
    assert!(store.has_happened());
    let due = |until| Query::Due { table: Table::Conversation, until, limit: 10 };
    while !stage.store.records(due(loopd_kernel::TimeMs(i64::MAX))).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let target = process.engine.targets().remove(0);
    assert_eq!((target.running, target.queued), (0, 0));
    let other = stage.open("ann", &[]).await.id;
    for _ in 0..2 {
        process.engine.call(&person("ann"), other, "", steps("wait")).await.unwrap();
    }
    assert_eq!(refused(process.engine.call(&person("ann"), other, "", steps("wait")).await), "capacity");
}

static ARMED: AtomicBool = AtomicBool::new(false);

/// A person answers while the Run is being cancelled: nobody is told that the answer counted, and it ends once.
#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_while_the_run_is_cancelled_is_not_said_to_count() {
    let (stage, paid) = (Stage::new(), Paid::default());
    let room = stage.room().await;
    let platform = stage.platform.clone();
    let answered = async move {
        let open = platform.questions(&person("ann"), None, ALL).await.unwrap().items;
        let answer = Answer { status: QuestionStatus::Answered, value: None, scope: Scope::Once };
        let sent = platform.answer(&person("ann"), open[0].id, answer).await.unwrap();
        assert_eq!((sent.status, sent.answer.is_some()), (QuestionStatus::Open, true));
    };
    let meant = |batch: &Batch| ARMED.load(Ordering::SeqCst) && writes(batch, Table::Question);
    let store = Arc::new(Between::new(&stage.store, meant, answered));
    let process = stage.process_over(store.clone(), &paid, Vec::new()).await.unwrap();
    let call = process.engine.call(&person("ann"), room, "", steps("confirm:sure? pay:5")).await.unwrap().call;
    while process.engine.harness_call(&admin(), call.id).await.unwrap().phase != CallPhase::Waiting {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    ARMED.store(true, Ordering::SeqCst);
    let question = stage.platform.questions(&person("ann"), None, ALL).await.unwrap().items.remove(0);
    process.engine.cancel(&person("bob"), call.id, "no").await.unwrap();
    assert_eq!(ended(&process.engine, call.id).await, CallPhase::Cancelled);
    assert!(store.has_happened());
    let question = stage.platform.question(&person("ann"), question.id).await.unwrap();
    assert_eq!((question.status, question.answer), (QuestionStatus::Withdrawn, None));
    let again = Answer { status: QuestionStatus::Answered, value: None, scope: Scope::Once };
    assert_eq!(refused(stage.platform.answer(&person("ann"), question.id, again).await), "question_closed");
    let told = stage.told(room).await;
    assert!(!told.contains("reply"), "{told}");
    let feed = stage.feed(room).await;
    assert!(!feed.contains("question Answered") && feed.ends_with("call cancelled (Interrupted)\n"), "{feed}");
    assert_eq!(paid.load(Ordering::SeqCst), 0);
}

/// A child asks, and what it works for is ended: the Question ends with it, although the call has ended before.
#[tokio::test(start_paused = true)]
async fn the_question_of_a_child_ends_when_its_call_has_ended() {
    let (stage, paid) = (Stage::new(), Paid::default());
    let room = stage.room().await;
    let process = stage.process(&paid).await;
    let call = process.engine.call(&person("ann"), room, "", steps("spawn:confirm:sure?")).await.unwrap().call;
    let open = async || stage.platform.questions(&person("ann"), None, ALL).await.unwrap().items;
    while open().await.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let asked = open().await.remove(0);
    process.engine.cancel(&person("ann"), call.id, "no").await.unwrap();
    assert_eq!(ended(&process.engine, call.id).await, CallPhase::Cancelled);
    for _ in 0..1000 {
        if open().await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let question = stage.platform.question(&person("ann"), asked.id).await.unwrap();
    assert_eq!((question.status, question.answer), (QuestionStatus::Withdrawn, None));
    assert_eq!(open().await, []);
}

/// What nobody can end after its time is over holds no slot for ever.
#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_end_when_it_is_asked_to_ends_as_unknown() {
    let (stage, paid) = (Stage::new(), Paid::default());
    let room = stage.room().await;
    let process = stage.process(&paid).await;
    let new = NewCall { timeout_s: 60, ..steps("confirm:sure? done") };
    let call = process.engine.call(&person("ann"), room, "", new).await.unwrap().call;
    while process.engine.harness_call(&admin(), call.id).await.unwrap().phase == CallPhase::Queued {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Nobody here can drive its Run any more.
    process.runtime.shutdown().await;
    assert_eq!(ended(&process.engine, call.id).await, CallPhase::Unknown);
    assert_eq!(process.engine.targets()[0].running, 0);
    assert_eq!(stage.platform.questions(&person("ann"), None, ALL).await.unwrap().items, []);
    stage.platform.delete(&person("ann"), room).await.unwrap();
}
