//! Child Runs: what starts in a parent's commit, what the two tell each other, and who pays.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod steps;

use loopd_kernel::budget::{Breach, Dimension, Limits};
use loopd_kernel::child::{ChildNews, ClosePolicy, LetterBody, MAX_DEPTH, Parent, Recipient, Spawn, Spent, derive_id};
use loopd_kernel::machine::Input;
use loopd_kernel::outcome::Interrupt;
use loopd_kernel::projection::Status;
use loopd_kernel::{Action, CallId, Decision, Event, Failure, MicroUsd, Outcome, RunId, Seq, Usage};
use steps::{Bench, admission};

fn spawns(limits: Limits, close: ClosePolicy) -> Decision {
    let child = Spawn { limits, close, ..Spawn::new("one", "by-event", "\"in\"") };
    Decision::none().and(Action::Spawn(child))
}

fn waits_for_its_child(event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => {
            let half = Limits { tokens: Some(60), micro_usd: Some(MicroUsd(600)), ..Limits::default() };
            spawns(half, ClosePolicy::Cancel)
        }
        Event::ChildEnded { outcome: Outcome::Completed { output }, .. } => Decision::finish(&output),
        Event::ChildParked { .. } => Decision::none()
            .and(Action::RaiseChild { child: "one".into(), by: Limits { tokens: Some(100), ..Limits::default() } }),
        Event::SignalReceived { .. } => Decision::finish(&"without it"),
        other => return Err(Failure::unexpected(&other)),
    })
}

const BUDGET: Limits =
    Limits { iterations: None, tokens: Some(100), micro_usd: Some(MicroUsd(1_000)), wall_ms: None, retries: None };

fn child_id(bench: &Bench) -> RunId {
    bench.projection().children().next().unwrap().1.run
}

fn news(bench: &Bench, outcome: Outcome, tokens: u64, money: u64) -> Input {
    let usage = Usage { input: tokens, ..Usage::default() };
    let spent = Spent { usage, charged_tokens: 0, money: MicroUsd(money) };
    Input::News(ChildNews { call: CallId(1), child: child_id(bench), outcome, spent })
}

fn done(output: &str) -> Outcome {
    Outcome::Completed { output: output.into() }
}

#[test]
fn a_child_starts_with_its_parents_commit_and_takes_a_slice() {
    let mut bench = Bench::new(waits_for_its_child, None);
    assert_eq!(bench.start(BUDGET).len(), 0, "a child is not sent, it is born");
    let birth = &bench.last.births[0];
    assert_eq!(birth.child.run, derive_id(bench.projection().run, Seq(3), 0));
    assert_eq!((birth.parent.call, birth.parent.depth), (CallId(1), 1));
    let ledger = bench.projection().ledger;
    assert_eq!((ledger.reserved_tokens, ledger.reserved), (60, MicroUsd(600)));
    assert!(bench.projection().is_suspended(), "it waits without a worker");
    bench.apply(news(&bench, done("\"7\""), 50, 400));
    let ledger = bench.projection().ledger;
    assert_eq!((ledger.tokens(), ledger.spent, ledger.children), (50, MicroUsd(400), 1));
    assert_eq!((ledger.reserved_tokens, ledger.overshoot_tokens), (0, 0));
    assert!(matches!(&bench.projection().status, Status::Ended(Outcome::Completed { output }) if output.contains('7')));
}

#[test]
fn a_crash_of_the_parent_does_not_touch_the_child() {
    let mut bench = Bench::new(waits_for_its_child, None);
    bench.start(BUDGET);
    assert_eq!(bench.recover().len(), 0);
    assert!(bench.last.births.is_empty() && bench.last.letters.is_empty());
    assert_eq!(bench.projection().children().count(), 1);
    bench.apply(news(&bench, done("1"), 1, 1));
    assert!(matches!(bench.projection().status, Status::Ended(Outcome::Completed { .. })));
}

#[test]
fn a_child_gets_at_most_what_is_left() {
    fn greedy(event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { .. } => {
                let much = Limits { tokens: Some(1_000), ..Limits::default() };
                spawns(much, ClosePolicy::Cancel)
            }
            other => return Err(Failure::unexpected(&other)),
        })
    }
    let mut bench = Bench::new(greedy, None);
    bench.start(BUDGET);
    let given = bench.last.births[0].child.limits;
    assert_eq!((given.tokens, given.micro_usd), (Some(100), Some(MicroUsd(1_000))), "also what it did not ask for");
    let mut bench = Bench::new(greedy, None);
    bench.start(Limits { tokens: Some(0), ..Limits::default() });
    assert!(bench.last.births.is_empty());
    let Status::Parked(Outcome::BudgetExceeded { breach }) = &bench.projection().status else { panic!() };
    assert_eq!(breach.dimension, Dimension::Tokens);
}

