//! Which version and definition a Run is recorded under, and who can drive that.

use super::world::{OTHER, Pen, View, claim, create, creation, ends_at, row, run_id, update, writes};
use super::{Handle, Outcome, Subject, Verdict, same};
use crate::batch::{Batch, Expect, Write};
use crate::error::{Expectation, StoreError};
use crate::port::{Claim, Runnable};
use crate::rows::{RunRow, RunStatus};
use loopd_kernel::{Digest, Epoch, RunId, Seq};
use std::sync::Arc;

fn change(run: RunId, version: &str, definition: Digest) -> Write {
    Write::ChangeDefinition { run, version: version.to_owned(), definition }
}

pub(super) async fn a_definition_changes_and_nothing_else(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let mut pen = create(&store, &row(1)).await?;
    create(&store, &row(2)).await?;
    let neighbour = View::of(&store, run_id(2)).await?;
    let (second, third) = (Digest::sha256(&[b"second"]), Digest::sha256(&[b"third"]));
    let (head, hash) = (pen.head, pen.hash);

    store.commit(Batch { expect: vec![pen.expect()], writes: vec![change(run_id(1), "2.0.0", second)] }).await?;
    let mut expected = RunRow { version: "2.0.0".to_owned(), definition: second, head, hash, ..row(1) };
    same("the row after a change alone", &store.run(run_id(1)).await?, &Some(expected.clone()))?;

    // With a step, whose update comes from somebody who knows nothing of it.
    let mut step = pen.step(2);
    (expected.version, expected.definition) = ("3.1".to_owned(), third);
    (expected.head, expected.hash, expected.iteration) = (pen.head, pen.hash, 4);
    step.writes.extend([change(run_id(1), "3.1", third), update(&RunRow { iteration: 4, ..row(1) })]);
    store.commit(step).await?;
    same("the row after a change and a step", &store.run(run_id(1)).await?, &Some(expected.clone()))?;
    store.commit(pen.step(1)).await?;
    (expected.head, expected.hash) = (pen.head, pen.hash);
    same("the row after one more step", &store.run(run_id(1)).await?, &Some(expected.clone()))?;

    let stale = Expect::RunAt { run: run_id(1), seq: Seq(1), epoch: Epoch(1) };
    let late = Batch { expect: vec![stale], writes: vec![change(run_id(1), "4", second)] };
    let conflict = Expectation::Head { run: run_id(1), expected: Seq(1), found: pen.head };
    same("a change that expects an old head", &store.commit(late).await, &Err(StoreError::Conflict(conflict)))?;
    let half = writes([change(run_id(1), "4", second), change(run_id(9), "4", second)]);
    let unknown = Err(StoreError::Conflict(Expectation::Run(run_id(9))));
    same("a change of a run that is not there", &store.commit(half).await, &unknown)?;
    same("the row after what was refused", &store.run(run_id(1)).await?, &Some(expected))?;
    same("another run", &View::of(&store, run_id(2)).await?, &neighbour)?;
    ends_at(&store, &pen).await?;

    let (mut both, new) = creation(&row(3));
    both.writes.push(change(run_id(3), "5.0", third));
    store.commit(both).await?;
    let expected = RunRow { version: "5.0".to_owned(), definition: third, head: new.head, hash: new.hash, ..row(3) };
    same("a run that changed when it began", &store.run(run_id(3)).await?, &Some(expected))?;
    Ok(Verdict::Passed)
}

/// A Run that is due, by its version and its definition.
async fn due(store: &Handle, n: u64, version: &str, definition: Digest) -> Result<Pen, super::Finding> {
    let waiting = RunRow { status: RunStatus::Running, worker: None, ..row(n) };
    create(store, &RunRow { version: version.to_owned(), definition, ..waiting }).await
}

pub(super) async fn a_claim_takes_only_what_its_worker_can_drive(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let (old, new) = (Digest::sha256(&[b"old"]), Digest::sha256(&[b"new"]));
    let of = |major: Option<&str>, definition| Runnable {
        major: major.map(str::to_owned),
        definition,
        ..Runnable::any("echo")
    };
    let exactly = |version: &str| Runnable { version: Some(version.to_owned()), ..Runnable::any("echo") };
    let runs = [
        (1, "1.0.0", old),
        (2, "1", new),
        (3, "10.2", old),
        (4, "2.0", new),
        (5, "1-beta.3", old),
        (6, "", new),
        (7, ".1", new),
        (8, "1\0.1", old),
    ];
    for (n, version, definition) in runs {
        due(&store, n, version, definition).await?;
    }
    let poem = RunRow { loop_name: "poem".to_owned(), status: RunStatus::Running, worker: None, ..row(9) };
    create(&store, &poem).await?;
    let poem = Runnable { loop_name: "poem".to_owned(), ..of(Some("7"), None) };
    let cases = [
        ("what has not begun", vec![of(Some("0"), None), of(Some("-beta"), None)], vec![6]),
        ("a version that is a part of one", vec![exactly("1.0"), exactly("0.0")], vec![]),
        ("a version", vec![exactly("1")], vec![2]),
        ("a major with a dot", vec![of(Some("1.0"), None), of(Some("1."), None)], vec![]),
        ("a loop of another major", vec![poem], vec![]),
        ("a definition that nobody has", vec![of(None, Some(Digest::default()))], vec![]),
        ("a major and the definition of another", vec![of(Some("2"), Some(old))], vec![]),
        ("a major", vec![of(Some("1"), None)], vec![1]),
        ("a major with a nul", vec![of(Some("1\0"), None)], vec![8]),
        ("no major at all", vec![of(Some(""), None)], vec![7]),
        ("a major and its definition", vec![of(Some("10"), Some(old))], vec![3]),
        ("one of two", vec![of(Some("2"), Some(old)), of(Some("1-beta"), None)], vec![5]),
        ("a definition", vec![of(None, Some(new))], vec![4]),
        ("anything", vec![], vec![9]),
    ];
    for (what, loops, expected) in cases {
        let claimed = store.claim(Claim { loops: loops.clone(), ..claim(OTHER, 5_000) }).await?;
        let mut found: Vec<_> = claimed.iter().map(|claimed| claimed.row.run).collect();
        found.sort_unstable();
        let mut expected: Vec<_> = expected.into_iter().map(run_id).collect();
        expected.sort_unstable();
        same(&format!("{what}: {loops:?}"), &found, &expected)?;
        // Nobody may take it again in the next case.
        store.heartbeat(OTHER, loopd_kernel::TimeMs(60_000)).await?;
    }

    // One Run by its identity, and after its definition changed.
    due(&store, 20, "1.0", old).await?;
    let only =
        |major: &str| Claim { only: Some(run_id(20)), loops: vec![of(Some(major), None)], ..claim(OTHER, 5_000) };
    same("one run of another major", &store.claim(only("2")).await?.len(), &0)?;
    store.commit(writes([change(run_id(20), "2.0", new)])).await?;
    same("one run that had this major", &store.claim(only("1")).await?.len(), &0)?;
    let claimed = store.claim(only("2")).await?;
    same("one run that has this major now", &claimed.len(), &1)?;
    same("what was claimed", &claimed.into_iter().next().map(|one| one.row), &store.run(run_id(20)).await?)?;
    Ok(Verdict::Passed)
}
