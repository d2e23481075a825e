//! What a model is asked and what it answers, without any provider's wire format.

use crate::digest::Digest;
use crate::units::Usage;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A wish to call a model: the small, changing part of a request. What stays the same from call to
/// call lives in [`ModelConstants`], what was said lives in the Transcript.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCall {
    /// The model's name as the runtime knows it, for example `demo` or `openai/gpt-5-mini`.
    pub model: String,
    /// The name of the [`ModelConstants`], when there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constants: Option<ConstantsRef>,
    /// True: the request holds the Run's Transcript, and the reply joins it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub transcript: bool,
    /// Messages after the Transcript; they do not join it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// The largest number of output tokens, reasoning included.
    pub max_output_tokens: u64,
    /// The sampling temperature in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_milli: Option<u32>,
    /// True: the reply does not join the Transcript, as that of a summary does not.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub aside: bool,
    /// Bytes of one tool result that this request holds; the middle of a longer one is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_cap: Option<u64>,
}

impl ModelCall {
    /// A call with one user message and no Transcript.
    #[must_use]
    pub fn prompt(model: impl Into<String>, text: impl Into<String>) -> Self {
        Self { messages: alloc::vec![Message::user(text)], transcript: false, ..Self::transcript(model) }
    }

    /// A call with the Run's Transcript.
    #[must_use]
    pub fn transcript(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            constants: None,
            transcript: true,
            messages: Vec::new(),
            max_output_tokens: 4096,
            temperature_milli: None,
            aside: false,
            result_cap: None,
        }
    }
}

/// The part of a model request that repeats: stored once by content, named by digest.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConstants {
    /// The instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The tools that the model may ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolOffer>,
    /// The JSON Schema of the final answer, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<String>,
}

/// The name of constants: what a [`ModelCall`] carries in their place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstantsRef {
    /// SHA-256 of the stored bytes.
    pub digest: Digest,
    /// How many bytes they are; a bound of their tokens.
    pub bytes: u64,
}

/// Constants with their stored bytes: made once, named in many calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Constants {
    /// Their name.
    pub name: ConstantsRef,
    /// What is stored: JSON of [`ModelConstants`].
    pub bytes: Arc<[u8]>,
}

impl Constants {
    /// Serialises and names `constants`.
    ///
    /// # Errors
    /// What serde reports; no value of [`ModelConstants`] causes it.
    pub fn new(constants: &ModelConstants) -> Result<Self, serde_json::Error> {
        Ok(Self::of_bytes(&serde_json::to_vec(constants)?))
    }

    /// Names bytes that are stored by content: the definition of a child's Loop, for example.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let bytes: Arc<[u8]> = bytes.into();
        Self { name: ConstantsRef { digest: Digest::sha256(&[&bytes]), bytes: bytes.len() as u64 }, bytes }
    }
}

/// A tool as a model sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolOffer {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments, as JSON text.
    pub parameters: String,
}

/// One message to a model.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// What a person or the Loop says.
    User {
        /// The text.
        text: String,
        /// Images and files that come with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// What the model said earlier.
    Assistant {
        /// Its parts, in order.
        parts: Vec<Part>,
    },
    /// The result of a tool that the model asked for.
    Tool {
        /// The id under which the model asked.
        id: String,
        /// The result as text.
        text: String,
        /// True when the text says what went wrong.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        error: bool,
    },
}

impl Message {
    /// Text from a person or the Loop, without attachments.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { text: text.into(), attachments: Vec::new() }
    }
}

/// An image or a file that comes with a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// Its media type, for example `image/png` or `application/pdf`.
    pub media_type: String,
    /// Its name, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its bytes in base64: the standard alphabet, padded.
    pub data: String,
}

impl Attachment {
    /// True for pictures, which models see and do not read as text.
    #[must_use]
    pub fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }
}

/// One part of a model's reply.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Part {
    /// Text for the reader.
    Text {
        /// The text.
        text: String,
    },
    /// A wish to use a tool.
    ToolUse {
        /// The id that the result must carry.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments exactly as they arrived: JSON text, unless the model wrote something else.
        args: String,
    },
    /// Reasoning, kept byte-exact for the provider and model that wrote it and sent to no other.
    Reasoning {
        /// The provider's own JSON.
        opaque: String,
        /// Provider and model, for example `openai/gpt-5-mini`.
        origin: String,
    },
}

/// Why a model stopped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done.
    EndTurn,
    /// It waits for tool results.
    ToolUse,
    /// The output limit cut it.
    Length,
    /// It, or its provider's filter, refused.
    Refusal,
    /// Anything else, in the provider's own word.
    Other(String),
}

/// A complete reply of a model. An unterminated stream never becomes one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelReply {
    /// The parts, in the order in which they appeared.
    pub parts: Vec<Part>,
    /// Why it stopped.
    pub stop: StopReason,
    /// The model that answered, by the provider's word; empty when it did not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
}

impl ModelReply {
    /// A finished reply of plain text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: alloc::vec![Part::Text { text: text.into() }], stop: StopReason::EndTurn, model: String::new() }
    }

    /// All text parts, joined.
    #[must_use]
    pub fn joined_text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                Part::ToolUse { .. } | Part::Reasoning { .. } => None,
            })
            .collect()
    }

    /// The tool uses, in order: (id, name, arguments).
    pub fn tool_uses(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolUse { id, name, args } => Some((id.as_str(), name.as_str(), args.as_str())),
            Part::Text { .. } | Part::Reasoning { .. } => None,
        })
    }
}

/// What a model call consumed; `None` is unknown, which is never zero.
pub type KnownUsage = Option<Usage>;
