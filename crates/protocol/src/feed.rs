//! What a stream tells.

use crate::{
    ActorKey, BlockOp, Conversation, ConversationId, HarnessCall, HarnessCallId, Message, MessageId, Question,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One item of a Feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FeedEvent {
    /// The Feed: `conversation/con_…` or `actor/kind/key`.
    pub feed: String,
    /// Its position there, from 1, without a gap: clients drop what they have seen by (feed, position).
    pub position: u64,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The Conversation was opened, or what it says of itself changed.
    Conversation {
        /// As it is now.
        conversation: Box<Conversation>,
    },
    /// The Conversation was deleted; nothing follows.
    ConversationDeleted {
        /// Which one.
        conversation: ConversationId,
    },
    /// A Message was said, or begun.
    Message {
        /// As it was then.
        message: Box<Message>,
    },
    /// An open Message goes on.
    MessageUpdated {
        /// Which one.
        message: MessageId,
        /// Its revision after this.
        revision: u64,
        /// What changed.
        ops: Vec<BlockOp>,
    },
    /// An open Message ended.
    MessageEnded {
        /// As it is, without its Blocks: they came before.
        message: Box<Message>,
    },
    /// A Question was asked or has ended.
    Question {
        /// As it is now.
        question: Box<Question>,
    },
    /// A call was accepted, or its phase changed.
    Call {
        /// As it is now.
        call: Box<HarnessCall>,
    },
    /// A call has seen a text that was sent to it while it ran.
    Steered {
        /// The call.
        call: HarnessCallId,
        /// The name that sending it returned.
        steer: String,
    },
    /// Somebody has handled a prefix of the Conversation.
    Read {
        /// Who.
        actor: ActorKey,
        /// Up to this seq.
        seq: u64,
    },
    /// There is something for the Actor whose Feed this is.
    Wake(Wake),
}

impl Event {
    /// The names on the wire.
    pub const NAMES: [&'static str; 10] = [
        "conversation",
        "conversation_deleted",
        "message",
        "message_updated",
        "message_ended",
        "question",
        "call",
        "steered",
        "read",
        "wake",
    ];

    /// The name on the wire; one of [`Event::NAMES`].
    #[must_use]
    pub const fn name(&self) -> &'static str {
        let [conversation, deleted, message, updated, ended, question, call, steered, read, wake] = Self::NAMES;
        match self {
            Self::Conversation { .. } => conversation,
            Self::ConversationDeleted { .. } => deleted,
            Self::Message { .. } => message,
            Self::MessageUpdated { .. } => updated,
            Self::MessageEnded { .. } => ended,
            Self::Question { .. } => question,
            Self::Call { .. } => call,
            Self::Steered { .. } => steered,
            Self::Read { .. } => read,
            Self::Wake(_) => wake,
        }
    }
}

/// There is something for an Actor in a Conversation: a hint, the cursor is the truth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Wake {
    /// Where.
    pub conversation: ConversationId,
    /// What: `message`, `question`, `call` or `member`.
    pub reason: String,
}

/// Text as it arrives: for watching only, it is never the answer. It has no position; a stream that is opened again gets
/// what there is so far with `offset` 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Delta {
    /// The Conversation.
    pub conversation: ConversationId,
    /// The Message that it will be a part of.
    pub message: MessageId,
    /// Which call and attempt writes it: another one begins anew.
    pub part: String,
    /// Bytes of this part before the text.
    pub offset: u64,
    /// The text.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_one_name() {
        let conversation = ConversationId([1; 16]);
        let (call, message) = (HarnessCallId([2; 16]), MessageId([3; 16]));
        let actor: ActorKey = "person/ann".parse().expect("an actor");
        for event in [
            Event::ConversationDeleted { conversation },
            Event::MessageUpdated { message, revision: 1, ops: Vec::new() },
            Event::Steered { call, steer: String::new() },
            Event::Read { actor, seq: 1 },
            Event::Wake(Wake { conversation, reason: String::new() }),
        ] {
            let written = serde_json::to_value(&event).expect("JSON");
            assert_eq!(written.get("type").and_then(serde_json::Value::as_str), Some(event.name()));
        }
    }
}
