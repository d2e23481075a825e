//! What each word does. Words print what they start, so that any of it can be repeated by hand.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use xtask::architecture::{self, Metadata};
use xtask::repository::Repository;
use xtask::tidy;
use xtask::totals::Totals;

/// All checks, cheapest first; every stage runs, so that one call shows everything there is to mend.
pub fn check(root: &Path) -> Result<()> {
    let mut failed = Vec::new();
    let mut stage = |name: &'static str, run: &dyn Fn() -> Result<()>| {
        let start = Instant::now();
        let result = run();
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        if let Err(error) = result {
            eprintln!("{error:#}");
            failed.push(name);
        }
        eprintln!("{name:<13} {verdict} ({:.1} s)", start.elapsed().as_secs_f32());
    };
    stage("fmt", &|| cargo(root, &["fmt", "--all", "--check"]));
    stage("tidy", &|| no_violations(&tidy::check(&Repository::read(root)?)?));
    stage("architecture", &|| no_violations(&architecture::check(&Metadata::read(root)?, &Repository::read(root)?)));
    stage("clippy", &|| cargo(root, &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]));
    if failed.is_empty() { Ok(()) } else { bail!("check failed: {}", failed.join(", ")) }
}

fn no_violations(scans: &[xtask::Scan]) -> Result<()> {
    let text = xtask::render(scans);
    if text.is_empty() { Ok(()) } else { bail!("{}", text.trim_end()) }
}

/// The whole test suite. The last line is the summary of the runner that ran it.
pub fn test(root: &Path) -> Result<()> {
    if has_nextest(root) {
        // Doc tests first, which nextest does not run: its summary of everything else stays the last word.
        let docs = cargo(root, &["test", "--quiet", "--workspace", "--doc", "--no-fail-fast"]);
        cargo(root, &["nextest", "run", "--workspace", "--no-fail-fast"])?;
        return docs;
    }
    // Without nextest every test binary ends in its own summary, so the total is added up here.
    let mut totals = Totals::default();
    let tests_passed = counted(root, &["test", "--workspace", "--all-targets", "--no-fail-fast"], &mut totals)?;
    let docs_passed = counted(root, &["test", "--workspace", "--doc", "--no-fail-fast"], &mut totals)?;
    if !(tests_passed && docs_passed) && totals.failed == 0 {
        bail!("the tests did not build, or a test program died; see above");
    }
    println!("\n{totals}");
    if tests_passed && docs_passed { Ok(()) } else { bail!("tests failed: {totals}") }
}

/// The main job, start to end, as its script shows it.
pub fn demo(root: &Path) -> Result<()> {
    let script = "examples/research-agent/demo.sh";
    require(root, script)?;
    run(root, Command::new("bash").arg(script))
}

/// A series of kills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kills {
    pub count: u32,
    /// Some of the kills are pauses that outlive a lease.
    pub zombies: bool,
}

/// Kills real processes again and again and counts what became of their effects. The last line is the tally.
pub fn kills(root: &Path, kills: Kills) -> Result<()> {
    require(root, "bin/loopctl/tests/kills.rs")?;
    // Not through nextest, which would end a long series, and whose summary would be the last word.
    let arguments = ["test", "--quiet", "--package", "loopctl", "--test", "kills", "e2e_kills", "--", "--nocapture"];
    let mut command = command(&arguments);
    command.env("LOOPD_KILLS", kills.count.to_string()).env("LOOPD_ZOMBIES", u8::from(kills.zombies).to_string());
    tallied(root, &mut command, "kills=")
}

/// The server as real processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct E2e {
    pub rounds: u32,
    /// A real model answers, too.
    pub real: bool,
}

/// An Operator of its own process, by script.
const INTERVIEW: &str = "examples/interview/demo.sh";

/// Kills real servers in the middle of what they do. The last line is the tally.
pub fn e2e(root: &Path, e2e: E2e) -> Result<()> {
    let (script, test) = ("scripts/e2e-real", "bin/loopd/tests/e2e.rs");
    if e2e.real {
        require(root, script)?;
        return run(root, Command::new("bash").arg(script).env("LOOPD_ROUNDS", e2e.rounds.to_string()));
    }
    require(root, test)?;
    require(root, INTERVIEW)?;
    tallied(root, Command::new("bash").arg(INTERVIEW), "interview kills=")?;
    let mut command = command(&["test", "--quiet", "--package", "loopd", "--test", "e2e", "--", "--nocapture"]);
    command.env("LOOPD_ROUNDS", e2e.rounds.to_string());
    tallied(root, &mut command, "e2e kills=")
}

