//! Children that are driven beside their parents, by a worker that takes nothing over by itself.

use loopd_kernel::RunId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// The children whose parents stay in memory for them. A worker that claims what is due needs none of this: for it a
/// parent that waits is a row.
#[derive(Debug)]
pub struct Family {
    /// Child to parent.
    here: Mutex<HashMap<RunId, RunId>>,
    born: mpsc::UnboundedSender<RunId>,
}

impl Family {
    /// Nobody yet; the receiver hears of every child that is to be driven.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<RunId>) {
        let (born, children) = mpsc::unbounded_channel();
        (Self { here: Mutex::default(), born }, children)
    }

    fn here(&self) -> MutexGuard<'_, HashMap<RunId, RunId>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The child is to be driven here, and its parent waits for it here.
    pub fn raise(&self, child: RunId, parent: RunId) {
        self.here().insert(child, parent);
        if self.born.send(child).is_err() {
            self.leave(child);
        }
    }

    /// Whether the child is driven here, or about to be.
    pub fn is_here(&self, child: RunId) -> bool {
        self.here().contains_key(&child)
    }

    /// The child is not driven here any more; returns the parent that waited.
    pub fn leave(&self, child: RunId) -> Option<RunId> {
        self.here().remove(&child)
    }
}
