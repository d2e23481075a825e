//! What the Calls of many Runs to one provider share: its pauses and its places.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use loopd_kernel::machine::{Admission, ModelTerms};
use loopd_kernel::model::{ModelCall, ModelReply};
use loopd_kernel::record::{Record, Setback};
use loopd_kernel::units::Price;
use loopd_kernel::{Decision, EffectClass, Event, Failure, Kind, Limits, RunId, Seq, Usage};
use loopd_runtime::*;
use loopd_store::{MemoryStore, Store};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use world::turned::Turned;
use world::{CountedEntropy, World, show_end};

/// A provider that refuses its first Calls and notes when which Run was sent.
struct Provider {
    name: Option<&'static str>,
    refuses: usize,
    wait: Option<Duration>,
    takes: Duration,
    most: Option<usize>,
    since: Instant,
    sent: Mutex<Vec<(u64, RunId)>>,
    inside: AtomicUsize,
    busiest: AtomicUsize,
}

impl Provider {
    fn new() -> Self {
        Self {
            name: None,
            refuses: 0,
            wait: None,
            takes: Duration::from_millis(100),
            most: None,
            since: Instant::now(),
            sent: Mutex::default(),
            inside: AtomicUsize::new(0),
            busiest: AtomicUsize::new(0),
        }
    }

    fn sent(&self) -> Vec<(u64, RunId)> {
        self.sent.lock().unwrap().clone()
    }
}

/// One of several objects that speak to one provider.
struct Spoken(Arc<Provider>);

#[async_trait::async_trait]
impl Model for Spoken {
    fn terms(&self) -> ModelTerms {
        let price = Price { input: 1, output: 1, ..Price::default() };
        ModelTerms { price: Some(price), timeout_ms: 600_000, max_attempts: 2 }
    }

    fn limits_key(&self) -> Option<&str> {
        self.0.name
    }

    fn max_in_flight(&self) -> Option<usize> {
        self.0.most
    }

    async fn call(&self, _: ModelRequest, context: CallContext) -> Result<ModelAnswer, ModelError> {
        let provider = &self.0;
        let n = {
            let mut sent = provider.sent.lock().unwrap();
            sent.push((provider.since.elapsed().as_millis() as u64, context.run));
            sent.len()
        };
        if n <= provider.refuses {
            return Err(ModelError::RateLimited { message: "slow down".into(), retry_after: provider.wait });
        }
        let inside = provider.inside.fetch_add(1, Ordering::SeqCst) + 1;
        provider.busiest.fetch_max(inside, Ordering::SeqCst);
        tokio::time::sleep(provider.takes).await;
        provider.inside.fetch_sub(1, Ordering::SeqCst);
        Ok(ModelAnswer { reply: ModelReply::text("yes"), usage: Some(Usage { input: 1, ..Usage::default() }) })
    }
}

fn asks() -> Program {
    let world = World::new(|_, _, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::model(ModelCall::prompt("wise", "well?")),
            Event::ModelReplied { .. } => Decision::finish(&"answered"),
            other => return Err(Failure::unexpected(&other)),
        })
    });
    world.program().clone()
}

struct Fleet {
    runtime: Runtime,
    store: MemoryStore,
    clock: Arc<Turned>,
}

impl Fleet {
    async fn over(program: &Arc<Program>) -> Self {
        let (store, clock) = (MemoryStore::new(), Turned::new());
        let runtime = Runtime::builder(Arc::new(store.clone()), Arc::new(FixedPrograms::new([program.clone()])))
            .world(clock.clone(), Arc::new(CountedEntropy::default()))
            .start()
            .await
            .unwrap();
        Self { runtime, store, clock }
    }

    async fn begin(&self, program: &Arc<Program>) -> RunId {
        let admission = Admission { tenant: "t".into(), input: "\"in\"".into(), limits: Limits::default(), key: None };
        let Started::New(driven) = self.runtime.start(program, admission).await.unwrap() else { panic!() };
        driven.run
    }

