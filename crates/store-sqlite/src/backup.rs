//! A copy of a store that is in use.

use crate::failure::{Failure, Result};
use crate::role::beside;
use crate::schema;
use loopd_store::StoreError;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Copies the store at `from` into the new file `to`, as of one moment.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    let trouble = |error: io::Error| Failure::Store(StoreError::Unavailable(format!("{}: {error}", to.display())));
    if to.try_exists().map_err(trouble)? {
        return Err(trouble(io::ErrorKind::AlreadyExists.into()));
    }
    let part = beside(to, ".part");
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(trouble(error)),
        _ => {}
    }
    let conn = schema::connect(from, false)?;
    let name = part.to_str().ok_or_else(|| trouble(io::ErrorKind::InvalidFilename.into()))?;
    conn.execute("VACUUM INTO ?1", [name])?;
    // SQLite does not flush the copy, and a backup that a power cut empties is none.
    File::open(&part).and_then(|file| file.sync_all()).map_err(trouble)?;
    fs::rename(&part, to).map_err(trouble)?;
    File::open(folder(to)).and_then(|folder| folder.sync_all()).map_err(trouble)
}

/// The folder of a file.
pub(crate) fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}
