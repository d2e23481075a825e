//! What goes wrong, as a person needs it: what, why, how to fix; with a stable code and an exit code.

use crate::exit::Exit;
use crate::paint::Paint;
use loopd_assemble::{Kind, Obstacle, ResolveError};
use loopd_store::{Expectation, StoreError};
use serde_json::json;
use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $exit:ident;)*) => {
        /// The stable codes. `docs/errors.md` has a line for each; a test compares.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code.
            #[cfg(test)]
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code as it is written.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// How the process ends.
            pub const fn exit(self) -> Exit {
                match self { $(Self::$name => Exit::$exit,)* }
            }
        }
    };
}

codes! {
    /// The command line.
    Usage = "E-USAGE", Usage;
    /// The question or input of a Run.
    Input = "E-INPUT", Usage;
    /// A manifest.
    Manifest = "E-MANIFEST", Usage;
    /// A model cannot be set up.
    Model = "E-MODEL", Usage;
    /// A key is missing.
    ModelKey = "E-MODEL-KEY", Usage;
    /// The file with facts about models.
    ModelList = "E-MODEL-LIST", Usage;
    /// Nothing is known of a model of this name.
    ModelUnknown = "E-MODEL-UNKNOWN", Conflict;
    /// A price is missing under a money limit.
    ModelPrice = "E-MODEL-PRICE", Usage;
    /// A tool cannot be set up.
    Tool = "E-TOOL", Usage;
    /// This program cannot run the Loop.
    CannotRun = "E-CANNOT-RUN", Usage;
    /// An answer does not fit its question.
    Answer = "E-ANSWER", Usage;
    /// A file is not there or does not read.
    File = "E-FILE", Conflict;
    /// Writing failed.
    Io = "E-IO", Failed;
    /// There is no store.
    StoreMissing = "E-STORE-MISSING", Conflict;
    /// Another process drives the store.
    StoreDriver = "E-STORE-DRIVER", Conflict;
    /// The store refused because something else changed.
    StoreConflict = "E-STORE-CONFLICT", Conflict;
    /// The store cannot be reached.
    StoreUnavailable = "E-STORE-UNAVAILABLE", Unreachable;
    /// No space.
    StoreFull = "E-STORE-FULL", Failed;
    /// The store contradicts itself.
    StoreCorrupt = "E-STORE-CORRUPT", Diverged;
    /// A newer release wrote the store.
    StoreNewer = "E-STORE-NEWER", Failed;
    /// Nobody knows whether a commit happened.
    StoreUnsure = "E-STORE-UNSURE", Failed;
    /// There is no such Run.
    RunUnknown = "E-RUN-UNKNOWN", Conflict;
    /// Several Runs begin like this.
    RunAmbiguous = "E-RUN-AMBIGUOUS", Conflict;
    /// The Run is not in a state for this.
    RunState = "E-RUN-STATE", Conflict;
    /// The Run is at its limit and nobody raised it.
    RunLimit = "E-RUN-LIMIT", BudgetExceeded;
    /// The Run was given up here.
    RunLost = "E-RUN-LOST", Failed;
    /// A journal does not verify.
    Journal = "E-JOURNAL", Diverged;
    /// There is no such question.
    QuestionUnknown = "E-QUESTION-UNKNOWN", Conflict;
    /// A fixture does not read.
    Fixture = "E-FIXTURE", Diverged;
    /// A secret was found.
    Secret = "E-SECRET", Diverged;
    /// Something is not what was committed.
    Verify = "E-VERIFY", Diverged;
    /// A replay diverged.
    Replay = "E-REPLAY", Diverged;
    /// This build decides otherwise than open Runs were decided.
    Upgrade = "E-UPGRADE", Diverged;
    /// A replay is not possible here.
    ReplayRust = "E-REPLAY-RUST", Inconclusive;
    /// No server answers.
    ServerUnreachable = "E-SERVER-UNREACHABLE", Unreachable;
    /// The server takes nothing now.
    ServerBusy = "E-SERVER-BUSY", Unreachable;
    /// There is no token for the server, or it does not know it.
    ServerToken = "E-SERVER-TOKEN", Usage;
    /// The token does not allow this.
    ServerForbidden = "E-SERVER-FORBIDDEN", PolicyDenied;
    /// The server knows nothing of this name.
    ServerNotFound = "E-SERVER-NOT-FOUND", Conflict;
    /// Several ids at the server begin like this.
    ServerAmbiguous = "E-SERVER-AMBIGUOUS", Conflict;
    /// What it is about stands differently at the server.
    ServerConflict = "E-SERVER-CONFLICT", Conflict;
    /// The request passes a limit, or contradicts itself.
    ServerInvalid = "E-SERVER-INVALID", Usage;
    /// The server failed.
    ServerFailed = "E-SERVER-FAILED", Failed;
    /// Time is over.
    Timeout = "E-TIMEOUT", TimedOut;
}

/// A problem. It is the error type of this program, converted to text and exit code in one place.
#[derive(Debug)]
pub struct Problem {
    /// Which one.
    pub code: Code,
    /// What happened.
    pub what: String,
    /// Why, where that is not plain.
    pub why: Option<String>,
    /// What to do.
    pub fix: Option<String>,
}

impl Problem {
    /// A problem of which nothing but what happened is known.
    pub fn new(code: Code, what: impl Into<String>) -> Self {
        Self { code, what: what.into(), why: None, fix: None }
    }

    /// Adds why.
    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// For people.
    pub fn text(&self, paint: Paint) -> String {
        let mut text = format!("{} {}", paint.bad(format!("error[{}]:", self.code.name())), self.what);
        for (label, line) in [("why", &self.why), ("fix", &self.fix)] {
            if let Some(line) = line {
                let rest = line.replace('\n', "\n       ");
                text.push_str(&format!("\n  {} {rest}", paint.dim(format!("{label}:"))));
            }
        }
        text
    }

