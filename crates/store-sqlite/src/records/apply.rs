//! What a Batch does to Records.

use super::{place as place_of, stored_place, tokens};
use crate::apply::{conflict, execute};
use crate::failure::Result;
use loopd_store::{Expectation, Place, Record, RecordId, Table};
use rusqlite::{Connection, OptionalExtension, params};

/// What there is of a Record that is about to be written: all but its body.
struct Old {
    key: i64,
    scope: RecordId,
    place: u64,
    name: Option<String>,
    due: Option<i64>,
    rev: u64,
    words: bool,
}

fn load(conn: &Connection, table: Table, id: RecordId) -> Result<Option<Old>> {
    let sql = "SELECT id, scope, place, key, due, rev, words FROM record WHERE tbl = ?1 AND rid = ?2";
    let mut statement = conn.prepare_cached(sql)?;
    let old = statement.query_row((table.number(), id.0), |row| {
        Ok(Old {
            key: row.get(0)?,
            scope: RecordId(row.get(1)?),
            place: place_of(row.get(2)?),
            name: row.get(3)?,
            due: row.get(4)?,
            rev: row.get::<_, i64>(5)? as u64,
            words: row.get(6)?,
        })
    });
    Ok(old.optional()?)
}

/// Place and revision of a Record.
pub(crate) fn stands(conn: &Connection, table: Table, id: RecordId) -> Result<Option<(u64, u64)>> {
    let mut statement = conn.prepare_cached("SELECT place, rev FROM record WHERE tbl = ?1 AND rid = ?2")?;
    let stands =
        statement.query_row((table.number(), id.0), |row| Ok((place_of(row.get(0)?), row.get::<_, i64>(1)? as u64)));
    Ok(stands.optional()?)
}

pub(crate) fn check(conn: &Connection, table: Table, id: RecordId, rev: Option<u64>) -> Result<()> {
    let found = stands(conn, table, id)?.map(|(_, rev)| rev);
    if found == rev { Ok(()) } else { conflict(Expectation::Record { table, id, found }) }
}

pub(crate) fn put(conn: &Connection, record: &Record, place: Place) -> Result<()> {
    let Record { table, id, scope, .. } = *record;
    let old = load(conn, table, id)?;
    if let Some(old) = old.as_ref().filter(|old| old.scope != scope) {
        return conflict(Expectation::Record { table, id, found: Some(old.rev) });
    }
    if let Some(name) = &record.key
        && old.as_ref().is_none_or(|old| old.name.as_ref() != Some(name))
        && let Some(holder) = holder(conn, table, scope, name)?
    {
        return conflict(Expectation::RecordKey(table, holder));
    }
    let place = match (place, &old) {
        (Place::Keep, Some(old)) => old.place,
        (Place::Keep, None) | (Place::Next, _) => next_number(conn, table, scope)?,
        (Place::At(place), _) => place,
    };
    let tokens = tokens(record);
    let key = match &old {
        Some(old) => {
            update(conn, record, place, old, tokens.is_some())?;
            old.key
        }
        None => insert(conn, record, place, tokens.is_some())?,
    };
    if old.is_some_and(|old| old.words) {
        forget(conn, key)?;
    }
    match tokens {
        Some(tokens) => execute(conn, "INSERT INTO record_words (rowid, words) VALUES (?1, ?2)", params![key, tokens]),
        None => Ok(()),
    }
}

/// Answered from the index `record_key`, like [`TOUCH`].
pub(crate) const HOLDER: &str = "SELECT rid FROM record WHERE tbl = ?1 AND key = ?2 AND scope = ?3";

fn holder(conn: &Connection, table: Table, scope: RecordId, name: &str) -> Result<Option<RecordId>> {
    let mut statement = conn.prepare_cached(HOLDER)?;
    Ok(statement.query_row((table.number(), name, scope.0), |row| row.get(0).map(RecordId)).optional()?)
}

fn next_number(conn: &Connection, table: Table, scope: RecordId) -> Result<u64> {
    let sql = "INSERT INTO record_number (tbl, scope, last) VALUES (?1, ?2, 1)
               ON CONFLICT (tbl, scope) DO UPDATE SET last = last + 1 RETURNING last";
    let mut statement = conn.prepare_cached(sql)?;
    Ok(statement.query_row((table.number(), scope.0), |row| row.get::<_, i64>(0))? as u64)
}

fn insert(conn: &Connection, record: &Record, place: u64, words: bool) -> Result<i64> {
    let sql = "INSERT INTO record (tbl, rid, scope, place, key, due, rev, words, body)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?8)";
    let due = record.due.map(|due| due.0);
    let (table, place) = (record.table.number(), stored_place(place));
    let values = params![table, record.id.0, record.scope.0, place, record.key, due, words, record.body];
    execute(conn, sql, values)?;
    Ok(conn.last_insert_rowid())
}

/// The columns that indexes hold are named only when they differ, because naming them rewrites index entries, and so
/// pages.
fn update(conn: &Connection, record: &Record, place: u64, old: &Old, words: bool) -> Result<()> {
    let due = record.due.map(|due| due.0);
    let rev = (old.rev + 1) as i64;
    if (old.place, &old.name, old.due) == (place, &record.key, due) {
        let sql = "UPDATE record SET rev = ?2, words = ?3, body = ?4 WHERE id = ?1";
        return execute(conn, sql, params![old.key, rev, words, record.body]);
    }
    let sql = "UPDATE record SET rev = ?2, words = ?3, body = ?4, place = ?5, key = ?6, due = ?7 WHERE id = ?1";
    execute(conn, sql, params![old.key, rev, words, record.body, stored_place(place), record.key, due])
}

fn forget(conn: &Connection, key: i64) -> Result<()> {
    execute(conn, "DELETE FROM record_words WHERE rowid = ?1", [key])
}

pub(crate) fn delete(conn: &Connection, table: Table, id: RecordId) -> Result<()> {
    let sql = "DELETE FROM record WHERE tbl = ?1 AND rid = ?2 RETURNING id, words";
    let mut statement = conn.prepare_cached(sql)?;
    let removed = statement.query_row((table.number(), id.0), |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    match removed {
        Some((key, true)) => forget(conn, key),
        Some((_, false)) | None => Ok(()),
    }
}

pub(crate) const FORGET_SCOPE: &str = "
  DELETE FROM record_words WHERE rowid IN (SELECT id FROM record WHERE tbl = ?1 AND scope = ?2 AND words = 1)";
pub(crate) const DELETE_SCOPE: &str = "DELETE FROM record WHERE tbl = ?1 AND scope = ?2";

pub(crate) fn delete_scope(conn: &Connection, table: Table, scope: RecordId) -> Result<()> {
    execute(conn, FORGET_SCOPE, (table.number(), scope.0))?;
    execute(conn, DELETE_SCOPE, (table.number(), scope.0))
}

pub(crate) const TOUCH: &str = "UPDATE record SET place = ?3 WHERE tbl = ?1 AND key = ?2 AND place < ?3";

pub(crate) fn touch(conn: &Connection, table: Table, name: &str, place: u64) -> Result<()> {
    execute(conn, TOUCH, (table.number(), name, stored_place(place)))
}
