//! Agents of a server, and where they come from.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An agent of a server. Its target has the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// Its name. That of a file whose manifest never read is the file's, which is no name of an agent.
    pub name: String,
    /// Where its manifest is.
    pub source: AgentSource,
    /// The file of its manifest, as the server finds it; absent when it is in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What it is for.
    pub description: String,
    /// The version that its manifest declares; absent when that does not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its model; absent when it takes no calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What is wrong with its manifest as it is now. The version before it stays in force, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why it takes no calls now; absent when it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// Where the manifest of an agent is. Of several with one name the first of this list is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentSource {
    /// In the server's folder of agents.
    File,
    /// Kept by the server.
    Kept,
    /// The server brings it along.
    BuiltIn,
}

impl AgentSource {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Kept => "kept",
            Self::BuiltIn => "built in",
        }
    }
}

/// What applying a manifest did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentChange {
    /// None of that name was kept.
    Created,
    /// The manifest was replaced.
    Changed,
    /// The same manifest was there.
    Unchanged,
}

impl AgentChange {
    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
        }
    }
}

/// A manifest that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentApplied {
    /// What that did.
    pub change: AgentChange,
    /// The agent as it is now.
    pub agent: Agent,
}
