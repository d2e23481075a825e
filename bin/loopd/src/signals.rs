//! Ctrl-C and SIGTERM: the first asks, the second does not wait. SIGUSR1 asks for another address to sign in with.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that a server hears.
#[derive(Debug)]
pub struct Signals {
    /// Somebody wants it to stop.
    pub stop: Stop,
    /// Somebody wants to sign in.
    pub offer: Offer,
}

/// SIGINT and SIGTERM.
#[derive(Debug)]
pub struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

/// SIGUSR1.
#[derive(Debug)]
pub struct Offer(Signal);

impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn listen() -> io::Result<Self> {
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Self { stop: Stop { interrupt, terminate }, offer: Offer(signal(SignalKind::user_defined1())?) })
    }
}

impl Stop {
    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

impl Offer {
    /// Waits for the next one.
    pub async fn next(&mut self) {
        // The handler is there for as long as this is.
        let _ = self.0.recv().await;
    }
}
