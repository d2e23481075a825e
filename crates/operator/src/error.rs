//! Why a request of an Operator was not done, divided by what its author can do.

use loopd_client::Error as Unanswered;
use std::time::Duration;

/// A request that was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The same request may succeed later; whether it was done after all, its key tells.
    #[error("{detail}")]
    Retryable {
        /// The stable code.
        code: String,
        /// In words.
        detail: String,
    },
    /// What it is about stands differently: look again, and decide anew.
    #[error("{detail}")]
    Conflict {
        /// The stable code, for example `stale_epoch`, `key_taken` or `question_closed`.
        code: String,
        /// In words.
        detail: String,
    },
    /// There is too much of it at once. Nothing was accepted.
    #[error("{detail}")]
    Capacity {
        /// The stable code.
        code: String,
        /// In words.
        detail: String,
        /// When to try again, where the platform said so.
        after: Option<Duration>,
    },
    /// The same request is never done.
    #[error("{detail}")]
    Refused {
        /// The stable code.
        code: String,
        /// In words.
        detail: String,
    },
    /// The author's own.
    #[error("{0}")]
    Own(String),
}

impl Error {
    /// An error of the author's own code. The Conversation is looked at again, later each time.
    #[must_use]
    pub fn own(error: impl std::fmt::Display) -> Self {
        Self::Own(error.to_string())
    }

    pub(crate) fn refused(code: &str, detail: impl Into<String>) -> Self {
        Self::Refused { code: code.to_owned(), detail: detail.into() }
    }

    /// The stable code; `own` for the author's own.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Retryable { code, .. }
            | Self::Conflict { code, .. }
            | Self::Capacity { code, .. }
            | Self::Refused { code, .. } => code,
            Self::Own(_) => "own",
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Retryable { .. } | Self::Capacity { .. })
    }

    /// Whether what it is about stands differently.
    #[must_use]
    pub const fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    /// Whether there was no room.
    #[must_use]
    pub const fn is_capacity(&self) -> bool {
        matches!(self, Self::Capacity { .. })
    }

    /// Whether another process has taken the Conversation over.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_conflict() && self.code() == "stale_epoch"
    }

    /// Whether what it is about is gone, or the Operator may not know of it any more.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "not_found")
    }
}

impl From<Unanswered> for Error {
    fn from(error: Unanswered) -> Self {
        let detail = error.to_string();
        match error {
            Unanswered::Unreachable(_) => Self::Retryable { code: "unreachable".to_owned(), detail },
            Unanswered::Address(_) => Self::refused("address", detail),
            Unanswered::Strange(_) => Self::refused("strange", detail),
            Unanswered::Refused(problem) => {
                let code = problem.code.clone();
                match problem.status {
                    409 | 412 => Self::Conflict { code, detail },
                    429 => Self::Capacity { code, detail, after: problem.retry_after_s.map(Duration::from_secs) },
                    _ if problem.retryable => Self::Retryable { code, detail },
                    _ => Self::Refused { code, detail },
                }
            }
        }
    }
}

/// The pause before a request is sent again; it doubles.
const PAUSE: Duration = Duration::from_millis(100);

/// How often a request is sent at most.
const TIMES: u32 = 4;

/// Sends what reads, or what has a key or a revision, again where the answer left open whether it was done.
pub(crate) async fn patiently<T, F>(mut sending: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut pause = PAUSE;
    for _ in 1..TIMES {
        match sending().await {
            Err(Error::Retryable { code, detail }) => {
                tracing::debug!(%code, %detail, "a request is sent again");
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            done => return done,
        }
    }
    sending().await
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_for_lack_of_room_says_when_to_try_again() {
        let problem = |status: u16, rest: &str| -> Error {
            let text = format!(
                r#"{{"type":"about:blank","title":"","status":{status},"detail":"d","code":"c","retryable":true{rest}}}"#
            );
            Unanswered::Refused(serde_json::from_str(&text).unwrap()).into()
        };
        let (code, detail) = ("c".to_owned(), "d".to_owned());
        let after = Some(Duration::from_secs(3));
        assert_eq!(problem(429, r#","retry_after_s":3"#), Error::Capacity { code, detail, after });
        assert!(matches!(problem(429, ""), Error::Capacity { after: None, .. }));
        assert!(matches!(problem(503, r#","retry_after_s":3"#), Error::Retryable { .. }));
    }
}
