//! Probed Calls that may have happened, results that come late, and answers that come too early.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod steps;

use loopd_kernel::budget::Limits;
use loopd_kernel::failure::Disposition;
use loopd_kernel::machine::{Input, MachineError, ProbeAnswer, Refused};
use loopd_kernel::projection::Status;
use loopd_kernel::question::{Ask, QuestionEnd};
use loopd_kernel::{CallId, Decision, Epoch, Event, Failure, Outcome, QuestionId, TimeMs};
use steps::{Bench, failed, landed};

fn one(tool: &'static str) -> fn(Event) -> Result<Decision, Failure> {
    match tool {
        "move" => |event| first_then_end("move", event),
        "shift" => |event| first_then_end("shift", event),
        _ => |event| first_then_end("pay", event),
    }
}

fn first_then_end(tool: &str, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::tool(tool, &42),
        Event::ToolReturned(returned) => Decision::finish(&returned.output),
        Event::CallFailed { failure, .. } => Decision::finish(&failure.code),
        other => return Err(Failure::unexpected(&other)),
    })
}

fn started(tool: &'static str) -> Bench {
    let mut bench = Bench::new(one(tool), None);
    assert_eq!(bench.start(Limits::default()).len(), 1);
    bench
}

/// A Run whose worker died with the Call open, and whose next worker goes on.
fn recovered(tool: &'static str) -> Bench {
    let mut bench = started(tool);
    assert_eq!(bench.recover().len(), 0, "nothing is sent before the target was asked");
    bench
}

fn probed(bench: &mut Bench, answer: ProbeAnswer) -> usize {
    let asked_at = TimeMs(bench.now);
    bench.apply(Input::Probed { call: CallId(1), asked_at, answer }).len()
}

fn output(bench: &Bench) -> &str {
    let Status::Ended(Outcome::Completed { output }) = &bench.projection().status else {
        panic!("{:?}", bench.projection().status)
    };
    output
}

