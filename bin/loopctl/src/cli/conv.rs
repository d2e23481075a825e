//! `loopctl conv …`: what may be written.

use super::{FormatArgs, ServerArgs};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use loopd_agent::manifest::Duration;
use loopd_protocol::{ActorKey, MessageId};
use std::path::PathBuf;

/// What every command of this noun takes, and how the server is found.
const ABOUT: &str = "\
CONV is the id of a conversation, the beginning of it, or `last`: the one where something happened last.

Examples:
  loopctl conv new \"First try\"
  loopctl conv send last \"ask me something\" --to harness/demo --wait
  loopctl conv watch last --from start";

/// `loopctl conv`.
#[derive(Debug, Args)]
#[command(after_help = ABOUT)]
pub struct ConvArgs {
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: ConvCommand,
}

/// `loopctl conv …`.
#[derive(Debug, Subcommand)]
pub enum ConvCommand {
    /// Open a conversation; its id goes to stdout
    New {
        /// Its title
        #[arg(value_name = "TITLE", default_value = "")]
        title: String,
        /// A member besides you; may be repeated
        #[arg(long, value_name = "ACTOR")]
        member: Vec<ActorKey>,
        /// Open once: the same key later is the same conversation
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
    /// List conversations, the one where something happened last first
    #[command(alias = "ls")]
    List {
        /// Those that were put away, instead of the others
        #[arg(long)]
        archived: bool,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Show what was said
    Show {
        /// The conversation: its id, the beginning of it, or `last`
        #[arg(value_name = "CONV", default_value = "last")]
        conv: String,
        /// The last so many messages
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        /// All of them
        #[arg(long, conflicts_with = "limit")]
        all: bool,
        /// Also what operators did for it: plans, calls, notes
        #[arg(long)]
        work: bool,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Say something; a message to an agent (--to, or @harness/NAME in the text) calls it
    Send(SendArgs),
    /// Follow a conversation live; Ctrl-C detaches, and everything goes on
    Watch(WatchConvArgs),
    /// Give it another title
    Rename {
        /// The conversation: its id, the beginning of it, or `last`
        #[arg(value_name = "CONV")]
        conv: String,
        /// The title
        #[arg(value_name = "TITLE")]
        title: String,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Put it away: it is hidden from lists, otherwise as before
    Archive {
        /// The conversation: its id, the beginning of it, or `last`
        #[arg(value_name = "CONV")]
        conv: String,
        /// Take it out again
        #[arg(long)]
        undo: bool,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
    /// List, add and remove members
    Members {
        /// The conversation: its id, the beginning of it, or `last`
        #[arg(value_name = "CONV", default_value = "last")]
        conv: String,
        /// Who is added; may be repeated
        #[arg(long, value_name = "ACTOR")]
        add: Vec<ActorKey>,
        /// Who is removed; may be repeated
        #[arg(long, value_name = "ACTOR")]
        remove: Vec<ActorKey>,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Write everything of a conversation as one document to stdout
    Export {
        /// The conversation: its id, the beginning of it, or `last`
        #[arg(value_name = "CONV", default_value = "last")]
        conv: String,
        /// The form: markdown or json
        #[arg(long, value_enum, value_name = "FORM", default_value_t = ExportForm::Markdown, hide_possible_values = true)]
        form: ExportForm,
    },
    /// Find messages that have all these words
    Search {
        /// The words
        #[arg(value_name = "WORDS", required = true)]
        words: Vec<String>,
        /// Only in this conversation
        #[arg(long = "in", value_name = "CONV")]
        within: Option<String>,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
        limit: u32,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Delete a conversation and erase what was said in it, for good
    Delete {
        /// The conversation: its id, or the beginning of it
        #[arg(value_name = "CONV")]
        conv: String,
        /// Do it; nothing asks again
        #[arg(long)]
        yes: bool,
    },
}

/// The form of an exported Conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportForm {
    /// For people
    Markdown,
    /// For programs
    Json,
}

/// `conv send`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --wait, stdout gets the answer, and the exit code says how it went:
  0 answered   1 failed   3 at a limit   5 a person is asked   124 --timeout is over
What was called goes on without whoever waits.")]
pub struct SendArgs {
    /// The conversation: its id, the beginning of it, or `last`
    #[arg(value_name = "CONV")]
    pub conv: String,
    /// The text, or - for stdin
    #[arg(value_name = "TEXT")]
    pub text: String,
    /// To whom; may be repeated. Without it, to everybody
    #[arg(long, value_name = "ACTOR")]
    pub to: Vec<ActorKey>,
    /// The message that it answers
    #[arg(long, value_name = "MESSAGE")]
    pub reply_to: Option<MessageId>,
    /// A file that goes with it; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub attach: Vec<PathBuf>,
    /// Say it once: the same key later is the same message
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Wait for the answer, and print it
    #[arg(long)]
    pub wait: bool,
    /// Wait no longer than this (exit 124)
    #[arg(long, value_name = "TIME", requires = "wait")]
    pub timeout: Option<Duration>,
    /// Tell on stderr what is done meanwhile; without it, only where stderr is a terminal
    #[arg(long, requires = "wait")]
    pub progress: bool,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `conv watch`.
#[derive(Debug, Args)]
#[command(after_help = "\
A server that goes away and comes back costs nothing: the stream goes on behind the last event. With -o jsonl every line
is an event of the feed, with its position; text as it arrives is left out, because it is never the answer.")]
pub struct WatchConvArgs {
    /// The conversation: its id, the beginning of it, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    pub conv: String,
    /// Where to begin: now, start, or behind a position
    #[arg(long, value_name = "WHERE", default_value = "now", value_parser = from)]
    pub from: From,
    /// Also what operators do for it, as it happens: plans, calls, notes
    #[arg(long)]
    pub work: bool,
    /// Stop watching after this long (exit 124)
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<Duration>,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// Where watching begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// With what is open now.
    Now,
    /// Behind this position of the Feed; 0 is its start.
    Position(u64),
}

fn from(text: &str) -> Result<From, String> {
    match text {
        "now" => Ok(From::Now),
        "start" => Ok(From::Position(0)),
        number => number.parse().map(From::Position).map_err(|_| "expected `now`, `start` or a position".to_owned()),
    }
}
