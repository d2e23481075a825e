//! The handle: opens, asks the writer and the readers, closes.

use crate::backup::{self, folder};
use crate::failure::{Failure, Result};
use crate::poke::{self, Ear};
use crate::reader::Readers;
use crate::role::{self, Role, beside};
use crate::schema::{self, Found};
use crate::stats::{Counters, Stats};
use crate::turn::{self, Turn};
use crate::writer::{Reply, Request, Writer};
use crate::{feeds, queries, records};
use async_trait::async_trait;
use loopd_kernel::{Digest, Entry, Epoch, RunId, Seq, TimeMs};
use loopd_store::{
    Batch, Claim, Claimed, Counter, Feed, FeedItem, Hint, Hints, InboxItem, Page, Query, QuestionRow, Receipt, Record,
    RunFilter, RunRow, Snapshot, Store, StoreError, WorkerId,
};
use rusqlite::Connection;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;
use tokio::sync::{broadcast, oneshot};

/// How many hints wait for a slow listener before it loses the oldest.
const HINTS: usize = 1024;

type Answer<T> = std::result::Result<T, StoreError>;

/// A [`Store`] in one SQLite file.
///
/// # Guarantees
/// Those of [`Store`]. A commit is durable when it returns: WAL with `synchronous=FULL`, one flush for all
/// Batches that gathered while the last flush ran.
///
/// # Processes
/// One process drives, any number of others are clients. A driver whose process died is replaced at once; one
/// that is paused is replaced when its lease has lapsed, and whatever it still sends is `Fenced`, except for Batches
/// that any client may commit: what it learned too late still reaches the inbox of a Run. The lease is
/// extended by [`Store::heartbeat`].
///
/// # Caveats
/// Needs a file system with working locks and shared memory: no network file system. Dropping the handle waits
/// for what is queued, so drop it where blocking for the length of a commit is fine.
pub struct SqliteStore {
    // In the order in which they close: no more pokes, no more reads, then the writer with the last connection.
    ear: Option<Ear>,
    readers: Readers,
    requests: Option<Sender<Request>>,
    writer: Option<JoinHandle<()>>,
    role: Option<Role>,
    path: PathBuf,
    hints: broadcast::Sender<Hint>,
    counters: Arc<Counters>,
    reached: Arc<AtomicBool>,
}

impl SqliteStore {
    /// Opens the file to drive its Runs. File and folder are created when they are missing, migrations that are
    /// missing are applied.
    ///
    /// # Errors
    /// `DriverElsewhere` when another process drives it, `TooNew` when a newer release wrote it (nothing is
    /// touched), `Corrupt` when it is not a store, `Full`, and `Unavailable` with the path and the reason for
    /// everything else: no permission, a read-only disk, another process in the middle of a write.
    pub fn open_driver(path: impl AsRef<Path>) -> Answer<Self> {
        Self::open_driver_at(path, now())
    }

    /// The same at a given time, which decides whether the lease of another process has lapsed.
    ///
    /// # Errors
    /// As [`SqliteStore::open_driver`].
    pub fn open_driver_at(path: impl AsRef<Path>, now: TimeMs) -> Answer<Self> {
        let path = path.as_ref();
        let place = |error| StoreError::Unavailable(format!("{}: {error}", path.display()));
        std::fs::create_dir_all(folder(path)).map_err(place)?;
        // Journals hold what people asked and were told.
        crate::backup::private(path).map_err(place)?;
        let opened = driver(path, now);
        opened.map_err(|failure| named(failure, path))
    }

    /// Opens the file beside a driver: for reads, and for Batches that only add inbox items.
    ///
    /// Its hints are those of its own commits: whoever watches a Run from here has to look again by itself.
    ///
    /// # Errors
    /// As [`SqliteStore::open_driver`], except for `DriverElsewhere`; `Unavailable` also when there is no store
    /// yet, or one that its next driver will migrate first.
    pub fn open_client(path: impl AsRef<Path>) -> Answer<Self> {
        let path = path.as_ref();
        client(path).map_err(|failure| named(failure, path))
    }

    /// Whether a living process drives the store at this path. Looking takes nothing away from it.
    #[must_use]
    pub fn is_driven(path: impl AsRef<Path>) -> bool {
        crate::role::is_driven(path.as_ref())
    }

