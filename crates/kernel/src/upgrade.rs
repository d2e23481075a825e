//! Another build of a Loop, and the open Runs of the one before.
//!
//! A Run records which definition decides: the Loop's declared version, the digest of the bytes that define it beyond
//! its code, and the version of State's schema. A worker whose definition differs takes the Run over at a decision
//! boundary and records that, or leaves it alone. Nothing is ever decided again, so the older build can take the Run
//! back in the same way.

use crate::definition::{ErasedLoop, Upgrade};
use crate::digest::Digest;
use crate::failure::Failure;
use crate::patch::StatePatch;
use crate::projection::{Projection, Status};
use crate::record::DefinitionChanged;
use alloc::borrow::Cow;
use alloc::string::String;
use core::cmp::Ordering;
use core::fmt;

/// How a definition fits an open Run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fit {
    /// It decided so far.
    Same,
    /// Another one did; this is what is recorded when it takes over.
    Changes(DefinitionChanged),
}

/// Why a definition cannot take a Run over. The Run stays as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// The Loop is pinned: only the definition that a Run was started with drives it.
    Pinned {
        /// The version that the Run has.
        recorded: String,
        /// The version here.
        ours: String,
    },
    /// Another major version.
    Major {
        /// The version that the Run has.
        recorded: String,
        /// The version here.
        ours: String,
    },
    /// A newer build wrote the State.
    NewerState {
        /// The schema version that the Run has.
        recorded: u32,
        /// The schema version here.
        ours: u32,
    },
    /// The migration failed, or there is none.
    Migration(Failure),
    /// The State does not read.
    State(Failure),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pinned { recorded, ours } => {
                write!(
                    f,
                    "its loop is pinned: the run has version {recorded}, here is another definition, version {ours}"
                )
            }
            Self::Major { recorded, ours } => {
                write!(f, "the run has version {recorded}, here is version {ours}: another major version")
            }
            Self::NewerState { recorded, ours } => {
                write!(f, "its State has version {recorded}, which a newer build wrote; here is version {ours}")
            }
            Self::Migration(failure) => write!(f, "its State does not migrate: {failure}"),
            Self::State(failure) => write!(f, "{failure}"),
        }
    }
}

impl core::error::Error for Unfit {}

/// The part of a version before its first dot.
#[must_use]
pub fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or(version)
}

/// Whether `definition` may go on with a Run, and what is recorded when it does. Runs a migration, but no transition.
///
/// # Errors
/// [`Unfit`], with what stands in the way.
pub fn fit(projection: &Projection, definition: &dyn ErasedLoop) -> Result<Fit, Unfit> {
    if definition.upgrade() == Upgrade::Unasked {
        return Ok(Fit::Same);
    }
    let digest = Digest::sha256(&[definition.definition()]);
    let (version, schema) = (definition.version(), definition.state_version());
    let same = version == projection.version && digest == projection.definition && schema == projection.state_version;
    let (recorded, ours) = (projection.version.clone(), String::from(version));
    if !same && definition.upgrade() == Upgrade::Pin {
        return Err(Unfit::Pinned { recorded, ours });
    }
    if major(version) != major(&recorded) {
        return Err(Unfit::Major { recorded, ours });
    }
    let state = match schema.cmp(&projection.state_version) {
        Ordering::Less => return Err(Unfit::NewerState { recorded: projection.state_version, ours: schema }),
        Ordering::Equal => Cow::Borrowed(projection.state.as_str()),
        Ordering::Greater => {
            Cow::Owned(definition.migrate(projection.state_version, &projection.state).map_err(Unfit::Migration)?)
        }
    };
    // Nothing is decided any more, so nothing has to read.
    if !matches!(projection.status, Status::Ended(_)) {
        definition.reads(&state).map_err(Unfit::State)?;
    }
    if same {
        return Ok(Fit::Same);
    }
    let patch = StatePatch::between(&projection.state, &state);
    let state = (patch != StatePatch::Same).then(|| Digest::sha256(&[state.as_bytes()]));
    Ok(Fit::Changes(DefinitionChanged { version: ours, definition: digest, state_version: schema, patch, state }))
}
