//! The readers: a few threads with a connection each, so that no read holds up the caller's async runtime
//! or the writer.

use crate::failure::{Failure, Result};
use crate::schema;
use loopd_store::StoreError;
use rusqlite::Connection;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

/// Two: one long read (a whole Journal) leaves the other for short ones.
const READERS: usize = 2;

type Query = Box<dyn FnOnce(&Connection) + Send>;

/// The threads; to be closed by hand, because they close before the writer does.
pub(crate) struct Readers {
    queries: Option<Sender<Query>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    /// Opens the connections and starts the threads.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let mut readers = Self { queries: Some(sender), threads: Vec::new() };
        for _ in 0..READERS {
            let conn = schema::connect(path, false)?;
            schema::for_reading(&conn)?;
            let receiver = Arc::clone(&receiver);
            let thread = thread::Builder::new().name("loopd-read".to_owned());
            let thread = thread.spawn(move || serve(&conn, &receiver));
            readers.threads.push(thread.map_err(|error| StoreError::Unavailable(error.to_string()))?);
        }
        Ok(readers)
    }

    /// Runs `query` on one of the threads.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, StoreError> {
        let closed = || StoreError::Unavailable("the store is closed".to_owned());
        let (reply, answer) = oneshot::channel();
        let query: Query = Box::new(move |conn| drop(reply.send(query(conn).map_err(Failure::before_commit))));
        self.queries.as_ref().ok_or_else(closed)?.send(query).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

fn serve(conn: &Connection, queries: &Mutex<Receiver<Query>>) {
    loop {
        // The lock is held while waiting: whoever has it takes the next query, the others wait for the lock.
        let next = queries.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(query) => query(conn),
            Err(_) => return,
        }
    }
}

impl Readers {
    /// Ends the threads and closes their connections.
    pub(crate) fn close(&mut self) {
        self.queries = None;
        for thread in self.threads.drain(..) {
            // A reader that panicked has told its caller by dropping the reply.
            let _ = thread.join();
        }
    }
}
