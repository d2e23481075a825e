//! Usage in disjoint classes. In this protocol the input classes are disjoint already, and thinking is a part of the
//! output, counted by newer servers alone.

use loopd_kernel::Usage;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// What the server counted so far.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    #[serde(rename = "output_tokens_details", deserialize_with = "thinking")]
    thinking_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    thinking_tokens: Option<u64>,
}

/// A detail that cannot be read makes no count unknown: all of it is output then.
fn thinking<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    let details: Option<Details> = serde_json::from_str(raw.get()).unwrap_or_default();
    Ok(details.and_then(|details| details.thinking_tokens))
}

impl Counts {
    /// Takes a later count, which holds the sums and not what was added. A class that it leaves out, or shows as
    /// nothing as some servers do, stays as it was said before.
    pub(super) fn update(&mut self, raw: &RawValue) {
        let Ok(later) = serde_json::from_str::<Self>(raw.get()) else {
            return;
        };
        let newer = |later: Option<u64>, before: Option<u64>| later.filter(|count| *count > 0).or(before).or(later);
        self.input_tokens = newer(later.input_tokens, self.input_tokens);
        self.cache_read_input_tokens = newer(later.cache_read_input_tokens, self.cache_read_input_tokens);
        self.cache_creation_input_tokens = newer(later.cache_creation_input_tokens, self.cache_creation_input_tokens);
        self.output_tokens = newer(later.output_tokens, self.output_tokens);
        self.thinking_tokens = newer(later.thinking_tokens, self.thinking_tokens);
    }

    /// Usage, when the server said it. Zeros all over are what servers write that do not count: unknown.
    pub(super) fn usage(self) -> Option<Usage> {
        let (output, reasoning) = (self.output_tokens?, self.thinking_tokens.unwrap_or(0));
        let usage = Usage {
            input: self.input_tokens?,
            cache_read: self.cache_read_input_tokens.unwrap_or(0),
            cache_write: self.cache_creation_input_tokens.unwrap_or(0),
            // A part is never larger than its sum, so a larger one stands beside it.
            output: output.checked_sub(reasoning).unwrap_or(output),
            reasoning,
        };
        Some(usage).filter(|usage| usage.total() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(counts: &[&str], expect: Option<[u64; 5]>) {
        let mut all = Counts::default();
        for json in counts {
            let raw: Box<RawValue> = serde_json::from_str(json).expect("JSON");
            all.update(&raw);
        }
        let expect = expect.map(|[input, cache_read, cache_write, output, reasoning]| Usage {
            input,
            cache_read,
            cache_write,
            output,
            reasoning,
        });
        assert_eq!(all.usage(), expect, "{counts:?}");
    }

    #[test]
    fn gov_02_no_token_is_counted_twice() {
        let start = r#"{"input_tokens":20,"cache_creation_input_tokens":300,"cache_read_input_tokens":4000,"output_tokens":1,"service_tier":"standard"}"#;
        check(&[start, r#"{"output_tokens":50}"#], Some([20, 4000, 300, 50, 0]));
        check(
            &[
                start,
                r#"{"input_tokens":20,"cache_creation_input_tokens":300,"cache_read_input_tokens":4000,"output_tokens":50}"#,
            ],
            Some([20, 4000, 300, 50, 0]),
        );
        check(&[r#"{"input_tokens":9,"output_tokens":2,"cache_read_input_tokens":null}"#], Some([9, 0, 0, 2, 0]));
    }

    #[test]
    fn gov_02_thinking_is_a_part_of_the_output() {
        let start = r#"{"input_tokens":20,"output_tokens":1,"output_tokens_details":{"thinking_tokens":0}}"#;
        let end = r#"{"output_tokens":2820,"output_tokens_details":{"thinking_tokens":1240}}"#;
        check(&[start, end], Some([20, 0, 0, 1580, 1240]));
        check(&[start, end, r#"{"output_tokens":2830}"#], Some([20, 0, 0, 1590, 1240]));
        check(&[start, r#"{"output_tokens":50,"output_tokens_details":null}"#], Some([20, 0, 0, 50, 0]));
        check(
            &[start, r#"{"output_tokens":50,"output_tokens_details":{"thinking_tokens":50}}"#],
            Some([20, 0, 0, 0, 50]),
        );
        // No part of it: counted beside it.
        check(
            &[start, r#"{"output_tokens":50,"output_tokens_details":{"thinking_tokens":51}}"#],
            Some([20, 0, 0, 50, 51]),
        );
        for odd in ["7", "[]", "{}", r#"{"thinking_tokens":-1}"#, r#"{"thinking_tokens":"many"}"#] {
            let end = format!(r#"{{"output_tokens":50,"output_tokens_details":{odd}}}"#);
            check(&[start, &end], Some([20, 0, 0, 50, 0]));
        }
    }

    #[test]
    fn servers_that_count_at_one_end_only_are_understood() {
        check(
            &[r#"{"input_tokens":0,"output_tokens":0}"#, r#"{"input_tokens":9,"output_tokens":2}"#],
            Some([9, 0, 0, 2, 0]),
        );
        check(
            &[r#"{"input_tokens":9,"output_tokens":1}"#, r#"{"input_tokens":0,"output_tokens":2}"#],
            Some([9, 0, 0, 2, 0]),
        );
    }

    #[test]
    fn unknown_is_not_zero() {
        check(&[], None);
        check(&["{}", "null", "[]"], None);
        check(&[r#"{"input_tokens":9}"#], None);
        check(&[r#"{"input_tokens":0,"output_tokens":0}"#], None);
        check(&[r#"{"input_tokens":"many","output_tokens":1}"#], None);
    }
}
