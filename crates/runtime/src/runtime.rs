//! The runtime of one process: starts, claims, wakes and drains Runs.

use crate::config::Config;
use crate::driver::{self, Activation, DriveError, Holder, Lease, Loaded, Patience, PatientStore, Performer, Signals};
use crate::family::Family;
use crate::handle::{Answer, AnswerError, Driven, RunEnd, StartError, answer, tell};
use crate::outlet::Outlet;
use crate::ports::{Clock, Delta, Entropy};
use crate::program::{Program, Programs};
use crate::system::{SystemClock, SystemEntropy};
use crate::turns::{Turns, Wants};
use loopd_kernel::machine::Input;
use loopd_kernel::{Epoch, Outcome, RunId, TimeMs};
use loopd_store::{Claim, InboxBody, RunStatus, Store, StoreError, WorkerId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Everything that the tasks of a runtime share.
pub(crate) struct Inner {
    pub store: Arc<dyn Store>,
    pub programs: Arc<dyn Programs>,
    pub performer: Performer,
    pub worker: WorkerId,
    pub active: Mutex<HashMap<RunId, Active>>,
    pub drain: CancellationToken,
    pub lease: Arc<Lease>,
    /// Held while a heartbeat is under way: one that is held up must not arrive after a later one and shorten what that
    /// promised.
    pub beating: tokio::sync::Mutex<()>,
    pub turns: Turns,
    /// Who adds writes to the commits of Runs.
    pub outlet: Option<Arc<dyn Outlet>>,
    /// Only where nothing is claimed: there children would wait for ever.
    pub family: Option<Arc<Family>>,
    /// Held while a Run is looked up, claimed and noted as active, so that two of us never claim one Run.
    pub claiming: tokio::sync::Mutex<()>,
    /// Runs that were given up and are tried again at this moment.
    pub lost: Mutex<Vec<(RunId, tokio::time::Instant)>>,
    pub tasks: TaskTracker,
    /// Something ended or was suspended: due times may have changed.
    pub changed: Notify,
}

/// One driven Run, or one that waits for its turn.
pub(crate) struct Active {
    pub loop_name: String,
    pub inbox: Arc<Notify>,
    pub end: watch::Receiver<Option<RunEnd>>,
}

/// A worker.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").field("worker", &self.inner.worker).finish_non_exhaustive()
    }
}

