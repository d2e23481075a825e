//! Runs whose caller decides who they are, and what their first commit expects and writes besides.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use loopd_kernel::machine::Admission;
use loopd_kernel::{Cx, Decision, Event, Failure, Limits, RunId};
use loopd_runtime::{Beginning, Runtime, StartError, Started};
use loopd_store::memory::Fault;
use loopd_store::{Counter, Expect, Expectation, Place, Query, Record, RecordId, Store, Table, Write};
use std::sync::Arc;
use world::kin::{Kin, named};

const RUN: RunId = RunId([7; 16]);
const CALL: RecordId = RecordId([8; 16]);

fn waits(_: &Cx, _: &mut Vec<String>, _: Event) -> Result<Decision, Failure> {
    Ok(Decision::wait("x"))
}

fn kin() -> Kin {
    Kin::new([named("waits", waits)])
}

fn admission(key: Option<&str>, input: &str) -> Admission {
    let input = format!("\"{input}\"");
    Admission { tenant: "default".into(), input, limits: Limits::default(), key: key.map(Into::into) }
}

fn record() -> Write {
    let (table, body) = (Table::Call, b"{}".to_vec());
    let (scope, place, rev) = (RecordId::default(), 0, 0);
    Write::PutRecord(
        Box::new(Record { table, id: CALL, scope, place, key: None, due: None, rev, words: None, body }),
        Place::Next,
    )
}

fn one_slot() -> Write {
    Write::Count { counter: Counter("slots".into()), by: 1, max: Some(1) }
}

/// A Run beside a Record that is not there yet, in one of one slots.
fn beginning(run: RunId) -> Beginning {
    let expect = vec![Expect::Record { table: Table::Call, id: CALL, rev: None }];
    Beginning { run, expect, writes: vec![record(), one_slot()] }
}

/// The revision of the Record, how many slots are taken, and how many Runs there are.
async fn facts(kin: &Kin) -> (Option<u64>, u64, usize) {
    let found = kin.store.records(Query::Record(Table::Call, CALL)).await.unwrap();
    let slots = kin.store.counter(Counter("slots".into())).await.unwrap();
    (found.first().map(|record| record.rev), slots, kin.rows().await.len())
}

async fn start(kin: &Kin, worker: &Runtime, key: Option<&str>, beginning: Beginning) -> Result<Started, StartError> {
    worker.start_as(&kin.programs[0], admission(key, "in"), beginning).await
}

#[tokio::test(start_paused = true)]
async fn a_run_and_what_its_caller_writes_are_one_commit() {
    let kin = kin();
    let worker = kin.worker(true).await;
    let Started::New(driven) = start(&kin, &worker, Some("k"), beginning(RUN)).await.unwrap() else { panic!() };
    assert_eq!(driven.run, RUN);
    assert_eq!(facts(&kin).await, (Some(1), 1, 1));
    kin.verify().await;
}

#[tokio::test(start_paused = true)]
async fn an_expectation_that_does_not_hold_starts_nothing_and_is_named() {
    let kin = kin();
    let worker = kin.worker(true).await;
    let conflict = |started: Result<Started, StartError>| match started.unwrap_err() {
        StartError::Conflict(broken) => broken,
        other => panic!("{other}"),
    };
    let _driven = start(&kin, &worker, None, beginning(RUN)).await.unwrap();
    let before = facts(&kin).await;
    let other = RunId([9; 16]);
    let again = conflict(start(&kin, &worker, None, beginning(other)).await);
    assert_eq!(again, Expectation::Record { table: Table::Call, id: CALL, found: Some(1) });
    let full = Beginning { expect: Vec::new(), ..beginning(other) };
    assert_eq!(conflict(start(&kin, &worker, None, full).await), Expectation::Counter(Counter("slots".into())));
    let taken = conflict(start(&kin, &worker, None, Beginning::of(RUN)).await);
    assert_eq!(taken, Expectation::Run(RUN));
    assert_eq!(facts(&kin).await, before);
    assert!(worker.driven(other).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_names_a_run_goes_before_what_is_expected() {
    let kin = kin();
    let worker = kin.worker(true).await;
    let _driven = start(&kin, &worker, Some("k"), beginning(RUN)).await.unwrap();
    let before = facts(&kin).await;
    for run in [RUN, RunId([9; 16])] {
        let again = start(&kin, &worker, Some("k"), beginning(run)).await.unwrap();
        assert!(matches!(again, Started::Already(RUN)), "{again:?}");
        let unconditional = Beginning { expect: Vec::new(), run, writes: vec![record()] };
        let again = start(&kin, &worker, Some("k"), unconditional).await.unwrap();
        assert!(matches!(again, Started::Already(RUN)), "{again:?}");
        let other = worker.start_as(&kin.programs[0], admission(Some("k"), "another"), beginning(run)).await;
        assert_eq!(other.unwrap_err(), StartError::KeyTaken(RUN));
    }
    assert_eq!(facts(&kin).await, before);
}

#[tokio::test(start_paused = true)]
async fn a_first_commit_that_nobody_is_sure_of_is_made_once() {
    for fault in [Fault::AmbiguousCommitted, Fault::AmbiguousLost, Fault::Unavailable] {
        for key in [None, Some("k")] {
            let kin = kin();
            let mut faults = [Some(fault)].into_iter();
            let worker =
                kin.worker_over(Arc::new(kin.store.faulty(move |_| faults.next().flatten())), true, &kin.programs);
            let worker = worker.await;
            let started = start(&kin, &worker, key, beginning(RUN)).await.unwrap();
            assert!(matches!(started, Started::New(_)), "{fault:?} {started:?}");
            assert_eq!(facts(&kin).await, (Some(1), 1, 1), "{fault:?}");
            worker.shutdown().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn new_identities_sort_by_their_time() {
    let kin = kin();
    let worker = kin.worker(true).await;
    let first = worker.new_run();
    tokio::time::advance(std::time::Duration::from_millis(1)).await;
    assert!(first < worker.new_run());
}
