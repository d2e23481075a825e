//! The writer: one thread, one connection, many Batches per flush.
//!
//! It takes whatever has gathered while the last flush ran, so that batching arises by itself and a lone
//! request never waits for company. Every reply, refusals included, is sent after the COMMIT.

use crate::failure::{Failure, Result};
use crate::stats::Counters;
use crate::turn::Turn;
use crate::{apply, claims, role, schema};
use loopd_kernel::{Entry, Epoch, TimeMs};
use loopd_store::{Batch, Claim, Claimed, Hint, Receipt, StoreError, WorkerId, Write};
use rusqlite::Connection;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use tokio::sync::{broadcast, oneshot};

/// Requests in one transaction, at most.
const GROUP: usize = 1024;
/// Bytes of Entries and bodies after which a group takes no more.
const GROUP_BYTES: usize = 8 << 20;

pub(crate) type Reply<T> = oneshot::Sender<std::result::Result<T, StoreError>>;

/// What the writer is asked for.
pub(crate) enum Request {
    Commit(Batch, Reply<Receipt>),
    Claim(Claim, Reply<Vec<Claimed>>),
    Heartbeat(WorkerId, TimeMs, Reply<()>),
    /// The largest size of the file, in bytes.
    Limit(u64, Reply<()>),
}

/// What one request came to, before anybody is told.
enum Done {
    Committed,
    Claimed(Vec<Claimed>),
    Told,
}

type Outcome = std::result::Result<Done, StoreError>;

/// What a group came to inside its transaction.
struct Inside {
    outcomes: Vec<Outcome>,
    /// Whether this handle had the driver role then.
    drives: bool,
}

pub(crate) struct Writer {
    pub(crate) conn: Connection,
    pub(crate) turn: Turn,
    /// The epoch of the driver role; `None` for a client.
    pub(crate) epoch: Option<Epoch>,
    pub(crate) hints: broadcast::Sender<Hint>,
    pub(crate) counters: Arc<Counters>,
    /// Called after each flush of a handle that does not drive, or no longer does.
    pub(crate) poke: Box<dyn Fn() + Send>,
}

