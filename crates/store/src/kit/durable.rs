//! What is left after closing.

use super::shelf::{self, Shelf};
use super::world::{
    View, all_runs, cancel, create, creation, ends_at, question, row, run_id, signal, update, verify, writes,
};
use super::{Finding, Outcome, Subject, Verdict, ensure, same};
use crate::batch::Write;
use crate::error::{Expectation, StoreError};
use crate::records::{Counter, Place, Record};
use crate::rows::{RunRow, RunStatus, Snapshot};
use loopd_kernel::chain::ChainError;
use loopd_kernel::{Digest, QuestionId, Seq, TimeMs};
use std::sync::Arc;

pub(super) async fn reopening_keeps_everything(subject: Arc<dyn Subject>) -> Outcome {
    if !subject.features().durable {
        return Ok(Verdict::NotApplicable);
    }
    let store = subject.open().await?;
    let digest = Digest::sha256(&[b"blob"]);
    for n in 1..=4 {
        let mut pen =
            create(&store, &RunRow { admission: Some(format!("key {n}")), parent: Some(run_id(1)), ..row(n) }).await?;
        let mut step = pen.step(5);
        step.writes.extend([
            update(&RunRow { status: RunStatus::Suspended, worker: None, wake_at: Some(TimeMs(9_000)), ..row(n) }),
            Write::PutSnapshot(Snapshot { run: run_id(n), seq: Seq(3), body: b"{}".to_vec() }),
            Write::AddInbox(signal(run_id(n), "one")),
            Write::AddInbox(cancel(run_id(n), "two")),
            Write::OpenQuestion(Box::new(question(run_id(n), 1, 1_000))),
            Write::OpenQuestion(Box::new(question(run_id(n), 2, 2_000))),
            Write::EndQuestion { run: run_id(n), question: QuestionId(1) },
        ]);
        store.commit(step).await?;
    }
    store.commit(writes([Write::PutBlob { digest, bytes: Arc::from(&b"blob"[..]) }])).await?;
    let mut before = Vec::new();
    for n in 1..=4 {
        before.push(View::of(&store, run_id(n)).await?);
    }
    let runs = all_runs(&store, 3).await?;
    drop(store);

    let store = subject.open().await?;
    for (n, before) in (1..).zip(before) {
        same(&format!("run {n} after reopening"), &View::of(&store, run_id(n)).await?, &before)?;
    }
    same("the list of runs", &all_runs(&store, 3).await?, &runs)?;
    same("the blob", &store.blob(digest).await?, &Some(b"blob".to_vec()))?;
    same("the next wake", &store.next_wake().await?, &Some(TimeMs(9_000)))?;
    Ok(Verdict::Passed)
}

pub(super) async fn reopening_keeps_what_surrounds(subject: Arc<dyn Subject>) -> Outcome {
    if !subject.features().durable {
        return Ok(Verdict::NotApplicable);
    }
    let store = subject.open().await?;
    let full = |n| Record {
        key: Some(format!("key {n}")),
        words: Some("a word".to_owned()),
        due: Some(TimeMs(5)),
        ..shelf::record(n)
    };
    store.commit(writes((1..=4).map(|n| shelf::put(full(n), Place::Next)))).await?;
    let tell = |n| shelf::publish(shelf::feed(n), "news", Some((shelf::TABLE, shelf::id(1))));
    store.commit(writes([tell(0), tell(0), tell(1), shelf::count("c", 3, Some(4))])).await?;
    let gone = [2, 4].map(|n| Write::DeleteRecord(shelf::TABLE, shelf::id(n)));
    store.commit(writes(gone.into_iter().chain([Write::EraseFeed(shelf::feed(1))]))).await?;
    let before = Shelf::of(&store).await?;
    drop(store);

    let store = subject.open().await?;
    same("everything after reopening", &Shelf::of(&store).await?, &before)?;
    // Numbers, positions, keys, revisions and bounds go on.
    let held = Record { key: Some("key 1".to_owned()), ..shelf::record(5) };
    let conflict = Err(StoreError::Conflict(Expectation::RecordKey(shelf::TABLE, shelf::id(1))));
    same("the key", &shelf::write(&store, shelf::put(held, Place::Next)).await, &conflict)?;
    let conflict = Err(StoreError::Conflict(Expectation::Counter(Counter("c".to_owned()))));
    same("the bound", &shelf::write(&store, shelf::count("c", 2, Some(4))).await, &conflict)?;
    store
        .commit(writes([shelf::put(full(4), Place::Next), shelf::put(full(1), Place::Keep), tell(0), tell(1)]))
        .await?;
    let expected = vec![(1, 1), (3, 3), (4, 5)];
    same("the places", &shelf::listed(&store, shelf::TABLE, shelf::SCOPE).await?, &expected)?;
    let found = shelf::search(&store, &[shelf::SCOPE], "word").await?;
    same("what the word finds", &found, &vec![4, 3, 1])?;
    let items = [store.feed(shelf::feed(0), 2, 9).await?, store.feed(shelf::feed(1), 0, 9).await?];
    let expected = [3, 2].map(|position| vec![shelf::item(position, "news", Some((1, 2)))]);
    same("what was told", &items, &expected)?;
    Ok(Verdict::Passed)
}

