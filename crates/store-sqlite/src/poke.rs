//! Pokes: how a client tells the driver that it wrote something.
//!
//! A datagram socket beside the file. Nothing is in a datagram: the rows are the truth. Where there can be no
//! socket (its path may have about 100 bytes, and some file systems have none) the driver finds what clients
//! wrote at its next claim; it never polls for it.

use loopd_store::Hint;
use std::fs;
use std::io;
use std::net::Shutdown;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use tokio::sync::broadcast;

/// The driver's ear; dropping it closes the socket and takes its file away.
pub(crate) struct Ear {
    socket: UnixDatagram,
    path: PathBuf,
    /// Device and number of the socket's file: by the time we close, another driver may have put its own there.
    file: (u64, u64),
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ear {
    /// Listens at `path`, in the place of a driver that is gone.
    pub(crate) fn open(path: PathBuf, hints: broadcast::Sender<Hint>) -> io::Result<Self> {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = UnixDatagram::bind(&path)?;
        let file = identity(&path)?;
        let closing = Arc::new(AtomicBool::new(false));
        let (ear, end) = (socket.try_clone()?, Arc::clone(&closing));
        let thread = thread::Builder::new().name("loopd-poke".to_owned());
        let thread = Some(thread.spawn(move || listen(&ear, &end, &hints))?);
        Ok(Self { socket, path, file, closing, thread })
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let file = fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino()))
}

fn listen(ear: &UnixDatagram, closing: &AtomicBool, hints: &broadcast::Sender<Hint>) {
    let mut nothing = [0; 8];
    while ear.recv(&mut nothing).is_ok() && !closing.load(Ordering::Acquire) {
        let _ = hints.send(Hint::Foreign);
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        if self.socket.shutdown(Shutdown::Both).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
        if identity(&self.path).is_ok_and(|file| file == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Pokes the driver at `path`; true when somebody listens there.
pub(crate) fn poke(path: &Path) -> bool {
    let send = || {
        let socket = UnixDatagram::unbound()?;
        // A driver that is too busy to read has enough pokes waiting.
        socket.set_nonblocking(true)?;
        socket.send_to(b"poke", path)
    };
    match send() {
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}
