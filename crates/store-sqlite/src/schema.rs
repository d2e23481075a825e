//! Connections, and the schema that they expect.

use crate::failure::Result;
use loopd_store::StoreError;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// The newest schema that this build reads and writes.
pub(crate) const SCHEMA: u32 = 3;
/// `lpd` and 0: marks the file as one of ours.
pub(crate) const APPLICATION_ID: i32 = 0x6c70_6400;
/// Bytes of a page. A commit writes whole pages: at 2 KiB a step of three Entries costs the least on the device.
const PAGE_SIZE: u32 = 2048;
/// Pages in the WAL before it is copied into the database and used from its start again: the same 4 MiB that
/// SQLite takes at its own page size. A checkpoint costs three flushes, which at 1000 pages are 0.015 per step.
const CHECKPOINT_PAGES: u32 = 2000;
/// What a large transaction may leave of the WAL.
const WAL_LIMIT: u32 = 16 << 20;
/// How long to wait for another process; each holds the file for the length of one commit only.
const BUSY: Duration = Duration::from_secs(5);
/// Prepared statements per connection: more than there are.
const STATEMENTS: usize = 128;

mod embedded {
    refinery::embed_migrations!("migrations");
}

/// What a file holds before anything is written to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing yet.
    Empty,
    /// A store that this build reads.
    Ours,
}

/// Opens a connection; the file may be created.
pub(crate) fn connect(path: &Path, create: bool) -> Result<Connection> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if create {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

/// Looks whether this build may use the file. Writes nothing.
///
/// # Errors
/// `TooNew`; `Corrupt` when it is no store of ours.
pub(crate) fn inspect(conn: &Connection, path: &Path) -> Result<Found> {
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let tables = number("SELECT count(*) FROM sqlite_schema").map_err(|error| not_ours(&error, path))?;
    let application = number("PRAGMA application_id")?;
    if tables == 0 {
        return Ok(Found::Empty);
    }
    if application != i64::from(APPLICATION_ID) {
        let text = format!("{} is a database of another program", path.display());
        return Err(StoreError::Corrupt(text).into());
    }
    may_use(conn)?;
    Ok(Found::Ours)
}

/// Looks whether this build may use the store that the connection has open. Another process may migrate it at any
/// time, so whoever does not drive it asks again in every transaction.
///
/// # Errors
/// `TooNew`.
pub(crate) fn may_use(conn: &Connection) -> Result<()> {
    let min_reader: i64 = conn.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if min_reader <= i64::from(SCHEMA) {
        return Ok(());
    }
    let written = applied(conn).unwrap_or(0).max(min_reader);
    let found = u32::try_from(written).unwrap_or(u32::MAX);
    Err(StoreError::TooNew { found, supported: SCHEMA }.into())
}

fn not_ours(error: &rusqlite::Error, path: &Path) -> crate::failure::Failure {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => {
            StoreError::Corrupt(format!("{} is not a database", path.display())).into()
        }
        _ => StoreError::Unavailable(format!("{}: {error}", path.display())).into(),
    }
}

/// The newest migration that was applied.
fn applied(conn: &Connection) -> Option<i64> {
    conn.query_row("SELECT max(version) FROM refinery_schema_history", [], |row| row.get(0)).ok()
}

/// Settings that are kept in the file; before its first page is written.
pub(crate) fn prepare_file(conn: &Connection, found: Found) -> Result<()> {
    if found == Found::Empty {
        conn.pragma_update(None, "page_size", PAGE_SIZE)?;
    }
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode == "wal" { Ok(()) } else { Err(StoreError::Unavailable(format!("no WAL here, only {mode}")).into()) }
}

/// Settings of a connection that writes.
pub(crate) fn for_writing(conn: &Connection) -> Result<()> {
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    // These two answer with the new value, which `pragma_update` does not expect.
    conn.query_row(&format!("PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}"), [], |_| Ok(()))?;
    conn.query_row(&format!("PRAGMA journal_size_limit = {WAL_LIMIT}"), [], |_| Ok(()))?;
    Ok(())
}

/// Lets the file grow to this many bytes and no further; what is larger already stays.
pub(crate) fn limit(conn: &Connection, bytes: u64) -> Result<()> {
    let page: u64 = conn.query_row("PRAGMA page_size", [], |row| row.get::<_, i64>(0))?.unsigned_abs();
    let pages = (bytes / page.max(1)).clamp(1, u64::from(u32::MAX - 1));
    conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    Ok(())
}

/// Settings of a connection that only reads.
pub(crate) fn for_reading(conn: &Connection) -> Result<()> {
    Ok(conn.pragma_update(None, "query_only", true)?)
}

/// Whether no migration is missing.
pub(crate) fn is_current(conn: &Connection) -> bool {
    applied(conn).is_some_and(|version| version >= i64::from(SCHEMA))
}

/// Applies the migrations that are missing. Only the driver does this.
pub(crate) fn migrate(conn: &mut Connection) -> Result<()> {
    if is_current(conn) {
        return Ok(());
    }
    let runner = embedded::migrations::runner().set_abort_missing(false).set_grouped(true);
    let migrated = runner.run(conn).map(|_| ());
    migrated.map_err(|error| StoreError::Unavailable(format!("migration failed: {error}")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writing_connection_has_the_settings_that_durability_rests_on() {
        let folder = tempfile::TempDir::new().unwrap();
        let conn = connect(&folder.path().join("loopd.db"), true).unwrap();
        prepare_file(&conn, Found::Empty).unwrap();
        for_writing(&conn).unwrap();
        conn.execute_batch("CREATE TABLE first (page) STRICT").unwrap_err();
        conn.execute_batch("CREATE TABLE first (page INTEGER) STRICT").unwrap();
        let number = |name: &str| conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0)).unwrap();
        let found =
            ["synchronous", "foreign_keys", "page_size", "wal_autocheckpoint", "journal_size_limit"].map(number);
        assert_eq!(found, [2, 1, i64::from(PAGE_SIZE), i64::from(CHECKPOINT_PAGES), i64::from(WAL_LIMIT)]);
        let mode = conn.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0));
        assert_eq!(mode.unwrap(), "wal");
    }
}
