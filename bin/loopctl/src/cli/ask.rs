//! `loopctl ask …`: what may be written.

use super::{FormatArgs, ServerArgs};
use clap::{Args, Subcommand};

/// Which questions are meant: the last lines of every help.
const WHICH: &str = "\
Questions of conversations are asked by a server, and named qst_…; those of runs that `loopctl run` drives stand in the
store, and are named RUN/qN. `ask` goes to the server of --server or LOOPD_SERVER, or else to one that runs on the
folder of the store; where none does, to the store itself. RUN/qN always means the store.";

/// `loopctl ask`.
#[derive(Debug, Args)]
#[command(after_help = WHICH)]
pub struct AskArgs {
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: AskCommand,
}

/// `loopctl ask …`.
#[derive(Debug, Subcommand)]
pub enum AskCommand {
    /// List open questions, oldest first
    #[command(alias = "ls")]
    List {
        /// Only of this run, or of this conversation
        #[arg(value_name = "RUN|CONV")]
        of: Option<String>,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Show one question whole
    Show {
        /// The question: qst_…, the beginning of it, or `last`; or RUN/qN
        #[arg(value_name = "QUESTION")]
        question: String,
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
  unknown  nobody can tell; the agent decides
An answer counts when the run that asked takes it: this waits for that, at a server five seconds at most, and says which.")]
    Answer(AnswerArgs),
}

/// `ask answer`.
#[derive(Debug, Args)]
pub struct AnswerArgs {
    /// The question: qst_…, the beginning of it, or `last`; or RUN/qN, or RUN where only one is open
    #[arg(value_name = "QUESTION")]
    pub question: String,
    /// The answer
    #[arg(value_name = "ANSWER", required_unless_present_any = ["decline", "dismiss"])]
    pub value: Option<String>,
    /// The answer is JSON
    #[arg(long)]
    pub json: bool,
    /// Say that it will not be answered
    #[arg(long, conflicts_with_all = ["value", "json", "output", "evidence"])]
    pub decline: bool,
    /// Close it without an answer: a question of a conversation
    #[arg(long, conflicts_with_all = ["value", "json", "decline", "output", "evidence"])]
    pub dismiss: bool,
    /// For `landed`: the call's result
    #[arg(long, value_name = "TEXT")]
    pub output: Option<String>,
    /// For `failed` and `unknown`: what was seen
    #[arg(long, value_name = "TEXT")]
    pub evidence: Option<String>,
}
