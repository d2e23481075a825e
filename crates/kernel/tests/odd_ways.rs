//! Ways off the usual one that cost somebody money, a fact or a Run once, each with the right behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod steps;

use loopd_kernel::budget::{Breach, Dimension, Limits};
use loopd_kernel::child::{ChildNews, LetterBody, Parent, Spawn, Spent};
use loopd_kernel::machine::{Admission, Catalog, Env, Input, ModelTerms, Pace, ProbeAnswer, ToolTerms};
use loopd_kernel::outcome::Interrupt;
use loopd_kernel::{
    Action, CallId, Decision, EffectClass, Epoch, Event, Failure, Machine, Outcome, Projection, RunId, TimeMs, Upgrade,
};
use steps::{Bench, admission, build};

/// A refund tool whose class differs between two builds.
struct Classed(EffectClass);

impl Catalog for Classed {
    fn tool(&self, name: &str) -> Option<ToolTerms> {
        (name == "refund").then_some(ToolTerms { class: self.0, timeout_ms: 1_000 })
    }
    fn dedup_for_ms(&self, _: &str) -> Option<u64> {
        (self.0 == EffectClass::Keyed).then_some(3_600_000)
    }
    fn model(&self, _: &str) -> Option<ModelTerms> {
        None
    }
}

fn apply(machine: &mut Machine, input: Input, at: i64, epoch: u64, class: EffectClass) -> usize {
    let definition = build(
        |event| match event {
            Event::IterationStarted { .. } => Ok(Decision::tool("refund", &42)),
            other => Err(Failure::unexpected(&other)),
        },
        "1",
        1,
        Upgrade::Adopt,
    );
    let mut salt = || [9; 32];
    let mut env = Env {
        now: TimeMs(at),
        epoch: Epoch(epoch),
        dispatch_window_ms: 5_000,
        skew_ms: 100,
        pace: Pace::Full,
        catalog: &Classed(class),
        definition: &*definition,
        salt: &mut salt,
    };
    machine.apply(input, &mut env).unwrap().committed().len()
}

/// A keyed refund was sent, its worker died. The next build says that the target takes no keys any more (`once`, or
/// `probed`): the refund may have happened, so it is not simply sent again.
#[test]
fn a_keyed_call_in_doubt_is_not_sent_again_by_a_build_whose_tool_takes_no_key() {
    let mut again = Vec::new();
    for class in [EffectClass::Once, EffectClass::Probed, EffectClass::Read] {
        let mut machine = Machine::new(Projection::new(RunId([1; 16])));
        let start: Admission = admission("in", Limits::default());
        assert_eq!(apply(&mut machine, Input::Start(start), 1_000, 1, EffectClass::Keyed), 1);
        assert_eq!(apply(&mut machine, Input::Recover, 20_000, 2, class), 0);
        if apply(&mut machine, Input::Continue, 20_001, 2, class) > 0 {
            again.push(class.name());
        }
    }
    assert!(again.is_empty(), "sent a second time, without anybody having looked, as {again:?}");
}

fn news(bench: &Bench, name_index: usize, outcome: Outcome, spent: Spent) -> Input {
    let (call, child) = bench.projection().children().nth(name_index).unwrap();
    Input::News(ChildNews { call, child: child.run, outcome, spent })
}

fn parked(limit: u64) -> Outcome {
    let breach = Breach { dimension: Dimension::Tokens, limit, used: limit, needed: 1 };
    Outcome::BudgetExceeded { breach }
}

const HUNDRED: Limits = Limits { iterations: None, tokens: Some(100), micro_usd: None, wall_ms: None, retries: None };

fn twins(event: Event) -> Result<Decision, Failure> {
    let slice = Limits { tokens: Some(20), ..Limits::default() };
    let child = || Action::Spawn(Spawn { limits: slice, ..Spawn::new("twin", "by-event", "\"in\"") });
    Ok(match event {
        Event::IterationStarted { .. } => Decision::none().and(child()).and(child()),
        Event::ChildParked { .. } => {
            let by = Limits { tokens: Some(10), ..Limits::default() };
            Decision::none().and(Action::RaiseChild { child: "twin".into(), by })
        }
        other => return Err(Failure::unexpected(&other)),
    })
}

