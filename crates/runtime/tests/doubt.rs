//! A keyed Call of which an earlier attempt may have happened is neither failed nor cancelled.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

use loopd_kernel::machine::Admission;
use loopd_kernel::record::{Record, Settled};
use loopd_kernel::{Cx, Decision, Digest, Event, Failure, Limits, Loop, Seq, TimeMs, erase};
use loopd_runtime::{Clock, Config, Entropy, FixedPrograms, Program, Runtime, Started, ToolError, keyed_tool_fn};
use loopd_store::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

struct Charge;
impl Loop for Charge {
    type Input = String;
    type State = ();
    type Output = String;
    fn name(&self) -> &str {
        "charge"
    }
    fn init(&self, _: String) -> Result<(), Failure> {
        Ok(())
    }
    fn transition(&self, _: &Cx, (): &mut (), event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::tool("charge", &1),
            Event::ToolReturned(r) => Decision::finish(&r.output),
            other => return Err(Failure::unexpected(&other)),
        })
    }
}
struct Wall(tokio::time::Instant);
impl Clock for Wall {
    fn now(&self) -> TimeMs {
        TimeMs(1_000_000).after(self.0.elapsed().as_millis() as u64)
    }
    fn steady_ms(&self) -> u64 {
        self.0.elapsed().as_millis() as u64
    }
}
#[derive(Default)]
struct Salts(AtomicU64);
impl Entropy for Salts {
    fn salt(&self) -> [u8; 32] {
        Digest::of("s", &[&self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes()]).0
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_keyed_call_in_doubt_does_not_say_that_it_was_never_sent() {
    let store = MemoryStore::new();
    let effects = Arc::new(AtomicU32::new(0));
    let inside = effects.clone();
    let tool = keyed_tool_fn("charge", "Charges.", Duration::from_secs(3600), move |_: u64, _| {
        let inside = inside.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            inside.fetch_add(1, Ordering::SeqCst);
            Err::<String, _>(ToolError::in_doubt("net.cut", "the connection broke after it was sent"))
        }
    });
    let program = Arc::new(Program::new(erase(Charge, Vec::new())).tool(Arc::new(tool)));
    let runtime = Runtime::builder(Arc::new(store.clone()), Arc::new(FixedPrograms::new([program.clone()])))
        .config(Config::default())
        .world(Arc::new(Wall(tokio::time::Instant::now())), Arc::new(Salts::default()))
        .start()
        .await
        .unwrap();
    let admission =
        Admission { tenant: "default".into(), input: "\"in\"".into(), limits: Limits::default(), key: None };
    let Started::New(driven) = runtime.start(&program, admission).await.unwrap() else { panic!() };
    let run = driven.run;
    tokio::time::sleep(Duration::from_millis(500)).await;
    runtime.tell(run, "c", InboxBody::Cancel { actor: "ann".into(), reason: "enough".into() }).await.unwrap();
    let end = driven.wait().await;
    let entries = store.entries(run, Seq(0), 1000).await.unwrap();
    let told: Vec<String> = entries
        .iter()
        .filter_map(|e| match Record::decode(e.kind, &e.record).unwrap() {
            Record::Settled(Settled { how, .. }) => Some(format!("{how:?}: {}", String::from_utf8_lossy(&e.payload))),
            _ => None,
        })
        .collect();
    assert!(effects.load(Ordering::SeqCst) == 1);
    assert!(
        !told.iter().any(|t| t.starts_with("Cancelled")),
        "the target was charged; the journal says {told:?}; {end:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_keyed_call_whose_second_attempt_was_refused_is_still_in_doubt() {
    let store = MemoryStore::new();
    let (tries, effects) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (t, e) = (tries.clone(), effects.clone());
    let tool = keyed_tool_fn("charge", "Charges.", Duration::from_secs(3600), move |_: u64, _| {
        let (t, e) = (t.clone(), e.clone());
        async move {
            if t.fetch_add(1, Ordering::SeqCst) == 0 {
                e.fetch_add(1, Ordering::SeqCst);
                return Err::<String, _>(ToolError::in_doubt("net.cut", "the connection broke after it was sent"));
            }
            Err(ToolError::did_not_happen("net.refused", "connection refused"))
        }
    });
    let program = Arc::new(Program::new(erase(Charge, Vec::new())).tool(Arc::new(tool)));
    let runtime = Runtime::builder(Arc::new(store.clone()), Arc::new(FixedPrograms::new([program.clone()])))
        .config(Config::default())
        .world(Arc::new(Wall(tokio::time::Instant::now())), Arc::new(Salts::default()))
        .start()
        .await
        .unwrap();
    let admission =
        Admission { tenant: "default".into(), input: "\"in\"".into(), limits: Limits::default(), key: None };
    let Started::New(driven) = runtime.start(&program, admission).await.unwrap() else { panic!() };
    let run = driven.run;
    let end = driven.wait().await;
    let entries = store.entries(run, Seq(0), 1000).await.unwrap();
    let told: Vec<String> = entries
        .iter()
        .filter_map(|e| match Record::decode(e.kind, &e.record).unwrap() {
            Record::Settled(Settled { how, .. }) => Some(format!("{how:?}: {}", String::from_utf8_lossy(&e.payload))),
            _ => None,
        })
        .collect();
    assert!(effects.load(Ordering::SeqCst) == 1);
    assert!(
        !told.iter().any(|t| t.starts_with("Failed")),
        "the target was charged; the journal says {told:?}; {end:?}"
    );
}
