//! `spec.context`: what the model is shown, and what happens when there is too much of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the model is shown besides the conversation, and how long it may get.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "a mapping of toolResultBytes, compact, instructions and skills"
)]
pub struct Context {
    /// Bytes of one tool result that the model is shown; of a longer one it sees both ends, and reads the rest with the
    /// tool `read_result`.
    #[serde(default = "default_result_bytes")]
    #[schemars(range(min = 1024))]
    pub tool_result_bytes: u64,
    /// Whether a summary takes the place of the conversation when the model's window fills up.
    #[serde(default = "yes")]
    pub compact: bool,
    /// Files whose text follows the instructions, relative to the manifest: `AGENTS.md`, for example.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<String>,
    /// Folders of skills, relative to the manifest: each holds a `SKILL.md`, or folders that do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
}

/// Bytes of one tool result that a model is shown where the manifest does not say.
pub const DEFAULT_RESULT_BYTES: u64 = 32 * 1024;

/// The smallest bound of a tool result: less would hold little besides the line that says what is left out.
pub(super) const LEAST_RESULT_BYTES: u64 = 1024;

const fn default_result_bytes() -> u64 {
    DEFAULT_RESULT_BYTES
}

const fn yes() -> bool {
    true
}

impl Default for Context {
    fn default() -> Self {
        Self { tool_result_bytes: DEFAULT_RESULT_BYTES, compact: true, instructions: Vec::new(), skills: Vec::new() }
    }
}

impl Context {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