#[test]
fn a_parked_child_is_raised_by_what_is_left_and_goes_on() {
    let mut bench = Bench::new(waits_for_its_child, None);
    bench.start(BUDGET);
    let breach = Breach { dimension: Dimension::Tokens, limit: 60, used: 60, needed: 1 };
    bench.apply(news(&bench, Outcome::BudgetExceeded { breach }, 60, 0));
    let LetterBody::Reopen { raise, .. } = &bench.last.letters[0].body else { panic!() };
    assert_eq!(raise.tokens, Some(100), "60 it had, 40 were left of the 100 that were asked for");
    assert_eq!(bench.projection().ledger.reserved_tokens, 100);
    bench.apply(news(&bench, done("1"), 90, 0));
    assert_eq!(bench.projection().ledger.tokens(), 90);
}

#[test]
fn a_parent_that_ends_first_cancels_or_abandons_its_children() {
    fn ends(event: Event, close: ClosePolicy) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { .. } => spawns(Limits::default(), close),
            Event::SignalReceived { .. } => Decision::finish(&1),
            other => return Err(Failure::unexpected(&other)),
        })
    }
    for (step, letters) in
        [((|event| ends(event, ClosePolicy::Cancel)) as steps::Step, 1), (|event| ends(event, ClosePolicy::Abandon), 0)]
    {
        let mut bench = Bench::new(step, None);
        bench.start(BUDGET);
        let child = child_id(&bench);
        bench.apply(Input::Signal { name: "enough".into(), body: "1".into() });
        assert!(matches!(bench.projection().status, Status::Ended(Outcome::Completed { .. })));
        assert_eq!(bench.last.letters.len(), letters);
        assert!(bench.last.letters.iter().all(|letter| letter.to == child));
        assert_eq!(bench.projection().ledger.tokens(), 100, "nobody knows what it will consume: its slice is charged");
    }
}

fn born(step: steps::Step, input: &str, depth: u32) -> Bench {
    let mut bench = Bench::new(step, None);
    let parent = Parent { run: RunId([9; 16]), call: CallId(5), depth };
    bench.apply(Input::Born { admission: admission(input, Limits::default()), parent, refused: None });
    if bench.projection().status == Status::Open {
        bench.apply(Input::Continue);
    }
    bench
}

#[test]
fn a_child_tells_its_parent_when_it_ends_and_when_it_is_parked() {
    fn finishes(event: Event) -> Result<Decision, Failure> {
        let to = Recipient::Parent;
        Ok(match event {
            Event::IterationStarted { .. } => {
                Decision::finish(&7).and(Action::Signal { to, name: "almost".into(), body: "1".into() })
            }
            other => return Err(Failure::unexpected(&other)),
        })
    }
    let bench = born(finishes, "in", 1);
    let letters = &bench.last.letters;
    assert!(letters.iter().all(|letter| letter.to == RunId([9; 16])));
    assert!(matches!(&letters[0].body, LetterBody::Signal { name, .. } if name == "almost"));
    let LetterBody::News(news) = &letters[1].body else { panic!() };
    assert_eq!((news.call, &news.outcome), (CallId(5), &done("7")));

    let mut bench = born(|_| Ok(Decision::wait("x")), "in", 1);
    bench.apply(Input::Park(Interrupt::Shutdown));
    let LetterBody::News(news) = &bench.last.letters[0].body else { panic!() };
    assert_eq!(news.outcome, Outcome::Interrupted { interrupt: Interrupt::Shutdown });
}

#[test]
fn a_child_whose_input_is_refused_says_so_to_its_parent() {
    let bench = born(|_| Ok(Decision::wait("x")), "bad", 1);
    assert_eq!(bench.kinds(), "started ended");
    let LetterBody::News(news) = &bench.last.letters[0].body else { panic!() };
    assert!(matches!(&news.outcome, Outcome::Failed { failure } if failure.code == "loop.input"));
}

#[test]
fn children_do_not_nest_for_ever() {
    fn spawn_on(event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { .. } => spawns(Limits::default(), ClosePolicy::Cancel),
            Event::CallFailed { failure, .. } => Decision::finish(&failure.code),
            other => return Err(Failure::unexpected(&other)),
        })
    }
    assert_eq!(born(spawn_on, "in", MAX_DEPTH - 1).last.births.len(), 1);
    let bench = born(spawn_on, "in", MAX_DEPTH);
    let Status::Ended(Outcome::Completed { output }) = &bench.projection().status else { panic!() };
    assert_eq!(output, r#""child.too_deep""#);
}

#[test]
fn news_of_a_child_that_was_let_go_are_refused() {
    let mut bench = Bench::new(waits_for_its_child, None);
    bench.start(BUDGET);
    let mut news = news(&bench, done("1"), 1, 1);
    let Input::News(inner) = &mut news else { panic!() };
    inner.child = RunId([8; 16]);
    assert!(bench.try_apply(news).is_err());
}
