//! A tool source as it is written: all fields side by side, so that a wrong one keeps its place in the file.

use super::scalar::Duration;
use super::tool::{FileTool, ToolClass, ToolSource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const NEEDS: &str = "a tool needs `use` (files, http, shell or ask) or `native` (the name of a tool of the program)";

/// A tool source as it is written.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename = "ToolSource",
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "a mapping with use (files, http, shell or ask) or native (the name of a tool of the program)"
)]
#[schemars(extend("oneOf" = [
    {
        "properties": {
            "use": { "const": "files" }, "native": false, "class": false, "hosts": false, "addresses": false,
            "maxBytes": false, "timeout": false, "programs": false, "maxOutput": false, "env": false
        },
        "required": ["use", "root"]
    },
    {
        "properties": {
            "use": { "const": "http" }, "native": false, "class": false, "root": false, "allow": false,
            "programs": false, "maxOutput": false, "env": false
        },
        "required": ["use"]
    },
    {
        "properties": {
            "use": { "const": "shell" }, "native": false, "class": false, "allow": false, "hosts": false,
            "addresses": false, "maxBytes": false
        },
        "required": ["use", "root", "programs"]
    },
    {
        "properties": {
            "use": { "const": "ask" }, "native": false, "class": false, "root": false, "allow": false, "hosts": false,
            "addresses": false, "maxBytes": false, "timeout": false, "programs": false, "maxOutput": false, "env": false
        },
        "required": ["use"]
    },
    {
        "properties": {
            "use": false, "root": false, "allow": false, "hosts": false, "addresses": false, "maxBytes": false,
            "timeout": false, "programs": false, "maxOutput": false, "env": false
        },
        "required": ["native"]
    },
]))]
pub(super) struct Written {
    /// A built-in set: `files` works on files inside `root`, `http` gets pages from the web, `shell` runs the listed
    /// programs, `ask` lets the model ask a person.
    #[serde(rename = "use", default, skip_serializing_if = "Option::is_none")]
    set: Option<BuiltIn>,
    /// The name of a tool that the embedding program brings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    native: Option<String>,
    /// The folder of `files` or `shell`, relative to the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    /// What `files` may do; without it list, read and search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    allow: Option<Vec<FileTool>>,
    /// The only hosts that `http` may ask: names, addresses, or `*.example.com`; without it any public host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    hosts: Option<Vec<String>>,
    /// Addresses that `http` may reach though they are not public: `127.0.0.1`, `10.1.0.0/16`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    addresses: Option<Vec<String>>,
    /// Bytes of a body that `http` reads; without it 2 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    max_bytes: Option<u64>,
    /// The programs that `shell` may run: names, or absolute paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    programs: Option<Vec<String>>,
    /// How long a call of `http` may take, without it 30 s, or a program of `shell`, without it 60 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<Duration>,
    /// Bytes that `shell` keeps of each output; without it 32 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    max_output: Option<u64>,
    /// Environment variables that programs of `shell` get, besides PATH, LANG, LC_ALL, TZ and TMPDIR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    env: Option<Vec<String>>,
    /// The effect class of a native tool, where it has to be stricter than the program declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<ToolClass>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum BuiltIn {
    Files,
    Http,
    Shell,
    Ask,
}

impl Written {
    /// An error when a field is written that is not among `own`.
    fn only(&self, owner: &str, own: &[&str]) -> Result<(), String> {
        let fields = [
            ("root", self.root.is_some()),
            ("allow", self.allow.is_some()),
            ("hosts", self.hosts.is_some()),
            ("addresses", self.addresses.is_some()),
            ("maxBytes", self.max_bytes.is_some()),
            ("programs", self.programs.is_some()),
            ("timeout", self.timeout.is_some()),
            ("maxOutput", self.max_output.is_some()),
            ("env", self.env.is_some()),
            ("class", self.class.is_some()),
        ];
        match fields.iter().find(|(field, given)| *given && !own.contains(field)) {
            Some((field, _)) => Err(format!("`{field}` does not belong to {owner}")),
            None => Ok(()),
        }
    }

    fn files(self) -> Result<ToolSource, String> {
        self.only("`use: files`", &["root", "allow"])?;
        let root = self.root.ok_or("`use: files` needs `root`, the folder that may be seen")?;
        let mut allow = self.allow.unwrap_or_else(|| FileTool::READING.to_vec());
        if allow.is_empty() {
            let known = "list, read, search, write or edit";
            return Err(format!("`allow` is empty: name {known}, or leave it out for the first three"));
        }
        allow.sort_unstable();
        allow.dedup();
        Ok(ToolSource::Files { root, allow })
    }

    fn http(self) -> Result<ToolSource, String> {
        self.only("`use: http`", &["hosts", "addresses", "maxBytes", "timeout"])?;
        if self.hosts.as_ref().is_some_and(Vec::is_empty) {
            return Err("`hosts` is empty: name the hosts, or leave it out for every public one".into());
        }
        let (hosts, addresses) = (self.hosts.unwrap_or_default(), self.addresses.unwrap_or_default());
        Ok(ToolSource::Http { hosts, addresses, max_bytes: self.max_bytes, timeout: self.timeout })
    }

    fn shell(self) -> Result<ToolSource, String> {
        self.only("`use: shell`", &["programs", "root", "timeout", "maxOutput", "env"])?;
        let root = self.root.ok_or("`use: shell` needs `root`, the folder that programs run in")?;
        let programs = self.programs.filter(|programs| !programs.is_empty());
        let programs = programs.ok_or("`use: shell` needs `programs`, the list of those that may be run")?;
        let (timeout, max_output) = (self.timeout, self.max_output);
        Ok(ToolSource::Shell { programs, root, timeout, max_output, env: self.env.unwrap_or_default() })
    }
}

impl TryFrom<Written> for ToolSource {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match (written.set, &written.native) {
            (Some(_), Some(_)) => Err("`use` and `native` exclude each other: write them as two tools".into()),
            (None, None) => Err(NEEDS.into()),
            (Some(BuiltIn::Files), None) => written.files(),
            (Some(BuiltIn::Http), None) => written.http(),
            (Some(BuiltIn::Shell), None) => written.shell(),
            (Some(BuiltIn::Ask), None) => written.only("`use: ask`", &[]).map(|()| Self::Ask),
            (None, Some(name)) => {
                written.only("a native tool", &["class"])?;
                Ok(Self::Native { name: name.clone(), class: written.class })
            }
        }
    }
}

impl From<ToolSource> for Written {
    fn from(source: ToolSource) -> Self {
        let some = |list: Vec<String>| Some(list).filter(|list| !list.is_empty());
        match source {
            ToolSource::Files { root, allow } => {
                Self { set: Some(BuiltIn::Files), root: Some(root), allow: Some(allow), ..Self::default() }
            }
            ToolSource::Http { hosts, addresses, max_bytes, timeout } => Self {
                set: Some(BuiltIn::Http),
                hosts: some(hosts),
                addresses: some(addresses),
                max_bytes,
                timeout,
                ..Self::default()
            },
            ToolSource::Shell { programs, root, timeout, max_output, env } => Self {
                set: Some(BuiltIn::Shell),
                programs: Some(programs),
                root: Some(root),
                timeout,
                max_output,
                env: some(env),
                ..Self::default()
            },
            ToolSource::Ask => Self { set: Some(BuiltIn::Ask), ..Self::default() },
            ToolSource::Native { name, class } => Self { native: Some(name), class, ..Self::default() },
        }
    }
}
