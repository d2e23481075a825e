//! The small texts of a manifest: money, temperature, duration, and JSON kept in its written order.
//!
//! YAML reads `0.50` as a float before anybody can object. Its shortest decimal form is exactly what was
//! written, as far as the six or three decimals that are allowed here go, so numbers are taken by their text.

use loopd_kernel::MicroUsd;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// An amount of dollars, written as a decimal number: `"0.50"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dollars(pub MicroUsd);

/// A sampling temperature from 0 to 2, kept in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Temperature {
    /// Thousandths.
    pub milli: u32,
}

/// A duration, written with units: `90s`, `10m`, `1h30m`, `1d`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Duration {
    /// Milliseconds.
    pub ms: u64,
}

/// A JSON value as text, with the order of its keys as written: a model fills an object in the order of its
/// schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonText(String);

const DOLLARS: &str = "dollars with at most six decimals, for example \"0.25\"";
const TEMPERATURE: &str = "a number from 0 to 2 with at most three decimals, for example 0.7";
const DURATION: &str = "a duration with units, for example 90s, 10m, 1h30m or 1d";

/// The value of `text` in units of 10^-`decimals`; `None` when it is no plain decimal number of that precision.
fn decimal(text: &str, decimals: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|byte| byte.is_ascii_digit());
    // `1.500` says no more than `1.5`.
    let part = part.trim_end_matches('0');
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > decimals {
        return None;
    }
    let scale = 10_u64.checked_pow(u32::try_from(decimals).ok()?)?;
    let whole = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    let part = if part.is_empty() { 0 } else { format!("{part:0<decimals$}").parse::<u64>().ok()? };
    whole.checked_add(part)
}

/// Writes `value` units of 10^-`decimals` as the shortest decimal number.
fn write_decimal(f: &mut fmt::Formatter<'_>, value: u64, decimals: usize) -> fmt::Result {
    let scale = 10_u64.pow(decimals as u32);
    let (whole, part) = (value / scale, value % scale);
    if part == 0 {
        return write!(f, "{whole}");
    }
    write!(f, "{whole}.{}", format!("{part:0>decimals$}").trim_end_matches('0'))
}

impl FromStr for Dollars {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = text.strip_prefix('$').unwrap_or(text);
        decimal(plain, 6).map(|micros| Self(MicroUsd(micros))).ok_or(DOLLARS)
    }
}

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, self.0.0, 6)
    }
}

impl FromStr for Temperature {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let milli = decimal(text, 3).filter(|milli| *milli <= 2000).and_then(|milli| u32::try_from(milli).ok());
        milli.map(|milli| Self { milli }).ok_or(TEMPERATURE)
    }
}

impl fmt::Display for Temperature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, u64::from(self.milli), 3)
    }
}

/// Units from the largest to the smallest.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl FromStr for Duration {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (mut rest, mut ms) = (text, 0_u64);
        while !rest.is_empty() {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (count, after) = rest.split_at(digits);
            let letters = after.len() - after.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
            let (unit, after) = after.split_at(letters);
            let size = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size);
            let part = count.parse::<u64>().ok().zip(size).and_then(|(count, size)| count.checked_mul(size));
            ms = part.and_then(|part| ms.checked_add(part)).ok_or(DURATION)?;
            rest = after;
        }
        if text.is_empty() { Err(DURATION) } else { Ok(Self { ms }) }
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.ms;
        for (name, size) in UNITS {
            if left >= size {
                write!(f, "{}{name}", left / size)?;
                left %= size;
            }
        }
        if self.ms == 0 { f.write_str("0s") } else { Ok(()) }
    }
}

/// Reads a scalar by its text, whatever YAML took it for.
struct ByText<T>(&'static str, std::marker::PhantomData<T>);

impl<T: FromStr<Err = &'static str>> Visitor<'_> for ByText<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        number.to_string().parse().map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        number.to_string().parse().map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        number.to_string().parse().map_err(|_| E::invalid_value(de::Unexpected::Float(number), &self))
    }
}

