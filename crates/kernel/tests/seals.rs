//! A Journal whose bytes verify and whose facts contradict each other does not fold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod steps;

use loopd_kernel::budget::Limits;
use loopd_kernel::patch::StatePatch;
use loopd_kernel::projection::FoldProblem;
use loopd_kernel::record::Record;
use loopd_kernel::{Decision, Digest, Entry, Event, Failure, Kind, Outcome, Projection};
use steps::Bench;

fn finishes(event: Event) -> Result<Decision, Failure> {
    match event {
        Event::IterationStarted { .. } => Ok(Decision::finish(&"done")),
        other => Err(Failure::unexpected(&other)),
    }
}

/// Folds a whole Journal after `edit` has changed the record of the Entry of this kind.
#[track_caller]
fn check(kind: Kind, edit: impl FnOnce(&mut Record), expected: Result<(), FoldProblem>) {
    let mut bench = Bench::new(finishes, None);
    bench.start(Limits::default());
    let mut entries: Vec<Entry> = bench.entries.clone();
    let entry = entries.iter_mut().find(|entry| entry.kind == kind).unwrap();
    let mut record = Record::decode(entry.kind, &entry.record).unwrap();
    edit(&mut record);
    entry.record = record.encode().unwrap();
    let mut projection = Projection::new(entries[0].run);
    let folded = entries.iter().try_for_each(|entry| projection.fold(entry).map_err(|error| error.why));
    assert_eq!(folded, expected);
}

#[test]
fn a_patch_that_leads_to_another_state_does_not_fold() {
    let patch = |to: &'static str| {
        move |record: &mut Record| match record {
            Record::Decided(decided) => decided.patch = StatePatch::Set(to.into()),
            _ => panic!("{record:?}"),
        }
    };
    check(Kind::Decided, patch("1"), Ok(()));
    check(Kind::Decided, patch("2"), Err(FoldProblem::StateDigest));
}

#[test]
fn a_seal_that_names_other_totals_another_head_or_another_outcome_does_not_fold() {
    let seal = |edit: fn(&mut loopd_kernel::record::Ended)| {
        move |record: &mut Record| match record {
            Record::Ended(ended) => edit(ended),
            _ => panic!("{record:?}"),
        }
    };
    let wrong = || Err(FoldProblem::WrongSeal);
    check(Kind::Ended, seal(|_| {}), Ok(()));
    check(Kind::Ended, seal(|ended| ended.totals.iterations += 1), wrong());
    check(Kind::Ended, seal(|ended| ended.head = Digest::default()), wrong());
    check(Kind::Ended, seal(|ended| ended.outcome = Outcome::Failed { failure: Failure::new("code", "no") }), wrong());
}
