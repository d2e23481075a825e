//! Benchmarks: the durable loop beside the physical limits of this disk, taken in the same minutes.
//!
//! Every workload runs as a process of its own, so that memory, writes and flushes are its own. Absolute
//! figures do not travel between machines; ratios and counts do.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod floor;
mod meter;
mod noop;
mod operated;
mod probe;
mod report;
mod routed;
mod serve;
mod served;
mod subject;
mod turnaround;
mod wire;
mod workload;

use anyhow::{Context as _, Result};
use clap::Parser;
use std::path::PathBuf;

/// Measures the durable loop and the limits that it is compared with.
#[derive(Debug, Parser)]
#[command(name = "loopd-bench")]
struct Args {
    /// A minute's version: smaller counts, one round.
    #[arg(long)]
    quick: bool,
    /// Also writes every figure as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Rounds; floors and workloads are interleaved and medians reported.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Runs only workloads whose name contains this.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Runs one workload in this process and prints its figures as one line of JSON.
    #[arg(long, value_name = "NAME", hide = true)]
    probe: Option<String>,
    /// Parameters of that workload, `key=value`.
    #[arg(hide = true)]
    parameters: Vec<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(name) = &args.probe {
        let parameters = probe::Parameters::parse(&args.parameters);
        println!("{}", probe::run(name, &parameters).with_context(|| format!("workload {name}"))?);
        return Ok(());
    }
    let rounds = if args.quick { 1 } else { args.rounds.max(1) };
    let report = report::measure(args.quick, rounds, args.only.as_deref())?;
    println!("{}", report.table());
    if let Some(path) = &args.json {
        std::fs::write(path, report.json()?).with_context(|| format!("writing {}", path.display()))?;
        eprintln!("wrote {}", path.display());
    }
    report.gates()
}
