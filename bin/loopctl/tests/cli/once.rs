//! A loop in Rust with a tool that may change the world: what no manifest can bring to loopctl.

use crate::world::World;
use loopd_kernel::machine::{Admission, ToolTerms};
use loopd_kernel::model::ToolOffer;
use loopd_kernel::{Cx, Decision, EffectClass, Event, Failure, Limits, Loop, erase};
use loopd_runtime::{CallContext, Config, FixedPrograms, Program, Runtime, Started, Tool, ToolError};
use loopd_store_sqlite::SqliteStore;
use std::sync::Arc;

/// Pays once.
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

/// A transfer whose answer never comes.
struct Transfer(ToolOffer);

#[async_trait::async_trait]
impl Tool for Transfer {
    fn offer(&self) -> &ToolOffer {
        &self.0
    }

    fn terms(&self) -> ToolTerms {
        ToolTerms { class: EffectClass::Once, timeout_ms: 600_000 }
    }

    async fn call(&self, _: &str, _: &CallContext) -> Result<String, ToolError> {
        std::future::pending().await
    }
}

fn program() -> Arc<Program> {
    let offer = ToolOffer { name: "transfer".into(), description: String::new(), parameters: "{}".into() };
    Arc::new(Program::new(erase(Pay, Vec::new())).tool(Arc::new(Transfer(offer))))
}

/// Runs `work` with a runtime over the world's store, and lets everything drop where it stands.
fn with_runtime(world: &World, work: impl AsyncFnOnce(&Runtime)) {
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let threads = threads.expect("threads");
    threads.block_on(async {
        let store = Arc::new(SqliteStore::open_driver(world.path(".loopd/store.db")).expect("a store"));
        let programs = Arc::new(FixedPrograms::new([program()]));
        let config = Config { claims: false, ..Config::default() };
        let runtime = Runtime::builder(store, programs).config(config).start().await.expect("a runtime");
        work(&runtime).await;
    });
}

/// Starts a run that is in its transfer when its process is gone; the next worker finds the call open.
pub fn dies_in_a_call(world: &World) {
    with_runtime(world, async |runtime| {
        let admission =
            Admission { tenant: "default".into(), input: "\"pay\"".into(), limits: Limits::default(), key: None };
        let started = runtime.start(&program(), admission).await.expect("started");
        let Started::New(driven) = started else { panic!("it is new") };
        let mut hints = runtime.store().hints();
        loop {
            let projection = loaded(runtime, driven.run).await;
            if !projection.open.is_empty() {
                break;
            }
            hints.recv().await.expect("a hint");
        }
    });
    with_runtime(world, async |runtime| {
        let last =
            runtime.store().runs(loopd_store::RunFilter { limit: 1, ..Default::default() }).await.expect("a run");
        let driven = runtime.resume(last.items[0].run).await.expect("taken over");
        let _ = driven.wait().await;
        runtime.shutdown().await;
    });
}

/// The program that started it comes back.
pub fn goes_on(world: &World) {
    with_runtime(world, async |runtime| {
        let last =
            runtime.store().runs(loopd_store::RunFilter { limit: 1, ..Default::default() }).await.expect("a run");
        let _ = runtime.resume(last.items[0].run).await.expect("taken over").wait().await;
        runtime.shutdown().await;
    });
}

async fn loaded(runtime: &Runtime, run: loopd_kernel::RunId) -> loopd_kernel::Projection {
    let row = runtime.store().run(run).await.expect("reads").expect("a run");
    loopd_runtime::load(&**runtime.store(), &row).await.expect("loads").projection
}
