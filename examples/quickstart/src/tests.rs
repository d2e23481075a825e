//! What the Loop does, in memory: the refund is called once, whatever happens.

use super::Refund;
use loopkit::{Disposition, EffectClass, End, Failure, MemoryStore, Outcome, RunId, ToolError};
use looptest::CountingTool;
use std::sync::Arc;

/// The world of one test: a store and the two tools.
struct World {
    store: Arc<MemoryStore>,
    price_of: CountingTool,
    refund: CountingTool,
}

impl World {
    fn new(refund: CountingTool) -> Self {
        let price_of = CountingTool::returning("price_of", EffectClass::Read, "42");
        Self { store: Arc::new(MemoryStore::new()), price_of, refund }
    }

    /// A refund that works.
    fn working() -> Self {
        Self::new(CountingTool::returning("refund", EffectClass::Once, r#""paid $42 back""#))
    }

    async fn start(&self, key: &str) -> End<String> {
        let run = loopkit::run(Refund, "order-7".into()).key(key).store_in(self.store.clone());
        run.tool(self.price_of.clone()).tool(self.refund.clone()).await.expect("it is driven")
    }
}

fn paid() -> End<String> {
    End::Ended(Outcome::Completed { output: "paid $42 back".into() })
}

#[tokio::test]
async fn the_price_is_looked_up_and_refunded() {
    let world = World::working();
    assert_eq!(world.start("refund order-7").await, paid());
    assert_eq!(world.price_of.expect_calls(1).sent()[0].args, r#""order-7""#);
    assert_eq!(world.refund.expect_calls(1).sent()[0].args, "42");
}

#[tokio::test]
async fn one_key_is_one_refund_and_another_key_is_another() {
    let world = World::working();
    for _ in 0..3 {
        assert_eq!(world.start("refund order-7").await, paid());
    }
    world.refund.expect_calls(1).expect_no_effect_twice();
    assert_eq!(world.start("refund order-7 once more").await, paid());
    world.refund.expect_calls(2).expect_no_effect_twice();
}

#[tokio::test]
async fn a_refund_whose_result_is_lost_is_asked_about_and_never_repeated() {
    let lost = |_: &str| Err(ToolError::in_doubt("bank.timeout", "the bank did not answer"));
    let world = World::new(CountingTool::new("refund", EffectClass::Once, lost));
    let mut runs: Vec<RunId> = Vec::new();
    for _ in 0..3 {
        let End::Suspended { run, waits } = world.start("refund order-7").await else {
            panic!("it waits for a person");
        };
        assert_eq!(waits.questions.len(), 1);
        runs.push(run);
    }
    runs.dedup();
    assert_eq!(runs.len(), 1, "the same run each time");
    world.refund.expect_calls(1);
}

#[tokio::test]
async fn a_refund_that_certainly_did_not_happen_fails_the_run() {
    let refused = |_: &str| {
        let failure = Failure::new("bank.refused", "the account is closed");
        Err(ToolError { failure, disposition: Disposition::DidNotHappen })
    };
    let world = World::new(CountingTool::new("refund", EffectClass::Once, refused));
    let End::Ended(Outcome::Failed { failure }) = world.start("refund order-7").await else {
        panic!("it fails");
    };
    assert_eq!(failure.code, "bank.refused");
    world.refund.expect_calls(1);
}

#[tokio::test]
async fn a_recording_of_it_replays() {
    let world = World::new(CountingTool::new("refund", EffectClass::Once, |_| Ok(r#""paid $42 back""#.into())));
    assert_eq!(world.start("refund order-7").await, paid());
    let run = newest(&world.store).await;
    let recorded = looptest::replay_fixture(looptest::record(&*world.store, run).await);
    let replayed = recorded.with_loop(Refund).strict();
    replayed.expect_tools(&["price_of", "refund"]).expect_tool_args(1, 42).expect_iterations_at_most(1);
    assert_eq!(replayed.expect_completed::<String>(), "paid $42 back");
}

async fn newest(store: &MemoryStore) -> RunId {
    use loopd_store::{RunFilter, Store};
    let page = store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await.expect("the store");
    page.items.first().expect("a run").run
}
