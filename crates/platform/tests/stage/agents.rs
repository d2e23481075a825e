//! Processes for the engine's tests.

#[path = "steps.rs"]
mod steps;

pub use steps::{Paid, steps};

use super::Stage;
use loopd_kernel::Limits;
use loopd_platform::engine::{Executes, TargetSpec};
use loopd_platform::{Engine, Platform};
use loopd_runtime::{Config, FixedPrograms, Runtime};
use loopd_store::Store;
use std::sync::Arc;

/// A process: an engine and the worker of its Runs.
pub struct Process {
    pub engine: Engine,
    pub runtime: Runtime,
}

impl Stage {
    /// A process that can execute `steps`.
    pub async fn process(&self, paid: &Paid) -> Process {
        self.process_over(Arc::new(self.store.clone()), paid, Vec::new()).await.unwrap()
    }

    pub async fn process_over(&self, store: Arc<dyn Store>, paid: &Paid, more: Vec<TargetSpec>) -> Option<Process> {
        let platform: Platform = self.through(store.clone());
        let program = steps(paid);
        let target = TargetSpec {
            name: "steps".into(),
            description: "Does as it is told.".into(),
            slots: None,
            executes: Ok(Executes::Loop { program: program.clone(), limits: Limits::default(), demo: false }),
        };
        let engine = Engine::new(platform, std::iter::once(target).chain(more).collect()).unwrap();
        let outlet = engine.outlet().await.ok()?;
        let (sender, deltas) = tokio::sync::mpsc::unbounded_channel();
        let runtime = Runtime::builder(store, Arc::new(FixedPrograms::new([program])))
            .config(Config::default())
            .world(self.clock.clone(), self.entropy())
            .outlet(outlet)
            .deltas(sender)
            .start()
            .await
            .ok()?;
        if engine.start(runtime.clone(), deltas).await.is_err() {
            // Its process ends here, and takes nothing over any more.
            runtime.shutdown().await;
            return None;
        }
        Some(Process { engine, runtime })
    }
}
