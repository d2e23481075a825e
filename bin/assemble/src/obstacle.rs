//! What stands in the way of a Run here, as a person needs it: what, why, how to fix.

use std::fmt;

/// Which kind of obstacle it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The manifest, or a text or another manifest that it names, is wrong.
    Manifest,
    /// The model cannot be set up.
    Model,
    /// The key of the model is missing.
    Key,
    /// The file with facts about models does not read.
    ModelList,
    /// Nobody knows the price under a money limit.
    Price,
    /// A tool cannot be set up.
    Tool,
    /// The tool is a function of another program.
    Native {
        /// Its name, made harmless.
        tool: String,
    },
    /// A path of a definition that was stored with its Run is not found: its manifest was elsewhere, or on another
    /// machine.
    Place,
    /// This program cannot run the Loop.
    CannotRun,
    /// A file is not there.
    File,
    /// Reading failed.
    Io,
}

impl Kind {
    /// Whether the manifest is right, and only this machine lacks something.
    #[must_use]
    pub const fn is_of_this_machine(&self) -> bool {
        match self {
            Self::Key | Self::Model | Self::Price | Self::Tool | Self::Native { .. } | Self::Place => true,
            Self::Manifest | Self::ModelList | Self::CannotRun | Self::File | Self::Io => false,
        }
    }
}

/// Why an agent cannot be run here. Its texts hold nothing of a key, and what they quote from outside is made harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// Which kind.
    pub kind: Kind,
    /// What happened.
    pub what: String,
    /// Why, where that is not plain.
    pub why: Option<String>,
    /// What to do, where that is known and the same in every program.
    pub fix: Option<String>,
}

impl Obstacle {
    pub(crate) fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), why: None, fix: None }
    }

    pub(crate) fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Obstacle {}

impl From<std::io::Error> for Obstacle {
    fn from(error: std::io::Error) -> Self {
        Self::new(Kind::Io, error.to_string())
    }
}
