//! Runs that Runs start, and what they tell each other.

use super::world::{Pen, View, WORKER, claim, create, row, run_id, signal, update, writes};
use super::{Finding, Handle, Outcome, Subject, Verdict, same};
use crate::batch::{Batch, Expect, Write};
use crate::error::{Expectation, StoreError};
use crate::port::RunFilter;
use crate::rows::{RunRow, RunStatus};
use loopd_kernel::{RunId, Seq, TimeMs};
use std::sync::Arc;

pub(super) async fn children_are_listed_by_their_parent(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    create(&store, &row(1)).await?;
    // Also of a parent that is not here.
    let children = [(2, 1, "echo"), (3, 1, "poem"), (4, 2, "echo"), (5, 99, "echo"), (6, 1, "echo"), (7, 1, "echo")];
    for (n, parent, name) in children {
        let status = if n == 6 { RunStatus::Suspended } else { RunStatus::Running };
        let admission = (n == 7).then(|| "key".to_owned());
        let child = RunRow { parent: Some(run_id(parent)), loop_name: name.to_owned(), status, admission, ..row(n) };
        let pen = create(&store, &child).await?;
        let stored = RunRow { head: pen.head, hash: pen.hash, ..child };
        same("the row of a child", &store.run(run_id(n)).await?, &Some(stored.clone()))?;
        store.commit(writes([update(&stored)])).await?;
        same("the row of a child after an update", &store.run(run_id(n)).await?, &Some(stored))?;
    }
    same("the row of a run without a parent", &store.run(run_id(1)).await?.map(|row| row.parent), &Some(None))?;

    let of = |parent| RunFilter { parent: Some(run_id(parent)), limit: 10, ..RunFilter::default() };
    let key = |tenant: &str| Some((tenant.to_owned(), "key".to_owned()));
    let cases = [
        ("all", of(1), vec![7, 6, 3, 2]),
        ("older", RunFilter { before: Some(run_id(6)), ..of(1) }, vec![3, 2]),
        ("suspended", RunFilter { statuses: vec![RunStatus::Suspended], ..of(1) }, vec![6]),
        ("poems", RunFilter { loop_name: Some("poem".to_owned()), ..of(1) }, vec![3]),
        ("admitted", RunFilter { admission: key("default"), ..of(1) }, vec![7]),
        ("admitted, of another parent", RunFilter { admission: key("default"), ..of(2) }, vec![]),
        ("of a child", of(2), vec![4]),
        ("of a parent elsewhere", of(99), vec![5]),
        ("of nobody", of(3), vec![]),
    ];
    for (what, filter, expected) in cases {
        same(what, &listed(&store, filter).await?, &expected.into_iter().map(run_id).collect())?;
    }
    let first = store.runs(RunFilter { limit: 3, ..of(1) }).await?;
    same("the cursor of the first page", &first.next, &Some(run_id(3)))?;
    same("the second page", &listed(&store, RunFilter { before: first.next, ..of(1) }).await?, &vec![run_id(2)])?;
    Ok(Verdict::Passed)
}

async fn listed(store: &Handle, filter: RunFilter) -> Result<Vec<RunId>, Finding> {
    Ok(store.runs(filter).await?.items.iter().map(|row| row.run).collect())
}

/// A step with notices for other Runs.
fn telling(pen: &mut Pen, notices: &[(u64, &str)]) -> Batch {
    let mut batch = pen.step(1);
    batch.writes.extend(notices.iter().map(|(n, key)| Write::Notify(signal(run_id(*n), key))));
    batch
}

async fn keys(store: &Handle, n: u64) -> Result<Vec<String>, Finding> {
    Ok(store.inbox(run_id(n), usize::MAX).await?.into_iter().map(|item| item.key).collect())
}

pub(super) async fn a_notice_never_fails_its_batch(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let waits = |n, status| RunRow { status, worker: None, ..row(n) };
    create(&store, &waits(1, RunStatus::Suspended)).await?;
    create(&store, &waits(2, RunStatus::Ended)).await?;
    create(&store, &waits(4, RunStatus::Parked)).await?;
    let mut child = create(&store, &row(3)).await?;
    let ended = View::of(&store, run_id(2)).await?;
    let told = ["told".to_owned()];

    let everybody = [(1, "told"), (2, "told"), (9, "told"), (4, "told"), (1, "told")];
    store.commit(telling(&mut child, &everybody)).await?;
    same("the head of whoever told", &store.run(run_id(3)).await?.map(|row| row.head), &Some(child.head))?;
    same("what a run was told", &keys(&store, 1).await?, &told.to_vec())?;
    same("what a parked run was told", &keys(&store, 4).await?, &told.to_vec())?;
    same("a run that has ended", &View::of(&store, run_id(2)).await?, &ended)?;
    same("a run that is not there", &store.run(run_id(9)).await?, &None)?;
    let item = store.inbox(run_id(1), 1).await?.pop();
    let id = item.as_ref().map_or(0, |item| item.id);
    same("the notice", &item, &Some(crate::rows::InboxItem { id, ..signal(run_id(1), "told") }))?;

    // It takes part in its Batch: with a refused one nothing of it is there, its key included.
    let mut refused = telling(&mut child.clone(), &[(1, "again")]);
    refused.expect.push(Expect::RunAbsent(run_id(1)));
    let conflict = Err(StoreError::Conflict(Expectation::Run(run_id(1))));
    same("a batch that is refused", &store.commit(refused).await, &conflict)?;
    let mut late = telling(&mut child.clone(), &[(1, "again")]);
    late.writes.push(Write::TakeInbox { run: run_id(3), id: 1_000 });
    let conflict = Err(StoreError::Conflict(Expectation::InboxItem(1_000)));
    same("a batch whose last write is refused", &store.commit(late).await, &conflict)?;
    store.commit(telling(&mut child, &[(1, "again")])).await?;
    same("what it was told", &keys(&store, 1).await?, &vec!["told".to_owned(), "again".to_owned()])?;

    // Due like with any item: suspended, but not parked, which only some items move.
    store.heartbeat(WORKER, TimeMs(60_000)).await?;
    let claimed: Vec<_> = store.claim(claim(WORKER, 5_000)).await?.iter().map(|one| one.row.run).collect();
    same("what a notice makes due", &claimed, &vec![run_id(1)])?;

    // A key is known for ever, and the end is seen inside one Batch, too.
    let seal = update(&RunRow { status: RunStatus::Ended, worker: None, ..row(1) });
    store.commit(writes([Write::TakeInbox { run: run_id(1), id }])).await?;
    store.commit(telling(&mut child, &[(1, "told")])).await?;
    same("after a key that was taken", &keys(&store, 1).await?, &vec!["again".to_owned()])?;
    store.commit(writes([seal, Write::Notify(signal(run_id(1), "too late"))])).await?;
    same("after the end", &keys(&store, 1).await?, &vec!["again".to_owned()])?;
    same("the head at the end", &store.run(run_id(3)).await?.map(|row| row.head), &Some(Seq(4)))?;
    Ok(Verdict::Passed)
}
