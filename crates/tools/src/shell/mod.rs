//! `shell`: running one of a few programs, without a shell.
//!
//! # Guarantees
//! * Only a program of the list is started, by exactly the name of the list. The arguments are an array: `;`, `|`,
//!   `>`, `*` and `$X` are plain characters.
//! * A name is looked for in the absolute folders of the `PATH` that was given, never in the working folder.
//! * The environment holds what was given and nothing else, standard input is empty, no file that the worker opened
//!   is inherited.
//! * The program leads a process group. When it ends, when its time is over, when nobody waits any more, and when the
//!   call is dropped, the whole group is killed. What has left the group and holds the output open is not waited for.
//! * Of each output the beginning and the end are kept, and how much was left out is said.
//!
//! # Effect class
//! `once`: nobody can know what a program does. A program that was not started certainly did not happen. One that
//! was killed because nobody waits any more is in doubt. One that ran into its time limit has a result that says so.
//!
//! # Caveats
//! This is no sandbox: a program of the list may read, write and send whatever the user may who runs the worker. A
//! program that runs others by its arguments (`sh`, `env`, `find`, `make`) opens the list to all of them. A process
//! that moves into a session of its own is out of reach of the killing, and so is everything when the worker itself
//! is killed with `SIGKILL`.

mod output;
mod process;
mod program;

pub use output::Output;
pub use process::{Ended, Report};

use crate::args::{offer, parse};
use crate::files::RootError;
use crate::files::root::{Below, Root};
use async_trait::async_trait;
use loopd_kernel::EffectClass;
use loopd_kernel::machine::ToolTerms;
use loopd_kernel::model::ToolOffer;
use loopd_runtime::{CallContext, Tool, ToolError};
use process::{Limits, Order};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The name that a model uses.
pub const NAME: &str = "shell";

/// What recovery may do with an open Call.
pub const CLASS: EffectClass = EffectClass::Once;

/// How long a program may run where nothing else is said.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes that are kept of each output where nothing else is said.
pub const DEFAULT_MAX_OUTPUT: usize = 32 * 1024;

/// Arguments of one program, itself included.
const MAX_ARGS: usize = 256;

/// Bytes of all arguments together.
const MAX_ARG_BYTES: usize = 128 * 1024;

/// What the tool needs beyond the time of the program: killing, and reading what is left.
const MARGIN: Duration = Duration::from_secs(10);

/// What the tool may do.
#[derive(Clone, Debug)]
pub struct ShellConfig {
    /// The programs: names without `/`, or absolute paths.
    pub programs: Vec<String>,
    /// The folder that working folders lie in. It does not confine the program.
    pub root: PathBuf,
    /// How long a program may run.
    pub timeout: Duration,
    /// Bytes that are kept of each output, half of them from its end.
    pub max_output: usize,
    /// The whole environment of the programs. Names are looked for in its `PATH`.
    pub env: BTreeMap<String, OsString>,
}

impl ShellConfig {
    /// With the default limits and an empty environment.
    #[must_use]
    pub fn new(programs: Vec<String>, root: PathBuf) -> Self {
        let (timeout, max_output) = (DEFAULT_TIMEOUT, DEFAULT_MAX_OUTPUT);
        Self { programs, root, timeout, max_output, env: BTreeMap::new() }
    }
}

/// Why the tool cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// Nothing may be run.
    #[error("no program is listed, so there is nothing to run")]
    NoPrograms,
    /// It is neither a name nor an absolute path.
    #[error("{0:?} is neither the name of a program nor an absolute path")]
    Program(String),
    /// The root cannot be used.
    #[error(transparent)]
    Root(#[from] RootError),
}

/// What to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The program and its arguments, each one a text of its own.
    #[schemars(length(min = 1, max = 256))]
    argv: Vec<String>,
    /// The folder to run it in; without it, the one that can be seen.
    #[serde(default)]
    dir: String,
}

/// The tool as a model sees it.
#[must_use]
pub fn shell_offer(programs: &[String]) -> ToolOffer {
    let description = format!(
        "Runs one program and waits for its end. There is no shell: pipes, redirections, wildcards and variables are \
         plain text, and standard input is empty. Programs: {}.",
        programs.join(", ")
    );
    offer::<Args>(NAME, &description)
}

/// Makes the tool.
///
/// # Errors
/// [`ShellError`] when the list of programs is empty or odd, or the root cannot be opened. A program that is not
/// there is found out when it is called.
pub fn shell_tool(config: ShellConfig) -> Result<Arc<dyn Tool>, ShellError> {
    if config.programs.is_empty() {
        return Err(ShellError::NoPrograms);
    }
    if let Some(odd) = config.programs.iter().find(|program| !program::is_listable(program)) {
        return Err(ShellError::Program(odd.clone()));
    }
    let root = Root::open(&config.root)?;
    Ok(Arc::new(ShellTool { offer: shell_offer(&config.programs), root, config }))
}

/// The listed programs that are not on this machine now, so that a call of one would fail.
#[must_use]
pub fn missing_programs(config: &ShellConfig) -> Vec<String> {
    config.programs.iter().filter(|name| program::find(name, config).is_err()).cloned().collect()
}

#[derive(Debug)]
struct ShellTool {
    offer: ToolOffer,
    root: Root,
    config: ShellConfig,
}

#[async_trait]
impl Tool for ShellTool {
    fn offer(&self) -> &ToolOffer {
        &self.offer
    }

    fn terms(&self) -> ToolTerms {
        let all = self.config.timeout.saturating_add(MARGIN);
        ToolTerms { class: CLASS, timeout_ms: u64::try_from(all.as_millis()).unwrap_or(u64::MAX) }
    }

    async fn call(&self, args: &str, context: &CallContext) -> Result<String, ToolError> {
        let Args { argv, dir } = parse(args)?;
        check(&argv)?;
        let name = argv.first().map_or("", String::as_str);
        let program = program::find(name, &self.config)?;
        let folder = self.root.folder(&Below::parse(&dir)?)?;
        if context.cancel.is_cancelled() {
            return Err(ToolError::did_not_happen(
                "tool.cancelled",
                "nobody waits for it any more; it was not started",
            ));
        }
        // A deadline that is nearer than usual still leaves time for a report.
        let timeout = self.config.timeout.min(context.timeout.saturating_sub(MARGIN / 2));
        let limits = Limits { timeout, max_output: self.config.max_output };
        let order = Order { program: &program, argv: &argv, env: &self.config.env, folder: &folder };
        let report = process::run(order, limits, &context.cancel).await?;
        serde_json::to_string(&report).map_err(|error| ToolError::in_doubt("tool.output", error.to_string()))
    }
}

fn check(argv: &[String]) -> Result<(), ToolError> {
    if argv.is_empty() || argv.len() > MAX_ARGS {
        return Err(ToolError::invalid_args(format!("argv: expected 1 to {MAX_ARGS} texts, the first is the program")));
    }
    if argv.iter().map(String::len).sum::<usize>() > MAX_ARG_BYTES {
        return Err(ToolError::invalid_args(format!("argv: expected at most {MAX_ARG_BYTES} bytes together")));
    }
    if argv.iter().any(|text| text.contains('\0')) {
        return Err(ToolError::invalid_args("argv: an argument cannot hold NUL"));
    }
    Ok(())
}
