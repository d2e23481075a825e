//! A program of its own beside loopctl: it pays, once, and writes into a ledger that it did.

use super::world::{PATIENCE, World, pause};
use loopd_kernel::machine::{Admission, ToolTerms};
use loopd_kernel::model::ToolOffer;
use loopd_kernel::{Cx, Decision, EffectClass, Event, Failure, Limits, Loop, RunId, erase};
use loopd_runtime::{CallContext, Config, FixedPrograms, Program, RunEnd, Runtime, Started, Tool, ToolError};
use loopd_store::StoreError;
use loopd_store_sqlite::SqliteStore;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the target takes.
const TRANSFER: Duration = Duration::from_secs(2);

struct Pay;

impl Loop for Pay {
    type Input = String;
    type State = ();
    type Output = String;

    fn name(&self) -> &str {
        "pay"
    }

    fn init(&self, _: String) -> Result<(), Failure> {
        Ok(())
    }

    fn transition(&self, _: &Cx, (): &mut (), event: Event) -> Result<Decision, Failure> {
        match event {
            Event::IterationStarted { .. } => Ok(Decision::tool("transfer", &"7 dollars to Ada")),
            Event::ToolReturned(returned) => Ok(Decision::finish(&returned.json::<String>()?)),
            other => Err(Failure::unexpected(&other)),
        }
    }
}

/// A transfer that lands some time after it was sent.
struct Transfer {
    offer: ToolOffer,
    ledger: PathBuf,
}

#[async_trait::async_trait]
impl Tool for Transfer {
    fn offer(&self) -> &ToolOffer {
        &self.offer
    }

    fn terms(&self) -> ToolTerms {
        ToolTerms { class: EffectClass::Once, timeout_ms: 600_000 }
    }

    async fn call(&self, args: &str, _: &CallContext) -> Result<String, ToolError> {
        tokio::time::sleep(TRANSFER).await;
        let ledger = File::options().append(true).create(true).open(&self.ledger);
        let written = ledger.and_then(|mut ledger| writeln!(ledger, "{args}"));
        written.map_err(|error| ToolError::in_doubt("ledger", error.to_string()))?;
        Ok("\"paid\"".into())
    }
}

fn program(folder: &Path) -> Arc<Program> {
    let offer = ToolOffer { name: "transfer".into(), description: String::new(), parameters: "{}".into() };
    let transfer = Transfer { offer, ledger: folder.join("ledger.txt") };
    Arc::new(Program::new(erase(Pay, Vec::new())).tool(Arc::new(transfer)))
}

/// Drives the store in `folder` with `work`, in this process.
fn with_runtime<T>(folder: &Path, store: SqliteStore, work: impl AsyncFnOnce(&Runtime) -> T) -> T {
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    threads.expect("threads").block_on(async {
        let programs = Arc::new(FixedPrograms::new([program(folder)]));
        let config = Config { claims: false, ..Config::default() };
        let runtime = Runtime::builder(Arc::new(store), programs).config(config).start().await.expect("a runtime");
        let done = work(&runtime).await;
        runtime.shutdown().await;
        done
    })
}

/// Starts a payment and drives it as far as it goes. Says how that ended.
pub fn pays(folder: &Path) -> String {
    let store = SqliteStore::open_driver(folder.join(".loopd/store.db")).expect("a store");
    with_runtime(folder, store, async |runtime| {
        let admission =
            Admission { tenant: "default".into(), input: "\"pay\"".into(), limits: Limits::default(), key: None };
        let started = runtime.start(&program(folder), admission).await.expect("started");
        let Started::New(driven) = started else { panic!("it is new") };
        format!("{:?}", driven.wait().await)
    })
}

/// What the ledger holds.
pub fn ledger(world: &World) -> String {
    if world.path("ledger.txt").exists() { world.read("ledger.txt") } else { String::new() }
}

/// Takes the role over as soon as its lease has lapsed.
fn take_over(world: &World) -> SqliteStore {
    let begun = Instant::now();
    loop {
        match SqliteStore::open_driver(world.path(".loopd/store.db")) {
            Ok(store) => return store,
            Err(StoreError::DriverElsewhere(_)) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(begun.elapsed() < PATIENCE, "the lease should have lapsed");
        pause(Duration::from_millis(100));
    }
}

/// Takes the Run over and drives it to its question. Then `meanwhile` happens, and it is driven on though nobody has
/// answered. Returns how the Run stood before and after.
pub fn takes_over(world: &World, run: RunId, meanwhile: impl FnOnce()) -> (RunEnd, RunEnd) {
    with_runtime(&world.path("."), take_over(world), async |runtime| {
        let asked = runtime.resume(run).await.expect("taken over").wait().await;
        meanwhile();
        let RunEnd::Suspended(waits) = &asked else { panic!("it should ask a person: {asked:?}") };
        assert_eq!(waits.questions.len(), 1);
        let ended = runtime.resume(run).await.expect("goes on").wait().await;
        (asked, ended)
    })
}
