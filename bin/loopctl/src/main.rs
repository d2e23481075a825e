//! The command line of loopd: starts, shows, watches, resumes, records and replays runs, and
//! talks in the conversations of a server.
//!
//! A composition root: it names the store; `loopd-assemble` makes agents of manifests. Reading order: [`cli`]
//! (what may be written), [`commands`] (what it does), [`drive`] (one run in this process), [`server`] (a platform server, through
//! its API), [`problem`] and [`exit`]
//! (how things go wrong).
#![forbid(unsafe_code)]

mod attach;
mod chat;
mod cli;
mod commands;
mod context;
mod drive;
mod exit;
mod files;
mod find;
mod journal;
mod layout;
mod output;
mod paint;
mod place;
mod problem;
mod server;
mod signals;
mod steps;
mod words;

use clap::Parser;
use cli::Cli;
use context::Context;
use exit::Exit;
use problem::{Code, Problem};
use signals::Signals;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are data; everything else is a complaint. Both know where they belong.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Completed.into() };
        }
    };
    log(cli.global.verbose);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::note(&Problem::new(Code::Io, error.to_string()).text(paint::Paint::PLAIN));
            return Exit::Failed.into();
        }
    };
    let exit = runtime.block_on(until_done(cli));
    // Whatever still runs is no longer waited for: what is committed is committed.
    runtime.shutdown_background();
    exit.into()
}

async fn until_done(cli: Cli) -> Exit {
    let signals = Signals::default();
    tokio::select! {
        biased;
        exit = signals.listen() => exit,
        exit = work(cli, signals.clone()) => exit,
    }
}

async fn work(cli: Cli, signals: Signals) -> Exit {
    let format = commands::format(&cli.command);
    let paint = paint::Paint::for_stream(cli.global.color, output::stderr_is_terminal());
    let done = match Context::new(&cli.global, signals) {
        Ok(context) => commands::run(cli.command, &context).await,
        Err(problem) => Err(problem),
    };
    done.unwrap_or_else(|problem| {
        output::note(&if format.is_json() { problem.json() } else { problem.text(paint) });
        problem.code.exit()
    })
}

/// The log goes to stderr; how much of it, the option or LOOPD_LOG says.
fn log(verbose: u8) {
    let level = match verbose {
        0 => "error",
        1 => "warn,loopd_runtime=info,loopd_store_sqlite=info,loopd_providers=info,loopctl=info",
        2 => "info,loopd_runtime=debug,loopd_store_sqlite=debug,loopd_providers=debug,loopctl=debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_env("LOOPD_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
}
