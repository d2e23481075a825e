//! Agents whose manifests a server keeps: who may change them, and that the audit log knows.

use crate::{Caller, Error, Platform};
use async_trait::async_trait;
use loopd_kernel::Digest;
use loopd_protocol::{ActorKey, ActorKind, Agent, AgentApplied, AgentChange, Role};

/// Bytes of a manifest.
pub const MANIFEST: usize = 1 << 20;

/// Where the manifests of agents are kept, and what makes targets of them.
#[async_trait]
pub trait AgentFolder: Send + Sync + std::fmt::Debug {
    /// Every agent, by name: also those that take no calls now, and those that the server brings along.
    ///
    /// # Errors
    /// [`Error`].
    async fn list(&self) -> Result<Vec<Agent>, Error>;

    /// What [`AgentFolder::put`] would do. Nothing is changed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a manifest that does not read, with file and line, or is that of another agent;
    /// [`Error::Conflict`] when there is no folder, or its place is taken.
    async fn plan(&self, name: &str, manifest: &[u8]) -> Result<AgentChange, Error>;

    /// Keeps the manifest in the place of the one before, and makes it a target. A reader of the folder sees the old one
    /// or the new one, whole.
    ///
    /// # Errors
    /// As [`AgentFolder::plan`]; what a retry does is the same.
    async fn put(&self, name: &str, manifest: &[u8]) -> Result<AgentApplied, Error>;

    /// Takes the manifest out. An agent of that name that the server brings along is back then.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] `built_in` for one that no file holds, `no_folder`.
    async fn remove(&self, name: &str) -> Result<(), Error>;
}

impl Platform {
    /// Every agent, by name.
    ///
    /// # Errors
    /// [`Error::Conflict`] `no_folder`.
    pub async fn agents(&self, folder: Option<&dyn AgentFolder>) -> Result<Vec<Agent>, Error> {
        there(folder)?.list().await
    }

    /// Keeps a manifest: from now on calls to its name are executed by it. The same again changes nothing. A manifest may
    /// name programs and folders of the server's machine, so this is for admins, and the audit log keeps it.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for anybody but admins; [`Error::TooLarge`]; as [`AgentFolder::put`]. What is not applied
    /// has changed nothing.
    pub async fn apply_agent(
        &self,
        by: &Caller,
        folder: Option<&dyn AgentFolder>,
        (name, manifest): (&str, &[u8]),
    ) -> Result<AgentApplied, Error> {
        by.must_be(&[Role::Admin])?;
        let folder = there(folder)?;
        if manifest.len() > MANIFEST {
            return Err(Error::TooLarge { what: "the manifest", bytes: manifest.len(), limit: MANIFEST });
        }
        ActorKey::new(ActorKind::Harness, name).map_err(|error| Error::invalid("name", error.to_string()))?;
        if folder.plan(name, manifest).await? != AgentChange::Unchanged {
            // Before it is done: what nobody could write down is not done.
            self.note(by, "agent.apply", name, &Digest::sha256(&[manifest]).to_string()).await?;
        }
        folder.put(name, manifest).await
    }

    /// Takes a manifest out: calls to its name are refused from now on, those that wait for a slot end, and those that
    /// execute go on.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for anybody but admins; as [`AgentFolder::remove`].
    pub async fn remove_agent(
        &self,
        by: &Caller,
        folder: Option<&dyn AgentFolder>,
        name: &str,
    ) -> Result<(), Error> {
        by.must_be(&[Role::Admin])?;
        let folder = there(folder)?;
        if let Some(agent) = folder.list().await?.iter().find(|agent| agent.name == name && agent.file.is_some()) {
            self.note(by, "agent.delete", &agent.name, "").await?;
        }
        folder.remove(name).await
    }
}

fn there(folder: Option<&dyn AgentFolder>) -> Result<&dyn AgentFolder, Error> {
    folder.ok_or_else(no_folder)
}

/// What is said where a server keeps no manifests.
#[must_use]
pub fn no_folder() -> Error {
    Error::conflict("no_folder", "this server has no folder of agents: start it with `loopd serve --agents DIR`")
}
