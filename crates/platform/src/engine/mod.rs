//! The Harness Engine: calls to agents, their slots, their ends.
//!
//! A call to one of our own agents is a Run with the identity of the call. What the Run says, asks and how it ends is
//! written by [`voice`] in the commits of the Run itself. An external execution is driven by [`remote`].

mod accept;
mod deltas;
mod keep;
mod queue;
mod remote;
mod stored;
mod targets;
mod turn;
mod voice;
mod wishes;

pub use deltas::{Deltas, Followed};
pub use remote::{Harness, HarnessError, Recovery, Remote, Request, Stop, Update};
pub(crate) use stored::shown;
pub use targets::{Executes, TargetSpec};

use crate::{Error, Platform};
use loopd_protocol::HarnessCallId;
use loopd_runtime::{Delta, Outlet, Runtime};
use queue::Slots;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use targets::Targets;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The engine of one process. Clones are handles to the same.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    platform: Platform,
    targets: Targets,
    slots: Mutex<Slots>,
    /// Set once, before anything is accepted.
    runtime: OnceLock<Runtime>,
    deltas: Deltas,
    /// Calls that are driven here from outside, and how to stop them.
    remote: Mutex<HashMap<HarnessCallId, Arc<Notify>>>,
    /// A call ended, or one came.
    changed: Notify,
    drain: CancellationToken,
    tasks: TaskTracker,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("targets", &self.inner.targets).finish_non_exhaustive()
    }
}

impl Engine {
    /// The engine over these targets. It accepts nothing before [`Engine::start`].
    ///
    /// # Errors
    /// [`Error::Invalid`] for a target whose name is no Actor's key, or that another one has.
    pub fn new(platform: Platform, targets: Vec<TargetSpec>) -> Result<Self, Error> {
        let mut slots = Slots::new(platform.config().slots);
        let known = Targets::default();
        known.replace(targets::known(targets)?, &mut slots, platform.config().target_slots);
        let inner = Inner {
            platform,
            targets: known,
            slots: Mutex::new(slots),
            runtime: OnceLock::new(),
            deltas: Deltas::default(),
            remote: Mutex::default(),
            changed: Notify::new(),
            drain: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Takes up what was accepted before this process started, and returns what a [`loopd_runtime::Runtime`] that drives
    /// the Runs of calls has as its outlet. Must be called once, within tokio, before that Runtime starts: what it
    /// claims has its slot by then.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn outlet(&self) -> Result<Arc<dyn Outlet>, Error> {
        self.take_up().await?;
        Ok(Arc::new(voice::Voice::new(self.inner.clone())))
    }

    /// Begins to accept. `deltas` is where the Runtime sends streamed text. Must be called once, within tokio, with the
    /// Runtime that has [`Engine::outlet`].
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn start(&self, runtime: Runtime, deltas: mpsc::UnboundedReceiver<Delta>) -> Result<(), Error> {
        self.announce().await?;
        // The first one stays.
        let _ = self.inner.runtime.set(runtime);
        let inner = &self.inner;
        inner.tasks.spawn(deltas::follow(self.clone(), deltas));
        inner.tasks.spawn(keep::pump(self.clone()));
        inner.tasks.spawn(keep::sweep(self.clone()));
        inner.changed.notify_one();
        Ok(())
    }

    /// The platform.
    #[must_use]
    pub fn platform(&self) -> &Platform {
        &self.inner.platform
    }

    /// Streamed text, as it arrives.
    #[must_use]
    pub fn deltas(&self) -> Deltas {
        self.inner.deltas.clone()
    }

    /// Stops: nothing new is accepted, and what executes is left to the next process.
    pub async fn drain(&self) {
        self.inner.drain.cancel();
        self.inner.tasks.close();
        if let Some(runtime) = self.inner.runtime.get() {
            runtime.shutdown().await;
        }
        self.inner.tasks.wait().await;
    }

    /// True once [`Engine::drain`] was called.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.inner.drain.is_cancelled()
    }

    /// Does it to its end, also when whoever asked goes away in the middle: what is committed has to be taken up.
    async fn outlive<T: Send + 'static>(
        &self,
        doing: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let done = self.inner.tasks.spawn(doing).await;
        done.unwrap_or_else(|_| Err(loopd_store::StoreError::Unavailable("the request was given up".to_owned()).into()))
    }

    fn lock_slots(&self) -> MutexGuard<'_, Slots> {
        self.inner.lock_slots()
    }

    fn accepts(&self) -> Result<(), Error> {
        if self.is_draining() {
            let detail = "the server is shutting down".to_owned();
            return Err(Error::Busy { code: "draining", detail, retry_after_s: 5 });
        }
        Ok(())
    }
}

impl Inner {
    fn lock_slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call holds no slot any more.
    fn leave(&self, call: HarnessCallId) {
        if self.lock_slots().leave(call) {
            self.changed.notify_one();
        }
    }
}
