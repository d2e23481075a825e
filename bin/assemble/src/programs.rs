//! The agents of a worker: those that it knows, and those whose definitions its Runs bring along.

use crate::agents::{self, Ready};
use crate::obstacle::{Kind, Obstacle};
use crate::words;
use loopd_fixture::excerpt;
use loopd_kernel::Digest;
use loopd_providers::Catalogue;
use loopd_runtime::{CannotRun, Program, Programs};
use loopd_store::{RunRow, Store, StoreError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why the agent of a Run was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It cannot be run here.
    #[error(transparent)]
    Obstacle(#[from] Obstacle),
}

/// Finds the agents of Runs by their definitions: the bytes that decide in a Run, version included, go with it in its
/// store. So a Run goes on with the agent that it was started with, whatever its manifest says by now, and a child with
/// the one that its parent named, which need not be known here before.
#[derive(Debug, Default)]
pub struct Agents {
    /// Where manifests are, whatever their Runs say.
    folder: Option<PathBuf>,
    catalogue: Catalogue,
    known: Mutex<BTreeMap<Digest, Ready>>,
}

impl Agents {
    /// Knows no agent yet: every Run brings its own.
    #[must_use]
    pub fn new(catalogue: Catalogue) -> Self {
        Self { folder: None, catalogue, known: Mutex::default() }
    }

    /// Knows these agents already.
    #[must_use]
    pub fn knowing<'a>(agents: impl IntoIterator<Item = &'a Ready>, catalogue: Catalogue) -> Self {
        let known = Self::new(catalogue);
        agents.into_iter().for_each(|agent| known.know(agent));
        known
    }

    /// Takes relative paths from the folder of this manifest, when there is one.
    ///
    /// # Errors
    /// [`Obstacle`] when it is not there.
    pub fn from_folder_of(file: Option<&Path>, catalogue: Catalogue) -> Result<Self, Obstacle> {
        let Some(file) = file else { return Ok(Self::new(catalogue)) };
        if !file.is_file() {
            return Err(Obstacle::new(Kind::File, format!("{}: there is no such file", file.display())));
        }
        let folder = agents::folder(&std::path::absolute(file)?);
        Ok(Self { folder: Some(folder), ..Self::new(catalogue) })
    }

    /// Knows this agent as well, in the place of one with the same definition: from now on its models and tools serve
    /// the Runs of that definition that are taken over. Those of other versions stay known.
    pub fn know(&self, agent: &Ready) {
        self.known().insert(agent.program.digest(), agent.clone());
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Digest, Ready>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The agent of a Run.
    ///
    /// # Errors
    /// [`ResolveError`] with what is missing here.
    pub async fn resolve(&self, store: &dyn Store, row: &RunRow) -> Result<Ready, ResolveError> {
        let definition = store.blob(row.definition).await?.unwrap_or_default();
        Ok(self.make(row, &definition)?)
    }

    fn make(&self, row: &RunRow, definition: &[u8]) -> Result<Ready, Obstacle> {
        if let Some(known) = self.known().get(&row.definition) {
            return Ok(known.clone());
        }
        if definition.is_empty() {
            let name = excerpt::line(&row.loop_name, 60);
            return Err(Obstacle::new(Kind::CannotRun, format!("`{name}` is a loop in Rust"))
                .why("its code is in the program that started it, not in the store")
                .fix(format!("start that program again; it goes on with {}", words::short(row.run))));
        }
        let origin = row.origin.as_deref().map(Path::new);
        let from = origin.map(agents::folder);
        let folder = self.folder.as_deref().or(from.as_deref());
        let ready = agents::from_definition(definition, folder, origin, &self.catalogue)?;
        self.known().insert(row.definition, ready.clone());
        Ok(ready)
    }
}

impl Programs for Agents {
    fn find(&self, row: &RunRow, definition: &[u8]) -> Result<Arc<Program>, CannotRun> {
        self.make(row, definition).map(|ready| ready.program).map_err(|obstacle| CannotRun(obstacle.what))
    }
}
