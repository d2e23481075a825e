//! `cargo xtask mutants`: tries each mutant in a copy of the tree. The working tree is never touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use xtask::mutants::{self, Mutant, Named, Verdict};
use xtask::repository::Repository;
use xtask::totals::Totals;

use crate::words;

/// A test program that has said nothing for so long hangs, which is red as well.
const PATIENCE: Duration = Duration::from_secs(120);

/// Tries the mutants of these names, or all.
pub fn mutants(root: &Path, names: &[String]) -> Result<()> {
    let repository = Repository::read_texts(root)?;
    let chosen = choose(mutants::read(&repository)?, names)?;
    no_lost_anchor(&repository, &chosen)?;
    let bench = Bench::prepare(root, &repository)?;
    bench.expect_green(&chosen)?;
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    for mutant in &chosen {
        let start = Instant::now();
        let verdict = bench.try_out(mutant)?;
        *counts.entry(verdict.word()).or_default() += 1;
        let seconds = start.elapsed().as_secs_f32();
        println!("{:<36} {:<8} {} ({seconds:.1} s)", mutant.name, verdict.word(), mutant.test);
        match verdict {
            Verdict::Caught | Verdict::Survived => {}
            Verdict::Weak(red) => println!("    red instead: {}", red.join(", ")),
            Verdict::Broken(log) => println!("{}", log.trim_end()),
        }
    }
    let count = |word| counts.get(word).copied().unwrap_or_default();
    let (caught, weak, survived, broken) = (count("caught"), count("weak"), count("survived"), count("broken"));
    println!("mutants={} caught={caught} weak={weak} survived={survived} broken={broken}", chosen.len());
    if caught == chosen.len() { Ok(()) } else { bail!("not every mutant turns its named test red") }
}

fn choose(all: Vec<Mutant>, names: &[String]) -> Result<Vec<Mutant>> {
    let known: BTreeSet<&str> = all.iter().map(|mutant| mutant.name.as_str()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name.as_str())) {
        bail!("there is no mutant `{unknown}`; there are: {}", known.into_iter().collect::<Vec<_>>().join(", "));
    }
    Ok(all.into_iter().filter(|mutant| names.is_empty() || names.contains(&mutant.name)).collect())
}

fn no_lost_anchor(repository: &Repository, chosen: &[Mutant]) -> Result<()> {
    let text = xtask::render(&[mutants::anchors(repository, chosen)]);
    if text.is_empty() { Ok(()) } else { bail!("{}", text.trim_end()) }
}

/// The copy of the tree, and where it is built.
struct Bench {
    tree: PathBuf,
    target: PathBuf,
}

/// A test program that cargo built.
#[derive(Debug, Clone)]
struct Program {
    file: PathBuf,
    folder: PathBuf,
}

/// What running a test program came to.
struct Ran {
    totals: Totals,
    failed: Vec<String>,
    good: bool,
}