    /// The process that drives the store at this moment, if one does. Looking takes nothing away from it.
    #[must_use]
    pub fn driver_process(path: impl AsRef<Path>) -> Option<u32> {
        crate::role::driver_process(path.as_ref())
    }

    /// Copies the store, as of one moment and while it is in use, into the new file `to`.
    ///
    /// # Errors
    /// `Full`, `Unavailable`; then there is no file `to`.
    pub async fn backup(&self, to: impl Into<PathBuf>) -> Answer<()> {
        let (from, to) = (self.path.clone(), to.into());
        let (reply, answer) = oneshot::channel();
        // A thread of its own: a large store would keep a reader busy for seconds.
        let thread = thread::Builder::new().name("loopd-backup".to_owned());
        let started = thread.spawn(move || {
            let copied = backup::copy(&from, &to).map_err(Failure::before_commit);
            if copied.is_err() {
                let _ = std::fs::remove_file(beside(&to, ".part"));
            }
            let _ = reply.send(copied);
        });
        started.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        answer.await.map_err(|_| StoreError::Unavailable("the backup was given up".to_owned()))?
    }

    /// Keeps the file below `bytes` from now on: what would make it larger is `Full`, and nothing else is lost.
    /// It holds for this handle; the WAL beside the file comes on top, a few megabytes.
    ///
    /// # Errors
    /// `Fenced`, `Unavailable`.
    pub async fn limit(&self, bytes: u64) -> Answer<()> {
        self.ask(|reply| Request::Limit(bytes, reply)).await
    }

