//! The repository's own machinery: the checks behind `cargo xtask check`, usable as ordinary tests.
//!
//! Every check returns a [`Scan`], which says how much it looked at. A scan that looked at nothing is itself
//! a violation, so a moved folder or a broken filter cannot turn a check silently green.

pub mod architecture;
pub mod mutants;
pub mod repository;
pub mod tidy;
pub mod totals;

use std::fmt;

/// One place that breaks one rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The file or folder, with a line where one is known.
    pub place: String,
    /// What is wrong there and what to do about it.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// The result of one check over the whole repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The name of the rule.
    pub rule: &'static str,
    /// How many things the check looked at.
    pub seen: usize,
    /// What it found.
    pub violations: Vec<Violation>,
}

impl Scan {
    /// Begins a check that has seen nothing yet.
    pub fn of(rule: &'static str) -> Self {
        Scan { rule, seen: 0, violations: Vec::new() }
    }

    /// Records one violation.
    pub fn report(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.violations.push(Violation { place: place.into(), message: message.into() });
    }

    /// Ends the check: a scan that saw nothing proves nothing and says so.
    #[must_use]
    pub fn finish(mut self) -> Self {
        if self.seen == 0 {
            self.report("xtask", "the scan looked at nothing: its filter no longer finds the sources");
        }
        self.violations.sort();
        self
    }
}

/// Lists every violation as text, one per line; empty when all is well.
pub fn render(scans: &[Scan]) -> String {
    scans
        .iter()
        .flat_map(|scan| scan.violations.iter().map(move |violation| format!("[{}] {violation}\n", scan.rule)))
        .collect()
}
