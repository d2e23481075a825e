//! Targets that change while calls run and wait for them, and agents that are kept.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod stage;

use async_trait::async_trait;
use expect_test::expect;
use loopd_kernel::Limits;
use loopd_platform::agents::{Roster, in_file};
use loopd_platform::engine::{Executes, TargetSpec};
use loopd_platform::{Config, Engine, Error};
use loopd_protocol::{
    Agent, AgentChange, AgentSource, Budget, CallPhase, ConversationId, HarnessCall, HarnessCallId, NewCall, OnPark,
    Priority, Steer,
};
use stage::agents::{Paid, Process, steps};
use stage::{ALL, Stage, admin, person, refused};
use std::time::Duration;

fn spec(limits: Limits) -> TargetSpec {
    let executes = Ok(Executes::Loop { program: steps(&Paid::default()), limits, demo: false });
    TargetSpec { name: "steps".into(), description: String::new(), slots: None, executes }
}

fn closed(why: &str) -> TargetSpec {
    TargetSpec { executes: Err(why.to_owned()), ..spec(Limits::default()) }
}

async fn called(engine: &Engine, room: ConversationId, prompt: &str) -> Result<HarnessCallId, Error> {
    let new = NewCall {
        target: "steps".into(),
        prompt: prompt.into(),
        artifacts: Vec::new(),
        effect_key: String::new(),
        actor: None,
        recipient: None,
        reply_to: None,
        timeout_s: 1800,
        budget: Budget::default(),
        on_park: OnPark::Fail,
        priority: Priority::Normal,
    };
    engine.call(&person("ann"), room, "", new).await.map(|called| called.call.id)
}

