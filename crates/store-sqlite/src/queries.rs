//! The reads of the port. Each is one statement.

use crate::failure::{Failure, Result};
use crate::rows::{self, corrupt, run_columns, run_row};
use loopd_kernel::{Digest, Entry, RunId, Seq, TimeMs};
use loopd_store::{InboxItem, Page, QuestionRow, RunFilter, RunRow, Snapshot, StoreError};
use rusqlite::{Connection, OptionalExtension, Params, Row, named_params, params};

pub(crate) fn collect<T>(
    conn: &Connection,
    sql: &str,
    values: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let mut items = Vec::new();
    while let Some(row) = rows.next()? {
        items.push(read(row)?);
    }
    Ok(items)
}

pub(crate) fn limit(items: usize) -> i64 {
    i64::try_from(items).unwrap_or(i64::MAX)
}

pub(crate) fn run(conn: &Connection, run: RunId) -> Result<Option<RunRow>> {
    let sql = concat!("SELECT ", run_columns!(), " FROM run WHERE run = ?1");
    Ok(collect(conn, sql, [run.0], run_row)?.pop())
}

/// A list of Runs of which `$which` is true as well.
macro_rules! list {
    ($which:literal) => {
        concat!(
            "SELECT ",
            run_columns!(),
            " FROM run
             WHERE (:before IS NULL OR id < (SELECT id FROM run WHERE run = :before))
               AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
               AND (:loop IS NULL OR loop_name = :loop) AND ",
            $which,
            " ORDER BY id DESC LIMIT :limit"
        )
    };
}

/// Two statements, because one with a choice in it reads every Run to find the children of one.
const ALL: &str = list!(":parent IS NULL");
pub(crate) const CHILDREN: &str = list!("parent = :parent");

pub(crate) fn runs(conn: &Connection, filter: &RunFilter) -> Result<Page<RunRow>> {
    let more = limit(filter.limit.saturating_add(1));
    let rows = match &filter.admission {
        Some((tenant, key)) => admitted(conn, tenant, key, filter)?,
        None => {
            let values = named_params! {
                ":before": filter.before.map(|run| run.0), ":statuses": statuses(filter)?,
                ":loop": filter.loop_name, ":parent": filter.parent.map(|run| run.0), ":limit": more,
            };
            let sql = if filter.parent.is_some() { CHILDREN } else { ALL };
            collect(conn, sql, values, run_row)?
        }
    };
    Ok(Page::of_rows(rows, filter.limit))
}

/// At most one Run has an admission key, and it has an index.
fn admitted(conn: &Connection, tenant: &str, key: &str, filter: &RunFilter) -> Result<Vec<RunRow>> {
    let sql = concat!(
        "SELECT ",
        run_columns!(),
        " FROM run WHERE tenant = :tenant AND admission = :key
           AND (:before IS NULL OR id < (SELECT id FROM run WHERE run = :before))"
    );
    let values = named_params! { ":tenant": tenant, ":key": key, ":before": filter.before.map(|run| run.0) };
    let mut rows = collect(conn, sql, values, run_row)?;
    rows.retain(|row| filter.shows(row));
    Ok(rows)
}

fn statuses(filter: &RunFilter) -> Result<Option<String>> {
    if filter.statuses.is_empty() {
        return Ok(None);
    }
    let numbers: Vec<_> = filter.statuses.iter().map(|status| rows::status_number(*status)).collect();
    let json = serde_json::to_string(&numbers);
    json.map(Some).map_err(|error| StoreError::Unavailable(error.to_string()).into())
}

pub(crate) fn entries(conn: &Connection, run: RunId, after: Seq, items: usize) -> Result<Vec<Entry>> {
    let sql = "SELECT seq, kind, at, record_len, hash, body FROM entry
               WHERE run = (SELECT id FROM run WHERE run = ?1) AND seq > ?2 ORDER BY seq LIMIT ?3";
    let after = i64::try_from(after.0).unwrap_or(i64::MAX);
    collect(conn, sql, params![run.0, after, limit(items)], |row| rows::entry(row, run))
}

pub(crate) fn snapshot(conn: &Connection, run: RunId) -> Result<Option<Snapshot>> {
    let sql = "SELECT seq, body FROM snapshot WHERE run = (SELECT id FROM run WHERE run = ?1)";
    let mut statement = conn.prepare_cached(sql)?;
    let snapshot = statement
        .query_row([run.0], |row| Ok(Snapshot { run, seq: Seq(row.get::<_, i64>(0)? as u64), body: row.get(1)? }));
    Ok(snapshot.optional()?)
}

pub(crate) fn inbox(conn: &Connection, run: RunId, items: usize) -> Result<Vec<InboxItem>> {
    let sql = "SELECT id, key, at, body FROM inbox
               WHERE run = (SELECT id FROM run WHERE run = ?1) AND size > 0 ORDER BY id LIMIT ?2";
    collect(conn, sql, params![run.0, limit(items)], |row| rows::inbox_item(row, run))
}

pub(crate) fn questions(conn: &Connection, run: Option<RunId>, items: usize) -> Result<Vec<QuestionRow>> {
    let sql = "SELECT run.run, question.id, question.body FROM question JOIN run ON run.id = question.run
               WHERE ?1 IS NULL OR question.run = (SELECT id FROM run WHERE run = ?1)
               ORDER BY question.asked_at, run.run, question.id LIMIT ?2";
    collect(conn, sql, params![run.map(|run| run.0), limit(items)], |row| {
        let (run, id, body) = (RunId(row.get(0)?), row.get::<_, i64>(1)?, row.get::<_, String>(2)?);
        let question = serde_json::from_str(&body);
        let question = question.map_err(|error| corrupt(format!("{run} question {id}: {error}")))?;
        Ok::<_, Failure>(QuestionRow { run, question })
    })
}

pub(crate) fn blob(conn: &Connection, digest: Digest) -> Result<Option<Vec<u8>>> {
    let mut statement = conn.prepare_cached("SELECT bytes FROM blob WHERE digest = ?1")?;
    Ok(statement.query_row([digest.0], |row| row.get(0)).optional()?)
}

pub(crate) const NEXT_WAKE: &str = "
  SELECT wake_at FROM run WHERE status = 1 AND wake_at IS NOT NULL AND worker IS NULL ORDER BY wake_at LIMIT 1";

pub(crate) fn next_wake(conn: &Connection) -> Result<Option<TimeMs>> {
    let mut statement = conn.prepare_cached(NEXT_WAKE)?;
    Ok(statement.query_row([], |row| row.get(0).map(TimeMs)).optional()?)
}
