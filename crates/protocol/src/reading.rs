//! Poll and Commit on the wire.

use crate::Message;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What polling returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Polled {
    /// The caller's cursor: everything up to this seq was handled, but for what was open.
    pub seq: u64,
    /// Messages that were not handled yet: first those that were open when the cursor passed them, then those behind it,
    /// in order of seq.
    pub messages: Vec<Message>,
    /// Up to this seq everything was looked at: it may be committed once all of `messages` is handled.
    pub upto: u64,
    /// The seqs up to there of Messages that are not whole yet. Committed with `upto`, they come once they are.
    pub open: Vec<u64>,
    /// Whether there are more that could be read now, once this part is committed.
    pub more: bool,
}

/// What was handled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Handled {
    /// Everything up to this seq.
    pub seq: u64,
    /// But for these, which were not whole when they were polled; at most 200. Each is one that the last poll named, or
    /// that was committed as open before. What is still open at this moment is kept either way.
    #[serde(default)]
    #[schema(max_items = 200)]
    pub open: Vec<u64>,
}

impl Handled {
    /// Everything up to this seq that was whole.
    #[must_use]
    pub const fn upto(seq: u64) -> Self {
        Self { seq, open: Vec::new() }
    }
}
