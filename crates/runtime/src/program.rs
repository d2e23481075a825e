//! A Program: a Loop together with the models and tools that its Calls name.

use crate::ports::{Model, Tool};
use loopd_kernel::machine::{Catalog, ModelTerms, ToolTerms};
use loopd_kernel::transcript::READ_RESULT;
use loopd_kernel::upgrade::major;
use loopd_kernel::{Digest, ErasedLoop, Upgrade};
use loopd_store::{RunRow, Runnable};
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

    /// The Runs that it can drive, as far as their rows tell.
    #[must_use]
    pub fn runnable(&self) -> Runnable {
        let (name, version) = (self.definition.name(), self.definition.version());
        match self.definition.upgrade() {
            Upgrade::Unasked => Runnable::any(name),
            Upgrade::Adopt => Runnable { major: Some(major(version).into()), ..Runnable::any(name) },
            Upgrade::Pin => {
                Runnable { version: Some(version.into()), definition: Some(self.digest()), ..Runnable::any(name) }
            }
        }
    }

    pub(crate) fn find_model(&self, name: &str) -> Option<&Arc<dyn Model>> {
        self.models.get(name)
    }

    pub(crate) fn find_tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        let brought = self.tools.get(name);
        brought.or_else(|| (name == READ_RESULT).then(crate::results::read_result))
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

    fn landing_bound_ms(&self, tool: &str) -> Option<u64> {
        let bound = self.find_tool(tool)?.landing_bound()?;
        Some(u64::try_from(bound.as_millis()).unwrap_or(u64::MAX))
    }

    fn model(&self, name: &str) -> Option<ModelTerms> {
        self.find_model(name).map(|model| model.terms())
    }

    fn price_source(&self, model: &str) -> Option<String> {
        self.find_model(model)?.price_source()
    }

    fn context_window(&self, model: &str) -> Option<u64> {
        self.find_model(model)?.context_window()
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

    /// Which Runs it finds a Program for, so that no others are claimed; empty when it cannot tell beforehand.
    fn runnable(&self) -> Vec<Runnable> {
        Vec::new()
    }

    /// The [`Program::max_active`] of the Loop of this name, so that no more of its Runs are claimed than fit.
    /// `None` when there is none, or it is known only once a Run is found: then claimed Runs wait for their turn.
    fn max_active(&self, loop_name: &str) -> Option<usize> {
        let _ = loop_name;
        None
    }
}

/// Programs that are known when the process starts. Several versions of one Loop may be among them.
#[derive(Debug, Default)]
pub struct FixedPrograms(BTreeMap<String, Vec<Arc<Program>>>);

impl FixedPrograms {
    /// These Programs. Of two that fit a Run alike the earlier one drives it.
    #[must_use]
    pub fn new(programs: impl IntoIterator<Item = Arc<Program>>) -> Self {
        let mut by_name: BTreeMap<String, Vec<Arc<Program>>> = BTreeMap::new();
        for program in programs {
            by_name.entry(program.definition.name().to_owned()).or_default().push(program);
        }
        Self(by_name)
    }
}

impl Programs for FixedPrograms {
    /// The Program that decided so far, then one of the same major version, then any of this name, which says why
    /// not.
    fn find(&self, row: &RunRow, _definition: &[u8]) -> Result<Arc<Program>, CannotRun> {
        let none = || CannotRun(format!("no loop named `{}` here", row.loop_name));
        let programs = self.0.get(&row.loop_name).ok_or_else(none)?;
        let same =
            |program: &&Arc<Program>| program.definition.version() == row.version && program.digest() == row.definition;
        let adopts = |program: &&Arc<Program>| {
            program.definition.upgrade() == Upgrade::Adopt && major(program.definition.version()) == major(&row.version)
        };
        let unborn = row.version.is_empty() && row.definition != Digest::sha256(&[]);
        if unborn {
            // A child runs the definition that its parent named, and no other.
            let named = programs.iter().find(|program| program.digest() == row.definition);
            let missing = || CannotRun(format!("no `{}` with the definition that was asked for here", row.loop_name));
            return named.cloned().ok_or_else(missing);
        }
        let best = programs.iter().find(same).or_else(|| programs.iter().find(adopts)).or_else(|| programs.first());
        best.cloned().ok_or_else(none)
    }

    fn runnable(&self) -> Vec<Runnable> {
        self.0.values().flatten().map(|program| program.runnable()).collect()
    }

    fn max_active(&self, loop_name: &str) -> Option<usize> {
        self.0.get(loop_name)?.iter().filter_map(|program| program.max_active).min()
    }
}
