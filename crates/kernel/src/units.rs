//! Money, time and token counts: integers with their unit in the type.

use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// An amount of money in micro-dollars (millionths of a US dollar). Never a float.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

impl MicroUsd {
    /// The sum, at most the largest amount.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for MicroUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// The text is not an amount of dollars with at most six decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAnAmount;

impl fmt::Display for NotAnAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected dollars with at most six decimals, for example 0.25")
    }
}

impl core::error::Error for NotAnAmount {}

impl FromStr for MicroUsd {
    type Err = NotAnAmount;

    fn from_str(text: &str) -> Result<Self, NotAnAmount> {
        let (whole, part) = text.strip_prefix('$').unwrap_or(text).split_once('.').unwrap_or((text, ""));
        let whole = whole.strip_prefix('$').unwrap_or(whole);
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 6 {
            return Err(NotAnAmount);
        }
        let whole: u64 = whole.parse().map_err(|_| NotAnAmount)?;
        let mut micros: u64 = if part.is_empty() { 0 } else { part.parse().map_err(|_| NotAnAmount)? };
        for _ in part.len()..6 {
            micros *= 10;
        }
        whole.checked_mul(1_000_000).and_then(|w| w.checked_add(micros)).map(Self).ok_or(NotAnAmount)
    }
}

/// A moment: milliseconds since 1970-01-01T00:00:00 UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimeMs(pub i64);

impl TimeMs {
    /// The moment `ms` milliseconds later, at most the last one.
    #[must_use]
    pub const fn after(self, ms: u64) -> Self {
        let ms = if ms > i64::MAX as u64 { i64::MAX } else { ms as i64 };
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this moment, at least zero.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        let ms = self.0.saturating_sub(earlier.0);
        if ms < 0 { 0 } else { ms as u64 }
    }
}

/// Tokens of one model call in disjoint classes: no token is counted in two of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Input tokens that were not served from a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub input: u64,
    /// Input tokens read from the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Input tokens written to the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// Output tokens without reasoning.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output: u64,
    /// Reasoning tokens.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

/// For `skip_serializing_if`.
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Usage {
    /// All tokens.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
            .saturating_add(self.output)
            .saturating_add(self.reasoning)
    }

    /// The sum per class.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

/// Prices of one model in micro-dollars per million tokens, one per usage class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Uncached input.
    pub input: u64,
    /// Cache reads.
    pub cache_read: u64,
    /// Cache writes.
    pub cache_write: u64,
    /// Output.
    pub output: u64,
    /// Reasoning.
    pub reasoning: u64,
}

impl Price {
    /// What `usage` costs, each class priced once, rounded up to a whole micro-dollar.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> MicroUsd {
        let classes = [
            (self.input, usage.input),
            (self.cache_read, usage.cache_read),
            (self.cache_write, usage.cache_write),
            (self.output, usage.output),
            (self.reasoning, usage.reasoning),
        ];
        let sum: u128 = classes.iter().map(|(price, tokens)| u128::from(*price) * u128::from(*tokens)).sum();
        MicroUsd(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn money_reads_and_writes() {
        for (text, micros) in [("0.25", 250_000), ("$1", 1_000_000), ("0.000001", 1), ("12.5", 12_500_000)] {
            assert_eq!(text.parse(), Ok(MicroUsd(micros)), "{text}");
        }
        for bad in ["", ".", "-1", "1e3", "0.0000001", "1.x", "99999999999999999999"] {
            assert_eq!(bad.parse::<MicroUsd>(), Err(NotAnAmount), "{bad}");
        }
        assert_eq!(MicroUsd(1_250_000).to_string(), "$1.250000");
    }

    #[test]
    fn each_usage_class_is_priced_once() {
        let price = Price { input: 1_000_000, cache_read: 100_000, cache_write: 0, output: 2_000_000, reasoning: 0 };
        let usage = Usage { input: 600, cache_read: 400, output: 50, ..Usage::default() };
        assert_eq!(price.cost(&usage), MicroUsd(740));
        assert_eq!(Price::default().cost(&usage), MicroUsd(0));
    }
}
