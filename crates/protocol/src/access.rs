//! Who may do what.

use crate::{ActorKey, TokenId};
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use utoipa::ToSchema;

/// What a token, or a signed-in browser, may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything, in every Conversation.
    Admin,
    /// Opens Conversations, speaks and answers in its own.
    Member,
    /// As a member; and registers, polls, commits and calls Harnesses as an Operator.
    Operator,
    /// As a member; and registers as a Harness.
    Harness,
    /// Reads its own Conversations.
    Viewer,
}

/// A text that names no Role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected one of: admin, member, operator, harness, viewer")]
pub struct NotARole;

impl Role {
    const ALL: [Self; 5] = [Self::Admin, Self::Member, Self::Operator, Self::Harness, Self::Viewer];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Member => "member",
            Self::Operator => "operator",
            Self::Harness => "harness",
            Self::Viewer => "viewer",
        }
    }
}

impl FromStr for Role {
    type Err = NotARole;

    fn from_str(text: &str) -> Result<Self, NotARole> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or(NotARole)
    }
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its identity.
    pub id: TokenId,
    /// What it is for.
    pub name: String,
    /// Who speaks with it.
    pub actor: ActorKey,
    /// What it may do.
    pub roles: Vec<Role>,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
    /// When it ends; it does not without this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<i64>,
}

/// Makes a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What it is for; at most 200 characters.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub name: String,
    /// Who speaks with it.
    pub actor: ActorKey,
    /// What it may do; 1 to 5.
    #[schema(min_items = 1, max_items = 5)]
    pub roles: Vec<Role>,
    /// Days until it ends, 1 to 3660; it does not end without this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 3660)]
    pub days: Option<u32>,
}

/// A token that was just made: the only time that its secret is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenMade {
    /// The token.
    pub token: Token,
    /// The secret, `loopd_…`.
    pub secret: String,
}

/// Exchanges a one-time code for a cookie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The code.
    pub code: String,
}

/// Whom the server takes somebody for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhoAmI {
    /// Who speaks.
    pub actor: ActorKey,
    /// What they may do.
    pub roles: Vec<Role>,
}

/// One line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its number, from 1.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// Who.
    pub actor: ActorKey,
    /// What was done, for example `token.create`.
    pub action: String,
    /// To what.
    pub subject: String,
    /// More of it, without secrets and without what people said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_has_one_name() {
        for role in Role::ALL {
            assert_eq!(role.name().parse(), Ok(role));
            assert_eq!(serde_json::to_value(role).unwrap_or_default(), role.name());
        }
        assert_eq!("Admin".parse::<Role>(), Err(NotARole));
    }
}
