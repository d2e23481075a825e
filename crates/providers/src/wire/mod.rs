//! What every provider needs from the wire: server-sent events, timeouts, errors without secrets.

mod body;
mod excerpt;
mod retry_after;
mod sse;
mod text;

pub use body::{Body, Tap, exchange, within};
pub use excerpt::{EXCERPT_BYTES, excerpt};
pub use retry_after::{MAX_RETRY_AFTER, retry_after, seconds};
pub use sse::{MAX_EVENT_BYTES, SseError, SseEvent, SseReader};
pub use text::{GrowingText, JsonStr, JsonText};

/// Header names that are not in the HTTP standard.
pub mod header {
    /// How long to wait, in milliseconds: more exact than `Retry-After`, sent by OpenAI and Azure.
    pub const RETRY_AFTER_MS: &str = "retry-after-ms";
    /// The provider's own name for a request, which its support asks for: OpenAI's header and Anthropic's.
    pub const REQUEST_IDS: [&str; 2] = ["x-request-id", "request-id"];
}
