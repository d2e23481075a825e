//! Where Actors meet.

use crate::{ActorKey, ConversationId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A Conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Conversation {
    /// Its identity.
    pub id: ConversationId,
    /// Its title; may be empty.
    pub title: String,
    /// Who opened it.
    pub organiser: ActorKey,
    /// Who may read it and speak in it, the organiser included.
    pub members: Vec<ActorKey>,
    /// What it is the work conversation of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_of: Option<WorkOf>,
    /// Put away: hidden from lists, otherwise as before.
    #[serde(default)]
    pub archived: bool,
    /// When it was opened, in milliseconds since 1970.
    pub created_at: i64,
    /// When something last happened in it.
    pub updated_at: i64,
    /// The seq of its last Message; 0 without one.
    pub last_seq: u64,
    /// The position of its Feed; a stream that begins there misses nothing.
    pub position: u64,
    /// How often its description was changed: what `If-Match` names.
    pub revision: u64,
}

/// What a work conversation belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkOf {
    /// The Conversation that was asked in.
    pub conversation: ConversationId,
    /// The Operator that was asked.
    pub operator: ActorKey,
}

/// Opens a Conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConversation {
    /// The title, at most 200 characters.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub title: String,
    /// Members besides whoever opens it; at most 100.
    #[serde(default)]
    #[schema(max_items = 100)]
    pub members: Vec<ActorKey>,
}

/// Changes what a Conversation says of itself; what is left out stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeConversation {
    /// Another title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200)]
    pub title: Option<String>,
    /// Put away, or taken out again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
}

/// Changes who belongs to a Conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberChange {
    /// Who is added; at most 200.
    #[serde(default)]
    #[schema(max_items = 200)]
    pub add: Vec<ActorKey>,
    /// Who is removed; at most 200. The organiser stays.
    #[serde(default)]
    #[schema(max_items = 200)]
    pub remove: Vec<ActorKey>,
}
