//! Who drives which Run, and when.

use super::world::{OTHER, Pen, WORKER, cancel, claim, create, ends_at, row, run_id, signal, update, writes};
use super::{Finding, Handle, Outcome, Subject, Verdict, same};
use crate::batch::{Batch, Expect, Write};
use crate::error::StoreError;
use crate::port::{Claim, Claimed, Runnable};
use crate::rows::{RunRow, RunStatus, WorkerId};
use loopd_kernel::{Epoch, RunId, Seq, TimeMs};
use std::sync::Arc;

/// Claims, and compares what was given: Run and crashed flag, by number of the Run.
async fn gives(store: &Handle, what: &str, claim: Claim, expected: &[(u64, bool)]) -> Result<(), Finding> {
    let mut claimed = store.claim(claim).await?;
    claimed.sort_by_key(|claimed| claimed.row.run);
    let mut expected: Vec<_> = expected.iter().map(|(n, crashed)| (run_id(*n), *crashed)).collect();
    expected.sort_unstable();
    let found: Vec<_> = claimed.iter().map(|claimed| (claimed.row.run, claimed.crashed)).collect();
    same(what, &found, &expected)
}

fn waiting(n: u64, status: RunStatus, wake_at: Option<i64>) -> RunRow {
    RunRow { status, worker: None, wake_at: wake_at.map(TimeMs), ..row(n) }
}

