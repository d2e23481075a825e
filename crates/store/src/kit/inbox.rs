//! What comes from outside.

use super::world::{cancel, create, row, run_id, signal, update, writes};
use super::{Finding, Handle, Outcome, Subject, Verdict, ensure, same, shelf};
use crate::batch::{Batch, Expect, Write};
use crate::error::{Expectation, StoreError};
use crate::port::Claim;
use crate::records::Place;
use crate::rows::{INBOX_ITEMS, InboxItem, RunRow, RunStatus};
use loopd_kernel::{RunId, TimeMs};
use std::sync::Arc;

async fn keys(store: &Handle, run: RunId) -> Result<Vec<String>, Finding> {
    Ok(store.inbox(run, usize::MAX).await?.into_iter().map(|item| item.key).collect())
}

async fn add(store: &Handle, item: InboxItem) -> Result<(), StoreError> {
    store.commit(writes([Write::AddInbox(item)])).await.map(|_| ())
}

fn conflict<T>(expectation: Expectation) -> Result<T, StoreError> {
    Err(StoreError::Conflict(expectation))
}

pub(super) async fn inbox_items_wait_in_order_until_taken(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    create(&store, &row(1)).await?;
    create(&store, &row(2)).await?;
    // The order is that of arrival: neither the key's nor the time's, and an id from outside means nothing.
    let backwards = InboxItem { id: 1_000, at: TimeMs(1), ..signal(run_id(1), "a") };
    add(&store, signal(run_id(1), "c")).await?;
    add(&store, signal(run_id(2), "elsewhere")).await?;
    store.commit(writes([Write::AddInbox(backwards), Write::AddInbox(cancel(run_id(1), "b"))])).await?;
    let inbox = store.inbox(run_id(1), 10).await?;
    same("the keys, oldest first", &keys(&store, run_id(1)).await?, &texts(&["c", "a", "b"]))?;
    ensure(inbox.is_sorted_by(|a, b| a.id < b.id), || format!("the ids do not rise: {inbox:?}"))?;
    same("the oldest two", &store.inbox(run_id(1), 2).await?.len(), &2)?;
    let Some(middle) = inbox.get(1) else {
        return Err(Finding::new("an item is missing"));
    };
    same("an item", &InboxItem { id: 0, ..middle.clone() }, &InboxItem { at: TimeMs(1), ..signal(run_id(1), "a") })?;

    let take = Write::TakeInbox { run: run_id(1), id: middle.id };
    let elsewhere = writes([Write::TakeInbox { run: run_id(2), id: middle.id }]);
    let gone = conflict(Expectation::InboxItem(middle.id));
    same("taking it for another run", &store.commit(elsewhere).await.map(|_| ()), &gone)?;
    store.commit(writes([take.clone()])).await?;
    same("taking it again", &store.commit(writes([take])).await.map(|_| ()), &gone)?;
    same("what still waits", &keys(&store, run_id(1)).await?, &texts(&["c", "b"]))?;
    add(&store, signal(run_id(1), "d")).await?;
    same("a new one waits last", &keys(&store, run_id(1)).await?, &texts(&["c", "b", "d"]))?;
    same("those of another run", &keys(&store, run_id(2)).await?, &texts(&["elsewhere"]))?;
    Ok(Verdict::Passed)
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

pub(super) async fn inbox_keys_are_known_for_ever(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    create(&store, &row(1)).await?;
    create(&store, &row(2)).await?;
    let known = || conflict(Expectation::InboxKey("key".to_owned()));
    let both = writes([Write::AddInbox(signal(run_id(1), "key")), Write::AddInbox(cancel(run_id(1), "key"))]);
    same("a key twice in one batch", &store.commit(both).await.map(|_| ()), &known())?;
    add(&store, signal(run_id(1), "key")).await?;
    same("a key that waits", &add(&store, cancel(run_id(1), "key")).await, &known())?;
    add(&store, signal(run_id(2), "key")).await?;

    let Some(item) = store.inbox(run_id(1), 1).await?.pop() else {
        return Err(Finding::new("no item"));
    };
    store.commit(writes([Write::TakeInbox { run: run_id(1), id: item.id }])).await?;
    same("a key that was taken", &add(&store, signal(run_id(1), "key")).await, &known())?;
    let ended = RunRow { status: RunStatus::Ended, worker: None, ..row(1) };
    store.commit(writes([update(&ended)])).await?;
    same("a key that was taken before the run ended", &add(&store, signal(run_id(1), "key")).await, &known())?;
    Ok(Verdict::Passed)
}

pub(super) async fn an_inbox_is_capped(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    create(&store, &row(1)).await?;
    create(&store, &row(2)).await?;
    let items = |from: usize, to: usize| {
        let keys = from..to;
        writes(keys.map(|n| Write::AddInbox(signal(run_id(1), &format!("key {n}")))))
    };
    let full = || conflict(Expectation::InboxFull(run_id(1)));
    store.commit(items(0, INBOX_ITEMS - 1)).await?;
    let two_more = items(INBOX_ITEMS, INBOX_ITEMS + 2);
    same("two items where one has room", &store.commit(two_more).await.map(|_| ()), &full())?;
    add(&store, signal(run_id(1), "the last")).await?;
    same("an item too many", &add(&store, signal(run_id(1), "one more")).await, &full())?;
    add(&store, cancel(run_id(1), "a full inbox locks nobody out of stopping")).await?;
    add(&store, signal(run_id(2), "another run has room")).await?;
    same("what waits", &store.inbox(run_id(1), usize::MAX).await?.len(), &(INBOX_ITEMS + 1))?;

    let Some(first) = store.inbox(run_id(1), 1).await?.pop() else {
        return Err(Finding::new("no item"));
    };
    store
        .commit(writes([
            Write::TakeInbox { run: run_id(1), id: first.id },
            Write::AddInbox(cancel(run_id(1), "urgent")),
        ]))
        .await?;
    same("an item too many again", &add(&store, signal(run_id(1), "late")).await, &full())?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_sealed_run_takes_no_items(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let pen = create(&store, &row(1)).await?;
    for status in [RunStatus::Suspended, RunStatus::Parked] {
        store.commit(writes([update(&RunRow { status, worker: None, ..row(1) })])).await?;
        add(&store, signal(run_id(1), status.name())).await?;
    }
    let sealed = || conflict(Expectation::Sealed(run_id(1)));
    let ended = RunRow { status: RunStatus::Ended, worker: None, ..row(1) };
    let in_one = Batch {
        expect: vec![pen.expect()],
        writes: vec![update(&ended), Write::AddInbox(signal(run_id(1), "too late"))],
    };
    same("an item behind the end, in one batch", &store.commit(in_one).await.map(|_| ()), &sealed())?;
    store.commit(writes([update(&ended)])).await?;
    same("an item for a sealed run", &add(&store, signal(run_id(1), "too late")).await, &sealed())?;
    same("what waits", &keys(&store, run_id(1)).await?, &texts(&["suspended", "parked"]))?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_client_only_adds_inbox_items(subject: Arc<dyn Subject>) -> Outcome {
    if !subject.features().clients {
        return Ok(Verdict::NotApplicable);
    }
    let store = subject.open().await?;
    let mut pen = create(&store, &row(1)).await?;
    let client = subject.client().await?;
    let both = writes([Write::AddInbox(signal(run_id(1), "one")), Write::AddInbox(cancel(run_id(1), "two"))]);
    client.commit(both).await?;
    same("what the driver sees", &keys(&store, run_id(1)).await?, &texts(&["one", "two"]))?;
    let known = conflict(Expectation::InboxKey("one".to_owned()));
    same("a key that is known", &add(&client, signal(run_id(1), "one")).await, &known)?;

    let expecting =
        Batch { expect: vec![Expect::RunAbsent(run_id(2))], writes: vec![Write::AddInbox(signal(run_id(1), "three"))] };
    let (version, definition) = ("2.0".to_owned(), row(1).definition);
    let change = Write::ChangeDefinition { run: run_id(1), version, definition };
    let refused = [
        ("an expectation", expecting),
        ("entries", pen.step(1)),
        ("an update", writes([update(&row(1))])),
        ("a notice", writes([Write::Notify(signal(run_id(1), "three"))])),
        ("a definition", writes([change])),
        ("taking an item", writes([Write::TakeInbox { run: run_id(1), id: 1 }])),
        ("a record", writes([shelf::put(shelf::record(1), Place::Next)])),
        ("a touch", writes([Write::Touch { table: shelf::TABLE, key: String::new(), place: 1 }])),
        ("removing a record", writes([Write::DeleteRecord(shelf::TABLE, shelf::id(1))])),
        ("removing a scope", writes([Write::DeleteScope(shelf::TABLE, shelf::SCOPE)])),
        ("an item of a feed", writes([shelf::publish(shelf::feed(1), "", None)])),
        ("erasing a feed", writes([Write::EraseFeed(shelf::feed(1))])),
        ("counting", writes([shelf::count("c", 1, None)])),
    ];
    for (what, batch) in refused {
        same(&format!("a client with {what}"), &client.commit(batch).await, &Err(StoreError::ClientOnly))?;
    }
    let only = Claim { only: Some(run_id(1)), ..super::world::claim(super::world::OTHER, 1_000) };
    same("a client that claims", &client.claim(only).await, &Err(StoreError::ClientOnly))?;
    let beat = client.heartbeat(super::world::OTHER, TimeMs(9_000)).await;
    same("a client with a heartbeat", &beat, &Err(StoreError::ClientOnly))?;
    same("what a client reads", &client.run(run_id(1)).await?, &store.run(run_id(1)).await?)?;
    same("what the driver sees at the end", &keys(&store, run_id(1)).await?, &texts(&["one", "two"]))?;
    Ok(Verdict::Passed)
}