    /// What this handle has done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.counters.stats()
    }

    /// For a driver: whether clients can poke it. For a client: whether the driver heard its last commit. When
    /// not, the driver finds the item at its next claim.
    #[must_use]
    pub fn hears(&self) -> bool {
        match self.role {
            Some(_) => self.ear.is_some(),
            None => self.reached.load(Ordering::Relaxed),
        }
    }

    /// The epoch of the driver role; `None` for a client.
    #[must_use]
    pub fn epoch(&self) -> Option<Epoch> {
        self.role.as_ref().map(|role| role.epoch)
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn only_driver(&self) -> Answer<()> {
        if self.role.is_some() { Ok(()) } else { Err(StoreError::ClientOnly) }
    }

    async fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Answer<T> {
        let closed = || StoreError::Unavailable("the store is closed".to_owned());
        let (reply, answer) = oneshot::channel();
        self.requests.as_ref().ok_or_else(closed)?.send(request(reply)).map_err(|_| closed())?;
        answer.await.map_err(|_| StoreError::Ambiguous("the writer is gone".to_owned()))?
    }

    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Answer<T> {
        self.counters.read();
        self.readers.read(query).await
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the lease of the role is compared between processes, by the machine's clock"
)]
fn now() -> TimeMs {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    TimeMs(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The error with the path in it, where SQLite's text lacks it.
fn named(failure: Failure, path: &Path) -> StoreError {
    let sqlite = matches!(failure, Failure::Sqlite(_));
    match failure.before_commit() {
        StoreError::Unavailable(text) if sqlite => StoreError::Unavailable(format!("{}: {text}", path.display())),
        StoreError::Full(text) if sqlite => StoreError::Full(format!("{}: {text}", path.display())),
        StoreError::Corrupt(text) if sqlite => StoreError::Corrupt(format!("{}: {text}", path.display())),
        error => error,
    }
}

fn driver(path: &Path, now: TimeMs) -> Result<SqliteStore> {
    let mut conn = schema::connect(path, true)?;
    let found = schema::inspect(&conn, path)?;
    schema::prepare_file(&conn, found)?;
    schema::for_writing(&conn)?;
    let role = role::take(&mut conn, path, now)?;
    schema::migrate(&mut conn)?;
    // Whoever drove before is gone or fenced: what it held is due at once, no lease is waited for.
    conn.execute("DELETE FROM worker", [])?;
    open(conn, path, Some(role))
}

fn client(path: &Path) -> Result<SqliteStore> {
    let conn = schema::connect(path, false)?;
    if schema::inspect(&conn, path)? == Found::Empty || !schema::is_current(&conn) {
        let text = format!("{} has to be opened by a driver first", path.display());
        return Err(StoreError::Unavailable(text).into());
    }
    schema::for_writing(&conn)?;
    open(conn, path, None)
}

fn open(conn: Connection, path: &Path, role: Option<Role>) -> Result<SqliteStore> {
    let readers = Readers::open(path)?;
    let hints = broadcast::Sender::new(HINTS);
    let counters = Arc::new(Counters::default());
    let reached = Arc::new(AtomicBool::new(false));
    let socket = beside(path, ".sock");
    // Without a socket the driver only hears later of what clients wrote.
    let ear = role.as_ref().and_then(|_| Ear::open(socket.clone(), hints.clone()).ok());
    let heard = Arc::clone(&reached);
    let poke = move || heard.store(poke::poke(&socket), Ordering::Relaxed);
    turn::wait_evenly(&conn)?;
    let writer = Writer {
        conn,
        turn: Turn::of(path)?,
        epoch: role.as_ref().map(|role| role.epoch),
        hints: hints.clone(),
        counters: Arc::clone(&counters),
        poke: Box::new(poke),
    };
    let (requests, receiver) = mpsc::channel();
    let thread = thread::Builder::new().name("loopd-write".to_owned());
    let thread = thread.spawn(move || writer.serve(&receiver));
    let thread = thread.map_err(|error| StoreError::Unavailable(error.to_string()))?;
    Ok(SqliteStore {
        ear,
        readers,
        requests: Some(requests),
        writer: Some(thread),
        role,
        path: path.to_owned(),
        hints,
        counters,
        reached,
    })
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.ear = None;
        self.readers.close();
        self.requests = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
        // The lock goes last, with the fields: whoever gets it finds a closed file.
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).field("role", &self.role).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn commit(&self, batch: Batch) -> Answer<Receipt> {
        if !batch.is_client_batch() {
            self.only_driver()?;
        }
        self.ask(|reply| Request::Commit(batch, reply)).await
    }

    async fn claim(&self, claim: Claim) -> Answer<Vec<Claimed>> {
        self.only_driver()?;
        self.ask(|reply| Request::Claim(claim, reply)).await
    }

    async fn heartbeat(&self, worker: WorkerId, until: TimeMs) -> Answer<()> {
        self.only_driver()?;
        self.ask(|reply| Request::Heartbeat(worker, until, reply)).await
    }

    async fn run(&self, run: RunId) -> Answer<Option<RunRow>> {
        self.read(move |conn| queries::run(conn, run)).await
    }

    async fn runs(&self, filter: RunFilter) -> Answer<Page<RunRow>> {
        self.read(move |conn| queries::runs(conn, &filter)).await
    }

    async fn entries(&self, run: RunId, after: Seq, limit: usize) -> Answer<Vec<Entry>> {
        self.read(move |conn| queries::entries(conn, run, after, limit)).await
    }

    async fn snapshot(&self, run: RunId) -> Answer<Option<Snapshot>> {
        self.read(move |conn| queries::snapshot(conn, run)).await
    }

    async fn inbox(&self, run: RunId, limit: usize) -> Answer<Vec<InboxItem>> {
        self.read(move |conn| queries::inbox(conn, run, limit)).await
    }

    async fn questions(&self, run: Option<RunId>, limit: usize) -> Answer<Vec<QuestionRow>> {
        self.read(move |conn| queries::questions(conn, run, limit)).await
    }

    async fn blob(&self, digest: Digest) -> Answer<Option<Vec<u8>>> {
        self.read(move |conn| queries::blob(conn, digest)).await
    }

    async fn next_wake(&self) -> Answer<Option<TimeMs>> {
        self.read(queries::next_wake).await
    }

    async fn records(&self, query: Query) -> Answer<Vec<Record>> {
        self.read(move |conn| records::queries::records(conn, &query)).await
    }

    async fn feed(&self, feed: Feed, after: u64, limit: usize) -> Answer<Vec<FeedItem>> {
        self.read(move |conn| feeds::items(conn, feed, after, limit)).await
    }

    async fn feed_heads(&self, feeds: &[Feed]) -> Answer<Vec<u64>> {
        let feeds = feeds.to_vec();
        self.read(move |conn| feeds::heads(conn, &feeds)).await
    }

    async fn counter(&self, counter: Counter) -> Answer<u64> {
        self.read(move |conn| feeds::counter(conn, &counter)).await
    }

    fn hints(&self) -> Hints {
        self.hints.subscribe()
    }
}
