//! Adds up the result lines of a run of `cargo test`, which prints one per test binary and no total.

use std::fmt;

/// How many tests ended how.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that were not run.
    pub ignored: u64,
}

impl Totals {
    /// Takes one line of output into account, if it is a result line.
    pub fn add_line(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let Some((_, counts)) = result.split_once(". ") else {
            return;
        };
        for part in counts.split("; ") {
            match part.split_once(' ') {
                Some((count, "passed")) => self.passed += count.parse().unwrap_or(0),
                Some((count, "failed")) => self.failed += count.parse().unwrap_or(0),
                Some((count, "ignored")) => self.ignored += count.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} ignored", self.passed, self.failed, self.ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::Totals;

    #[test]
    fn result_lines_are_added_and_other_lines_ignored() {
        let mut totals = Totals::default();
        for line in [
            "running 3 tests",
            "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test a::b ... FAILED",
            "test result: FAILED. 4 passed; 3 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.01s",
        ] {
            totals.add_line(line);
        }
        assert_eq!(totals, Totals { passed: 6, failed: 3, ignored: 1 });
        assert_eq!(totals.to_string(), "6 passed, 3 failed, 1 ignored");
    }
}
