//! The exit codes, all of them, in one place.

use loopd_kernel::Outcome;
use loopd_runtime::RunEnd;
use std::process::ExitCode;

/// What the process tells its caller. The numbers are a promise: scripts and CI depend on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// It was done; a Run completed.
    Completed,
    /// It failed; a Run failed.
    Failed,
    /// The command line, a manifest, an input or the environment is wrong. Nothing was started.
    Usage,
    /// A Run reached a limit.
    BudgetExceeded,
    /// A Run went in circles.
    Stuck,
    /// A Run was interrupted, or waits for a person.
    Waiting,
    /// Policy forbade what a Run needs.
    PolicyDenied,
    /// A replay diverged, or something did not verify.
    Diverged,
    /// What was named is not there, or somebody else holds it.
    Conflict,
    /// The store cannot be reached.
    Unreachable,
    /// The question cannot be answered here.
    Inconclusive,
    /// The time that the caller gave is over.
    TimedOut,
    /// SIGINT.
    Signalled,
}

impl Exit {
    /// The number.
    pub const fn code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::BudgetExceeded => 3,
            Self::Stuck => 4,
            Self::Waiting => 5,
            Self::PolicyDenied => 6,
            Self::Diverged => 7,
            Self::Conflict => 8,
            Self::Unreachable => 9,
            Self::Inconclusive => 10,
            Self::TimedOut => 124,
            Self::Signalled => 130,
        }
    }

    /// What a Run's outcome means to the caller.
    pub const fn of_outcome(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Completed { .. } => Self::Completed,
            Outcome::BudgetExceeded { .. } => Self::BudgetExceeded,
            Outcome::Stuck { .. } => Self::Stuck,
            Outcome::Interrupted { .. } => Self::Waiting,
            Outcome::PolicyDenied { .. } => Self::PolicyDenied,
            Outcome::Failed { .. } => Self::Failed,
        }
    }

    /// What the end of driving a Run means to the caller.
    pub const fn of_end(end: &RunEnd) -> Self {
        match end {
            RunEnd::Ended(outcome) => Self::of_outcome(outcome),
            RunEnd::Suspended(_) | RunEnd::Released => Self::Waiting,
            RunEnd::Lost(_) => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
