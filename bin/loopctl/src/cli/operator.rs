//! `loopctl operator …`: what may be written.

use super::FormatArgs;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// `loopctl operator …`.
#[derive(Debug, Subcommand)]
pub enum OperatorCommand {
    /// Begin an operator of your own: a cargo project that builds and passes its tests
    New(NewOperatorArgs),
}

/// `operator new`.
#[derive(Debug, Args)]
#[command(after_help = "\
The project takes loopd's crates from a checkout of loopd: the one of --loopd, the one that this folder is in, or the one
that this program was built in. Nothing that is there is overwritten.

Examples:
  loopctl operator new triage
  loopctl operator new triage --loopd ../loopd && cd triage && cargo test")]
pub struct NewOperatorArgs {
    /// Its name, also that of the folder: a-z, 0-9, - and _, at most 64
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The checkout of loopd that it is built with
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub loopd: Option<PathBuf>,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}
