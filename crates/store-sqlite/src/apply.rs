//! What a Batch does to the rows, inside a transaction that somebody else began.
//!
//! A step of a Run (expect, append, update) is one SELECT, one INSERT per Entry and one UPDATE: what a Batch
//! changes of a run row is collected and written once, at its end.

use crate::failure::Result;
use crate::records::apply as records;
use crate::{feeds, rows};
use loopd_kernel::{Digest, Entry, Epoch, RunId, Seq};
use loopd_store::batch::head_after;
use loopd_store::rows::Waiting;
use loopd_store::{Batch, Expect, Expectation, InboxItem, QuestionRow, RunRow, RunStatus, StoreError, Write};
use rusqlite::{Connection, OptionalExtension, Params, params};

/// Applies a Batch. On an error some of it may be written: the caller rolls back.
pub(crate) fn batch(conn: &Connection, batch: &Batch) -> Result<()> {
    let mut rows = Rows { conn, runs: Vec::new() };
    batch.expect.iter().try_for_each(|expect| rows.check(expect))?;
    batch.writes.iter().try_for_each(|write| rows.write(write))?;
    rows.finish()
}

/// The transaction, and the run rows that the Batch has looked at.
struct Rows<'a> {
    conn: &'a Connection,
    runs: Vec<Touched<'a>>,
}

/// A run row as the Batch has left it so far; what differs from the stored one is written at the end.
struct Touched<'a> {
    run: RunId,
    key: i64,
    epoch: Epoch,
    head: Seq,
    hash: Digest,
    lease: LeaseColumns,
    /// What waits in the inbox, once somebody asked.
    waiting: Option<Waiting>,
    moved: bool,
    update: Option<&'a Write>,
}

/// The columns that partial indexes hold. A step usually leaves them as they are.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LeaseColumns {
    status: i64,
    worker: Option<i64>,
    wake_at: Option<i64>,
}

pub(crate) fn conflict<T>(expectation: Expectation) -> Result<T> {
    Err(StoreError::Conflict(expectation).into())
}

pub(crate) fn execute(conn: &Connection, sql: &str, params: impl Params) -> Result<()> {
    conn.prepare_cached(sql)?.execute(params)?;
    Ok(())
}

