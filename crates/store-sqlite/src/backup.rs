//! A copy of a store that is in use.

use crate::failure::{Failure, Result};
use crate::role::beside;
use crate::schema;
use loopd_store::StoreError;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Copies the store at `from` into the new file `to`, as of one moment.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    let trouble = |error: io::Error| Failure::Store(StoreError::Unavailable(format!("{}: {error}", to.display())));
    if to.try_exists().map_err(trouble)? {
        return Err(trouble(io::ErrorKind::AlreadyExists.into()));
    }
    // Two backups at once to one place must not share their unfinished file.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let unique = format!(".{}-{}.part", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let part = beside(to, &unique);
    private(&part).map_err(trouble)?;
    let conn = schema::connect(from, false)?;
    let name = part.to_str().ok_or_else(|| trouble(io::ErrorKind::InvalidFilename.into()))?;
    conn.execute("VACUUM INTO ?1", [name])?;
    // SQLite does not flush the copy, and a backup that a power cut empties is none.
    File::open(&part).and_then(|file| file.sync_all()).map_err(trouble)?;
    fs::rename(&part, to).map_err(trouble)?;
    File::open(folder(to)).and_then(|folder| folder.sync_all()).map_err(trouble)
}

/// Makes an empty file that only its owner reads, unless there is one.
pub(crate) fn private(path: &Path) -> io::Result<()> {
    match File::options().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The folder of a file.
pub(crate) fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}
