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
