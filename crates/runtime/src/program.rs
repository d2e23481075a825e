//! A Program: a Loop together with the models and tools that its Calls name.

use crate::ports::{Model, Tool};
use loopd_kernel::machine::{Catalog, ModelTerms, ToolTerms};
use loopd_kernel::{Digest, ErasedLoop};
use loopd_store::RunRow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What a worker needs in order to drive Runs of one Loop.
#[derive(Clone)]
pub struct Program {
    definition: Arc<dyn ErasedLoop>,
    models: BTreeMap<String, Arc<dyn Model>>,
    tools: BTreeMap<String, Arc<dyn Tool>>,
    origin: Option<String>,
    max_active: Option<usize>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("loop", &self.definition.name())
            .field("models", &self.models.keys())
            .field("tools", &self.tools.keys())
            .finish()
    }
}

impl Program {
    /// A Program without models and tools.
    #[must_use]
    pub fn new(definition: Arc<dyn ErasedLoop>) -> Self {
        Self { definition, models: BTreeMap::new(), tools: BTreeMap::new(), origin: None, max_active: None }
    }

    /// Adds a model under a name; a later one of the same name replaces it.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>, model: Arc<dyn Model>) -> Self {
        self.models.insert(name.into(), model);
        self
    }

    /// Adds a tool under its own name; a later one of the same name replaces it.
    #[must_use]
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.insert(tool.offer().name.clone(), tool);
        self
    }

    /// One worker drives at most `runs` Runs of this Loop at once, and at least one. A Run that is started beyond
    /// that is durable and waits for its turn, and hears what it is told only then; due ones stay in the store, where
    /// another worker may claim them.
    #[must_use]
    pub fn max_active(mut self, runs: usize) -> Self {
        self.max_active = Some(runs.max(1));
        self
    }

    pub(crate) const fn most_active(&self) -> Option<usize> {
        self.max_active
    }

    /// Notes where the definition was found: the path of a manifest.
    #[must_use]
    pub fn origin(mut self, path: impl Into<String>) -> Self {
        self.origin = Some(path.into());
        self
    }

    pub(crate) fn found_at(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// The Loop.
    #[must_use]
    pub fn definition(&self) -> &Arc<dyn ErasedLoop> {
        &self.definition
    }

    /// The digest that a Run records of its definition.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::sha256(&[self.definition.definition()])
    }

    pub(crate) fn find_model(&self, name: &str) -> Option<&Arc<dyn Model>> {
        self.models.get(name)
    }

    pub(crate) fn find_tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name)
    }
}

impl Catalog for Program {
    fn tool(&self, name: &str) -> Option<ToolTerms> {
        self.find_tool(name).map(|tool| tool.terms())
    }

    fn dedup_for_ms(&self, tool: &str) -> Option<u64> {
        let known = self.find_tool(tool)?.dedup_for()?;
        Some(u64::try_from(known.as_millis()).unwrap_or(u64::MAX))
    }

    fn model(&self, name: &str) -> Option<ModelTerms> {
        self.find_model(name).map(|model| model.terms())
    }
}

/// Why a worker cannot run a Loop; shown by `loopctl run why`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CannotRun(pub String);

/// Finds the Program for a Run that is to be driven. `definition` is the stored body that the Run's
/// digest names, when it has one.
pub trait Programs: Send + Sync + 'static {
    /// The Program.
    ///
    /// # Errors
    /// [`CannotRun`], with what is missing.
    fn find(&self, row: &RunRow, definition: &[u8]) -> Result<Arc<Program>, CannotRun>;

    /// The names of the Loops that it finds; empty when it cannot tell beforehand.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    /// The [`Program::max_active`] of the Loop of this name, so that no more of its Runs are claimed than fit.
    /// `None` when there is none, or it is known only once a Run is found: then claimed Runs wait for their turn.
    fn max_active(&self, loop_name: &str) -> Option<usize> {
        let _ = loop_name;
        None
    }
}

/// Programs that are known when the process starts, by the Loop's name.
#[derive(Debug, Default)]
pub struct FixedPrograms(BTreeMap<String, Arc<Program>>);

impl FixedPrograms {
    /// These Programs.
    #[must_use]
    pub fn new(programs: impl IntoIterator<Item = Arc<Program>>) -> Self {
        Self(programs.into_iter().map(|program| (program.definition.name().to_owned(), program)).collect())
    }
}

impl Programs for FixedPrograms {
    fn find(&self, row: &RunRow, _definition: &[u8]) -> Result<Arc<Program>, CannotRun> {
        self.0.get(&row.loop_name).cloned().ok_or_else(|| CannotRun(format!("no loop named `{}` here", row.loop_name)))
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    fn max_active(&self, loop_name: &str) -> Option<usize> {
        self.0.get(loop_name)?.max_active
    }
}