macro_rules! by_text {
    ($name:ident, $expecting:expr, $schema:expr) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(ByText($expecting, std::marker::PhantomData))
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

by_text!(
    Dollars,
    DOLLARS,
    json_schema!({ "type": ["string", "number"], "pattern": r"^\$?[0-9]+(\.[0-9]{0,6})?$", "minimum": 0 })
);
by_text!(
    Temperature,
    TEMPERATURE,
    json_schema!({ "type": ["number", "string"], "pattern": r"^[0-2](\.[0-9]{0,3})?$", "minimum": 0, "maximum": 2 })
);
by_text!(Duration, DURATION, json_schema!({ "type": "string", "pattern": "^([0-9]+(d|h|m|s|ms))+$" }));

impl JsonText {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(&self.0).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Json)
    }
}

impl JsonSchema for JsonText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "JsonText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["object", "boolean"] })
    }
}

struct Json;

fn written<E: de::Error>(value: &impl Serialize) -> Result<JsonText, E> {
    serde_json::to_string(value).map(JsonText).map_err(E::custom)
}

impl<'de> Visitor<'de> for Json {
    type Value = JsonText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON can express")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<JsonText, E> {
        written(&value)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<JsonText, E> {
        written(&value)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<JsonText, E> {
        written(&value)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<JsonText, E> {
        if value.is_finite() { written(&value) } else { Err(E::invalid_value(de::Unexpected::Float(value), &self)) }
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<JsonText, E> {
        written(&value)
    }

    fn visit_unit<E: de::Error>(self) -> Result<JsonText, E> {
        Ok(JsonText("null".into()))
    }

    fn visit_none<E: de::Error>(self) -> Result<JsonText, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<JsonText, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<JsonText, A::Error> {
        let mut text = String::from("[");
        while let Some(JsonText(item)) = seq.next_element()? {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&item);
        }
        text.push(']');
        Ok(JsonText(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonText, A::Error> {
        let mut text = String::from("{");
        while let Some((key, JsonText(value))) = map.next_entry::<String, JsonText>()? {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&written::<A::Error>(&key)?.0);
            text.push(':');
            text.push_str(&value);
        }
        text.push('}');
        Ok(JsonText(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_durations_read_by_their_text() {
        for (text, micros) in [("0.50", 500_000), ("$2", 2_000_000), ("0.000001", 1), ("12.500000", 12_500_000)] {
            assert_eq!(text.parse::<Dollars>().map(|d| d.0.0), Ok(micros), "{text}");
        }
        for (text, milli) in [("0", 0), ("0.7", 700), ("2", 2000), ("1.125", 1125)] {
            assert_eq!(text.parse::<Temperature>().map(|t| t.milli), Ok(milli), "{text}");
        }
        for (text, ms) in [("10m", 600_000), ("1h30m", 5_400_000), ("1500ms", 1_500), ("0s", 0), ("1d", 86_400_000)] {
            assert_eq!(text.parse::<Duration>().map(|d| d.ms), Ok(ms), "{text}");
        }
        for bad in ["", "-1", "1e3", "0.0000001", ".5", "x", "1.2.3", "99999999999999999999"] {
            assert!(bad.parse::<Dollars>().is_err(), "{bad}");
        }
        for bad in ["2.001", "3", "0.0001", "-0"] {
            assert!(bad.parse::<Temperature>().is_err(), "{bad}");
        }
        for bad in ["", "10", "m", "10 m", "10x", "-1s", "99999999999999999999s", "99999999999999d"] {
            assert!(bad.parse::<Duration>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        for text in ["0.5", "2", "0.000001"] {
            assert_eq!(text.parse::<Dollars>().map(|d| d.to_string()).as_deref(), Ok(text));
        }
        for text in ["0.7", "2", "1.125"] {
            assert_eq!(text.parse::<Temperature>().map(|t| t.to_string()).as_deref(), Ok(text));
        }
        for text in ["1h30m", "1d", "1s500ms", "0s"] {
            assert_eq!(text.parse::<Duration>().map(|d| d.to_string()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn json_keeps_the_order_of_its_keys_and_the_form_of_its_numbers() {
        let text = r#"{"z":[1,-2,0.5,1.0,18446744073709551615,true,null],"a":{"é\n":"x"}}"#;
        let read: JsonText = serde_json::from_str(text).expect("reads");
        assert_eq!(read.as_str(), text);
        assert_eq!(serde_json::to_string(&read).expect("writes"), text);
        let yaml: JsonText = serde_saphyr::from_str("z: [1, 0.5]\na: {y: x, b: ~}\n").expect("reads");
        assert_eq!(yaml.as_str(), r#"{"z":[1,0.5],"a":{"y":"x","b":null}}"#);
    }
}
