//! Why something failed, as facts that survive in a Journal.

use alloc::string::String;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A failure of a Loop or of one of its Calls: a stable code and a text for people.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// A stable, machine-readable code, for example `tool.invalid_args`.
    pub code: String,
    /// What happened, for people. Untrusted wherever it came from outside.
    pub message: String,
}

impl Failure {
    /// A failure with `code` and `message`.
    #[must_use]
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }

    /// The failure of a Loop that meets an Event it has no answer to.
    #[must_use]
    pub fn unexpected(event: &crate::event::Event) -> Self {
        use crate::event::Event;
        match event {
            // What went wrong with a Call says more than that the Loop did not expect it.
            Event::CallFailed { failure, .. }
            | Event::CallDenied { failure, .. }
            | Event::ChildEnded { outcome: crate::Outcome::Failed { failure }, .. } => failure.clone(),
            Event::IterationStarted { .. }
            | Event::ModelReplied { .. }
            | Event::ToolReturned(_)
            | Event::CallUnknown { .. }
            | Event::Answered { .. }
            | Event::SignalReceived { .. }
            | Event::TimerFired { .. }
            | Event::ChildEnded { .. }
            | Event::ChildParked { .. } => {
                Self::new("loop.unexpected_event", alloc::format!("the loop has no answer to {}", event.name()))
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl core::error::Error for Failure {}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        use alloc::string::ToString as _;
        Self::new("loop.decode", error.to_string())
    }
}

/// Whether a failed effect happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// It certainly did not happen.
    DidNotHappen,
    /// Nobody here can know.
    InDoubt,
    /// It happened, and then something failed.
    Landed,
}
