//! What a server sends: a whole response or a piece of one, in one shape, everything optional.
//!
//! Values whose exact text matters stay raw JSON.

use crate::wire::{JsonStr, JsonText};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A response, or a chunk of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) candidates: Option<Vec<Candidate<'a>>>,
    pub(super) prompt_feedback: Option<Feedback>,
    #[serde(borrow)]
    pub(super) usage_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) model_version: Option<JsonStr<'a>>,
}

/// What the filter says of the prompt.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Feedback {
    pub(super) block_reason: Option<JsonText>,
    pub(super) block_reason_message: Option<JsonText>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    pub(super) index: Option<i64>,
    #[serde(borrow)]
    pub(super) content: Option<Content<'a>>,
    pub(super) finish_reason: Option<JsonText>,
    pub(super) finish_message: Option<JsonText>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content<'a> {
    #[serde(borrow)]
    pub(super) parts: Option<Vec<&'a RawValue>>,
}

/// A part. Gateways write some of its members with underscores.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PartPiece<'a> {
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    pub(super) thought: Option<bool>,
    #[serde(borrow, alias = "thought_signature")]
    pub(super) thought_signature: Option<&'a RawValue>,
    #[serde(borrow, alias = "function_call")]
    pub(super) function_call: Option<FunctionPiece<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct FunctionPiece<'a> {
    pub(super) id: Option<JsonText>,
    pub(super) name: Option<JsonText>,
    #[serde(borrow)]
    pub(super) args: Option<&'a RawValue>,
    /// Arguments in pieces, which come only to who asks for them.
    #[serde(borrow)]
    pub(super) partial_args: Option<&'a RawValue>,
    pub(super) will_continue: Option<bool>,
}