impl Writer {
    /// Serves requests until nobody can send any more, then leaves a short WAL behind.
    pub(crate) fn serve(self, requests: &Receiver<Request>) {
        while let Ok(first) = requests.recv() {
            self.group(gather(first, requests));
        }
        if self.epoch.is_some() {
            // A WAL that stays long is only slow: the next opener reads it.
            let _ = self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
    }

    fn group(&self, group: Vec<Request>) {
        match self.transaction(&group) {
            Ok(inside) => self.answer(group, inside),
            // One large neighbour must not starve the small ones of the last free pages.
            Err(StoreError::Full(_)) if group.len() > 1 => {
                group.into_iter().for_each(|request| self.group(vec![request]));
            }
            Err(error) => group.into_iter().for_each(|request| request.refuse(error.clone())),
        }
    }

    fn transaction(&self, group: &[Request]) -> std::result::Result<Inside, StoreError> {
        self.turn.wait(|| self.run("BEGIN IMMEDIATE")).map_err(Failure::before_commit)?;
        let inside = self.inside(group);
        let committed = match &inside {
            Ok(_) => self.run("COMMIT").map_err(Failure::at_commit),
            Err(_) => Ok(()),
        };
        if !self.conn.is_autocommit() {
            // Fails only when SQLite has rolled back by itself.
            let _ = self.run("ROLLBACK");
        }
        let inside = inside.map_err(Failure::before_commit)?;
        committed.map(|()| inside)
    }

    fn inside(&self, group: &[Request]) -> Result<Inside> {
        let fenced = match self.epoch {
            Some(epoch) if role::current(&self.conn)? != epoch => Some(epoch),
            Some(_) | None => None,
        };
        let outcomes = match group {
            [alone] => vec![Ok(self.perform(alone, fenced)?)],
            _ => group.iter().map(|request| self.among_others(request, fenced)).collect::<Result<_>>()?,
        };
        Ok(Inside { outcomes, drives: self.drives(fenced) })
    }

    /// A request whose failure must leave its neighbours alone.
    fn among_others(&self, request: &Request, fenced: Option<Epoch>) -> Result<Outcome> {
        self.run("SAVEPOINT request")?;
        let outcome = self.perform(request, fenced);
        if let Err(failure) = outcome {
            if self.conn.is_autocommit() {
                // SQLite gave up the whole transaction, neighbours included.
                return Err(failure);
            }
            self.run("ROLLBACK TO request")?;
            self.run("RELEASE request")?;
            return Ok(Err(failure.before_commit()));
        }
        self.run("RELEASE request")?;
        Ok(outcome.map_err(Failure::before_commit))
    }

    /// `fenced` is the epoch of a driver role that was lost: then this handle may do what any client may.
    fn perform(&self, request: &Request, fenced: Option<Epoch>) -> Result<Done> {
        if let Some(epoch) = fenced
            && !request.is_a_clients()
        {
            return Err(StoreError::Fenced(epoch).into());
        }
        if !self.drives(fenced) {
            schema::may_use(&self.conn)?;
        }
        match request {
            Request::Commit(batch, _) => apply::batch(&self.conn, batch).map(|()| Done::Committed),
            Request::Claim(claim, _) => claims::claim(&self.conn, claim).map(Done::Claimed),
            Request::Heartbeat(worker, until, _) => claims::heartbeat(&self.conn, *worker, *until).map(|()| Done::Told),
            Request::Limit(bytes, _) => schema::limit(&self.conn, *bytes).map(|()| Done::Told),
        }
    }

    const fn drives(&self, fenced: Option<Epoch>) -> bool {
        self.epoch.is_some() && fenced.is_none()
    }

    fn run(&self, sql: &str) -> Result<()> {
        self.conn.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    fn answer(&self, group: Vec<Request>, Inside { outcomes, drives }: Inside) {
        let batches = outcomes.iter().filter(|outcome| matches!(outcome, Ok(Done::Committed))).count();
        let flushed = group.iter().zip(&outcomes).any(|(request, outcome)| wrote(request, outcome));
        self.counters.group(group.len(), batches, flushed);
        if flushed && !drives {
            (self.poke)();
        }
        let receipt = Receipt { group: u32::try_from(batches).unwrap_or(u32::MAX) };
        // Who no longer waits for a reply or listens for hints does not need them.
        for (request, outcome) in group.into_iter().zip(outcomes) {
            match (request, outcome) {
                (request, Err(error)) => request.refuse(error),
                (Request::Commit(batch, reply), Ok(_)) => {
                    batch.hints().into_iter().for_each(|hint| drop(self.hints.send(hint)));
                    let _ = reply.send(Ok(receipt));
                }
                (Request::Claim(_, reply), Ok(Done::Claimed(claimed))) => drop(reply.send(Ok(claimed))),
                (Request::Claim(_, reply), Ok(_)) => drop(reply.send(Ok(Vec::new()))),
                (Request::Heartbeat(.., reply) | Request::Limit(_, reply), Ok(_)) => drop(reply.send(Ok(()))),
            }
        }
    }
}

impl Request {
    fn refuse(self, error: StoreError) {
        match self {
            Self::Commit(_, reply) => drop(reply.send(Err(error))),
            Self::Claim(_, reply) => drop(reply.send(Err(error))),
            Self::Heartbeat(.., reply) | Self::Limit(_, reply) => drop(reply.send(Err(error))),
        }
    }

    /// Whether a handle without the driver role may ask for it.
    fn is_a_clients(&self) -> bool {
        matches!(self, Self::Commit(batch, _) if batch.is_client_batch())
    }

    fn bytes(&self) -> usize {
        let Self::Commit(batch, _) = self else { return 0 };
        let bytes = |write: &Write| match write {
            Write::Append { entries, .. } => entries.iter().map(Entry::body_len).sum(),
            Write::PutSnapshot(snapshot) => snapshot.body.len(),
            Write::PutBlob { bytes, .. } => bytes.len(),
            Write::AddInbox(item) | Write::Notify(item) => item.body.size(),
            Write::PutRecord(record, _) => record.body.len() + record.words.as_ref().map_or(0, String::len),
            Write::Publish(item) => item.body.len(),
            Write::CreateRun(_)
            | Write::UpdateRun { .. }
            | Write::ChangeDefinition { .. }
            | Write::TakeInbox { .. }
            | Write::OpenQuestion(_)
            | Write::EndQuestion { .. }
            | Write::DeleteRecord(..)
            | Write::DeleteScope(..)
            | Write::Touch { .. }
            | Write::EraseFeed(_)
            | Write::Count { .. } => 0,
        };
        batch.writes.iter().map(bytes).sum()
    }
}

/// Everything that has gathered, up to the limits of a group.
fn gather(first: Request, requests: &Receiver<Request>) -> Vec<Request> {
    let mut bytes = first.bytes();
    let mut group = vec![first];
    while group.len() < GROUP && bytes < GROUP_BYTES {
        let Ok(next) = requests.try_recv() else { break };
        bytes += next.bytes();
        group.push(next);
    }
    group
}

/// Whether the request changed a row, so that the COMMIT had something to flush.
fn wrote(request: &Request, outcome: &Outcome) -> bool {
    match (request, outcome) {
        (_, Err(_)) => false,
        (Request::Commit(batch, _), Ok(_)) => !batch.writes.is_empty(),
        (Request::Claim(..), Ok(Done::Claimed(claimed))) => !claimed.is_empty(),
        (Request::Claim(..) | Request::Limit(..), Ok(_)) => false,
        (Request::Heartbeat(..), Ok(_)) => true,
    }
}
