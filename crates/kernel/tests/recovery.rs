//! What a permit allows and for how long, and what recovery does with Calls that are open.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod steps;

use loopd_kernel::budget::{Dimension, Limits};
use loopd_kernel::failure::Disposition;
use loopd_kernel::machine::{Expired, Input, Settling};
use loopd_kernel::model::ModelCall;
use loopd_kernel::outcome::Interrupt;
use loopd_kernel::projection::Status;
use loopd_kernel::question::Ask;
use loopd_kernel::units::Price;
use loopd_kernel::{Action, CallId, Decision, Event, Failure, MicroUsd, Outcome, TimeMs, ToolCall};
use steps::{Bench, settle};

const PRICE: Price = Price { input: 1_000_000, cache_read: 0, cache_write: 0, output: 1_000_000, reasoning: 0 };

fn pays(event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::tool("pay", &42),
        _ => Decision::none(),
    })
}

fn looks(event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::tool("look", &42),
        _ => Decision::none(),
    })
}

fn asks_a_model(event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::model(ModelCall::prompt("m", "x")),
        Event::CallFailed { failure, .. } => Decision::fail(failure),
        _ => Decision::none(),
    })
}

fn signal() -> Input {
    Input::Signal { name: "hello".into(), body: "1".into() }
}

#[test]
fn a_permit_expires_with_its_dispatch_window() {
    let permit = || {
        let mut bench = Bench::new(pays, None);
        let permit = bench.start(Limits::default()).pop().unwrap();
        (bench.now + 5_000, permit)
    };
    let (send_by, last) = permit();
    assert!(last.send(TimeMs(send_by)).is_ok());
    let (send_by, late) = permit();
    assert_eq!(late.send(TimeMs(send_by + 1)).unwrap_err(), Expired { call: CallId(1) });
}

#[test]
fn an_intent_gives_its_permit_once() {
    let mut bench = Bench::new(pays, None);
    assert_eq!(bench.start(Limits::default()).len(), 1);
    assert_eq!(bench.apply(signal()).len(), 0, "the same call was sent when its own intent was committed");
}

#[test]
fn a_once_call_that_was_open_is_never_sent_again_but_asked_about() {
    let mut bench = Bench::new(pays, None);
    bench.start(Limits::default());
    assert_eq!(bench.recover().len(), 0);
    let Ask::Resolve { call, tool, args, .. } = &bench.projection().questions[0].ask else { panic!() };
    assert_eq!((*call, tool.as_str(), args.as_str()), (CallId(1), "pay", "42"));
}

#[test]
fn a_read_that_was_open_is_sent_again_at_no_charge() {
    let mut bench = Bench::new(looks, None);
    bench.start(Limits::default());
    assert_eq!(bench.recover().len(), 1);
    assert_eq!(bench.projection().ledger.spent, MicroUsd(0));
}

#[test]
fn a_lost_model_call_is_charged_at_its_reservation_each_time_and_given_up_at_last() {
    let mut bench = Bench::new(asks_a_model, Some(PRICE));
    bench.start(Limits::default());
    let reserved = bench.projection().open[0].reserved();
    for lost in 1..=2 {
        assert_eq!(bench.recover().len(), 1, "sent again");
        let ledger = bench.projection().ledger;
        assert_eq!(ledger.spent, MicroUsd(lost * reserved.micro_usd.0), "the attempt was lost, its cost is not");
        assert_eq!(ledger.charged_tokens, lost * reserved.tokens);
        assert_eq!(ledger.reserved, reserved.micro_usd);
    }
    assert_eq!(bench.recover().len(), 0);
    let Status::Ended(Outcome::Failed { failure }) = &bench.projection().status else { panic!() };
    assert_eq!(failure.code, "call.lost");
    assert_eq!(bench.projection().ledger.spent, MicroUsd(3 * reserved.micro_usd.0));
}

#[test]
fn recoveries_in_a_row_without_progress_park_the_run() {
    let mut bench = Bench::new(looks, None);
    bench.start(Limits::default());
    for _ in 0..3 {
        assert_eq!(bench.recover().len(), 1);
    }
    assert_eq!(bench.apply(Input::Recover).len(), 0, "a run that kills its workers takes no further one along");
    let parked = Status::Parked(Outcome::Interrupted {
        interrupt: Interrupt::Poisoned { reason: "4 recoveries in a row without progress".into() },
    });
    assert_eq!(bench.projection().status, parked);
}

#[test]
fn a_result_ends_the_row_of_recoveries() {
    let mut bench = Bench::new(looks, None);
    bench.start(Limits::default());
    for call in 1..=9 {
        assert_eq!(bench.recover().len(), 1);
        assert_eq!(bench.apply(settle(call, Settling::Landed("1".into()))).len(), 1, "the next iteration looks again");
    }
}

