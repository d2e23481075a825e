//! What a server sends: a whole completion or a piece of one, in one shape, everything optional.
//!
//! Values whose exact text matters, or whose shape differs from server to server, stay raw JSON.

use crate::wire::{JsonStr, JsonText};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A completion, or a chunk of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) model: Option<JsonStr<'a>>,
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    /// `"error"` in the error objects of vLLM, which have no `error` member.
    #[serde(borrow)]
    pub(super) object: Option<JsonStr<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    pub(super) index: Option<i64>,
    #[serde(borrow)]
    pub(super) delta: Option<Said<'a>>,
    #[serde(borrow)]
    pub(super) message: Option<Said<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<JsonStr<'a>>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    /// Moonshot puts it here.
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
}

/// A message, or a piece of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Said<'a> {
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    pub(super) refusal: Option<JsonText>,
    /// DeepSeek, llama.cpp, older vLLM.
    #[serde(borrow)]
    pub(super) reasoning_content: Option<&'a RawValue>,
    /// OpenRouter, Ollama, newer vLLM.
    #[serde(borrow)]
    pub(super) reasoning: Option<&'a RawValue>,
    /// OpenRouter: blocks that must go back as they came.
    #[serde(borrow)]
    pub(super) reasoning_details: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<CallPiece<'a>>>,
    /// How tool calls looked before `tool_calls`.
    #[serde(borrow)]
    pub(super) function_call: Option<FunctionPiece<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallPiece<'a> {
    pub(super) index: Option<i64>,
    #[serde(borrow)]
    pub(super) id: Option<JsonStr<'a>>,
    #[serde(borrow)]
    pub(super) function: Option<FunctionPiece<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionPiece<'a> {
    #[serde(borrow)]
    pub(super) name: Option<JsonStr<'a>>,
    /// A string of JSON text, by the documentation; an object, by some servers.
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

/// One part of a content that is a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ContentPart {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: Option<JsonText>,
    pub(super) refusal: Option<JsonText>,
}
