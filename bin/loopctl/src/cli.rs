//! The command line: what may be written. What it does is in [`crate::commands`].

use crate::output::{Color, Format};
use clap::{Args, Parser, Subcommand, ValueHint};
use loopd_agent::manifest::Duration;
use loopd_kernel::{CallId, Limits, MicroUsd};
use loopd_store::RunStatus;
use std::path::PathBuf;

/// Where Runs are kept unless somebody says otherwise.
pub const DEFAULT_STORE: &str = "./.loopd/store.db";

const EXAMPLES: &str = "\
Examples:
  loopctl run agent.yaml \"What is in these files?\"
  loopctl run show last
  loopctl run resume last --max-iterations 40
  loopctl record last -o run.loopfix && loopctl replay run.loopfix

Exit codes:
  0 completed        1 failed           2 usage
  3 BudgetExceeded   4 Stuck            5 interrupted, or waits for a person
  6 PolicyDenied     7 replay diverged or verification failed
  8 not found or conflict               9 store out of reach
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
    /// List and answer the questions of runs
    #[command(subcommand)]
    Ask(AskCommand),
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
    /// Talk with an agent, check its manifest
    #[command(subcommand)]
    Agent(AgentCommand),
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

/// `loopctl ask …`.
#[derive(Debug, Subcommand)]
pub enum AskCommand {
    /// List open questions, oldest first
    #[command(alias = "ls")]
    List {
        /// Only of this run
        #[arg(value_name = "RUN")]
        run: Option<String>,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Answer a question
    #[command(after_help = "\
A question with choices or a schema takes an answer that fits it.
A Confirm takes yes or no.
A call whose effect is unknown takes one of:
  landed   it happened; --output is its result as the agent shall see it
  failed   it did not happen; the agent sees a failed call
  retry    it did not happen; do it now
  unknown  nobody can tell; the agent decides")]
    Answer(AnswerArgs),
}

/// `ask answer`.
#[derive(Debug, Args)]
pub struct AnswerArgs {
    /// The question: RUN/qN, or RUN where only one is open
    #[arg(value_name = "RUN/qN")]
    pub question: String,
    /// The answer
    #[arg(value_name = "ANSWER", required_unless_present = "decline")]
    pub value: Option<String>,
    /// The answer is JSON
    #[arg(long)]
    pub json: bool,
    /// Say that it will not be answered
    #[arg(long, conflicts_with_all = ["value", "json", "output", "evidence"])]
    pub decline: bool,
    /// For `landed`: the call's result
    #[arg(long, value_name = "TEXT")]
    pub output: Option<String>,
    /// For `failed` and `unknown`: what was seen
    #[arg(long, value_name = "TEXT")]
    pub evidence: Option<String>,
}

/// `record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    /// The file; - for stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub force: bool,
}

/// `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Fixture files, or runs of the store
    #[arg(value_name = "FILE|RUN", required_unless_present = "all")]
    pub what: Vec<String>,
    /// Every run of the store
    #[arg(long, conflicts_with = "what")]
    pub all: bool,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Fixture files
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Every decision, argument and request must be the same (the default)
    #[arg(long, conflicts_with = "structure")]
    pub strict: bool,
    /// The same calls in the same order; texts may differ
    #[arg(long)]
    pub structure: bool,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `upgrade`.
#[derive(Debug, Args)]
pub struct UpgradeArgs {
    /// Fold every open run and compare its decisions with those of this build
    #[arg(long)]
    pub check: bool,
    /// What would happen to the open runs of this agent if this manifest took over; may be repeated
    #[arg(long, value_name = "FILE", requires = "check", value_hint = ValueHint::FilePath)]
    pub agent: Vec<PathBuf>,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// A fixture file, or a run of the store
    #[arg(value_name = "A")]
    pub a: String,
    /// Another one
    #[arg(value_name = "B")]
    pub b: String,
    /// Exit with 7 when they differ
    #[arg(long)]
    pub exit_code: bool,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The fixture
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Arguments and results in full
    #[arg(long)]
    pub full: bool,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `loopctl fixture …`.
#[derive(Debug, Subcommand)]
pub enum FixtureCommand {
    /// Look for secrets in files
    Scan {
        /// The files
        #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
}

/// `loopctl store …`.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Verify every run: chain, head and fold
    Verify(FormatArgs),
    /// Copy the store into a new file, also while it is in use
    Backup {
        /// The new file
        #[arg(value_name = "TO", value_hint = ValueHint::FilePath)]
        to: PathBuf,
    },
}

/// `loopctl models`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ModelsArgs {
    /// What to do; without it, models are listed.
    #[command(subcommand)]
    pub command: Option<ModelsCommand>,
    /// Only models with this in their name
    #[arg(value_name = "FILTER")]
    pub filter: Option<String>,
    /// Only models of this provider
    #[arg(long, value_name = "PROVIDER")]
    pub provider: Option<String>,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `loopctl models …`.
#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// Show everything that is known of one model, and where it is from
    Show(ModelShowArgs),
}

/// `models show`.
#[derive(Debug, Args)]
pub struct ModelShowArgs {
    /// The model: its name, or PROVIDER/NAME
    #[arg(value_name = "NAME")]
    pub name: String,
    /// At this provider only
    #[arg(long, value_name = "PROVIDER")]
    pub provider: Option<String>,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

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
