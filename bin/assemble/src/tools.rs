//! From what a manifest says of tools to tools.

use crate::agents::below;
use crate::obstacle::{Kind, Obstacle};
use loopd_agent::Manifest;
use loopd_agent::manifest::{Duration, ToolClass, ToolSource};
use loopd_fixture::excerpt;
use loopd_runtime::Tool;
use loopd_tools::{FileTool, HttpConfig, ShellConfig, file_tools, http, http_tool, shell, shell_tool};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What every program gets of the environment: where things are and how to write them. None of it is a secret.
const EVERY_PROGRAM: [&str; 5] = ["PATH", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// Where programs are when nobody says.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Who says where the folders of tools are, and so what can be done about one that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// The manifest, which can be corrected.
    ByManifest,
    /// The Run, which was started with a manifest that may be elsewhere now.
    ByRun,
}

/// The tools that a manifest names, over folders relative to `folder`.
///
/// # Errors
/// [`Obstacle`] with what is missing here.
pub fn tools(manifest: &Manifest, folder: Option<&Path>, named: Named) -> Result<Vec<Arc<dyn Tool>>, Obstacle> {
    let mut tools = Vec::new();
    for source in &manifest.spec.tools {
        tools.extend(tools_of(source, folder, named)?);
    }
    Ok(tools)
}

/// The tools of one source.
///
/// # Errors
/// As [`tools`].
pub fn tools_of(source: &ToolSource, folder: Option<&Path>, named: Named) -> Result<Vec<Arc<dyn Tool>>, Obstacle> {
    match source {
        ToolSource::Files { root, allow } => {
            let allow: Vec<FileTool> = allow.iter().filter_map(|tool| FileTool::from_name(tool.tool_name())).collect();
            file_tools(&place(root, folder)?, &allow).map_err(|error| no_tool(&error.to_string(), root, named))
        }
        ToolSource::Http { hosts, addresses, max_bytes, timeout } => {
            let usual = HttpConfig::default();
            Ok(vec![http_tool(HttpConfig {
                hosts: hosts.clone(),
                addresses: networks(addresses)?,
                max_bytes: max_bytes.unwrap_or(usual.max_bytes),
                timeout: timeout.map_or(usual.timeout, duration),
                ..usual
            })])
        }
        ToolSource::Shell { programs, root, timeout, max_output, env } => {
            let usual = ShellConfig::new(programs.clone(), place(root, folder)?);
            let config = ShellConfig {
                timeout: timeout.map_or(usual.timeout, duration),
                max_output: max_output.map_or(usual.max_output, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
                env: environment(env),
                ..usual
            };
            Ok(vec![shell_tool(config).map_err(|error| no_tool(&error.to_string(), root, named))?])
        }
        ToolSource::Ask => Ok(Vec::new()),
        ToolSource::Native { name, .. } => {
            let tool = excerpt::line(name, 64);
            let what = format!("there is no tool `{tool}` here");
            Err(Obstacle::new(Kind::Native { tool }, what)
                .why("a native tool is a function of a program of its own")
                .fix("run this agent with that program (loopkit), or use the tools `files`, `http`, `shell` and `ask`"))
        }
    }
}

/// The tools of a source with their effect classes, and where they come from: for people.
pub fn classes(source: &ToolSource) -> (Vec<(&str, &'static str)>, String) {
    let names = source.tool_names().into_iter();
    let (class, from): (&'static str, String) = match source {
        ToolSource::Files { root, .. } => {
            let class = |name| FileTool::from_name(name).map_or("once", |tool| tool.class().name());
            return (names.map(|name| (name, class(name))).collect(), format!("files below {root}"));
        }
        ToolSource::Http { hosts, addresses, .. } => {
            let hosts = if hosts.is_empty() { "any public host".into() } else { hosts.join(", ") };
            let also = if addresses.is_empty() { String::new() } else { format!(", also {}", addresses.join(", ")) };
            (http::CLASS.name(), format!("{hosts}{also}"))
        }
        ToolSource::Shell { programs, root, .. } => {
            (shell::CLASS.name(), format!("runs {} in {root}", programs.join(", ")))
        }
        ToolSource::Ask => ("asks a person", "built in".into()),
        ToolSource::Native { class, .. } => {
            let class = class.map_or("once", |class| match class {
                ToolClass::Pure => "pure",
                ToolClass::Read => "read",
                ToolClass::Once => "once",
            });
            (class, "a program of its own".into())
        }
    };
    (names.map(|name| (name, class)).collect(), from)
}

/// What is likely not meant: programs of `shell` that are not on this machine.
pub fn remarks(manifest: &Manifest) -> Vec<String> {
    let mut remarks = Vec::new();
    for source in &manifest.spec.tools {
        let ToolSource::Shell { programs, env, .. } = source else { continue };
        let config = ShellConfig { env: environment(env), ..ShellConfig::new(programs.clone(), PathBuf::new()) };
        let missing = shell::missing_programs(&config).into_iter();
        remarks.extend(missing.map(|name| format!("spec.tools: the program `{name}` is not on this machine")));
    }
    remarks
}

fn no_tool(what: &str, root: &str, named: Named) -> Obstacle {
    let root = excerpt::line(root, 200);
    let (kind, fix) = match named {
        Named::ByManifest => (Kind::Tool, "put the folder there, or correct spec.tools"),
        Named::ByRun => (Kind::Place, "put the folder there"),
    };
    Obstacle::new(kind, what).why(format!("spec.tools: root `{root}` is relative to the manifest's folder")).fix(fix)
}

fn duration(written: Duration) -> std::time::Duration {
    std::time::Duration::from_millis(written.ms)
}

/// The networks; a single address is a network of one.
fn networks(written: &[String]) -> Result<Vec<http::IpNet>, Obstacle> {
    let read = |text: &String| {
        let network = text.parse().or_else(|_| text.parse::<std::net::IpAddr>().map(http::IpNet::from));
        network.map_err(|_| Obstacle::new(Kind::Tool, format!("`{}` is no network", excerpt::line(text, 64))))
    };
    written.iter().map(read).collect()
}

/// The environment of programs: what every one needs, and what the manifest names.
fn environment(named: &[String]) -> std::collections::BTreeMap<String, std::ffi::OsString> {
    let names = EVERY_PROGRAM.into_iter().chain(named.iter().map(String::as_str));
    let mut env: std::collections::BTreeMap<_, _> =
        names.filter_map(|name| std::env::var_os(name).map(|value| (name.to_owned(), value))).collect();
    env.entry("PATH".to_owned()).or_insert_with(|| USUAL_PATH.into());
    env
}

/// A path of a manifest, whose folder is `folder`.
///
/// # Errors
/// [`Obstacle`] when nobody knows where that is.
pub fn place(root: &str, folder: Option<&Path>) -> Result<PathBuf, Obstacle> {
    match folder {
        Some(folder) => Ok(below(folder, root)),
        None if Path::new(root).is_absolute() => Ok(root.into()),
        None => Err(Obstacle::new(Kind::Place, format!("nobody knows where `{}` is", excerpt::line(root, 200)))
            .why("it is relative to the agent's manifest, and the run does not say where that was")),
    }
}
