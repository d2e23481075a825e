//! External executions: the recovery contract against a scripted remote.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod stage;

use async_trait::async_trait;
use expect_test::expect;
use loopd_platform::Engine;
use loopd_platform::engine::{Executes, Harness, HarnessError, Recovery, Remote, Request, Stop, TargetSpec, Update};
use loopd_protocol::{
    BlockOp, Budget, CallPhase, ConversationId, HarnessCall, HarnessCallId, NewCall, OnPark, Priority,
};
use loopd_store::MemoryStore;
use serde_json::json;
use stage::agents::{Paid, Process};
use stage::{Stage, admin, person, text};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the remote does besides what it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    /// As it should.
    Good,
    /// It does not answer the first time, though it executes.
    Deaf,
    /// It refuses.
    Refuses,
    /// After a process died it tells another story.
    Lies,
    /// After a process died it tells less.
    Forgets,
    /// After a process died it knows of nothing.
    Loses,
    /// It breaks off in the middle, each time.
    Breaks,
    /// It never ends.
    Hangs,
}

/// A remote that executes each key once, and counts.
struct Far {
    recovery: Recovery,
    mood: Mutex<Mood>,
    executions: Mutex<BTreeMap<String, u32>>,
    attached: Mutex<u32>,
}

struct Told {
    updates: std::vec::IntoIter<Result<Update, HarnessError>>,
    reference: String,
}

fn output(words: &str) -> Result<Update, HarnessError> {
    Ok(Update::Output { ops: vec![BlockOp::Push { block: text(words) }] })
}

impl Far {
    fn story(&self, first: bool) -> Vec<Result<Update, HarnessError>> {
        let end = Ok(Update::Result { result: json!("done") });
        let broken = Err(HarnessError::Unreachable("broken".into()));
        match (*self.mood.lock().unwrap(), first) {
            (Mood::Lies, false) => vec![output("one"), output("another"), end],
            (Mood::Forgets, false) => vec![output("one"), end],
            (Mood::Breaks, true) => vec![output("one"), output("two"), broken],
            (Mood::Hangs | Mood::Lies | Mood::Forgets | Mood::Loses, true) | (Mood::Hangs, false) => {
                vec![output("one"), output("two")]
            }
            _ => vec![output("one"), output("two"), output("three"), end],
        }
    }

    fn told(&self, first: bool) -> Box<dyn Remote> {
        Box::new(Told { updates: self.story(first).into_iter(), reference: "ref-1".into() })
    }
}

#[async_trait]
impl Harness for Far {
    fn name(&self) -> &str {
        "scripted"
    }

    fn recovery(&self) -> Recovery {
        self.recovery
    }

    async fn submit(&self, request: &Request) -> Result<Box<dyn Remote>, HarnessError> {
        let mood = *self.mood.lock().unwrap();
        if mood == Mood::Refuses {
            return Err(HarnessError::Refused("no such agent".into()));
        }
        *self.executions.lock().unwrap().entry(request.key.clone()).or_default() += 1;
        if mood == Mood::Deaf {
            return Err(HarnessError::Unreachable("no answer".into()));
        }
        Ok(self.told(true))
    }

    async fn attach(&self, request: &Request, reference: Option<&str>) -> Result<Box<dyn Remote>, HarnessError> {
        *self.attached.lock().unwrap() += 1;
        let known = self.executions.lock().unwrap().contains_key(&request.key);
        let by_reference = self.recovery == Recovery::Reference;
        if *self.mood.lock().unwrap() == Mood::Loses || !known || (by_reference && reference != Some("ref-1")) {
            return Err(HarnessError::Lost("nobody knows it".into()));
        }
        Ok(self.told(false))
    }
}

#[async_trait]
impl Remote for Told {
    fn reference(&self) -> Option<String> {
        Some(self.reference.clone())
    }

    async fn next(&mut self) -> Result<Update, HarnessError> {
        match self.updates.next() {
            Some(update) => update,
            None => std::future::pending().await,
        }
    }

    async fn stop(&mut self) -> Stop {
        Stop::Confirmed
    }
}

async fn process(stage: &Stage, remote: &Arc<Far>) -> Process {
    let target = TargetSpec {
        name: "remote".into(),
        description: String::new(),
        slots: None,
        executes: Ok(Executes::External(remote.clone())),
    };
    let store: MemoryStore = stage.store.clone();
    stage.process_over(Arc::new(store), &Paid::default(), vec![target]).await.unwrap()
}

async fn called(engine: &Engine, room: ConversationId) -> HarnessCallId {
    let new = NewCall {
        target: "remote".into(),
        prompt: "Do it.".into(),
        artifacts: Vec::new(),
        effect_key: String::new(),
        actor: None,
        recipient: None,
        reply_to: None,
        timeout_s: 600,
        budget: Budget::default(),
        on_park: OnPark::Wait,
        priority: Priority::Normal,
    };
    engine.call(&person("ann"), room, "k", new).await.unwrap().call.id
}

