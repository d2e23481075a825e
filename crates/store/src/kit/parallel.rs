//! Many at once.

use super::world::{
    OTHER, Pen, View, all_runs, claim, create, creation, ends_at, row, run_id, signal, update, verify, writes,
};
use super::{Finding, Handle, Outcome, Subject, Verdict, ensure, same};
use crate::batch::{Batch, Write};
use crate::error::{Expectation, StoreError};
use crate::port::{Claim, RunFilter};
use crate::rows::{RunRow, RunStatus, WorkerId};
use loopd_kernel::{Digest, RunId, Seq, TimeMs};
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// Starts all of them at the same moment, each as a task of its own, and collects their results in order.
pub(super) async fn together<T: Send + 'static, F>(tasks: impl IntoIterator<Item = F>) -> Result<Vec<T>, Finding>
where
    F: Future<Output = T> + Send + 'static,
{
    let tasks: Vec<_> = tasks.into_iter().collect();
    let barrier = Arc::new(Barrier::new(tasks.len()));
    let mut set = JoinSet::new();
    for (at, task) in tasks.into_iter().enumerate() {
        let barrier = Arc::clone(&barrier);
        set.spawn(async move {
            barrier.wait().await;
            (at, task.await)
        });
    }
    let mut results = Vec::new();
    while let Some(result) = set.join_next().await {
        results.push(result.map_err(|error| Finding::new(format!("a task ended badly: {error}")))?);
    }
    results.sort_by_key(|(at, _)| *at);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

pub(super) async fn appenders_do_not_disturb_each_other(subject: Arc<dyn Subject>) -> Outcome {
    const RUNS: u64 = 16;
    const STEPS: u64 = 25;
    let store = subject.open().await?;
    let writer = |n: u64, store: Handle| async move {
        let mut expected = row(n);
        let mut pen = create(&store, &expected).await?;
        for step in 1..=STEPS {
            let mut batch = pen.step(1 + (step % 3) as usize);
            (expected.head, expected.hash, expected.iteration) = (pen.head, pen.hash, step);
            batch.writes.push(update(&expected));
            store.commit(batch).await?;
        }
        Ok::<_, Finding>((pen, expected))
    };
    let runs = together((1..=RUNS).map(|n| writer(n, Arc::clone(&store)))).await?;
    for run in runs {
        let (pen, expected) = run?;
        ends_at(&store, &pen).await?;
        same("the row", &store.run(pen.run).await?, &Some(expected))?;
    }
    same("how many runs there are", &all_runs(&store, 5).await?.len(), &(RUNS as usize))?;
    Ok(Verdict::Passed)
}

pub(super) async fn one_of_many_wins_each_seq(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let mut pen = create(&store, &row(1)).await?;
    for round in 1..=30_u64 {
        let racers = (0..8).map(|racer| {
            let (mut own, store) = (pen, Arc::clone(&store));
            let entry = own.write(&format!(r#"{{"racer":{racer}}}"#), b"");
            let write = Write::Append { run: run_id(1), entries: vec![entry] };
            let batch = Batch { expect: vec![pen.expect()], writes: vec![write] };
            async move { (store.commit(batch).await.map(|_| ()), own) }
        });
        let results = together(racers).await?;
        let winners: Vec<_> = results.iter().filter(|(result, _)| result.is_ok()).map(|(_, own)| *own).collect();
        let [winner] = winners[..] else {
            return Err(Finding::new(format!("round {round}: {} of 8 racers won", winners.len())));
        };
        let behind = Expectation::Head { run: run_id(1), expected: Seq(round), found: Seq(round + 1) };
        let lost = Err(StoreError::Conflict(behind));
        for (result, _) in results.iter().filter(|(result, _)| result.is_err()) {
            same("what a loser hears", result, &lost)?;
        }
        pen = winner;
        ends_at(&store, &pen).await?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn one_of_many_wins_an_admission_key(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    for round in 0..10_u64 {
        let racers = (1..=8).map(|racer| {
            let row = RunRow { admission: Some(format!("order-{round}")), ..row(round * 10 + racer) };
            let store = Arc::clone(&store);
            async move { (row.run, store.commit(creation(&row).0).await.map(|_| ())) }
        });
        let results = together(racers).await?;
        let winners: Vec<_> = results.iter().filter(|(_, result)| result.is_ok()).map(|(run, _)| *run).collect();
        let [winner] = winners[..] else {
            return Err(Finding::new(format!("round {round}: {} of 8 racers won", winners.len())));
        };
        for (run, result) in results.into_iter().filter(|(run, _)| *run != winner) {
            same("what a loser hears", &result, &Err(StoreError::Conflict(Expectation::Admission(winner))))?;
            same("the run of a loser", &store.run(run).await?, &None)?;
        }
    }
    Ok(Verdict::Passed)
}

/// Good Batches and bad ones, sent together again and again, so that they share flushes.
pub(super) async fn a_group_isolates_its_members(subject: Arc<dyn Subject>) -> Outcome {
    const RUNS: u64 = 12;
    let store = subject.open().await?;
    let mut pens = Vec::new();
    for n in 1..=RUNS {
        pens.push(create(&store, &row(n)).await?);
        store.commit(writes([Write::AddInbox(signal(run_id(n), "known"))])).await?;
    }
    for round in 0..20_u64 {
        let mut batches = Vec::new();
        for (n, pen) in (1..).zip(&mut pens) {
            let digest = Digest::sha256(&[&round.to_be_bytes(), &u64::to_be_bytes(n)]);
            let good = n % 3 != round % 3;
            let mut own = *pen;
            let mut batch = own.step(2);
            batch.writes.push(Write::PutBlob { digest, bytes: Arc::from(&digest.0[..]) });
            batch.writes.push(Write::AddInbox(signal(run_id(n), &format!("round {round}"))));
            if good {
                *pen = own;
            } else {
                // Written in full, and then its last write conflicts.
                batch.writes.push(Write::AddInbox(signal(run_id(n), "known")));
            }
            batches.push((run_id(n), digest, good, batch));
        }
        let sent = batches.iter().map(|(.., batch)| {
            let (store, batch) = (Arc::clone(&store), batch.clone());
            async move { store.commit(batch).await.map(|_| ()) }
        });
        let results = together(sent).await?;
        for ((run, digest, good, _), result) in batches.iter().zip(results) {
            let known = StoreError::Conflict(Expectation::InboxKey("known".to_owned()));
            same(&format!("{run} in round {round}"), &result, &if *good { Ok(()) } else { Err(known) })?;
            same("its blob", &store.blob(*digest).await?, &good.then(|| digest.0.to_vec()))?;
            let key = format!("round {round}");
            let added = store.inbox(*run, usize::MAX).await?.iter().any(|item| item.key == key);
            same("whether its inbox item is there", &added, good)?;
        }
        for pen in &pens {
            ends_at(&store, pen).await?;
        }
    }
    Ok(Verdict::Passed)
}

/// While writers append: never a gap, never a row ahead of its entries, never an order that changes.
pub(super) async fn readers_see_whole_prefixes(subject: Arc<dyn Subject>) -> Outcome {
    const STEPS: usize = 60;
    let store = subject.open().await?;
    let mut pens = [create(&store, &row(1)).await?, create(&store, &row(2)).await?];
    let ends: Vec<_> = pens.iter().map(|pen| Seq(pen.head.0 + 3 * STEPS as u64)).collect();
    let mut tasks = JoinSet::new();
    for pen in &mut pens {
        let (mut pen, store) = (*pen, Arc::clone(&store));
        tasks.spawn(async move {
            for step in 0..STEPS {
                let mut batch = pen.step(3);
                let item = signal(pen.run, &format!("{step:06}"));
                batch.writes.push(Write::AddInbox(item));
                store.commit(batch).await?;
            }
            Ok::<_, Finding>(())
        });
    }
    for (n, end) in (1..).zip(ends) {
        let (run, store) = (run_id(n), Arc::clone(&store));
        tasks.spawn(async move { watch(&store, run, end).await });
    }
    while let Some(done) = tasks.join_next().await {
        done.map_err(|error| Finding::new(error.to_string()))??;
    }
    Ok(Verdict::Passed)
}

async fn watch(store: &Handle, run: RunId, end: Seq) -> Result<(), Finding> {
    loop {
        let head = store.run(run).await?.map_or(Seq(0), |row| row.head);
        let entries = store.entries(run, Seq(0), usize::MAX).await?;
        let seqs: Vec<_> = entries.iter().map(|entry| entry.seq.0).collect();
        ensure(seqs.len() as u64 >= head.0, || format!("the row says {head}, but there are {} entries", seqs.len()))?;
        ensure(seqs.iter().copied().eq(1..=seqs.len() as u64), || format!("the entries are not in order: {seqs:?}"))?;
        ensure(seqs.len() % 3 == 1, || format!("{} entries: a batch of three was seen in part", seqs.len()))?;
        let inbox = store.inbox(run, usize::MAX).await?;
        let keys: Vec<_> = inbox.iter().map(|item| &item.key).collect();
        ensure(keys.is_sorted(), || format!("the inbox is not in the order of commits: {keys:?}"))?;
        if head == end {
            return same("the journal", &verify(store, run).await?, &Ok(end));
        }
        tokio::task::yield_now().await;
    }
}

pub(super) async fn two_claimers_never_get_the_same_run(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let claimers: Vec<_> = (1..=6).map(WorkerId).collect();
    for worker in &claimers {
        store.heartbeat(*worker, TimeMs(60_000)).await?;
    }
    for n in 1..=40 {
        create(&store, &RunRow { status: RunStatus::Suspended, worker: None, wake_at: Some(TimeMs(1)), ..row(n) })
            .await?;
    }
    let racers = claimers.into_iter().map(|worker| {
        let store = Arc::clone(&store);
        async move {
            let mut own = Vec::new();
            loop {
                let claimed = store.claim(Claim { limit: 3, ..claim(worker, 5_000) }).await?;
                if claimed.is_empty() {
                    return Ok::<_, StoreError>(own);
                }
                own.extend(claimed.into_iter().map(|claimed| (claimed.row.run, worker)));
            }
        }
    });
    let mut given = Vec::new();
    for own in together(racers).await? {
        given.extend(own?);
    }
    let different: BTreeSet<_> = given.iter().map(|(run, _)| *run).collect();
    same("runs given, and different ones among them", &(given.len(), different.len()), &(40, 40))?;
    for (run, worker) in given {
        let row = store.run(run).await?;
        same("who has it", &row.as_ref().and_then(|row| row.worker), &Some(worker))?;
        same("its epoch", &row.map(|row| row.epoch.0), &Some(2))?;
    }

    // One Run that everybody wants, and a lease that has lapsed.
    create(&store, &RunRow { worker: Some(OTHER), ..row(99) }).await?;
    let racers = (1..=6).map(|worker| {
        let only = Claim { only: Some(run_id(99)), ..claim(WorkerId(worker), 5_000) };
        let store = Arc::clone(&store);
        async move { store.claim(only).await.map(|claimed| claimed.len()) }
    });
    let mut winners = 0;
    for won in together(racers).await? {
        winners += won?;
    }
    same("how many got the one run", &winners, &1)?;
    Ok(Verdict::Passed)
}

pub(super) async fn pages_hold_while_runs_are_added(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let mut expected = Vec::new();
    let mut pens: Vec<Pen> = Vec::new();
    for n in 1..=20 {
        pens.push(create(&store, &row(n)).await?);
        expected.insert(0, run_id(n));
    }
    let mut filter = RunFilter { limit: 3, ..RunFilter::default() };
    let mut found = Vec::new();
    let mut next = 100;
    loop {
        let page = store.runs(filter.clone()).await?;
        found.extend(page.items.iter().map(|row| row.run));
        // Between two pages a Run is created, and the one at the cursor changes.
        create(&store, &row(next)).await?;
        next += 1;
        let Some(cursor) = page.next else { break };
        if let Some(pen) = pens.iter_mut().find(|pen| pen.run == cursor) {
            let mut batch = pen.step(1);
            batch.writes.push(update(&RunRow { run: cursor, status: RunStatus::Suspended, ..row(1) }));
            store.commit(batch).await?;
        }
        filter.before = Some(cursor);
    }
    same("the runs that were there from the start", &found, &expected)?;

    let adding = {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for n in 200..260 {
                create(&store, &row(n)).await?;
            }
            Ok::<_, Finding>(())
        })
    };
    loop {
        let done = adding.is_finished();
        let all = all_runs(&store, 4).await?;
        let different: BTreeSet<_> = all.iter().collect();
        same("runs listed, and different ones among them", &all.len(), &different.len())?;
        ensure(all.ends_with(&expected), || format!("the oldest runs are missing or out of order: {all:?}"))?;
        if done {
            break;
        }
    }
    adding.await.map_err(|error| Finding::new(error.to_string()))??;
    let View { row: newest, .. } = View::of(&store, run_id(259)).await?;
    ensure(newest.is_some(), || "the newest run is missing".to_owned())?;
    Ok(Verdict::Passed)
}
