//! Records, Feeds and counters of the in-memory store, and what a Batch does to them.

use super::state::{conflict, restore};
use crate::error::{Expectation, StoreError};
use crate::records::{
    Counter, FEED_BYTES, Feed, FeedItem, List, NewItem, Place, Query, Record, RecordId, Table, count_after, words,
};
use loopd_kernel::TimeMs;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Takes back one write.
pub(super) type Undo = Box<dyn FnOnce(&mut Records)>;

/// The least and the greatest identity.
const FIRST: RecordId = RecordId([0; 16]);
const LAST: RecordId = RecordId([0xff; 16]);

/// Every Record, with an index for each question that is asked about them.
#[derive(Default)]
pub(super) struct Records {
    rows: BTreeMap<(Table, RecordId), Row>,
    /// By table, scope, place and identity.
    lists: BTreeSet<(Table, RecordId, u64, RecordId)>,
    /// By table, key and scope.
    keys: BTreeMap<(Table, String, RecordId), RecordId>,
    due: BTreeSet<(Table, TimeMs, RecordId)>,
    /// The last number that was given, per table and scope.
    numbers: BTreeMap<(Table, RecordId), u64>,
    feeds: BTreeMap<Feed, Items>,
    counters: BTreeMap<Counter, u64>,
}

struct Row {
    /// As reads give it.
    record: Record,
    words: BTreeSet<String>,
}

#[derive(Default)]
struct Items {
    head: u64,
    items: BTreeMap<u64, FeedItem>,
}

/// Writes.
impl Records {
    pub(super) fn check(&self, table: Table, id: RecordId, rev: Option<u64>) -> Result<(), StoreError> {
        let found = self.rows.get(&(table, id)).map(|row| row.record.rev);
        if found == rev { Ok(()) } else { conflict(Expectation::Record { table, id, found }) }
    }

    pub(super) fn put(&mut self, mut record: Record, place: Place) -> Result<Undo, StoreError> {
        let Record { table, id, scope, .. } = record;
        let old = self.rows.get(&(table, id)).map(|row| &row.record);
        if let Some(old) = old.filter(|old| old.scope != scope) {
            return conflict(Expectation::Record { table, id, found: Some(old.rev) });
        }
        if let Some(key) = &record.key
            && let Some(holder) = self.keys.get(&(table, key.clone(), scope)).filter(|holder| **holder != id)
        {
            return conflict(Expectation::RecordKey(table, *holder));
        }
        record.rev = old.map_or(0, |old| old.rev) + 1;
        let number = self.numbers.get(&(table, scope)).copied();
        let next = number.unwrap_or(0) + 1;
        record.place = match (place, old) {
            (Place::Keep, Some(old)) => old.place,
            (Place::Keep, None) | (Place::Next, _) => next,
            (Place::At(place), _) => place,
        };
        if matches!((place, old), (Place::Keep, None) | (Place::Next, _)) {
            self.numbers.insert((table, scope), next);
        }
        let words = record.words.take().map(|text| words(&text)).unwrap_or_default();
        let before = self.replace((table, id), Some(Row { record, words }));
        Ok(Box::new(move |records| {
            records.replace((table, id), before);
            restore(&mut records.numbers, (table, scope), number);
        }))
    }

    pub(super) fn delete(&mut self, table: Table, id: RecordId) -> Undo {
        let before = self.replace((table, id), None);
        Box::new(move |records| drop(records.replace((table, id), before)))
    }

    pub(super) fn delete_scope(&mut self, table: Table, scope: RecordId) -> Undo {
        let ids: Vec<_> = self.list(table, scope).map(|(.., id)| *id).collect();
        let undos: Vec<_> = ids.into_iter().map(|id| self.delete(table, id)).collect();
        Box::new(|records| undos.into_iter().for_each(|undo| undo(records)))
    }

    pub(super) fn touch(&mut self, table: Table, key: String, place: u64) -> Undo {
        let named = (table, key.clone(), FIRST)..=(table, key, LAST);
        let ids: Vec<_> = self.keys.range(named).map(|(_, id)| *id).collect();
        let mut moved = Vec::new();
        for id in ids {
            let found = self.rows.get(&(table, id)).map(|row| row.record.place);
            if let Some(before) = found.filter(|before| *before < place) {
                self.shift(table, id, place);
                moved.push((id, before));
            }
        }
        Box::new(move |records| moved.into_iter().for_each(|(id, before)| records.shift(table, id, before)))
    }

    pub(super) fn publish(&mut self, item: NewItem) -> Undo {
        let NewItem { feed, at, of, body } = item;
        let of = of.and_then(|of| self.rows.get(&of)).map(|row| (row.record.place, row.record.rev));
        let new = !self.feeds.contains_key(&feed);
        let items = self.feeds.entry(feed).or_default();
        items.head += 1;
        let position = items.head;
        items.items.insert(position, FeedItem { position, at, of, body: body.to_vec() });
        Box::new(move |records| {
            if new {
                records.feeds.remove(&feed);
            } else if let Some(items) = records.feeds.get_mut(&feed) {
                items.items.remove(&position);
                items.head = position - 1;
            }
        })
    }

    pub(super) fn erase(&mut self, feed: Feed) -> Undo {
        let before = self.feeds.get_mut(&feed).map(|items| std::mem::take(&mut items.items));
        Box::new(move |records| {
            if let (Some(items), Some(before)) = (records.feeds.get_mut(&feed), before) {
                items.items = before;
            }
        })
    }

