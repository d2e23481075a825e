//! What can go wrong, divided by what the caller can do about it.

use crate::records::{Counter, RecordId, Table};
use loopd_kernel::{Epoch, RunId, Seq};

/// The expectation of a Batch that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// The Run stands at another Seq: somebody else wrote.
    Head {
        /// The Run.
        run: RunId,
        /// What the Batch expected.
        expected: Seq,
        /// What the store has.
        found: Seq,
    },
    /// The Run exists already, or does not exist.
    Run(RunId),
    /// The admission key is taken by this Run.
    Admission(RunId),
    /// The inbox holds, or held, an item with this key.
    InboxKey(String),
    /// The inbox item was taken already.
    InboxItem(i64),
    /// The Run is sealed and takes no more inbox items.
    Sealed(RunId),
    /// The Run's inbox is full: it holds as many items, or as many bytes, as may wait.
    InboxFull(RunId),
    /// The inbox item is too large for any inbox.
    ItemTooLarge {
        /// The Run that it was for.
        run: RunId,
        /// Its size.
        bytes: usize,
        /// The largest size.
        limit: usize,
    },
    /// The Record has another revision than the Batch expected, or another scope than the Batch writes it with.
    Record {
        /// The table.
        table: Table,
        /// The Record.
        id: RecordId,
        /// The revision that the store has; `None` is absent.
        found: Option<u64>,
    },
    /// The key is taken by this Record.
    RecordKey(Table, RecordId),
    /// The counter would pass its bound.
    Counter(Counter),
}

/// Why a store refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// An expectation did not hold. Nothing of the Batch was written.
    #[error("conflict: {0:?}")]
    Conflict(Expectation),
    /// Another worker drives the Run, or the store. Nothing was written, and nothing may be sent.
    #[error("fenced: {0:?} is not the current epoch")]
    Fenced(Epoch),
    /// Nobody knows whether the Batch was committed: read back and compare.
    #[error("the commit may or may not have happened: {0}")]
    Ambiguous(String),
    /// No space. Nothing was written.
    #[error("the store is full: {0}")]
    Full(String),
    /// It cannot be reached or is busy. Nothing was written; trying again may help.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// What is stored contradicts itself.
    #[error("the store is corrupt: {0}")]
    Corrupt(String),
    /// Another process holds the driver role.
    #[error("another process drives this store{0}")]
    DriverElsewhere(String),
    /// This handle was opened as a client and may only add inbox items.
    #[error("this handle is a client: it may only add inbox items")]
    ClientOnly,
    /// The store was written by a newer release.
    #[error("the store has schema {found}; this build reads up to {supported}: use a newer loopd")]
    TooNew {
        /// The schema of the store.
        found: u32,
        /// The newest schema that this build reads.
        supported: u32,
    },
}
