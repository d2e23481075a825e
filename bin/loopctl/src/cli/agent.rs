//! `loopctl agent …`: what may be written.

use super::{FormatArgs, LimitArgs, ServerArgs};
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// `loopctl agent …`.
#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Check a manifest and say what it would use; nothing is started
    Check {
        /// The manifest
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Talk with an agent: one durable run, which waits for you between its answers
    #[command(name = "chat")]
    Converse(Box<ConverseArgs>),
    /// Print the JSON Schema of manifests, for editors
    Schema,
    /// List the agents of a server, and where each is from
    #[command(alias = "ls")]
    List(AgentListArgs),
    /// Keep manifests at a server: from then on calls to these agents are executed by them
    Apply(AgentApplyArgs),
    /// Take out the manifest of an agent that a server keeps; calls that execute go on
    Delete(AgentDeleteArgs),
}

/// `agent list`.
#[derive(Debug, Args)]
pub struct AgentListArgs {
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `agent apply`.
#[derive(Debug, Args)]
#[command(after_help = "\
The manifests are sent in this order, after all of them were read. One that is there already changes nothing.
Relative paths in them are taken from the server's folder of agents.")]
pub struct AgentApplyArgs {
    /// The manifests (YAML)
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `agent delete`.
#[derive(Debug, Args)]
pub struct AgentDeleteArgs {
    /// The agent
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `agent chat`.
#[derive(Debug, Args)]
#[command(after_help = "\
/help says what may be typed. Ctrl-C interrupts the agent; Ctrl-D or /exit leaves, and the run waits.")]
pub struct ConverseArgs {
    /// The agent's manifest (YAML); with --run, where it is now
    #[arg(value_name = "FILE", required_unless_present = "run", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// The first message
    #[arg(value_name = "MESSAGE")]
    pub message: Option<String>,
    /// Take this conversation up again: its id, the beginning of it, or `last`
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// A file that comes with the first message; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub attach: Vec<PathBuf>,
    /// Replaces the manifest's limits.
    #[command(flatten)]
    pub limits: LimitArgs,
}
