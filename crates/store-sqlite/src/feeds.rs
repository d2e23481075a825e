//! Feeds and counters: what a Batch does to them, and their reads.

use crate::apply::{conflict, execute};
use crate::failure::Result;
use crate::queries::{collect, limit};
use crate::records::{apply::stands, hex, place, stored_place};
use crate::rows::corrupt;
use loopd_kernel::TimeMs;
use loopd_store::records::count_after;
use loopd_store::{Counter, Expectation, FEED_BYTES, Feed, FeedItem, NewItem, StoreError};
use rusqlite::{Connection, OptionalExtension, Row, params};

pub(crate) fn publish(conn: &Connection, item: &NewItem) -> Result<()> {
    let NewItem { feed, at, of, body } = item;
    let of = match of {
        Some((table, id)) => stands(conn, *table, *id)?,
        None => None,
    };
    let sql = "INSERT INTO feed (kind, fid, head) VALUES (?1, ?2, 1)
               ON CONFLICT (kind, fid) DO UPDATE SET head = head + 1 RETURNING id, head";
    let mut statement = conn.prepare_cached(sql)?;
    let number = (feed.kind.number(), feed.id.0);
    let (key, position): (i64, i64) = statement.query_row(number, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let sql = "INSERT INTO feed_item (feed, position, at, place, rev, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let (place, rev) = (of.map(|(place, _)| stored_place(place)), of.map(|(_, rev)| rev as i64));
    execute(conn, sql, params![key, position, at.0, place, rev, &body[..]])
}

pub(crate) const ERASE: &str = "
  DELETE FROM feed_item WHERE feed = (SELECT id FROM feed WHERE kind = ?1 AND fid = ?2)";

pub(crate) fn erase(conn: &Connection, feed: Feed) -> Result<()> {
    execute(conn, ERASE, (feed.kind.number(), feed.id.0))
}

pub(crate) fn count(conn: &Connection, counter: &Counter, by: i64, max: Option<u64>) -> Result<()> {
    let Some(after) = count_after(self::counter(conn, counter)?, by, max) else {
        return conflict(Expectation::Counter(counter.clone()));
    };
    let sql = "INSERT INTO counter (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2";
    execute(conn, sql, (&counter.0, after as i64))
}

pub(crate) const ITEMS: &str = "
  SELECT position, at, place, rev, body FROM feed_item
  WHERE feed = (SELECT id FROM feed WHERE kind = ?1 AND fid = ?2) AND position > ?3 ORDER BY position LIMIT ?4";

pub(crate) fn items(conn: &Connection, feed: Feed, after: u64, items: usize) -> Result<Vec<FeedItem>> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let mut statement = conn.prepare_cached(ITEMS)?;
    let mut rows = statement.query((feed.kind.number(), feed.id.0, after, limit(items)))?;
    let (mut items, mut bytes) = (Vec::new(), 0);
    while bytes < FEED_BYTES
        && let Some(row) = rows.next()?
    {
        let wrong = |error| corrupt(format!("feed {:?} {}: {error}", feed.kind, hex(feed.id)));
        let item = item(row).map_err(wrong)?;
        bytes += item.body.len();
        items.push(item);
    }
    Ok(items)
}

fn item(row: &Row<'_>) -> rusqlite::Result<FeedItem> {
    let of: (Option<i64>, Option<i64>) = (row.get(2)?, row.get(3)?);
    Ok(FeedItem {
        position: row.get::<_, i64>(0)? as u64,
        at: TimeMs(row.get(1)?),
        of: of.0.zip(of.1).map(|(stored, rev)| (place(stored), rev as u64)),
        body: row.get(4)?,
    })
}

pub(crate) const HEADS: &str = "
  SELECT coalesce(feed.head, 0) FROM json_each(?1) AS wanted
  LEFT JOIN feed ON feed.kind = wanted.value ->> 0 AND feed.fid = unhex(wanted.value ->> 1) ORDER BY wanted.key";

pub(crate) fn heads(conn: &Connection, feeds: &[Feed]) -> Result<Vec<u64>> {
    let wanted: Vec<_> = feeds.iter().map(|feed| (feed.kind.number(), hex(feed.id))).collect();
    let wanted = serde_json::to_string(&wanted).map_err(|error| StoreError::Unavailable(error.to_string()))?;
    collect(conn, HEADS, [wanted], |row| Ok(row.get::<_, i64>(0)? as u64))
}

pub(crate) const COUNTER: &str = "SELECT value FROM counter WHERE name = ?1";

pub(crate) fn counter(conn: &Connection, counter: &Counter) -> Result<u64> {
    let mut statement = conn.prepare_cached(COUNTER)?;
    let value = statement.query_row([&counter.0], |row| row.get::<_, i64>(0)).optional()?;
    Ok(value.unwrap_or(0) as u64)
}
