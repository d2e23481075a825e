//! The embedded store: one SQLite file.
//!
//! [`SqliteStore::open_driver`] takes the exclusive right to drive the Runs in a file;
//! [`SqliteStore::open_client`] reads beside a driver and adds inbox items.
//!
//! Reading order: `role` (who drives), `writer` (how Batches share a flush), `turn` (how writers of several
//! processes take turns), `apply` (what a Batch does to rows), `claims`, `queries`, and then `records` and `feeds`, which
//! write and read what is around Journals. No decision lives in SQL: it appends, reads and claims.
#![forbid(unsafe_code)]

mod apply;
mod backup;
mod claims;
mod failure;
mod feeds;
#[cfg(test)]
mod plan;
mod poke;
mod queries;
mod reader;
mod records;
mod role;
mod rows;
mod schema;
mod stats;
mod store;
mod turn;
mod writer;

pub use stats::Stats;
pub use store::SqliteStore;
