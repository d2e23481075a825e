//! Typed identities: 16 bytes, written as a prefix and 32 hexadecimal digits.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

/// The text is not an identity of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub struct NotAnId(pub &'static str);

fn parse(text: &str, prefix: &str, expected: &'static str) -> Result<[u8; 16], NotAnId> {
    let wrong = || NotAnId(expected);
    let hex = text.strip_prefix(prefix).ok_or_else(wrong)?.as_bytes();
    if hex.len() != 32 || !hex.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(wrong());
    }
    let digit = |byte: u8| if byte <= b'9' { byte - b'0' } else { byte - b'a' + 10 };
    let mut bytes = [0; 16];
    for (slot, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
        *slot = pair.iter().fold(0, |value, byte| value << 4 | digit(*byte));
    }
    Ok(bytes)
}

/// The OpenAPI schema of a text that matches `pattern`.
pub(crate) fn text_schema(pattern: &str) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).pattern(Some(pattern));
    RefOr::T(Schema::Object(text.build()))
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 16]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($prefix)?;
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;

            fn from_str(text: &str) -> Result<Self, NotAnId> {
                parse(text, $prefix, concat!("`", $prefix, "` and 32 hexadecimal digits")).map(Self)
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                text_schema(concat!("^", $prefix, "[0-9a-f]{32}$"))
            }
        }

        impl ToSchema for $name {}

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id!(
    /// The identity of a Conversation.
    ConversationId, "con_"
);
id!(
    /// The identity of a Message.
    MessageId, "msg_"
);
id!(
    /// The identity of a Question.
    QuestionId, "qst_"
);
id!(
    /// The identity of a HarnessCall.
    HarnessCallId, "hcl_"
);
id!(
    /// The identity of an artifact.
    ArtifactId, "art_"
);
id!(
    /// The identity of an API token. It is no secret.
    TokenId, "tok_"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_what_it_wrote_and_nothing_else() {
        let id = MessageId([0xab, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff]);
        let text = id.to_string();
        assert_eq!(text, "msg_ab0102030405060708090a0b0c0d0eff");
        assert_eq!(text.parse(), Ok(id));
        for wrong in [
            "",
            "msg_",
            "con_ab0102030405060708090a0b0c0d0eff",
            "msg_AB0102030405060708090a0b0c0d0eff",
            "msg_ab0102030405060708090a0b0c0d0ef",
            "msg_ab0102030405060708090a0b0c0d0eff0",
            "msg_äb0102030405060708090a0b0c0d0ef",
        ] {
            assert!(wrong.parse::<MessageId>().is_err(), "{wrong}");
        }
    }
}
