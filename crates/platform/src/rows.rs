//! Records of the store as the platform means them: identities, reads, and the one way in which a change is tried.

use crate::Platform;
use crate::error::Error;
use loopd_kernel::{Digest, TimeMs};
use loopd_protocol::{ActorKey, Event};
use loopd_store::{
    Batch, Counter, Expect, Expectation, Feed, FeedKind, List, NewItem, Place, Query, Record, RecordId, StoreError,
    Table, Write,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What belongs to nothing else.
pub(crate) const EVERYTHING: RecordId = RecordId([0; 16]);

/// How often a change that somebody else overtakes is tried again.
const TRIES: u32 = 64;

/// The identity of what has a name: the same name is the same Record.
pub(crate) fn named(name: &str) -> RecordId {
    hashed(&[name.as_bytes()])
}

/// The identity of what is known by these bytes.
pub(crate) fn hashed(parts: &[&[u8]]) -> RecordId {
    let digest = Digest::sha256(parts);
    let mut id = [0; 16];
    for (slot, byte) in id.iter_mut().zip(digest.0) {
        *slot = byte;
    }
    RecordId(id)
}

/// The digest of a request: the same request under the same key is the same thing.
pub(crate) fn digest(request: &impl Serialize) -> String {
    Digest::sha256(&[&serde_json::to_vec(request).unwrap_or_default()]).to_string()
}

/// Bytes of a key.
const KEY: usize = 200;

/// Whether a text can be the key of a request: 1 to 200 visible ASCII characters, without spaces.
#[must_use]
pub fn is_key(text: &str) -> bool {
    (1..=KEY).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The key under which an Actor's request is known in a scope.
pub(crate) fn request_key(actor: &ActorKey, key: &str) -> Option<String> {
    (!key.is_empty()).then(|| format!("{actor} {key}"))
}

/// A Record to write. Place and revision are the store's.
pub(crate) fn record(table: Table, id: RecordId, scope: RecordId, body: &impl Serialize) -> Record {
    let body = serde_json::to_vec(body).unwrap_or_default();
    Record { table, id, scope, place: 0, key: None, due: None, rev: 0, words: None, body }
}

/// Reads a Record's body.
pub(crate) fn body<T: DeserializeOwned>(record: &Record) -> Result<T, Error> {
    serde_json::from_slice(&record.body)
        .map_err(|error| StoreError::Corrupt(format!("{:?} {:?}: {error}", record.table, record.id)).into())
}

pub(crate) fn put(record: Record, place: Place) -> Write {
    Write::PutRecord(Box::new(record), place)
}

pub(crate) const fn expect(table: Table, id: RecordId, rev: Option<u64>) -> Expect {
    Expect::Record { table, id, rev }
}

/// An item of a Feed that tells of `of` as the Batch leaves it.
pub(crate) fn publish(feed: Feed, at: TimeMs, of: Option<(Table, RecordId)>, event: &Event) -> Write {
    let body = serde_json::to_vec(event).unwrap_or_default();
    Write::Publish(NewItem { feed, at, of, body: body.into() })
}

pub(crate) fn conversation_feed(id: RecordId) -> Feed {
    Feed { kind: FeedKind::Conversation, id }
}

pub(crate) fn actor_feed(actor: &ActorKey) -> Feed {
    Feed { kind: FeedKind::Actor, id: named(actor.as_str()) }
}

/// Counts how often a change was tried.
#[derive(Debug, Default)]
pub(crate) struct Tries(u32);

impl Tries {
    /// Whether it was tried at all.
    pub(crate) const fn any(&self) -> bool {
        self.0 > 0
    }
}

impl Platform {
    pub(crate) fn time(&self) -> TimeMs {
        self.clock.now()
    }

    /// A new identity: a millisecond prefix sorts by time, the rest is random.
    pub(crate) fn new_id(&self) -> [u8; 16] {
        let salt = self.entropy.salt();
        let time = self.time().0.to_be_bytes();
        let mut id = [0; 16];
        for (slot, byte) in id.iter_mut().zip(time.into_iter().skip(2).chain(salt)) {
            *slot = byte;
        }
        id
    }

    /// Commits a change that was decided from what was read before. `Ok`: read again, to see that it is there, or that
    /// somebody was faster and what to make of that. A change is therefore written as a loop that ends when it reads
    /// what it wants; an unclear commit needs no other care.
    pub(crate) async fn attempt(&self, tries: &mut Tries, batch: Batch) -> Result<(), Error> {
        tries.0 += 1;
        let error = match self.store.commit(batch).await {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        match &error {
            StoreError::Conflict(Expectation::Counter(Counter(counter))) => Err(full(counter)),
            StoreError::Conflict(_) if tries.0 < TRIES => Ok(()),
            StoreError::Ambiguous(_) if tries.0 < 4 => Ok(()),
            StoreError::Conflict(_) => {
                let detail = "too many others change the same thing at this moment".to_owned();
                Err(Error::Busy { code: "contended", detail, retry_after_s: 1 })
            }
            StoreError::Fenced(_)
            | StoreError::Ambiguous(_)
            | StoreError::Full(_)
            | StoreError::Unavailable(_)
            | StoreError::Corrupt(_)
            | StoreError::DriverElsewhere(_)
            | StoreError::ClientOnly
            | StoreError::TooNew { .. } => Err(error.into()),
        }
    }

    /// The Record, if there is one.
    pub(crate) async fn get(&self, table: Table, id: RecordId) -> Result<Option<Record>, Error> {
        Ok(self.store.records(Query::Record(table, id)).await?.pop())
    }

    /// The Record with this key, if there is one.
    pub(crate) async fn by_key(&self, table: Table, scope: RecordId, key: &str) -> Result<Option<Record>, Error> {
        Ok(self.store.records(Query::Key(table, scope, key.to_owned())).await?.pop())
    }

    /// A part of a scope's list, and where the next one begins.
    pub(crate) async fn page(
        &self,
        (table, scope): (Table, RecordId),
        newest_first: bool,
        paging: &crate::Paging,
    ) -> Result<(Vec<Record>, Option<String>), Error> {
        let beyond = paging.cursor.as_deref().map(cursor).transpose()?;
        let limit = self.limit(paging.limit);
        let list = List { table, scope, beyond, newest_first, limit: limit + 1 };
        let mut records = self.store.records(Query::List(list)).await?;
        let more = records.len() > limit;
        records.truncate(limit);
        let next = if more { records.last().map(|last| written(last.place, last.id)) } else { None };
        Ok((records, next))
    }

    /// The size of a part of a list: 0 is the usual one, and none is larger than [`crate::Config::page`].
    #[must_use]
    pub fn limit(&self, asked: usize) -> usize {
        let usual = self.config.page.min(50);
        if asked == 0 { usual } else { asked.min(self.config.page) }
    }
}

fn full(counter: &str) -> Error {
    let detail = format!("{counter} is full; nothing was accepted");
    Error::Busy { code: "capacity", detail, retry_after_s: 2 }
}

/// A place in a list as text.
pub(crate) fn written(place: u64, id: RecordId) -> String {
    use std::fmt::Write as _;
    let mut text = format!("{place}.");
    for byte in id.0 {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn cursor(text: &str) -> Result<(u64, RecordId), Error> {
    let read = || {
        let (place, hex) = text.split_once('.')?;
        let mut id = [0; 16];
        if hex.len() != 32 || !hex.is_ascii() {
            return None;
        }
        for (slot, at) in id.iter_mut().zip((0..32).step_by(2)) {
            *slot = u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()?;
        }
        Some((place.parse().ok()?, RecordId(id)))
    };
    read().ok_or_else(|| Error::invalid("cursor", "it is not one that a list has returned"))
}
