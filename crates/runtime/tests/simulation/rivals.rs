//! Two workers over one store, both claim: one is paused past its lease and goes on as a zombie while the other has
//! taken its Run over. Hints are lost and doubled, commits fail, people interfere.

use crate::chance::Chance;
use crate::checks;
use crate::people::People;
use crate::scripts::{ScriptedModel, ScriptedTool, Side};
use crate::stage::Stage;
use crate::world::closure;
use loopd_kernel::model::ModelCall;
use loopd_kernel::question::Ask;
use loopd_kernel::{Action, Cx, Decision, Digest, EffectClass, Event, Failure, MicroUsd};
use loopd_runtime::Program;
use loopd_store::{RunFilter, RunStatus, Store};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// For so long nothing is left alone; afterwards nothing fails any more, and the Run has to end.
const TROUBLE: Duration = Duration::from_secs(90);
/// How long the Run then has.
const PATIENCE: Duration = Duration::from_secs(600);

fn step(_: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    let model = || Action::CallModel(ModelCall::transcript("scripted"));
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => Decision::none().and(model()).and_tool("look", &1),
        Event::IterationStarted { iteration: 2 } => Decision::tool("pay", &42).and_tool("look", &2),
        Event::IterationStarted { iteration: 3 } => {
            Decision::none().and(Action::Wait { signals: vec!["go".into()], timeout_ms: Some(8_000) })
        }
        Event::IterationStarted { iteration: 4 } => {
            let ask = Ask::Confirm { prompt: "once more?".into(), expires_in_ms: Some(30_000) };
            Decision::none().and(Action::Ask(ask))
        }
        Event::IterationStarted { iteration: 5 } => Decision::none().and(model()).and_tool("pay-again", &43),
        Event::IterationStarted { iteration: 6 } => Decision::sleep(2_000),
        Event::IterationStarted { .. } => Decision::finish(state),
        Event::ToolReturned(returned) => {
            state.push(returned.tool);
            Decision::none()
        }
        Event::CallFailed { target, .. } | Event::CallUnknown { target, .. } => {
            state.push(format!("no {target}"));
            Decision::none()
        }
        Event::ModelReplied { .. }
        | Event::SignalReceived { .. }
        | Event::Answered { .. }
        | Event::TimerFired { .. }
        | Event::ChildEnded { .. }
        | Event::ChildParked { .. }
        | Event::CallDenied { .. } => Decision::none(),
    })
}

fn programs(side: &Side) -> Vec<Program> {
    let program = Program::new(closure(step))
        .model("scripted", Arc::new(ScriptedModel(side.clone())))
        .tool(ScriptedTool::named("look", EffectClass::Read, side))
        .tool(ScriptedTool::named("pay", EffectClass::Once, side))
        .tool(ScriptedTool::named("pay-again", EffectClass::Once, side));
    vec![program]
}

/// One Run from its start to its end. Returns the hash of its head.
pub async fn live(seed: u64, steps: Arc<AtomicU64>) -> Digest {
    let stage = Stage::new(seed, steps);
    let first = stage.worker(0, programs).await;
    let second = stage.worker(1, programs).await;
    let budget = 6_000 + Chance::new(seed, 40).below(40_000);
    let run = stage.start(&first, MicroUsd(budget)).await;
    let mut people = People::new(&stage);
    let mut pace = Chance::new(seed, 50);
    let began = tokio::time::Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(500 + pace.below(6_000))).await;
        let row = stage.store.run(run).await.unwrap().unwrap();
        if row.status == RunStatus::Ended {
            break;
        }
        let busy = began.elapsed() < TROUBLE;
        stage.calm_down(!busy);
        assert!(began.elapsed() < TROUBLE + PATIENCE, "the run neither ends nor asks: {row:?}");
        let through = if pace.one_in(2) { &first } else { &second };
        // A paused worker keeps whoever speaks through it waiting; people do not wait for ever.
        let _ = tokio::time::timeout(Duration::from_secs(5), people.look(&through.runtime, &row, busy)).await;
    }
    // Whoever was paused wakes up and finds that it was not needed.
    stage.calm_down(true);
    tokio::time::sleep(Duration::from_secs(60)).await;
    first.runtime.shutdown().await;
    second.runtime.shutdown().await;
    let runs = stage.store.runs(RunFilter { limit: 9, ..RunFilter::default() }).await.unwrap();
    assert_eq!(runs.items.len(), 1, "one admission key, one run");
    assert_eq!(runs.items[0].run, run);
    checks::check(&stage, &runs.items[0], &**first.programs[0].definition()).await;
    runs.items[0].hash
}
