//! A family: a parent and its children, driven by workers that die and are replaced. They race reads, join calls, and
//! move money through targets that can be asked, know keys, or do neither, and where things land late.

use crate::chance::Chance;
use crate::checks;
use crate::people::People;
use crate::scripts::{LANDING_BOUND, ScriptedModel, ScriptedTool, Side};
use crate::stage::{Stage, Worker};
use crate::witness;
use crate::world::closure_named;
use loopd_kernel::child::{Recipient, Spawn};
use loopd_kernel::model::ModelCall;
use loopd_kernel::{
    Action, Cx, Decision, Digest, EffectClass, Event, Failure, Limits, MicroUsd, ParallelCall, ToolCall,
};
use loopd_runtime::Program;
use loopd_store::{RunFilter, RunRow, RunStatus, Store};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

const TROUBLE: Duration = Duration::from_secs(200);
const PATIENCE: Duration = Duration::from_secs(1_200);

fn model() -> Action {
    Action::CallModel(said())
}

fn said() -> ModelCall {
    ModelCall::transcript("scripted")
}

fn tool(name: &str, args: u32) -> Action {
    Action::CallTool(of(name, args))
}

fn of(name: &str, args: u32) -> ToolCall {
    ToolCall::new(name, &args).expect("a number")
}

fn spawn(name: &str, input: &str) -> Action {
    let limits = Limits { micro_usd: Some(MicroUsd(9_000)), iterations: Some(40), ..Limits::default() };
    Action::Spawn(Spawn { limits, ..Spawn::new(name, "kid", format!("\"{input}\"")) })
}

fn parent(_: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    let looks = |from| (from..from + 3).map(|n| ParallelCall::from(of("look", n)));
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => Decision::all(looks(1).chain([of("pay", 1).into()])),
        Event::IterationStarted { iteration: 2 } => Decision::first_ok(looks(4).chain([said().into()])),
        Event::IterationStarted { iteration: 3 } => {
            Decision::none().and(tool("transfer", 2)).and(tool("charge", 3)).and(tool("shift", 4))
        }
        Event::IterationStarted { iteration: 4 } => {
            Decision::none().and(spawn("kid", "first")).and(tool("transfer", 5)).and(tool("pay", 6))
        }
        Event::IterationStarted { iteration: 5 } => {
            Decision::all([ParallelCall::from(of("transfer", 7)), said().into(), of("charge", 8).into()])
        }
        Event::IterationStarted { iteration: 6 } => Decision::first_ok(looks(7)).and(Action::Sleep { ms: 1_000 }),
        Event::IterationStarted { iteration: 7..13 } => {
            Decision::none().and(tool("look", 10)).and(tool("look", 11)).and(tool("look", 12))
        }
        Event::IterationStarted { iteration: 13 } => {
            Decision::none().and(spawn("left", "left")).and(spawn("right", "right")).and(tool("charge", 9))
        }
        Event::IterationStarted { .. } => Decision::finish(state),
        // Whichever comes second is closed with its parent.
        Event::ChildEnded { name, .. } if name != "kid" => Decision::finish(state),
        Event::ChildEnded { name, outcome, .. } => {
            state.push(format!("{name} {}", outcome.name()));
            Decision::none()
        }
        Event::ChildParked { name, .. } => {
            let mark = format!("raised {name}");
            let raised = state.iter().filter(|said| **said == mark).count();
            state.push(mark);
            let by = Limits { micro_usd: Some(MicroUsd(9_000)), ..Limits::default() };
            Decision::none().and(if raised < 3 {
                Action::RaiseChild { child: name, by }
            } else {
                Action::CancelChild { child: name, reason: "it takes too much".into() }
            })
        }
        other => heard(state, other),
    })
}

fn kid(_: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => {
            Decision::all([ParallelCall::from(of("look", 1)), said().into(), of("look", 2).into()])
        }
        Event::IterationStarted { iteration: 2 } => Decision::none().and(tool("transfer", 3)).and(tool("pay", 4)),
        Event::IterationStarted { iteration: 3 } => {
            let news = Action::Signal { to: Recipient::Parent, name: "message".into(), body: "half".into() };
            Decision::none().and(news).and(model()).and(tool("charge", 5))
        }
        Event::IterationStarted { iteration: 4..8 } => Decision::none().and(tool("look", 6)).and(tool("look", 7)),
        Event::IterationStarted { .. } => Decision::finish(state),
        other => heard(state, other),
    })
}

