//! Typed identities. Each has one textual form, used in output, logs and arguments alike.

use crate::digest::Parsed;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The identity of a Run: 16 bytes, written `run_` and 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub [u8; 16]);

const HEX: &[u8; 16] = b"0123456789abcdef";

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = *b"run_................................";
        for (pair, byte) in text[4..].chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        f.write_str(core::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not an identity of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAnId {
    /// What was expected.
    pub expected: &'static str,
}

impl fmt::Display for NotAnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.expected)
    }
}

impl core::error::Error for NotAnId {}

impl FromStr for RunId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let wrong = NotAnId { expected: "a run id: `run_` and 32 hexadecimal digits" };
        let hex = text.strip_prefix("run_").ok_or_else(|| wrong.clone())?;
        if hex.len() != 32 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(wrong);
        }
        let mut bytes = [0_u8; 16];
        for (at, slot) in bytes.iter_mut().enumerate() {
            *slot = u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).map_err(|_| wrong.clone())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Parsed(str::parse))
    }
}

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The one after this.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
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
                let digits = text.strip_prefix($prefix).unwrap_or(text);
                digits.parse().map(Self).map_err(|_| NotAnId { expected: concat!("`", $prefix, "` and a number") })
            }
        }
    };
}

number_id!(
    /// The place of an Entry in its Journal; the first Entry is 1, 0 is the empty Journal.
    Seq, ""
);
number_id!(
    /// One Call of a Run, numbered from 1 in the order in which they were decided.
    CallId, "call-"
);
number_id!(
    /// One Question of a Run, numbered from 1.
    QuestionId, "q"
);
number_id!(
    /// One timer of a Run, numbered from 1.
    TimerId, "timer-"
);
number_id!(
    /// The fencing number of the right to drive a Run.
    Epoch, "epoch-"
);

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn every_id_reads_what_it_writes() {
        let run = RunId([7; 16]);
        assert_eq!(run.to_string().parse(), Ok(run));
        assert_eq!(CallId(12).to_string().parse(), Ok(CallId(12)));
        assert_eq!("q3".parse(), Ok(QuestionId(3)));
        for bad in ["run_", "run_zz", "07070707070707070707070707070707", "run_070707070707070707070707070707é"] {
            assert!(bad.parse::<RunId>().is_err(), "{bad}");
        }
    }
}