    /// The Run's end, however often it left this worker's memory meanwhile.
    async fn end(&self, run: RunId) -> String {
        for _ in 0..10_000 {
            if let Some(outcome) = self.runtime.ended(run).await.unwrap() {
                return show_end(&RunEnd::Ended(outcome));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{run} does not end");
    }

    async fn setbacks(&self, run: RunId) -> Vec<Setback> {
        let entries = self.store.entries(run, Seq(0), 1_000).await.unwrap();
        let records = entries.iter().map(|entry| Record::decode(entry.kind, &entry.record).unwrap());
        let setback = |record| if let Record::Attempted(attempted) = record { Some(attempted.setback) } else { None };
        records.filter_map(setback).collect()
    }
}

const ANSWERED: &str = r#"Ended Completed {"output":"\"answered\""}"#;

#[tokio::test(start_paused = true)]
async fn after_a_rate_limit_no_run_sends_before_the_provider_said() {
    let provider = Arc::new(Provider {
        name: Some("account"),
        refuses: 1,
        wait: Some(Duration::from_secs(60)),
        ..Provider::new()
    });
    let program = Arc::new(asks().model("wise", Arc::new(Spoken(provider.clone()))));
    let fleet = Fleet::over(&program).await;
    let limited = fleet.begin(&program).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Another object for the same account.
    let other = Arc::new(asks().model("wise", Arc::new(Spoken(provider.clone()))));
    let mut waiting = Vec::new();
    for _ in 0..40 {
        waiting.push(fleet.begin(&other).await);
    }
    assert_eq!(fleet.end(limited).await, ANSWERED);
    for run in &waiting {
        assert_eq!(fleet.end(*run).await, ANSWERED);
    }
    let sent = provider.sent();
    let times: Vec<u64> = sent.iter().skip(1).map(|(at, _)| *at).collect();
    assert_eq!(sent.len(), 42, "each is sent once, the first one twice");
    assert!(times.iter().all(|at| (60_000..80_000).contains(at)), "{times:?}");
    // They do not come all at once.
    let busiest = times.iter().map(|at| times.iter().filter(|other| at / 100 == *other / 100).count()).max();
    assert!(busiest < Some(20), "{times:?}");
    // A pause is no failed attempt: nothing is charged, nothing is counted.
    for run in waiting {
        assert_eq!(fleet.setbacks(run).await, [Setback::NotSent]);
    }
}

#[tokio::test(start_paused = true)]
async fn models_without_a_key_do_not_wait_for_each_other() {
    let refused = Arc::new(Provider { refuses: 1, wait: Some(Duration::from_secs(60)), ..Provider::new() });
    let free = Arc::new(Provider::new());
    let program = Arc::new(asks().model("wise", Arc::new(Spoken(refused.clone()))));
    let other = Arc::new(asks().model("wise", Arc::new(Spoken(free.clone()))));
    let fleet = Fleet::over(&program).await;
    fleet.begin(&program).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let run = fleet.begin(&other).await;
    assert_eq!(fleet.end(run).await, ANSWERED);
    assert!(free.sent()[0].0 < 2_000);
}

#[tokio::test(start_paused = true)]
async fn a_model_serves_so_many_at_once_and_in_the_order_in_which_they_came() {
    let takes = Duration::from_secs(20);
    let provider = Arc::new(Provider { most: Some(2), takes, ..Provider::new() });
    let program = Arc::new(asks().model("wise", Arc::new(Spoken(provider.clone()))));
    let fleet = Fleet::over(&program).await;
    let mut runs = Vec::new();
    for _ in 0..8 {
        runs.push(fleet.begin(&program).await);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for run in &runs {
        assert_eq!(fleet.end(*run).await, ANSWERED);
    }
    assert_eq!(provider.busiest.load(Ordering::SeqCst), 2);
    let sent = provider.sent();
    let order: Vec<RunId> = sent.iter().map(|(_, run)| *run).collect();
    assert_eq!(order.len(), 8, "each is sent once");
    assert!(sent[7].0 < 90_000, "the seats are hardly ever empty: {sent:?}");
    // Who pauses when a seat is free is passed over; nobody is passed over by all.
    for (n, run) in runs.iter().enumerate() {
        let place = order.iter().position(|sent| sent == run).unwrap();
        assert!(place.abs_diff(n) <= 3, "number {n} was sent as number {place}");
        let entries = fleet.store.entries(*run, Seq(0), 1_000).await.unwrap();
        let intents = entries.iter().filter(|entry| entry.kind == Kind::Intended).count();
        assert!(intents <= 20, "{intents} intents in 80 seconds");
        assert!(fleet.setbacks(*run).await.iter().all(|setback| *setback == Setback::NotSent));
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_before_a_closed_gate_makes_nobody_ask_again_and_again() {
    let refused =
        Provider { name: Some("account"), refuses: 1, wait: Some(Duration::from_secs(60)), ..Provider::new() };
    let provider = Arc::new(refused);
    let model = Arc::new(Spoken(provider.clone()));
    let program = Arc::new(asks().model("wise", model.clone()));
    let fleet = Fleet::over(&program).await;
    let patient = World::new(|_, _, event| {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::tool("look", &1),
            Event::ToolReturned(_) => Decision::model(ModelCall::prompt("wise", "well?")),
            Event::ModelReplied { .. } => Decision::finish(&"answered"),
            other => return Err(Failure::unexpected(&other)),
        })
    })
    .tool_taking("look", EffectClass::Read, 3_000);
    let run = fleet.begin(&Arc::new(patient.program().clone().model("wise", model))).await;
    fleet.begin(&program).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The Journal of the Run that looks goes on from where the clock was.
    fleet.clock.wall.fetch_sub(3_600_000, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(90)).await;
    let entries = fleet.store.entries(run, Seq(0), 100_000).await.unwrap();
    assert!(entries.len() <= 200, "{} entries", entries.len());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_charges_nothing_for_a_call_that_waits_for_its_place() {
    let takes = Duration::from_secs(20);
    let provider = Arc::new(Provider { most: Some(1), takes, ..Provider::new() });
    let program = Arc::new(asks().model("wise", Arc::new(Spoken(provider.clone()))));
    let fleet = Fleet::over(&program).await;
    let served = fleet.begin(&program).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let waiting = fleet.begin(&program).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    fleet.runtime.shutdown().await;
    assert_eq!(provider.sent().len(), 1);
    assert_eq!(fleet.setbacks(served).await, [Setback::Stopped]);
    assert_eq!(fleet.setbacks(waiting).await, [Setback::NotSent]);
}
