//! Starting Runs: once per admission key, with or without a first signal.

use crate::driver::{self, CommitError, Loaded};
use crate::handle::{Driven, StartError, Started};
use crate::outlet::{self, Before, Stepped};
use crate::program::Program;
use crate::runtime::Runtime;
use loopd_kernel::machine::{Admission, Env, Input, Pace, Step};
use loopd_kernel::record::Record;
use loopd_kernel::{Epoch, Machine, Projection, RunId, Seq, TimeMs};
use loopd_store::{Batch, Expect, Expectation, InboxBody, InboxItem, RunFilter, RunStatus, StoreError, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// How long somebody who starts a Run waits for a store that is out of reach: nothing is under way yet, and whoever
/// asked can ask again.
const START_PATIENCE: Duration = Duration::from_secs(3);

/// The signal of [`Runtime::signal_with_start`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstSignal {
    /// Its name.
    pub name: String,
    /// Its body.
    pub body: String,
    /// Its dedup key: the same key twice is one signal.
    pub key: String,
}

/// How a Run begins when its caller has a say in its first commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    /// The identity of the Run; [`Runtime::new_run`] makes one.
    pub run: RunId,
    /// What has to hold besides, of Records. Looked at after the Run's own expectation.
    pub expect: Vec<Expect>,
    /// What is written besides, after the Run's own writes and before those of the worker's
    /// [`crate::Outlet`], which finds none of it in the store yet.
    pub writes: Vec<Write>,
}

impl Beginning {
    /// This identity, and nothing besides.
    #[must_use]
    pub const fn of(run: RunId) -> Self {
        Self { run, expect: Vec::new(), writes: Vec::new() }
    }
}

/// What creating a Run came to.
enum Created {
    New(Driven),
    /// The admission key names this Run.
    Before(RunId),
}

impl Runtime {
    /// Starts a Run: its first step is durable when this returns. Starting twice with one admission key
    /// gives the first Run.
    ///
    /// # Errors
    /// [`StartError`]. Nothing was started, unless the store stayed unsure about the commit to the last: start
    /// again with the same admission key to find out.
    pub async fn start(&self, program: &Arc<Program>, admission: Admission) -> Result<Started, StartError> {
        self.start_as(program, admission, Beginning::of(self.new_run())).await
    }

    /// The same for a caller that decides who the Run is, and what else its first commit expects and writes: all of it
    /// is durable when this returns a new Run, and none of it else.
    ///
    /// An admission key that names a Run already goes before every expectation: the answer is that Run then, and the
    /// caller's writes were made with it, or never.
    ///
    /// # Errors
    /// [`StartError`]. [`StartError::Conflict`] names the expectation that did not hold, the caller's or that of one
    /// of its writes; [`Expectation::Run`] when the identity is taken. Nothing was started then: read again what has
    /// changed, and try again. For anything else as [`Runtime::start`].
    pub async fn start_as(
        &self,
        program: &Arc<Program>,
        admission: Admission,
        beginning: Beginning,
    ) -> Result<Started, StartError> {
        let (name, input) = (program.definition().name().to_owned(), admission.input.clone());
        match self.create(program, admission, beginning, None).await? {
            Created::New(driven) => Ok(Started::New(driven)),
            Created::Before(first) => match self.admitted(first).await? {
                (loop_name, before) if loop_name == name && before == input => Ok(Started::Already(first)),
                _ => Err(StartError::KeyTaken(first)),
            },
        }
    }

