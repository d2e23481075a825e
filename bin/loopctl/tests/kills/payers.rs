//! The paying process: it drives a dozen Runs at once, and each pays in every step. It is this test program, started
//! again by itself.

use crate::ledger::{self, CHARGE, LOOK, PAY};
use crate::world::pause;
use loopd_kernel::machine::{Admission, ToolTerms};
use loopd_kernel::model::ToolOffer;
use loopd_kernel::{Cx, Decision, EffectClass, ErasedLoop, Event, Failure, Limits, Loop, RunId, TimeMs, erase};
use loopd_runtime::{
    CallContext, Clock, Config, DriveError, FixedPrograms, Program, RunEnd, Runtime, SystemClock, Tool, ToolError,
};
use loopd_store::{RunFilter, RunRow, RunStatus, Store, StoreError};
use loopd_store_sqlite::SqliteStore;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Runs that one wave drives at the same time.
pub const RUNS: usize = 12;

/// Steps of each Run.
const STEPS: u32 = 16;

/// Short, so that a pause which outlives it is one too.
pub const LEASE: Duration = Duration::from_secs(2);

/// How far the clocks of two processes may differ.
pub const SKEW: Duration = Duration::from_millis(200);

/// The lease of the role that a store gives before the first heartbeat.
const FIRST_LEASE: Duration = Duration::from_secs(15);

/// What the process says once it has the driver role.
pub const DRIVES: &str = "drives";

/// What it says when it is done, before the reason.
pub const ENDED: &str = "ended: ";

/// What a paying process has to know; it travels through the environment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Errand {
    pub folder: PathBuf,
    /// The prefix of the admission keys of its Runs.
    pub wave: String,
    /// True: the tool that pays says that it only reads.
    pub lies: bool,
}

/// The tools that a step calls at the same time.
pub fn tools_of(step: u32) -> &'static [&'static str] {
    match step % 4 {
        0 => &[PAY],
        1 => &[CHARGE],
        2 => &[PAY, CHARGE, LOOK],
        _ => &[LOOK, PAY],
    }
}

/// All payments of one Run.
pub fn payments() -> impl Iterator<Item = (u32, &'static str)> {
    (0..STEPS).flat_map(|step| tools_of(step).iter().map(move |tool| (step, *tool))).filter(|(_, tool)| *tool != LOOK)
}

/// The arguments of a tool.
#[derive(Debug, Serialize, Deserialize)]
pub struct Step {
    pub step: u32,
}

#[derive(Serialize, Deserialize)]
struct Progress {
    step: u32,
    waits_for: usize,
}

struct Payer;

impl Loop for Payer {
    type Input = ();
    type State = Progress;
    type Output = u32;

    fn name(&self) -> &str {
        "payer"
    }

    fn init(&self, (): ()) -> Result<Progress, Failure> {
        Ok(Progress { step: 0, waits_for: 0 })
    }

    fn transition(&self, _: &Cx, state: &mut Progress, event: Event) -> Result<Decision, Failure> {
        match event {
            Event::IterationStarted { .. } if state.step == STEPS => Ok(Decision::finish(&state.step)),
            Event::IterationStarted { .. } => {
                let tools = tools_of(state.step);
                state.waits_for = tools.len();
                let step = Step { step: state.step };
                Ok(tools.iter().fold(Decision::none(), |decision, tool| decision.and_tool(*tool, &step)))
            }
            Event::ToolReturned(_) => {
                state.waits_for -= 1;
                state.step += u32::from(state.waits_for == 0);
                Ok(Decision::none())
            }
            // It did not happen, and it has to.
            Event::CallFailed { target, .. } => Ok(Decision::tool(target, &Step { step: state.step })),
            other => Err(Failure::unexpected(&other)),
        }
    }
}

/// The Loop, as the parent replays it.
pub fn definition() -> Arc<dyn ErasedLoop> {
    erase(Payer, Vec::new())
}

/// A tool whose target is the ledger.
struct Till {
    offer: ToolOffer,
    class: EffectClass,
    folder: PathBuf,
}

#[async_trait::async_trait]
impl Tool for Till {
    fn offer(&self) -> &ToolOffer {
        &self.offer
    }

    fn terms(&self) -> ToolTerms {
        // Far more than it takes, and not so long that nobody could say for a minute that it did not happen.
        ToolTerms { class: self.class, timeout_ms: 1_000 }
    }

    fn dedup_for(&self) -> Option<Duration> {
        (self.class == EffectClass::Keyed).then_some(Duration::from_secs(3600))
    }

