//! What an Agent remembers between transitions. What was said is in the Transcript, not here.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The State of an Agent's Run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    /// What the Run is doing.
    pub(crate) phase: Phase,
    /// Empty replies in a row.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) empty: u32,
    /// Final answers that did not fit the output schema.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) repairs: u32,
    /// A message arrived that the model call in flight has not seen.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub(crate) unread: bool,
    /// Which model is used: 0 is the first, 1 its first fallback.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) model: u32,
    /// How long the conversation was when a provider last said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seen: Option<Seen>,
    /// The iteration whose request was last preceded by a summary, and how many before it were without a pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) compacted: Option<Compacted>,
    /// Agents that work on a task.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) helpers: BTreeSet<String>,
}

/// A conversation as a provider counted it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seen {
    /// Tokens of the request and its reply.
    pub(crate) tokens: u64,
    /// The Transcript's bytes behind that reply.
    pub(crate) bytes: u64,
}

/// Summaries that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compacted {
    /// The iteration.
    pub(crate) iteration: u64,
    /// How many in a row.
    pub(crate) row: u32,
}

/// What the Run is doing. A failed Call is the model's in one phase and a tool's in the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// Nothing is in flight.
    #[default]
    Idle,
    /// The model is called.
    Model,
    /// Tools or people are asked.
    Tools,
    /// The model writes a summary.
    Summary,
    /// The same, of a conversation that was too long to be summarised whole.
    TightSummary,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}
