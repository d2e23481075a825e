//! JSON that a model wrote, as a value to look at. The text itself is what is kept and passed on.
//!
//! The value is only ever compared with a schema, so a number that no machine type holds (`1e400`) may stand
//! there as the largest one. Two things are refused although JSON allows them: a key that occurs twice, because
//! whoever reads the text next may take the other one, and nesting without end.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};
use std::fmt;

/// Levels of arrays and objects, as serde_json limits them itself.
const MAX_DEPTH: u32 = 128;

/// The value of a JSON text.
pub(crate) fn value(text: &str) -> Result<Value, String> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| not_json(&error))?;
    read(raw, MAX_DEPTH)
}

fn not_json(error: &serde_json::Error) -> String {
    format!("it is not valid JSON: {error}")
}

fn read(raw: &RawValue, depth: u32) -> Result<Value, String> {
    let text = raw.get();
    let wrong = |error: serde_json::Error| not_json(&error);
    let deeper = || depth.checked_sub(1).ok_or_else(|| format!("it is nested deeper than {MAX_DEPTH} levels"));
    Ok(match text.bytes().next() {
        Some(b'{') => {
            let depth = deeper()?;
            let mut map = Map::new();
            for (key, raw) in serde_json::from_str::<Entries<'_>>(text).map_err(wrong)?.0 {
                let value = read(raw, depth)?;
                if map.contains_key(&key) {
                    return Err(format!("the key `{}` occurs twice", crate::text::bounded(&key, 64)));
                }
                map.insert(key, value);
            }
            Value::Object(map)
        }
        Some(b'[') => {
            let depth = deeper()?;
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(wrong)?;
            Value::Array(items.into_iter().map(|raw| read(raw, depth)).collect::<Result<_, _>>()?)
        }
        Some(b'-' | b'0'..=b'9') => number(text).map(Value::Number).ok_or("it holds a number that does not read")?,
        Some(_) | None => serde_json::from_str(text).map_err(wrong)?,
    })
}

fn number(text: &str) -> Option<Number> {
    serde_json::from_str(text).ok().or_else(|| {
        let value: f64 = text.parse().ok()?;
        Number::from_f64(value.clamp(f64::MIN, f64::MAX))
    })
}

/// The entries of an object, doubles included.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;

        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(EntriesVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_reads_and_doubles_and_depth_do_not() {
        let text =
            r#" {"a":[1,-2,1.5,true,null,"x\u00e9"],"big":2512292042121000001,"huge":1e400,"low":-1e400,"z":-0.0} "#;
        let value = value(text).expect("reads");
        assert_eq!(value["big"], 2_512_292_042_121_000_001_u64);
        assert_eq!(value["huge"], f64::MAX);
        assert_eq!(value["low"], f64::MIN);
        assert_eq!(value["a"][5], "xé");
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(super::value(&deep(128)).is_ok());
        for (bad, why) in [
            (r#"{"a":1,"a":2}"#, "the key `a` occurs twice"),
            (&deep(129), "nested deeper"),
            (&deep(100_000), "nested deeper"),
            (r#"{"city":"A"}{"city":"B"}"#, "trailing characters"),
            ("{", "EOF while parsing"),
            ("", "EOF while parsing"),
            (r#"{"score":NaN}"#, "expected value"),
            (r#""\ud800""#, "not valid JSON"),
        ] {
            let error = super::value(bad).expect_err(bad);
            assert!(error.contains(why), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_breaks_it(text in "[\\[\\]{}\":,0-9eE.+\\-a-n\\\\ ]{0,40}") {
            let ours = value(&text);
            // Where serde_json reads a value without doubles, so do we, and the same.
            if let (Ok(theirs), Ok(ours)) = (serde_json::from_str::<Value>(&text), &ours) {
                proptest::prop_assert_eq!(&theirs, ours);
            }
        }
    }
}