/// The child whose slice grows in the parent's books must be the child that hears of it.
#[test]
fn the_child_that_is_raised_is_the_one_that_hears_of_it() {
    let mut bench = Bench::new(twins, None);
    bench.start(HUNDRED);
    assert_eq!(bench.projection().children().count(), 2);
    let input = news(&bench, 1, parked(20), Spent::default());
    bench.apply(input);
    let grown = bench.projection().children().find(|(_, child)| child.limits.tokens == Some(30)).map(|(_, c)| c.run);
    let told: Vec<RunId> = bench.last.letters.iter().map(|letter| letter.to).collect();
    match grown {
        Some(grown) => assert_eq!(told, [grown], "one child grew in the books, the other one was told"),
        None => assert_eq!(bench.projection().ledger.reserved_tokens, 40, "nobody grew, nothing may be reserved"),
    }
}

/// A person has raised the parked child to 1000; "give it 10 more" of its parent must not take that back.
#[test]
fn raising_a_child_never_lowers_its_limits() {
    fn raises(event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { .. } => {
                let limits = Limits { tokens: Some(20), ..Limits::default() };
                Decision::none().and(Action::Spawn(Spawn { limits, ..Spawn::new("one", "by-event", "\"in\"") }))
            }
            Event::ChildParked { .. } => {
                let by = Limits { tokens: Some(10), ..Limits::default() };
                Decision::none().and(Action::RaiseChild { child: "one".into(), by })
            }
            other => return Err(Failure::unexpected(&other)),
        })
    }
    let mut parent = Bench::new(raises, None);
    parent.start(HUNDRED);
    let input = news(&parent, 0, parked(20), Spent::default());
    parent.apply(input);
    let LetterBody::Reopen { raise, .. } = parent.last.letters[0].body.clone() else { panic!() };

    let mut child = Bench::new(|_| Ok(Decision::wait("x")), None);
    let admission = admission("in", Limits { tokens: Some(20), ..Limits::default() });
    let of = Parent { run: RunId([9; 16]), call: CallId(1), depth: 1 };
    child.apply(Input::Born { admission, parent: of, refused: None });
    child.apply(Input::Park(Interrupt::Shutdown));
    let by_person = Limits { tokens: Some(1_000), ..Limits::default() };
    child.apply(Input::Reopen { actor: "ann".into(), raise: by_person });
    child.apply(Input::Reopen { actor: "parent".into(), raise });
    let now = child.projection().limits.tokens.unwrap();
    assert!(now >= 1_000, "the parent's raise lowered the limit from 1000 to {now}");
}

/// The clock of the worker that took over is set back behind the Journal: the target must not be asked, and an Entry
/// written, again and again without a pause.
#[test]
fn a_clock_that_was_set_back_does_not_probe_in_a_circle() {
    let mut bench = Bench::new(
        |event| match event {
            Event::IterationStarted { .. } => Ok(Decision::tool("move", &42)),
            other => Err(Failure::unexpected(&other)),
        },
        None,
    );
    bench.start(Limits::default());
    bench.now = 60_000;
    bench.recover();
    assert_eq!(bench.last.probes.len(), 1);
    // The Journal stands at 60 s; the wall clock now says 2 s.
    bench.now = 2_000;
    let mut asked = 1;
    while !bench.last.probes.is_empty() && asked < 20 {
        let asked_at = TimeMs(bench.now);
        bench.apply(Input::Probed { call: CallId(1), asked_at, answer: ProbeAnswer::NotLanded });
        asked += 1;
    }
    assert!(asked < 20, "it was asked {asked} times within {asked} ms, an Entry each time");
}

/// What kills its process is counted, so that it is parked after some recoveries: for that something durable has to
/// come before the first transition, also of a child.
#[test]
fn the_birth_of_a_child_is_durable_before_its_first_transition() {
    let mut bench = Bench::new(|_| Ok(Decision::wait("x")), None);
    let parent = Parent { run: RunId([9; 16]), call: CallId(5), depth: 1 };
    bench.apply(Input::Born { admission: admission("in", Limits::default()), parent, refused: None });
    assert_eq!(bench.kinds(), "started", "transitions ran before the Run had a single durable Entry");
}

/// "A parent that ends first is charged the whole slice" (docs/durability.md, 0010), also one without limits.
#[test]
fn a_parent_without_limits_is_charged_the_slice_of_a_child_that_goes_on() {
    let mut bench = Bench::new(
        |event| match event {
            Event::IterationStarted { .. } => {
                let limits = Limits { tokens: Some(60), ..Limits::default() };
                Ok(Decision::none().and(Action::Spawn(Spawn { limits, ..Spawn::new("one", "by-event", "\"in\"") })))
            }
            Event::SignalReceived { .. } => Ok(Decision::finish(&1)),
            other => Err(Failure::unexpected(&other)),
        },
        None,
    );
    bench.start(Limits::default());
    bench.apply(Input::Signal { name: "enough".into(), body: "1".into() });
    assert_eq!(bench.projection().ledger.tokens(), 60, "its totals say that nothing was spent");
}

