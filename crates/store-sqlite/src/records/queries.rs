//! The reads of Records. Each is one statement, and each is answered from an index.

use super::{expression, hex, record_columns, record_row, stored_place};
use crate::failure::Result;
use crate::queries::{collect, limit};
use loopd_store::{List, Query, Record, RecordId, StoreError, Table};
use rusqlite::{Connection, Params, params};

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT ", record_columns!(), " FROM ", $rest)
    };
}

pub(crate) const ONE: &str = select!("record WHERE tbl = ?1 AND rid = ?2");
pub(crate) const THESE: &str = select!(
    "json_each(?2) AS wanted CROSS JOIN record ON record.tbl = ?1 AND record.rid = unhex(wanted.value)
     ORDER BY wanted.key"
);
pub(crate) const KEY: &str = select!("record WHERE tbl = ?1 AND scope = ?2 AND key = ?3");
pub(crate) const OLDEST: &str =
    select!("record WHERE tbl = ?1 AND scope = ?2 AND (place, rid) > (?3, ?4) ORDER BY place, rid LIMIT ?5");
pub(crate) const NEWEST: &str =
    select!("record WHERE tbl = ?1 AND scope = ?2 AND (place, rid) < (?3, ?4) ORDER BY place DESC, rid DESC LIMIT ?5");
pub(crate) const DUE: &str = select!("record WHERE tbl = ?1 AND due <= ?2 ORDER BY due, rid LIMIT ?3");
/// Bodies are read only of what is shown, not of all that is found and sorted.
pub(crate) const SEARCH: &str = select!(
    "(SELECT record.id AS found FROM record_words CROSS JOIN record ON record.id = record_words.rowid
      WHERE record_words MATCH ?1 ORDER BY record.place DESC, record.rid DESC LIMIT ?2)
     CROSS JOIN record ON record.id = found ORDER BY record.place DESC, record.rid DESC"
);

pub(crate) fn records(conn: &Connection, query: &Query) -> Result<Vec<Record>> {
    match query {
        Query::Record(table, id) => read(conn, *table, ONE, (table.number(), id.0)),
        Query::These(table, ids) => read(conn, *table, THESE, (table.number(), json(ids)?)),
        Query::Key(table, scope, key) => read(conn, *table, KEY, (table.number(), scope.0, key)),
        Query::List(list) => page(conn, list),
        Query::Due { table, until, limit: items } => read(conn, *table, DUE, (table.number(), until.0, limit(*items))),
        Query::Search { table, scopes, text, limit: items } => match expression(*table, scopes, text) {
            Some(expression) => read(conn, *table, SEARCH, (expression, limit(*items))),
            None => Ok(Vec::new()),
        },
    }
}

fn read(conn: &Connection, table: Table, sql: &str, values: impl Params) -> Result<Vec<Record>> {
    collect(conn, sql, values, |row| record_row(row, table))
}

fn page(conn: &Connection, list: &List) -> Result<Vec<Record>> {
    // Before every identity, and after each of them.
    let (sql, place, id): (_, _, &[u8]) = match (&list.beyond, list.newest_first) {
        (Some((place, id)), false) => (OLDEST, *place, &id.0),
        (Some((place, id)), true) => (NEWEST, *place, &id.0),
        (None, false) => (OLDEST, 0, &[]),
        (None, true) => (NEWEST, u64::MAX, &[0xff; 17]),
    };
    let values = params![list.table.number(), list.scope.0, stored_place(place), id, limit(list.limit)];
    read(conn, list.table, sql, values)
}

fn json(ids: &[RecordId]) -> Result<String> {
    let ids: Vec<_> = ids.iter().map(|id| hex(*id)).collect();
    serde_json::to_string(&ids).map_err(|error| StoreError::Unavailable(error.to_string()).into())
}
