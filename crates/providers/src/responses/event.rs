//! What a server sends: a whole response or an event of one, everything optional.
//!
//! Values whose exact text matters, or whose shape differs from event to event, stay raw JSON.

use crate::usage::Sums;
use crate::wire::JsonText;
use loopd_kernel::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

/// An event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Option<JsonText>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    /// The place of the item; some servers leave it out.
    #[serde(borrow)]
    pub(super) output_index: Option<&'a RawValue>,
    /// The item; some servers give it another id in every event.
    #[serde(borrow)]
    pub(super) item_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content_index: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) delta: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

/// A response, at its beginning or at its end.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Said<'a> {
    pub(super) object: Option<JsonText>,
    pub(super) status: Option<JsonText>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    pub(super) incomplete_details: Option<Incomplete>,
    pub(super) model: Option<JsonText>,
    #[serde(borrow)]
    pub(super) output: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
}

/// What is said about an answer that is not complete.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Incomplete {
    pub(super) reason: Option<JsonText>,
}

/// The kind of an item.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Kind {
    #[serde(rename = "type")]
    pub(super) kind: Option<JsonText>,
    pub(super) id: Option<JsonText>,
}

/// A message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireMessage<'a> {
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) phase: Option<&'a RawValue>,
}

/// One content of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireContent {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: Option<JsonText>,
    pub(super) refusal: Option<JsonText>,
}

/// A function call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireCall<'a> {
    /// Under which its result goes back; not the id of the item.
    pub(super) call_id: Option<JsonText>,
    pub(super) name: Option<JsonText>,
    pub(super) status: Option<JsonText>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    total_tokens: Option<u64>,
    input_tokens_details: Option<Input>,
    output_tokens_details: Option<Output>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Input {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Output {
    reasoning_tokens: Option<u64>,
}

/// Usage, when the server said it.
pub(super) fn usage(raw: &RawValue) -> Option<Usage> {
    let counts: Counts = serde_json::from_str(raw.get()).ok()?;
    let details = counts.input_tokens_details.unwrap_or_default();
    let sums = Sums {
        input: counts.input_tokens?,
        output: counts.output_tokens?,
        total: counts.total_tokens,
        cache_read: details.cached_tokens.unwrap_or(0),
        cache_write: details.cache_write_tokens.unwrap_or(0),
        reasoning: counts.output_tokens_details.unwrap_or_default().reasoning_tokens.unwrap_or(0),
    };
    sums.disjoint()
}

/// The text in a JSON string; JSON that is none stays what it is, and `null` is no text.
pub(super) fn text(raw: Option<&RawValue>) -> Result<JsonText, String> {
    match raw.map(RawValue::get) {
        None | Some("null") => Ok(JsonText::default()),
        Some(raw) if raw.starts_with('"') => serde_json::from_str(raw).map_err(|error| format!("{error}: {raw}")),
        Some(raw) => Ok(raw.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expect: Option<[u64; 5]>) {
        let raw: Box<RawValue> = serde_json::from_str(json).expect("JSON");
        let expect = expect.map(|[input, cache_read, cache_write, output, reasoning]| Usage {
            input,
            cache_read,
            cache_write,
            output,
            reasoning,
        });
        assert_eq!(usage(&raw), expect, "{json}");
    }

    #[test]
    fn gov_02_no_token_is_counted_twice() {
        check(
            r#"{"input_tokens":1000,"output_tokens":50,"total_tokens":1050,
                "input_tokens_details":{"cached_tokens":400},"output_tokens_details":{"reasoning_tokens":30}}"#,
            Some([600, 400, 0, 20, 30]),
        );
        check(r#"{"input_tokens":9,"output_tokens":2,"input_tokens_details":null}"#, Some([9, 0, 0, 2, 0]));
        check(
            r#"{"input_tokens":90,"output_tokens":2,"input_tokens_details":{"cached_tokens":40,"cache_write_tokens":30}}"#,
            Some([20, 40, 30, 2, 0]),
        );
    }

    #[test]
    fn unknown_is_not_zero() {
        for json in ["{}", r#"{"input_tokens":0,"output_tokens":0}"#, r#"{"input_tokens":7}"#, "[]", "null"] {
            check(json, None);
        }
    }
}
