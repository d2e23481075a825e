//! `spec.agents`: other Agents that the model may give work to.

use super::AgentLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An Agent that this one may give a task to. It works in a Run of its own, within a slice of this one's limits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "a mapping with name, manifest and, if wanted, description and limits"
)]
pub struct Helper {
    /// The name of the tool by which the model gives it a task.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,64}$"))]
    pub name: String,
    /// Its manifest, relative to this one.
    pub manifest: String,
    /// What it is for; without it, what its own manifest says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its limits for one task; without them, those of its own manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<AgentLimits>,
}
