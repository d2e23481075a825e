//! Two workers over one store, both claim: one is paused past its lease and goes on as a zombie while the other has
//! taken its Run over. Hints are lost and doubled, commits fail, people interfere.

use crate::chance::Chance;
use crate::checks;
use crate::people::People;
use crate::scripts::{Effects, ScriptedModel, ScriptedTool, Side};
use crate::world::port::Port;
use crate::world::{CountedEntropy, VirtualClock, closure};
use loopd_kernel::budget::Limits;
use loopd_kernel::machine::Admission;
use loopd_kernel::model::ModelCall;
use loopd_kernel::question::Ask;
use loopd_kernel::{Action, Cx, Decision, Digest, EffectClass, Event, Failure, MicroUsd, RunId};
use loopd_runtime::{Config, FixedPrograms, Program, Runtime, Started};
use loopd_store::memory::Fault;
use loopd_store::{MemoryStore, RunFilter, RunStatus, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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

/// What all workers of one story share.
struct Stage {
    seed: u64,
    store: MemoryStore,
    effects: Effects,
    clock: Arc<VirtualClock>,
    steps: Arc<AtomicU64>,
    /// True: faults, pauses and lost hints are over.
    quiet: Arc<AtomicBool>,
    spins: Arc<AtomicBool>,
}

impl Stage {
    async fn worker(&self, number: u64) -> (Runtime, Arc<Program>) {
        let port = self.port(number);
        let side = Side {
            seed: self.seed,
            store: self.store.clone(),
            effects: self.effects.clone(),
            gate: port.gate.clone(),
            lease: port.lease.clone(),
            clock: self.clock.clone(),
        };
        let program = Program::new(closure(step))
            .model("scripted", Arc::new(ScriptedModel(side.clone())))
            .tool(ScriptedTool::named("look", EffectClass::Read, &side))
            .tool(ScriptedTool::named("pay", EffectClass::Once, &side))
            .tool(ScriptedTool::named("pay-again", EffectClass::Once, &side));
        let program = Arc::new(program);
        let config = Config { snapshot_entries: 8, ..Config::default() };
        let runtime = Runtime::builder(Arc::new(port), Arc::new(FixedPrograms::new([program.clone()])))
            .config(config)
            .world(self.clock.clone(), Arc::new(CountedEntropy::of(number)))
            .start()
            .await;
        (runtime.unwrap(), program)
    }

    fn port(&self, number: u64) -> Port {
        let mut chance = Chance::new(self.seed, 10 + number);
        let quiet = self.quiet.clone();
        let faulty = self.store.faulty(move |_| match chance.below(80) {
            _ if quiet.load(Ordering::Relaxed) => None,
            0..6 => Some(Fault::Unavailable),
            6..12 => Some(Fault::AmbiguousCommitted),
            12..18 => Some(Fault::AmbiguousLost),
            18 => Some(Fault::Full),
            _ => None,
        });
        let (mut pauses, quiet) = (Chance::new(self.seed, 20 + number), self.quiet.clone());
        let pausing = move |_| {
            let seconds = |of: &mut Chance, most: u64| Duration::from_millis(of.below(most * 1_000));
            let late = if pauses.one_in(10) { seconds(&mut pauses, 4) } else { Duration::ZERO };
            let pause = if pauses.one_in(12) { seconds(&mut pauses, 40) } else { Duration::ZERO };
            if quiet.load(Ordering::Relaxed) { (Duration::ZERO, Duration::ZERO) } else { (late, pause) }
        };
        let (mut echoes, quiet) = (Chance::new(self.seed, 30 + number), self.quiet.clone());
        let echoing = move |_| if quiet.load(Ordering::Relaxed) { 1 } else { echoes.below(3) as usize };
        Port::new(faulty).pausing(pausing).echoing(echoing).counting(self.steps.clone()).telling(self.spins.clone())
    }

    /// Starts the Run through `worker`; a start that failed is made again under the same key.
    async fn start(&self, worker: &Runtime, program: &Arc<Program>) -> RunId {
        let budget = 6_000 + Chance::new(self.seed, 40).below(40_000);
        let limits = Limits { micro_usd: Some(MicroUsd(budget)), iterations: Some(60), ..Limits::default() };
        loop {
            let key = Some("errand".into());
            let admission = Admission { tenant: "default".into(), input: "\"in\"".into(), limits, key };
            match worker.start(program, admission).await {
                Ok(Started::New(driven)) => return driven.run,
                Ok(Started::Already(run)) => return run,
                Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        }
    }
}

/// One Run from its start to its end. Returns the hash of its head.
pub async fn live(seed: u64, steps: Arc<AtomicU64>) -> Digest {
    let stage = Stage {
        seed,
        store: MemoryStore::new(),
        effects: Effects::default(),
        clock: Arc::default(),
        steps,
        quiet: Arc::default(),
        spins: Arc::default(),
    };
    let (first, program) = stage.worker(0).await;
    let (second, _) = stage.worker(1).await;
    let run = stage.start(&first, &program).await;
    let mut people = People::new(seed, &stage.store, &stage.effects);
    let mut pace = Chance::new(seed, 50);
    let began = tokio::time::Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(500 + pace.below(6_000))).await;
        let row = stage.store.run(run).await.unwrap().unwrap();
        if row.status == RunStatus::Ended {
            break;
        }
        assert!(!stage.spins.load(Ordering::Relaxed), "a worker asks the store for ever while time stands still");
        let busy = began.elapsed() < TROUBLE;
        stage.quiet.store(!busy, Ordering::Relaxed);
        assert!(began.elapsed() < TROUBLE + PATIENCE, "the run neither ends nor asks: {row:?}");
        let through = if pace.one_in(2) { &first } else { &second };
        // A paused worker keeps whoever speaks through it waiting; people do not wait for ever.
        let _ = tokio::time::timeout(Duration::from_secs(5), people.look(through, &row, busy)).await;
    }
    // Whoever was paused wakes up and finds that it was not needed.
    stage.quiet.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(60)).await;
    first.shutdown().await;
    second.shutdown().await;
    let runs = stage.store.runs(RunFilter { limit: 9, ..RunFilter::default() }).await.unwrap();
    assert_eq!(runs.items.len(), 1, "one admission key, one run");
    checks::check(&stage.store, run, &**program.definition(), &stage.effects.all()).await
}
