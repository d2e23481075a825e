//! Reserve before spending: spent + reserved never passes a cap, under any parallelism, as long as
//! providers keep to their bound; what passes the bound is reported exactly and stops the next call.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod steps;

use loopd_kernel::budget::Limits;
use loopd_kernel::machine::{Input, Settling};
use loopd_kernel::model::{ModelCall, ModelReply};
use loopd_kernel::projection::Status;
use loopd_kernel::units::Price;
use loopd_kernel::{Action, Decision, Event, Failure, MicroUsd, Outcome, Usage};
use proptest::prelude::*;
use steps::Bench;

/// Four model calls at once, each iteration.
fn four_calls(event: Event) -> Result<Decision, Failure> {
    let call = || Action::CallModel(ModelCall { max_output_tokens: 20, ..ModelCall::prompt("m", "x") });
    Ok(match event {
        Event::IterationStarted { .. } => Decision::none().and(call()).and(call()).and(call()).and(call()),
        _ => Decision::none(),
    })
}

const PRICE: Price = Price { input: 1_000_000, cache_read: 0, cache_write: 0, output: 1_000_000, reasoning: 0 };

fn landed(usage: Option<Usage>) -> (Settling, Option<Usage>, Option<MicroUsd>) {
    let reply = serde_json::to_string(&ModelReply::text("ok")).unwrap();
    (Settling::Landed(reply), usage, usage.map(|usage| PRICE.cost(&usage)))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]
    #[test]
    fn a_cap_holds_under_parallel_calls(
        cap in 1_u64..2_000,
        outputs in proptest::collection::vec(0_u64..20, 1..40),
        order in proptest::collection::vec(0_usize..4, 1..40),
    ) {
        let mut bench = Bench::new(four_calls, Some(PRICE));
        let limits = Limits { micro_usd: Some(MicroUsd(cap)), iterations: Some(20), ..Limits::default() };
        bench.start(limits);
        for (output, pick) in outputs.iter().zip(order.iter().cycle()) {
            let ledger = bench.projection().ledger;
            prop_assert!(ledger.spent.plus(ledger.reserved) <= MicroUsd(cap), "{ledger:?}");
            let open = &bench.projection().open;
            let Some(call) = open.get(pick % open.len().max(1)).map(|call| call.id) else { break };
            let reserve = bench.projection().call(call).unwrap().reserved();
            // Within the bound: never more input than was reserved, never more output than was allowed.
            let intent = bench.projection().call(call).unwrap().intent.clone().unwrap();
            let allowed = intent.max_output.unwrap_or(20);
            let output = (*output).min(allowed);
            let usage = Usage { input: reserve.tokens - allowed, output, ..Usage::default() };
            let (settling, usage, cost) = landed(Some(usage));
            bench.apply(Input::Settle { call, settling, usage, cost });
        }
        let ledger = bench.projection().ledger;
        prop_assert!(ledger.spent.plus(ledger.reserved) <= MicroUsd(cap));
        prop_assert_eq!(ledger.overshoot, MicroUsd(0));
        prop_assert!(!matches!(bench.projection().status, Status::Ended(_)));
    }
}

#[test]
fn a_provider_that_reports_more_than_its_bound_shows_as_overshoot_and_stops_the_next_call() {
    let mut bench = Bench::new(four_calls, Some(PRICE));
    bench.start(Limits { micro_usd: Some(MicroUsd(400)), ..Limits::default() });
    let first = bench.projection().open[0].clone();
    let over = Usage { input: first.reserved().tokens + 500, ..Usage::default() };
    let (settling, usage, cost) = landed(Some(over));
    bench.apply(Input::Settle { call: first.id, settling, usage, cost });
    assert_eq!(bench.projection().ledger.overshoot, MicroUsd(500));
    while let Some(call) = bench.projection().open.first().map(|call| call.id) {
        let (settling, usage, cost) = landed(Some(Usage::default()));
        bench.apply(Input::Settle { call, settling, usage, cost });
    }
    let Status::Parked(Outcome::BudgetExceeded { breach }) = &bench.projection().status else { panic!() };
    assert_eq!((breach.limit, breach.used > 400), (400, true));
}

#[test]
fn unknown_usage_is_charged_at_the_reservation_and_never_zero() {
    let mut bench = Bench::new(four_calls, Some(PRICE));
    bench.start(Limits::default());
    let first = bench.projection().open[0].clone();
    let (settling, ..) = landed(None);
    bench.apply(Input::Settle { call: first.id, settling, usage: None, cost: None });
    let ledger = bench.projection().ledger;
    assert_eq!(ledger.spent, first.reserved().micro_usd);
    assert_eq!(ledger.charged_tokens, first.reserved().tokens);
}

#[test]
fn an_unknown_price_under_a_money_limit_is_refused_before_the_first_call() {
    fn one_call(event: Event) -> Result<Decision, Failure> {
        match event {
            Event::IterationStarted { .. } => Ok(Decision::model(ModelCall::prompt("m", "x"))),
            other => Err(Failure::unexpected(&other)),
        }
    }
    let mut bench = Bench::new(one_call, None);
    bench.start(Limits { micro_usd: Some(MicroUsd(1_000_000)), ..Limits::default() });
    let Status::Ended(Outcome::Failed { failure }) = &bench.projection().status else { panic!() };
    assert_eq!(failure.code, "model.unpriced");
    assert_eq!(bench.permits, 0);
}