    /// Signals the Run that the admission key names, and starts it when there is none: who comes first, and how often
    /// somebody tries, makes no difference. A new Run and its first signal are one commit. The signal's own key makes
    /// it one signal, however often it is sent. The input counts only for whoever starts the Run.
    ///
    /// # Errors
    /// [`StartError`]: [`StartError::NoKey`] without an admission key, [`StartError::KeyTaken`] when it names a Run of
    /// another Loop, [`StartError::Sealed`] when its Run has ended and did not hear this signal. Nothing was started
    /// or sent, unless the store stayed unsure to the last: then ask again with the same keys.
    pub async fn signal_with_start(
        &self,
        program: &Arc<Program>,
        admission: Admission,
        signal: FirstSignal,
    ) -> Result<Started, StartError> {
        if admission.key.is_none() {
            return Err(StartError::NoKey);
        }
        let FirstSignal { name, body, key } = signal;
        let body = InboxBody::Signal { name, body };
        let beginning = Beginning::of(self.new_run());
        let first = match self.create(program, admission, beginning, Some((key.clone(), body.clone()))).await? {
            Created::New(driven) => return Ok(Started::New(driven)),
            Created::Before(first) => first,
        };
        if self.admitted(first).await?.0 != program.definition().name() {
            return Err(StartError::KeyTaken(first));
        }
        let patience = self.inner.performer.patience.at_most(START_PATIENCE);
        let mut waiting = patience.begin();
        loop {
            match self.tell(first, key.clone(), body.clone()).await {
                Ok(()) => return Ok(Started::Already(first)),
                Err(StoreError::Conflict(Expectation::Sealed(run))) => return Err(StartError::Sealed(run)),
                // The same key again is one signal.
                Err(StoreError::Unavailable(_) | StoreError::Ambiguous(_)) if waiting.pause().await => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// An identity for a new Run. Later ones sort after earlier ones, to the millisecond.
    #[must_use]
    pub fn new_run(&self) -> RunId {
        let performer = &self.inner.performer;
        let salt = performer.entropy.salt();
        let mut id = [0; 16];
        id.copy_from_slice(salt.get(..16).unwrap_or(&[0; 16]));
        let now = performer.clock.now();
        id[..6].copy_from_slice(now.0.to_be_bytes().get(2..).unwrap_or(&[0; 6]));
        RunId(id)
    }

    /// Commits a new Run with what its inbox begins with, and drives it.
    async fn create(
        &self,
        program: &Arc<Program>,
        admission: Admission,
        beginning: Beginning,
        first: Option<(String, InboxBody)>,
    ) -> Result<Created, StartError> {
        let inner = &self.inner;
        let (run, now) = (beginning.run, inner.performer.clock.now());
        let (tenant, key) = (admission.tenant.clone(), admission.key.clone());
        let holder = self.holder(Epoch(1));
        let (projection, step) = self.admit(run, now, program, admission)?;
        let mut batch = driver::batch(&projection, &step, Seq(0), &[], &holder, false);
        // First: a retry after an unsure commit must meet its own Run before it meets its own writes.
        batch.expect = vec![Expect::RunAbsent(run)];
        batch.expect.extend(beginning.expect);
        let mut row = driver::new_row(&projection, &tenant, key.clone(), &holder);
        row.origin = program.found_at().map(Into::into);
        batch.writes.insert(0, Write::CreateRun(Box::new(row)));
        let definition = program.definition().definition();
        if !definition.is_empty() {
            batch.writes.push(Write::PutBlob { digest: program.digest(), bytes: definition.into() });
        }
        let item = first.map(|(key, body)| InboxItem { id: 0, run, key, at: now, body });
        batch.writes.extend(item.map(Write::AddInbox));
        batch.writes.extend(beginning.writes);
        match self.commit_first(batch, &projection, &step, key.as_deref()).await {
            Ok(()) => {}
            Err(CommitError::Store(StoreError::Conflict(broken))) => {
                let first = self.named(tenant, key, &broken).await?;
                return first.map(Created::Before).ok_or(StartError::Conflict(broken));
            }
            Err(error) => return Err(error.into()),
        }
        let loaded = Loaded { since_snapshot: projection.head.seq.0, admission: key, projection };
        Ok(Created::New(self.activate(program.clone(), loaded, holder, vec![Input::Continue])))
    }

    async fn commit_first(
        &self,
        mut batch: Batch,
        projection: &Projection,
        step: &Step,
        admission: Option<&str>,
    ) -> Result<(), CommitError> {
        let inner = &self.inner;
        let patience = inner.performer.patience.at_most(START_PATIENCE);
        let status = driver::status(projection, step.blocked);
        let stepped = Stepped {
            admission,
            before: Before { head: Seq(0), status: RunStatus::Running, questions: &[] },
            after: projection,
            status,
            entries: &step.entries,
            item: None,
        };
        batch.writes.extend(outlet::beside(inner.outlet.as_ref(), stepped, &patience).await?);
        driver::commit(&*inner.store, batch, projection.run, Seq(0), &step.entries, &patience).await
    }

    /// The Run that the admission key names, whatever else stood in the way of a new one.
    async fn named(
        &self,
        tenant: String,
        key: Option<String>,
        broken: &Expectation,
    ) -> Result<Option<RunId>, StoreError> {
        if let Expectation::Admission(first) = broken {
            return Ok(Some(*first));
        }
        let Some(key) = key else { return Ok(None) };
        let filter = RunFilter { admission: Some((tenant, key)), limit: 1, ..RunFilter::default() };
        Ok(self.inner.store.runs(filter).await?.items.first().map(|row| row.run))
    }

    fn admit(
        &self,
        run: RunId,
        now: TimeMs,
        program: &Program,
        admission: Admission,
    ) -> Result<(Projection, Step), StartError> {
        let performer = &self.inner.performer;
        let mut machine = Machine::new(Projection::new(run));
        let mut salt = || performer.entropy.salt();
        let mut env = Env {
            now,
            epoch: Epoch(1),
            dispatch_window_ms: 0,
            skew_ms: 0,
            // The first commit only admits the Run: its Calls belong to the activation.
            pace: Pace::Drain,
            catalog: program,
            definition: &**program.definition(),
            salt: &mut salt,
        };
        let start = AssertUnwindSafe(|| machine.apply(Input::Start(admission), &mut env));
        let step = match catch_unwind(start) {
            Ok(step) => step.map_err(StartError::Machine)?,
            Err(_) => return Err(StartError::InitPanicked),
        };
        Ok((machine.projection().clone(), step))
    }

    /// The Loop and the input of the Run that an admission key names already.
    async fn admitted(&self, first: RunId) -> Result<(String, String), StartError> {
        let entries = self.inner.store.entries(first, Seq(0), 1).await?;
        let entry = entries.first().ok_or(StartError::NotFound(first))?;
        match Record::decode(entry.kind, &entry.record) {
            Ok(Record::Started(started)) => {
                let input = started.input.text(&entry.payload).unwrap_or_default().to_owned();
                Ok((started.loop_name, input))
            }
            _ => Err(StartError::KeyTaken(first)),
        }
    }
}
