//! The hash chain over a Journal, and its verification.
//!
//! `h_0 = SHA-256("loopd-chain/1" ‖ run)` and
//! `h_n = SHA-256("loopd-chain/1" ‖ h_(n-1) ‖ header_n ‖ SHA-256(salt_n ‖ record_n ‖ payload_n))`.
//! The bytes are those first committed; nothing is verified by re-serialising.

use crate::digest::Digest;
use crate::entry::{Entry, FORMAT, HEADER_LEN};
use crate::ids::{RunId, Seq};
use core::fmt;

const DOMAIN: &[u8] = b"loopd-chain/1";

/// The hash of an empty Journal; it binds the Run.
#[must_use]
pub fn genesis(run: RunId) -> Digest {
    Digest::sha256(&[DOMAIN, &run.0])
}

/// The hash after one more Entry.
#[must_use]
pub fn link(previous: &Digest, header: &[u8; HEADER_LEN], body_digest: &Digest) -> Digest {
    Digest::sha256(&[DOMAIN, &previous.0, header, &body_digest.0])
}

/// What is wrong with a chain, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChainError {
    /// The bytes of this Entry are not those that were committed.
    Mismatch {
        /// The first such Entry.
        seq: Seq,
    },
    /// An Entry is missing.
    Missing {
        /// The Seq that should come here.
        expected: Seq,
        /// The Seq that came.
        found: Seq,
    },
    /// The same Seq stands there twice.
    Forked {
        /// The Seq.
        seq: Seq,
    },
    /// The Journal ends before its known head.
    Truncated {
        /// The last Entry that is there.
        last: Seq,
        /// The head that the Run row or the footer names.
        head: Seq,
    },
    /// An Entry belongs to another Run.
    WrongRun {
        /// The Entry.
        seq: Seq,
    },
    /// An Entry is written in a format that this build does not read.
    UnknownFormat {
        /// The Entry.
        seq: Seq,
        /// Its format.
        format: u16,
    },
    /// An Entry is older than the one before.
    TimeRunsBackwards {
        /// The Entry.
        seq: Seq,
    },
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch { seq } => write!(f, "entry {seq} is not what was committed"),
            Self::Missing { expected, found } => {
                write!(f, "entry {expected} is missing: entry {found} stands in its place")
            }
            Self::Forked { seq } => write!(f, "entry {seq} stands there twice"),
            Self::Truncated { last, head } => write!(f, "truncated: the last entry is {last}, the head is {head}"),
            Self::WrongRun { seq } => write!(f, "entry {seq} belongs to another run"),
            Self::UnknownFormat { seq, format } => {
                write!(f, "entry {seq} has format {format}; this build reads format {FORMAT}")
            }
            Self::TimeRunsBackwards { seq } => write!(f, "entry {seq} is older than the entry before it"),
        }
    }
}

impl core::error::Error for ChainError {}

/// Verifies a chain Entry by Entry, so that a Journal of any length needs no memory.
#[derive(Clone, Debug)]
pub struct Verifier {
    run: RunId,
    last: Seq,
    hash: Digest,
    at: i64,
}

impl Verifier {
    /// Starts before the first Entry of `run`.
    #[must_use]
    pub fn new(run: RunId) -> Self {
        Self { run, last: Seq(0), hash: genesis(run), at: i64::MIN }
    }

    /// Takes the next Entry.
    ///
    /// # Errors
    /// The first [`ChainError`], by Seq.
    pub fn take(&mut self, entry: &Entry) -> Result<(), ChainError> {
        let seq = entry.seq;
        if entry.run != self.run {
            return Err(ChainError::WrongRun { seq });
        }
        if seq == self.last {
            return Err(ChainError::Forked { seq });
        }
        if seq != self.last.next() {
            return Err(ChainError::Missing { expected: self.last.next(), found: seq });
        }
        if entry.format != FORMAT {
            return Err(ChainError::UnknownFormat { seq, format: entry.format });
        }
        if entry.hash_after(&self.hash) != entry.hash {
            return Err(ChainError::Mismatch { seq });
        }
        if entry.at.0 < self.at {
            return Err(ChainError::TimeRunsBackwards { seq });
        }
        (self.last, self.hash, self.at) = (seq, entry.hash, entry.at.0);
        Ok(())
    }

    /// Compares with the head that the Run row or a footer names.
    ///
    /// # Errors
    /// [`ChainError::Truncated`] or [`ChainError::Mismatch`].
    pub fn finish(&self, head: Seq, hash: &Digest) -> Result<(), ChainError> {
        if self.last != head {
            return Err(ChainError::Truncated { last: self.last, head });
        }
        if self.hash == *hash { Ok(()) } else { Err(ChainError::Mismatch { seq: self.last }) }
    }

    /// The last Seq and its hash.
    #[must_use]
    pub const fn head(&self) -> (Seq, Digest) {
        (self.last, self.hash)
    }
}