impl<'a> Rows<'a> {
    fn find(&mut self, run: RunId) -> Result<Option<&mut Touched<'a>>> {
        let at = match self.runs.iter().position(|touched| touched.run == run) {
            Some(at) => at,
            None => match load(self.conn, run)? {
                Some(touched) => {
                    self.runs.push(touched);
                    self.runs.len() - 1
                }
                None => return Ok(None),
            },
        };
        Ok(self.runs.get_mut(at))
    }

    fn known(&mut self, run: RunId) -> Result<&mut Touched<'a>> {
        match self.find(run)? {
            Some(touched) => Ok(touched),
            None => conflict(Expectation::Run(run)),
        }
    }

    fn check(&mut self, expect: &Expect) -> Result<()> {
        match *expect {
            Expect::RunAt { run, seq, epoch } => {
                let touched = self.known(run)?;
                if touched.epoch != epoch {
                    return Err(StoreError::Fenced(epoch).into());
                }
                if touched.head != seq {
                    return conflict(Expectation::Head { run, expected: seq, found: touched.head });
                }
                Ok(())
            }
            Expect::RunAbsent(run) => match self.find(run)? {
                Some(_) => conflict(Expectation::Run(run)),
                None => Ok(()),
            },
            Expect::Record { table, id, rev } => records::check(self.conn, table, id, rev),
        }
    }

    fn write(&mut self, write: &'a Write) -> Result<()> {
        match write {
            Write::CreateRun(row) => self.create(row),
            Write::Append { run, entries } => self.append(*run, entries),
            Write::UpdateRun { run, status, worker, wake_at, .. } => {
                let touched = self.known(*run)?;
                touched.update = Some(write);
                touched.lease = LeaseColumns {
                    status: rows::status_number(*status),
                    worker: worker.map(|worker| worker.0 as i64),
                    wake_at: wake_at.map(|at| at.0),
                };
                Ok(())
            }
            Write::ChangeDefinition { run, version, definition } => {
                let key = self.known(*run)?.key;
                let sql = "UPDATE run SET version = ?2, definition = ?3 WHERE id = ?1";
                self.execute(sql, params![key, version, definition.0])
            }
            Write::PutSnapshot(snapshot) => {
                let key = self.known(snapshot.run)?.key;
                let sql = "INSERT INTO snapshot (run, seq, body) VALUES (?1, ?2, ?3)
                           ON CONFLICT (run) DO UPDATE SET seq = ?2, body = ?3";
                self.execute(sql, params![key, snapshot.seq.0 as i64, snapshot.body])
            }
            Write::PutBlob { digest, bytes } => {
                let sql = "INSERT INTO blob (digest, bytes) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING";
                self.execute(sql, params![digest.0, &bytes[..]])
            }
            Write::AddInbox(item) => self.add_inbox(item),
            Write::Notify(item) => self.notify(item),
            Write::TakeInbox { run, id } => self.take_inbox(*run, *id),
            Write::OpenQuestion(row) => self.open_question(row),
            Write::EndQuestion { run, question } => {
                let key = self.known(*run)?.key;
                let sql = "DELETE FROM question WHERE run = ?1 AND id = ?2";
                self.execute(sql, params![key, question.0 as i64])
            }
            Write::PutRecord(record, place) => records::put(self.conn, record, *place),
            Write::DeleteRecord(table, id) => records::delete(self.conn, *table, *id),
            Write::DeleteScope(table, scope) => records::delete_scope(self.conn, *table, *scope),
            Write::Touch { table, key, place } => records::touch(self.conn, *table, key, *place),
            Write::Publish(item) => feeds::publish(self.conn, item),
            Write::EraseFeed(feed) => feeds::erase(self.conn, *feed),
            Write::Count { counter, by, max } => feeds::count(self.conn, counter, *by, *max),
        }
    }

    fn execute(&self, sql: &str, params: impl Params) -> Result<()> {
        execute(self.conn, sql, params)
    }

    fn create(&mut self, row: &RunRow) -> Result<()> {
        if self.find(row.run)?.is_some() {
            return conflict(Expectation::Run(row.run));
        }
        if let Some(key) = &row.admission {
            let sql = "SELECT run FROM run WHERE tenant = ?1 AND admission = ?2";
            let mut holder = self.conn.prepare_cached(sql)?;
            if let Some(holder) = holder.query_row((&row.tenant, key), |row| row.get(0)).optional()? {
                return conflict(Expectation::Admission(RunId(holder)));
            }
        }
        let lease = LeaseColumns {
            status: rows::status_number(row.status),
            worker: row.worker.map(|worker| worker.0 as i64),
            wake_at: row.wake_at.map(|at| at.0),
        };
        let values = params![
            row.run.0,
            row.tenant,
            row.admission,
            row.loop_name,
            row.version,
            row.definition.0,
            row.origin,
            row.parent.map(|parent| parent.0),
            lease.status,
            row.head.0 as i64,
            row.hash.0,
            row.epoch.0 as i64,
            lease.worker,
            lease.wake_at,
            row.outcome,
            row.iteration as i64,
            row.tokens as i64,
            row.spent.0 as i64,
            row.created_at.0,
            row.updated_at.0,
        ];
        self.execute(
            concat!(
                "INSERT INTO run (",
                rows::run_columns!(),
                ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)"
            ),
            values,
        )?;
        self.runs.push(Touched {
            run: row.run,
            key: self.conn.last_insert_rowid(),
            epoch: row.epoch,
            head: row.head,
            hash: row.hash,
            lease,
            waiting: Some(Waiting::default()),
            moved: false,
            update: None,
        });
        Ok(())
    }

    fn append(&mut self, run: RunId, entries: &[Entry]) -> Result<()> {
        let touched = self.known(run)?;
        (touched.head, touched.hash) = head_after(run, (touched.head, touched.hash), entries)?;
        touched.moved |= !entries.is_empty();
        let key = touched.key;
        let sql = "INSERT INTO entry (run, seq, kind, at, record_len, hash, body)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let mut insert = self.conn.prepare_cached(sql)?;
        for entry in entries {
            let kind = rows::kind_number(entry);
            let (seq, record_len) = (entry.seq.0 as i64, entry.record.len() as i64);
            insert.execute(params![key, seq, kind, entry.at.0, record_len, entry.hash.0, rows::body(entry)])?;
        }
        Ok(())
    }

    fn add_inbox(&mut self, item: &InboxItem) -> Result<()> {
        let conn = self.conn;
        let touched = self.known(item.run)?;
        if knows(conn, touched.key, &item.key)? {
            return conflict(Expectation::InboxKey(item.key.clone()));
        }
        if touched.is_sealed() {
            return conflict(Expectation::Sealed(item.run));
        }
        let bytes = item.body.size();
        let limit = item.body.largest();
        if bytes > limit {
            return conflict(Expectation::ItemTooLarge { run: item.run, bytes, limit });
        }
        let waiting = match touched.waiting {
            Some(waiting) => waiting,
            None => waiting(conn, touched.key)?,
        };
        if !item.body.has_room(waiting) {
            return conflict(Expectation::InboxFull(item.run));
        }
        touched.waiting = Some(waiting.with(&item.body));
        insert_item(conn, touched.key, item)
    }

    fn notify(&mut self, item: &InboxItem) -> Result<()> {
        let conn = self.conn;
        let Some(touched) = self.find(item.run)? else { return Ok(()) };
        if touched.is_sealed() || knows(conn, touched.key, &item.key)? {
            return Ok(());
        }
        touched.waiting = touched.waiting.map(|waiting| waiting.with(&item.body));
        insert_item(conn, touched.key, item)
    }

    fn take_inbox(&mut self, run: RunId, id: i64) -> Result<()> {
        let touched = self.known(run)?;
        touched.waiting = None;
        let key = touched.key;
        let sql = "UPDATE inbox SET body = NULL, size = 0 WHERE id = ?1 AND run = ?2 AND body IS NOT NULL";
        match self.conn.prepare_cached(sql)?.execute((id, key))? {
            0 => conflict(Expectation::InboxItem(id)),
            _ => Ok(()),
        }
    }

    fn open_question(&mut self, row: &QuestionRow) -> Result<()> {
        let key = self.known(row.run)?.key;
        let question = &row.question;
        let body = serde_json::to_string(question).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let sql = "INSERT INTO question (run, id, asked_at, body) VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT (run, id) DO UPDATE SET asked_at = ?3, body = ?4";
        self.execute(sql, params![key, question.id.0 as i64, question.asked_at.0, body])
    }

    fn finish(self) -> Result<()> {
        self.runs.iter().try_for_each(|touched| save(self.conn, touched))
    }
}