/// Builds a [`Runtime`].
pub struct Builder {
    store: Arc<dyn Store>,
    programs: Arc<dyn Programs>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    config: Config,
    deltas: Option<mpsc::UnboundedSender<Delta>>,
    outlet: Option<Arc<dyn Outlet>>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Builder {
    /// Replaces the limits.
    #[must_use]
    pub const fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Replaces clock and randomness.
    #[must_use]
    pub fn world(mut self, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        (self.clock, self.entropy) = (clock, entropy);
        self
    }

    /// Where streamed text of running Calls goes.
    #[must_use]
    pub fn deltas(mut self, deltas: mpsc::UnboundedSender<Delta>) -> Self {
        self.deltas = Some(deltas);
        self
    }

    /// Who adds writes to the commits of Runs. Without one nothing is added.
    #[must_use]
    pub fn outlet(mut self, outlet: Arc<dyn Outlet>) -> Self {
        self.outlet = Some(outlet);
        self
    }

    /// Announces the worker in the store and starts to wake what is due. Must be called within tokio.
    ///
    /// # Errors
    /// [`StoreError`] of the first heartbeat.
    pub async fn start(self) -> Result<Runtime, StoreError> {
        let salt = self.entropy.salt();
        let worker = WorkerId(salt.iter().take(7).fold(0, |id, byte| id << 8 | u64::from(*byte)));
        let (config, drain) = (self.config, CancellationToken::new());
        let patience = Patience { limit: config.commit_patience, drain: drain.clone(), grace: config.grace };
        let performer = Performer {
            clock: self.clock,
            entropy: self.entropy,
            config,
            limits: Arc::default(),
            patience,
            deltas: self.deltas,
        };
        let (family, children) = Family::new();
        let inner = Arc::new(Inner {
            store: self.store,
            programs: self.programs,
            performer,
            worker,
            active: Mutex::default(),
            drain,
            lease: Arc::default(),
            beating: tokio::sync::Mutex::default(),
            turns: Turns::default(),
            outlet: self.outlet,
            family: (!config.claims).then(|| Arc::new(family)),
            claiming: tokio::sync::Mutex::default(),
            lost: Mutex::default(),
            tasks: TaskTracker::new(),
            changed: Notify::new(),
        });
        inner.heartbeat().await?;
        let runtime = Runtime { inner };
        runtime.inner.tasks.spawn(crate::keeper::beat(runtime.clone()));
        runtime.inner.tasks.spawn(crate::keeper::keep(runtime.clone(), children));
        Ok(runtime)
    }
}

impl Runtime {
    /// A worker over `store` that can run `programs`.
    #[must_use]
    pub fn builder(store: Arc<dyn Store>, programs: Arc<dyn Programs>) -> Builder {
        Builder {
            store,
            programs,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy::default()),
            config: Config::default(),
            deltas: None,
            outlet: None,
        }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// Takes a Run over and drives it: after a crash it recovers, after a polite stop it goes on.
    ///
    /// # Errors
    /// [`StartError`]; the Run is as it was.
    pub async fn resume(&self, run: RunId) -> Result<Driven, StartError> {
        let row = self.inner.store.run(run).await?.ok_or(StartError::NotFound(run))?;
        // What cannot be run here must not be claimed: somebody else may be able to.
        self.program_for(&row).await?;
        let _turn = self.inner.claiming.lock().await;
        if let Some(driven) = self.driven(run) {
            return Ok(driven);
        }
        let now = self.inner.performer.clock.now();
        let claim = Claim { worker: self.inner.worker, now, loops: Vec::new(), limit: 1, only: Some(run) };
        match self.inner.store.claim(claim).await?.pop() {
            Some(claimed) => match self.adopt(claimed).await {
                Ok(driven) => Ok(driven),
                Err(unfit) => {
                    self.release(&unfit.row).await;
                    Err(unfit.error)
                }
            },
            None => Err(StartError::NotClaimable(row.status.name())),
        }
    }

    /// Now, by the worker's clock.
    #[must_use]
    pub fn now(&self) -> TimeMs {
        self.inner.performer.clock.now()
    }

    /// The outcome of a sealed Run, read from the store; `None` while it is open or parked.
    ///
    /// # Errors
    /// [`StartError`] when there is no such Run or it does not read.
    pub async fn ended(&self, run: RunId) -> Result<Option<Outcome>, StartError> {
        let row = self.inner.store.run(run).await?.ok_or(StartError::NotFound(run))?;
        if row.status != RunStatus::Ended {
            return Ok(None);
        }
        let loaded = driver::load(&*self.inner.store, &row).await.map_err(StartError::Load)?;
        Ok(loaded.projection.outcome().map(|(outcome, _)| outcome.clone()))
    }

    /// Adds an inbox item. Its key makes it idempotent: the same key twice is one item.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn tell(&self, run: RunId, key: impl Into<String>, body: InboxBody) -> Result<(), StoreError> {
        let at = self.inner.performer.clock.now();
        tell(&*self.inner.store, run, key.into(), at, body).await
    }

    /// Passes an answer on to a Run, once it fits what the Question asks.
    ///
    /// # Errors
    /// [`AnswerError`]; nothing was written.
    pub async fn answer(&self, run: RunId, key: impl Into<String>, said: Answer) -> Result<(), AnswerError> {
        let skew_ms = u64::try_from(self.inner.performer.config.skew.as_millis()).unwrap_or(u64::MAX);
        let at = self.inner.performer.clock.now();
        answer(&*self.inner.store, run, key.into(), (at, skew_ms), said).await
    }