/// Runs a series, and prints last the line that begins so, in which it says what it came to.
fn tallied(root: &Path, command: &mut Command, tally: &str) -> Result<()> {
    let mut found = None;
    let passed = streamed(root, command, |line| {
        let is_tally = line.starts_with(tally);
        if is_tally {
            found = Some(line.to_owned());
        }
        !is_tally
    })?;
    match &found {
        Some(found) => println!("{found}"),
        None => bail!("the series ended without a tally; see above"),
    }
    if passed { Ok(()) } else { bail!("the series found something; see above") }
}

/// What tells glibc to keep freed memory at hand instead of giving it back.
const MALLOC: (&str, &str) = (
    "GLIBC_TUNABLES",
    "glibc.malloc.tcache_count=2000:glibc.malloc.trim_threshold=268435456:glibc.malloc.top_pad=16777216",
);

/// Which seeds the simulation runs.
#[derive(Debug, Clone, Copy)]
pub enum Seeds {
    /// From 0 on.
    Many(u64),
    /// One again.
    One(u64),
}

/// Runs the simulation, optimised. Not through nextest, which would end a long run.
pub fn sim(root: &Path, seeds: Seeds) -> Result<()> {
    let arguments = ["test", "--quiet", "--profile", "sim", "--package", "loopd-runtime", "--test", "simulation"];
    let mut command = command(&arguments);
    // Worlds come and go by the thousand: what one has freed serves the next. Other allocators do not look at it.
    if std::env::var_os(MALLOC.0).is_none() {
        command.env(MALLOC.0, MALLOC.1);
    }
    match seeds {
        Seeds::Many(count) => command.env("LOOPD_SEEDS", count.to_string()),
        Seeds::One(seed) => command.env("LOOPD_SEED", seed.to_string()),
    };
    // One story after the other, so that each has a core for itself while its speed is measured.
    run(root, command.args(["--", "--nocapture", "--test-threads=1"]))
}

/// Builds the benchmarks optimised and hands them the rest of the command line.
pub fn bench(root: &Path, arguments: &[OsString]) -> Result<()> {
    require(root, "bench/Cargo.toml")?;
    // The server is measured as the process that people start.
    cargo(root, &["build", "--quiet", "--profile", "bench", "--package", "loopd"])?;
    let build = ["run", "--quiet", "--profile", "bench", "--package", "loopd-bench", "--bin", "loopd-bench", "--"];
    run(root, command(&build).args(arguments))
}

fn require(root: &Path, path: &str) -> Result<()> {
    if root.join(path).exists() { Ok(()) } else { bail!("{path} is missing in this checkout") }
}

fn has_nextest(root: &Path) -> bool {
    let asked =
        command(&["nextest", "--version"]).current_dir(root).stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// The cargo that started us, so that a `+toolchain` choice holds for everything below.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<()> {
    run(root, &mut command(arguments))
}

fn run(root: &Path, command: &mut Command) -> Result<()> {
    let shown = shown(command);
    eprintln!("$ {shown}");
    let status = command.current_dir(root).status().with_context(|| format!("cannot start `{shown}`"))?;
    if status.success() { Ok(()) } else { bail!("`{shown}` failed ({status})") }
}

/// Passes the output on while adding up its result lines; says whether the command succeeded.
fn counted(root: &Path, arguments: &[&str], totals: &mut Totals) -> Result<bool> {
    streamed(root, &mut command(arguments), |line| {
        totals.add_line(line);
        true
    })
}

/// Passes those lines of the output on that `look` wants to be seen; says whether the command succeeded.
fn streamed(root: &Path, command: &mut Command, mut look: impl FnMut(&str) -> bool) -> Result<bool> {
    let shown = shown(command);
    eprintln!("$ {shown}");
    let started = command.current_dir(root).stdout(Stdio::piped()).spawn();
    let mut child = started.with_context(|| format!("cannot start `{shown}`"))?;
    let output = child.stdout.take().context("the child has no output")?;
    for line in BufReader::new(output).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        if look(&line) {
            println!("{line}");
        }
    }
    Ok(child.wait()?.success())
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
