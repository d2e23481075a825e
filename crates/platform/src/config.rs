//! Limits. Every limit has a setting.

/// What the platform takes and keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The outermost scope of Runs that are started here.
    pub tenant: String,
    /// Bytes of all Blocks of one request.
    pub message_bytes: usize,
    /// Bytes of one Message, with all that was added to it.
    pub message_total_bytes: u64,
    /// Seconds that a Message may stay open without being gone on with; then it expires.
    pub message_open_s: u32,
    /// Bytes of Messages after which a list ends early; it has one at least.
    pub list_bytes: u64,
    /// Blocks of one Message.
    pub message_blocks: u64,
    /// Blocks of a Message that lists show.
    pub shown_blocks: usize,
    /// Bytes of one file.
    pub artifact_bytes: usize,
    /// Members of one Conversation.
    pub members: usize,
    /// Items of the largest page.
    pub page: usize,
    /// Earlier Messages of the Conversation that a directed Message takes to an agent as its context.
    pub history_messages: usize,
    /// Bytes of them.
    pub history_bytes: usize,
    /// How much the clocks of workers may differ, in milliseconds.
    pub skew_ms: u64,
    /// Calls that execute at once, over all targets.
    pub slots: u32,
    /// Calls that execute at once on one target, where it says nothing else.
    pub target_slots: u32,
    /// Calls that wait for a slot, over all targets.
    pub queue: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            tenant: "default".to_owned(),
            message_bytes: 1 << 20,
            message_total_bytes: 8 << 20,
            message_open_s: 3600,
            list_bytes: 8 << 20,
            message_blocks: 10_000,
            shown_blocks: 100,
            artifact_bytes: 32 << 20,
            members: 100,
            page: 200,
            history_messages: 20,
            history_bytes: 32 << 10,
            skew_ms: 1000,
            slots: 50,
            target_slots: 16,
            queue: 1000,
        }
    }
}
