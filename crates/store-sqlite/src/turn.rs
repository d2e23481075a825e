//! Whose turn it is to write.
//!
//! SQLite's own wait is a loop that sleeps longer and longer, so a client beside a busy driver would hardly ever
//! find the file free: seconds of waiting were measured. So every writer, driver or client, holds a lock of its
//! own while it waits for SQLite's and frees it once it has that. Whoever has just written then meets whoever
//! waits, and waits behind it.

use crate::failure::Result;
use crate::role::beside;
use loopd_store::StoreError;
use rusqlite::Connection;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// How often to look, while somebody else has what we wait for. A commit takes about as long.
const LOOK: Duration = Duration::from_millis(1);
/// How often to look for SQLite's lock: 5 seconds. It is held for one commit only, so longer means trouble.
const LOOKS: i32 = 5_000;
/// How often to look for the turn. It is a courtesy: a process that was paused while it waited has it for long.
const TURN_LOOKS: u32 = 25;

/// The lock that writers wait with.
#[derive(Debug)]
pub(crate) struct Turn(File);

impl Turn {
    /// Of the store at `path`.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let path = beside(path, ".turn");
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        Ok(Self(file.map_err(|error| StoreError::Unavailable(format!("{}: {error}", path.display())))?))
    }

    /// Waits for the turn, and keeps it until `begin` has SQLite's lock or has given up.
    pub(crate) fn wait<T>(&self, begin: impl FnOnce() -> T) -> T {
        let mut looks = 0;
        while matches!(self.0.try_lock(), Err(TryLockError::WouldBlock)) && looks < TURN_LOOKS {
            thread::park_timeout(LOOK);
            looks += 1;
        }
        let begun = begin();
        // Fails only where locks do not work, and there it was not taken either.
        let _ = self.0.unlock();
        begun
    }
}

/// Lets a connection that writes wait for SQLite's lock with looks that are short and alike.
pub(crate) fn wait_evenly(conn: &Connection) -> Result<()> {
    Ok(conn.busy_handler(Some(|looks| {
        thread::park_timeout(LOOK);
        looks < LOOKS
    }))?)
}
