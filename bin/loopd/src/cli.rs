//! The command line: what may be written.

use crate::router::HOLDER;
use clap::{ArgAction, Args, Parser, Subcommand, ValueHint};
use loopd_assemble::machine::Wish;
use loopd_protocol::{ActorKey, Role};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where the server keeps everything unless somebody says otherwise.
pub const DEFAULT_DATA: &str = "./.loopd";

const EXAMPLES: &str = "\
Examples:
  loopd up                          a server with a Router and whatever model is found here
  loopctl conv new \"First try\"      in another terminal, in the same folder
  loopctl conv send last \"Compare tea and coffee\" --to operator/router --wait
  loopd serve --agents ./agents     the server alone, with every agent of a folder

docs/up.md begins at the beginning; docs/server.md is the guide to the server.";

/// Conversations with durable agents: the server.
#[derive(Debug, Parser)]
#[command(name = "loopd", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// Log more to stderr; twice for more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve with all that answers: a Router, an assistant on the model found here, and the agents of ./agents
    Up(UpArgs),
    /// Serve until SIGTERM or Ctrl-C; what runs then is released and goes on at the next start
    Serve(ServeArgs),
    /// Make an API token while no server runs; `loopctl token create` does it with one
    Token(TokenArgs),
    /// Run one of the bundled Operators as a process of its own, beside a server
    Operator(OperatorArgs),
}

/// `up`: what `serve` takes, and the model.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Without --model it takes the provider whose key is in the environment (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY),
else a model server on this machine (Ollama, vLLM, LM Studio, llama.cpp), else the demo model, which plays a script.
Agents come from --agents, else from ./agents where that is there, else from `agents` in the data folder.
The file of --config may have [router], which docs/up.md lists.")]
pub struct UpArgs {
    /// anthropic, openai, gemini or local, each also with /NAME; or demo [default: what is found]
    #[arg(long, value_name = "MODEL", env = "LOOPD_MODEL", hide_env_values = true)]
    pub model: Option<Wish>,
    /// What every server takes.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// `operator`.
#[derive(Debug, Args)]
pub struct OperatorArgs {
    /// Which one.
    #[command(subcommand)]
    pub command: OperatorCommand,
}

/// `operator …`.
#[derive(Debug, Subcommand)]
pub enum OperatorCommand {
    /// Answer questions: plan, have agents work side by side, sum up
    Router(RouterArgs),
}

/// `operator router`.
#[derive(Debug, Args)]
pub struct RouterArgs {
    /// The server
    #[arg(long, value_name = "URL", env = "LOOPD_SERVER", default_value = "http://127.0.0.1:7717", value_hint = ValueHint::Url)]
    pub server: String,
    /// A file with its token; without it, LOOPD_TOKEN is
    #[arg(long, value_name = "FILE", env = "LOOPD_TOKEN_FILE", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// A TOML file with [router]
    #[arg(long, value_name = "FILE", env = "LOOPD_CONFIG", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Its name among processes of this Operator: one that is started again under its name goes on at once
    #[arg(long, value_name = "NAME", default_value = HOLDER)]
    pub name: String,
    /// Write the usual prompts into this folder, for [router] prompts, and do nothing else
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub write_prompts: Option<PathBuf>,
}

/// `serve`: what the command line and the environment say.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
An option goes before its variable, and that before the file of --config. The file is TOML and has the same names:
addr, data, agents, person, allow-hosts, slots, queue, models, demo; and origins, private-metrics and [limits], which
docs/server.md lists.

The printed address signs one browser in, once; SIGUSR1 (kill -USR1 PID) prints another one.")]
pub struct ServeArgs {
    /// A TOML file with settings
    #[arg(long, value_name = "FILE", env = "LOOPD_CONFIG", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:7717]
    #[arg(long, value_name = "ADDRESS", env = "LOOPD_ADDR", hide_env_values = true)]
    pub addr: Option<SocketAddr>,
    /// The folder for everything that is kept, made when missing [default: ./.loopd]
    #[arg(long, value_name = "DIR", env = "LOOPD_DATA", hide_env_values = true, value_hint = ValueHint::DirPath)]
    pub data: Option<PathBuf>,
    /// A folder of agent manifests (*.yaml, *.yml): each is a target by its name
    #[arg(long, value_name = "DIR", env = "LOOPD_AGENTS", hide_env_values = true, value_hint = ValueHint::DirPath)]
    pub agents: Option<PathBuf>,
    /// Who signs in with the printed address, and whose token loopctl finds: person/NAME [default: me]
    #[arg(long, value_name = "NAME", env = "LOOPD_PERSON", hide_env_values = true)]
    pub person: Option<String>,
    /// A name, or NAME:PORT, under which the server is reached besides localhost; may be repeated
    #[arg(long, value_name = "HOST", env = "LOOPD_ALLOW_HOST", hide_env_values = true, value_delimiter = ',')]
    pub allow_host: Vec<String>,
    /// Calls that execute at once [default: 50]
    #[arg(long, value_name = "N", env = "LOOPD_SLOTS", hide_env_values = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub slots: Option<u32>,
    /// Calls that may wait for a slot; more are refused [default: 1000]
    #[arg(long, value_name = "N", env = "LOOPD_QUEUE", hide_env_values = true)]
    pub queue: Option<u32>,
    /// Facts about models (YAML or JSON) that win over the built-in list
    #[arg(long, value_name = "FILE", env = "LOOPD_MODELS", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub models: Option<PathBuf>,
    /// Leave the built-in demo agent out
    #[arg(long)]
    pub no_demo: bool,
}

/// `token`.
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// The server's folder
    #[arg(long, value_name = "DIR", env = "LOOPD_DATA", hide_env_values = true, default_value = DEFAULT_DATA, value_hint = ValueHint::DirPath)]
    pub data: PathBuf,
    /// Who speaks with it, for example person/me or operator/router
    #[arg(long, value_name = "ACTOR")]
    pub actor: ActorKey,
    /// What it may do: admin, member, operator, harness or viewer; may be repeated
    #[arg(long, value_name = "ROLE", required = true)]
    pub role: Vec<Role>,
    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub name: String,
    /// Days until it ends; without it, it does not
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3660))]
    pub days: Option<u32>,
}
