//! How large what waits may be.

use super::world::{create, item, row, run_id, signal, update, writes};
use super::{Finding, Handle, Outcome, Subject, Verdict, same};
use crate::batch::Write;
use crate::error::{Expectation, StoreError};
use crate::rows::{
    INBOX_BYTES, INBOX_RESERVE_BYTES, ITEM_BYTES, ITEM_OVERHEAD, InboxBody, InboxItem, RunRow, RunStatus,
};
use loopd_kernel::RunId;
use std::sync::Arc;

/// A signal of this size.
fn sized(run: RunId, key: &str, bytes: usize) -> InboxItem {
    let body = "s".repeat(bytes - ITEM_OVERHEAD);
    item(run, key, InboxBody::Signal { name: String::new(), body })
}

/// A wish to cancel of this size.
fn wish(run: RunId, key: &str, bytes: usize) -> InboxItem {
    let reason = "c".repeat(bytes - ITEM_OVERHEAD);
    item(run, key, InboxBody::Cancel { actor: String::new(), reason })
}

async fn add(store: &Handle, item: InboxItem) -> Result<(), StoreError> {
    store.commit(writes([Write::AddInbox(item)])).await.map(|_| ())
}

fn conflict<T>(expectation: Expectation) -> Result<T, StoreError> {
    Err(StoreError::Conflict(expectation))
}

pub(super) async fn an_item_is_capped_in_bytes(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    create(&store, &row(1)).await?;
    let large = |run| conflict(Expectation::ItemTooLarge { run, bytes: ITEM_BYTES + 1, limit: ITEM_BYTES });
    add(&store, sized(run_id(1), "largest", ITEM_BYTES)).await?;
    let bytes = ITEM_BYTES + 1;
    same("a signal too large", &add(&store, sized(run_id(1), "new", bytes)).await, &large(run_id(1)))?;
    same("a wish too large", &add(&store, wish(run_id(1), "new", bytes)).await, &large(run_id(1)))?;
    // Whoever sends again what had arrived hears that it had, whatever else is wrong with it.
    let known = conflict(Expectation::InboxKey("largest".to_owned()));
    same("one whose key is known", &add(&store, sized(run_id(1), "largest", bytes)).await, &known)?;
    let unknown = conflict(Expectation::Run(run_id(2)));
    same("one for a run that is not there", &add(&store, sized(run_id(2), "new", bytes)).await, &unknown)?;
    store.commit(writes([Write::Notify(sized(run_id(1), "notice", bytes))])).await?;
    let waiting = store.inbox(run_id(1), 10).await?;
    let keys: Vec<_> = waiting.iter().map(|item| item.key.as_str()).collect();
    same("what waits", &keys, &vec!["largest", "notice"])?;

    store.commit(writes([update(&RunRow { status: RunStatus::Ended, worker: None, ..row(1) })])).await?;
    let sealed = conflict(Expectation::Sealed(run_id(1)));
    same("one for a sealed run", &add(&store, sized(run_id(1), "new", bytes)).await, &sealed)?;
    Ok(Verdict::Passed)
}

pub(super) async fn an_inbox_is_capped_in_bytes(subject: Arc<dyn Subject>) -> Outcome {
    const FIT: usize = INBOX_BYTES / ITEM_BYTES;
    let store = subject.open().await?;
    create(&store, &row(1)).await?;
    create(&store, &row(2)).await?;
    let full = || conflict(Expectation::InboxFull(run_id(1)));
    let largest = |n: usize| Write::AddInbox(sized(run_id(1), &format!("key {n}"), ITEM_BYTES));
    for at in (0..FIT - 2).step_by(8) {
        store.commit(writes((at..FIT - 2).take(8).map(largest))).await?;
    }
    let three = store.commit(writes((FIT..FIT + 3).map(largest))).await.map(|_| ());
    same("three items where two have room", &three, &full())?;
    // What Runs tell each other counts, though nothing holds it back.
    store.commit(writes([Write::Notify(sized(run_id(1), "notice", ITEM_BYTES))])).await?;
    add(&store, sized(run_id(1), "the last", ITEM_BYTES)).await?;
    same("an item too many", &add(&store, sized(run_id(1), "one more", ITEM_OVERHEAD)).await, &full())?;
    add(&store, signal(run_id(2), "another run has room")).await?;
    store.commit(writes([Write::Notify(sized(run_id(1), "notice in a full inbox", ITEM_OVERHEAD))])).await?;

    // Room for what stops the Run, but not for ever.
    add(&store, wish(run_id(1), "a full inbox locks nobody out of stopping", ITEM_OVERHEAD)).await?;
    let wishes = |n: usize| writes((0..n).map(|n| Write::AddInbox(wish(run_id(1), &format!("wish {n}"), ITEM_BYTES))));
    let reserve = INBOX_RESERVE_BYTES / ITEM_BYTES;
    same("wishes too many", &store.commit(wishes(reserve)).await.map(|_| ()), &full())?;
    store.commit(wishes(reserve - 1)).await?;

    // Taking makes room, exactly as much as the item took.
    let mut inbox = store.inbox(run_id(1), reserve + 1).await?.into_iter();
    let mut take = || inbox.next().map(|item| Write::TakeInbox { run: run_id(1), id: item.id });
    for _ in 1..reserve {
        let taken: Vec<_> = take().into_iter().collect();
        same("the items that are taken", &taken.len(), &1)?;
        store.commit(writes(taken)).await?;
        same("an item while wishes fill it", &add(&store, sized(run_id(1), "late", ITEM_OVERHEAD)).await, &full())?;
    }
    let Some(taken) = take() else {
        return Err(Finding::new("no item"));
    };
    let left = ITEM_BYTES - 2 * ITEM_OVERHEAD;
    let exchange = |bytes| writes([taken.clone(), Write::AddInbox(sized(run_id(1), "late", bytes))]);
    same("an item a byte too large", &store.commit(exchange(left + 1)).await.map(|_| ()), &full())?;
    store.commit(exchange(left)).await?;
    Ok(Verdict::Passed)
}
