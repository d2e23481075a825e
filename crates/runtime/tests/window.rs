//! A worker whose clock jumped past its lease: it intends nothing that it may not send.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

use loopd_kernel::machine::{Admission, ToolTerms};
use loopd_kernel::model::ToolOffer;
use loopd_kernel::{Cx, Decision, Digest, EffectClass, Event, Failure, Kind, Limits, Loop, Seq, TimeMs, erase};
use loopd_runtime::{CallContext, Clock, Config, Entropy, FixedPrograms, Program, Runtime, Started, Tool, ToolError};
use loopd_store::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

struct Two;
impl Loop for Two {
    type Input = String;
    type State = ();
    type Output = String;
    fn name(&self) -> &str {
        "two"
    }
    fn init(&self, _: String) -> Result<(), Failure> {
        Ok(())
    }
    fn transition(&self, _: &Cx, (): &mut (), event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::tool("slow", &1),
            Event::ToolReturned(r) if r.tool == "slow" => Decision::tool("next", &1),
            Event::ToolReturned(_) => Decision::finish(&"done".to_string()),
            other => return Err(Failure::unexpected(&other)),
        })
    }
}
struct T(ToolOffer, u64);
#[async_trait::async_trait]
impl Tool for T {
    fn offer(&self) -> &ToolOffer {
        &self.0
    }
    fn terms(&self) -> ToolTerms {
        ToolTerms { class: EffectClass::Read, timeout_ms: 60_000 }
    }
    async fn call(&self, _: &str, _: &CallContext) -> Result<String, ToolError> {
        tokio::time::sleep(Duration::from_millis(self.1)).await;
        Ok("\"ok\"".into())
    }
}
fn tool(name: &str, ms: u64) -> Arc<dyn Tool> {
    Arc::new(T(ToolOffer { name: name.into(), description: String::new(), parameters: "{}".into() }, ms))
}
struct Wall(tokio::time::Instant, AtomicI64);
impl Clock for Wall {
    fn now(&self) -> TimeMs {
        TimeMs(self.1.load(Ordering::SeqCst)).after(self.0.elapsed().as_millis() as u64)
    }
    // Its jumps are suspends: every clock counts them.
    fn steady_ms(&self) -> u64 {
        self.now().since(TimeMs(0))
    }
}
#[derive(Default)]
struct Salts(AtomicU64);
impl Entropy for Salts {
    fn salt(&self) -> [u8; 32] {
        Digest::of("s", &[&self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes()]).0
    }
}
/// A commit takes two milliseconds, like a flush.
struct Disk(MemoryStore);
#[async_trait::async_trait]
impl Through for Disk {
    fn through(&self) -> &dyn Store {
        &self.0
    }

    async fn commit(&self, batch: Batch) -> Result<Receipt, StoreError> {
        tokio::time::sleep(Duration::from_millis(2)).await;
        self.0.commit(batch).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_laptop_that_slept_writes_no_intents_that_it_cannot_use() {
    let store = MemoryStore::new();
    let clock = Arc::new(Wall(tokio::time::Instant::now(), AtomicI64::new(1_000_000)));
    let program = Arc::new(Program::new(erase(Two, Vec::new())).tool(tool("slow", 1_000)).tool(tool("next", 1)));
    let runtime = Runtime::builder(Arc::new(Disk(store.clone())), Arc::new(FixedPrograms::new([program.clone()])))
        .config(Config::default())
        .world(clock.clone(), Arc::new(Salts::default()))
        .start()
        .await
        .unwrap();
    let admission =
        Admission { tenant: "default".into(), input: "\"in\"".into(), limits: Limits::default(), key: None };
    let Started::New(driven) = runtime.start(&program, admission).await.unwrap() else { panic!() };
    let run = driven.run;
    tokio::time::sleep(Duration::from_millis(500)).await;
    // The lid closes for an hour while a tool runs.
    clock.1.fetch_add(3_600_000, Ordering::SeqCst);
    let end = driven.wait().await;
    let entries = store.entries(run, Seq(0), 100_000).await.unwrap();
    let attempted = entries.iter().filter(|e| e.kind == Kind::Attempted).count();
    assert!(attempted <= 2, "{attempted} intents were made and not sent, {} entries; {end:?}", entries.len());
}
