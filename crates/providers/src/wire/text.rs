//! Text out of JSON strings, where a server may cut a character into two halves.
//!
//! A JSON string may hold half of a UTF-16 surrogate pair (`"\ud83c"`). Servers that stream by UTF-16 units put
//! one half into one delta and the second into the next. Such text is kept as WTF-8 until both halves are there;
//! only a half that stays alone becomes U+FFFD, because the journal holds UTF-8.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A JSON string, halves of surrogate pairs included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonText(Vec<u8>);

impl JsonText {
    /// Nothing but white space, or nothing at all.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.0.iter().all(u8::is_ascii_whitespace)
    }

    /// No text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, lone halves replaced.
    #[must_use]
    pub fn into_string(self) -> String {
        joined(&self.0)
    }
}

impl AsRef<[u8]> for JsonText {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A [`JsonText`] that lies in the event where it can: most strings hold nothing that JSON escapes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonStr<'a>(Cow<'a, [u8]>);

impl JsonStr<'_> {
    /// Nothing but white space, or nothing at all.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.0.iter().all(u8::is_ascii_whitespace)
    }

    /// No text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, lone halves replaced.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => text.into(),
            Err(_) => joined(&self.0).into(),
        }
    }
}

impl AsRef<[u8]> for JsonStr<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonStr<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl<'de> Visitor<'de> for Bytes {
            type Value = JsonStr<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
                Ok(JsonStr(bytes.into()))
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(JsonStr(bytes.to_vec().into()))
            }
        }
        // For serde_json this is the way to a string that need not be UTF-8.
        deserializer.deserialize_bytes(Bytes)
    }
}

impl From<&str> for JsonText {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = JsonText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<JsonText, E> {
                Ok(JsonText(bytes.to_vec()))
            }
        }
        // For serde_json this is the way to a string that need not be UTF-8.
        deserializer.deserialize_bytes(Bytes)
    }
}

/// Text that arrives in pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrowingText {
    bytes: Vec<u8>,
    shown: usize,
}

impl GrowingText {
    /// Adds a piece and says what can be shown now: a first half waits for its second.
    pub fn push(&mut self, piece: &impl AsRef<[u8]>) -> String {
        self.bytes.extend_from_slice(piece.as_ref());
        let waits = match self.bytes.last_chunk() {
            Some(last) if is_high(last) => 3,
            _ => 0,
        };
        let end = self.bytes.len() - waits;
        let new = self.bytes.get(self.shown..end).map(joined).unwrap_or_default();
        self.shown = end.max(self.shown);
        new
    }

    /// Everything, lone halves replaced.
    #[must_use]
    pub fn text(&self) -> String {
        joined(&self.bytes)
    }

    /// Nothing but white space, or nothing at all.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.bytes.iter().all(u8::is_ascii_whitespace)
    }
}

fn is_high(three: &[u8; 3]) -> bool {
    three[0] == 0xED && (0xA0..0xB0).contains(&three[1])
}

/// The UTF-16 unit of a surrogate half in WTF-8.
fn unit(three: &[u8]) -> u16 {
    0xD000 | u16::from(three[1] & 0x3F) << 6 | u16::from(three[2] & 0x3F)
}

fn joined(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(3).position(|three| three[0] == 0xED && three[1] >= 0xA0) {
        text.push_str(&String::from_utf8_lossy(&rest[..at]));
        let mut units = vec![unit(&rest[at..])];
        rest = &rest[at + 3..];
        if let Some(next) = rest.first_chunk::<3>().filter(|next| next[0] == 0xED && next[1] >= 0xB0)
            && (0xD800..0xDC00).contains(&units[0])
        {
            units.push(unit(next));
            rest = &rest[3..];
        }
        text.extend(char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)));
    }
    text.push_str(&String::from_utf8_lossy(rest));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], shown: &[&str], text: &str) {
        let mut growing = GrowingText::default();
        let seen: Vec<String> = pieces
            .iter()
            .map(|piece| {
                growing.push(&serde_json::from_str::<JsonText>(&format!("\"{piece}\"")).expect("a JSON string"))
            })
            .collect();
        assert_eq!(seen, shown);
        assert_eq!(growing.text(), text);
    }

    #[test]
    fn halves_of_a_character_are_joined() {
        check(&["a", "é\\n", "那"], &["a", "é\n", "那"], "aé\n那");
        check(&["x\\ud83c", "\\udf89y"], &["x", "🎉y"], "x🎉y");
        check(&["\\ud83c\\udf89"], &["🎉"], "🎉");
        check(&["a\\ud83c", "b"], &["a", "\u{fffd}b"], "a\u{fffd}b");
        check(&["a\\udf89b"], &["a\u{fffd}b"], "a\u{fffd}b");
        check(&["\\ud83c\\ud83c", "\\udf89"], &["\u{fffd}", "🎉"], "\u{fffd}🎉");
        check(&["end\\ud83c"], &["end"], "end\u{fffd}");
        check(&["a\\u0000b"], &["a\0b"], "a\0b");
    }
}