    /// For programs.
    pub fn json(&self) -> String {
        let error = json!({ "code": self.code.name(), "what": self.what, "why": self.why, "fix": self.fix,
            "exit": self.code.exit().code() });
        json!({ "error": error }).to_string()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.what, self.code.name())
    }
}

impl std::error::Error for Problem {}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::new(Code::Io, error.to_string())
    }
}

impl From<Obstacle> for Problem {
    fn from(obstacle: Obstacle) -> Self {
        let Obstacle { kind, what, why, fix } = obstacle;
        let (code, what, fix) = match kind {
            Kind::Manifest => (Code::Manifest, what, fix),
            Kind::Model => (Code::Model, what, fix),
            Kind::Key => (Code::ModelKey, what, fix),
            Kind::ModelList => {
                let options = |_| "name another file with --models or LOOPD_MODELS, or none".to_owned();
                (Code::ModelList, what, fix.map(options))
            }
            Kind::Price => (Code::ModelPrice, what, fix),
            Kind::Tool => (Code::Tool, what, fix),
            Kind::Native { tool } => (Code::Tool, format!("there is no tool `{tool}` in loopctl"), fix),
            Kind::Place => {
                let fix = fix.map_or_else(
                    || "say where the manifest is now with --agent FILE".to_owned(),
                    |fix| format!("{fix}, or say with --agent FILE where the manifest is now"),
                );
                (Code::Tool, what, Some(fix))
            }
            Kind::CannotRun => (Code::CannotRun, what, fix),
            Kind::File => (Code::File, what, fix),
            Kind::Io => (Code::Io, what, fix),
        };
        Self { code, what, why, fix }
    }
}

impl From<ResolveError> for Problem {
    fn from(error: ResolveError) -> Self {
        match error {
            ResolveError::Store(error) => error.into(),
            ResolveError::Obstacle(obstacle) => obstacle.into(),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        // The operating system's numbers help nobody here.
        let text = error.to_string().split(" (os error ").next().unwrap_or_default().to_owned();
        match error {
            StoreError::Conflict(Expectation::InboxFull(_)) => {
                Self::new(Code::StoreConflict, "the run's inbox is full")
                    .fix("resume the run, so that it takes what waits")
            }
            StoreError::Conflict(Expectation::ItemTooLarge { bytes, limit, .. }) => {
                let what = format!("a message of {bytes} bytes is too large: a run takes {limit} at most");
                Self::new(Code::Input, what).fix("put it into a file, and send where it is")
            }
            StoreError::Conflict(Expectation::Sealed(run)) => Self::new(Code::RunState, format!("{run} has ended")),
            StoreError::Conflict(_) => {
                Self::new(Code::StoreConflict, text).why("somebody else changed it at the same time")
            }
            StoreError::Fenced(_) => Self::new(Code::StoreDriver, "another process has taken the store over")
                .why("this one was paused past its lease; what it did before is safe")
                .fix("watch the run there: loopctl run watch"),
            StoreError::DriverElsewhere(who) => {
                Self::new(Code::StoreDriver, format!("another process{who} drives this store"))
                    .why("one process at a time drives the runs of a store; others may list, watch, answer and cancel")
                    .fix("wait until it is done, watch it with `loopctl run watch`, or use another --store")
            }
            StoreError::Ambiguous(_) => Self::new(Code::StoreUnsure, text)
                .why("the process that writes went away at the wrong moment")
                .fix("look with `loopctl run show`; whatever is there is whole"),
            StoreError::Full(_) => Self::new(Code::StoreFull, text)
                .why("nothing of the last step was written; everything before it is safe")
                .fix("make room, then `loopctl run resume`"),
            StoreError::Unavailable(_) => Self::new(Code::StoreUnavailable, text)
                .fix("look at the path and its permissions with `loopctl doctor`"),
            StoreError::Corrupt(_) => Self::new(Code::StoreCorrupt, text)
                .fix("`loopctl store verify` names every run that is affected; restore a backup"),
            StoreError::ClientOnly => Self::new(Code::StoreConflict, text),
            StoreError::TooNew { .. } => Self::new(Code::StoreNewer, text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_has_its_line_in_the_documentation() {
        let text = include_str!("../../../docs/errors.md");
        let row = |code: &Code| format!("| `{}` | {} |", code.name(), code.exit().code());
        let missing: Vec<_> = Code::ALL.iter().map(row).filter(|row| !text.contains(row)).collect();
        assert_eq!(missing, Vec::<String>::new());
        let known: BTreeSet<_> = Code::ALL.iter().map(|code| code.name()).collect();
        let listed: BTreeSet<_> = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        assert_eq!(known, listed.into_iter().filter(|code| code.starts_with("E-")).collect());
    }

    #[test]
    fn an_item_that_is_too_large_is_a_problem_of_the_input_with_both_numbers() {
        let run = loopd_kernel::RunId([1; 16]);
        let large = StoreError::Conflict(Expectation::ItemTooLarge { run, bytes: 70, limit: 69 });
        let problem = Problem::from(large);
        assert_eq!(problem.code, Code::Input);
        assert_eq!(problem.what, "a message of 70 bytes is too large: a run takes 69 at most");
    }

    #[test]
    fn a_problem_says_what_why_and_how() {
        let problem = Problem::new(Code::Usage, "it is wrong").why("because").fix("do this\nand that");
        assert_eq!(
            problem.text(Paint::PLAIN),
            "error[E-USAGE]: it is wrong\n  why: because\n  fix: do this\n       and that"
        );
    }
}
