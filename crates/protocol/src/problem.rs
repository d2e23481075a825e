//! Errors on the wire: problem+json (RFC 9457).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `about:blank`, as the RFC says for problems that the status tells enough of; `code` is what programs read.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status in words.
    pub title: String,
    /// The status.
    pub status: u16,
    /// What happened and what to do about it, for people.
    pub detail: String,
    /// The stable code, for programs.
    pub code: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// Seconds until it may be tried again, where the server knows: what its header `Retry-After` says, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
    /// Where the detail is about one part of the request: its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}
