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
