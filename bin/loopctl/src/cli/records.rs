//! Recordings, stores, models, upgrades: what may be written.

use super::FormatArgs;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

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
