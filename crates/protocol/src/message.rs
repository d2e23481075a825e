//! What Actors say.

use crate::{ActorKey, Block, BlockOp, ConversationId, HarnessCallId, MessageId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether the speaker goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
    /// The speaker goes on.
    Streaming,
    /// It is whole.
    Completed,
    /// The speaker failed; `error` says how.
    Failed,
    /// It was given up on somebody's wish.
    Cancelled,
    /// Its time was over.
    Expired,
}

impl MessageStatus {
    /// True when nothing of the Message changes any more.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Streaming)
    }
}

/// What went wrong, for programs and for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorNote {
    /// The stable code.
    pub code: String,
    /// In words.
    pub message: String,
}

/// What a Message came from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Origin {
    /// The HarnessCall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<HarnessCallId>,
    /// The Run, `run_…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The Entry of its Journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The HarnessCalls that an Operator made it of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<HarnessCallId>,
}

/// A Message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Message {
    /// Its identity.
    pub id: MessageId,
    /// Where it was said.
    pub conversation: ConversationId,
    /// Its number there, from 1, without a gap, in the order of commits.
    pub seq: u64,
    /// Who speaks.
    pub from: ActorKey,
    /// To whom; empty is everybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<ActorKey>,
    /// The Message that it answers; of the same Conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// Whether the speaker goes on. A final status never changes.
    pub status: MessageStatus,
    /// How often it was written, from 1.
    pub revision: u64,
    /// Its parts, in order.
    pub blocks: Vec<Block>,
    /// How many parts it has; a list shows the first ones of a long Message only.
    pub block_count: u64,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorNote>,
    /// What it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// When it was begun, in milliseconds since 1970.
    pub created_at: i64,
    /// When it was last written.
    pub updated_at: i64,
}

impl Message {
    /// Whether somebody else says it to this Actor or to everybody; an Operator hears for its roles.
    #[must_use]
    pub fn is_for(&self, actor: &ActorKey) -> bool {
        let me = actor.owner();
        self.from.owner() != me && (self.to.is_empty() || self.to.iter().any(|to| to.owner() == me))
    }
}

/// Says a whole Message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Say {
    /// Who speaks: the caller, or a role of theirs; the caller without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorKey>,
    /// To whom, besides those whom the text mentions as `@kind/key`; empty is everybody. At most 20.
    #[serde(default)]
    #[schema(max_items = 20)]
    pub to: Vec<ActorKey>,
    /// The Message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// Its parts; 1 to 100.
    #[schema(min_items = 1, max_items = 100)]
    pub blocks: Vec<Block>,
}

/// What saying came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Said {
    /// The Message.
    pub message: Message,
    /// True when the same key had said the same before.
    pub already: bool,
    /// The calls that it started: one per addressed Harness.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<HarnessCallId>,
}

/// Opens a Message that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// Who speaks: the caller, or a role of theirs; the caller without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorKey>,
    /// To whom.
    #[serde(default)]
    #[schema(max_items = 20)]
    pub to: Vec<ActorKey>,
    /// The Message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// Its first parts; at most 100.
    #[serde(default)]
    #[schema(max_items = 100)]
    pub blocks: Vec<Block>,
}

/// Goes on with an open Message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// The revision that it was written at: the update makes the next one. The same update at the same revision again
    /// changes nothing; another one is a conflict.
    #[schema(minimum = 1)]
    pub revision: u64,
    /// The changes; 1 to 100.
    #[schema(min_items = 1, max_items = 100)]
    pub ops: Vec<BlockOp>,
}

/// Ends an open Message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// A final status.
    pub status: MessageStatus,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorNote>,
}
