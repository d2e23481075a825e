//! Mutants: single faults that somebody could make, each with the named test that must go red.
//!
//! A suite that stays green on a broken program proves nothing. `xtask/mutants.toml` breaks the program on purpose,
//! one promise at a time; `cargo xtask mutants` tries each in a copy of the tree, and the anchor check keeps the
//! list in step with the sources.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::Scan;
use crate::repository::Repository;

/// The list, relative to the root.
pub const LIST: &str = "xtask/mutants.toml";
/// The table that says which promise a mutant breaks.
pub const TABLE: &str = "docs/invariants.md";

/// One fault.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// What it is called: words with hyphens.
    pub name: String,
    /// The file that it changes, relative to the root.
    pub file: String,
    /// The exact text that it replaces; it occurs once in the file.
    pub find: String,
    /// What stands there instead.
    pub replace: String,
    /// The test that must go red.
    pub test: Named,
}

/// A test by name: `PACKAGE TARGET PATH`, where the target is an integration test or `lib`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Named {
    /// The package.
    pub package: String,
    /// The test target, or `lib`.
    pub target: String,
    /// The test within it, as its harness calls it.
    pub path: String,
}

impl TryFrom<String> for Named {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let words: Vec<&str> = text.split(' ').collect();
        match words[..] {
            [package, target, path] if !(package.is_empty() || target.is_empty() || path.is_empty()) => {
                Ok(Named { package: package.to_owned(), target: target.to_owned(), path: path.to_owned() })
            }
            _ => Err(format!("`{text}` is no test: write `PACKAGE TARGET PATH`")),
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.package, self.target, self.path)
    }
}

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The named test went red.
    Caught,
    /// The named test stayed green; these others of its package went red.
    Weak(Vec<String>),
    /// No test of the package noticed.
    Survived,
    /// It does not compile, so that nothing was tried.
    Broken(String),
}

impl Verdict {
    /// The verdict over a mutant that compiles. `others` is asked only when the named test stayed green.
    ///
    /// # Errors
    /// Those of `others`.
    pub fn of(named_is_red: bool, others: impl FnOnce() -> Result<Vec<String>>) -> Result<Self> {
        if named_is_red {
            return Ok(Verdict::Caught);
        }
        let red = others()?;
        Ok(if red.is_empty() { Verdict::Survived } else { Verdict::Weak(red) })
    }

    /// The one word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Caught => "caught",
            Verdict::Weak(_) => "weak",
            Verdict::Survived => "survived",
            Verdict::Broken(_) => "broken",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

/// Reads the list.
///
/// # Errors
/// It is missing or does not parse.
pub fn read(repository: &Repository) -> Result<Vec<Mutant>> {
    let text = repository.text(LIST).with_context(|| format!("{LIST} is missing"))?;
    let list: List = toml::from_str(text).with_context(|| format!("{LIST} does not read"))?;
    Ok(list.mutant)
}

/// The mutated text.
///
/// # Errors
/// The anchor does not occur exactly once.
pub fn apply(mutant: &Mutant, text: &str) -> Result<String> {
    match text.matches(&mutant.find).count() {
        1 => Ok(text.replacen(&mutant.find, &mutant.replace, 1)),
        0 => bail!("`{}` has lost its place in {}", mutant.name, mutant.file),
        several => bail!("`{}` fits {several} places in {}", mutant.name, mutant.file),
    }
}

/// Every mutant still applies, changes something, names a test that exists, and stands in the table.
pub fn anchors(repository: &Repository, mutants: &[Mutant]) -> Scan {
    let mut scan = Scan::of("mutants");
    let mut names = BTreeSet::new();
    let table = repository.text(TABLE).unwrap_or_default();
    for mutant in mutants {
        scan.seen += 1;
        let place = format!("{LIST}: {}", mutant.name);
        if !names.insert(&mutant.name) {
            scan.report(&place, "is listed twice");
        }
        match repository.text(&mutant.file).map(|text| apply(mutant, text)) {
            None => scan.report(&place, format!("there is no file {}", mutant.file)),
            Some(Err(error)) => scan.report(&place, format!("{error:#}")),
            Some(Ok(_)) => {}
        }
        if mutant.find == mutant.replace {
            scan.report(&place, "changes nothing");
        }
        if !defines(repository, &mutant.test) {
            scan.report(&place, format!("there is no test `{}`", mutant.test));
        }
        if !table.contains(&format!("`{}`", mutant.name)) {
            scan.report(&place, format!("stands in no row of {TABLE}"));
        }
    }
    scan.finish()
}

/// Whether the sources define a function, or list a case of a kit, by the test's last name.
fn defines(repository: &Repository, test: &Named) -> bool {
    let name = test.path.rsplit("::").next().unwrap_or_default();
    let is_name = |word: &str| word == name;
    let joins = |c: char| !(c.is_alphanumeric() || c == '_');
    let is_source = |path: &str| {
        path.ends_with(".rs") && ["crates/", "bin/", "xtask/"].iter().any(|folder| path.starts_with(folder))
    };
    let says = |text: &str| text.contains(name) && text.split(joins).any(is_name);
    repository.texts.iter().any(|file| is_source(&file.path) && says(&file.text))
}

/// The tests that the output of a test program calls failed.
pub fn failed_tests(output: &str) -> Vec<String> {
    let name = |line: &str| line.strip_prefix("test ")?.strip_suffix(" ... FAILED").map(str::to_owned);
    output.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_read_from_the_output_of_the_harness() {
        let output = "running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\n\nfailures:\n    a::c\n";
        assert_eq!(failed_tests(output), ["a::c"]);
    }

    #[test]
    fn others_are_asked_only_when_the_named_test_stayed_green() -> Result<()> {
        assert_eq!(Verdict::of(true, || bail!("asked"))?, Verdict::Caught);
        assert_eq!(Verdict::of(false, || Ok(vec!["b".to_owned()]))?, Verdict::Weak(vec!["b".to_owned()]));
        assert_eq!(Verdict::of(false, || Ok(Vec::new()))?, Verdict::Survived);
        Ok(())
    }
}
