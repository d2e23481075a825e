//! SHA-256 digests and their one textual form (base64url without padding, 43 characters).

use alloc::string::String;
use core::fmt;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Digest(pub [u8; 32]);

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Digest {
    /// The digest of `parts`, each preceded by its length, so that no two lists of parts collide by
    /// moving a boundary. `domain` separates uses.
    #[must_use]
    pub fn of(domain: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update((domain.len() as u64).to_be_bytes());
        hasher.update(domain.as_bytes());
        for part in parts {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// The plain SHA-256 of the concatenation of `parts`: what anybody can recompute with a standard tool.
    #[must_use]
    pub fn sha256(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// Parses the textual form.
    ///
    /// # Errors
    /// [`NotADigest`] when `text` is not 43 base64url characters of 32 bytes.
    pub fn parse(text: &str) -> Result<Self, NotADigest> {
        let mut out = [0_u8; 32];
        let (mut bits, mut count, mut at) = (0_u32, 0_u32, 0_usize);
        if text.len() != 43 {
            return Err(NotADigest);
        }
        for byte in text.bytes() {
            let value = ALPHABET.iter().position(|a| *a == byte).ok_or(NotADigest)?;
            bits = (bits << 6) | value as u32;
            count += 6;
            if count >= 8 {
                count -= 8;
                *out.get_mut(at).ok_or(NotADigest)? = (bits >> count) as u8;
                bits &= (1 << count) - 1;
                at += 1;
            }
        }
        // The last character carries two unused bits; only zero is canonical.
        if bits == 0 && at == 32 { Ok(Self(out)) } else { Err(NotADigest) }
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
        let mut text = String::with_capacity(43);
        let (mut bits, mut count) = (0_u32, 0_u32);
        for byte in self.0 {
            bits = (bits << 8) | u32::from(byte);
            count += 8;
            while count >= 6 {
                count -= 6;
                text.push(char::from(ALPHABET[(bits >> count) as usize & 63]));
            }
            bits &= (1 << count) - 1;
        }
        text.push(char::from(ALPHABET[(bits << (6 - count)) as usize & 63]));
        text
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
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
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
    fn parts_do_not_collide_by_moving_a_boundary() {
        assert_ne!(Digest::of("t", &[b"ab", b"c"]), Digest::of("t", &[b"a", b"bc"]));
        assert_ne!(Digest::of("t", &[b"abc"]), Digest::of("u", &[b"abc"]));
    }
}
