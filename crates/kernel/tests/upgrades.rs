//! Another build of a Loop takes an open Run over, or leaves it as it is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod steps;

use loopd_kernel::budget::Limits;
use loopd_kernel::machine::{Input, MachineError, Refused};
use loopd_kernel::replay::{ReplayError, Replayer, Strictness};
use loopd_kernel::upgrade::{Fit, Unfit, fit};
use loopd_kernel::{Decision, Event, Failure, Upgrade};
use steps::{Bench, build};

fn waits(event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::SignalReceived { name, .. } if name == "end" => Decision::finish(&1),
        _ => Decision::wait("go"),
    })
}

fn speaks(event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::SignalReceived { name, .. } if name == "end" => Decision::finish(&2),
        _ => Decision::wait("go").and(loopd_kernel::Action::Speak("hello".into())),
    })
}

fn open_run() -> Bench {
    let mut bench = Bench::new(waits, None);
    bench.start(Limits::default());
    signal(&mut bench, "go");
    bench
}

fn signal(bench: &mut Bench, name: &str) {
    bench.apply(Input::Signal { name: name.into(), body: "1".into() });
}

fn adopt(bench: &mut Bench, version: &'static str, schema: u32) -> Result<(), MachineError> {
    bench.definition = build(speaks, version, schema, Upgrade::Adopt);
    bench.try_apply(Input::ChangeDefinition).map(drop)
}

#[test]
fn a_newer_build_takes_an_open_run_over_and_the_older_one_takes_it_back() {
    let mut bench = open_run();
    adopt(&mut bench, "1.1", 1).unwrap();
    assert_eq!(bench.projection().version, "1.1");
    signal(&mut bench, "go");
    bench.definition = build(waits, "1", 1, Upgrade::Adopt);
    bench.apply(Input::ChangeDefinition);
    signal(&mut bench, "end");
    assert_eq!(bench.kinds().matches("definition_changed").count(), 2);
    for (definition, decisions) in
        [(build(waits, "1", 1, Upgrade::Adopt), 3), (build(speaks, "1.1", 1, Upgrade::Adopt), 1)]
    {
        let mut replayer = Replayer::new(bench.projection().run, Some(&*definition), Strictness::Strict).changing(true);
        bench.entries.iter().try_for_each(|entry| replayer.take(entry)).unwrap();
        assert_eq!(
            (replayer.decisions(), replayer.foreign()),
            (decisions, 4 - decisions),
            "each build answers for its own"
        );
    }
    let other = build(speaks, "1", 1, Upgrade::Adopt);
    let mut replayer = Replayer::new(bench.projection().run, Some(&*other), Strictness::Strict).changing(true);
    let error = bench.entries.iter().try_for_each(|entry| replayer.take(entry)).unwrap_err();
    assert!(matches!(error, ReplayError::Divergence(_)), "{error}");
}

#[test]
fn a_state_of_the_schema_before_is_migrated_in_the_journal() {
    let mut bench = open_run();
    let before = bench.projection().state.clone();
    adopt(&mut bench, "1.1", 2).unwrap();
    assert_eq!(bench.projection().state, format!("{before}0"));
    let older = build(waits, "1", 1, Upgrade::Adopt);
    assert_eq!(fit(bench.projection(), &*older), Err(Unfit::NewerState { recorded: 2, ours: 1 }));
    signal(&mut bench, "go");
    assert_eq!(bench.projection().state, format!("{}", before.parse::<u64>().unwrap() * 10 + 1));
}

#[test]
fn what_does_not_fit_leaves_the_run_as_it_is() {
    type Check = fn(&Unfit) -> bool;
    let cases: [(_, Check); 3] = [
        (build(waits, "2", 1, Upgrade::Adopt), |unfit| matches!(unfit, Unfit::Major { .. })),
        (build(waits, "1.1", 1, Upgrade::Pin), |unfit| matches!(unfit, Unfit::Pinned { .. })),
        (build(waits, "1.1", 3, Upgrade::Adopt), |unfit| matches!(unfit, Unfit::Migration(_))),
    ];
    for (definition, expected) in cases {
        let mut bench = open_run();
        let before = bench.projection().clone();
        bench.definition = definition;
        match bench.try_apply(Input::ChangeDefinition).unwrap_err() {
            MachineError::Refused(Refused::Unfit(unfit)) => assert!(expected(&unfit), "{unfit}"),
            other => panic!("{other}"),
        }
        assert_eq!(bench.projection(), &before);
    }
    let mut bench = open_run();
    bench.definition = build(waits, "1", 1, Upgrade::Pin);
    assert_eq!(fit(bench.projection(), &*bench.definition), Ok(Fit::Same), "its own definition drives a pinned run");
    bench.apply(Input::ChangeDefinition);
    assert!(!bench.kinds().contains("definition_changed"));
}