fn load<'a>(conn: &Connection, run: RunId) -> Result<Option<Touched<'a>>> {
    let sql = "SELECT id, epoch, head, hash, status, worker, wake_at FROM run WHERE run = ?1";
    let mut statement = conn.prepare_cached(sql)?;
    let found = statement.query_row([run.0], |row| {
        Ok(Touched {
            run,
            key: row.get(0)?,
            epoch: Epoch(row.get::<_, i64>(1)? as u64),
            head: Seq(row.get::<_, i64>(2)? as u64),
            hash: Digest(row.get(3)?),
            lease: LeaseColumns { status: row.get(4)?, worker: row.get(5)?, wake_at: row.get(6)? },
            waiting: None,
            moved: false,
            update: None,
        })
    });
    Ok(found.optional()?)
}

impl Touched<'_> {
    const fn is_sealed(&self) -> bool {
        self.lease.status == rows::status_number(RunStatus::Ended)
    }
}

/// Whether the Run has, or had, an inbox item with this key.
fn knows(conn: &Connection, run: i64, key: &str) -> Result<bool> {
    Ok(conn.prepare_cached("SELECT 1 FROM inbox WHERE run = ?1 AND key = ?2")?.exists((run, key))?)
}

fn insert_item(conn: &Connection, run: i64, item: &InboxItem) -> Result<()> {
    let body = serde_json::to_string(&item.body).map_err(|error| StoreError::Unavailable(error.to_string()))?;
    let size = i64::try_from(item.body.size()).unwrap_or(i64::MAX);
    let sql = "INSERT INTO inbox (run, key, at, moves, body, size) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let values = params![run, item.key, item.at.0, item.body.moves_parked(), body, size];
    conn.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Answered from the index `inbox_waiting`: adding an item reads no other one.
pub(crate) const WAITING: &str = "SELECT count(*), coalesce(sum(size), 0) FROM inbox WHERE run = ?1 AND size > 0";

fn waiting(conn: &Connection, run: i64) -> Result<Waiting> {
    let number = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
    let mut statement = conn.prepare_cached(WAITING)?;
    Ok(statement.query_row([run], |row| Ok(Waiting { items: number(row.get(0)?), bytes: number(row.get(1)?) }))?)
}

/// Writes what the Batch changed of a run row. The lease columns are named only when they may differ,
/// because naming them rewrites index entries, and so pages.
fn save(conn: &Connection, touched: &Touched<'_>) -> Result<()> {
    let (key, head, hash) = (touched.key, touched.head.0 as i64, touched.hash.0);
    let Some(Write::UpdateRun { outcome, iteration, tokens, spent, updated_at, .. }) = touched.update else {
        if touched.moved {
            conn.prepare_cached("UPDATE run SET head = ?2, hash = ?3 WHERE id = ?1")?.execute((key, head, hash))?;
        }
        return Ok(());
    };
    let LeaseColumns { status, worker, wake_at } = touched.lease;
    let lean = "UPDATE run SET head = ?2, hash = ?3, outcome = ?4, iteration = ?5, tokens = ?6, spent = ?7,
                updated_at = ?8
                WHERE id = ?1 AND status = ?9 AND worker IS ?10 AND wake_at IS ?11";
    let whole = "UPDATE run SET head = ?2, hash = ?3, outcome = ?4, iteration = ?5, tokens = ?6, spent = ?7,
                 updated_at = ?8, status = ?9, worker = ?10, wake_at = ?11
                 WHERE id = ?1";
    let values = params![
        key,
        head,
        hash,
        outcome,
        *iteration as i64,
        *tokens as i64,
        spent.0 as i64,
        updated_at.0,
        status,
        worker,
        wake_at,
    ];
    if conn.prepare_cached(lean)?.execute(values)? == 0 {
        conn.prepare_cached(whole)?.execute(values)?;
    }
    Ok(())
}
