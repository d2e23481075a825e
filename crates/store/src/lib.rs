//! The Store port: one vocabulary of writes, committed all or nothing, and a few reads.
//!
//! [`Batch`] is everything that one decision changes. [`Store::commit`] is the only way to write it. The
//! in-memory implementation is [`memory::MemoryStore`]; the tests that every implementation must pass
//! are [`kit`].
#![forbid(unsafe_code)]

pub mod batch;
pub mod error;
#[cfg(feature = "kit")]
pub mod kit;
pub mod memory;
pub mod port;
pub mod records;
pub mod rows;
pub mod through;

pub use batch::{Batch, Expect, Write};
pub use error::{Expectation, StoreError};
pub use memory::MemoryStore;
pub use port::{Claim, Claimed, Hint, Hints, Page, Receipt, RunFilter, Runnable, Store};
pub use records::{
    Counter, FEED_BYTES, Feed, FeedItem, FeedKind, List, NewItem, Place, Query, Record, RecordId, Table,
};
pub use rows::{InboxBody, InboxItem, QuestionRow, RunRow, RunStatus, Snapshot, WorkerId};
pub use through::Through;
