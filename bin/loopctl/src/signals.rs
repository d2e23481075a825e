//! Ctrl-C and SIGTERM: the first asks, the second does not wait.

use crate::exit::Exit;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What a command knows of signals.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    asked: CancellationToken,
    polite: Arc<AtomicBool>,
    exit: Arc<AtomicU8>,
    interrupts: Arc<Mutex<Option<mpsc::UnboundedSender<()>>>>,
}

impl Signals {
    /// From here on the first signal only asks: whoever calls this stops by itself when [`Signals::asked`].
    pub fn polite(&self) {
        self.polite.store(true, Ordering::SeqCst);
    }

    /// From here on Ctrl-C asks for nothing but what whoever reads this makes of it; other signals ask to stop.
    pub fn interrupts(&self) -> mpsc::UnboundedReceiver<()> {
        self.polite();
        let (sender, receiver) = mpsc::unbounded_channel();
        *self.interrupts.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    fn is_taken(&self) -> bool {
        let interrupts = self.interrupts.lock().unwrap_or_else(PoisonError::into_inner);
        interrupts.as_ref().is_some_and(|interrupts| interrupts.send(()).is_ok())
    }

    /// Waits until somebody asks to stop.
    pub async fn asked(&self) {
        self.asked.cancelled().await;
    }

    /// Whether somebody asked to stop.
    pub fn is_asked(&self) -> bool {
        self.asked.is_cancelled()
    }

    /// How the process ends when it was stopped: SIGTERM interrupts, Ctrl-C is Ctrl-C.
    pub fn exit(&self) -> Exit {
        if self.exit.load(Ordering::SeqCst) == 1 { Exit::Waiting } else { Exit::Signalled }
    }

    /// Listens until the process has to go at once.
    pub async fn listen(&self) -> Exit {
        use tokio::signal::unix::{SignalKind, signal};
        let streams = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(SignalKind::hangup()));
        let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = streams else {
            // Without handlers the operating system ends the process, which loses nothing either.
            return std::future::pending().await;
        };
        loop {
            let terminated = tokio::select! {
                _ = interrupt.recv() => false,
                _ = terminate.recv() => true,
                // A closed terminal is a polite stop as well.
                _ = hangup.recv() => true,
            };
            if !terminated && self.is_taken() {
                continue;
            }
            if self.asked.is_cancelled() || !self.polite.load(Ordering::SeqCst) {
                return if terminated { Exit::Waiting } else { Exit::Signalled };
            }
            self.exit.store(u8::from(terminated), Ordering::SeqCst);
            self.asked.cancel();
        }
    }
}
