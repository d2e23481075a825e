//! How a Loop is written, and the erased form by which one driver runs many.

use crate::action::{Action, Decision};
use crate::digest::Digest;
use crate::event::Event;
use crate::failure::Failure;
use crate::ids::{RunId, Seq};
use crate::transcript::Head;
use crate::units::TimeMs;
use alloc::string::String;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What a transition may know besides State and Event; all of it is derived from recorded Entries.
#[derive(Clone, Copy, Debug)]
pub struct Cx {
    /// The Run.
    pub run: RunId,
    /// The Seq of the Entry that the transition consumes.
    pub consumed: Seq,
    /// The time of that Entry.
    pub now: TimeMs,
    /// The iteration.
    pub iteration: u64,
    /// The Transcript as it stands when the transition runs.
    pub transcript: Head,
}

impl Cx {
    /// 32 bytes that look random and are the same on every replay. `salt` tells two uses apart.
    #[must_use]
    pub fn random(&self, salt: &str) -> [u8; 32] {
        Digest::of("loopd-random/1", &[&self.run.0, &self.consumed.0.to_be_bytes(), salt.as_bytes()]).0
    }
}

/// A Loop: a name, a version and a pure function from State and Event to a decision.
///
/// # Expected flow
/// `init` makes the first State; then each [`Event`] is handed to `transition` once, in recorded order.
///
/// # Guarantees
/// The State that a transition sees is exactly the State that the last recorded decision left. A
/// transition that returns an error, or panics, leaves no trace in State.
///
/// # Assumptions
/// `transition` is pure: time, ids and randomness come from [`Cx`]. State serialises in a fixed order
/// (ordered maps, no `HashMap`) and stays small: above 1 MiB a Run is refused.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Loop",
    note = "implement `loopkit::Loop`: a name, `init` and `transition`"
)]
pub trait Loop: Send + Sync + 'static {
    /// What a Run is started with.
    type Input: DeserializeOwned + Serialize;
    /// What is remembered between transitions.
    type State: DeserializeOwned + Serialize;
    /// What a completed Run returns.
    type Output: DeserializeOwned + Serialize;

    /// The name by which workers find this Loop.
    fn name(&self) -> &str;

    /// The declared version, for example `1` or `2.1`; the part before the first dot is the major version.
    fn version(&self) -> &str {
        "1"
    }

    /// The version of State's schema: raised when a State of the build before does not read any more, or means
    /// something else.
    fn state_version(&self) -> u32 {
        1
    }

    /// Turns the State of an open Run, JSON text of schema version `from`, into today's.
    ///
    /// # Errors
    /// A [`Failure`] when there is no way; the Run is then not driven by this build and stays as it is.
    fn migrate(&self, from: u32, _state: &str) -> Result<String, Failure> {
        let message = alloc::format!("no migration from version {from} of the State");
        Err(Failure::new("loop.migration", message))
    }

    /// Whether open Runs of another build go on with this one.
    fn upgrade(&self) -> Upgrade {
        Upgrade::Adopt
    }

    /// The first State.
    ///
    /// # Errors
    /// A [`Failure`] when the input cannot be worked on; the Run is then not started.
    fn init(&self, input: Self::Input) -> Result<Self::State, Failure>;

    /// One decision.
    ///
    /// # Errors
    /// A [`Failure`] ends the Run as Failed.
    fn transition(&self, cx: &Cx, state: &mut Self::State, event: Event) -> Result<Decision, Failure>;
}

/// What a new build does with the open Runs of another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Upgrade {
    /// Takes them over when the major version is the same and their State reads, after a migration if need be.
    #[default]
    Adopt,
    /// Leaves them to a worker that has exactly the definition which they were started with.
    Pin,
    /// Decides nothing, only closes: fits every Run, and nothing is recorded of it.
    Unasked,
}

/// The object-safe form of a [`Loop`]: JSON text in, JSON text out.
pub trait ErasedLoop: Send + Sync {
    /// The Loop's name.
    fn name(&self) -> &str;
    /// The Loop's declared version.
    fn version(&self) -> &str;
    /// The bytes that define this Loop beyond its code: an Agent's manifest; empty for a Loop in Rust.
    fn definition(&self) -> &[u8];
    /// See [`Loop::state_version`].
    fn state_version(&self) -> u32 {
        1
    }
    /// See [`Loop::migrate`].
    ///
    /// # Errors
    /// See [`Loop::migrate`].
    fn migrate(&self, from: u32, _state: &str) -> Result<String, Failure> {
        let message = alloc::format!("no migration from version {from} of the State");
        Err(Failure::new("loop.migration", message))
    }
    /// See [`Loop::upgrade`].
    fn upgrade(&self) -> Upgrade {
        Upgrade::Adopt
    }
    /// Whether this build reads the State of a Run that an earlier one left. A Run whose State does not read
    /// is not driven here and stays as it is.
    ///
    /// # Errors
    /// A [`Failure`] that says what does not read.
    fn reads(&self, state: &str) -> Result<(), Failure>;
    /// The first State.
    ///
    /// # Errors
    /// See [`Loop::init`].
    fn init(&self, input: &str) -> Result<String, Failure>;
    /// One decision and the State after it.
    ///
    /// # Errors
    /// See [`Loop::transition`].
    fn transition(&self, cx: &Cx, state: &str, event: Event) -> Result<(Decision, String), Failure>;
}

/// Wraps a [`Loop`] for a driver. `definition` holds what defines it beyond its code.
#[must_use]
pub fn erase<L: Loop>(inner: L, definition: alloc::vec::Vec<u8>) -> alloc::sync::Arc<dyn ErasedLoop> {
    alloc::sync::Arc::new(Erased { inner, definition })
}

fn decode<S: DeserializeOwned>(state: &str) -> Result<S, Failure> {
    serde_json::from_str(state)
        .map_err(|error| Failure::new("loop.state", alloc::format!("the State does not decode: {error}")))
}

struct Erased<L> {
    inner: L,
    definition: alloc::vec::Vec<u8>,
}

impl<L: Loop> ErasedLoop for Erased<L> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn version(&self) -> &str {
        self.inner.version()
    }

    fn definition(&self) -> &[u8] {
        &self.definition
    }

    fn state_version(&self) -> u32 {
        self.inner.state_version()
    }

    fn migrate(&self, from: u32, state: &str) -> Result<String, Failure> {
        self.inner.migrate(from, state)
    }

    fn upgrade(&self) -> Upgrade {
        self.inner.upgrade()
    }

    fn reads(&self, state: &str) -> Result<(), Failure> {
        decode::<L::State>(state).map(drop)
    }

    fn init(&self, input: &str) -> Result<String, Failure> {
        let input = serde_json::from_str(input).map_err(|error| {
            Failure::new("loop.input", alloc::format!("the input does not fit {}: {error}", self.inner.name()))
        })?;
        Ok(serde_json::to_string(&self.inner.init(input)?)?)
    }

    fn transition(&self, cx: &Cx, state: &str, event: Event) -> Result<(Decision, String), Failure> {
        let mut typed: L::State = decode(state)?;
        let decision = self.inner.transition(cx, &mut typed, event)?;
        for action in &decision.actions {
            if let Action::Finish(output) = action {
                serde_json::from_str::<L::Output>(output).map_err(|error| {
                    Failure::new("loop.output", alloc::format!("the output is not the declared type: {error}"))
                })?;
            }
        }
        Ok((decision, serde_json::to_string(&typed)?))
    }
}
