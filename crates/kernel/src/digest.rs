//! SHA-256 digests and their one textual form (base64url without padding, 43 characters).

use crate::base64url;
use alloc::string::String;
use core::fmt;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of `parts`, each preceded by its length, so that no two lists of parts collide by
    /// moving a boundary. `domain` separates uses.
    #[must_use]
    pub fn of(domain: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = Gathering::default();
        hasher.add(&(domain.len() as u64).to_be_bytes());
        hasher.add(domain.as_bytes());
        for part in parts {
            hasher.add(&(part.len() as u64).to_be_bytes());
            hasher.add(part);
        }
        hasher.finish()
    }

    /// The plain SHA-256 of the concatenation of `parts`: what anybody can recompute with a standard tool.
    #[must_use]
    pub fn sha256(parts: &[&[u8]]) -> Self {
        let mut hasher = Gathering::default();
        for part in parts {
            hasher.add(part);
        }
        hasher.finish()
    }

    /// Parses the textual form.
    ///
    /// # Errors
    /// [`NotADigest`] when `text` is not 43 base64url characters of 32 bytes.
    pub fn parse(text: &str) -> Result<Self, NotADigest> {
        base64url::decode_array(text).map(Self).ok_or(NotADigest)
    }

    /// The first eight characters: enough to recognise a digest in a table.
    #[must_use]
    pub fn short(&self) -> String {
        let mut text = self.text();
        text.truncate(8);
        text
    }

    /// The textual form.
    #[must_use]
    pub fn text(&self) -> String {
        base64url::encode(&self.0)
    }
}

/// Bytes that are gathered before they are hashed.
const GATHERED: usize = 256;

/// SHA-256 over small pieces: handed over one by one, they would cost more than they take to hash.
struct Gathering {
    hasher: Sha256,
    bytes: [u8; GATHERED],
    filled: usize,
}

impl Default for Gathering {
    fn default() -> Self {
        Self { hasher: Sha256::new(), bytes: [0; GATHERED], filled: 0 }
    }
}

impl Gathering {
    fn add(&mut self, piece: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.filled..self.filled + piece.len()) {
            room.copy_from_slice(piece);
            self.filled += piece.len();
            return;
        }
        self.hasher.update(&self.bytes[..self.filled]);
        self.filled = 0;
        self.hasher.update(piece);
    }

    fn finish(mut self) -> Digest {
        self.hasher.update(&self.bytes[..self.filled]);
        Digest(self.hasher.finalize().into())
    }
}

/// Reads a value from its textual form, of which no copy is made.
pub(crate) struct Parsed<T, E>(pub(crate) fn(&str) -> Result<T, E>);

impl<T, E: fmt::Display> de::Visitor<'_> for Parsed<T, E> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<F: de::Error>(self, text: &str) -> Result<T, F> {
        (self.0)(text).map_err(F::custom)
    }
}

/// The text is not the textual form of a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotADigest;

impl fmt::Display for NotADigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a digest of 43 base64url characters")
    }
}

impl core::error::Error for NotADigest {}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(base64url::encode_into(&self.0, &mut [0; base64url::encoded_len(32)]))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Parsed(Self::parse))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_and_refuses_everything_else() {
        for seed in 0..64_u8 {
            let digest = Digest::sha256(&[&[seed]]);
            assert_eq!(Digest::parse(&digest.text()), Ok(digest));
        }
        let good = Digest::sha256(&[b"x"]).text();
        for bad in ["", "short", &good[1..], &alloc::format!("{good}A"), &good.replace(&good[5..6], "!")] {
            assert_eq!(Digest::parse(bad), Err(NotADigest), "{bad}");
        }
    }

    #[test]
    fn pieces_of_any_size_hash_like_the_whole() {
        let bytes: alloc::vec::Vec<u8> = (0..1_000_u32).map(|n| n as u8).collect();
        for size in [1, 7, 63, 64, 255, 256, 257, 600] {
            let pieces: alloc::vec::Vec<&[u8]> = bytes.chunks(size).collect();
            assert_eq!(Digest::sha256(&pieces).0, <[u8; 32]>::from(Sha256::digest(&bytes)), "{size}");
        }
    }

    #[test]
    fn parts_do_not_collide_by_moving_a_boundary() {
        assert_ne!(Digest::of("t", &[b"ab", b"c"]), Digest::of("t", &[b"a", b"bc"]));
        assert_ne!(Digest::of("t", &[b"abc"]), Digest::of("u", &[b"abc"]));
    }
}
