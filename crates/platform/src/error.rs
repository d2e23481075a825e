//! Why the platform did not do what it was asked, divided by what the caller can do.

use loopd_store::StoreError;

/// A refusal, or a failure. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no such thing, or the caller may not know of it.
    #[error("there is no {what} {id}")]
    NotFound {
        /// What kind of thing.
        what: &'static str,
        /// Its identity as it was given.
        id: String,
    },
    /// The caller may not do this.
    #[error("{0}")]
    Forbidden(String),
    /// The request contradicts itself or passes a limit.
    #[error("{field}: {detail}")]
    Invalid {
        /// The part of the request.
        field: &'static str,
        /// What is wrong with it, and what would be right.
        detail: String,
    },
    /// The request is in order, and what it is about stands differently.
    #[error("{detail}")]
    Conflict {
        /// The stable code.
        code: &'static str,
        /// What stands how.
        detail: String,
    },
    /// Too much of it at once: try again later.
    #[error("{detail}")]
    Busy {
        /// The stable code.
        code: &'static str,
        /// What is full.
        detail: String,
        /// When to try again, in seconds.
        retry_after_s: u64,
    },
    /// The body is larger than may be.
    #[error("{what} has {bytes} bytes; at most {limit} are taken")]
    TooLarge {
        /// What.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The largest size.
        limit: usize,
    },
    /// The store failed; only `Ambiguous` leaves open whether something was written, and then the same key tells.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::Forbidden(_) => "forbidden",
            Self::Invalid { .. } => "invalid",
            Self::Conflict { code, .. } | Self::Busy { code, .. } => code,
            Self::TooLarge { .. } => "too_large",
            Self::Store(StoreError::Full(_)) => "store.full",
            Self::Store(StoreError::Corrupt(_)) => "store.corrupt",
            Self::Store(_) => "store.unavailable",
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Busy { .. } => true,
            Self::Store(error) => matches!(error, StoreError::Unavailable(_) | StoreError::Ambiguous(_)),
            Self::NotFound { .. }
            | Self::Forbidden(_)
            | Self::Invalid { .. }
            | Self::Conflict { .. }
            | Self::TooLarge { .. } => false,
        }
    }

    /// A part of the request is wrong.
    pub fn invalid(field: &'static str, detail: impl Into<String>) -> Self {
        Self::Invalid { field, detail: detail.into() }
    }

    /// There is no such thing.
    pub fn not_found(what: &'static str, id: impl ToString) -> Self {
        Self::NotFound { what, id: id.to_string() }
    }

    /// What the request is about stands differently.
    pub fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::Conflict { code, detail: detail.into() }
    }
}
