//! The server: Conversations, agents and their durable Runs in one process, over one SQLite file.
//!
//! A composition root: it names the store; `loopd-assemble` makes agents of manifests. Reading order: [`cli`],
//! [`settings`] and [`limits`] (what may be written), [`serve`] (how the parts become a server), [`targets`] and [`built_in`] (what can be
//! called), [`router`] (the Operator that `up` brings along), [`data`] (the folder), [`trouble`] (how things go wrong).
#![forbid(unsafe_code)]

mod built_in;
mod cli;
mod data;
mod folder;
mod limits;
mod live;
mod router;
mod says;
mod serve;
mod settings;
mod signals;
mod targets;
mod token;
mod trouble;

use clap::Parser;
use cli::{Cli, Command, OperatorArgs, OperatorCommand};
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;
use trouble::{Exit, Trouble};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are data; everything else is a complaint. Both know where they belong.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
        }
    };
    log(cli.verbose);
    match work(cli) {
        Ok(exit) => exit.into(),
        Err(trouble) => {
            says::note(&trouble.to_string());
            trouble.exit.into()
        }
    }
}

fn work(cli: Cli) -> Result<Exit, Trouble> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Trouble::new(Exit::Failed, error.to_string()))?;
    let exit = runtime.block_on(async {
        match cli.command {
            Command::Up(args) => serve::up(args).await,
            Command::Serve(args) => serve::serve(settings::read(args)?, None).await,
            Command::Operator(OperatorArgs { command: OperatorCommand::Router(args) }) => router::run(args).await,
            Command::Token(args) => token::make(args).await,
        }
    });
    // Whatever still runs is no longer waited for: what is committed is committed.
    runtime.shutdown_background();
    exit
}

/// The log goes to stderr; how much of it, the option or LOOPD_LOG says.
fn log(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "info,loopd_runtime=debug,loopd_platform=debug,loopd_server=debug,loopd_store_sqlite=debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_env("LOOPD_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
}
