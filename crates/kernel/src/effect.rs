//! What recovery may do with a Call that was intended and never settled.

use crate::digest::Digest;
use crate::ids::{RunId, Seq};
use serde::{Deserialize, Serialize};

/// What recovery may do with an open Call. Declared by whoever configures a tool, never by a model or a
/// remote server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// No effect and no outside input: run again.
    Pure,
    /// Reads the world and changes nothing: run again.
    Read,
    /// The target removes doubles by a key: send again with the same [`EffectKey`] while the target still
    /// knows it; later, ask a person.
    Keyed,
    /// The target can be asked whether it happened: an open Call is asked about before anything is sent again.
    Probed,
    /// May change the world: an open Call settles as unknown and a person is asked. The default.
    Once,
    /// Costs money and changes nothing else (model calls): send again; the lost attempt is charged.
    Billable,
    /// Part of the commit itself: it cannot be lost, and nobody sends it.
    Transactional,
}

/// What recovery does with an open Call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// Perform it again at no charge.
    RunAgain,
    /// Perform it again with the same effect key while the target still knows the key; afterwards ask a person.
    SendAgainWithKey,
    /// Ask the target; perform it again only when it cannot have happened and cannot happen any more.
    AskTarget,
    /// Leave it open: it goes on by itself.
    Keep,
    /// Perform it again and charge the lost attempt at its reservation.
    ChargeAndRunAgain,
    /// Settle it as unknown and ask a person.
    AskPerson,
}

impl EffectClass {
    /// The recovery rule of this class.
    #[must_use]
    pub const fn recovery(self) -> Recovery {
        match self {
            Self::Pure | Self::Read => Recovery::RunAgain,
            Self::Billable => Recovery::ChargeAndRunAgain,
            Self::Keyed => Recovery::SendAgainWithKey,
            Self::Probed => Recovery::AskTarget,
            Self::Once => Recovery::AskPerson,
            Self::Transactional => Recovery::Keep,
        }
    }

    /// Whether an attempt in flight may be cut: whatever becomes of it, the world is the same.
    #[must_use]
    pub const fn may_be_cut(self) -> bool {
        match self {
            Self::Pure | Self::Read | Self::Billable => true,
            Self::Keyed | Self::Probed | Self::Once | Self::Transactional => false,
        }
    }

    /// The name in manifests and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Read => "read",
            Self::Keyed => "keyed",
            Self::Probed => "probed",
            Self::Once => "once",
            Self::Billable => "billable",
            Self::Transactional => "transactional",
        }
    }
}

/// The stable identity of a logical effect: the same over attempts, epochs and processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EffectKey(pub Digest);

impl EffectKey {
    /// Derives the key of the action at `ordinal` of the decision at `decided`.
    #[must_use]
    pub fn derive(run: RunId, decided: Seq, ordinal: u32, target: &str, args: &Digest) -> Self {
        Self(Digest::of(
            "loopd-effect/1",
            &[&run.0, &decided.0.to_be_bytes(), &ordinal.to_be_bytes(), target.as_bytes(), &args.0],
        ))
    }
}
