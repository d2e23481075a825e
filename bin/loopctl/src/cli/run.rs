//! `loopctl run …`: what may be written.

use super::FormatArgs;
use clap::{Args, Subcommand, ValueHint};
use loopd_agent::manifest::Duration;
use loopd_kernel::{CallId, Limits, MicroUsd};
use loopd_store::RunStatus;
use std::path::PathBuf;

/// `loopctl run`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct RunArgs {
    /// What to do; without it, a run is started.
    #[command(subcommand)]
    pub command: Option<RunCommand>,
    /// The agent's manifest (YAML): starts a run
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// How it is started.
    #[command(flatten)]
    pub options: StartOptions,
}

/// `loopctl run …`.
#[derive(Debug, Subcommand)]
pub enum RunCommand {
    /// Start a run and drive it until it ends or waits for a person
    Start(StartArgs),
    /// List runs, newest first
    #[command(alias = "ls")]
    List(ListArgs),
    /// Show what a run did, step by step, and how it ended
    Show(RunShowArgs),
    /// Follow a run from a second terminal
    Watch(WatchArgs),
    /// Say why a run does not move, and what to do
    Why(WhyArgs),
    /// Go on with a run: after a stop, a crash or an answer; raise the limit of one that reached it
    Resume(ResumeArgs),
    /// Cancel a run for good
    Cancel(CancelArgs),
    /// Write the exact bytes of what a model was sent or answered, where they were kept
    Exchange(ExchangeArgs),
}

/// Limits of a Run.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Iterations: model calls, failed attempts not counted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_iterations: Option<u64>,
    /// Tokens of all classes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Money, for example 0.25
    #[arg(long, value_name = "DOLLARS")]
    pub max_usd: Option<MicroUsd>,
    /// Time since the start, waiting included, for example 10m
    #[arg(long, value_name = "TIME")]
    pub max_wall: Option<Duration>,
    /// Failed attempts that are repeated, over all calls
    #[arg(long, value_name = "N")]
    pub max_retries: Option<u64>,
}

impl LimitArgs {
    /// As the kernel knows them.
    pub fn limits(&self) -> Limits {
        Limits {
            iterations: self.max_iterations,
            tokens: self.max_tokens,
            micro_usd: self.max_usd,
            wall_ms: self.max_wall.map(|wall| wall.ms),
            retries: self.max_retries,
        }
    }
}

/// How a Run is driven here.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "While it runs")]
pub struct DriveArgs {
    /// Stay while the run waits for a person, until it has been answered elsewhere
    #[arg(long)]
    pub wait: bool,
    /// Stop after this long and release the run (exit 124)
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<Duration>,
    /// How long open calls may still settle after Ctrl-C; what may run again runs again later
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub grace: Duration,
    /// No progress on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

/// `run start`.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// The agent's manifest (YAML)
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// How it is started.
    #[command(flatten)]
    pub options: StartOptions,
}

/// How a Run is started.
#[derive(Debug, Args)]
pub struct StartOptions {
    /// The question; a JSON object is passed on as such
    #[arg(value_name = "QUESTION")]
    pub question: Option<String>,
    /// The question: text, @FILE, or - for stdin
    #[arg(short, long, value_name = "TEXT", conflicts_with = "question")]
    pub input: Option<String>,
    /// A file that comes with the question: an image, a document, a text; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub attach: Vec<PathBuf>,
    /// Start once: the same key later goes on with the same run
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Replaces the manifest's limits.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// How it is driven.
    #[command(flatten)]
    pub drive: DriveArgs,
    /// How the end is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `run list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only these: running, suspended, parked, ended
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = status)]
    pub status: Vec<RunStatus>,
    /// Only runs of this agent
    #[arg(long = "loop", alias = "agent", value_name = "NAME")]
    pub loop_name: Option<String>,
    /// Only the children of this run: its id, the beginning of it, or `last`
    #[arg(long, value_name = "RUN")]
    pub children: Option<String>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

fn status(text: &str) -> Result<RunStatus, String> {
    let names = RunStatus::ALL.map(RunStatus::name).join(", ");
    RunStatus::from_name(text).ok_or_else(|| format!("expected one of: {names}"))
}

/// `run show`.
#[derive(Debug, Args)]
pub struct RunShowArgs {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Arguments and results in full
    #[arg(long)]
    pub full: bool,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `run watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    /// Stop watching after this long (exit 124)
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<Duration>,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `run why`.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `run resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    /// The agent's manifest, where it is now: relative paths are resolved from its folder
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub agent: Option<PathBuf>,
    /// Raised limits.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// How it is driven.
    #[command(flatten)]
    pub drive: DriveArgs,
    /// How the end is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `run exchange`.
#[derive(Debug, Args)]
pub struct ExchangeArgs {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    /// The call, for example call-3; `run show -o json` names them
    #[arg(value_name = "CALL")]
    pub call: CallId,
    /// The body of the request; without it, that of the response
    #[arg(long)]
    pub request: bool,
}

/// `run cancel`.
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Why; it is recorded
    #[arg(long, value_name = "TEXT", default_value = "cancelled from the command line")]
    pub reason: String,
    /// How long to wait until it is sealed
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub timeout: Duration,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}