/// Lets virtual time pass until the call is as wanted.
async fn until(engine: &Engine, id: HarnessCallId, wanted: impl Fn(CallPhase) -> bool) -> HarnessCall {
    for _ in 0..20_000 {
        let call = engine.harness_call(&admin(), id).await.unwrap();
        if wanted(call.phase) {
            return call;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{:?}", engine.harness_call(&admin(), id).await.unwrap());
}

async fn go_on(engine: &Engine, id: HarnessCallId) -> HarnessCall {
    engine.steer(&person("ann"), id, "", Steer { text: "Go on.".into() }).await.unwrap();
    until(engine, id, CallPhase::is_final).await
}

/// One slot: a call that runs until it is told to go on, and one that waits for it.
async fn one_runs_and_one_waits(prompt: &str) -> (Stage, Process, ConversationId, [HarnessCallId; 2]) {
    let stage = Stage::with(Config { slots: 1, ..Config::default() });
    let room = stage.room().await;
    let process = stage.process(&Paid::default()).await;
    let runs = called(&process.engine, room, "wait speak:a speak:b done").await.unwrap();
    until(&process.engine, runs, |phase| phase == CallPhase::Running).await;
    let waits = called(&process.engine, room, prompt).await.unwrap();
    (stage, process, room, [runs, waits])
}

fn shown(call: &HarnessCall) -> String {
    let error = call.error.as_ref().map(|error| format!(" {}: {}", error.code, error.message)).unwrap_or_default();
    format!("{}{error}", call.phase.name())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_begins_with_the_target_as_it_is_then() {
    let (_stage, process, _, [runs, waits]) = one_runs_and_one_waits("speak:a speak:b done").await;
    let engine = &process.engine;
    let tight = Limits { iterations: Some(1), ..Limits::default() };
    engine.set_targets(vec![spec(tight)]).await.unwrap();
    // What runs has the limits with which it began.
    assert_eq!(go_on(engine, runs).await.phase, CallPhase::Succeeded);
    let call = until(engine, waits, CallPhase::is_final).await;
    assert_eq!((call.phase, call.error.unwrap().code.as_str()), (CallPhase::Failed, "call.parked"));
}

#[tokio::test(start_paused = true)]
async fn what_runs_goes_on_when_its_target_is_gone_and_what_waits_is_told() {
    let (_stage, process, room, [runs, waits]) = one_runs_and_one_waits("done").await;
    let engine = &process.engine;
    engine.set_targets(Vec::new()).await.unwrap();
    // It is told at once, though every slot is taken.
    let told = until(engine, waits, CallPhase::is_final).await;
    expect!["failed call.cannot_begin: there is no target steps any more"].assert_eq(&shown(&told));
    assert_eq!(engine.harness_call(&admin(), runs).await.unwrap().phase, CallPhase::Running);
    assert_eq!(refused(called(engine, room, "done").await), "not_found");
    assert!(engine.targets().is_empty());
    let harness = "harness/steps".parse().unwrap();
    assert!(!engine.platform().actor(&harness).await.unwrap().online);
    assert_eq!(go_on(engine, runs).await.phase, CallPhase::Succeeded);
    // Back, it takes calls as if nothing had been, and its slot is free.
    engine.set_targets(vec![spec(Limits::default())]).await.unwrap();
    assert!(engine.platform().actor(&harness).await.unwrap().online);
    let again = called(engine, room, "done").await.unwrap();
    assert_eq!(until(engine, again, CallPhase::is_final).await.phase, CallPhase::Succeeded);
    assert_eq!((engine.targets()[0].running, engine.targets()[0].queued), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_target_that_takes_no_calls_now_waits_on() {
    let (_stage, process, room, [runs, waits]) = one_runs_and_one_waits("done").await;
    let engine = &process.engine;
    engine.set_targets(vec![closed("no key")]).await.unwrap();
    assert_eq!(refused(called(engine, room, "done").await), "target_unavailable");
    assert_eq!(go_on(engine, runs).await.phase, CallPhase::Succeeded);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(engine.harness_call(&admin(), waits).await.unwrap().phase, CallPhase::Queued);
    assert_eq!(engine.targets()[0].unavailable.as_deref(), Some("no key"));
    engine.set_targets(vec![spec(Limits::default())]).await.unwrap();
    assert_eq!(until(engine, waits, CallPhase::is_final).await.phase, CallPhase::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn targets_that_cannot_be_change_nothing() {
    let stage = Stage::new();
    let process = stage.process(&Paid::default()).await;
    let engine = &process.engine;
    let bad = TargetSpec { name: "No Name".into(), ..spec(Limits::default()) };
    let one = || spec(Limits::default());
    for specs in [vec![bad], vec![one(), one()]] {
        assert_eq!(refused(engine.set_targets(specs).await), "invalid target");
        assert_eq!(engine.targets()[0].description, "Does as it is told.");
    }
}

/// Manifests are their agents' names; `filed` is in a file, and `brought` comes with the process.
#[derive(Debug)]
struct Names(Engine, std::sync::Mutex<Vec<Agent>>);

fn agent(name: &str, source: AgentSource) -> Agent {
    Agent {
        name: name.into(),
        source,
        file: (source == AgentSource::File).then(|| format!("{name}.yaml")),
        description: String::new(),
        version: None,
        model: None,
        error: None,
        unavailable: None,
    }
}

#[async_trait]
impl Roster for Names {
    fn list(&self) -> Vec<Agent> {
        self.1.lock().unwrap().clone()
    }

    async fn check(&self, name: &str, manifest: &str) -> Result<(), Error> {
        match (name, manifest == name) {
            ("filed", _) => Err(in_file(&agent(name, AgentSource::File))),
            (_, true) => Ok(()),
            (_, false) => Err(Error::invalid("manifest", "it has another name")),
        }
    }

    async fn follow(&self) -> Result<(), Error> {
        let mut now = vec![agent("filed", AgentSource::File), agent("brought", AgentSource::BuiltIn)];
        let kept = self.0.platform().kept_agents().await?;
        now.extend(kept.iter().map(|kept| agent(&kept.name, AgentSource::Kept)));
        let named = |name: &String| TargetSpec { name: name.clone(), ..spec(Limits::default()) };
        self.0.set_targets(now.iter().map(|agent| named(&agent.name)).collect()).await?;
        *self.1.lock().unwrap() = now;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_manifest_is_kept_by_admins_and_the_audit_log_knows() {
    let stage = Stage::new();
    let process = stage.process(&Paid::default()).await;
    let (engine, platform) = (&process.engine, process.engine.platform());
    let names = Names(engine.clone(), std::sync::Mutex::default());
    let roster: Option<&dyn Roster> = Some(&names);
    names.follow().await.unwrap();
    let apply = |name: &'static str, manifest: &'static [u8]| async move {
        platform.apply_agent(&admin(), roster, (name, manifest)).await.map(|applied| applied.change)
    };
    assert_eq!(apply("one", b"one").await.unwrap(), AgentChange::Created);
    assert_eq!(apply("one", b"one").await.unwrap(), AgentChange::Unchanged);
    assert!(engine.targets().iter().any(|target| target.name == "one"));
    for (name, manifest, code) in [
        ("filed", b"filed".as_slice(), "agent_in_file"),
        ("one", b"two", "invalid manifest"),
        ("one", b"\xff", "invalid manifest"),
        ("No Name", b"No Name", "invalid name"),
    ] {
        assert_eq!(refused(apply(name, manifest).await), code, "{name}");
    }
    let large = vec![b' '; loopd_platform::agents::MANIFEST + 1];
    assert_eq!(refused(platform.apply_agent(&admin(), roster, ("one", &large)).await), "too_large");
    let ann = person("ann");
    assert_eq!(refused(platform.apply_agent(&ann, roster, ("one", b"one")).await), "forbidden");
    assert_eq!(refused(platform.remove_agent(&ann, roster, "one").await), "forbidden");
    assert_eq!(refused(platform.apply_agent(&admin(), None, ("one", b"one")).await), "no_agents");
    // Another process over the same store finds it.
    let other = stage.process(&Paid::default()).await;
    assert_eq!(other.engine.platform().kept_agents().await.unwrap(), platform.kept_agents().await.unwrap());
    platform.remove_agent(&admin(), roster, "one").await.unwrap();
    assert!(!engine.targets().iter().any(|target| target.name == "one"));
    for (name, code) in [("one", "not_found"), ("filed", "agent_in_file"), ("brought", "agent_built_in")] {
        assert_eq!(refused(platform.remove_agent(&admin(), roster, name).await), code);
    }
    let audit = platform.audit(&admin(), ALL).await.unwrap().items;
    let told: Vec<_> = audit.iter().map(|line| format!("{} {}", line.action, line.subject)).collect();
    assert_eq!(told, ["agent.delete one", "agent.apply one"]);
}
