//! Files in Conversations.

use crate::{ActorKey, ArtifactId, ConversationId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A file that somebody attached, or that a Run made. Its bytes are stored by content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    /// Its identity.
    pub id: ArtifactId,
    /// Where it belongs.
    pub conversation: ConversationId,
    /// Its name: no path, at most 200 characters.
    pub name: String,
    /// Its media type, as whoever attached it said.
    pub media_type: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its bytes, base64url without padding.
    pub digest: String,
    /// Who attached it.
    pub by: ActorKey,
    /// When, in milliseconds since 1970.
    pub created_at: i64,
}