#[test]
fn what_the_target_has_is_settled_without_sending_again() {
    let mut bench = recovered("move");
    assert_eq!(bench.last.probes.len(), 1);
    probed(&mut bench, ProbeAnswer::Landed("\"ref-1\"".into()));
    assert_eq!(output(&bench), r#""\"ref-1\"""#);
    assert_eq!(bench.permits, 1);
}

#[test]
fn not_landed_is_believed_only_after_the_landing_bound() {
    let mut bench = recovered("move");
    let quiet = bench.projection().wanted[0].lands_until.unwrap().0 + 100;
    assert_eq!(quiet, 1_001 + 1_000 + 500 + 100, "intent + timeout + bound + skew");
    assert_eq!(probed(&mut bench, ProbeAnswer::NotLanded), 0, "it may be on its way");
    assert!(bench.projection().is_suspended(), "it waits without a worker");
    // One tick later than that: the answer took one.
    assert_eq!(bench.projection().wake_at(), Some(TimeMs(quiet + 2)));
    bench.now = quiet - 1;
    assert_eq!(probed(&mut bench, ProbeAnswer::NotLanded), 0, "asked at the last moment at which it may land");
    bench.now = bench.projection().wake_at().unwrap().0;
    bench.apply(Input::Continue);
    assert_eq!(bench.last.probes.len(), 1, "it is asked again");
    assert_eq!(probed(&mut bench, ProbeAnswer::NotLanded), 1, "now it is sent again");
    bench.apply(landed(1, "7"));
    assert_eq!(output(&bench), r#""7""#);
}

#[test]
fn without_a_landing_bound_not_landed_is_a_question() {
    let mut bench = recovered("shift");
    assert_eq!(probed(&mut bench, ProbeAnswer::NotLanded), 0);
    assert!(matches!(bench.projection().questions[0].ask, Ask::Resolve { .. }));
    // What it does say is believed without one.
    let mut bench = recovered("shift");
    probed(&mut bench, ProbeAnswer::Landed("7".into()));
    assert_eq!(output(&bench), r#""7""#);
}

#[test]
fn a_target_that_cannot_say_is_asked_three_times_and_then_a_person() {
    let mut bench = recovered("move");
    for _ in 0..2 {
        probed(&mut bench, ProbeAnswer::Unclear("down".into()));
        assert!(bench.projection().questions.is_empty());
        bench.now = bench.projection().wake_at().unwrap().0;
    }
    probed(&mut bench, ProbeAnswer::Unclear("down".into()));
    let Ask::Resolve { reason, .. } = &bench.projection().questions[0].ask else { panic!() };
    assert_eq!(reason, "down");
    assert_eq!(bench.permits, 1);
}

#[test]
fn an_attempt_in_doubt_is_probed_without_a_crash() {
    let mut bench = started("move");
    assert_eq!(bench.apply(failed(1, Disposition::InDoubt)).len(), 0);
    bench.now += 1_000;
    bench.apply(Input::Continue);
    assert_eq!(bench.last.probes.len(), 1);
    probed(&mut bench, ProbeAnswer::Landed("7".into()));
    assert_eq!(output(&bench), r#""7""#);
}

#[test]
fn a_call_that_was_lost_too_often_and_never_landed_fails() {
    let mut bench = started("move");
    for lost in 1..=3 {
        bench.recover();
        bench.now = bench.projection().wanted[0].lands_until.unwrap().0 + 200;
        assert_eq!(probed(&mut bench, ProbeAnswer::NotLanded), usize::from(lost < 3));
    }
    assert_eq!(output(&bench), r#""call.lost""#);
}

#[test]
fn a_cancelled_run_asks_the_target_before_it_ends() {
    let mut bench = recovered("move");
    bench.apply(Input::Cancel { actor: "ann".into(), reason: "enough".into() });
    assert_eq!(bench.projection().status, Status::Open);
    assert_eq!(bench.last.probes.len(), 1);
    probed(&mut bench, ProbeAnswer::Landed("7".into()));
    assert!(matches!(bench.projection().status, Status::Ended(Outcome::Interrupted { .. })));
}

fn late(call: u64, output: &str) -> Input {
    Input::Late { call: CallId(call), epoch: Epoch(1), output: output.into() }
}

#[test]
fn a_late_result_resolves_an_unknown_call_and_withdraws_its_question() {
    let mut bench = recovered("pay");
    assert_eq!(bench.projection().questions.len(), 1);
    bench.apply(late(1, "7"));
    assert!(bench.projection().questions.is_empty());
    assert_eq!(output(&bench), r#""7""#);
    let settled = bench.entries.iter().filter(|entry| entry.kind.name() == "settled").count();
    assert_eq!(settled, 1, "it is no second settlement");
}

#[test]
fn a_late_result_settles_a_call_that_is_about_to_be_sent_again() {
    let mut bench = recovered("move");
    bench.apply(late(1, "7"));
    assert_eq!(output(&bench), r#""7""#);
}

#[test]
fn a_late_result_of_a_settled_or_unsent_call_is_refused() {
    let mut bench = started("pay");
    bench.apply(landed(1, "7"));
    assert_eq!(bench.try_apply(late(1, "8")).unwrap_err(), MachineError::Refused(Refused::Ended));
    let mut bench = started("pay");
    assert_eq!(bench.try_apply(late(2, "8")).unwrap_err(), MachineError::Refused(Refused::NotOpen(CallId(2))));
}

/// What somebody says who looked at the target at `given_at`.
fn answer_of(given_at: i64, value: &str) -> Input {
    let (end, actor) = (QuestionEnd::Answered, String::from("ann"));
    Input::Answer { question: QuestionId(1), end, actor, value: value.into(), given_at: TimeMs(given_at) }
}

fn answer(value: &str) -> Input {
    answer_of(i64::MAX, value)
}

#[test]
fn nobody_can_say_that_a_call_did_not_happen_while_it_may_still_land() {
    for value in [r#"{"call":"failed"}"#, r#"{"call":"retry"}"#] {
        let mut bench = recovered("pay");
        let until = bench.projection().in_doubt[0].lands_until.unwrap().0;
        assert!(matches!(bench.try_apply(answer(value)).unwrap_err(), MachineError::Refused(Refused::BadAnswer(..))));
        bench.now = until + 100 - 1;
        assert!(bench.try_apply(answer(value)).is_err(), "the clock of whoever sent it may be slow");
        bench.apply(answer(value));
        assert!(bench.projection().questions.is_empty());
    }
    // What a person has seen there is there.
    let mut bench = recovered("pay");
    bench.apply(answer(r#"{"call":"landed","output":"7"}"#));
    assert_eq!(output(&bench), r#""7""#);
}

#[test]
fn an_answer_says_nothing_about_the_time_for_which_it_waited() {
    for value in [r#"{"call":"failed"}"#, r#"{"call":"retry"}"#] {
        let mut bench = recovered("pay");
        let until = bench.projection().in_doubt[0].lands_until.unwrap().0;
        bench.now = until + 10_000;
        let early = bench.try_apply(answer_of(until, value)).unwrap_err();
        assert!(matches!(early, MachineError::Refused(Refused::BadAnswer(..))), "{early}");
        bench.apply(answer_of(until + 101, value));
        assert!(bench.projection().questions.is_empty());
    }
}
