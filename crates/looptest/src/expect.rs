//! What a replayed Run is expected to be. Each expectation names the recording, what was expected and what happened.

use crate::fail::{contrast, fail, must};
use crate::locate;
use crate::ordered;
use crate::replay::Replayed;
use loopd_fixture::trajectory::{Step, StepKind, Trajectory, outcome};
use loopd_fixture::{canonical, excerpt};
use loopd_kernel::projection::Status;
use loopd_kernel::{MicroUsd, Outcome};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::path::Path;

impl Replayed {
    /// The recording's name in messages: its path, or the Run.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The steps.
    #[must_use]
    pub const fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    /// The outcome, parked or sealed; `None` while the recorded Run was open.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        self.projection.outcome().map(|(outcome, _)| outcome)
    }

    /// The texts that were published.
    pub fn spoken(&self) -> impl Iterator<Item = &str> {
        self.trajectory.steps.iter().filter(|step| step.kind == StepKind::Speak).map(|step| step.args.as_str())
    }

    /// The Run has completed; returns its output.
    ///
    /// # Panics
    /// When it has another outcome or none, or the output is not a `T`.
    #[track_caller]
    pub fn expect_completed<T: DeserializeOwned>(&self) -> T {
        let Some(Outcome::Completed { output }) = self.outcome() else {
            self.expect_outcome("Completed");
            fail(format!("{}: the outcome has no output", self.name));
        };
        let what = format!("{}: the output is not a {}", self.name, std::any::type_name::<T>());
        match serde_json::from_str(output) {
            Ok(value) => value,
            Err(error) => fail(format!("{what}: {error}\n  {}", excerpt::line(output, 400))),
        }
    }

    /// The Run has an outcome of this name, for example `Failed` or `BudgetExceeded`.
    ///
    /// # Panics
    /// When it has another one, or none.
    #[track_caller]
    pub fn expect_outcome(&self, name: &str) -> &Self {
        if self.outcome().map(Outcome::name) != Some(name) {
            let actual = match &self.projection.status {
                Status::Open => "it was still open when it was recorded".into(),
                Status::Parked(parked) => format!("parked: {}", outcome(parked)),
                Status::Ended(ended) => outcome(ended),
            };
            self.fail(&format!("expected the outcome {name}, and it is {}", excerpt::line(&actual, 400)));
        }
        self
    }

    /// Exactly these tools were called, in this order.
    ///
    /// # Panics
    /// When others were, or in another order.
    #[track_caller]
    pub fn expect_tools(&self, names: &[&str]) -> &Self {
        let actual: Vec<&str> = self.tool_names();
        if actual != names {
            self.fail(&format!("other tools were called\n{}", contrast(&listed(names), &listed(&actual))));
        }
        self
    }

    /// Exactly these tools were called, each as often as it is named, in any order.
    ///
    /// # Panics
    /// When others were, or a different number of times.
    #[track_caller]
    pub fn expect_tools_unordered(&self, names: &[&str]) -> &Self {
        let (mut expected, mut actual) = (names.to_vec(), self.tool_names());
        expected.sort_unstable();
        actual.sort_unstable();
        if actual != expected {
            self.fail(&format!("other tools were called\n{}", contrast(&listed(&expected), &listed(&actual))));
        }
        self
    }

    /// The tool call number `n`, the first being 0, was made with these arguments: a `serde_json::Value` or JSON text. Key
    /// order and white space do not count; numbers do, by their exact text.
    ///
    /// # Panics
    /// When there was no such call, or it had other arguments.
    #[track_caller]
    pub fn expect_tool_args(&self, n: usize, args: impl Display) -> &Self {
        let Some(step) = self.trajectory.tools().nth(n) else {
            let made = self.trajectory.tools().count();
            self.fail(&format!("expected a tool call number {n}, counted from 0, and there are {made}"));
        };
        let (expected, actual) = (canonical::json(&args.to_string()), canonical::json(&step.args));
        if expected != actual {
            let differs = contrast(&spread(&expected), &spread(&actual));
            self.fail(&format!("tool call {n} (`{}`, entry {}) had other arguments\n{differs}", step.name, step.seq));
        }
        self
    }

    /// No more money was spent.
    ///
    /// # Panics
    /// When more was.
    #[track_caller]
    pub fn expect_spend_at_most(&self, limit: MicroUsd) -> &Self {
        let unknown =
            |s: &&Step| s.kind == StepKind::Model && s.cost.is_none() && s.usage.is_none_or(|u| u.total() > 0);
        if let Some(step) = self.trajectory.steps.iter().find(unknown) {
            self.fail(&format!("entry {}: nobody knows what this model call cost", step.seq));
        }
        let spent = self.projection.ledger.spent;
        if spent > limit {
            self.fail(&format!("expected to spend at most {limit}, and it spent {spent}"));
        }
        self
    }

    /// No more tokens were consumed, those included whose use nobody reported.
    ///
    /// # Panics
    /// When more were.
    #[track_caller]
    pub fn expect_tokens_at_most(&self, limit: u64) -> &Self {
        self.at_most("tokens", self.projection.ledger.tokens(), limit)
    }

    /// No more iterations were started.
    ///
    /// # Panics
    /// When more were.
    #[track_caller]
    pub fn expect_iterations_at_most(&self, limit: u64) -> &Self {
        self.at_most("iterations", self.projection.ledger.iterations, limit)
    }

    /// No more model calls were made.
    ///
    /// # Panics
    /// When more were.
    #[track_caller]
    pub fn expect_model_calls_at_most(&self, limit: u64) -> &Self {
        self.at_most("model calls", self.projection.ledger.model_calls, limit)
    }

    /// The State at the end of the recording.
    ///
    /// # Panics
    /// When it is not an `S`.
    #[track_caller]
    pub fn expect_state<S: DeserializeOwned>(&self) -> S {
        let what = format!("{}: the State is not a {}", self.name, std::any::type_name::<S>());
        must(&what, serde_json::from_str(&self.projection.state))
    }

    /// Every recorded State reads as `S` and is written the same again, so that no unordered map is in it.
    ///
    /// # Panics
    /// When one is not; the message shows where.
    #[track_caller]
    pub fn expect_state_ordered<S: DeserializeOwned + Serialize>(&self) -> &Self {
        for state in &self.states {
            if let Err(message) = ordered::check::<S>(state) {
                self.fail(&message);
            }
        }
        self
    }

    /// Some published text contains this.
    ///
    /// # Panics
    /// When none does.
    #[track_caller]
    pub fn expect_spoken(&self, text: &str) -> &Self {
        if !self.spoken().any(|spoken| spoken.contains(text)) {
            let spoken: Vec<String> = self.spoken().map(|text| excerpt::line(text, 200)).collect();
            let spoken = if spoken.is_empty() { "nothing was said".into() } else { listed(&spoken) };
            self.fail(&format!("nobody said {text:?}\n{spoken}"));
        }
        self
    }

    /// The Trajectory as people read it is the text of this file, without the Run's identity and the times. With
    /// `UPDATE_EXPECT` set, the file is written instead.
    ///
    /// # Panics
    /// When the texts differ or the file cannot be read or written.
    #[track_caller]
    pub fn expect_trajectory(&self, path: impl AsRef<Path>) -> &Self {
        let path = path.as_ref();
        let (place, actual) = (locate::place(path), self.snapshot());
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            must(&path.display().to_string(), std::fs::write(place, actual));
            return self;
        }
        let expected = match std::fs::read_to_string(place) {
            Ok(text) => text.replace("\r\n", "\n"),
            Err(error) => self.fail(&format!("{}: {error}; UPDATE_EXPECT=1 writes it", path.display())),
        };
        if expected != actual {
            let differs = contrast(&expected, &actual);
            self.fail(&format!("the trajectory is not {}; UPDATE_EXPECT=1 rewrites it\n{differs}", path.display()));
        }
        self
    }

    /// The steps without what differs between two recordings of the same thing.
    fn snapshot(&self) -> String {
        let still = |step: &Step| Step { duration_ms: None, ..step.clone() };
        let steps: String = self.trajectory.steps.iter().map(|step| still(step).render(160)).collect();
        let outcome = match self.outcome() {
            Some(outcome) => excerpt::line(&loopd_fixture::trajectory::outcome(outcome), 400),
            None => "still open".into(),
        };
        format!("{steps}{outcome}\n")
    }

    fn tool_names(&self) -> Vec<&str> {
        self.trajectory.tools().map(|step| step.name.as_str()).collect()
    }

    #[track_caller]
    fn at_most(&self, what: &str, actual: u64, limit: u64) -> &Self {
        if actual > limit {
            self.fail(&format!("expected at most {limit} {what}, and there are {actual}"));
        }
        self
    }

    #[track_caller]
    fn fail(&self, message: &str) -> ! {
        fail(format!("{}: {message}\n\n{}", self.name, self.trajectory.render(110)))
    }
}

fn listed(names: &[impl AsRef<str>]) -> String {
    names.iter().map(|name| format!("{}\n", name.as_ref())).collect()
}

/// A small JSON object over several lines, so that a difference is a line.
fn spread(json: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(json);
    // Pretty printing must not hide the difference that numbers make.
    let keeps = |value: &serde_json::Value| serde_json::to_string(value).is_ok_and(|text| text == json);
    match value.ok().filter(keeps) {
        Some(value) => serde_json::to_string_pretty(&value).unwrap_or_else(|_| json.into()),
        None => json.into(),
    }
}
