//! A model call whose back-off is over and which does not fit the budget beside a Call in flight waits for that Call,
//! and does so without looking at the clock again and again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use loopd_kernel::budget::Limits;
use loopd_kernel::machine::ModelTerms;
use loopd_kernel::model::{ModelCall, ModelReply};
use loopd_kernel::units::Price;
use loopd_kernel::{Action, Decision, EffectClass, Event, MicroUsd, Usage};
use loopd_runtime::*;
use loopd_store::MemoryStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use world::port::Port;
use world::{CountedEntropy, VirtualClock, World, show_end};

/// Cut at first (its usage unknown, so charged at the reservation), then answers.
struct CutOnce(AtomicU32);

#[async_trait::async_trait]
impl Model for CutOnce {
    fn terms(&self) -> ModelTerms {
        let price = Price { input: 1_000_000, output: 1_000_000, ..Price::default() };
        ModelTerms { price: Some(price), timeout_ms: 60_000, max_attempts: 3 }
    }
    async fn call(&self, _: ModelRequest, _: CallContext) -> Result<ModelAnswer, ModelError> {
        if self.0.fetch_add(1, Ordering::SeqCst) == 0 {
            return Err(ModelError::Interrupted { message: "cut".into(), usage: None });
        }
        Ok(ModelAnswer {
            reply: ModelReply::text("yes"),
            usage: Some(Usage { input: 1, output: 1, ..Usage::default() }),
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_room_in_the_budget_does_not_make_the_worker_spin() {
    let world = World::new(|_, _, event| {
        Ok(match event {
            Event::IterationStarted { iteration: 1 } => {
                let call = ModelCall::prompt("cut", "x");
                Decision::none().and(Action::CallModel(call)).and_tool("pay", &1)
            }
            Event::IterationStarted { .. } => Decision::finish(&"done"),
            _ => Decision::none(),
        })
    })
    .tool_taking("pay", EffectClass::Once, 60_000);
    let program = Arc::new(world.program().clone().model("cut", Arc::new(CutOnce(AtomicU32::new(0)))));
    let port = Port::new(MemoryStore::new());
    let spins = port.spins.clone();
    let programs = Arc::new(FixedPrograms::new([program.clone()]));
    let runtime = Runtime::builder(Arc::new(port), programs)
        .world(Arc::new(VirtualClock::default()), Arc::new(CountedEntropy::default()))
        .start()
        .await
        .unwrap();
    // The first attempt takes the whole budget: it was cut, and is charged as if it had cost all that it might.
    let limits = Limits { micro_usd: Some(MicroUsd(1_000)), ..Limits::default() };
    let admission = loopd_kernel::machine::Admission { tenant: "t".into(), input: "\"in\"".into(), limits, key: None };
    let Started::New(driven) = runtime.start(&program, admission).await.unwrap() else { panic!() };
    let end = tokio::time::timeout(Duration::from_secs(600), driven.wait()).await;
    assert!(!spins.load(Ordering::SeqCst), "the worker asked the store 10,000 times within one millisecond");
    assert!(show_end(&end.unwrap()).contains("BudgetExceeded"));
}
