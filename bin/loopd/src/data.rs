//! The folder in which a server keeps everything. What is in it is for its owner's eyes only.

use crate::cli::DEFAULT_DATA;
use crate::trouble::{Exit, Trouble};
use loopd_assemble::words;
use loopd_fixture::excerpt;
use loopd_store::StoreError;
use loopd_store_sqlite::SqliteStore;
use serde::Serialize;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder.
#[derive(Debug, Clone)]
pub struct Data {
    folder: PathBuf,
}

/// What programs on this machine learn of a running server: `server.json`.
#[derive(Debug, Serialize)]
pub struct Running<'a> {
    /// Where it answers.
    pub address: &'a str,
    /// Its process.
    pub pid: u32,
    /// Its release.
    pub version: &'a str,
}

impl Data {
    /// The folder; it is made when it is missing.
    ///
    /// # Errors
    /// [`Trouble`].
    pub fn open(folder: &Path) -> Result<Self, Trouble> {
        let data = Self { folder: folder.to_owned() };
        if folder.exists() && !folder.is_dir() {
            return Err(Trouble::new(Exit::Usage, format!("{} is no folder", folder.display()))
                .fix("name another with --data: the server keeps everything in it"));
        }
        if !folder.exists() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|error| data.wrong(folder, &error).fix("choose a folder that may be written with --data"))?;
            // Nobody means to commit what is in there.
            data.write_new(".gitignore", b"*\n")?;
        }
        Ok(data)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder of agents, made when it is missing.
    ///
    /// # Errors
    /// [`Trouble`].
    pub fn agents(&self) -> Result<PathBuf, Trouble> {
        let path = self.path("agents");
        fs::create_dir_all(&path).map_err(|error| self.wrong(&path, &error))?;
        Ok(path)
    }

    fn wrong(&self, path: &Path, error: &io::Error) -> Trouble {
        Trouble::new(Exit::Failed, format!("{}: {}", path.display(), words::os(error)))
    }

    /// What the person at the terminal has to know of a folder that somebody else has made.
    pub fn complaint(&self) -> Option<String> {
        let mode = fs::metadata(&self.folder).ok()?.permissions().mode();
        let folder = self.folder.display();
        let open = mode & 0o077 != 0;
        open.then(|| format!("{folder} can be looked into by others on this machine; `chmod 700 {folder}` ends that"))
    }

    /// The options with which `loopctl` finds this folder.
    pub fn options(&self) -> String {
        let store = self.path("store.db");
        let usual = Path::new(DEFAULT_DATA).join("store.db");
        if store == usual { String::new() } else { format!(" --store {}", store.display()) }
    }

    /// The server that announced itself here, if it is this one who drives the store.
    fn running(&self) -> Option<String> {
        let text = fs::read(self.path("server.json")).ok()?;
        let running: serde_json::Value = serde_json::from_slice(&text).ok()?;
        let address = running.get("address")?.as_str()?;
        let pid = running.get("pid")?.as_u64()?;
        let is_driver =
            SqliteStore::driver_process(self.path("store.db")).is_some_and(|driver| u64::from(driver) == pid);
        is_driver.then(|| format!("{} (process {pid})", excerpt::line(address, 80)))
    }

    /// The store, to be driven by this process alone.
    ///
    /// # Errors
    /// [`Trouble`], also when another process drives it.
    pub fn store(&self) -> Result<Arc<SqliteStore>, Trouble> {
        let path = self.path("store.db");
        // SQLite gives the files beside this one the same permissions.
        let _ = File::options().write(true).create_new(true).mode(0o600).open(&path);
        SqliteStore::open_driver(&path).map(Arc::new).map_err(|error| {
            let running = match &error {
                StoreError::DriverElsewhere(_) => self.running(),
                _ => None,
            };
            let Some(server) = running else { return error.into() };
            Trouble::new(Exit::Conflict, format!("a server runs on {} already: {server}", self.folder.display()))
                .fix("use that one, or start over another folder with --data DIR")
        })
    }

    /// What tells this server from others on the machine. Made once.
    ///
    /// # Errors
    /// [`Trouble`].
    pub fn instance(&self) -> Result<[u8; 16], Trouble> {
        let path = self.path("instance");
        match fs::read(&path) {
            Ok(bytes) => bytes.try_into().map_err(|_| {
                Trouble::new(Exit::Failed, format!("{} is not what this server has written there", path.display()))
                    .fix("delete it: a new one is made, and browsers sign in again")
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut id = [0; 16];
                getrandom::fill(&mut id).map_err(|error| Trouble::new(Exit::Failed, error.to_string()))?;
                self.write_new("instance", &id)?;
                Ok(id)
            }
            Err(error) => Err(self.wrong(&path, &error)),
        }
    }

    /// The secret with which programs of the owner on this machine come in, where there is one.
    ///
    /// # Errors
    /// [`Trouble`].
    pub fn admin_token(&self) -> Result<Option<String>, Trouble> {
        let path = self.path("admin.token");
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.wrong(&path, &error)),
        }
    }

    /// Writes that secret down.
    ///
    /// # Errors
    /// [`Trouble`].
    pub fn keep_admin_token(&self, secret: &str) -> Result<(), Trouble> {
        self.replace("admin.token", format!("{secret}\n").as_bytes())
    }

    /// Tells programs on this machine where the server is.
    ///
    /// # Errors
    /// [`Trouble`].
    pub fn announce(&self, running: &Running<'_>) -> Result<(), Trouble> {
        let text = serde_json::to_vec(running).map_err(|error| Trouble::new(Exit::Failed, error.to_string()))?;
        self.replace("server.json", &text)
    }

    /// The server has stopped. The store's lock is still held, so no other one has announced itself.
    pub fn withdraw(&self) {
        let _ = fs::remove_file(self.path("server.json"));
    }

    fn write_new(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        let path = self.path(name);
        let written = File::options().write(true).create_new(true).mode(0o600).open(&path);
        let written = written.and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
        written.map_err(|error| self.wrong(&path, &error))
    }

    /// Readers see the old file or the new one, whole.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        let (path, next) = (self.path(name), format!(".{name}.next"));
        let _ = fs::remove_file(self.path(&next));
        self.write_new(&next, bytes)?;
        fs::rename(self.path(&next), &path).map_err(|error| self.wrong(&path, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_once_stays_and_is_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = Data::open(&folder.path().join("a/b")).expect("made");
        // What an earlier release kept there is nothing to this one.
        fs::write(data.path("session.key"), [7; 32]).expect("written");
        let first = data.instance().expect("made");
        assert_eq!(data.instance().expect("read"), first);
        assert_eq!(data.admin_token().expect("read"), None);
        data.keep_admin_token("loopd_1").expect("kept");
        data.keep_admin_token("loopd_2").expect("kept");
        assert_eq!(data.admin_token().expect("read").as_deref(), Some("loopd_2"));
        data.announce(&Running { address: "http://127.0.0.1:1", pid: 1, version: "0" }).expect("written");
        data.store().expect("opened");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&folder.path().join("a/b")), 0o700);
        assert_eq!(data.complaint(), None);
        for name in ["instance", "admin.token", "server.json", "store.db", ".gitignore"] {
            assert_eq!(mode(&data.path(name)), 0o600, "{name}");
        }
        data.withdraw();
        assert!(!data.path("server.json").exists());
    }

    #[test]
    fn a_store_that_somebody_drives_is_not_opened_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = Data::open(folder.path()).expect("there");
        let _driven = data.store().expect("opened");
        assert_eq!(data.store().map(drop).map_err(|trouble| trouble.exit), Err(Exit::Conflict));
    }

    #[test]
    fn an_instance_that_is_none_is_not_replaced_in_silence() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = Data::open(folder.path()).expect("there");
        fs::write(data.path("instance"), "short").expect("written");
        let wrong = data.instance().unwrap_err().to_string();
        assert!(wrong.contains("instance is not what this server has written there"), "{wrong}");
    }
}
