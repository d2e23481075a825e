//! Agents whose manifests a server keeps: who may change them, and that the audit log knows.

use crate::rows::{EVERYTHING, Tries, body, expect, named, put, record};
use crate::{Caller, Error, Paging, Platform};
use async_trait::async_trait;
use loopd_kernel::Digest;
use loopd_protocol::{ActorKey, ActorKind, Agent, AgentApplied, AgentChange, AgentSource, Role};
use loopd_store::{Batch, Place, Table, Write};
use serde::{Deserialize, Serialize};

/// Bytes of a manifest.
pub const MANIFEST: usize = 1 << 20;

/// A manifest that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The agent's name.
    pub name: String,
    /// The manifest, as it was given.
    pub manifest: String,
}

/// The agents of a process: what reads manifests, and makes targets of them.
#[async_trait]
pub trait Roster: Send + Sync + std::fmt::Debug {
    /// Every agent: also those that take no calls now, and manifests that do not read.
    fn list(&self) -> Vec<Agent>;

    /// Whether this manifest may be kept under this name. Nothing is changed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a manifest that does not read, with its line, or is that of another agent;
    /// [`Error::Conflict`] `agent_in_file` when a file has the name.
    async fn check(&self, name: &str, manifest: &str) -> Result<(), Error>;

    /// Makes targets of what is kept now, and of what else there is. Doing it again changes nothing.
    ///
    /// # Errors
    /// [`Error::Store`].
    async fn follow(&self) -> Result<(), Error>;
}

impl Platform {
    /// Every manifest that is kept, in the order in which their names were first kept.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn kept_agents(&self) -> Result<Vec<Kept>, Error> {
        let (mut kept, mut cursor) = (Vec::new(), None);
        loop {
            let (rows, next) = self.page((Table::Agent, EVERYTHING), false, &Paging { cursor, limit: 0 }).await?;
            for row in &rows {
                kept.push(body(row)?);
            }
            cursor = next;
            if cursor.is_none() {
                return Ok(kept);
            }
        }
    }

    /// Every agent, by name: none without a roster.
    #[must_use]
    pub fn agents(&self, roster: Option<&dyn Roster>) -> Vec<Agent> {
        let mut agents = roster.map(Roster::list).unwrap_or_default();
        agents.sort_by(|one, other| one.name.cmp(&other.name));
        agents
    }

    /// One agent.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn agent(&self, roster: Option<&dyn Roster>, name: &str) -> Result<Agent, Error> {
        let found = self.agents(roster).into_iter().find(|agent| agent.name == name);
        found.ok_or_else(|| Error::not_found("agent", name))
    }

    /// Keeps a manifest: from now on calls to its name are executed by it. The same again changes nothing. A manifest may
    /// name programs and folders of the server's machine, so this is for admins, and the audit log tells of it in the
    /// same commit.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for anybody but admins; [`Error::TooLarge`]; [`Error::Conflict`] `no_agents` without a roster;
    /// as [`Roster::check`], and nothing has changed.
    /// [`Error::Store`] also when it is kept, and could not be made a target yet: the same again does what is missing.
    pub async fn apply_agent(
        &self,
        by: &Caller,
        roster: Option<&dyn Roster>,
        (name, manifest): (&str, &[u8]),
    ) -> Result<AgentApplied, Error> {
        by.must_be(&[Role::Admin])?;
        let there = there(roster)?;
        if manifest.len() > MANIFEST {
            return Err(Error::TooLarge { what: "the manifest", bytes: manifest.len(), limit: MANIFEST });
        }
        ActorKey::new(ActorKind::Harness, name).map_err(|error| Error::invalid("name", error.to_string()))?;
        let text = std::str::from_utf8(manifest).map_err(|error| Error::invalid("manifest", error.to_string()))?;
        there.check(name, text).await?;
        let change = self.keep_agent(by, Kept { name: name.to_owned(), manifest: text.to_owned() }).await?;
        there.follow().await?;
        Ok(AgentApplied { change, agent: self.agent(roster, name)? })
    }

    async fn keep_agent(&self, by: &Caller, kept: Kept) -> Result<AgentChange, Error> {
        let (id, mut tries, mut change) = (named(&kept.name), Tries::default(), AgentChange::Unchanged);
        let digest = Digest::sha256(&[kept.manifest.as_bytes()]).to_string();
        let noted = self.noting(by, "agent.apply", &kept.name, &digest);
        loop {
            let found = self.get(Table::Agent, id).await?;
            let before: Option<Kept> = found.as_ref().map(body).transpose()?;
            if before.as_ref() == Some(&kept) {
                return Ok(change);
            }
            change = if before.is_some() { AgentChange::Changed } else { AgentChange::Created };
            let writes = vec![put(record(Table::Agent, id, EVERYTHING, &kept), Place::Keep), noted.clone()];
            let expect = vec![expect(Table::Agent, id, found.map(|found| found.rev))];
            self.attempt(&mut tries, Batch { expect, writes }).await?;
        }
    }

    /// Keeps a manifest no longer: calls to its name are refused from now on, those that wait for a slot end, and those
    /// that execute go on. An agent of that name that the server brings along is back then.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for anybody but admins; [`Error::NotFound`]; [`Error::Conflict`] `agent_in_file` or
    /// `agent_built_in` for one that is not kept, but there all the same; `no_agents` without a roster.
    pub async fn remove_agent(&self, by: &Caller, roster: Option<&dyn Roster>, name: &str) -> Result<(), Error> {
        by.must_be(&[Role::Admin])?;
        let there = there(roster)?;
        let (id, mut tries) = (named(name), Tries::default());
        let noted = self.noting(by, "agent.delete", name, "");
        while let Some(found) = self.get(Table::Agent, id).await? {
            let expect = vec![expect(Table::Agent, id, Some(found.rev))];
            let writes = vec![Write::DeleteRecord(Table::Agent, id), noted.clone()];
            self.attempt(&mut tries, Batch { expect, writes }).await?;
        }
        if !tries.any() {
            let agent = self.agent(roster, name)?;
            match agent.source {
                AgentSource::File => return Err(in_file(&agent)),
                AgentSource::BuiltIn => {
                    let detail = format!("the server brings {name} along; keep another of that name in its place");
                    return Err(Error::conflict("agent_built_in", detail));
                }
                // Another process has removed it, and it is still a target of this one.
                AgentSource::Kept => {}
            }
        }
        there.follow().await
    }
}

fn there(roster: Option<&dyn Roster>) -> Result<&dyn Roster, Error> {
    roster.ok_or_else(|| Error::conflict("no_agents", "the program of this server says what its targets are"))
}

/// What is said to whoever wants to change an agent that a file holds.
#[must_use]
pub fn in_file(agent: &Agent) -> Error {
    let (name, file) = (&agent.name, agent.file.as_deref().unwrap_or_default());
    Error::conflict("agent_in_file", format!("{name} is in a file of the server, which goes before: change {file}"))
}
