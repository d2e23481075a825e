//! Which server, and `loopctl actor|call|token …`: what may be written.

use super::{FormatArgs, LimitArgs};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use loopd_agent::manifest::Duration;
use loopd_protocol::{ActorKey, ActorKind, Priority, Role};
use std::path::PathBuf;

/// Which server is meant, and who asks it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Server")]
pub struct ServerArgs {
    /// The server: http://HOST:PORT; else LOOPD_SERVER, else the one that runs on the folder of the store (./.loopd)
    #[arg(long, global = true, env = "LOOPD_SERVER", hide_env = true, value_name = "URL", value_hint = ValueHint::Url)]
    pub server: Option<String>,
    /// A file with an API token; else LOOPD_TOKEN, else the owner's own of the server in the folder of the store
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
}

/// `loopctl actor`.
#[derive(Debug, Args)]
pub struct ActorArgs {
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: ActorCommand,
}

/// `loopctl actor …`.
#[derive(Debug, Subcommand)]
pub enum ActorCommand {
    /// List who can be addressed
    #[command(alias = "ls")]
    List {
        /// Only this kind: person, operator or harness
        #[arg(long, value_name = "KIND", value_parser = kind)]
        kind: Option<ActorKind>,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Show one; without a name, who you are there
    Show {
        /// The actor, for example harness/demo
        #[arg(value_name = "ACTOR")]
        actor: Option<ActorKey>,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
}

fn kind(text: &str) -> Result<ActorKind, String> {
    match text {
        "person" => Ok(ActorKind::Person),
        "operator" => Ok(ActorKind::Operator),
        "harness" => Ok(ActorKind::Harness),
        _ => Err("expected one of: person, operator, harness".to_owned()),
    }
}

/// `loopctl call`.
#[derive(Debug, Args)]
pub struct CallArgs {
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: CallCommand,
}

/// `loopctl call …`.
#[derive(Debug, Subcommand)]
pub enum CallCommand {
    /// List the calls of a conversation, newest first
    #[command(alias = "ls")]
    List {
        /// The conversation: its id, the beginning of it, or `last`
        #[arg(value_name = "CONV", default_value = "last")]
        conv: String,
        /// Also those that operators made for its answers, with their steps
        #[arg(long)]
        work: bool,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Call a target: what `call targets` lists
    Start(CallStartArgs),
    /// List what calls may execute on
    Targets(FormatArgs),
    /// Show where a call stands, and what it came to
    Show {
        /// The call: its id, the beginning of it, or `last`
        #[arg(value_name = "CALL", default_value = "last")]
        call: String,
        /// Wait for the end, and print the result alone
        #[arg(long)]
        wait: bool,
        /// Wait no longer than this (exit 124); the call goes on
        #[arg(long, value_name = "TIME", requires = "wait")]
        timeout: Option<Duration>,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Wish that a call ends; its phase tells whether it did
    Cancel {
        /// The call: its id, the beginning of it, or `last`
        #[arg(value_name = "CALL")]
        call: String,
        /// Why; it is recorded
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Send text to a call while it runs; it sees it at its next step
    Steer {
        /// The call: its id, the beginning of it, or `last`
        #[arg(value_name = "CALL")]
        call: String,
        /// The text, or - for stdin
        #[arg(value_name = "TEXT")]
        text: String,
        /// Send once: the same key later is the same text
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Go on with a call that waits at a limit, under higher ones
    Resume {
        /// The call: its id, the beginning of it, or `last`
        #[arg(value_name = "CALL")]
        call: String,
        /// The higher limits.
        #[command(flatten)]
        limits: LimitArgs,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
}

/// `call start`.
#[derive(Debug, Args)]
pub struct CallStartArgs {
    /// The conversation: its id, the beginning of it, or `last`
    #[arg(value_name = "CONV")]
    pub conv: String,
    /// What it executes on, for example demo
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// What it is asked, or - for stdin
    #[arg(value_name = "PROMPT")]
    pub prompt: String,
    /// Call once: the same key later is the same call
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Until when it may take
    #[arg(long, value_name = "TIME", default_value = "30m")]
    pub deadline: Duration,
    /// How soon it gets a slot: low, normal or high
    #[arg(long, value_enum, value_name = "PRIORITY", default_value_t = Turn::Normal, hide_possible_values = true)]
    pub priority: Turn,
    /// Fail at a limit instead of waiting for somebody to raise it
    #[arg(long)]
    pub fail_on_limit: bool,
    /// What it may consume at most.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Wait for the end, and print the result
    #[arg(long)]
    pub wait: bool,
    /// Wait no longer than this (exit 124); the call goes on
    #[arg(long, value_name = "TIME", requires = "wait")]
    pub timeout: Option<Duration>,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// How soon a call gets a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Turn {
    /// After all others
    Low,
    /// In turn
    Normal,
    /// Before all others
    High,
}

impl std::convert::From<Turn> for Priority {
    fn from(turn: Turn) -> Self {
        match turn {
            Turn::Low => Self::Low,
            Turn::Normal => Self::Normal,
            Turn::High => Self::High,
        }
    }
}

/// `loopctl token`.
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: TokenCommand,
}

/// `loopctl token …`.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token; its secret goes to stdout, once
    Create(NewTokenArgs),
    /// List tokens, without their secrets
    #[command(alias = "ls")]
    List(FormatArgs),
    /// Revoke a token: it is good for nothing from now on
    Revoke {
        /// The token: tok_…, or the beginning of it
        #[arg(value_name = "TOKEN")]
        token: String,
        /// How it is written.
        #[command(flatten)]
        format: FormatArgs,
    },
}

/// `token create`.
#[derive(Debug, Args)]
pub struct NewTokenArgs {
    /// Who speaks with it, for example person/ann or operator/router
    #[arg(long, value_name = "ACTOR")]
    pub actor: ActorKey,
    /// What it may do: admin, member, operator, harness or viewer; may be repeated
    #[arg(long, value_name = "ROLE", required = true, value_delimiter = ',')]
    pub role: Vec<Role>,
    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub name: String,
    /// Days until it ends; without it, it does not
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3660))]
    pub days: Option<u32>,
    /// How it is written.
    #[command(flatten)]
    pub format: FormatArgs,
}
