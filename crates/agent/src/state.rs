//! What an Agent remembers between transitions. What was said is in the Transcript, not here.

use serde::{Deserialize, Serialize};

/// The State of an Agent's Run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
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
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}
