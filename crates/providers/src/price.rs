//! Prices that a configuration declares, as people write them. What is listed is in [`crate::catalogue`].

use loopd_kernel::MicroUsd;
use loopd_kernel::units::Price;
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// Dollars per million tokens, as people write them: `1.25` or `"1.25"`, with at most six decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DollarsPerMillion(pub MicroUsd);

impl<'de> Deserialize<'de> for DollarsPerMillion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Dollars;
        impl Visitor<'_> for Dollars {
            type Value = DollarsPerMillion;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("dollars per million tokens, for example 1.25")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<DollarsPerMillion, E> {
                text.parse().map(DollarsPerMillion).map_err(E::custom)
            }

            // The shortest text that reads as this float is what was written.
            fn visit_f64<E: Error>(self, number: f64) -> Result<DollarsPerMillion, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<DollarsPerMillion, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<DollarsPerMillion, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Dollars)
    }
}

impl Serialize for DollarsPerMillion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.to_string().trim_start_matches('$'))
    }
}

/// A price that the configuration declares; it wins over the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredPrice {
    /// Uncached input.
    pub input: DollarsPerMillion,
    /// Output.
    pub output: DollarsPerMillion,
    /// Cache reads; as input where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<DollarsPerMillion>,
    /// Cache writes; as input where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<DollarsPerMillion>,
    /// Reasoning; as output where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<DollarsPerMillion>,
}

impl From<DeclaredPrice> for Price {
    fn from(declared: DeclaredPrice) -> Self {
        let micros = |own: Option<DollarsPerMillion>, else_as: DollarsPerMillion| own.unwrap_or(else_as).0.0;
        Self {
            input: declared.input.0.0,
            cache_read: micros(declared.cache_read, declared.input),
            cache_write: micros(declared.cache_write, declared.input),
            output: declared.output.0.0,
            reasoning: micros(declared.reasoning, declared.output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_prices_read_as_people_write_them() {
        let read = |json: &str| serde_json::from_str::<DeclaredPrice>(json).map(Price::from);
        let price = read(r#"{"input": 1.25, "output": "10", "cache_read": 0.1}"#).expect("a price");
        let expect = Price {
            input: 1_250_000,
            cache_read: 100_000,
            cache_write: 1_250_000,
            output: 10_000_000,
            reasoning: 10_000_000,
        };
        assert_eq!(price, expect);
        assert_eq!(read(r#"{"input": 0, "output": 0}"#).expect("free"), Price::default());
        for wrong in [r#"{"input": 1}"#, r#"{"input": -1, "output": 1}"#, r#"{"input": 0.0000001, "output": 1}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let declared: DeclaredPrice = serde_json::from_str(r#"{"input": 1.25, "output": 10}"#).expect("a price");
        let text = serde_json::to_string(&declared).expect("text");
        assert_eq!(text, r#"{"input":"1.250000","output":"10.000000"}"#);
        assert_eq!(serde_json::from_str::<DeclaredPrice>(&text).expect("again"), declared);
    }
}