fn heard(state: &mut Vec<String>, event: Event) -> Decision {
    match event {
        Event::ToolReturned(returned) if returned.tool != "look" => state.push(returned.tool),
        Event::CallFailed { target, .. } | Event::CallUnknown { target, .. } => state.push(format!("no {target}")),
        Event::SignalReceived { name, .. } => state.push(name),
        Event::IterationStarted { .. }
        | Event::ToolReturned(_)
        | Event::ModelReplied { .. }
        | Event::Answered { .. }
        | Event::TimerFired { .. }
        | Event::ChildEnded { .. }
        | Event::ChildParked { .. }
        | Event::CallDenied { .. } => {}
    }
    Decision::none()
}

fn program(name: &'static str, side: &Side) -> Program {
    let step = if name == "kid" { kid } else { parent };
    let bound = Some(LANDING_BOUND);
    Program::new(closure_named(name, step))
        .model("scripted", Arc::new(ScriptedModel(side.clone())))
        .tool(ScriptedTool::named("look", EffectClass::Read, side))
        .tool(ScriptedTool::named("pay", EffectClass::Once, side))
        .tool(ScriptedTool::named("charge", EffectClass::Keyed, side))
        .tool(ScriptedTool::bounded("transfer", EffectClass::Probed, bound, side))
        .tool(ScriptedTool::named("shift", EffectClass::Probed, side))
}

/// In some seeds a worker can drive the parent or the children only, so that no two of a family share one.
async fn worker(stage: &Stage, number: u64, role: usize) -> Worker {
    let apart = stage.seed.is_multiple_of(3);
    let programs = |side: &Side| match role {
        0 if apart => vec![program("parent", side)],
        1 if apart => vec![program("kid", side)],
        _ => vec![program("parent", side), program("kid", side)],
    };
    stage.worker(number, programs).await
}

async fn rows(stage: &Stage) -> Vec<RunRow> {
    stage.store.runs(RunFilter { limit: 99, ..RunFilter::default() }).await.unwrap().items
}

/// A family from its start to its end. Returns a digest of all its heads.
pub async fn live(seed: u64, steps: Arc<AtomicU64>) -> Digest {
    let stage = Stage::new(seed, steps);
    let mut workers = [worker(&stage, 0, 0).await, worker(&stage, 1, 1).await];
    let mut chance = Chance::new(seed, 60);
    let mut buried = Vec::new();
    let budget = MicroUsd(30_000 + chance.below(60_000));
    stage.start(&workers[0], budget).await;
    let mut people = People::new(&stage);
    let began = tokio::time::Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(500 + chance.below(8_000))).await;
        let rows = rows(&stage).await;
        if rows.iter().all(|row| row.status == RunStatus::Ended) {
            break;
        }
        let busy = began.elapsed() < TROUBLE;
        stage.calm_down(!busy);
        assert!(began.elapsed() < TROUBLE + PATIENCE, "a run neither ends nor asks: {rows:?}");
        if busy && chance.one_in(8) {
            let role = chance.below(2) as usize;
            workers[role].die();
            let next = worker(&stage, 2 + buried.len() as u64, role).await;
            buried.push(std::mem::replace(&mut workers[role], next));
        }
        for row in rows.iter().filter(|row| row.status != RunStatus::Ended) {
            let through = &workers[chance.below(2) as usize].runtime;
            let _ = tokio::time::timeout(Duration::from_secs(5), people.look(through, row, busy)).await;
        }
    }
    stage.calm_down(true);
    tokio::time::sleep(Duration::from_secs(60)).await;
    for worker in &workers {
        worker.runtime.shutdown().await;
    }
    let side_definition = |name: &str| {
        let of = |worker: &Worker| worker.programs.iter().find(|one| one.definition().name() == name).cloned();
        workers.iter().find_map(of).expect("somebody can run it")
    };
    let rows = rows(&stage).await;
    let programs: Vec<_> = rows.iter().map(|row| side_definition(&row.loop_name)).collect();
    let mut watched = Vec::new();
    for (row, program) in rows.into_iter().zip(&programs) {
        let witness = checks::check(&stage, &row, &**program.definition()).await;
        watched.push((row, witness));
    }
    witness::family(&watched);
    let heads: Vec<&[u8]> = watched.iter().map(|(row, _)| row.hash.0.as_slice()).collect();
    Digest::sha256(&heads)
}
