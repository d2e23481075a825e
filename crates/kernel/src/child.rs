//! Child Runs: a Run that another one started, and what the two tell each other.
//!
//! Starting a child, signalling it and closing it are part of the parent's own commit (class `transactional`), and
//! so is what a child tells its parent part of the child's. None of them can be lost or done twice.

use crate::budget::{Ledger, Limits};
use crate::digest::Digest;
use crate::ids::{CallId, RunId, Seq};
use crate::model::Constants;
use crate::outcome::Outcome;
use crate::units::{MicroUsd, Usage};
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Children of children down to this depth; a deeper one is refused as `child.too_deep`.
pub const MAX_DEPTH: u32 = 8;

/// Children of one Run that are open at the same time; one more is refused as `child.too_many`.
pub const MAX_OPEN: usize = 256;

/// What becomes of a child when its parent is sealed first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClosePolicy {
    /// It is asked to cancel.
    #[default]
    Cancel,
    /// It goes on by itself.
    Abandon,
}

impl ClosePolicy {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A wish to start a child Run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spawn {
    /// The parent's name for it, by which it is signalled, raised and cancelled. Of two open children with one name
    /// the older one is meant.
    pub name: String,
    /// The Loop that it runs.
    pub loop_name: String,
    /// What defines the Loop beyond its code: an Agent's manifest. Stored once by content.
    pub definition: Option<Constants>,
    /// Its input as JSON text.
    pub input: String,
    /// Its limits. Tokens and money are a slice of the parent's: reserved when it starts, given back when it ends,
    /// clamped to what is left. Without a limit of its own it gets all that is left.
    pub limits: Limits,
    /// What becomes of it when the parent is sealed first.
    pub close: ClosePolicy,
    /// The model's tool use that its outcome replies to; such an outcome joins the Transcript.
    pub reply_to: Option<String>,
    /// Bytes of its output that join the Transcript; the middle of a longer one is left out there.
    pub cap: Option<u64>,
}

impl Spawn {
    /// A child without limits of its own that is cancelled with its parent.
    #[must_use]
    pub fn new(name: impl Into<String>, loop_name: impl Into<String>, input: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            loop_name: loop_name.into(),
            definition: None,
            input: input.into(),
            limits: Limits::default(),
            close: ClosePolicy::Cancel,
            reply_to: None,
            cap: None,
        }
    }
}

/// A child as its parent's Call knows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Child {
    /// Its identity, derived from the decision that wanted it.
    pub run: RunId,
    /// The parent's name for it.
    pub name: String,
    /// The Loop that it runs.
    #[serde(rename = "loop")]
    pub loop_name: String,
    /// The digest of its definition's bytes, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Digest>,
    /// Its input as JSON text.
    pub input: String,
    /// The limits that were asked for; once it is open, those that it was given.
    #[serde(default)]
    pub limits: Limits,
    /// What becomes of it when the parent is sealed first.
    #[serde(default)]
    pub close: ClosePolicy,
    /// The model's tool use that its outcome replies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// Bytes of its output that join the Transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u64>,
    /// True: it is parked, and the parent knows.
    #[serde(default)]
    pub parked: bool,
    /// The decision, and the Action in it, that raised it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raised: Option<(Seq, u32)>,
}

/// Whose child a Run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parent {
    /// The parent.
    pub run: RunId,
    /// The parent's Call that stands for this Run.
    pub call: CallId,
    /// How deep this Run stands below one that nobody spawned, from 1.
    pub depth: u32,
}

/// The identity of the child that the action at `ordinal` of the decision at `decided` wants: the same whenever it is
/// derived, so that no crash makes two children of one wish.
#[must_use]
pub fn derive_id(parent: RunId, decided: Seq, ordinal: u32) -> RunId {
    let digest = Digest::of("loopd-child/1", &[&parent.0, &decided.0.to_be_bytes(), &ordinal.to_be_bytes()]);
    let mut id = [0; 16];
    for (to, from) in id.iter_mut().zip(digest.0) {
        *to = from;
    }
    RunId(id)
}

/// What a child consumed, its own children included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Tokens that providers reported.
    #[serde(default)]
    pub usage: Usage,
    /// Tokens charged at their reservation because nobody knows what was used.
    #[serde(default, skip_serializing_if = "crate::units::is_zero")]
    pub charged_tokens: u64,
    /// Money.
    #[serde(default)]
    pub money: MicroUsd,
}

impl Spent {
    pub(crate) const fn of(ledger: &Ledger) -> Self {
        Self { usage: ledger.usage, charged_tokens: ledger.charged_tokens, money: ledger.spent }
    }
}

/// What a child tells its parent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChildNews {
    /// The parent's Call.
    pub call: CallId,
    /// The child.
    pub child: RunId,
    /// How it stands: sealed, or parked and reopenable.
    pub outcome: Outcome,
    /// What it has consumed so far.
    pub spent: Spent,
}

/// Whom a Loop signals.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recipient {
    /// The open child with this name. When there is none, nobody is signalled.
    Child(String),
    /// Whoever started this Run. A Run that nobody spawned signals nobody.
    Parent,
    /// Any Run.
    Run(RunId),
}

/// What one Run sends to another in its own commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Letter {
    /// The receiver. One that is sealed or unknown gets nothing.
    pub to: RunId,
    /// The dedup key.
    pub key: String,
    /// What it says.
    pub body: LetterBody,
    /// The receiver is a child of the sender.
    pub kin: bool,
}

/// What a [`Letter`] says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LetterBody {
    /// A signal.
    Signal {
        /// Its name.
        name: String,
        /// Its body.
        body: String,
    },
    /// A wish to cancel.
    Cancel {
        /// Who.
        actor: String,
        /// Why.
        reason: String,
    },
    /// A wish to go on, with raised limits.
    Reopen {
        /// Who.
        actor: String,
        /// The raised limits.
        raise: Limits,
    },
    /// News of a child.
    News(ChildNews),
}

/// A child that starts with the commit of the step that holds it: its row is made there, its Journal begins when a
/// worker that can run its Loop takes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Birth {
    /// The child.
    pub child: Child,
    /// Its parent.
    pub parent: Parent,
    /// The outermost scope, which is the parent's.
    pub tenant: String,
}
