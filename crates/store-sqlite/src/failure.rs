//! What SQLite reports, divided by what a caller of the Store can do about it.

use loopd_store::StoreError;
use rusqlite::ErrorCode;

/// A refusal of ours, or an error of SQLite that nobody has classified yet.
#[derive(Debug)]
pub(crate) enum Failure {
    Store(StoreError),
    Sqlite(rusqlite::Error),
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Failure {
    /// For anything but a COMMIT: nothing was written.
    pub(crate) fn before_commit(self) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Sqlite(error) => classify(&error).unwrap_or_else(|| StoreError::Unavailable(error.to_string())),
        }
    }

    /// For a COMMIT: unless SQLite says that it did not begin, the frames may have reached the disk.
    pub(crate) fn at_commit(self) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Sqlite(error) => classify(&error).unwrap_or_else(|| StoreError::Ambiguous(error.to_string())),
        }
    }
}

/// The errors that mean the same whenever they come.
fn classify(error: &rusqlite::Error) -> Option<StoreError> {
    let text = || error.to_string();
    match error.sqlite_error_code()? {
        ErrorCode::DiskFull => Some(StoreError::Full(text())),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Some(StoreError::Unavailable(text())),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Some(StoreError::Corrupt(text())),
        ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
            Some(StoreError::Unavailable(text()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    fn sqlite(code: i32) -> Failure {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None).into()
    }

    #[test]
    fn only_a_commit_that_may_have_reached_the_disk_is_ambiguous() {
        for code in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_NOMEM, ffi::SQLITE_INTERNAL] {
            assert!(matches!(sqlite(code).at_commit(), StoreError::Ambiguous(_)), "{code}");
            assert!(matches!(sqlite(code).before_commit(), StoreError::Unavailable(_)), "{code}");
        }
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_BUSY_SNAPSHOT, ffi::SQLITE_LOCKED, ffi::SQLITE_READONLY] {
            assert!(matches!(sqlite(code).at_commit(), StoreError::Unavailable(_)), "{code}");
        }
        assert!(matches!(sqlite(ffi::SQLITE_FULL).at_commit(), StoreError::Full(_)));
        assert!(matches!(sqlite(ffi::SQLITE_CORRUPT_VTAB).before_commit(), StoreError::Corrupt(_)));
        assert!(matches!(sqlite(ffi::SQLITE_NOTADB).at_commit(), StoreError::Corrupt(_)));
        let ours = Failure::from(StoreError::ClientOnly);
        assert_eq!(ours.at_commit(), StoreError::ClientOnly);
    }
}
