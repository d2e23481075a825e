//! `spec.tools`: where the Agent's tools come from.

use super::scalar::Duration;
use super::written::Written;
use loopd_kernel::EffectClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where tools of an Agent come from. One source may give several tools.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Written", into = "Written")]
pub enum ToolSource {
    /// Files inside one folder.
    Files {
        /// The folder, as written: relative to the manifest.
        root: String,
        /// What the model may do there.
        allow: Vec<FileTool>,
    },
    /// Getting pages from the web.
    Http {
        /// The only hosts that may be asked; empty: any.
        hosts: Vec<String>,
        /// Networks that may be reached though they are not public.
        addresses: Vec<String>,
        /// Bytes of a body that are read.
        max_bytes: Option<u64>,
        /// How long a call may take.
        timeout: Option<Duration>,
    },
    /// Running programs.
    Shell {
        /// The programs that may be run: names, or absolute paths.
        programs: Vec<String>,
        /// The folder that they run in, as written: relative to the manifest.
        root: String,
        /// How long a program may run.
        timeout: Option<Duration>,
        /// Bytes that are kept of each output.
        max_output: Option<u64>,
        /// Environment variables of the worker that they get, besides those that every program needs.
        env: Vec<String>,
    },
    /// Asking a person.
    Ask,
    /// A tool that the embedding program brings.
    Native {
        /// Its name.
        name: String,
        /// A stricter effect class than the program declares.
        class: Option<ToolClass>,
    },
}

/// One of the built-in file tools.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileTool {
    /// List a folder.
    List,
    /// Read a file.
    Read,
    /// Find text in files.
    Search,
    /// Write a whole file.
    Write,
    /// Replace a text in a file.
    Edit,
}

impl FileTool {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::List, Self::Read, Self::Search, Self::Write, Self::Edit];

    /// Those that change nothing: what a manifest allows that does not say.
    pub const READING: [Self; 3] = [Self::List, Self::Read, Self::Search];

    /// The tool's name, as a model sees it.
    #[must_use]
    pub const fn tool_name(self) -> &'static str {
        match self {
            Self::List => "list_files",
            Self::Read => "read_file",
            Self::Search => "search_files",
            Self::Write => "write_file",
            Self::Edit => "edit_file",
        }
    }
}

/// An effect class that a manifest may give to a native tool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolClass {
    /// No effect and no outside input: recovery runs it again.
    Pure,
    /// Reads the world and changes nothing: recovery runs it again.
    Read,
    /// May change the world: recovery asks a person.
    Once,
}

/// A manifest may only make an effect class stricter: who wrote the tool knows what it may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("class `{}` is less strict than `{}`, which the tool itself declares", wanted.name(), declared.name())]
pub struct NotLoosened {
    /// What the tool declares.
    pub declared: EffectClass,
    /// What the manifest wants.
    pub wanted: EffectClass,
}

impl ToolClass {
    const fn to_kernel(self) -> EffectClass {
        match self {
            Self::Pure => EffectClass::Pure,
            Self::Read => EffectClass::Read,
            Self::Once => EffectClass::Once,
        }
    }

    /// The class that holds when a manifest wants this one and the tool declares `declared`.
    ///
    /// # Errors
    /// [`NotLoosened`] when the manifest's class is less strict.
    pub fn over(self, declared: EffectClass) -> Result<EffectClass, NotLoosened> {
        let wanted = self.to_kernel();
        if strictness(wanted) < strictness(declared) { Err(NotLoosened { declared, wanted }) } else { Ok(wanted) }
    }
}

/// The order of effect classes: what recovery may do with less of the world's state is stricter.
const fn strictness(class: EffectClass) -> u8 {
    match class {
        EffectClass::Pure => 0,
        EffectClass::Read => 1,
        EffectClass::Billable => 2,
        EffectClass::Keyed | EffectClass::Probed => 3,
        EffectClass::Once => 4,
        // Part of a commit: no tool has it, and nothing replaces it.
        EffectClass::Transactional => 5,
    }
}

impl ToolSource {
    /// The folder that it works in, where it has one.
    pub(super) const fn root_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Files { root, .. } | Self::Shell { root, .. } => Some(root),
            Self::Http { .. } | Self::Ask | Self::Native { .. } => None,
        }
    }

    /// The names of the tools that this source gives, as a model sees them.
    #[must_use]
    pub fn tool_names(&self) -> Vec<&str> {
        match self {
            Self::Files { allow, .. } => allow.iter().map(|tool| tool.tool_name()).collect(),
            Self::Http { .. } => vec!["http_get"],
            Self::Shell { .. } => vec!["shell"],
            Self::Ask => vec![crate::ask::NAME],
            Self::Native { name, .. } => vec![name],
        }
    }
}