pub(super) async fn a_claim_takes_what_is_due_and_nothing_else(subject: Arc<dyn Subject>) -> Outcome {
    use RunStatus::{Ended, Parked, Running, Suspended};
    let store = subject.open().await?;
    let rows = [
        waiting(1, Running, None),
        waiting(2, Suspended, None),
        waiting(3, Suspended, Some(5_000)),
        waiting(4, Suspended, Some(5_001)),
        waiting(5, Suspended, Some(9_000)),
        waiting(6, Parked, Some(4_000)),
        waiting(7, Parked, None),
        waiting(8, Parked, None),
        waiting(9, Parked, None),
    ];
    for row in rows {
        create(&store, &row).await?;
    }
    for item in [signal(run_id(5), "s"), signal(run_id(7), "s"), signal(run_id(8), "s"), cancel(run_id(8), "c")] {
        store.commit(writes([Write::AddInbox(item)])).await?;
    }
    // An item that was taken is no reason, and a sealed Run has none whatever waits for it.
    let ended = waiting(10, Running, None);
    create(&store, &ended).await?;
    store.commit(writes([Write::AddInbox(cancel(run_id(10), "c")), Write::AddInbox(cancel(run_id(9), "c"))])).await?;
    let Some(item) = store.inbox(run_id(9), 1).await?.pop() else {
        return Err(Finding::new("no item"));
    };
    let take = Write::TakeInbox { run: run_id(9), id: item.id };
    let seal = update(&RunRow { status: Ended, wake_at: Some(TimeMs(1)), ..ended });
    store.commit(writes([take, seal])).await?;

    store.heartbeat(WORKER, TimeMs(60_000)).await?;
    let due = [(1, false), (3, false), (5, false), (8, false)];
    gives(&store, "what is due at 5,000", claim(WORKER, 5_000), &due).await?;
    gives(&store, "what is due a moment later", claim(WORKER, 5_001), &[(4, false)]).await?;
    gives(&store, "what is due much later", claim(WORKER, 50_000), &[]).await?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_claim_raises_the_epoch_and_fences(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    store.heartbeat(WORKER, TimeMs(60_000)).await?;
    let mut old = create(&store, &waiting(1, RunStatus::Suspended, Some(2_000))).await?;
    let parked = create(&store, &waiting(2, RunStatus::Parked, Some(2_000))).await?;
    store.commit(writes([Write::AddInbox(cancel(run_id(2), "c"))])).await?;
    let before = [store.run(run_id(1)).await?, store.run(run_id(2)).await?];
    let mut claimed = store.claim(claim(WORKER, 5_000)).await?;
    claimed.sort_by_key(|claimed| claimed.row.run != run_id(1));

    let taken = |row: Option<RunRow>, status| {
        let row = row?;
        let row = RunRow { epoch: row.epoch.next(), worker: Some(WORKER), status, ..row };
        Some(Claimed { row, crashed: false })
    };
    let [first, second] = before;
    let expected: Vec<_> =
        [taken(first, RunStatus::Running), taken(second, RunStatus::Parked)].into_iter().flatten().collect();
    same("the claimed rows", &claimed, &expected)?;
    for claimed in &claimed {
        same("the stored row", &store.run(claimed.row.run).await?, &Some(claimed.row.clone()))?;
    }
    // Whoever drove it before learns it at the next commit, and nothing of that commit is there.
    let mut new = old;
    same("a commit of the old epoch", &store.commit(old.step(1)).await, &Err(StoreError::Fenced(Epoch(1))))?;
    let fenced = Batch { expect: vec![parked.expect()], writes: Vec::new() };
    same("the same of the parked one", &store.commit(fenced).await, &Err(StoreError::Fenced(Epoch(1))))?;
    new.epoch = Epoch(2);
    store.commit(new.step(1)).await?;
    ends_at(&store, &new).await?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_live_worker_keeps_its_runs(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    store.heartbeat(WORKER, TimeMs(10_000)).await?;
    store.heartbeat(OTHER, TimeMs(60_000)).await?;
    create(&store, &row(1)).await?;
    create(&store, &RunRow { worker: Some(WORKER), ..waiting(2, RunStatus::Suspended, Some(2_000)) }).await?;
    create(&store, &RunRow { worker: Some(WORKER), ..waiting(3, RunStatus::Parked, None) }).await?;
    store.commit(writes([Write::AddInbox(cancel(run_id(3), "c"))])).await?;
    for (worker, now) in [(OTHER, 2_000), (OTHER, 9_999), (WORKER, 9_999)] {
        gives(&store, &format!("{worker:?} at {now}"), claim(worker, now), &[]).await?;
    }
    store.heartbeat(WORKER, TimeMs(20_000)).await?;
    gives(&store, "after another heartbeat", claim(OTHER, 19_999), &[]).await?;
    same("the row of a run that was kept", &store.run(run_id(1)).await?.map(|row| row.epoch), &Some(Epoch(1)))?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_lapsed_worker_loses_its_runs(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    store.heartbeat(WORKER, TimeMs(10_000)).await?;
    store.heartbeat(OTHER, TimeMs(60_000)).await?;
    create(&store, &row(1)).await?;
    create(&store, &RunRow { worker: Some(WORKER), ..waiting(2, RunStatus::Suspended, Some(2_000)) }).await?;
    create(&store, &RunRow { worker: Some(WORKER), ..waiting(3, RunStatus::Suspended, None) }).await?;
    // Never announced: nobody waits for it.
    create(&store, &RunRow { worker: Some(WorkerId(99)), ..row(4) }).await?;
    gives(&store, "what an unknown worker had", claim(OTHER, 5_000), &[(4, true)]).await?;
    gives(&store, "at the end of the lease", claim(OTHER, 10_000), &[(1, true), (2, false)]).await?;
    // The claim alone does not protect for longer than the lease of its worker.
    gives(&store, "from the next worker", claim(WorkerId(3), 59_999), &[]).await?;
    let due = [(1, true), (2, true), (4, true)];
    gives(&store, "from the next worker, later", claim(WorkerId(3), 60_000), &due).await?;
    same("the epoch after two claims", &store.run(run_id(1)).await?.map(|row| row.epoch), &Some(Epoch(3)))?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_claim_of_one_run_needs_no_reason(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    store.heartbeat(WORKER, TimeMs(60_000)).await?;
    store.heartbeat(OTHER, TimeMs(60_000)).await?;
    for (n, status) in [(1, RunStatus::Suspended), (2, RunStatus::Parked), (3, RunStatus::Ended)] {
        create(&store, &waiting(n, status, None)).await?;
    }
    create(&store, &row(4)).await?;
    create(&store, &waiting(5, RunStatus::Running, None)).await?;
    let only = |worker, n| Claim { only: Some(run_id(n)), ..claim(worker, 5_000) };
    gives(&store, "a suspended run", only(OTHER, 1), &[(1, false)]).await?;
    gives(&store, "a parked run", only(OTHER, 2), &[(2, false)]).await?;
    gives(&store, "a sealed run", only(OTHER, 3), &[]).await?;
    gives(&store, "a run of a live other worker", only(OTHER, 4), &[]).await?;
    gives(&store, "a run of the same worker", only(WORKER, 4), &[(4, true)]).await?;
    gives(&store, "a run that is not there", only(OTHER, 9), &[]).await?;
    let limited = Claim { limit: 0, ..only(OTHER, 5) };
    gives(&store, "no run at all", limited, &[]).await?;
    let wrong = Claim { loops: vec![Runnable::any("poem")], ..only(OTHER, 5) };
    gives(&store, "a run of another loop", wrong, &[]).await?;
    gives(&store, "what nobody had claimed yet", claim(OTHER, 5_000), &[(5, false)]).await?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_claim_is_limited_and_fair(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    store.heartbeat(WORKER, TimeMs(60_000)).await?;
    let untouched_since = [(1, 4_000), (2, 1_000), (3, 3_000), (4, 2_000), (5, 2_000)];
    for (n, since) in untouched_since {
        let row = waiting(n, RunStatus::Suspended, Some(3_000));
        create(&store, &RunRow { updated_at: TimeMs(since), ..row }).await?;
    }
    create(&store, &RunRow { loop_name: "poem".to_owned(), ..waiting(6, RunStatus::Running, None) }).await?;
    let of = |loops: &[&str], limit| {
        let loops = loops.iter().map(|name| Runnable::any(*name)).collect();
        Claim { loops, limit, ..claim(WORKER, 5_000) }
    };
    gives(&store, "none", of(&[], 0), &[]).await?;
    gives(&store, "those of a loop that has none", of(&["", "ech", "echo2"], 10), &[]).await?;
    let mut order = Vec::new();
    for _ in 0..5 {
        let claimed = store.claim(of(&["other", "echo"], 1)).await?;
        order.extend(claimed.iter().map(|claimed| claimed.row.run));
    }
    let expected: Vec<RunId> = [2, 4, 5, 3, 1].into_iter().map(run_id).collect();
    same("one by one, longest untouched first", &order, &expected)?;
    gives(&store, "the rest", of(&[], 10), &[(6, false)]).await?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_run_without_entries_is_claimed(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    store.heartbeat(WORKER, TimeMs(60_000)).await?;
    let new = waiting(1, RunStatus::Running, None);
    let create = Write::CreateRun(Box::new(new.clone()));
    let expect = vec![Expect::RunAbsent(run_id(1))];
    let batch = Batch { expect, writes: vec![create, Write::AddInbox(signal(run_id(1), "first"))] };
    store.commit(batch).await?;
    same("the row", &store.run(run_id(1)).await?, &Some(new.clone()))?;
    same("the entries", &store.entries(run_id(1), Seq(0), 10).await?, &Vec::new())?;

    let claimed = store.claim(claim(WORKER, 5_000)).await?;
    let row = RunRow { epoch: new.epoch.next(), worker: Some(WORKER), ..new };
    same("what is due", &claimed, &vec![Claimed { row: row.clone(), crashed: false }])?;
    let Some(item) = store.inbox(run_id(1), 10).await?.pop() else {
        return Err(Finding::new("its item is gone"));
    };
    let mut pen = Pen::of(&row);
    let mut first = pen.step(1);
    first.writes.push(Write::TakeInbox { run: run_id(1), id: item.id });
    store.commit(first).await?;
    ends_at(&store, &pen).await?;
    Ok(Verdict::Passed)
}

pub(super) async fn next_wake_is_the_earliest_that_a_claim_would_take(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    same("the next wake of an empty store", &store.next_wake().await?, &None)?;
    create(&store, &waiting(1, RunStatus::Suspended, Some(9_000))).await?;
    create(&store, &waiting(2, RunStatus::Suspended, None)).await?;
    create(&store, &waiting(3, RunStatus::Suspended, Some(5_000))).await?;
    create(&store, &RunRow { wake_at: Some(TimeMs(1_000)), ..row(4) }).await?;
    create(&store, &waiting(5, RunStatus::Parked, Some(1_000))).await?;
    create(&store, &waiting(6, RunStatus::Ended, Some(1_000))).await?;
    same("the next wake", &store.next_wake().await?, &Some(TimeMs(5_000)))?;
    store.heartbeat(WORKER, TimeMs(60_000)).await?;
    gives(&store, "what is due then", claim(WORKER, 5_000), &[(3, false)]).await?;
    same("the next wake once it is claimed", &store.next_wake().await?, &Some(TimeMs(9_000)))?;
    store.commit(writes([update(&waiting(1, RunStatus::Suspended, None))])).await?;
    same("the next wake once that timer is gone", &store.next_wake().await?, &None)?;
    store.commit(writes([update(&waiting(3, RunStatus::Suspended, Some(-7)))])).await?;
    same("a wake before all time", &store.next_wake().await?, &Some(TimeMs(-7)))?;
    Ok(Verdict::Passed)
}
