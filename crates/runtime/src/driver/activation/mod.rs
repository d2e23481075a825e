//! An activation: takes inputs, applies, commits, performs, until its Run waits or has ended.

mod calls;
mod keep;
mod kin;
mod listen;

use super::commit::{self, CommitError, Holder};
use super::lease::Lease;
use super::load::{self, LoadError, Loaded};
use super::perform::Performer;
use super::transcript::Cache;
use crate::config::Config;
use crate::deadline::Window;
use crate::family::Family;
use crate::outlet::Outlet;
use crate::program::Program;
use crate::turns::Probation;
use calls::Flight;
use keep::Was;
use listen::Item;
pub use listen::input_of;
use loopd_kernel::machine::{Env, Input, MachineError, Pace, Refused, Step};
use loopd_kernel::model::ModelConstants;
use loopd_kernel::projection::Status;
use loopd_kernel::{CallId, Digest, Failure, Machine, Projection, RunId, TimeMs};
use loopd_store::{RunStatus, Store, StoreError};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Why an activation gave its Run up. The Run is as the store has it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriveError {
    /// Another worker has taken it over.
    #[error("another worker has taken this run over")]
    Fenced,
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
    /// The Run cannot be recovered.
    #[error(transparent)]
    Load(LoadError),
    /// The machine contradicted itself.
    #[error("{0}")]
    Machine(MachineError),
}

impl From<CommitError> for DriveError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Fenced => Self::Fenced,
            CommitError::Store(error) => Self::Store(error),
        }
    }
}

impl From<StoreError> for DriveError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Fenced(_) => Self::Fenced,
            StoreError::Conflict(_)
            | StoreError::Ambiguous(_)
            | StoreError::Full(_)
            | StoreError::Unavailable(_)
            | StoreError::Corrupt(_)
            | StoreError::DriverElsewhere(_)
            | StoreError::ClientOnly
            | StoreError::TooNew { .. } => Self::Store(error),
        }
    }
}

/// How an activation hears from outside.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    /// The Run's inbox may have changed.
    pub inbox: Arc<Notify>,
    /// The worker is about to stop.
    pub drain: CancellationToken,
    /// The worker's lease.
    pub lease: Arc<Lease>,
    /// Children that are driven here, where their parents stay for them.
    pub(crate) family: Option<Arc<Family>>,
    /// Where what outlives an activation goes on.
    pub(crate) tasks: TaskTracker,
}

/// What woke the activation.
enum Woken {
    Settled(CallId, Box<Input>),
    Inbox,
    Timer,
    Drain,
    GraceOver,
}

/// One Run while it is driven.
pub struct Activation {
    store: Arc<dyn Store>,
    program: Arc<Program>,
    performer: Performer,
    config: Config,
    holder: Holder,
    signals: Signals,
    machine: Machine,
    cache: Cache,
    constants: BTreeMap<Digest, Arc<ModelConstants>>,
    inflight: JoinSet<(CallId, Input)>,
    handles: BTreeMap<CallId, Flight>,
    /// The result of an effect whose settlement is being committed.
    unrecorded: Option<(CallId, String)>,
    queue: VecDeque<(Input, Option<Item>)>,
    /// The inbox may hold more than was read.
    more_in_inbox: bool,
    /// When it was last looked at what is due.
    looked_at: TimeMs,
    /// A wanted Call waits until something that is open gives room under a limit.
    blocked: bool,
    /// Who adds writes to its commits.
    outlet: Option<Arc<dyn Outlet>>,
    /// The caller's key for starting it once.
    admission: Option<String>,
    /// The status that was committed last.
    told: RunStatus,
    /// The last commit gave the Run up; somebody else may drive it already.
    released: bool,
    entries_since_snapshot: u64,
    bytes_since_snapshot: usize,
    grace: Grace,
    /// The dispatch window of the step that was applied last.
    window: Window,
    /// It is suspected of killing its process, and others wait until it gets on.
    probation: Option<Probation>,
}

/// How long Calls in flight may still settle.
#[derive(Clone, Copy)]
enum Grace {
    /// As long as they need.
    Unlimited,
    /// Until then; afterwards they are given up.
    Until(tokio::time::Instant),
    /// They were given up and have until then to notice.
    GivenUp(tokio::time::Instant),
}

impl std::fmt::Debug for Activation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Activation").field("run", &self.run()).finish_non_exhaustive()
    }
}

