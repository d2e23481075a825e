//! A Batch: what one decision expects and writes, all or nothing.

use crate::error::{Expectation, StoreError};
use crate::port::Hint;
use crate::records::{Counter, Feed, NewItem, Place, Record, RecordId, Table};
use crate::rows::{InboxItem, QuestionRow, RunRow, RunStatus, Snapshot, WorkerId};
use loopd_kernel::{Digest, Entry, Epoch, MicroUsd, QuestionId, RunId, Seq, TimeMs};
use std::sync::Arc;

/// A condition that must hold in the transaction, or nothing is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// The Run exists, its last Seq is `seq`, and its epoch is `epoch`. A wrong epoch is
    /// [`crate::StoreError::Fenced`], a wrong Seq a conflict; the epoch is looked at first.
    RunAt {
        /// The Run.
        run: RunId,
        /// Its last Seq.
        seq: Seq,
        /// Its epoch.
        epoch: Epoch,
    },
    /// There is no Run of this identity.
    RunAbsent(RunId),
    /// The Record was written exactly `rev` times; `None`: there is none.
    Record {
        /// The table.
        table: Table,
        /// The Record.
        id: RecordId,
        /// Its revision.
        rev: Option<u64>,
    },
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A new Run; its admission key must be free.
    CreateRun(Box<RunRow>),
    /// Entries after the Run's head; moves the head. The first must be head + 1 and they must be dense.
    Append {
        /// The Run.
        run: RunId,
        /// The Entries.
        entries: Vec<Entry>,
    },
    /// Replaces what the Run's row says of its version and definition, and nothing else of it.
    ChangeDefinition {
        /// The Run.
        run: RunId,
        /// The declared version.
        version: String,
        /// The digest of the definition's bytes.
        definition: Digest,
    },
    /// What lists and claims see of the Run after the Entries.
    UpdateRun {
        /// The Run.
        run: RunId,
        /// Whether it moves.
        status: RunStatus,
        /// Who drives it; `None` releases it.
        worker: Option<WorkerId>,
        /// The earliest timer or expiry.
        wake_at: Option<TimeMs>,
        /// The outcome's name.
        outcome: Option<String>,
        /// The iteration.
        iteration: u64,
        /// Tokens consumed.
        tokens: u64,
        /// Money spent.
        spent: MicroUsd,
        /// The time of the last Entry.
        updated_at: TimeMs,
    },
    /// Replaces the Run's snapshot.
    PutSnapshot(Snapshot),
    /// A content-addressed body; storing it again changes nothing.
    PutBlob {
        /// SHA-256 of the bytes.
        digest: Digest,
        /// The bytes.
        bytes: Arc<[u8]>,
    },
    /// Adds an inbox item. The Run must exist, the key must be new for the Run, the Run must not be
    /// sealed, the item must not be larger than [`crate::InboxBody::largest`], and its inbox must have room;
    /// looked at in this order, so that whoever sends an item again after an unclear answer hears that it
    /// had arrived. The only write that a client handle may commit.
    AddInbox(InboxItem),
    /// Adds an inbox item from one Run to another, and never fails the Batch: what a Run commits must not
    /// depend on how another one is. Nothing is written when the Run does not exist, is sealed, or knows the
    /// key. No cap holds it back, though it counts towards what waits: whoever writes it sends at most one per
    /// event of a child.
    Notify(InboxItem),
    /// Takes an inbox item; its key stays known.
    TakeInbox {
        /// The Run.
        run: RunId,
        /// The item.
        id: i64,
    },
    /// Lists an open Question; in the place of one with the same identity, if there is one.
    OpenQuestion(Box<QuestionRow>),
    /// Removes a Question that ended, if it is listed.
    EndQuestion {
        /// The Run.
        run: RunId,
        /// The Question.
        question: QuestionId,
    },
    /// Writes a Record, in the place of the one with its identity if there is one. Table, identity and scope of a Record
    /// never change: another scope than it was written with is a conflict ([`Expectation::Record`]), looked at first. A
    /// key that another Record of the table and scope has by then is a conflict that names that one.
    PutRecord(Box<Record>, Place),
    /// Removes a Record, if it is there. Its key is free again, its number is not.
    DeleteRecord(Table, RecordId),
    /// Removes all Records that a table has of a scope; the numbers of the scope go on.
    DeleteScope(Table, RecordId),
    /// Moves every Record of the table with this key, whatever its scope, to `place` if that is further; nothing else
    /// of it changes, its revision included.
    Touch {
        /// The table.
        table: Table,
        /// The key.
        key: String,
        /// The place.
        place: u64,
    },
    /// Adds an item to a Feed, which begins with its first one.
    Publish(NewItem),
    /// Removes all items of a Feed; its positions go on.
    EraseFeed(Feed),
    /// Adds to a counter, which begins at 0 and stays there when more is taken than it has. Beyond `max` it is a
    /// conflict, also when this write takes away and leaves too much.
    Count {
        /// The counter.
        counter: Counter,
        /// How much.
        by: i64,
        /// What it must not exceed after this write; without it, what 64 bits hold.
        max: Option<u64>,
    },
}

/// Expectations and writes of one transaction. All expectations are checked first, then the writes are
/// made in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// What must hold.
    pub expect: Vec<Expect>,
    /// What is written.
    pub writes: Vec<Write>,
}

impl Batch {
    /// True when a client handle may commit it.
    #[must_use]
    pub fn is_client_batch(&self) -> bool {
        self.expect.is_empty() && self.writes.iter().all(|write| matches!(write, Write::AddInbox(_)))
    }

    /// What a store tells its listeners once the Batch is durable, each hint once.
    #[must_use]
    pub fn hints(&self) -> Vec<Hint> {
        let mut hints = Vec::new();
        for write in &self.writes {
            let hint = match write {
                Write::CreateRun(row) => Hint::Run(row.run),
                Write::Append { run, .. } | Write::UpdateRun { run, .. } | Write::ChangeDefinition { run, .. } => {
                    Hint::Run(*run)
                }
                Write::AddInbox(item) | Write::Notify(item) => Hint::Inbox(item.run),
                Write::Publish(item) => Hint::Feed(item.feed),
                Write::PutSnapshot(_)
                | Write::PutBlob { .. }
                | Write::TakeInbox { .. }
                | Write::OpenQuestion(_)
                | Write::EndQuestion { .. }
                | Write::PutRecord(..)
                | Write::DeleteRecord(..)
                | Write::DeleteScope(..)
                | Write::Touch { .. }
                | Write::EraseFeed(_)
                | Write::Count { .. } => continue,
            };
            if !hints.contains(&hint) {
                hints.push(hint);
            }
        }
        hints
    }
}

/// The head and chain hash of `run` after `entries`, which are to follow `head` densely. For stores.
///
/// # Errors
/// A conflict that names the first gap, or the Run that an Entry belongs to instead.
pub fn head_after(run: RunId, head: (Seq, Digest), entries: &[Entry]) -> Result<(Seq, Digest), StoreError> {
    entries.iter().try_fold(head, |(found, _), entry| {
        if entry.run != run {
            return Err(StoreError::Conflict(Expectation::Run(entry.run)));
        }
        if entry.seq != found.next() {
            let expected = Seq(entry.seq.0.saturating_sub(1));
            return Err(StoreError::Conflict(Expectation::Head { run, expected, found }));
        }
        Ok((entry.seq, entry.hash))
    })
}