impl Bench {
    fn prepare(root: &Path, repository: &Repository) -> Result<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
        let place = target.join("mutants");
        let bench = Bench { tree: place.join("tree"), target: place.join("target") };
        eprintln!("copying the tree to {}", bench.tree.display());
        mirror(root, &bench.tree, &repository.paths)?;
        Ok(bench)
    }

    /// A test that is red without the mutant, or that does not exist, would catch everything.
    fn expect_green(&self, chosen: &[Mutant]) -> Result<()> {
        let tests: BTreeSet<&Named> = chosen.iter().map(|mutant| &mutant.test).collect();
        eprintln!("{} named tests on the tree as it is", tests.len());
        for test in tests {
            let programs = match self.build(&test.package, Some(&test.target))? {
                Ok(programs) => programs,
                Err(log) => bail!("the tree does not build without a mutant:\n{log}"),
            };
            let ran = run_all(&programs, &["--exact", &test.path])?;
            if !ran.good || ran.totals.passed != 1 {
                bail!("`{test}` has to be one green test without a mutant; it came to: {}", ran.totals);
            }
        }
        Ok(())
    }

    fn try_out(&self, mutant: &Mutant) -> Result<Verdict> {
        let path = self.tree.join(&mutant.file);
        let whole = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        fs::write(&path, mutants::apply(mutant, &whole)?)?;
        let verdict = self.judge(mutant);
        fs::write(&path, whole)?;
        verdict
    }

    fn judge(&self, mutant: &Mutant) -> Result<Verdict> {
        let test = &mutant.test;
        let programs = match self.build(&test.package, Some(&test.target))? {
            Ok(programs) => programs,
            Err(log) => return Ok(Verdict::Broken(log)),
        };
        let named = run_all(&programs, &["--exact", &test.path])?;
        Verdict::of(!named.good, || {
            let programs = match self.build(&test.package, None)? {
                Ok(programs) => programs,
                Err(log) => bail!("the other tests of {} do not build:\n{log}", test.package),
            };
            Ok(run_all(&programs, &[])?.failed)
        })
    }

    /// Builds one test target of a package, or all. The inner error is the compiler's.
    fn build(&self, package: &str, target: Option<&str>) -> Result<std::result::Result<Vec<Program>, String>> {
        let arguments =
            ["test", "--quiet", "--no-run", "--all-features", "--message-format=json", "--package", package];
        let mut command = words::command(&arguments);
        match target {
            Some("lib") => command.arg("--lib"),
            Some("bin") => command.arg("--bins"),
            Some(target) => command.args(["--test", target]),
            None => command.arg("--tests"),
        };
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target).stdin(Stdio::null());
        // What cargo told us about xtask would rebuild half the tree.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_PKG_")) {
            command.env_remove(name);
        }
        let output = command.output().context("cannot start cargo")?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let errors = messages(&stdout).filter_map(|message| message.message?.rendered).collect::<String>();
            return Ok(Err(if errors.is_empty() {
                String::from_utf8_lossy(&output.stderr).into_owned()
            } else {
                errors
            }));
        }
        Ok(Ok(messages(&stdout).filter_map(program).collect()))
    }
}

#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    profile: Option<Profile>,
    message: Option<Diagnostic>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Diagnostic {
    rendered: Option<String>,
}

fn messages(stdout: &str) -> impl Iterator<Item = Message> {
    stdout.lines().filter_map(|line| serde_json::from_str(line).ok())
}

fn program(message: Message) -> Option<Program> {
    message.profile.filter(|profile| profile.test)?;
    Some(Program { file: message.executable?, folder: message.manifest_path?.parent()?.to_owned() })
}

fn run_all(programs: &[Program], arguments: &[&str]) -> Result<Ran> {
    if programs.is_empty() {
        bail!("cargo built no test program");
    }
    let mut all = Ran { totals: Totals::default(), failed: Vec::new(), good: true };
    for program in programs {
        let (output, good) = run(program, arguments)?;
        output.lines().for_each(|line| all.totals.add_line(line));
        let failed = mutants::failed_tests(&output);
        if !good && failed.is_empty() {
            all.failed.push(format!("{} (hung or died)", program.file.display()));
        }
        all.failed.extend(failed);
        all.good &= good;
    }
    Ok(all)
}

/// Runs a test program itself rather than cargo, so that ending a hung one leaves nothing behind.
fn run(program: &Program, arguments: &[&str]) -> Result<(String, bool)> {
    let mut command = Command::new(&program.file);
    command.args(arguments).current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot start {}", program.file.display()))?;
    let mut stdout = child.stdout.take().context("the child has no output")?;
    let (sender, output) = mpsc::channel();
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stdout.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    let output = match output.recv_timeout(PATIENCE) {
        Ok(output) => output,
        Err(_) => {
            child.kill()?;
            child.wait()?;
            return Ok((String::new(), false));
        }
    };
    let _ = reading.join();
    Ok((output, child.wait()?.success()))
}

/// Makes `tree` hold exactly `paths` of `root`. What is equal keeps its time, so that cargo builds only what changed.
fn mirror(root: &Path, tree: &Path, paths: &[String]) -> Result<()> {
    let wanted: BTreeSet<PathBuf> = paths.iter().map(|path| tree.join(path)).collect();
    if tree.exists() {
        remove_others(tree, &wanted)?;
    }
    for path in paths {
        let (from, to) = (root.join(path), tree.join(path));
        let bytes = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&to, bytes).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

fn remove_others(folder: &Path, wanted: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, wanted)?;
        } else if !wanted.contains(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
