//! Replaying a recording: the chain, the fold, and every decision again.

use crate::fail::{contrast_as, fail, must};
use crate::locate;
use loopd_agent::Agent;
use loopd_fixture::trajectory::{Builder, Trajectory};
use loopd_fixture::{Fixture, excerpt};
use loopd_kernel::replay::{Divergence, ReplayError, Replayer, Strictness};
use loopd_kernel::{ErasedLoop, Loop, Projection, erase};
use std::fmt;
use std::panic::Location;
use std::path::Path;
use std::sync::Arc;

/// A recording, read and whole: its chain is intact.
#[must_use = "a recording that is not replayed proves nothing"]
pub struct Recorded {
    name: String,
    fixture: Fixture,
    definition: Option<Arc<dyn ErasedLoop>>,
}

/// A recording that was replayed; what it is expected to be is said here.
pub struct Replayed {
    pub(crate) name: String,
    pub(crate) trajectory: Trajectory,
    pub(crate) projection: Projection,
    pub(crate) states: Vec<String>,
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replayed").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Reads a `.loopfix` file. A relative path is looked for in the package of the test.
///
/// # Panics
/// When there is no such file, or it is not the one that was written; the message names line and entry.
#[track_caller]
pub fn replay(path: impl AsRef<Path>) -> Recorded {
    let path = path.as_ref();
    let found = match locate::find(path, Location::caller().file()) {
        Ok(found) => found,
        Err(message) => fail(message),
    };
    let name = path.display().to_string();
    let bytes = must(&name, std::fs::read(found));
    let fixture = must(&name, loopd_fixture::read(&bytes));
    Recorded { name, fixture, definition: None }
}

/// Takes a recording that is in memory, for example of [`record`](crate::record()).
pub fn replay_fixture(fixture: Fixture) -> Recorded {
    Recorded { name: fixture.header.run.to_string(), fixture, definition: None }
}

impl Recorded {
    /// The Loop in Rust that was recorded.
    pub fn with_loop<L: Loop>(self, inner: L) -> Self {
        self.with_definition(erase(inner, Vec::new()))
    }

    /// The Loop that was recorded, in its erased form: for a Loop that has a definition beside its code.
    pub fn with_definition(mut self, definition: Arc<dyn ErasedLoop>) -> Self {
        self.definition = Some(definition);
        self
    }

    /// What was recorded.
    #[must_use]
    pub const fn fixture(&self) -> &Fixture {
        &self.fixture
    }

    /// Runs every decision again: each has to be the recorded one, with the same State, arguments and requests.
    ///
    /// # Panics
    /// At the first difference, and when it is not known which Loop to run.
    #[track_caller]
    pub fn strict(self) -> Replayed {
        self.run_again(Strictness::Strict)
    }

    /// Runs every decision again: the same calls have to be made in the same order; texts and State may differ.
    ///
    /// # Panics
    /// At the first difference, and when it is not known which Loop to run.
    #[track_caller]
    pub fn structure(self) -> Replayed {
        self.run_again(Strictness::Structure)
    }

    /// Runs no decision again: only the chain is verified and the Journal folded. This proves what was recorded, not
    /// that the code of today decides the same.
    ///
    /// # Panics
    /// When the Journal does not fold.
    #[track_caller]
    pub fn as_recorded(self) -> Replayed {
        self.verify(None, Strictness::Strict)
    }

    #[track_caller]
    fn run_again(mut self, strictness: Strictness) -> Replayed {
        let definition = match self.definition.take().map_or_else(|| self.agent(), Ok) {
            Ok(definition) => definition,
            Err(message) => fail(format!("{} cannot be replayed: {message}", self.name)),
        };
        let (ours, recorded) = (definition.name(), &self.fixture.header.loop_name);
        if ours != recorded {
            fail(format!("{} is a recording of the loop `{recorded}`; the test gives it `{ours}`", self.name));
        }
        self.verify(Some(&*definition), strictness)
    }

    /// The Agent whose definition is in the file.
    fn agent(&self) -> Result<Arc<dyn ErasedLoop>, String> {
        let definition = self.fixture.definition();
        let how = "give it to the test: `replay(…).with_loop(MyLoop).strict()`, or check chain and fold only: \
                   `replay(…).as_recorded()`";
        if definition.is_empty() {
            let name = &self.fixture.header.loop_name;
            return Err(format!("`{name}` is a loop in Rust, whose code is not in the file; {how}"));
        }
        match Agent::from_definition(definition) {
            Ok(agent) => Ok(Arc::new(agent)),
            Err(error) => Err(format!("its definition is not an agent of this build ({error}); {how}")),
        }
    }

    #[track_caller]
    fn verify(self, definition: Option<&dyn ErasedLoop>, strictness: Strictness) -> Replayed {
        let run = self.fixture.header.run;
        let mut replayer = Replayer::new(run, definition, strictness);
        let mut builder = Builder::new(run);
        let mut states: Vec<String> = Vec::new();
        for entry in &self.fixture.entries {
            if let Err(error) = replayer.take(entry) {
                fail(does_not_replay(&self.name, &error, &builder));
            }
            must(&self.name, builder.take(entry));
            let state = &replayer.projection().state;
            if states.last() != Some(state) {
                states.push(state.clone());
            }
        }
        Replayed { name: self.name, trajectory: builder.finish(), projection: replayer.projection().clone(), states }
    }
}

/// The steps that were still the same, and how the next one differs.
fn does_not_replay(name: &str, error: &ReplayError, before: &Builder) -> String {
    let mut message = format!("{name} does not replay: {error}\n");
    match error {
        ReplayError::Divergence(at) => message.push_str(&divergence(at)),
        ReplayError::Chain(_) | ReplayError::Fold(_) | ReplayError::NoEvent { .. } => {}
    }
    let steps = before.steps();
    if !steps.is_empty() {
        message.push_str("the steps before it:\n");
    }
    for step in steps.iter().skip(steps.len().saturating_sub(5)) {
        message.push_str(&step.render(110));
    }
    message
}

fn divergence(at: &Divergence) -> String {
    match at.what {
        // Digests say that something differs, and nothing about what.
        "definition" => format!(
            "the agent or loop of today is not the one that was recorded (definition {}, recorded {}); \
             `.structure()` compares the calls only\n",
            excerpt::line(&at.replayed, 12),
            excerpt::line(&at.recorded, 12),
        ),
        "request" => "the model would be sent something else than what was recorded\n".into(),
        _ => contrast_as(["recorded", "today"], &at.recorded, &at.replayed),
    }
}