fn finishes_beside_a_payment(event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::none().and_tool("pay", &1).and_tool("look", &2),
        Event::ToolReturned(r) => Decision::finish(&r.tool),
        other => return Err(Failure::unexpected(&other)),
    })
}

#[test]
fn a_run_is_not_sealed_while_a_payment_is_in_doubt() {
    let mut bench = Bench::new(finishes_beside_a_payment, None);
    bench.start(Limits::default());
    bench.apply(settle(1, Settling::Failed(Failure::new("tool.timeout", "no answer"), Disposition::InDoubt)));
    bench.apply(settle(2, Settling::Landed("1".into())));
    assert_eq!(bench.projection().status, Status::Open, "sealed over a payment that nobody knows about");
    let question = bench.projection().questions[0].id;
    let end = loopd_kernel::question::QuestionEnd::Answered;
    let value = r#"{"call":"landed","output":"1"}"#.into();
    bench.apply(Input::Answer { question, end, actor: "ann".into(), value, given_at: TimeMs(i64::MAX) });
    let Status::Ended(Outcome::Completed { output }) = &bench.projection().status else { panic!() };
    assert_eq!(output, r#""look""#);
}

#[test]
fn a_run_that_waits_for_its_seal_can_be_cancelled() {
    let mut bench = Bench::new(finishes_beside_a_payment, None);
    bench.start(Limits::default());
    bench.apply(settle(1, Settling::Failed(Failure::new("tool.timeout", "no answer"), Disposition::InDoubt)));
    bench.apply(settle(2, Settling::Landed("1".into())));
    assert!(bench.projection().finishing.is_some());
    bench.apply(Input::Cancel { actor: "ann".into(), reason: "enough".into() });
    let question = bench.projection().questions[0].id;
    let end = loopd_kernel::question::QuestionEnd::Answered;
    let value = r#"{"call":"landed","output":"1"}"#.into();
    bench.apply(Input::Answer { question, end, actor: "ann".into(), value, given_at: TimeMs(i64::MAX) });
    assert!(matches!(bench.projection().status, Status::Ended(Outcome::Interrupted { .. })));
}

#[test]
fn wall_time_stops_the_next_step_and_cuts_a_call_short() {
    let mut bench = Bench::new(looks, None);
    let limits = Limits { wall_ms: Some(700), ..Limits::default() };
    let permit = bench.start(limits).pop().unwrap();
    let started = bench.now;
    // The tool would have a second; the limit leaves it less.
    assert_eq!(permit.send(TimeMs(started)).unwrap().abort_by, TimeMs(started + 700));
    bench.now += 700;
    assert_eq!(bench.apply(settle(1, Settling::Landed("1".into()))).len(), 0);
    let Status::Parked(Outcome::BudgetExceeded { breach }) = &bench.projection().status else { panic!() };
    assert_eq!((breach.dimension, breach.limit, breach.used), (Dimension::WallMs, 700, 701));
}

#[test]
fn a_models_output_is_clamped_to_what_is_left() {
    let mut bench = Bench::new(asks_a_model, Some(PRICE));
    bench.start(Limits { micro_usd: Some(MicroUsd(400)), ..Limits::default() });
    let intent = bench.projection().open[0].intent.clone().unwrap();
    // One token costs one micro-dollar, so that the whole limit is reserved: the input's bound and the rest.
    assert_eq!((intent.reserve.micro_usd, intent.reserve.tokens), (MicroUsd(400), 400));
    let unlimited = {
        let mut bench = Bench::new(asks_a_model, Some(PRICE));
        bench.start(Limits::default());
        bench.projection().open[0].intent.clone().unwrap()
    };
    assert_eq!(unlimited.max_output, None, "nothing is clamped without a limit");
    let input = unlimited.reserve.tokens - ModelCall::prompt("m", "x").max_output_tokens;
    assert_eq!(intent.max_output, Some(400 - input));
}

fn replies_to_a_tool_use(event: Event) -> Result<Decision, Failure> {
    let call = ToolCall { tool: "look".into(), args: "1".into(), reply_to: Some("use-1".into()), cap: None };
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => Decision::none().and(Action::CallTool(call)),
        Event::IterationStarted { .. } => Decision::wait("go"),
        _ => Decision::none(),
    })
}

#[test]
fn a_result_and_an_error_of_the_same_text_are_different_transcripts() {
    let transcript = |settling| {
        let mut bench = Bench::new(replies_to_a_tool_use, None);
        bench.start(Limits::default());
        bench.apply(settle(1, settling));
        bench.projection().transcript
    };
    let result = transcript(Settling::Landed("gone".into()));
    let error = transcript(Settling::Failed(Failure::new("tool.failed", "gone"), Disposition::DidNotHappen));
    assert_eq!((result.items, result.bytes), (error.items, error.bytes));
    assert_ne!(result.digest, error.digest, "a strict replay would not notice the difference");
}