    async fn call(&self, args: &str, context: &CallContext) -> Result<String, ToolError> {
        let Step { step } = serde_json::from_str(args).map_err(|error| ToolError::invalid_args(error.to_string()))?;
        // The way there and the way back take time, different for each effect.
        let [there, back] = [context.key.0.0[0], context.key.0.0[1]].map(|byte| Duration::from_millis(byte as u64 / 6));
        tokio::time::sleep(there).await;
        if self.offer.name != LOOK {
            let landed = ledger::add(&self.folder, &self.offer.name, step, context);
            landed.map_err(|error| ToolError::in_doubt("ledger", error.to_string()))?;
        }
        tokio::time::sleep(back).await;
        Ok(ledger::OUTPUT.into())
    }
}

fn program(errand: &Errand) -> Arc<Program> {
    let till = |name: &str, class| {
        let offer = ToolOffer { name: name.into(), description: String::new(), parameters: "{}".into() };
        Arc::new(Till { offer, class, folder: errand.folder.clone() })
    };
    let pay = if errand.lies { EffectClass::Read } else { EffectClass::Once };
    let program = Program::new(definition()).tool(till(PAY, pay));
    Arc::new(program.tool(till(CHARGE, EffectClass::Keyed)).tool(till(LOOK, EffectClass::Read)))
}

/// Takes the driver role as soon as it is free or its lease has lapsed.
///
/// Where it is free it is taken by a clock that goes wrong by all that its first lease is longer than ours: so whoever
/// pauses us waits for our lease and not for that one. By that clock no lease of others has lapsed, so what a paused
/// process has is taken by the right one.
fn take_the_role(path: &Path) -> Result<SqliteStore, StoreError> {
    let early = i64::try_from((FIRST_LEASE - LEASE).as_millis()).expect("a short time");
    loop {
        let now = SystemClock.now();
        for at in [TimeMs(now.0 - early), now] {
            match SqliteStore::open_driver_at(path, at) {
                Err(StoreError::DriverElsewhere(_)) => {}
                opened => return opened,
            }
        }
        pause(Duration::from_millis(10));
    }
}

/// The newest Runs of this wave.
pub async fn runs_of(store: &dyn Store, wave: &str) -> Result<Vec<RunRow>, StoreError> {
    let filter = RunFilter { loop_name: Some("payer".into()), limit: RUNS, ..RunFilter::default() };
    let mut rows = store.runs(filter).await?.items;
    rows.retain(|row| row.admission.as_deref().is_some_and(|key| key.starts_with(wave)));
    Ok(rows)
}

/// Whether somebody can go on only from outside: everything has ended, or waits for a person.
async fn rests(store: &dyn Store, wave: &str) -> Result<bool, StoreError> {
    for row in runs_of(store, wave).await? {
        let waits = matches!(row.status, RunStatus::Suspended | RunStatus::Parked);
        if !(row.status == RunStatus::Ended || waits && store.inbox(row.run, 1).await?.is_empty()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Runs the errand until all its Runs rest, and says how that ended. A test that is started to be this process.
pub fn run(errand: &Errand) {
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let ended = threads.expect("threads").block_on(async {
        let store = take_the_role(&errand.folder.join(".loopd/store.db")).map_err(|error| format!("{error:?}"))?;
        println!("\n{DRIVES}");
        let config =
            Config { lease: LEASE, dispatch_window: LEASE / 3, skew: SKEW, grace: LEASE / 2, ..Config::default() };
        let programs = Arc::new(FixedPrograms::new([program(errand)]));
        let runtime = Runtime::builder(Arc::new(store), programs).config(config).start().await;
        let runtime = runtime.map_err(|error| format!("{error:?}"))?;
        let ended = pay_all(&runtime, errand).await;
        runtime.shutdown().await;
        ended
    });
    println!("\n{ENDED}{}", ended.map_or_else(|error| error, |()| "well".to_owned()));
}

async fn pay_all(runtime: &Runtime, errand: &Errand) -> Result<(), String> {
    let payer = program(errand);
    for number in 0..RUNS {
        let key = Some(format!("{}{number}", errand.wave));
        let admission = Admission { tenant: "default".into(), input: "null".into(), limits: Limits::default(), key };
        runtime.start(&payer, admission).await.map_err(|error| format!("{error:?}"))?;
    }
    let fenced = Arc::new(Notify::new());
    let mut watched: Vec<RunId> = Vec::new();
    loop {
        let rows = runs_of(&**runtime.store(), &errand.wave).await.map_err(|error| format!("{error:?}"))?;
        for run in rows.iter().map(|row| row.run).filter(|run| !watched.contains(run)).collect::<Vec<_>>() {
            if let Some(driven) = runtime.driven(run) {
                watched.push(run);
                let fenced = fenced.clone();
                tokio::spawn(async move {
                    if driven.wait().await == RunEnd::Lost(DriveError::Fenced) {
                        fenced.notify_one();
                    }
                });
            }
        }
        if rests(&**runtime.store(), &errand.wave).await.map_err(|error| format!("{error:?}"))? {
            return Ok(());
        }
        tokio::select! {
            () = fenced.notified() => return Err("Fenced".into()),
            () = tokio::time::sleep(Duration::from_millis(10)) => {}
        }
    }
}
