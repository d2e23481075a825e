//! The driver role: exclusive to one process.
//!
//! A row says who drives and until when; its epoch is checked inside every commit. A file lock says whether
//! that process still lives. Everything here happens inside one `BEGIN IMMEDIATE`, so that openers take turns.
//!
//! | lock | lease | then |
//! |---|---|---|
//! | free | any | taken at once: whoever held it is gone |
//! | held | live | `DriverElsewhere` |
//! | held | lapsed | a paused process: taken, and its next commit is fenced |

use crate::failure::{Failure, Result};
use crate::schema::{self, APPLICATION_ID};
use loopd_kernel::{Epoch, TimeMs};
use loopd_store::StoreError;
use rusqlite::{Connection, OptionalExtension, params};
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// How long the role lasts before the first heartbeat extends it.
const FIRST_LEASE_MS: u64 = 15_000;

/// The right to write everything; dropping it frees the lock.
#[derive(Debug)]
pub(crate) struct Role {
    pub(crate) epoch: Epoch,
    _lock: File,
}

struct Lease {
    epoch: u64,
    pid: i64,
    until: i64,
}

/// `name` with `suffix` at its end.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Takes the role, or says who has it.
pub(crate) fn take(conn: &mut Connection, path: &Path, now: TimeMs) -> Result<Role> {
    let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another opener may have written since the first look.
    schema::inspect(&tx, path)?;
    // The role comes before the migrations, so its table cannot be one of them.
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS driver (
           one INTEGER PRIMARY KEY CHECK (one = 1),
           epoch INTEGER NOT NULL, pid INTEGER NOT NULL, until INTEGER NOT NULL
         ) STRICT",
    )?;
    let lease = lease(&tx)?;
    let lock = lock(&beside(path, ".lock"), lease.as_ref(), now)?;
    let epoch = Epoch(lease.map_or(0, |lease| lease.epoch)).next();
    tx.execute(
        "INSERT INTO driver (one, epoch, pid, until) VALUES (1, ?1, ?2, ?3)
         ON CONFLICT (one) DO UPDATE SET epoch = ?1, pid = ?2, until = ?3",
        params![epoch.0 as i64, std::process::id(), now.after(FIRST_LEASE_MS).0],
    )?;
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.commit().map_err(|error| Failure::from(error).at_commit())?;
    Ok(Role { epoch, _lock: lock })
}

fn lease(conn: &Connection) -> Result<Option<Lease>> {
    let row = conn.query_row("SELECT epoch, pid, until FROM driver", [], |row| {
        Ok(Lease { epoch: row.get::<_, i64>(0)? as u64, pid: row.get(1)?, until: row.get(2)? })
    });
    Ok(row.optional()?)
}

fn lock(path: &Path, lease: Option<&Lease>, now: TimeMs) -> Result<File> {
    let trouble = |error: io::Error| StoreError::Unavailable(format!("{}: {error}", path.display()));
    let open = || File::options().read(true).write(true).create(true).truncate(false).open(path);
    let file = open().map_err(trouble)?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::Error(error)) => return Err(trouble(error).into()),
        Err(TryLockError::WouldBlock) => {}
    }
    match lease {
        Some(lease) if lease.until <= now.0 => {}
        Some(lease) => return Err(StoreError::DriverElsewhere(format!(" (process {})", lease.pid)).into()),
        None => return Err(StoreError::DriverElsewhere(String::new()).into()),
    }
    // The paused process keeps its lock on a file without a name; whoever comes next meets ours.
    std::fs::remove_file(path).map_err(trouble)?;
    let file = open().map_err(trouble)?;
    file.try_lock().map_err(|error| trouble(error.into()))?;
    Ok(file)
}

/// Whether somebody holds the lock of the store at this path. It asks only: nothing is taken away from a driver that is
/// merely slow.
pub(crate) fn is_driven(path: &Path) -> bool {
    let lock = File::open(beside(path, ".lock"));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The process that holds the lock and has the role.
pub(crate) fn driver_process(path: &Path) -> Option<u32> {
    if !is_driven(path) {
        return None;
    }
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let lease = lease(&Connection::open_with_flags(path, flags).ok()?).ok()??;
    u32::try_from(lease.pid).ok()
}

/// The epoch of whoever drives now.
pub(crate) fn current(conn: &Connection) -> Result<Epoch> {
    let mut statement = conn.prepare_cached("SELECT epoch FROM driver WHERE one = 1")?;
    Ok(Epoch(statement.query_row([], |row| row.get::<_, i64>(0))? as u64))
}

/// Extends the lease of the role; never shortens it.
pub(crate) fn extend(conn: &Connection, until: TimeMs) -> Result<()> {
    let mut statement = conn.prepare_cached("UPDATE driver SET until = max(until, ?1) WHERE one = 1")?;
    statement.execute([until.0])?;
    Ok(())
}
