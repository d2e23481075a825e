//! Agents whose manifests a server keeps.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An agent of a server: one of its folder of manifests, or one that it brings along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// Its name, which is that of its target. Of a file that never read, that of the file.
    pub name: String,
    /// The name of its manifest in the folder; absent for one that the server brings along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What it is for.
    pub description: String,
    /// The version of its manifest; empty when that does not read.
    pub version: String,
    /// Its model; absent when its manifest does not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tools that it names.
    pub tools: Vec<AgentTool>,
    /// Where a Run of it stops and asks for more.
    pub limits: AgentLimits,
    /// How many of its calls execute at once.
    pub slots: u32,
    /// How many do.
    pub running: u32,
    /// How many wait for a slot.
    pub queued: u32,
    /// Why it takes no calls now; absent when it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// A tool of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentTool {
    /// Its name, as the model sees it.
    pub name: String,
    /// What doing it twice would do: `pure`, `read`, `once`, …, or in words where it is no class.
    pub class: String,
}

/// Limits of a Run; one that is absent does not exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentLimits {
    /// Model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Tokens of all classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
    /// Milliseconds since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    /// Failed attempts that are repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u64>,
}

/// What applying a manifest did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentChange {
    /// There was none of that name in the folder.
    Created,
    /// Its manifest was replaced.
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
