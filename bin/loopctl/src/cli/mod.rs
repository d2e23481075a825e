//! The command line: what may be written. What it does is in [`crate::commands`].

mod agent;
mod ask;
mod conv;
mod operator;
mod records;
mod run;
mod server;

pub use agent::{AgentApplyArgs, AgentCommand, AgentDeleteArgs, AgentListArgs, ConverseArgs};
pub use ask::{AnswerArgs, AskArgs, AskCommand};
pub use conv::{ConvArgs, ConvCommand, ExportForm, From, SendArgs, WatchConvArgs};
pub use operator::{NewOperatorArgs, OperatorCommand};
pub use records::{
    DiffArgs, FixtureCommand, ModelShowArgs, ModelsArgs, ModelsCommand, RecordArgs, ReplayArgs, ShowArgs, StoreCommand,
    UpgradeArgs, VerifyArgs,
};
pub use run::{
    CancelArgs, DriveArgs, ExchangeArgs, LimitArgs, ListArgs, ResumeArgs, RunArgs, RunCommand, RunShowArgs,
    StartOptions, WatchArgs, WhyArgs,
};
pub use server::{
    ActorArgs, ActorCommand, CallArgs, CallCommand, CallStartArgs, NewTokenArgs, ServerArgs, TokenArgs, TokenCommand,
};

use crate::output::{Color, Format};
use clap::{Args, Parser, Subcommand, ValueHint};
use std::path::PathBuf;

/// Where Runs are kept unless somebody says otherwise.
pub const DEFAULT_STORE: &str = "./.loopd/store.db";

const EXAMPLES: &str = "\
Examples:
  loopctl run agent.yaml \"What is in these files?\"
  loopctl run show last
  loopctl run resume last --max-iterations 40
  loopctl record last -o run.loopfix && loopctl replay run.loopfix
  loopctl conv send last \"Hello\" --to harness/demo --wait      beside a `loopd up`

Exit codes:
  0 completed        1 failed           2 usage
  3 BudgetExceeded   4 Stuck            5 interrupted, or waits for a person
  6 PolicyDenied     7 replay diverged or verification failed
  8 not found or conflict               9 store or server out of reach
  10 inconclusive    124 timed out      130 Ctrl-C";

/// Durable agent loops: run, kill, resume, record, replay.
#[derive(Debug, Parser)]
#[command(name = "loopctl", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// For every command.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// The store: PATH or sqlite://PATH
    #[arg(long, global = true, env = "LOOPD_STORE", hide_env_values = true, value_name = "PATH", default_value = DEFAULT_STORE, value_hint = ValueHint::FilePath)]
    pub store: String,
    /// Facts about models (YAML or JSON) that win over the built-in list
    #[arg(long, global = true, env = "LOOPD_MODELS", hide_env_values = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub models: Option<PathBuf>,
    /// Colour: auto or never; also off with NO_COLOR
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN", hide_possible_values = true)]
    pub color: Color,
    /// Log to stderr; twice for more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// How results are written.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Output")]
pub struct FormatArgs {
    /// How results are written: table, json, jsonl or name
    #[arg(short = 'o', long = "output", value_enum, default_value_t = Format::Table, value_name = "FORMAT", hide_possible_values = true)]
    pub format: Format,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start, show, watch, resume and cancel runs; `loopctl run FILE QUESTION` starts one
    Run(Box<RunArgs>),
    /// List and answer questions: of runs in the store, and of the conversations of a server
    Ask(AskArgs),
    /// Talk in the conversations of a server: open, send, follow, search, export
    Conv(Box<ConvArgs>),
    /// Say who can be addressed at a server
    Actor(ActorArgs),
    /// Call agents of a server, follow, steer and cancel calls
    Call(Box<CallArgs>),
    /// Make, list and revoke API tokens of a server
    Token(TokenArgs),
    /// Write a run into a .loopfix file
    Record(RecordArgs),
    /// Verify the hash chain of fixtures or of runs in the store
    Verify(VerifyArgs),
    /// Run an agent's decisions again over a fixture, without key or network, and compare
    Replay(ReplayArgs),
    /// Compare two runs or fixtures
    Diff(DiffArgs),
    /// Show a fixture as people read it
    Show(ShowArgs),
    /// Work on fixture files
    #[command(subcommand)]
    Fixture(FixtureCommand),
    /// Verify and back up the store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Talk with an agent, check its manifest; list and change those of a server
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Begin an operator of your own
    #[command(subcommand)]
    Operator(OperatorCommand),
    /// List what is known of models: price, context window, and from where
    Models(ModelsArgs),
    /// Say what this build, or a changed manifest, would make of the open runs; changes nothing
    Upgrade(UpgradeArgs),
    /// Look whether everything that runs need is here
    Doctor(FormatArgs),
    /// Write a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}
