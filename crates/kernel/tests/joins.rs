//! Parallel Calls whose Events come together, and the retry budget of a Run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod steps;

use loopd_kernel::budget::Limits;
use loopd_kernel::failure::Disposition;
use loopd_kernel::machine::Input;
use loopd_kernel::model::ModelCall;
use loopd_kernel::projection::Status;
use loopd_kernel::record::Setback;
use loopd_kernel::units::Price;
use loopd_kernel::{Action, CallId, Decision, Event, Failure, MicroUsd, Outcome, TimeMs, ToolCall};
use steps::{Bench, failed, landed};

const PRICE: Price = Price { input: 1_000_000, cache_read: 0, cache_write: 0, output: 1_000_000, reasoning: 0 };

fn call(tool: &str, args: u32) -> ToolCall {
    ToolCall::new(tool, &args).unwrap()
}

/// Three looks; says what it hears, in order, in its output.
fn speaks(event: Event, start: fn() -> Decision) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => start(),
        Event::IterationStarted { .. } => Decision::finish(&"done"),
        Event::ToolReturned(returned) => label(returned.call, &returned.output),
        Event::ModelReplied { call, .. } => label(call, "replied"),
        Event::CallFailed { call, failure, .. } => label(call, &failure.code),
        other => return Err(Failure::unexpected(&other)),
    })
}

fn label(call: CallId, text: &str) -> Decision {
    Decision::none().and(Action::Label { key: call.to_string(), value: text.into() })
}

fn labels(bench: &Bench) -> String {
    bench.projection().labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

fn all(event: Event) -> Result<Decision, Failure> {
    speaks(event, || Decision::all((1..=3).map(|n| call("look", n))))
}

fn first(event: Event) -> Result<Decision, Failure> {
    speaks(event, || Decision::first_ok((1..=3).map(|n| call("look", n))))
}

#[test]
fn joined_calls_are_heard_together_and_in_their_own_order() {
    let mut bench = Bench::new(all, None);
    assert_eq!(bench.start(Limits::default()).len(), 3);
    bench.apply(landed(3, "c"));
    bench.apply(failed(1, Disposition::DidNotHappen));
    assert_eq!(labels(&bench), "", "nothing is heard before the last one");
    bench.apply(landed(2, "b"));
    assert_eq!(labels(&bench), "call-1=tool.failed call-2=b call-3=c");
    let consumed: Vec<_> = bench.entries.iter().filter(|entry| entry.kind.name() == "decided").collect();
    let order: Vec<_> = consumed.iter().map(|entry| entry.record.split(',').next().unwrap().to_owned()).collect();
    let settled = |n: u64| format!(r#"{{"consumed":{n}"#);
    // Call 1 settled second and call 3 first: they are consumed in the order in which they were decided.
    assert_eq!(order[1..4], [settled(8), settled(9), settled(7)]);
}

#[test]
fn the_first_that_lands_cancels_the_others_in_its_own_commit() {
    let mut bench = Bench::new(first, None);
    bench.start(Limits::default());
    bench.apply(failed(1, Disposition::DidNotHappen));
    assert_eq!(labels(&bench), "", "another one may still land");
    bench.apply(landed(3, "c"));
    assert_eq!(labels(&bench), "call-3=c", "nobody hears of those that lost");
    assert!(matches!(bench.projection().status, Status::Ended(Outcome::Completed { .. })));
    assert!(bench.kinds().ends_with("settled settled decided iteration_started decided ended"), "{}", bench.kinds());
}

#[test]
fn when_none_can_land_any_more_every_failure_is_heard() {
    let mut bench = Bench::new(first, None);
    bench.start(Limits::default());
    for call in [2, 1, 3] {
        bench.apply(failed(call, Disposition::DidNotHappen));
    }
    assert_eq!(labels(&bench), "call-1=tool.failed call-2=tool.failed call-3=tool.failed");
}

#[test]
fn a_call_that_may_not_be_cut_runs_no_race() {
    fn race(event: Event) -> Result<Decision, Failure> {
        speaks(event, || Decision::first_ok([call("pay", 1), call("look", 2)]))
    }
    let mut bench = Bench::new(race, None);
    assert_eq!(bench.start(Limits::default()).len(), 1, "the look alone");
    bench.apply(landed(2, "b"));
    assert_eq!(labels(&bench), "call-2=b");
}

#[test]
fn a_model_call_that_lost_is_charged_at_its_reservation() {
    fn race(event: Event) -> Result<Decision, Failure> {
        speaks(event, || Decision::first_ok((0..2).map(|_| ModelCall::prompt("m", "x"))))
    }
    let mut bench = Bench::new(race, Some(PRICE));
    bench.start(Limits::default());
    let reserved = bench.projection().open[0].reserved();
    let reply = serde_json::to_string(&loopd_kernel::model::ModelReply::text("hi")).unwrap();
    let settling = loopd_kernel::machine::Settling::Landed(reply);
    let usage = Some(loopd_kernel::Usage { input: 1, ..Default::default() });
    bench.apply(Input::Settle { call: CallId(1), settling, usage, cost: Some(MicroUsd(1)) });
    let ledger = bench.projection().ledger;
    assert_eq!((ledger.spent.0, ledger.charged_tokens), (1 + reserved.micro_usd.0, reserved.tokens));
    assert_eq!((ledger.reserved, ledger.model_calls), (MicroUsd(0), 2));
}

#[test]
fn a_run_that_has_used_its_retries_fails_the_call() {
    fn asks(event: Event) -> Result<Decision, Failure> {
        speaks(event, || {
            Decision::model(ModelCall::prompt("m", "x")).and(Action::CallModel(ModelCall::prompt("m", "y")))
        })
    }
    let mut bench = Bench::new(asks, None);
    bench.start(Limits { retries: Some(1), ..Limits::default() });
    let retry = |call| Input::Retry {
        call: CallId(call),
        failure: Failure::new("model.unavailable", "down"),
        setback: Setback::Failed,
        usage: None,
        cost: None,
        retry_at: TimeMs(0),
    };
    assert_eq!(bench.apply(retry(1)).len(), 1, "the first is repeated");
    assert_eq!(bench.apply(retry(2)).len(), 0, "the budget is the run's, not the call's");
    assert_eq!(labels(&bench), "call-2=model.unavailable");
}
