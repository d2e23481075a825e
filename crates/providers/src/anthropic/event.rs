//! What a server sends: a whole message or an event of one, everything optional.
//!
//! Values whose exact text matters stay raw JSON.

use crate::wire::{JsonStr, JsonText};
use serde::Deserialize;
use serde_json::value::RawValue;

/// An event of a stream. A whole message, and an error, have the same members.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<JsonStr<'a>>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    /// Which block; the last one where a server leaves it out.
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) message: Option<Said<'a>>,
    #[serde(borrow)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
}

/// A message, or the beginning of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Said<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Option<JsonText>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    pub(super) model: Option<JsonText>,
    #[serde(borrow)]
    pub(super) content: Option<Vec<&'a RawValue>>,
    pub(super) stop_reason: Option<JsonText>,
    pub(super) stop_details: Option<StopDetails>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
}

/// What is said about a refusal.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StopDetails {
    pub(super) explanation: Option<String>,
}

/// A piece of a block, or of the message itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<JsonStr<'a>>,
    #[serde(borrow)]
    pub(super) text: Option<JsonStr<'a>>,
    #[serde(borrow)]
    pub(super) partial_json: Option<JsonStr<'a>>,
    #[serde(borrow)]
    pub(super) thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) signature: Option<&'a RawValue>,
    pub(super) stop_reason: Option<JsonText>,
    pub(super) stop_details: Option<StopDetails>,
}

/// A block, or the beginning of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireBlock<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Option<JsonText>,
    pub(super) text: Option<JsonText>,
    pub(super) id: Option<JsonText>,
    pub(super) name: Option<JsonText>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
}
