//! An activation: takes inputs, applies, commits, performs, until its Run waits or has ended.

use super::commit::{self, CommitError, Holder};
use super::load::{self, LoadError};
use super::perform::{Performer, Work, settle};
use super::transcript::Cache;
use crate::config::Config;
use crate::program::Program;
use loopd_kernel::failure::Disposition;
use loopd_kernel::machine::{Env, Input, MachineError, Pace, Permit, Settling, Step};
use loopd_kernel::model::{ConstantsRef, ModelConstants};
use loopd_kernel::projection::{Status, Target};
use loopd_kernel::{CallId, Digest, Failure, Machine, Projection, RunId};
use loopd_store::{InboxBody, InboxItem, Store, StoreError, Write};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// Inbox items that one read brings.
const INBOX_PAGE: usize = 64;

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
}

/// What woke the activation.
enum Woken {
    Settled(CallId, Input),
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
    handles: BTreeMap<CallId, (AbortHandle, CancellationToken)>,
    queue: VecDeque<(Input, Option<i64>)>,
    entries_since_snapshot: u64,
    bytes_since_snapshot: usize,
    grace_until: Option<tokio::time::Instant>,
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
        projection: Projection,
    ) -> Self {
        Self {
            store,
            program,
            config: performer.config,
            performer,
            holder,
            signals,
            machine: Machine::new(projection),
            cache: Cache::default(),
            constants: BTreeMap::new(),
            inflight: JoinSet::new(),
            handles: BTreeMap::new(),
            queue: VecDeque::new(),
            entries_since_snapshot: 0,
            bytes_since_snapshot: 0,
            grace_until: None,
        }
    }

    fn run(&self) -> RunId {
        self.machine.projection().run
    }

    /// Drives the Run until it waits, is parked, has ended, or the worker stops.
    ///
    /// # Errors
    /// [`DriveError`]; the Run is then as the store has it and is recovered by whoever claims it next.
    pub async fn drive(mut self, first: Input) -> Result<Projection, DriveError> {
        self.queue.push_back((first, None));
        // Items that arrived while nobody drove the Run made no noise that this activation could hear.
        self.read_inbox().await?;
        self.queue_timers();
        loop {
            let more = match self.queue.pop_front() {
                Some((input, item)) => self.step(input, item).await?,
                None => false,
            };
            if more && !self.draining() {
                self.queue.push_back((Input::Continue, None));
            }
            if !self.queue.is_empty() {
                continue;
            }
            if self.is_over() {
                if self.read_inbox().await? {
                    continue;
                }
                return self.leave().await;
            }
            match self.wait().await {
                Woken::Settled(call, input) => {
                    self.handles.remove(&call);
                    self.queue.push_back((input, None));
                }
                Woken::Inbox => {
                    self.read_inbox().await?;
                }
                Woken::Timer => self.queue_timers(),
                Woken::Drain => self.grace_until = Some(tokio::time::Instant::now() + self.config.grace),
                Woken::GraceOver => self.give_up(),
            }
        }
    }

    fn draining(&self) -> bool {
        self.signals.drain.is_cancelled()
    }

    /// True when nothing is left to do here.
    fn is_over(&self) -> bool {
        let projection = self.machine.projection();
        let open = projection.status == Status::Open;
        self.inflight.is_empty() && (!open || projection.is_suspended() || self.draining())
    }

    /// Releases a Run that could go on but whose worker stops. Every other end released it already.
    async fn leave(self) -> Result<Projection, DriveError> {
        let projection = self.machine.projection().clone();
        if projection.status == Status::Open && !projection.is_suspended() {
            let step = Step::default();
            let mut batch =
                commit::batch(&projection, &step, projection.head.seq, &projection.questions, &self.holder, false);
            for write in &mut batch.writes {
                if let Write::UpdateRun { worker, .. } = write {
                    *worker = None;
                }
            }
            self.store.commit(batch).await?;
        }
        Ok(projection)
    }

    async fn wait(&mut self) -> Woken {
        let wake_at = self.machine.projection().wake_at();
        let now = self.performer.clock.now();
        let timer = wake_at.map(|at| Duration::from_millis(at.since(now)));
        let grace = self.grace_until;
        let draining = self.draining();
        tokio::select! {
            biased;
            Some(done) = self.inflight.join_next_with_id(), if !self.inflight.is_empty() => {
                let (call, input) = match done {
                    Ok((_, settled)) => settled,
                    Err(error) => self.broken_task(&error),
                };
                Woken::Settled(call, input)
            }
            () = self.signals.inbox.notified() => Woken::Inbox,
            () = tokio::time::sleep(timer.unwrap_or_default()), if timer.is_some() => Woken::Timer,
            () = self.signals.drain.cancelled(), if grace.is_none() && !draining => Woken::Drain,
            () = std::future::ready(()), if draining && grace.is_none() => Woken::Drain,
            () = tokio::time::sleep_until(grace.unwrap_or_else(tokio::time::Instant::now)), if grace.is_some() => {
                Woken::GraceOver
            }
        }
    }

    /// A Call whose task panicked or was aborted: nobody knows whether it had an effect.
    fn broken_task(&self, error: &tokio::task::JoinError) -> (CallId, Input) {
        let lost = self.handles.iter().find(|(_, (handle, _))| handle.id() == error.id());
        let call = lost.map_or(CallId(0), |(call, _)| *call);
        let settling = if error.is_panic() {
            let failure = Failure::new("call.panicked", "the code that performed this call panicked");
            Settling::Failed(failure, Disposition::InDoubt)
        } else {
            Settling::Interrupted("given up while it ran".into())
        };
        (call, settle(call, settling, None, None))
    }

    /// Gives up what is still in flight; each Call settles as interrupted.
    fn give_up(&mut self) {
        self.grace_until = Some(tokio::time::Instant::now() + self.config.grace);
        for (handle, _) in self.handles.values() {
            handle.abort();
        }
    }

    fn queue_timers(&mut self) {
        let now = self.performer.clock.now();
        let projection = self.machine.projection();
        for timer in projection.timers.iter().filter(|timer| timer.at <= now) {
            self.queue.push_back((Input::Timer(timer.id), None));
        }
        for question in projection.questions.iter().filter(|open| open.expires_at.is_some_and(|at| at <= now)) {
            let end = loopd_kernel::question::QuestionEnd::TimedOut;
            let actor = String::from("loopd");
            self.queue.push_back((
                Input::Answer { question: question.id, end, actor, value: String::new() },
                None,
            ));
        }
    }

    /// Queues waiting inbox items. True: there were some that apply.
    async fn read_inbox(&mut self) -> Result<bool, DriveError> {
        let parked = matches!(self.machine.projection().status, Status::Parked(_));
        let items = self.store.inbox(self.run(), INBOX_PAGE).await?;
        let queued = |id: i64| self.queue.iter().any(|(_, item)| *item == Some(id));
        let fresh: Vec<InboxItem> = items
            .into_iter()
            .filter(|item| !queued(item.id) && (!parked || item.body.moves_parked()))
            .collect();
        let found = !fresh.is_empty();
        self.queue.extend(fresh.into_iter().map(|item| (input_of(item.body), Some(item.id))));
        Ok(found)
    }

    /// Applies one input, commits the step, and performs what it permits. True: there is more to do.
    async fn step(&mut self, input: Input, item: Option<i64>) -> Result<bool, DriveError> {
        let before = self.machine.projection().head.seq;
        let questions = self.machine.projection().questions.clone();
        let step = match self.apply(input.clone())? {
            Applied::Step(step) => step,
            // The fact came too late or does not fit; the item is taken so that it is not tried for ever.
            Applied::Refused(why) => {
                tracing::info!(run = %self.run(), %why, "input refused");
                let step = Step::default();
                return if item.is_some() { self.commit(step, before, &questions, item).await } else { Ok(false) };
            }
            Applied::Panicked(reason) => {
                let row = self.store.run(self.run()).await?.ok_or(DriveError::Fenced)?;
                self.machine = Machine::new(load::load(&*self.store, &row).await.map_err(DriveError::Load)?);
                match self.apply(Input::Poisoned { during: Box::new(input), reason })? {
                    Applied::Step(step) => step,
                    Applied::Refused(_) | Applied::Panicked(_) => return Ok(false),
                }
            }
        };
        self.commit(step, before, &questions, item).await
    }

    fn apply(&mut self, input: Input) -> Result<Applied, DriveError> {
        let entropy = self.performer.entropy.clone();
        let mut salt = || entropy.salt();
        let mut env = Env {
            now: self.performer.clock.now(),
            epoch: self.holder.epoch,
            dispatch_window_ms: u64::try_from(self.config.dispatch_window.as_millis()).unwrap_or(u64::MAX),
            pace: if self.signals.drain.is_cancelled() { Pace::Drain } else { Pace::Full },
            catalog: &*self.program,
            definition: &**self.program.definition(),
            salt: &mut salt,
        };
        let machine = &mut self.machine;
        match catch_unwind(AssertUnwindSafe(|| machine.apply(input, &mut env))) {
            Ok(Ok(step)) => Ok(Applied::Step(step)),
            Ok(Err(MachineError::Refused(why))) => Ok(Applied::Refused(why.to_string())),
            Ok(Err(error)) => Err(DriveError::Machine(error)),
            Err(panic) => Ok(Applied::Panicked(panic_text(&*panic))),
        }
    }

    async fn commit(
        &mut self,
        step: Step,
        before: loopd_kernel::Seq,
        questions: &[loopd_kernel::question::OpenQuestion],
        item: Option<i64>,
    ) -> Result<bool, DriveError> {
        let run = self.run();
        self.entries_since_snapshot += step.entries.len() as u64;
        self.bytes_since_snapshot += step.entries.iter().map(|entry| entry.record.len()).sum::<usize>();
        let with_snapshot = self.entries_since_snapshot >= self.config.snapshot_entries
            || self.bytes_since_snapshot >= self.config.snapshot_bytes;
        let projection = self.machine.projection();
        let mut batch = commit::batch(projection, &step, before, questions, &self.holder, with_snapshot);
        if let Some(id) = item {
            batch.writes.push(Write::TakeInbox { run, id });
        }
        commit::commit(&*self.store, batch, run, before, &step.entries, self.holder.retries).await?;
        if with_snapshot {
            (self.entries_since_snapshot, self.bytes_since_snapshot) = (0, 0);
        }
        self.cache.extend(&step.entries).map_err(DriveError::Load)?;
        for constants in &step.constants {
            if let Ok(parsed) = serde_json::from_slice(&constants.bytes) {
                self.constants.insert(constants.name.digest, Arc::new(parsed));
            }
        }
        for call in &step.aborted {
            if let Some((handle, cancel)) = self.handles.remove(call) {
                cancel.cancel();
                handle.abort();
            }
        }
        self.soften_cancel();
        let more = step.more;
        for permit in step.committed() {
            self.perform(permit).await?;
        }
        Ok(more)
    }

    /// Asks what is still in flight to stop once somebody has cancelled the Run.
    fn soften_cancel(&mut self) {
        if self.machine.projection().cancel.is_some() && self.grace_until.is_none() && !self.handles.is_empty() {
            self.grace_until = Some(tokio::time::Instant::now() + self.config.grace);
            for (_, cancel) in self.handles.values() {
                cancel.cancel();
            }
        }
    }

    async fn perform(&mut self, permit: Permit) -> Result<(), DriveError> {
        let call = permit.call();
        let work = self.work(call).await?;
        let cancel = CancellationToken::new();
        let performing = self.performer.clone().perform(permit, work, cancel.clone());
        let handle = self.inflight.spawn(async move { (call, performing.await) });
        self.handles.insert(call, (handle, cancel));
        Ok(())
    }

    /// Finds what a Call calls, and builds a model's request from what was said before its intent.
    async fn work(&mut self, id: CallId) -> Result<Work, DriveError> {
        let projection = self.machine.projection();
        let Some(call) = projection.open.iter().find(|call| call.id == id) else { return Ok(Work::Gone) };
        let wanted = match &call.target {
            Target::Tool { tool, .. } => {
                return Ok(self.program.find_tool(tool).map_or(Work::Gone, |tool| Work::Tool(tool.clone())));
            }
            Target::Model(wanted) => wanted.clone(),
        };
        let Some(model) = self.program.find_model(&wanted.model).cloned() else { return Ok(Work::Gone) };
        let intent = call.intent.as_ref().map_or(projection.head.seq, |intent| intent.seq);
        let mut messages = if wanted.transcript {
            self.cache.before(&*self.store, projection, intent).await.map_err(DriveError::Load)?
        } else {
            Vec::new()
        };
        messages.extend(wanted.messages.into_iter().map(Arc::new));
        let constants = match wanted.constants {
            Some(name) => self.find_constants(name).await?,
            None => Arc::default(),
        };
        Ok(Work::Model { model, constants, messages })
    }

    async fn find_constants(&mut self, name: ConstantsRef) -> Result<Arc<ModelConstants>, DriveError> {
        if let Some(known) = self.constants.get(&name.digest) {
            return Ok(known.clone());
        }
        let missing = || DriveError::Store(StoreError::Corrupt(format!("the constants {} do not read", name.digest)));
        let bytes = self.store.blob(name.digest).await?.ok_or_else(missing)?;
        let parsed: Arc<ModelConstants> = Arc::new(serde_json::from_slice(&bytes).map_err(|_| missing())?);
        self.constants.insert(name.digest, parsed.clone());
        Ok(parsed)
    }
}

/// What applying an input came to.
enum Applied {
    Step(Step),
    Refused(String),
    Panicked(String),
}

fn input_of(body: InboxBody) -> Input {
    match body {
        InboxBody::Signal { name, body } => Input::Signal { name, body },
        InboxBody::Answer { question, end, actor, value } => Input::Answer { question, end, actor, value },
        InboxBody::Cancel { actor, reason } => Input::Cancel { actor, reason },
        InboxBody::Reopen { actor, raise } => Input::Reopen { actor, raise },
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("a transition panicked: {}", text.unwrap_or_else(|| "no message".into()))
}
