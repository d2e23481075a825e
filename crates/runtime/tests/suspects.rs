//! One Run kills its process each time; its neighbours end all the same, and only the guilty one is parked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use loopd_kernel::machine::{Admission, ToolTerms};
use loopd_kernel::model::ToolOffer;
use loopd_kernel::outcome::Interrupt;
use loopd_kernel::record::Record;
use loopd_kernel::{Decision, EffectClass, Event, Failure, Limits, Outcome, RunId, Seq};
use loopd_runtime::*;
use loopd_store::{MemoryStore, RunStatus, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use world::dying::{Death, Dying};
use world::{CountedEntropy, VirtualClock, World};

/// Takes its time, for the guilty Run shorter and with the process as its price.
struct Work {
    offer: ToolOffer,
    guilty: Option<RunId>,
    process: Arc<Dying>,
    died: Arc<Notify>,
}

#[async_trait::async_trait]
impl Tool for Work {
    fn offer(&self) -> &ToolOffer {
        &self.offer
    }

    fn terms(&self) -> ToolTerms {
        ToolTerms { class: EffectClass::Read, timeout_ms: 60_000 }
    }

    async fn call(&self, _: &str, context: &CallContext) -> Result<String, ToolError> {
        if self.guilty == Some(context.run) {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.process.die();
            self.died.notify_one();
            return std::future::pending().await;
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        Ok("1".into())
    }
}

/// Three pieces of work, one after the other.
fn program(guilty: Option<RunId>, process: &Arc<Dying>, died: &Arc<Notify>) -> Arc<Program> {
    let world = World::new(|_, state, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::tool("work", &1),
            Event::ToolReturned(r) => {
                state.push(r.output);
                if state.len() == 3 { Decision::finish(&"done") } else { Decision::none() }
            }
            other => return Err(Failure::unexpected(&other)),
        })
    });
    let offer = ToolOffer { name: "work".into(), description: String::new(), parameters: "{}".into() };
    let work = Work { offer, guilty, process: process.clone(), died: died.clone() };
    Arc::new(world.program().clone().tool(Arc::new(work)))
}

async fn life(
    store: &MemoryStore,
    clock: &Arc<VirtualClock>,
    n: u64,
    guilty: Option<RunId>,
) -> (Runtime, Arc<Program>, Arc<Dying>, Arc<Notify>) {
    let process = Arc::new(Dying::new(store.clone(), u32::MAX, Death::Before));
    let died = Arc::new(Notify::new());
    let program = program(guilty, &process, &died);
    let runtime = Runtime::builder(process.clone(), Arc::new(FixedPrograms::new([program.clone()])))
        .world(clock.clone(), Arc::new(CountedEntropy::of(n)))
        .start()
        .await
        .unwrap();
    (runtime, program, process, died)
}

async fn recoveries(store: &MemoryStore, run: RunId) -> usize {
    let entries = store.entries(run, Seq(0), 1_000).await.unwrap();
    let recovered = |record| matches!(record, Record::Recovered(_));
    entries.iter().filter(|entry| recovered(Record::decode(entry.kind, &entry.record).unwrap())).count()
}

#[tokio::test(start_paused = true)]
async fn a_run_that_kills_its_process_does_not_take_its_neighbours_along() {
    for guilty in 0..4 {
        let (store, clock) = (MemoryStore::new(), Arc::new(VirtualClock::default()));
        let (first, plain, process, _) = life(&store, &clock, 0, None).await;
        let mut runs = Vec::new();
        for _ in 0..4 {
            let admission =
                Admission { tenant: "t".into(), input: "\"in\"".into(), limits: Limits::default(), key: None };
            let Started::New(driven) = first.start(&plain, admission).await.unwrap() else { panic!() };
            runs.push(driven.run);
        }
        // All are in their first piece of work when the process dies for the first time.
        tokio::time::sleep(Duration::from_secs(1)).await;
        process.die();
        let mut lives = 0;
        for n in 1..20 {
            tokio::time::advance(Duration::from_secs(60)).await;
            let (_runtime, _, _, died) = life(&store, &clock, n, Some(runs[guilty])).await;
            if tokio::time::timeout(Duration::from_secs(300), died.notified()).await.is_err() {
                lives = n;
                break;
            }
        }
        assert_eq!(lives, 4, "three more deaths, and then none");
        for (n, run) in runs.iter().enumerate() {
            let row = store.run(*run).await.unwrap().unwrap();
            let many = recoveries(&store, *run).await;
            if n == guilty {
                assert_eq!((row.status, many), (RunStatus::Parked, 4));
                let entries = store.entries(*run, Seq(0), 1_000).await.unwrap();
                let last = entries.last().map(|entry| Record::decode(entry.kind, &entry.record).unwrap());
                let Some(Record::Parked(parked)) = last else { panic!("{last:?}") };
                let poisoned = matches!(parked.outcome, Outcome::Interrupted { interrupt: Interrupt::Poisoned { .. } });
                assert!(poisoned, "{:?}", parked.outcome);
            } else {
                assert_eq!(row.status, RunStatus::Ended, "neighbour {n} of {guilty}, after {many} recoveries");
                assert_eq!(row.outcome.as_deref(), Some("Completed"));
            }
        }
    }
}
