//! The store on disk: where it is, who may open it how, and who drives it.

use crate::cli::DEFAULT_STORE;
use crate::problem::{Code, Problem};
use crate::words;
use loopd_store::StoreError;
use loopd_store_sqlite::SqliteStore;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often a store that somebody drives is tried again, and after how long.
const HANDOVERS: u32 = 5;
const HANDOVER: Duration = Duration::from_millis(30);

/// Where the store is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    path: PathBuf,
    /// What has to be added to a command so that it finds the same store.
    option: String,
}

impl Place {
    /// Reads `PATH` or `sqlite://PATH`.
    ///
    /// # Errors
    /// A [`Problem`] for any other scheme.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let path = match text.split_once("://") {
            Some(("sqlite", path)) => path,
            Some((scheme, _)) => {
                return Err(Problem::new(Code::Usage, format!("there is no store of kind `{scheme}`"))
                    .fix("write --store PATH or --store sqlite://PATH"));
            }
            None => text,
        };
        if path.is_empty() {
            return Err(Problem::new(Code::Usage, "the path of the store is empty"));
        }
        let from_env = std::env::var_os("LOOPD_STORE").is_some_and(|value| value == text);
        let option =
            if text == DEFAULT_STORE || from_env { String::new() } else { format!(" --store {}", shell(text)) };
        Ok(Self { path: path.into(), option })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A command of this program for this store, ready to be copied.
    pub fn command(&self, words: &str) -> String {
        format!("loopctl {words}{}", self.option)
    }

    /// Opens it to drive its Runs; file and folder are made when missing, for their maker's eyes only. A driver that
    /// is just leaving, and a neighbour that just looks whether there is one, are given a moment.
    ///
    /// # Errors
    /// [`Problem`].
    pub async fn driver(&self) -> Result<Arc<SqliteStore>, Problem> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.exists()) {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|error| {
                Problem::new(Code::StoreUnavailable, format!("{}: {}", folder.display(), words::os(&error)))
                    .fix("choose a folder that may be written with --store")
            })?;
        }
        // What runs say is private; SQLite gives the files beside this one the same permissions.
        let _ = File::options().write(true).create_new(true).mode(0o600).open(&self.path);
        for _ in 0..HANDOVERS {
            match SqliteStore::open_driver(&self.path) {
                Err(StoreError::DriverElsewhere(_)) => tokio::time::sleep(HANDOVER).await,
                opened => return opened.map(Arc::new).map_err(opening),
            }
        }
        SqliteStore::open_driver(&self.path).map(Arc::new).map_err(opening)
    }

    /// Opens it to read and to add inbox items, beside whoever drives it.
    ///
    /// # Errors
    /// [`Problem`], also when there is no store yet.
    pub fn client(&self) -> Result<Arc<SqliteStore>, Problem> {
        if !self.path.exists() {
            return Err(Problem::new(Code::StoreMissing, format!("there is no store at {}", self.path.display()))
                .fix("start a run, which makes one, or name another with --store"));
        }
        SqliteStore::open_client(&self.path).map(Arc::new).map_err(opening)
    }

    /// The process that drives the store, if one does.
    pub fn driver_process(&self) -> Option<u32> {
        SqliteStore::driver_process(&self.path)
    }

    /// Whether a living process drives the store.
    pub fn is_driven(&self) -> bool {
        SqliteStore::is_driven(&self.path)
    }
}

/// A store that does not open.
fn opening(error: StoreError) -> Problem {
    let corrupt = matches!(error, StoreError::Corrupt(_));
    let problem = Problem::from(error);
    if corrupt { problem.fix("name another file with --store, or restore a backup") } else { problem }
}

/// A word as a shell takes it.
pub fn shell(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@,+".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_named_by_path_or_url() {
        let place = Place::parse("sqlite://some dir/x.db").expect("reads");
        assert_eq!(place.path(), Path::new("some dir/x.db"));
        assert_eq!(place.command("run list"), "loopctl run list --store 'sqlite://some dir/x.db'");
        assert_eq!(Place::parse(DEFAULT_STORE).expect("reads").command("doctor"), "loopctl doctor");
        assert!(Place::parse("postgres://x").is_err());
        assert!(Place::parse("sqlite://").is_err());
    }
}
