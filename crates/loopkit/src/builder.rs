//! One run from a program: builder in, typed end out.

use loopd_kernel::machine::Admission;
use loopd_kernel::projection::Waits;
use loopd_kernel::{Limits, Loop, Outcome, RunId, erase};
use loopd_runtime::{Config, DriveError, FixedPrograms, Model, Program, RunEnd, Runtime, StartError, Started, Tool};
use loopd_store::{MemoryStore, Store, StoreError};
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// How often a sleeping run's inbox is looked at, should a hint be lost.
const LOOK: Duration = Duration::from_secs(1);

/// How a run stands when [`run`] returns.
#[must_use = "an end says whether the work was done"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End<O> {
    /// It has an outcome.
    Ended(Outcome<O>),
    /// It waits for a person or a signal. Answer, then start again with the same key.
    Suspended {
        /// The run.
        run: RunId,
        /// What it waits for.
        waits: Waits,
    },
}

/// Why a run could not be driven. Its journal is intact: starting again goes on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input does not serialise.
    #[error("the input does not serialise: {0}")]
    Input(serde_json::Error),
    /// The recorded output is not the Loop's output type.
    #[error("the recorded output is not the loop's output type: {0}")]
    Output(serde_json::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run could not be started or taken over.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The run was given up.
    #[error(transparent)]
    Drive(DriveError),
    /// The runtime stopped before the run did.
    #[error("the runtime stopped before the run did")]
    Stopped,
}

/// Where the journal lives.
enum Place {
    Memory,
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "only the sqlite feature opens files"))]
    File(PathBuf),
    Given(Arc<dyn Store>),
}

/// A run in the making. Await it.
#[must_use = "a run starts when the builder is awaited"]
pub struct Builder<L: Loop> {
    program: Program,
    children: Vec<Arc<Program>>,
    input: Result<String, serde_json::Error>,
    place: Place,
    limits: Limits,
    key: Option<String>,
    config: Config,
    marker: PhantomData<fn(L)>,
}

impl<L: Loop> std::fmt::Debug for Builder<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("program", &self.program).field("key", &self.key).finish_non_exhaustive()
    }
}

/// Prepares one run of `definition` with `input`. Without a store it lives in memory.
pub fn run<L: Loop>(definition: L, input: L::Input) -> Builder<L> {
    Builder {
        program: Program::new(erase(definition, Vec::new())),
        children: Vec::new(),
        input: serde_json::to_string(&input),
        place: Place::Memory,
        limits: Limits::default(),
        key: None,
        config: Config { claims: false, ..Config::default() },
        marker: PhantomData,
    }
}

impl<L: Loop> Builder<L> {
    /// Keeps the journal in this SQLite file, which is created when missing.
    #[cfg(feature = "sqlite")]
    pub fn store(mut self, path: impl Into<PathBuf>) -> Self {
        self.place = Place::File(path.into());
        self
    }

    /// Keeps the journal in this store.
    pub fn store_in(mut self, store: Arc<dyn Store>) -> Self {
        self.place = Place::Given(store);
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.program = self.program.tool(Arc::new(tool));
        self
    }

    /// Adds a model under the name that the Loop calls it by.
    pub fn model(mut self, name: impl Into<String>, model: Arc<dyn Model>) -> Self {
        self.program = self.program.model(name, model);
        self
    }

    /// Adds a Loop, with its tools and models, that this one or one of its children may start as a child Run.
    pub fn child(mut self, program: Program) -> Self {
        self.children.push(Arc::new(program));
        self
    }

    /// Sets the limits.
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Names the run: starting again with the same key resumes it instead of starting another.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Replaces the runtime's settings.
    pub const fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    async fn drive(self) -> Result<End<L::Output>, Error> {
        let input = self.input.map_err(Error::Input)?;
        let store: Arc<dyn Store> = match self.place {
            Place::Memory => Arc::new(MemoryStore::new()),
            Place::Given(store) => store,
            #[cfg(feature = "sqlite")]
            Place::File(path) => Arc::new(loopd_store_sqlite::SqliteStore::open_driver(&path)?),
            #[cfg(not(feature = "sqlite"))]
            Place::File(_) => return Err(Error::Stopped),
        };
        let program = Arc::new(self.program);
        let programs = Arc::new(FixedPrograms::new([program.clone()].into_iter().chain(self.children)));
        let runtime = Runtime::builder(store, programs).config(self.config).start().await?;
        let admission = Admission { tenant: "default".into(), input, limits: self.limits, key: self.key };
        let end = to_the_end(&runtime, &program, admission).await;
        runtime.shutdown().await;
        match end? {
            (_, RunEnd::Ended(outcome)) => {
                let typed = outcome.try_map(|output| serde_json::from_str(&output)).map_err(Error::Output)?;
                Ok(End::Ended(typed))
            }
            (run, RunEnd::Suspended(waits)) => Ok(End::Suspended { run, waits }),
            (_, RunEnd::Released) => Err(Error::Stopped),
            (_, RunEnd::Lost(error)) => Err(Error::Drive(error)),
        }
    }
}

/// Drives the run until it has an outcome or waits for somebody; mere timers are waited for here.
async fn to_the_end(runtime: &Runtime, program: &Arc<Program>, admission: Admission) -> Result<(RunId, RunEnd), Error> {
    let mut driven = match runtime.start(program, admission).await? {
        Started::New(driven) => driven,
        Started::Already(run) => match runtime.ended(run).await? {
            Some(outcome) => return Ok((run, RunEnd::Ended(outcome))),
            None => runtime.resume(run).await?,
        },
    };
    loop {
        let run = driven.run;
        let end = driven.wait().await;
        match &end {
            RunEnd::Suspended(waits) if waits.questions.is_empty() && waits.signals.is_empty() => {
                let Some(at) = waits.wake_at else { return Ok((run, end)) };
                let mut hints = runtime.store().hints();
                let due = tokio::time::Instant::now() + Duration::from_millis(at.since(runtime.now()));
                // A Run that only waits for a time still hears a signal or a cancel.
                while tokio::time::Instant::now() < due && runtime.store().inbox(run, 1).await?.is_empty() {
                    let look = (tokio::time::Instant::now() + LOOK).min(due);
                    let _ = tokio::time::timeout_at(look, hints.recv()).await;
                }
                driven = runtime.resume(run).await?;
            }
            RunEnd::Suspended(_) | RunEnd::Ended(_) | RunEnd::Released | RunEnd::Lost(_) => return Ok((run, end)),
        }
    }
}

impl<L: Loop> IntoFuture for Builder<L> {
    type Output = Result<End<L::Output>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.drive())
    }
}
