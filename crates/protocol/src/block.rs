//! The typed parts of a Message.

use crate::{ArtifactId, ErrorNote, QuestionId, Snapshot};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// One part of a Message. A type that this build does not know is kept as it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Block {
    /// A type of this build.
    Known(KnownBlock),
    /// Anything else: an object with a `type`.
    Unknown(serde_json::Map<String, Value>),
}

/// The types of this build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum KnownBlock {
    /// Text as it is.
    Text {
        /// The text.
        text: String,
    },
    /// Markdown. It is untrusted: whoever renders it makes it safe.
    Markdown {
        /// The text.
        text: String,
    },
    /// What a model thought aloud.
    Reasoning {
        /// The text.
        text: String,
    },
    /// A tool that was called.
    Tool {
        /// Which one.
        name: String,
        /// How far it is.
        status: ToolStatus,
        /// Its arguments as JSON text, shortened.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        args: String,
        /// What it returned, shortened.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
        /// The Call in the Run's Journal, `call-N`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        call: String,
    },
    /// A plan.
    Plan {
        /// Its steps.
        steps: Vec<PlanStep>,
    },
    /// How far something is.
    Progress {
        /// In words.
        text: String,
        /// How much is done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        done: Option<u64>,
        /// How much there is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<u64>,
    },
    /// A file.
    Artifact {
        /// Which one.
        artifact: ArtifactId,
        /// Its name.
        name: String,
        /// Its media type, as whoever attached it said.
        media_type: String,
        /// Its size.
        bytes: u64,
    },
    /// The result: text, or JSON. A Message has at most one.
    Result {
        /// The text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        json: Option<Value>,
    },
    /// A Question with a typed answer. Only the platform writes it.
    Ask {
        /// Which one.
        question: QuestionId,
        /// What it asks.
        prompt: String,
    },
    /// A Question of yes or no. Only the platform writes it.
    Confirm {
        /// Which one.
        question: QuestionId,
        /// What it asks.
        prompt: String,
    },
    /// An answer, with the Question as it was. Only the platform writes it.
    Reply {
        /// The Question.
        snapshot: Snapshot,
    },
    /// What went wrong.
    Error(ErrorNote),
}

/// How far a tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// Sent, or about to be.
    Running,
    /// It returned.
    Done,
    /// It failed, or was denied.
    Failed,
    /// It was given up.
    Cancelled,
    /// Nobody knows whether it happened; a person is asked.
    Unknown,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanStep {
    /// What is to be done.
    pub text: String,
    /// Who does it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// How far it is: `pending`, `running`, `done` or `failed`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
}

/// One change of a Message's Blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum BlockOp {
    /// Adds a Block behind the others.
    Push {
        /// The Block.
        block: Block,
    },
    /// Adds to the text of a text, Markdown or reasoning Block.
    Append {
        /// Which one, from 0.
        index: u64,
        /// The text.
        text: String,
    },
    /// Replaces a Block.
    Set {
        /// Which one, from 0.
        index: u64,
        /// The Block.
        block: Block,
    },
}

impl Block {
    /// The name of its type.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Known(known) => known.kind(),
            Self::Unknown(map) => map.get("type").and_then(Value::as_str).unwrap_or_default(),
        }
    }

    /// True for what has a type of this build and not its form: it is shown raw, and not written.
    #[must_use]
    pub fn is_misshapen(&self) -> bool {
        matches!(self, Self::Unknown(_)) && KINDS.contains(&self.kind())
    }

    /// True for what only the platform may write.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        matches!(self.kind(), "ask" | "confirm" | "reply")
    }

    /// The text that people read in it, for search and for plain views.
    #[must_use]
    pub fn words(&self) -> &str {
        match self {
            Self::Known(
                KnownBlock::Text { text }
                | KnownBlock::Markdown { text }
                | KnownBlock::Reasoning { text }
                | KnownBlock::Progress { text, .. }
                | KnownBlock::Result { text: Some(text), .. }
                | KnownBlock::Ask { prompt: text, .. }
                | KnownBlock::Confirm { prompt: text, .. },
            ) => text,
            Self::Known(KnownBlock::Artifact { name, .. }) => name,
            Self::Known(KnownBlock::Error(note)) => &note.message,
            Self::Known(
                KnownBlock::Tool { .. }
                | KnownBlock::Plan { .. }
                | KnownBlock::Result { text: None, .. }
                | KnownBlock::Reply { .. },
            )
            | Self::Unknown(_) => "",
        }
    }
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = serde_json::Map::deserialize(deserializer)?;
        // Without this a number would pass for the name of a type.
        if !map.get("type").is_some_and(Value::is_string) {
            return Ok(Self::Unknown(map));
        }
        let value = Value::Object(map);
        match (KnownBlock::deserialize(&value), value) {
            (Ok(known), _) => Ok(Self::Known(known)),
            (Err(_), Value::Object(map)) => Ok(Self::Unknown(map)),
            (Err(error), _) => Err(serde::de::Error::custom(error)),
        }
    }
}

/// The names of the types of this build.
const KINDS: [&str; 12] = [
    "text",
    "markdown",
    "reasoning",
    "tool",
    "plan",
    "progress",
    "artifact",
    "result",
    "ask",
    "confirm",
    "reply",
    "error",
];

impl KnownBlock {
    /// The name of its type.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Text { .. } => "text",
            Self::Markdown { .. } => "markdown",
            Self::Reasoning { .. } => "reasoning",
            Self::Tool { .. } => "tool",
            Self::Plan { .. } => "plan",
            Self::Progress { .. } => "progress",
            Self::Artifact { .. } => "artifact",
            Self::Result { .. } => "result",
            Self::Ask { .. } => "ask",
            Self::Confirm { .. } => "confirm",
            Self::Reply { .. } => "reply",
            Self::Error(_) => "error",
        }
    }
}

impl From<KnownBlock> for Block {
    fn from(block: KnownBlock) -> Self {
        Self::Known(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_a_later_build_is_kept_as_it_came_and_cannot_pose_as_ours() {
        let later = r#"{"type":"hologram","depth":3}"#;
        let block: Block = serde_json::from_str(later).unwrap();
        assert_eq!((block.kind(), serde_json::to_string(&block).unwrap().len()), ("hologram", later.len()));
        let text: Block = serde_json::from_str(r#"{"type":"text","text":"hi","later":1}"#).unwrap();
        assert_eq!(text.words(), "hi");
        // Of a reserved type, but in no form of ours: still reserved.
        let forged: Block = serde_json::from_str(r#"{"type":"confirm","question":7}"#).unwrap();
        assert!(forged.is_reserved() && forged.is_misshapen());
        // A number is no name, though it could count the types.
        let number: Block = serde_json::from_str(r#"{"type":7}"#).unwrap();
        assert_eq!((number.kind(), number.is_misshapen()), ("", false));
        let broken: Block = serde_json::from_str(r#"{"type":"text","text":7}"#).unwrap();
        assert!(broken.is_misshapen() && !block.is_misshapen());
    }
}
