//! `spec.tools`: where the Agent's tools come from.

use loopd_kernel::EffectClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where tools of an Agent come from. One source may give several tools.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Written", into = "Written")]
pub enum ToolSource {
    /// Reading files inside one folder.
    Files {
        /// The folder, as written: relative to the manifest.
        root: String,
        /// What the model may do there.
        allow: Vec<FileTool>,
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
}

impl FileTool {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::List, Self::Read, Self::Search];

    /// The tool's name, as a model sees it.
    #[must_use]
    pub const fn tool_name(self) -> &'static str {
        match self {
            Self::List => "list_files",
            Self::Read => "read_file",
            Self::Search => "search_files",
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
            Self::Files { root, .. } => Some(root),
            Self::Ask | Self::Native { .. } => None,
        }
    }

    /// The names of the tools that this source gives, as a model sees them.
    #[must_use]
    pub fn tool_names(&self) -> Vec<&str> {
        match self {
            Self::Files { allow, .. } => allow.iter().map(|tool| tool.tool_name()).collect(),
            Self::Ask => vec![crate::ask::NAME],
            Self::Native { name, .. } => vec![name],
        }
    }
}

/// A tool source as it is written.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(
    rename = "ToolSource",
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "a mapping with use (files or ask) or native (the name of a tool of the program)"
)]
#[schemars(extend("oneOf" = [
    { "properties": { "use": { "const": "files" }, "native": false, "class": false }, "required": ["use", "root"] },
    { "properties": { "use": { "const": "ask" }, "native": false, "class": false, "root": false, "allow": false },
      "required": ["use"] },
    { "properties": { "use": false, "root": false, "allow": false }, "required": ["native"] },
]))]
struct Written {
    /// A built-in set: `files` reads files inside `root`, `ask` lets the model ask a person.
    #[serde(rename = "use", default, skip_serializing_if = "Option::is_none")]
    set: Option<BuiltIn>,
    /// The name of a tool that the embedding program brings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    native: Option<String>,
    /// The folder of `files`, relative to the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    /// What `files` may do; without it everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allow: Option<Vec<FileTool>>,
    /// The effect class of a native tool, where it has to be stricter than the program declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<ToolClass>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum BuiltIn {
    Files,
    Ask,
}

impl TryFrom<Written> for ToolSource {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let refuse = |owner: &str, fields: &[(&str, bool)]| match fields.iter().find(|(_, given)| *given) {
            Some((field, _)) => Err(format!("`{field}` does not belong to {owner}")),
            None => Ok(()),
        };
        let root = ("root", written.root.is_some());
        let allow = ("allow", written.allow.is_some());
        let class = ("class", written.class.is_some());
        match (written.set, written.native) {
            (Some(_), Some(_)) => Err("`use` and `native` exclude each other: write them as two tools".into()),
            (None, None) => {
                Err("a tool needs `use` (files or ask) or `native` (the name of a tool of the program)".into())
            }
            (Some(BuiltIn::Files), None) => {
                refuse("`use: files`", &[class])?;
                let root = written.root.ok_or("`use: files` needs `root`, the folder that may be read")?;
                let mut allow = written.allow.unwrap_or_else(|| FileTool::ALL.to_vec());
                if allow.is_empty() {
                    return Err("`allow` is empty: name list, read or search, or leave it out for all three".into());
                }
                allow.sort_unstable();
                allow.dedup();
                Ok(Self::Files { root, allow })
            }
            (Some(BuiltIn::Ask), None) => refuse("`use: ask`", &[root, allow, class]).map(|()| Self::Ask),
            (None, Some(name)) => {
                refuse("a native tool", &[root, allow])?;
                Ok(Self::Native { name, class: written.class })
            }
        }
    }
}

impl From<ToolSource> for Written {
    fn from(source: ToolSource) -> Self {
        let empty = Self { set: None, native: None, root: None, allow: None, class: None };
        match source {
            ToolSource::Files { root, allow } => {
                Self { set: Some(BuiltIn::Files), root: Some(root), allow: Some(allow), ..empty }
            }
            ToolSource::Ask => Self { set: Some(BuiltIn::Ask), ..empty },
            ToolSource::Native { name, class } => Self { native: Some(name), class, ..empty },
        }
    }
}
