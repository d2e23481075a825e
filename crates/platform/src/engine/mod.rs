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
mod turn;
mod voice;
mod wishes;

pub use deltas::{Deltas, Followed};
pub use remote::{Harness, HarnessError, Recovery, Remote, Request, Stop, Update};
pub(crate) use stored::shown;

use crate::{Error, Platform};
use loopd_kernel::Limits;
use loopd_protocol::{ActorKey, ActorKind, HarnessCallId, Target};
use loopd_runtime::{Delta, Outlet, Program, Runtime};
use queue::Slots;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What a target executes.
#[derive(Clone)]
pub enum Executes {
    /// One of our own agents.
    Loop {
        /// The agent.
        program: Arc<Program>,
        /// Its limits, unless a call has smaller ones.
        limits: Limits,
        /// It plays a script and knows nothing: pages label it.
        demo: bool,
    },
    /// Something outside.
    External(Arc<dyn Harness>),
}

/// What calls may be made to.
#[derive(Clone)]
pub struct TargetSpec {
    /// Its name: letters, digits, `-`, `_` and `.`, as in an Actor's key.
    pub name: String,
    /// What it does.
    pub description: String,
    /// How many of its calls execute at once; `None` is [`crate::Config::target_slots`].
    pub slots: Option<u32>,
    /// What it executes; `Err` says why it takes no calls now.
    pub executes: Result<Executes, String>,
}

impl std::fmt::Debug for TargetSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TargetSpec").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TargetSpec {
    fn adapter(&self) -> &str {
        match &self.executes {
            Ok(Executes::Loop { demo: false, .. }) | Err(_) => "loop",
            Ok(Executes::Loop { demo: true, .. }) => "demo",
            Ok(Executes::External(harness)) => harness.name(),
        }
    }

    const fn is_demo(&self) -> bool {
        matches!(self.executes, Ok(Executes::Loop { demo: true, .. }))
    }
}

/// The engine of one process. Clones are handles to the same.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    platform: Platform,
    targets: BTreeMap<String, (TargetSpec, ActorKey)>,
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
        f.debug_struct("Engine").field("targets", &self.inner.targets.keys()).finish_non_exhaustive()
    }
}

impl Engine {
    /// The engine over these targets. It accepts nothing before [`Engine::start`].
    ///
    /// # Errors
    /// [`Error::Invalid`] for a target whose name is no Actor's key, or that another one has.
    pub fn new(platform: Platform, targets: Vec<TargetSpec>) -> Result<Self, Error> {
        let mut known = BTreeMap::new();
        let mut slots = Slots::new(platform.config().slots);
        for target in targets {
            let actor = ActorKey::new(ActorKind::Harness, &target.name)
                .map_err(|error| Error::invalid("target", format!("{}: {error}", target.name)))?;
            slots.target(&target.name, target.slots.unwrap_or(platform.config().target_slots));
            let name = target.name.clone();
            if known.insert(name.clone(), (target, actor)).is_some() {
                return Err(Error::invalid("target", format!("there are two named {name}")));
            }
        }
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

    async fn announce(&self) -> Result<(), Error> {
        for (target, actor) in self.inner.targets.values() {
            let (name, description) = (target.name.clone(), target.description.chars().take(2000).collect());
            // What can execute is there for as long as this process is; what cannot was never there.
            let lease = (target.executes.is_err().then_some(0), target.is_demo());
            self.inner.platform.announce(actor, name, description, lease).await?;
        }
        Ok(())
    }

    /// The platform.
    #[must_use]
    pub fn platform(&self) -> &Platform {
        &self.inner.platform
    }

    /// What calls may be made to, by name.
    #[must_use]
    pub fn targets(&self) -> Vec<Target> {
        let slots = self.lock_slots();
        let target = |(target, actor): &(TargetSpec, ActorKey)| {
            let (most, running, queued) = slots.of(&target.name);
            Target {
                name: target.name.clone(),
                description: target.description.clone(),
                adapter: target.adapter().to_owned(),
                actor: actor.clone(),
                slots: most,
                running,
                queued,
                unavailable: target.executes.as_ref().err().cloned(),
            }
        };
        self.inner.targets.values().map(target).collect()
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

    fn target(&self, name: &str) -> Result<&(TargetSpec, ActorKey), Error> {
        self.inner.targets.get(name).ok_or_else(|| Error::not_found("target", name))
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