async fn until(engine: &Engine, id: HarnessCallId, wanted: impl Fn(&HarnessCall) -> bool) -> Option<HarnessCall> {
    for _ in 0..2_000 {
        let call = engine.harness_call(&admin(), id).await.unwrap();
        if wanted(&call) {
            return Some(call);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    None
}

/// A call on the remote, with a process that is replaced after the first two updates when `dies`.
async fn check(recovery: Recovery, mood: Mood, dies: bool) -> String {
    let stage = Stage::new();
    let room = stage.room().await;
    let remote =
        Arc::new(Far { recovery, mood: Mutex::new(mood), executions: Mutex::default(), attached: Mutex::default() });
    let first = process(&stage, &remote).await;
    let id = called(&first.engine, room).await;
    let mut last = first;
    if dies {
        tokio::time::sleep(Duration::from_secs(5)).await;
        last.engine.drain().await;
        last = process(&stage, &remote).await;
        assert_eq!(called(&last.engine, room).await, id);
    }
    let call = until(&last.engine, id, |call| call.phase.is_final()).await.unwrap();
    let error = call.error.map(|error| format!(" {}: {}", error.code, error.message)).unwrap_or_default();
    let (executions, attached) = (remote.executions.lock().unwrap().clone(), *remote.attached.lock().unwrap());
    assert!(executions.values().all(|times| *times == 1), "{executions:?}");
    let said = last.engine.platform().message(&admin(), call.message).await.unwrap();
    let words: Vec<_> = said.blocks.iter().map(|block| block.words()).collect();
    format!("{}{error} [{}] executed {} attached {attached}", call.phase.name(), words.join(" "), executions.len())
}

#[tokio::test(start_paused = true)]
async fn an_execution_is_followed_to_its_end_and_never_begun_twice() {
    let mut table = String::new();
    for (recovery, mood, dies) in [
        (Recovery::Key, Mood::Good, false),
        (Recovery::Key, Mood::Refuses, false),
        (Recovery::Key, Mood::Deaf, false),
        (Recovery::Reference, Mood::Deaf, false),
        (Recovery::None, Mood::Deaf, false),
        (Recovery::Key, Mood::Breaks, false),
        (Recovery::Reference, Mood::Breaks, false),
        (Recovery::None, Mood::Breaks, false),
        (Recovery::Key, Mood::Hangs, false),
        (Recovery::Key, Mood::Lies, true),
        (Recovery::Key, Mood::Forgets, true),
        (Recovery::Reference, Mood::Loses, true),
        (Recovery::None, Mood::Hangs, true),
        (Recovery::Reference, Mood::Hangs, true),
    ] {
        let dead = if dies { ", dies" } else { "" };
        writeln!(table, "{recovery:?} {mood:?}{dead}: {}", check(recovery, mood, dies).await).unwrap();
    }
    expect![[r#"
        Key Good: succeeded [one two three done] executed 1 attached 0
        Key Refuses: failed harness.refused: no such agent [] executed 0 attached 0
        Key Deaf: succeeded [one two three done] executed 1 attached 1
        Reference Deaf: unknown call.unknown: it was interrupted before the remote had named it [] executed 1 attached 0
        None Deaf: unknown call.unknown: it cannot be attached to again: no answer [] executed 1 attached 0
        Key Breaks: succeeded [one two three done] executed 1 attached 1
        Reference Breaks: succeeded [one two three done] executed 1 attached 1
        None Breaks: unknown call.unknown: it cannot be attached to again: broken [one two] executed 1 attached 0
        Key Hangs: timed_out call.timed_out: its time was over [one two] executed 1 attached 0
        Key Lies, dies: unknown call.unknown: the remote tells another story than before [one two] executed 1 attached 1
        Key Forgets, dies: unknown call.unknown: the remote tells another story than before [one two] executed 1 attached 1
        Reference Loses, dies: unknown call.unknown: nobody knows it [one two] executed 1 attached 1
        None Hangs, dies: unknown call.unknown: it cannot be attached to again [one two] executed 1 attached 0
        Reference Hangs, dies: timed_out call.timed_out: its time was over [one two] executed 1 attached 1
    "#]].assert_eq(&table);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_execution_says_whether_the_remote_stopped() {
    let stage = Stage::new();
    let room = stage.room().await;
    let remote = Arc::new(Far {
        recovery: Recovery::Key,
        mood: Mutex::new(Mood::Hangs),
        executions: Mutex::default(),
        attached: Mutex::default(),
    });
    let process = process(&stage, &remote).await;
    let id = called(&process.engine, room).await;
    until(&process.engine, id, |call| call.phase == CallPhase::Running).await.unwrap();
    process.engine.cancel(&person("ann"), id, "enough").await.unwrap();
    let call = until(&process.engine, id, |call| call.phase.is_final()).await.unwrap();
    assert_eq!((call.phase, call.stop_confirmed), (CallPhase::Cancelled, Some(true)));
    // Nobody here knows what it has done.
    assert!(call.may_have_changed);
}