    pub(super) fn count(&mut self, counter: Counter, by: i64, max: Option<u64>) -> Result<Undo, StoreError> {
        let before = self.counters.get(&counter).copied();
        let Some(after) = count_after(before.unwrap_or(0), by, max) else {
            return conflict(Expectation::Counter(counter));
        };
        self.counters.insert(counter.clone(), after);
        Ok(Box::new(move |records| restore(&mut records.counters, counter, before)))
    }

    /// Puts a row, or nothing, in the place of another one, in every index.
    fn replace(&mut self, at: (Table, RecordId), row: Option<Row>) -> Option<Row> {
        let before = self.rows.remove(&at);
        let (table, id) = at;
        if let Some(Row { record, .. }) = &before {
            self.lists.remove(&(table, record.scope, record.place, id));
            if let Some(due) = record.due {
                self.due.remove(&(table, due, id));
            }
            if let Some(key) = &record.key {
                self.keys.remove(&(table, key.clone(), record.scope));
            }
        }
        if let Some(row) = row {
            let record = &row.record;
            self.lists.insert((table, record.scope, record.place, id));
            if let Some(due) = record.due {
                self.due.insert((table, due, id));
            }
            if let Some(key) = &record.key {
                self.keys.insert((table, key.clone(), record.scope), id);
            }
            self.rows.insert(at, row);
        }
        before
    }

    fn shift(&mut self, table: Table, id: RecordId, place: u64) {
        if let Some(Row { record, .. }) = self.rows.get_mut(&(table, id)) {
            self.lists.remove(&(table, record.scope, record.place, id));
            record.place = place;
            self.lists.insert((table, record.scope, place, id));
        }
    }
}

/// Reads.
impl Records {
    pub(super) fn find(&self, query: &Query) -> Vec<Record> {
        let record = |table, id| self.rows.get(&(table, id)).map(|row| row.record.clone());
        match query {
            Query::Record(table, id) => record(*table, *id).into_iter().collect(),
            Query::These(table, ids) => ids.iter().filter_map(|id| record(*table, *id)).collect(),
            Query::Key(table, scope, key) => {
                let holder = self.keys.get(&(*table, key.clone(), *scope));
                holder.and_then(|id| record(*table, *id)).into_iter().collect()
            }
            Query::List(list) => self.page(list),
            Query::Due { table, until, limit } => {
                let due = self.due.range((*table, TimeMs(i64::MIN), FIRST)..=(*table, *until, LAST));
                due.take(*limit).filter_map(|(.., id)| record(*table, *id)).collect()
            }
            Query::Search { table, scopes, text, limit } => self.search(*table, scopes, text, *limit),
        }
    }

    fn list(&self, table: Table, scope: RecordId) -> impl Iterator<Item = &(Table, RecordId, u64, RecordId)> {
        self.lists.range((table, scope, 0, FIRST)..=(table, scope, u64::MAX, LAST))
    }

    fn page(&self, list: &List) -> Vec<Record> {
        let List { table, scope, beyond, newest_first, limit } = *list;
        let (start, end) = ((table, scope, 0, FIRST), (table, scope, u64::MAX, LAST));
        let cursor = beyond.map(|(place, id)| Bound::Excluded((table, scope, place, id)));
        let record = |at: &(Table, RecordId, u64, RecordId)| self.rows.get(&(at.0, at.3)).map(|row| row.record.clone());
        if newest_first {
            let part = (Bound::Included(start), cursor.unwrap_or(Bound::Included(end)));
            self.lists.range(part).rev().take(limit).filter_map(record).collect()
        } else {
            let part = (cursor.unwrap_or(Bound::Included(start)), Bound::Included(end));
            self.lists.range(part).take(limit).filter_map(record).collect()
        }
    }

    fn search(&self, table: Table, scopes: &[RecordId], text: &str, limit: usize) -> Vec<Record> {
        let wanted = words(text);
        if wanted.is_empty() {
            return Vec::new();
        }
        let scopes: BTreeSet<_> = scopes.iter().copied().collect();
        let listed = scopes.into_iter().flat_map(|scope| self.list(table, scope));
        let rows = listed.filter_map(|(.., id)| self.rows.get(&(table, *id)));
        let mut found: Vec<_> = rows.filter(|row| wanted.is_subset(&row.words)).map(|row| &row.record).collect();
        found.sort_unstable_by_key(|record| std::cmp::Reverse((record.place, record.id)));
        found.into_iter().take(limit).cloned().collect()
    }

    pub(super) fn feed(&self, feed: Feed, after: u64, limit: usize) -> Vec<FeedItem> {
        let Some(items) = self.feeds.get(&feed) else {
            return Vec::new();
        };
        let later = items.items.range((Bound::Excluded(after), Bound::Unbounded));
        let mut bytes = 0;
        let fits = later.take(limit).take_while(|(_, item)| {
            let has_room = bytes < FEED_BYTES;
            bytes += item.body.len();
            has_room
        });
        fits.map(|(_, item)| item.clone()).collect()
    }

    pub(super) fn head(&self, feed: Feed) -> u64 {
        self.feeds.get(&feed).map_or(0, |items| items.head)
    }

    pub(super) fn counter(&self, counter: &Counter) -> u64 {
        self.counters.get(counter).copied().unwrap_or(0)
    }
}
