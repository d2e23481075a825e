//! Calls to agents: accepted once, told in the commits of their Runs, ended for good.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod stage;

use expect_test::expect;
use loopd_platform::{Config, Engine};
use loopd_protocol::{
    Answer, Budget, CallPhase, ConversationId, HarnessCall, HarnessCallId, NewCall, OnPark, Priority, QuestionStatus,
    Say, Scope, Steer,
};
use loopd_store::memory::Fault;
use serde_json::{Value, json};
use stage::agents::{Paid, Process};
use stage::{ALL, Stage, admin, operator, person, refused, say};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn steps(prompt: &str) -> NewCall {
    NewCall {
        target: "steps".into(),
        prompt: prompt.into(),
        artifacts: Vec::new(),
        effect_key: String::new(),
        actor: None,
        recipient: None,
        reply_to: None,
        timeout_s: 1800,
        budget: Budget::default(),
        on_park: OnPark::Wait,
        priority: Priority::Normal,
    }
}

async fn called(engine: &Engine, room: ConversationId, prompt: &str) -> HarnessCallId {
    engine.call(&person("ann"), room, "", steps(prompt)).await.unwrap().call.id
}

/// Lets virtual time pass until the call is as wanted.
async fn until(engine: &Engine, id: HarnessCallId, wanted: impl Fn(&HarnessCall) -> bool) -> HarnessCall {
    for _ in 0..20_000 {
        let call = engine.harness_call(&admin(), id).await.unwrap();
        if wanted(&call) {
            return call;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{:?}", engine.harness_call(&admin(), id).await.unwrap());
}

async fn ended(engine: &Engine, id: HarnessCallId) -> HarnessCall {
    until(engine, id, |call| call.phase.is_final()).await
}

fn answered(value: impl Into<Option<Value>>) -> Answer {
    Answer { status: QuestionStatus::Answered, value: value.into(), scope: Scope::Once }
}

async fn answer_all(process: &Process, value: impl Into<Option<Value>> + Clone) -> usize {
    let platform = process.engine.platform();
    let open = platform.questions(&person("ann"), None, ALL).await.unwrap().items;
    for question in &open {
        platform.answer(&person("ann"), question.id, answered(value.clone())).await.unwrap();
    }
    open.len()
}

#[tokio::test(start_paused = true)]
async fn a_call_is_a_run_and_its_message_is_what_the_run_committed() {
    let (stage, paid) = (Stage::new(), Paid::default());
    let room = stage.room().await;
    let process = stage.process(&paid).await;
    let id = called(&process.engine, room, "speak:hello pay:5 json:42").await;
    let call = ended(&process.engine, id).await;
    assert_eq!(
        (call.phase, call.result, call.reason.as_deref()),
        (CallPhase::Succeeded, Some(json!({ "answer": "42" })), Some("Completed"))
    );
    expect![[r#"
        1 harness/steps > person/ann [completed]
            tool pay {"amount":5} Done 5
            result {"answer":"42"}
        2 harness/steps > person/ann [completed]
            markdown hello
    "#]]
    .assert_eq(&stage.told(room).await);
    expect![[r#"
        conversation r1 Room
        message 1 harness/steps Streaming
        call queued
        call running
        message 2 harness/steps Completed
        updated r2 1
        updated r3 2
        ended 1 r3 Completed
        call succeeded (Completed)
    "#]]
    .assert_eq(&stage.feed(room).await);
    assert_eq!(paid.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_says_whether_it_may_have_changed_something() {
    let stage = Stage::new();
    let room = stage.room().await;
    let process = stage.process(&Paid::default()).await;
    for (prompt, may_have_changed) in [
        ("done", false),
        ("speak:hello pay:5 fail", false),
        ("refund:5 done", true),
        ("refund:5 pay:5 fail", true),
        ("spawn:done done", true),
    ] {
        let call = ended(&process.engine, called(&process.engine, room, prompt).await).await;
        assert_eq!(call.may_have_changed, may_have_changed, "{prompt}: {call:?}");
    }
    // It says so while it goes on, too.
    let id = called(&process.engine, room, "refund:5 wait done").await;
    assert!(!until(&process.engine, id, |call| call.may_have_changed).await.phase.is_final());
}

#[tokio::test(start_paused = true)]
async fn a_known_key_is_the_same_call_even_when_nothing_else_is_accepted() {
    let stage = Stage::with(Config { slots: 1, queue: 1, ..Config::default() });
    let room = stage.room().await;
    let process = stage.process(&Paid::default()).await;
    let (engine, ann) = (&process.engine, person("ann"));
    let first = engine.call(&ann, room, "k", steps("wait done")).await.unwrap();
    assert!(!first.already);
    called(engine, room, "done").await;
    let before = stage.feed(room).await;
    assert_eq!(refused(engine.call(&ann, room, "", steps("done")).await), "capacity");
    let again = engine.call(&ann, room, "k", steps("wait done")).await.unwrap();
    assert_eq!((again.already, again.call.id), (true, first.call.id));
    assert_eq!(refused(engine.call(&ann, room, "k", steps("other")).await), "key_taken");
    assert!(stage.feed(room).await.starts_with(&before));
    // What ends makes room.
    engine.cancel(&ann, first.call.id, "enough").await.unwrap();
    assert_eq!(ended(engine, first.call.id).await.phase, CallPhase::Cancelled);
    called(engine, room, "done").await;
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_run_is_asked_here_and_its_answer_is_one_commit() {
    let (stage, paid) = (Stage::new(), Paid::default());
    let room = stage.room().await;
    let process = stage.process(&paid).await;
    let id = called(&process.engine, room, "confirm:pay? pay:7 ask:why? done").await;
    let waiting = until(&process.engine, id, |call| call.phase == CallPhase::Waiting).await;
    assert_eq!(waiting.reason.as_deref(), Some("question"));
    // It holds no slot while it waits.
    assert_eq!(process.engine.targets()[0].running, 0);
    assert_eq!(answer_all(&process, None).await, 1);
    until(&process.engine, id, |call| call.phase == CallPhase::Waiting && paid.load(Ordering::SeqCst) == 1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(answer_all(&process, json!("because")).await, 1);
    assert_eq!(ended(&process.engine, id).await.phase, CallPhase::Succeeded);
    expect![[r#"
        1 harness/steps > person/ann [completed]
            tool pay {"amount":7} Done 7
            result done
        2 harness/steps [completed]
            confirm pay?
        3 person/ann > harness/steps [completed]
            reply Answered 
        4 harness/steps [completed]
            ask why?
        5 person/ann > harness/steps [completed]
            reply Answered "because"
    "#]]
    .assert_eq(&stage.told(room).await);
    // One that expires in the Run is over here as well, and a sealed Run's is withdrawn.
    let id = called(&process.engine, room, "soon:quick? ask:forever? done").await;
    let quick = until(&process.engine, id, |call| call.phase == CallPhase::Waiting).await;
    assert_eq!(quick.id, id);
    tokio::time::sleep(Duration::from_secs(61)).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let open = process.engine.platform().questions(&person("ann"), None, ALL).await.unwrap().items;
    assert_eq!(open.iter().map(|question| question.prompt.as_str()).collect::<Vec<_>>(), ["forever?"]);
    process.engine.cancel(&person("ann"), id, "enough").await.unwrap();
    ended(&process.engine, id).await;
    let gone = process.engine.platform().question(&person("ann"), open[0].id).await.unwrap();
    assert_eq!(gone.status, QuestionStatus::Withdrawn);
    assert_eq!(
        refused(process.engine.platform().answer(&person("ann"), gone.id, answered(json!("x"))).await),
        "question_closed"
    );
}

#[tokio::test(start_paused = true)]
async fn every_end_of_a_run_is_an_end_of_its_call() {
    let stage = Stage::new();
    let room = stage.room().await;
    let process = stage.process(&Paid::default()).await;
    let engine = &process.engine;
    let mut table = String::new();
    let limited = |prompt: &str, on_park| NewCall {
        budget: Budget { iterations: Some(2), ..Budget::default() },
        on_park,
        ..steps(prompt)
    };
    for (name, new) in [
        ("done", steps("done")),
        ("fail", steps("fail")),
        ("deadline", NewCall { timeout_s: 5, ..steps("sleep:60000 done") }),
        ("parked", limited("speak:a speak:b speak:c speak:d done", OnPark::Fail)),
    ] {
        let id = engine.call(&person("ann"), room, "", new).await.unwrap().call.id;
        let call = ended(engine, id).await;
        let message = engine.platform().message(&admin(), call.message).await.unwrap();
        let code = call.error.map(|error| error.code).unwrap_or_default();
        let reason = call.reason.unwrap_or_default();
        table.push_str(&format!("{name}: {} {reason} {code} {:?}\n", call.phase.name(), message.status));
    }
    expect![[r#"
        done: succeeded Completed  Completed
        fail: failed Failed steps.fail Failed
        deadline: timed_out Interrupted call.timed_out Failed
        parked: failed BudgetExceeded call.parked Failed
    "#]]
    .assert_eq(&table);
    let store = engine.platform().store();
    assert_eq!(store.counter(loopd_store::Counter("calls that have not ended".into())).await.unwrap(), 0);
    assert_eq!((engine.targets()[0].running, engine.targets()[0].queued), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_parked_run_leaves_its_call_waiting_until_a_limit_is_raised() {
    let stage = Stage::new();
    let room = stage.room().await;
    let process = stage.process(&Paid::default()).await;
    let engine = &process.engine;
    let new = NewCall {
        budget: Budget { iterations: Some(2), ..Budget::default() },
        ..steps("speak:a speak:b speak:c done")
    };
    let id = engine.call(&person("ann"), room, "", new).await.unwrap().call.id;
    let waiting = until(engine, id, |call| call.phase == CallPhase::Waiting).await;
    assert_eq!(waiting.reason.as_deref(), Some("BudgetExceeded"));
    assert_eq!(refused(engine.platform().delete(&person("ann"), room).await), "calls_open");
    let raise = Budget { iterations: Some(50), ..Budget::default() };
    engine.resume(&person("ann"), id, raise).await.unwrap();
    assert_eq!(ended(engine, id).await.phase, CallPhase::Succeeded);
    assert_eq!(refused(engine.resume(&person("ann"), id, raise).await), "call_not_parked");
}

#[tokio::test(start_paused = true)]
async fn a_running_call_hears_what_is_said_to_it_once_and_tells_when() {
    let stage = Stage::new();
    let room = stage.room().await;
    let process = stage.process(&Paid::default()).await;
    let (engine, ann) = (&process.engine, person("ann"));
    let id = called(engine, room, "wait done").await;
    until(engine, id, |call| call.phase == CallPhase::Running).await;
    let steer = || Steer { text: "Hurry.".into() };
    let name = engine.steer(&ann, id, "s", steer()).await.unwrap().steer;
    assert_eq!(engine.steer(&ann, id, "s", steer()).await.unwrap().steer, name);
    ended(engine, id).await;
    let told = stage.feed(room).await;
    assert_eq!(told.matches("steered person/ann s").count(), 1, "{told}");
    assert_eq!(refused(engine.steer(&ann, id, "t", steer()).await), "call_final");
    assert_eq!(refused(engine.steer(&ann, id, "t", Steer { text: " ".into() }).await), "invalid text");
    assert_eq!(refused(engine.cancel(&ann, id, "late").await), "call_final");
}

#[tokio::test(start_paused = true)]
async fn a_person_who_speaks_to_an_agent_calls_it_in_the_same_commit() {
    let stage = Stage::new();
    let room = stage.room().await;
    let process = stage.process(&Paid::default()).await;
    let engine = &process.engine;
    let to = |words: &str| Say { to: vec!["harness/steps".parse().unwrap()], ..say(words) };
    let said = engine.say(&person("ann"), room, "k", to("json:1")).await.unwrap();
    assert_eq!(said.calls.len(), 1);
    ended(engine, said.calls[0]).await;
    let again = engine.say(&person("ann"), room, "k", to("json:1")).await.unwrap();
    assert_eq!((again.already, again.calls), (true, said.calls));
    // A mention does the same, and what was said before goes with it.
    let said = engine.say(&person("bob"), room, "", say("@harness/steps json:2")).await.unwrap();
    let call = ended(engine, said.calls[0]).await;
    assert!(call.prompt.contains("person/ann: json:1"), "{}", call.prompt);
    // Operators call by themselves; what they say is only said.
    let router = operator("router");
    engine.say(&person("ann"), room, "", Say { to: vec![router.actor.clone()], ..say("Go.") }).await.unwrap();
    assert_eq!(engine.say(&router, room, "", to("json:3")).await.unwrap().calls, []);
    expect![[r#"
        1 person/ann > harness/steps [completed]
            text json:1
        2 harness/steps > person/ann [completed]
            result {"answer":"1"}
        3 person/bob > harness/steps [completed]
            text @harness/steps json:2
        4 harness/steps > person/bob [completed]
            result {"answer":"2"}
        5 person/ann > operator/router [completed]
            text Go.
        6 operator/router > harness/steps [completed]
            text json:3
    "#]]
    .assert_eq(&stage.told(room).await);
}

/// The process goes without a word, at every moment of a call's life; the next one brings it to the same end.
#[tokio::test(start_paused = true)]
async fn a_process_that_dies_leaves_a_call_that_goes_on() {
    let (whole, _) = lived(u32::MAX).await;
    let mut deaths = 0;
    loop {
        let (told, died) = lived(deaths).await;
        assert_eq!(told, whole, "after {deaths} commits");
        if !died {
            break;
        }
        deaths += 1;
    }
    // Accepting, beginning, each step of the Run, the answer.
    assert!(deaths >= 8, "{deaths}");
}

/// Lives with a process whose store is gone for good after so many commits, and then with another one.
async fn lived(commits: u32) -> (String, bool) {
    let (stage, paid) = (Stage::new(), Paid::default());
    let room = stage.room().await;
    let died = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (mut left, flag) = (commits, died.clone());
    let dying = stage.store.faulty(move |_| {
        left = left.saturating_sub(1);
        flag.fetch_or(left == 0, Ordering::SeqCst);
        (left == 0).then_some(Fault::Unavailable)
    });
    let first = stage.process_over(Arc::new(dying), &paid, Vec::new());
    // One that dies before it is up has said nothing.
    let first = tokio::time::timeout(Duration::from_secs(1), first).await;
    if let Ok(Some(process)) = &first {
        let ann = person("ann");
        let asked = process.engine.call(&ann, room, "k", steps("speak:hi confirm:ok? pay:5 json:42"));
        let _ = tokio::time::timeout(Duration::from_secs(5), asked).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let open = stage.platform.questions(&person("ann"), None, ALL).await.unwrap().items;
        for question in open {
            let _ = process.engine.platform().answer(&person("ann"), question.id, answered(None)).await;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        process.runtime.shutdown().await;
    }
    let second = stage.process(&paid).await;
    let id = second
        .engine
        .call(&person("ann"), room, "k", steps("speak:hi confirm:ok? pay:5 json:42"))
        .await
        .unwrap()
        .call
        .id;
    for _ in 0..600 {
        answer_all(&second, None).await;
        if second.engine.harness_call(&admin(), id).await.unwrap().phase.is_final() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    second.engine.drain().await;
    let feed = stage.feed(room).await;
    assert_eq!(feed.matches("call succeeded").count(), 1, "after {commits} commits:\n{feed}");
    (stage.told(room).await, died.load(Ordering::SeqCst))
}
