//! One Batch at a time.

use super::world::{View, all_runs, create, creation, ends_at, question, row, run_id, signal, update, writes};
use super::{Finding, Handle, Outcome, Subject, Verdict, ensure, same};
use crate::batch::{Batch, Expect, Write};
use crate::error::{Expectation, StoreError};
use crate::port::RunFilter;
use crate::rows::{RunRow, RunStatus, Snapshot};
use loopd_kernel::{Digest, Epoch, MicroUsd, QuestionId, Seq, TimeMs};
use std::sync::Arc;

/// Commits a Batch that must be refused with exactly this error, and looks that the Run did not change.
async fn refused(store: &Handle, what: &str, batch: Batch, error: StoreError) -> Result<(), Finding> {
    let before = View::of(store, run_id(1)).await?;
    same(what, &store.commit(batch).await, &Err(error))?;
    same(&format!("{what}: the run afterwards"), &View::of(store, run_id(1)).await?, &before)
}

pub(super) async fn a_run_reads_back_whole(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let mut expected = RunRow {
        admission: Some("order-1".to_owned()),
        origin: Some("/agents/echo.yaml".to_owned()),
        parent: Some(run_id(9)),
        wake_at: Some(TimeMs(9_000)),
        ..row(1)
    };
    let mut pen = create(&store, &expected).await?;
    (expected.head, expected.hash) = (pen.head, pen.hash);
    same("the row after its first entry", &store.run(run_id(1)).await?, &Some(expected.clone()))?;

    // What a step usually does: it leaves status, worker and wake time as they are.
    let mut step = pen.step(3);
    (expected.head, expected.hash) = (pen.head, pen.hash);
    (expected.iteration, expected.tokens, expected.spent) = (1, 250, MicroUsd(1_250));
    expected.updated_at = TimeMs(1_004);
    step.writes.push(update(&expected));
    store.commit(step).await?;
    same("the row after a step", &store.run(run_id(1)).await?, &Some(expected.clone()))?;

    (expected.status, expected.worker, expected.wake_at) = (RunStatus::Suspended, None, Some(TimeMs(12_000)));
    store.commit(Batch { expect: vec![pen.expect()], writes: vec![update(&expected)] }).await?;
    same("the row once it is suspended", &store.run(run_id(1)).await?, &Some(expected.clone()))?;

    (expected.status, expected.wake_at, expected.outcome) = (RunStatus::Ended, None, Some("completed".to_owned()));
    let mut end = pen.step(1);
    (expected.head, expected.hash) = (pen.head, pen.hash);
    end.writes.insert(0, update(&expected));
    store.commit(end).await?;
    same("the row once it has ended", &store.run(run_id(1)).await?, &Some(expected))?;
    ends_at(&store, &pen).await?;

    same("a run that nobody created", &store.run(run_id(2)).await?, &None)?;
    same("entries from the middle", &seqs(&store, 2, 2).await?, &vec![Seq(3), Seq(4)])?;
    same("entries after the head", &seqs(&store, 5, 10).await?, &Vec::new())?;
    same("entries after no seq at all", &seqs(&store, u64::MAX, 10).await?, &Vec::new())?;
    same("no entries", &seqs(&store, 0, 0).await?, &Vec::new())?;
    Ok(Verdict::Passed)
}

async fn seqs(store: &Handle, after: u64, limit: usize) -> Result<Vec<Seq>, Finding> {
    Ok(store.entries(run_id(1), Seq(after), limit).await?.iter().map(|entry| entry.seq).collect())
}

