//! `replay`: the agent's decisions once more, over the recorded facts, and compared. No key, no network, no store.

use crate::cli::ReplayArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::files;
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use crate::words;
use loopd_agent::Agent;
use loopd_fixture::{Fixture, excerpt};
use loopd_kernel::replay::{Divergence, ReplayError, Replayer, Strictness};
use loopd_kernel::{ErasedLoop, Seq};
use serde::Serialize;
use std::path::Path;

/// Lines of a difference that are shown.
const LINES: usize = 60;

/// What a replay came to.
#[derive(Serialize)]
struct Finding {
    file: String,
    agrees: bool,
    mode: &'static str,
    entries: u64,
    decisions: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    divergence: Option<Differs>,
}

/// Where it diverged first.
#[derive(Serialize)]
struct Differs {
    seq: Seq,
    what: &'static str,
    recorded: String,
    replayed: String,
}

/// Replays fixtures.
pub fn replay(context: &Context, args: &ReplayArgs) -> Result<Exit, Problem> {
    let strictness = if args.structure { Strictness::Structure } else { Strictness::Strict };
    let mut findings = Vec::new();
    for path in &args.files {
        findings.push(one(path, strictness)?);
    }
    let format = args.format.format;
    match format {
        Format::Json | Format::Jsonl => output::json_list(format, &findings)?,
        Format::Name => {
            for finding in findings.iter().filter(|finding| !finding.agrees) {
                output::line(&finding.file)?;
            }
        }
        Format::Table => {
            for finding in &findings {
                output::line(&text(context, finding))?;
            }
        }
    }
    match findings.iter().find(|finding| !finding.agrees) {
        None => Ok(Exit::Completed),
        Some(first) => Err(Problem::new(
            Code::Replay,
            format!("{} diverges: {}", first.file, first.problem.as_deref().unwrap_or_default()),
        )
        .why("this build of the agent decides otherwise than the recording")
        .fix("if the change is meant, record the run anew; --structure compares the calls and not their texts")),
    }
}

fn one(path: &Path, strictness: Strictness) -> Result<Finding, Problem> {
    let fixture = files::fixture(path)?;
    let agent = agent(&fixture, path)?;
    let mut replayer = Replayer::new(fixture.header.run, Some(&agent), strictness);
    let error = fixture.entries.iter().find_map(|entry| replayer.take(entry).err().map(|error| (entry.seq, error)));
    let (problem, divergence) = match error {
        None => (None, None),
        Some((_, ReplayError::Divergence(divergence))) => {
            let Divergence { seq, what, recorded, replayed } = *divergence;
            (Some(format!("entry {seq}: not the same {what}")), Some(Differs { seq, what, recorded, replayed }))
        }
        Some((_, other)) => (Some(other.to_string()), None),
    };
    Ok(Finding {
        file: path.display().to_string(),
        agrees: problem.is_none(),
        mode: match strictness {
            Strictness::Strict => "strict",
            Strictness::Structure => "structure",
        },
        entries: replayer.verifier().head().0.0,
        decisions: replayer.decisions(),
        problem,
        divergence,
    })
}

/// The agent from the file alone.
fn agent(fixture: &Fixture, path: &Path) -> Result<Agent, Problem> {
    let name = excerpt::line(&fixture.header.loop_name, 60);
    if fixture.definition().is_empty() {
        return Err(Problem::new(Code::ReplayRust, format!("{}: `{name}` is a loop in Rust", path.display()))
            .why("its decisions are code that this program does not have; chain and fold verify")
            .fix("replay it in that loop's own tests: looptest::replay(…)"));
    }
    let agent = Agent::from_definition(fixture.definition());
    let agent = agent.map_err(|error| {
        let what = format!("{}: {}", path.display(), excerpt::lines(&error.to_string()));
        Problem::new(Code::ReplayRust, what).why("the recorded definition is of a form that this build does not read")
    })?;
    debug_assert_eq!(agent.name(), fixture.header.loop_name);
    Ok(agent)
}

fn text(context: &Context, finding: &Finding) -> String {
    let paint = context.paint;
    let Some(problem) = &finding.problem else {
        let decisions = words::plural(finding.decisions, "decision", "decisions");
        let entries = words::plural(finding.entries, "entry", "entries");
        return format!("{} {}  {}: {decisions} over {entries}", paint.good("agrees  "), finding.file, finding.mode);
    };
    let mut text = format!("{} {}  {}: {problem}", paint.bad("diverges"), finding.file, finding.mode);
    if let Some(differs) = &finding.divergence {
        for (mark, what, side) in [("-", "recorded", &differs.recorded), ("+", "replayed", &differs.replayed)] {
            text.push_str(&format!("\n{}", paint.dim(format!("{mark} {what}"))));
            let lines = excerpt::lines(side);
            for line in lines.lines().take(LINES) {
                let line = format!("{mark} {}", excerpt_line(line));
                text.push_str(&format!("\n{}", if mark == "-" { paint.bad(line) } else { paint.good(line) }));
            }
        }
    }
    text
}

/// A line of a difference, bounded but with its indentation.
fn excerpt_line(line: &str) -> String {
    let indent: String = line.chars().take_while(|character| *character == ' ').take(40).collect();
    format!("{indent}{}", excerpt::line(line, 400))
}
