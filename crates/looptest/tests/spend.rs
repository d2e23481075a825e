//! Doubles and expectations do not pass where nobody knows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

mod world;
use loopd_kernel::MicroUsd;
use loopd_kernel::machine::ModelTerms;
use loopd_runtime::ModelError;
use looptest::ScriptedModel;
#[tokio::test]
async fn unknown_price_is_not_zero_spend() {
    let model = world::script().terms(ModelTerms { price: None, timeout_ms: 60_000, max_attempts: 1 });
    let fixture = world::asked(&model).await;
    let replayed = looptest::replay_fixture(fixture).strict();
    println!("{:?}", replayed.trajectory().steps.iter().map(|s| (s.kind, s.usage, s.cost)).collect::<Vec<_>>());
    let passed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        replayed.expect_spend_at_most(MicroUsd(0));
    }));
    assert!(passed.is_err(), "spent tokens at an unknown price, and 'at most $0' passes");
}
#[tokio::test]
async fn an_error_behind_the_last_turn_is_given() {
    let model = ScriptedModel::new().asks("price", "{}").fails(ModelError::Unauthorised("revoked".into()));
    let fixture = world::asked(&model).await;
    let replayed = looptest::replay_fixture(fixture).strict();
    let outcome = format!("{:?}", replayed.outcome());
    assert!(outcome.contains("revoked"), "{outcome}");
}
