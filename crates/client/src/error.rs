//! Why a request has no answer, divided by what the caller can do.

use loopd_protocol::Problem;

/// A request without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The address of the server, or its token, cannot be used. Nothing was sent.
    #[error("{0}")]
    Address(String),
    /// Nobody answers there, or the connection broke off: what the request was to do may have been done. The same
    /// idempotency key tells.
    #[error("{0}")]
    Unreachable(String),
    /// The server refused: nothing was done, unless the problem says otherwise.
    #[error("{}", .0.detail)]
    Refused(Box<Problem>),
    /// What answers is no server of loopd, or one of a time that this client does not know.
    #[error("{0}")]
    Strange(String),
}

impl Error {
    /// The stable code of a refusal.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused(problem) => Some(&problem.code),
            Self::Address(_) | Self::Unreachable(_) | Self::Strange(_) => None,
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Refused(problem) => problem.retryable,
            Self::Unreachable(_) => true,
            Self::Address(_) | Self::Strange(_) => false,
        }
    }

    /// What the HTTP library says, with its causes: alone it says only that it failed.
    pub(crate) fn unreachable(error: reqwest::Error) -> Self {
        // The address is known to whoever asks, and may hold a query.
        let error = error.without_url();
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            text = inner.to_string();
            cause = inner.source();
        }
        Self::Unreachable(text)
    }
}