    /// Stops: nothing new is claimed or sent, open Calls may settle within the grace time, Runs are
    /// released.
    pub async fn shutdown(&self) {
        self.inner.drain.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    pub(crate) fn holder(&self, epoch: Epoch) -> Holder {
        Holder { epoch, worker: self.inner.worker, keeps: true }
    }

    pub(crate) fn with_active<T>(&self, f: impl FnOnce(&mut HashMap<RunId, Active>) -> T) -> T {
        f(&mut self.inner.active.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The handle of a Run that is driven here already.
    #[must_use]
    pub fn driven(&self, run: RunId) -> Option<Driven> {
        self.with_active(|active| active.get(&run).map(|one| Driven { run, end: one.end.clone() }))
    }

    pub(crate) fn activate(&self, program: Arc<Program>, loaded: Loaded, holder: Holder, first: Vec<Input>) -> Driven {
        let run = loaded.projection.run;
        let (sender, end) = watch::channel(None);
        let inner = &self.inner;
        let signals = Signals {
            inbox: Arc::new(Notify::new()),
            drain: inner.drain.clone(),
            lease: inner.lease.clone(),
            family: inner.family.clone(),
            tasks: inner.tasks.clone(),
        };
        let driven = Driven { run, end: end.clone() };
        let mine = signals.inbox.clone();
        // A parent that waits here for a child keeps its turn, so the child takes none of its own.
        let awaited = inner.family.as_ref().is_some_and(|family| family.is_here(run));
        let wants = Wants::of(&program, &loaded.projection, &first, awaited);
        let loop_name = wants.loop_name.clone();
        self.with_active(|map| map.insert(run, Active { loop_name, inbox: mine.clone(), end }));
        let performer = inner.performer.clone();
        let store = Arc::new(PatientStore::new(inner.store.clone(), performer.patience.clone()));
        let activation = Activation::new(store, program, performer, holder, signals, loaded);
        let activation = activation.beside(inner.outlet.clone());
        let entry = ActiveEntry { runtime: self.clone(), run, mine };
        self.inner.tasks.spawn(async move {
            let inner = &entry.runtime.inner;
            let driven = match inner.turns.take(&wants, &inner.performer.config, &inner.drain).await {
                Some(turn) => {
                    let _seat = turn.seat;
                    activation.on_probation(turn.probation).drive(first).await
                }
                // It was never its turn, so it is given back as it was found.
                None => activation.leave().await,
            };
            let end = match driven {
                Ok(projection) => RunEnd::of(&projection),
                Err(error) => {
                    tracing::warn!(%run, %error, "a run was given up");
                    if error != DriveError::Fenced {
                        entry.runtime.try_again_later(run);
                    }
                    RunEnd::Lost(error)
                }
            };
            drop(entry);
            sender.send_replace(Some(end));
        });
        driven
    }

    pub(crate) fn try_again_later(&self, run: RunId) {
        let at = tokio::time::Instant::now() + self.inner.performer.config.lease / 3;
        self.inner.lost.lock().unwrap_or_else(PoisonError::into_inner).push((run, at));
    }
}

/// The note that a Run is driven here; gone with its activation, however that ends.
struct ActiveEntry {
    runtime: Runtime,
    run: RunId,
    mine: Arc<Notify>,
}

impl Drop for ActiveEntry {
    fn drop(&mut self) {
        // A fenced activation must not remove the note of its successor.
        self.runtime.with_active(|map| map.retain(|run, one| *run != self.run || !Arc::ptr_eq(&one.inbox, &self.mine)));
        let inner = &self.runtime.inner;
        if let Some(parent) = inner.family.as_ref().and_then(|family| family.leave(self.run)) {
            crate::keeper::notify(&self.runtime, |run| run == parent);
        }
        inner.changed.notify_one();
    }
}

impl Inner {
    /// Renews this worker's lease.
    pub(crate) async fn heartbeat(&self) -> Result<(), StoreError> {
        let _turn = self.beating.lock().await;
        let lease = u64::try_from(self.performer.config.lease.as_millis()).unwrap_or(u64::MAX);
        let clock = &self.performer.clock;
        let (until, steady_ms) = (clock.now().after(lease), clock.steady_ms().saturating_add(lease));
        self.store.heartbeat(self.worker, until).await?;
        self.lease.renew(until, steady_ms);
        Ok(())
    }

    /// True when the lease has not lapsed: a clock that jumped is noticed before anybody is claimed.
    pub(crate) async fn holds_lease(&self) -> bool {
        let lapsed = self.lease.left_ms(&*self.performer.clock) == 0;
        !lapsed || self.heartbeat().await.is_ok()
    }

    /// Runs whose next try is due.
    pub(crate) fn due_retries(&self) -> Vec<RunId> {
        let now = tokio::time::Instant::now();
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let due = lost.iter().filter(|(_, at)| *at <= now).map(|(run, _)| *run).collect();
        lost.retain(|(_, at)| *at > now);
        due
    }
}
