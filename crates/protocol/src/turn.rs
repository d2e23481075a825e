//! Turns: what an Operator makes of a Conversation, at once.

use crate::{Handled, HarnessCall, HarnessCallId, Message, NewCall, NewQuestion, Question, Say};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where an act of a Turn happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In the Conversation of the Turn.
    #[default]
    Here,
    /// In the work conversation that the Operator has for it, which is opened if there is none yet.
    Work,
}

impl Place {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::Work => "work",
        }
    }
}

/// One thing that a Turn does. Its key makes it one thing, however often a Turn with it is sent: 1 to 200 visible ASCII
/// characters without spaces, each once per kind, place and speaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "act", rename_all = "snake_case", deny_unknown_fields)]
pub enum Act {
    /// Says a whole Message.
    Say {
        /// What it is known by.
        key: String,
        /// Where.
        #[serde(default)]
        place: Place,
        /// The Message.
        say: Say,
        /// The calls of the Operator that it is made of: whoever reads it finds the Journals behind it. At most 100.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schema(max_items = 100)]
        calls: Vec<HarnessCallId>,
    },
    /// Calls a Harness.
    Call {
        /// What it is known by.
        key: String,
        /// Where.
        #[serde(default)]
        place: Place,
        /// The call.
        call: NewCall,
    },
    /// Asks a person.
    Ask {
        /// What it is known by.
        key: String,
        /// Where.
        #[serde(default)]
        place: Place,
        /// The Question.
        ask: NewQuestion,
    },
}

impl Act {
    /// What it is known by.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Self::Say { key, .. } | Self::Call { key, .. } | Self::Ask { key, .. } => key,
        }
    }

    /// Where it happens.
    #[must_use]
    pub const fn place(&self) -> Place {
        match self {
            Self::Say { place, .. } | Self::Call { place, .. } | Self::Ask { place, .. } => *place,
        }
    }
}

/// What an Operator does in a Conversation: all of it in one commit, or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// The Epoch of the Operator's lease on the Conversation: a Turn under an older one is refused.
    #[schema(minimum = 1)]
    pub epoch: u64,
    /// What it does, in this order; at most 50.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub acts: Vec<Act>,
    /// What it has handled: where its cursor stands after this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handled: Option<Handled>,
}

/// What became of an act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum Acted {
    /// It was said.
    Say {
        /// The Message.
        message: Box<Message>,
        /// True when the same key had said the same before.
        already: bool,
    },
    /// It is accepted.
    Call {
        /// The call, as it is now.
        call: Box<HarnessCall>,
        /// True when the same key had made the same call before.
        already: bool,
    },
    /// It is asked.
    Ask {
        /// The Question, as it is now.
        question: Box<Question>,
        /// True when the same key had asked the same before.
        already: bool,
    },
}

/// What a Turn came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Turned {
    /// What became of each act, in their order.
    pub acts: Vec<Acted>,
    /// Where the cursor stands.
    pub handled: Handled,
}

/// What is known in a Conversation by one key of one speaker.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Keyed {
    /// The Message that was said, or begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<Message>>,
    /// The call that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<HarnessCall>>,
    /// The Question that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Box<Question>>,
}

/// Asks for the lease on a Conversation, renews it, or gives it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLease {
    /// Which process of the Operator: 1 to 100 characters. A process that is started again under the same name takes the
    /// lease over at once; another one waits until it is over.
    #[schema(min_length = 1, max_length = 100)]
    pub holder: String,
    /// The Epoch that the process has: it renews that one, and never takes another. Without one it asks for the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// Seconds until it is over unless it is renewed, at most 3600; each Turn renews it, too. 0 gives it back.
    #[schema(maximum = 3600)]
    pub lease_s: u32,
}

/// Who may commit Turns of an Operator in a Conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lease {
    /// Whether it is the process that asked.
    pub granted: bool,
    /// The process that has it; empty when none ever had it.
    pub holder: String,
    /// Its Epoch.
    pub epoch: u64,
    /// Milliseconds until it is over; 0 when it is.
    pub expires_in_ms: u64,
}