pub(super) async fn a_batch_is_all_or_nothing(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let mut pen = create(&store, &row(1)).await?;
    store.commit(writes([Write::AddInbox(signal(run_id(1), "taken"))])).await?;
    let waiting = store.inbox(run_id(1), 10).await?.first().map_or(0, |item| item.id);
    let digest = Digest::sha256(&[b"blob"]);

    // One write of every kind, and at the end one that cannot be made.
    let mut batch = pen.step(2);
    batch.writes.extend([
        update(&RunRow { iteration: 9, status: RunStatus::Suspended, worker: None, ..row(1) }),
        Write::PutSnapshot(Snapshot { run: run_id(1), seq: pen.head, body: b"{}".to_vec() }),
        Write::PutBlob { digest, bytes: Arc::from(&b"blob"[..]) },
        Write::AddInbox(signal(run_id(1), "new")),
        Write::Notify(signal(run_id(1), "notice")),
        Write::ChangeDefinition { run: run_id(1), version: "2.0".to_owned(), definition: digest },
        Write::TakeInbox { run: run_id(1), id: waiting },
        Write::OpenQuestion(Box::new(question(run_id(1), 1, 2_000))),
        Write::CreateRun(Box::new(RunRow { admission: Some("key".to_owned()), ..row(2) })),
        Write::EndQuestion { run: run_id(1), question: QuestionId(1) },
        Write::AddInbox(signal(run_id(1), "taken")),
    ]);
    let taken = StoreError::Conflict(Expectation::InboxKey("taken".to_owned()));
    refused(&store, "a batch whose last write conflicts", batch, taken).await?;
    same("a blob of a refused batch", &store.blob(digest).await?, &None)?;
    same("a run of a refused batch", &store.run(run_id(2)).await?, &None)?;
    same("the runs after a refused batch", &all_runs(&store, 10).await?, &vec![run_id(1)])?;

    // Nothing of it is in the way of the same writes later.
    let create = RunRow { admission: Some("key".to_owned()), ..row(2) };
    store.commit(creation(&create).0).await?;
    store.commit(writes(["new", "notice"].map(|key| Write::AddInbox(signal(run_id(1), key))))).await?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_wrong_seq_is_a_conflict(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let mut pen = create(&store, &row(1)).await?;
    let stale = pen.step(1);
    store.commit(stale.clone()).await?;
    let behind = Expectation::Head { run: run_id(1), expected: Seq(1), found: Seq(2) };
    refused(&store, "the same batch again", stale, StoreError::Conflict(behind)).await?;

    let mut ahead = pen;
    ahead.head = Seq(9);
    let conflict = Expectation::Head { run: run_id(1), expected: Seq(9), found: Seq(2) };
    refused(&store, "a batch from the future", ahead.step(1), StoreError::Conflict(conflict)).await?;

    // An expectation holds without any write to the Run as well.
    let snapshot = Write::PutSnapshot(Snapshot { run: run_id(1), seq: Seq(1), body: Vec::new() });
    let expect = vec![Expect::RunAt { run: run_id(1), seq: Seq(1), epoch: Epoch(1) }];
    let conflict = Expectation::Head { run: run_id(1), expected: Seq(1), found: Seq(2) };
    let batch = Batch { expect, writes: vec![snapshot] };
    refused(&store, "a snapshot that expects an old head", batch, StoreError::Conflict(conflict)).await?;
    store.commit(pen.step(1)).await?;
    ends_at(&store, &pen).await?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_wrong_epoch_is_fenced(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let pen = create(&store, &row(1)).await?;
    for epoch in [Epoch(0), Epoch(2), Epoch(u64::MAX)] {
        let mut wrong = pen;
        wrong.epoch = epoch;
        refused(&store, &format!("a batch of {epoch}"), wrong.step(1), StoreError::Fenced(epoch)).await?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn the_epoch_is_looked_at_first(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let mut pen = create(&store, &row(1)).await?;
    (pen.epoch, pen.head) = (Epoch(4), Seq(40));
    let what = "a batch with a wrong epoch and a wrong seq";
    refused(&store, what, pen.step(1), StoreError::Fenced(Epoch(4))).await?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_run_is_created_once(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    create(&store, &row(1)).await?;
    let conflict = StoreError::Conflict(Expectation::Run(run_id(1)));
    refused(&store, "a run that must be absent", creation(&row(1)).0, conflict.clone()).await?;
    let again = writes([Write::CreateRun(Box::new(RunRow { iteration: 5, ..row(1) }))]);
    refused(&store, "creating a run again", again, conflict).await?;

    let twice = writes([Write::CreateRun(Box::new(row(2))), Write::CreateRun(Box::new(row(2)))]);
    let conflict = StoreError::Conflict(Expectation::Run(run_id(2)));
    refused(&store, "creating a run twice in one batch", twice, conflict).await?;
    same("the run of that batch", &store.run(run_id(2)).await?, &None)?;
    Ok(Verdict::Passed)
}

pub(super) async fn an_unknown_run_is_a_conflict(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    create(&store, &row(1)).await?;
    let run = run_id(2);
    let (_, mut pen) = creation(&row(2));
    let expecting = Batch { expect: vec![pen.expect()], writes: Vec::new() };
    let definition = Write::ChangeDefinition { run, version: String::new(), definition: Digest::default() };
    let batches = [
        ("an expectation", expecting),
        ("entries", writes(pen.step(1).writes)),
        ("an update", writes([update(&row(2))])),
        ("a definition", writes([definition])),
        ("a snapshot", writes([Write::PutSnapshot(Snapshot { run, seq: Seq(1), body: Vec::new() })])),
        ("an inbox item", writes([Write::AddInbox(signal(run, "key"))])),
        ("taking an inbox item", writes([Write::TakeInbox { run, id: 1 }])),
        ("a question", writes([Write::OpenQuestion(Box::new(question(run, 1, 2_000)))])),
    ];
    for (what, batch) in batches {
        let conflict = StoreError::Conflict(Expectation::Run(run));
        refused(&store, &format!("{what} of a run that is not there"), batch, conflict).await?;
    }
    same("what there is of it", &View::of(&store, run).await?.row, &None)?;
    Ok(Verdict::Passed)
}

pub(super) async fn admission_keys_are_unique_per_tenant(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let keyed = |n, tenant: &str| RunRow { tenant: tenant.to_owned(), admission: Some("order-1".to_owned()), ..row(n) };
    create(&store, &keyed(1, "default")).await?;
    let conflict = StoreError::Conflict(Expectation::Admission(run_id(1)));
    refused(&store, "a second run with the key", creation(&keyed(2, "default")).0, conflict.clone()).await?;
    create(&store, &keyed(3, "other")).await?;
    create(&store, &row(4)).await?;
    create(&store, &row(5)).await?;

    // The key stays taken when the Run has ended.
    let ended = RunRow { status: RunStatus::Ended, worker: None, ..row(1) };
    store.commit(writes([update(&ended)])).await?;
    refused(&store, "the key of an ended run", creation(&keyed(2, "default")).0, conflict).await?;
    for (tenant, expected) in [("default", vec![run_id(1)]), ("other", vec![run_id(3)]), ("third", vec![])] {
        let admission = Some((tenant.to_owned(), "order-1".to_owned()));
        let page = store.runs(RunFilter { admission, limit: 10, ..RunFilter::default() }).await?;
        let found: Vec<_> = page.items.iter().map(|row| row.run).collect();
        same(&format!("the run with this key of {tenant}"), &found, &expected)?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn appends_are_dense(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let pen = create(&store, &row(1)).await?;
    let five = pen.clone().some(5);
    let of = |places: &[usize]| {
        let entries = places.iter().filter_map(|place| five.get(*place).cloned()).collect();
        Batch { expect: vec![pen.expect()], writes: vec![Write::Append { run: run_id(1), entries }] }
    };
    let head = |expected, found| {
        StoreError::Conflict(Expectation::Head { run: run_id(1), expected: Seq(expected), found: Seq(found) })
    };
    refused(&store, "entries that begin too late", of(&[1, 2]), head(2, 1)).await?;
    refused(&store, "entries with a gap", of(&[0, 1, 3]), head(4, 3)).await?;
    refused(&store, "entries out of order", of(&[1, 0]), head(2, 1)).await?;
    refused(&store, "one entry twice", of(&[0, 0]), head(1, 2)).await?;

    let (_, mut other) = creation(&row(2));
    let foreign = writes([Write::Append { run: run_id(1), entries: other.some(1) }]);
    let conflict = StoreError::Conflict(Expectation::Run(run_id(2)));
    refused(&store, "an entry of another run", foreign, conflict).await?;
    store.commit(of(&[0, 1, 2, 3, 4])).await?;
    same("the head after five entries", &store.run(run_id(1)).await?.map(|row| row.head), &Some(Seq(6)))?;
    Ok(Verdict::Passed)
}

pub(super) async fn an_empty_batch_changes_nothing(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let pen = create(&store, &row(1)).await?;
    let before = View::of(&store, run_id(1)).await?;
    store.commit(Batch::default()).await?;
    store.commit(Batch { expect: vec![pen.expect(), Expect::RunAbsent(run_id(2))], writes: Vec::new() }).await?;
    store.commit(writes([Write::Append { run: run_id(1), entries: Vec::new() }])).await?;
    same("the run afterwards", &View::of(&store, run_id(1)).await?, &before)?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_snapshot_is_replaced(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    create(&store, &row(1)).await?;
    create(&store, &row(2)).await?;
    same("the snapshot before there is one", &store.snapshot(run_id(1)).await?, &None)?;
    for (seq, body) in [(1, "{}"), (3, "{\"much\":\"longer\"}"), (2, "[]"), (2, "")] {
        let snapshot = Snapshot { run: run_id(1), seq: Seq(seq), body: body.as_bytes().to_vec() };
        store.commit(writes([Write::PutSnapshot(snapshot.clone())])).await?;
        same("the snapshot", &store.snapshot(run_id(1)).await?, &Some(snapshot))?;
    }
    same("the snapshot of another run", &store.snapshot(run_id(2)).await?, &None)?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_blob_is_stored_once(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let digest = Digest::sha256(&[b"bytes"]);
    same("a blob that is not there", &store.blob(digest).await?, &None)?;
    let put = |bytes: &[u8]| Write::PutBlob { digest, bytes: Arc::from(bytes) };
    store.commit(writes([put(b"bytes"), put(b"bytes")])).await?;
    // The first bytes stay: whoever has a digest may rely on them.
    store.commit(writes([put(b"other")])).await?;
    same("the blob", &store.blob(digest).await?, &Some(b"bytes".to_vec()))?;
    let empty = Digest::sha256(&[]);
    store.commit(writes([Write::PutBlob { digest: empty, bytes: Arc::from(&b""[..]) }])).await?;
    same("the empty blob", &store.blob(empty).await?, &Some(Vec::new()))?;
    Ok(Verdict::Passed)
}

pub(super) async fn questions_are_listed_until_they_end(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    create(&store, &row(1)).await?;
    create(&store, &row(2)).await?;
    let (late, early, middle) =
        (question(run_id(1), 1, 3_000), question(run_id(1), 2, 1_000), question(run_id(2), 1, 2_000));
    let open = |row: &crate::rows::QuestionRow| Write::OpenQuestion(Box::new(row.clone()));
    store.commit(writes([open(&late), open(&early)])).await?;
    store.commit(writes([open(&middle)])).await?;

    let all = vec![early.clone(), middle.clone(), late.clone()];
    same("all questions, oldest first", &store.questions(None, 10).await?, &all)?;
    same("the two oldest", &store.questions(None, 2).await?, &vec![early.clone(), middle.clone()])?;
    same("those of a run", &store.questions(Some(run_id(1)), 10).await?, &vec![early, late])?;
    same("those of nobody", &store.questions(Some(run_id(3)), 10).await?, &Vec::new())?;

    let changed = question(run_id(1), 1, 4_000);
    store.commit(writes([open(&changed)])).await?;
    let end = Write::EndQuestion { run: run_id(1), question: QuestionId(2) };
    store.commit(writes([end.clone()])).await?;
    same("those that are left", &store.questions(None, 10).await?, &vec![middle, changed])?;
    store.commit(writes([end])).await?;
    Ok(Verdict::Passed)
}

pub(super) async fn lists_filter_and_page(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let (echo, poem) = ("echo".to_owned(), "poem".to_owned());
    for n in 1..=7 {
        let status = if n % 2 == 0 { RunStatus::Suspended } else { RunStatus::Running };
        let loop_name = if n > 4 { poem.clone() } else { echo.clone() };
        create(&store, &RunRow { status, loop_name, ..row(n) }).await?;
    }
    let newest_first = |numbers: &[u64]| numbers.iter().map(|n| run_id(*n)).collect::<Vec<_>>();
    for limit in [1, 3, 7, 100] {
        let found = all_runs(&store, limit).await?;
        same(&format!("all runs in pages of {limit}"), &found, &newest_first(&[7, 6, 5, 4, 3, 2, 1]))?;
    }
    let any = RunFilter { limit: 10, ..RunFilter::default() };
    let suspended = vec![RunStatus::Suspended];
    let cases = [
        ("suspended", RunFilter { statuses: suspended.clone(), ..any.clone() }, vec![6, 4, 2]),
        ("poems", RunFilter { loop_name: Some(poem.clone()), ..any.clone() }, vec![7, 6, 5]),
        ("both", RunFilter { statuses: suspended, loop_name: Some(poem), ..any.clone() }, vec![6]),
        ("parked", RunFilter { statuses: vec![RunStatus::Parked, RunStatus::Ended], ..any.clone() }, vec![]),
        ("older", RunFilter { before: Some(run_id(3)), ..any.clone() }, vec![2, 1]),
        ("older than the oldest", RunFilter { before: Some(run_id(1)), ..any.clone() }, vec![]),
        ("older than an unknown one", RunFilter { before: Some(run_id(99)), ..any.clone() }, vec![]),
        ("none", RunFilter { limit: 0, ..any }, vec![]),
    ];
    for (what, filter, expected) in cases {
        let page = store.runs(filter).await?;
        let found: Vec<_> = page.items.iter().map(|row| row.run).collect();
        same(what, &found, &newest_first(&expected))?;
        ensure(page.next.is_none(), || format!("{what}: a cursor, but there is no other page"))?;
    }
    Ok(Verdict::Passed)
}