impl Activation {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        program: Arc<Program>,
        performer: Performer,
        holder: Holder,
        signals: Signals,
        loaded: Loaded,
    ) -> Self {
        Self {
            store,
            program,
            config: performer.config,
            performer,
            holder,
            signals,
            told: commit::status(&loaded.projection, false),
            machine: Machine::new(loaded.projection),
            outlet: None,
            admission: loaded.admission,
            cache: Cache::default(),
            constants: BTreeMap::new(),
            inflight: JoinSet::new(),
            handles: BTreeMap::new(),
            unrecorded: None,
            queue: VecDeque::new(),
            more_in_inbox: false,
            looked_at: TimeMs(i64::MIN),
            blocked: false,
            released: false,
            entries_since_snapshot: loaded.since_snapshot,
            bytes_since_snapshot: 0,
            grace: Grace::Unlimited,
            window: Window::default(),
            probation: None,
        }
    }

    /// `outlet` adds writes to its commits.
    pub(crate) fn beside(self, outlet: Option<Arc<dyn Outlet>>) -> Self {
        Self { outlet, ..self }
    }

    /// It is driven alone among its kind until it gets on.
    pub(crate) fn on_probation(self, probation: Option<Probation>) -> Self {
        Self { probation, ..self }
    }

    fn run(&self) -> RunId {
        self.machine.projection().run
    }

    /// Drives the Run until it waits, is parked, has ended, or the worker stops. `first` are inputs that come before
    /// what the inbox holds.
    ///
    /// # Errors
    /// [`DriveError`]; the Run is then as the store has it and is recovered by whoever claims it next. Results of Calls
    /// that may have changed the world are handed in all the same, as far as they come.
    pub async fn drive(mut self, first: Vec<Input>) -> Result<Projection, DriveError> {
        match self.run_on(first).await {
            Ok(End::Left) => self.leave().await,
            Ok(End::Abandoned) => self.abandon(),
            Err(error) => {
                let tasks = self.signals.tasks.clone();
                let leftovers = self.leftovers();
                if !leftovers.is_empty() {
                    tasks.spawn(leftovers.hand_in());
                }
                Err(error)
            }
        }
    }

    async fn run_on(&mut self, first: Vec<Input>) -> Result<End, DriveError> {
        self.queue.extend(first.into_iter().map(|input| (input, None)));
        // Items that arrived while nobody drove the Run made no noise that this activation could hear.
        self.look_around().await?;
        loop {
            while let Some((input, item)) = self.queue.pop_front() {
                if self.step(input, item).await? && !self.draining() {
                    // A Loop that goes on and on still hears what came meanwhile.
                    self.look_around().await?;
                    self.queue.push_back((Input::Continue, None));
                }
            }
            if self.more_in_inbox && self.read_inbox().await? {
                continue;
            }
            if self.is_over() {
                if !self.released && self.read_inbox().await? {
                    continue;
                }
                return Ok(End::Left);
            }
            match self.wait().await {
                Woken::Settled(call, input) => {
                    self.handles.remove(&call);
                    self.queue.push_back((*input, None));
                }
                Woken::Inbox => {
                    self.read_inbox().await?;
                    self.queue.push_back((Input::Continue, None));
                }
                // An answer that came in time goes before the expiry of its question.
                Woken::Timer => self.look_around().await?,
                Woken::Drain => self.grace = Grace::Until(tokio::time::Instant::now() + self.config.grace),
                // A probe ends by itself, and is no reason to leave anything behind.
                Woken::GraceOver if self.only_probes() && !self.draining() => self.grace = Grace::Unlimited,
                Woken::GraceOver if matches!(self.grace, Grace::GivenUp(_)) => return Ok(End::Abandoned),
                Woken::GraceOver => self.give_up(),
            }
        }
    }

    fn draining(&self) -> bool {
        self.signals.drain.is_cancelled()
    }

    /// True when nothing is left to do here.
    fn is_over(&self) -> bool {
        self.inflight.is_empty() && (self.rests() || self.draining())
    }

    /// True when the Run has an outcome, or waits for longer than is worth keeping it in memory.
    fn rests(&self) -> bool {
        let projection = self.machine.projection();
        let soon = self.performer.clock.now().after(u64::try_from(self.config.linger.as_millis()).unwrap_or(0));
        let awaited = self.is_awaited_here();
        let due_soon = projection.wake_at().is_some_and(|at| awaited || at <= soon) && !self.draining();
        let waits = projection.is_suspended() || (self.blocked && projection.only_children());
        projection.status != Status::Open || (waits && !due_soon && !self.has_children_here())
    }

    /// Leaves Calls behind that do not stop. They stay open: whoever takes the Run over treats them as after
    /// a crash, so it is not released.
    fn abandon(mut self) -> Result<Projection, DriveError> {
        tracing::warn!(run = %self.run(), "a call does not stop; it is left behind");
        self.inflight.detach_all();
        Ok(self.machine.projection().clone())
    }

    async fn wait(&mut self) -> Woken {
        let wake_at = self.machine.projection().wake_after(self.looked_at);
        let now = self.performer.clock.now();
        let timer = wake_at.map(|at| Duration::from_millis(at.since(now)));
        let (unlimited, until) = match self.grace {
            Grace::Unlimited => (true, tokio::time::Instant::now()),
            Grace::Until(until) | Grace::GivenUp(until) => (false, until),
        };
        tokio::select! {
            biased;
            Some(done) = self.inflight.join_next_with_id(), if !self.inflight.is_empty() => {
                let (call, input) = match done {
                    Ok((_, settled)) => settled,
                    Err(error) => self.broken_task(&error),
                };
                Woken::Settled(call, Box::new(input))
            }
            () = self.signals.inbox.notified() => Woken::Inbox,
            () = self.signals.drain.cancelled(), if unlimited => Woken::Drain,
            () = tokio::time::sleep(timer.unwrap_or_default()), if timer.is_some() && !self.draining() => Woken::Timer,
            () = tokio::time::sleep_until(until), if !unlimited => Woken::GraceOver,
        }
    }

    /// Applies one input, commits the step, and performs what it permits. True: there is more to do.
    async fn step(&mut self, input: Input, item: Option<Item>) -> Result<bool, DriveError> {
        let projection = self.machine.projection();
        let was = Was { head: projection.head.seq, questions: projection.questions.clone() };
        self.unrecorded = self.effect_result(&input);
        let step = match self.apply(input.clone())? {
            Applied::Step(step) => step,
            // What came before it parked the Run: it waits until somebody reopens that.
            Applied::Refused(Refused::Parked) if item.is_some() => {
                self.more_in_inbox = true;
                return Ok(false);
            }
            // The fact came too late or does not fit; the item is taken so that it is not tried for ever.
            Applied::Refused(why) => {
                tracing::info!(run = %self.run(), %why, "input refused");
                Step::default()
            }
            Applied::Panicked(reason) => {
                let row = self.store.run(self.run()).await?.ok_or(DriveError::Fenced)?;
                let loaded = load::load(&*self.store, &row).await.map_err(DriveError::Load)?;
                self.machine = Machine::new(loaded.projection);
                match self.apply(poisoned(input, reason))? {
                    Applied::Step(step) => step,
                    Applied::Refused(_) | Applied::Panicked(_) => Step::default(),
                }
            }
        };
        self.blocked = step.blocked;
        if step.entries.is_empty() && item.is_none() {
            self.probe(step.probes);
            return Ok(step.more);
        }
        self.commit(step, was, item).await
    }

    /// How long an intent of this commit may still be sent: never as long as somebody else could hold the Run.
    fn dispatch_window_ms(&self) -> u64 {
        let window = u64::try_from(self.config.dispatch_window.as_millis()).unwrap_or(u64::MAX);
        let left = self.signals.lease.left_ms(&*self.performer.clock);
        window.min(left.saturating_sub(u64::try_from(self.config.skew.as_millis()).unwrap_or(u64::MAX)))
    }

    fn apply(&mut self, input: Input) -> Result<Applied, DriveError> {
        let entropy = self.performer.entropy.clone();
        let mut salt = || entropy.salt();
        let window = self.dispatch_window_ms();
        self.window = Window::open(&*self.performer.clock, window, self.machine.projection().head.at);
        // Without a lease nothing may be sent, so nothing is intended; the next beat renews it and says so.
        let stops = self.signals.drain.is_cancelled() || window == 0;
        let mut env = Env {
            now: self.performer.clock.now(),
            epoch: self.holder.epoch,
            dispatch_window_ms: window,
            skew_ms: u64::try_from(self.config.skew.as_millis()).unwrap_or(u64::MAX),
            pace: if stops { Pace::Drain } else { Pace::Full },
            catalog: &*self.program,
            definition: &**self.program.definition(),
            salt: &mut salt,
        };
        let machine = &mut self.machine;
        match catch_unwind(AssertUnwindSafe(|| machine.apply(input, &mut env))) {
            Ok(Ok(step)) => Ok(Applied::Step(step)),
            Ok(Err(MachineError::Refused(why))) => Ok(Applied::Refused(why)),
            Ok(Err(error)) => Err(DriveError::Machine(error)),
            Err(panic) => Ok(Applied::Panicked(panic_text(&*panic))),
        }
    }
}

/// How an activation that was not disturbed ended.
enum End {
    Left,
    Abandoned,
}

/// What is recorded of an input over which the Loop panicked. A child that cannot begin has no State to go back to.
fn poisoned(input: Input, reason: String) -> Input {
    match input {
        Input::Born { admission, parent, .. } => {
            Input::Born { admission, parent, refused: Some(Failure::new("loop.panicked", reason)) }
        }
        input => Input::Poisoned { during: Box::new(input), reason },
    }
}

/// What applying an input came to.
enum Applied {
    Step(Step),
    Refused(Refused),
    Panicked(String),
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("a transition panicked: {}", text.unwrap_or_else(|| "no message".into()))
}
