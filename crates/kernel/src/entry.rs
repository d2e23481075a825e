//! The Entry: one fact of a Journal, as bytes.
//!
//! An Entry is a fixed binary header, a kind-specific record (JSON text) and a payload (bytes). What the
//! record says about the payload it says by [`Span`]; payload bytes are never re-encoded.

use crate::chain;
use crate::digest::Digest;
use crate::ids::{RunId, Seq};
use crate::units::TimeMs;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// The journal format that this build writes. 0 is free to change until it is frozen as 1.
pub const FORMAT: u16 = 0;

/// Bytes of a header.
pub const HEADER_LEN: usize = 16 + 8 + 2 + 2 + 8 + 4 + 4;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// What an Entry says. Closed per format: an unknown kind is refused, never skipped.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u16)]
        pub enum Kind { $($(#[$doc])* $name = $number,)* }

        impl Kind {
            /// Every kind of this format.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The kind's number in headers and stores.
            #[must_use]
            pub const fn number(self) -> u16 {
                self as u16
            }

            /// The kind's name in fixtures and output.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

kinds! {
    /// The Run exists.
    Started = 1, "started";
    /// An iteration begins.
    IterationStarted = 2, "iteration_started";
    /// A transition decided.
    Decided = 3, "decided";
    /// The definition changed at a decision boundary.
    DefinitionChanged = 4, "definition_changed";
    /// A worker took over after a crash.
    Recovered = 5, "recovered";
    /// The Run stopped at a reopenable outcome.
    Parked = 6, "parked";
    /// A parked Run goes on.
    Reopened = 7, "reopened";
    /// The Transcript starts anew from a summary.
    Compacted = 8, "compacted";
    /// The Run continues another one's prefix.
    ForkedFrom = 9, "forked_from";
    /// The Run is sealed.
    Ended = 10, "ended";
    /// A Call may now be sent.
    Intended = 20, "intended";
    /// An attempt of a Call failed and will be repeated.
    Attempted = 21, "attempted";
    /// A Call has its one settlement.
    Settled = 22, "settled";
    /// A target was asked whether a Call happened.
    Probed = 23, "probed";
    /// A fenced worker deposited a result.
    LateResult = 24, "late_result";
    /// A person resolved an unknown Call.
    Resolved = 25, "resolved";
    /// A signal arrived.
    Signal = 40, "signal";
    /// A Question ended.
    QuestionEnded = 41, "question_ended";
    /// A timer fired.
    TimerFired = 42, "timer_fired";
    /// A child Run ended.
    ChildEnded = 43, "child_ended";
    /// A child Run parked.
    ChildParked = 44, "child_parked";
    /// The set of tools changed.
    ToolsChanged = 45, "tools_changed";
    /// Somebody asked to cancel.
    CancelRequested = 46, "cancel_requested";
    /// The limits changed while the Run was open.
    BudgetChanged = 47, "budget_changed";
    /// A policy judged a wanted Call.
    Judged = 60, "judged";
    /// A limit comes near.
    Warned = 61, "warned";
    /// The convergence guard raised a signal.
    GuardRaised = 62, "guard_raised";
}

impl Kind {
    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.number() == number)
    }

    /// The kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A part of a payload: offset and length in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Span(pub u32, pub u32);

impl Span {
    /// The bytes of `payload` that this span names.
    #[must_use]
    pub fn of(self, payload: &[u8]) -> Option<&[u8]> {
        let start = self.0 as usize;
        payload.get(start..start.checked_add(self.1 as usize)?)
    }

    /// The same as text.
    #[must_use]
    pub fn text(self, payload: &[u8]) -> Option<&str> {
        core::str::from_utf8(self.of(payload)?).ok()
    }
}

/// Collects the payload of one Entry.
#[derive(Debug, Default)]
pub struct PayloadWriter(Vec<u8>);

impl PayloadWriter {
    /// Adds `bytes` and returns where they are.
    pub fn add(&mut self, bytes: &[u8]) -> Span {
        let span = Span(self.0.len() as u32, bytes.len() as u32);
        self.0.extend_from_slice(bytes);
        span
    }

    /// The payload.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Bytes of a salt: as many as nobody can try.
pub const SALT_LEN: usize = 16;

/// Random bytes that lead a body, so that an erased body cannot be guessed from its digest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Salt(pub [u8; SALT_LEN]);

impl Salt {
    /// The salt that begins `random`.
    #[must_use]
    pub fn from_random(random: [u8; 32]) -> Self {
        let mut salt = [0; SALT_LEN];
        for (to, from) in salt.iter_mut().zip(random) {
            *to = from;
        }
        Self(salt)
    }
}

impl Serialize for Salt {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&crate::base64url::encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Salt {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = crate::base64url::decode_array(&text);
        bytes.map(Self).ok_or_else(|| serde::de::Error::custom("expected a salt of 22 base64url characters"))
    }
}

/// One fact of a Journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The Run.
    pub run: RunId,
    /// The place in the Journal, from 1.
    pub seq: Seq,
    /// What it says.
    pub kind: Kind,
    /// The journal format.
    pub format: u16,
    /// When; never earlier than the Entry before.
    pub at: TimeMs,
    /// Leads the body.
    pub salt: Salt,
    /// The record: JSON text.
    pub record: String,
    /// The payload.
    pub payload: Vec<u8>,
    /// The chain hash up to and including this Entry.
    pub hash: Digest,
}

impl Entry {
    /// The header bytes that the chain covers; integers are big-endian.
    #[must_use]
    pub fn header(&self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            if let Some(slot) = out.get_mut(at..at + bytes.len()) {
                slot.copy_from_slice(bytes);
            }
            at += bytes.len();
        };
        put(&self.run.0);
        put(&self.seq.0.to_be_bytes());
        put(&self.kind.number().to_be_bytes());
        put(&self.format.to_be_bytes());
        put(&self.at.0.to_be_bytes());
        put(&(self.record.len() as u32).to_be_bytes());
        put(&(self.payload.len() as u32).to_be_bytes());
        out
    }

    /// The digest of the body as first committed: salt, record, payload.
    #[must_use]
    pub fn body_digest(&self) -> Digest {
        Digest::sha256(&[&self.salt.0, self.record.as_bytes(), &self.payload])
    }

    /// The hash that this Entry must carry after `previous`.
    #[must_use]
    pub fn hash_after(&self, previous: &Digest) -> Digest {
        chain::link(previous, &self.header(), &self.body_digest())
    }

    /// Bytes that a store keeps for record, payload and salt.
    #[must_use]
    pub fn body_len(&self) -> usize {
        SALT_LEN + self.record.len() + self.payload.len()
    }
}
