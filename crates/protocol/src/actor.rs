//! Who speaks.

use crate::ids::text_schema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

/// What kind of speaker an Actor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActorKind {
    /// A human being.
    Person,
    /// A Reconcile over Conversations or resources.
    Operator,
    /// An execution service for agents.
    Harness,
}

impl ActorKind {
    /// The name in keys.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Operator => "operator",
            Self::Harness => "harness",
        }
    }
}

/// The identity of an Actor, written `kind/key`. A role of an Operator speaks as `operator/name/role`.
///
/// A key is 1 to 64 characters of `a-z`, `0-9`, `-`, `_` and `.`, and begins with a letter or a digit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorKey {
    kind: ActorKind,
    text: String,
}

/// The text names no Actor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "an actor is written `person/KEY`, `operator/KEY`, `operator/KEY/ROLE` or `harness/KEY`; a key has 1 to 64 of a-z, \
     0-9, -, _ and . and begins with a letter or a digit"
)]
pub struct NotAnActor;

impl ActorKey {
    /// The Actor of this kind with this key.
    ///
    /// # Errors
    /// [`NotAnActor`].
    pub fn new(kind: ActorKind, key: &str) -> Result<Self, NotAnActor> {
        format!("{}/{key}", kind.name()).parse()
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> ActorKind {
        self.kind
    }

    /// `kind/key`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What stands behind the kind.
    #[must_use]
    pub fn key(&self) -> &str {
        self.text.split_once('/').map_or("", |(_, key)| key)
    }

    /// The Operator that a role speaks for; for anybody else the Actor itself.
    #[must_use]
    pub fn owner(&self) -> Self {
        let mut parts = self.text.splitn(3, '/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(kind), Some(key), Some(_)) => Self { kind: self.kind, text: format!("{kind}/{key}") },
            _ => self.clone(),
        }
    }
}

fn is_key(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    matches!(bytes.len(), 1..=64)
        && bytes.first().is_some_and(|first| plain(*first))
        && bytes.iter().all(|byte| plain(*byte) || matches!(byte, b'-' | b'_' | b'.'))
}

impl FromStr for ActorKey {
    type Err = NotAnActor;

    fn from_str(text: &str) -> Result<Self, NotAnActor> {
        let mut parts = text.split('/');
        let kind = match parts.next() {
            Some("person") => ActorKind::Person,
            Some("operator") => ActorKind::Operator,
            Some("harness") => ActorKind::Harness,
            _ => return Err(NotAnActor),
        };
        let keys: Vec<_> = parts.collect();
        let most = if kind == ActorKind::Operator { 2 } else { 1 };
        if keys.is_empty() || keys.len() > most || !keys.iter().all(|key| is_key(key)) {
            return Err(NotAnActor);
        }
        Ok(Self { kind, text: text.to_owned() })
    }
}

impl PartialSchema for ActorKey {
    fn schema() -> RefOr<Schema> {
        text_schema(
            "^(person|harness)/[a-z0-9][a-z0-9._-]{0,63}$|^operator/[a-z0-9][a-z0-9._-]{0,63}(/[a-z0-9][a-z0-9._-]{0,63})?$",
        )
    }
}

impl ToSchema for ActorKey {}

impl fmt::Display for ActorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ActorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for ActorKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for ActorKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// An Actor as discovery lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    /// Its identity.
    pub key: ActorKey,
    /// Its name for people.
    pub name: String,
    /// What it does, for people and for whoever chooses whom to ask.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Until when it can be addressed, in milliseconds since 1970; absent for people. It is a lease: no health check, and
    /// no lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online_until: Option<i64>,
    /// True when that is not over.
    #[serde(default)]
    pub online: bool,
    /// Labelled in pages: it plays a script and knows nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub demo: bool,
    /// When it was first known, in milliseconds since 1970.
    pub created_at: i64,
}

/// Announces an Actor, and renews its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// Its name for people; 1 to 200 characters.
    #[schema(min_length = 1, max_length = 200)]
    pub name: String,
    /// What it does; at most 2,000 characters.
    #[serde(default)]
    #[schema(max_length = 2000)]
    pub description: String,
    /// Seconds until the lease ends, 1 to 3600. Meaningless for people.
    #[serde(default = "minute")]
    #[schema(minimum = 1, maximum = 3600)]
    pub lease_s: u32,
}

const fn minute() -> u32 {
    60
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_checked_and_a_role_belongs_to_its_operator() {
        for good in ["person/ann", "operator/router", "operator/long-horizon/manager", "harness/a.b_c", "person/0"] {
            assert_eq!(good.parse::<ActorKey>().map(|key| key.to_string()), Ok(good.to_owned()));
        }
        for bad in [
            "",
            "ann",
            "person/",
            "person/Ann",
            "person/a/b",
            "harness/a/b",
            "operator/a/b/c",
            "person/-a",
            "robot/a",
            "person/a b",
            "person/ä",
            "operator//a",
            &format!("person/{}", "a".repeat(65)),
        ] {
            assert_eq!(bad.parse::<ActorKey>(), Err(NotAnActor), "{bad}");
        }
        let role: ActorKey = "operator/router/plan".parse().unwrap();
        assert_eq!(
            (role.owner().as_str(), role.key(), role.kind()),
            ("operator/router", "router/plan", ActorKind::Operator)
        );
        assert_eq!(role.owner().owner(), role.owner());
    }
}
