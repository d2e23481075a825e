//! What the cases about Records, Feeds and counters build their Batches from, and how they look at a store.

use super::world::writes;
use super::{Finding, Handle, same};
use crate::batch::Write;
use crate::error::{Expectation, StoreError};
use crate::port::Receipt;
use crate::records::{Counter, Feed, FeedItem, FeedKind, List, NewItem, Place, Query, Record, RecordId, Table};
use loopd_kernel::TimeMs;
use std::sync::Arc;

/// The table of most cases, and another one.
pub(super) const TABLE: Table = Table::Message;
pub(super) const ELSEWHERE: Table = Table::Member;

/// The scope of most cases, and another one.
pub(super) const SCOPE: RecordId = id(200);
pub(super) const ASIDE: RecordId = id(201);

/// The `n`th identity.
pub(super) const fn id(n: u8) -> RecordId {
    RecordId([n; 16])
}

/// The `n`th Record of [`TABLE`] in [`SCOPE`], as it reads once it was written to its first place.
pub(super) fn record(n: u8) -> Record {
    Record {
        table: TABLE,
        id: id(n),
        scope: SCOPE,
        place: 1,
        key: None,
        due: None,
        rev: 1,
        words: None,
        body: format!("body {n}").into_bytes(),
    }
}

pub(super) fn put(record: Record, place: Place) -> Write {
    Write::PutRecord(Box::new(record), place)
}

/// Commits one write.
pub(super) async fn write(store: &Handle, write: Write) -> Result<Receipt, StoreError> {
    store.commit(writes([write])).await
}

pub(super) fn conflict(expectation: Expectation) -> Result<Receipt, StoreError> {
    Err(StoreError::Conflict(expectation))
}

pub(super) async fn find(store: &Handle, table: Table, n: u8) -> Result<Option<Record>, Finding> {
    let mut found = store.records(Query::Record(table, id(n))).await?;
    same("how many records have one identity", &(found.len() < 2), &true)?;
    Ok(found.pop())
}

/// The first bytes of the identities.
pub(super) fn names(records: &[Record]) -> Vec<u8> {
    records.iter().map(|record| record.id.0[0]).collect()
}

pub(super) fn list(table: Table, scope: RecordId) -> List {
    List { table, scope, beyond: None, newest_first: false, limit: usize::MAX }
}

/// Names and places of what a scope lists.
pub(super) async fn listed(store: &Handle, table: Table, scope: RecordId) -> Result<Vec<(u8, u64)>, Finding> {
    let records = store.records(Query::List(list(table, scope))).await?;
    Ok(records.iter().map(|record| (record.id.0[0], record.place)).collect())
}

pub(super) async fn search(store: &Handle, scopes: &[RecordId], text: &str) -> Result<Vec<u8>, Finding> {
    let (scopes, text) = (scopes.to_vec(), text.to_owned());
    Ok(names(&store.records(Query::Search { table: TABLE, scopes, text, limit: usize::MAX }).await?))
}

pub(super) const fn feed(n: u8) -> Feed {
    Feed { kind: FeedKind::Conversation, id: id(n) }
}

/// Adds an item whose body is this text.
pub(super) fn publish(feed: Feed, text: &str, of: Option<(Table, RecordId)>) -> Write {
    Write::Publish(NewItem { feed, at: TimeMs(7_000), of, body: Arc::from(text.as_bytes()) })
}

/// An item as [`publish`] adds it.
pub(super) fn item(position: u64, text: &str, of: Option<(u64, u64)>) -> FeedItem {
    FeedItem { position, at: TimeMs(7_000), of, body: text.as_bytes().to_vec() }
}

pub(super) fn count(name: &str, by: i64, max: Option<u64>) -> Write {
    Write::Count { counter: Counter(name.to_owned()), by, max }
}

pub(super) async fn counted(store: &Handle, name: &str) -> Result<u64, Finding> {
    Ok(store.counter(Counter(name.to_owned())).await?)
}

/// Everything that a store shows of these tables, scopes, words, Feeds and counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shelf {
    records: Vec<Record>,
    found: Vec<u8>,
    feeds: Vec<Vec<FeedItem>>,
    heads: Vec<u64>,
    counter: u64,
}

impl Shelf {
    /// Of the first ten Records of each table, their scopes, the word "word", the first two Feeds and the counter "c".
    pub(super) async fn of(store: &Handle) -> Result<Self, Finding> {
        let (mut records, mut feeds) = (Vec::new(), Vec::new());
        for table in [TABLE, ELSEWHERE] {
            records.extend(store.records(Query::These(table, (0..10).map(id).collect())).await?);
            records.extend(store.records(Query::Due { table, until: TimeMs(i64::MAX), limit: 100 }).await?);
            for scope in [SCOPE, ASIDE] {
                records.extend(store.records(Query::List(list(table, scope))).await?);
                records.extend(store.records(Query::Key(table, scope, "key".to_owned())).await?);
            }
        }
        for n in 0..2 {
            feeds.push(store.feed(feed(n), 0, usize::MAX).await?);
        }
        let found = search(store, &[SCOPE, ASIDE], "word").await?;
        let heads = store.feed_heads(&[feed(0), feed(1)]).await?;
        Ok(Self { records, found, feeds, heads, counter: counted(store, "c").await? })
    }
}