/// A Run has decided to finish and waits for a payment in flight; somebody cancels it meanwhile.
#[test]
fn a_run_that_was_about_to_finish_can_be_cancelled() {
    let mut bench = Bench::new(
        |event| match event {
            Event::IterationStarted { .. } => {
                Ok(Decision::tool("pay", &1).and(Action::Wait { signals: vec!["enough".into()], timeout_ms: None }))
            }
            Event::SignalReceived { .. } => Ok(Decision::finish(&1)),
            other => Err(Failure::unexpected(&other)),
        },
        None,
    );
    bench.start(Limits::default());
    bench.apply(Input::Signal { name: "enough".into(), body: "1".into() });
    assert!(bench.projection().finishing.is_some());
    bench.apply(Input::Cancel { actor: "ann".into(), reason: "no".into() });
    let last = bench.try_apply(steps::landed(1, "7"));
    assert!(last.is_ok(), "{last:?}");
    assert!(bench.projection().outcome().is_some());
}

/// "Three unclear answers" (docs/durability.md): one that only came too early is none.
#[test]
fn an_early_no_does_not_count_as_an_unclear_answer() {
    let mut bench = Bench::new(
        |event| match event {
            Event::IterationStarted { .. } => Ok(Decision::tool("move", &42)),
            other => Err(Failure::unexpected(&other)),
        },
        None,
    );
    bench.start(Limits::default());
    bench.recover();
    let asks = |bench: &mut Bench, answer| {
        let asked_at = TimeMs(bench.now);
        bench.apply(Input::Probed { call: CallId(1), asked_at, answer });
        bench.projection().questions.len()
    };
    assert_eq!(asks(&mut bench, ProbeAnswer::NotLanded), 0);
    bench.now = bench.projection().wake_at().unwrap().0;
    for n in 1..=2 {
        let questions = asks(&mut bench, ProbeAnswer::Unclear("down".into()));
        assert_eq!(questions, 0, "a person is asked after {n} unclear answers");
        bench.now = bench.projection().wake_at().unwrap().0;
    }
}

/// A payment that landed, and whose result then could not be read (`Disposition::Landed`), has not failed: a Loop that
/// hears "failed" pays again.
#[test]
fn a_payment_that_landed_is_not_called_failed() {
    let mut bench = Bench::new(
        |event| match event {
            Event::IterationStarted { .. } => Ok(Decision::tool("pay", &42)),
            Event::CallFailed { .. } => Ok(Decision::tool("pay", &42)),
            other => Err(Failure::unexpected(&other)),
        },
        None,
    );
    bench.start(Limits::default());
    let again = bench.apply(steps::failed(1, loopd_kernel::failure::Disposition::Landed)).len();
    assert_eq!(again, 0, "the loop was told that it failed, and pays again");
}

/// "Whoever passes an answer on is told so before it is written down" (0012): what `accepts` lets through, the Run
/// takes. A Run that is about to end refuses `retry`, and then nobody is told.
#[test]
fn an_answer_that_is_passed_on_is_taken() {
    use loopd_kernel::machine::accepts;
    use loopd_kernel::question::QuestionEnd;
    let mut bench = Bench::new(
        |event| match event {
            Event::IterationStarted { .. } => Ok(Decision::tool("pay", &42)),
            other => Err(Failure::unexpected(&other)),
        },
        None,
    );
    bench.start(Limits::default());
    bench.recover();
    bench.apply(Input::Cancel { actor: "ann".into(), reason: "no".into() });
    bench.now += 100_000;
    let open = bench.projection().questions[0].clone();
    let value = r#"{"call":"retry"}"#;
    let outside = accepts(&open, QuestionEnd::Answered, value, TimeMs(bench.now), 100).is_ok();
    let (end, actor) = (QuestionEnd::Answered, String::from("ann"));
    let inside = bench
        .try_apply(Input::Answer { question: open.id, end, actor, value: value.into(), given_at: TimeMs(bench.now) })
        .is_ok();
    assert_eq!(outside, inside, "accepted outside, refused and thrown away inside");
}