pub(super) async fn keys_survive_reopening(subject: Arc<dyn Subject>) -> Outcome {
    if !subject.features().durable {
        return Ok(Verdict::NotApplicable);
    }
    let store = subject.open().await?;
    create(&store, &RunRow { admission: Some("order-1".to_owned()), ..row(1) }).await?;
    store.commit(writes(["taken", "waiting"].map(|key| Write::AddInbox(signal(run_id(1), key))))).await?;
    let inbox = store.inbox(run_id(1), 10).await?;
    let [taken, waiting] = &inbox[..] else {
        return Err(Finding::new("two items should wait"));
    };
    store.commit(writes([Write::TakeInbox { run: run_id(1), id: taken.id }])).await?;
    drop(store);

    let store = subject.open().await?;
    for key in ["taken", "waiting"] {
        let known = Err(StoreError::Conflict(Expectation::InboxKey(key.to_owned())));
        same(key, &store.commit(writes([Write::AddInbox(signal(run_id(1), key))])).await, &known)?;
    }
    let second = RunRow { admission: Some("order-1".to_owned()), ..row(2) };
    let held = Err(StoreError::Conflict(Expectation::Admission(run_id(1))));
    same("the admission key", &store.commit(creation(&second).0).await, &held)?;
    // Ids go on rising, also when the newest item was taken before the store closed.
    store.commit(writes([Write::TakeInbox { run: run_id(1), id: waiting.id }])).await?;
    drop(store);
    let store = subject.open().await?;
    store.commit(writes([Write::AddInbox(signal(run_id(1), "new"))])).await?;
    let new = store.inbox(run_id(1), 10).await?.first().map_or(0, |item| item.id);
    ensure(new > waiting.id, || format!("item {new} came after item {}", waiting.id))?;
    Ok(Verdict::Passed)
}

pub(super) async fn the_chain_verifies_after_reopening(subject: Arc<dyn Subject>) -> Outcome {
    if !subject.features().durable {
        return Ok(Verdict::NotApplicable);
    }
    let store = subject.open().await?;
    let mut pens = [create(&store, &row(1)).await?, create(&store, &row(2)).await?];
    drop(store);
    // Goes on where it stood, three times.
    for _ in 0..3 {
        let store = subject.open().await?;
        for pen in &mut pens {
            ends_at(&store, pen).await?;
            for _ in 0..10 {
                store.commit(pen.step(2)).await?;
            }
            ends_at(&store, pen).await?;
        }
    }
    Ok(Verdict::Passed)
}

pub(super) async fn damage_is_found_and_named(subject: Arc<dyn Subject>) -> Outcome {
    if !subject.features().damage {
        return Ok(Verdict::NotApplicable);
    }
    let store = subject.open().await?;
    let mut pens = [create(&store, &row(1)).await?, create(&store, &row(2)).await?];
    for pen in &mut pens {
        store.commit(pen.step(8)).await?;
    }
    drop(store);
    let bad = Seq(5);
    subject.damage(run_id(1), bad).await?;

    let store = subject.open().await?;
    // Either the store notices by itself, or it hands over bytes that the chain refuses: at the same place.
    match verify(&store, run_id(1)).await {
        Ok(found) => same("what the chain says", &found, &Err(ChainError::Mismatch { seq: bad }))?,
        Err(finding) => {
            let text = finding.to_string();
            let named = text.contains(&run_id(1).to_string()) && text.contains(&format!("entry {bad}"));
            ensure(named, || format!("run and entry are not named: {text}"))?;
        }
    }
    same("the entries before it", &store.entries(run_id(1), Seq(0), 4).await?.len(), &4)?;
    same("the entries behind it", &store.entries(run_id(1), bad, 4).await?.len(), &4)?;
    ends_at(&store, &pens[1]).await?;
    Ok(Verdict::Passed)
}
