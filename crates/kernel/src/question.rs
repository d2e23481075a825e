//! Questions to people: what is asked and how asking ended.

use crate::failure::Failure;
use crate::ids::{CallId, QuestionId};
use crate::units::TimeMs;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// What a person is asked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// A typed question.
    Ask {
        /// The question.
        prompt: String,
        /// The JSON Schema of the answer as JSON text; without one any text is an answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schema: Option<String>,
        /// Milliseconds until it expires; without it, it waits for ever.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_in_ms: Option<u64>,
        /// The tool use that the answer replies to, when a model asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<String>,
    },
    /// Yes or no.
    Confirm {
        /// What is to be confirmed.
        prompt: String,
        /// Milliseconds until it expires.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_in_ms: Option<u64>,
    },
    /// What became of a Call that recovery found open and may not repeat.
    Resolve {
        /// The Call.
        call: CallId,
        /// The tool.
        tool: String,
        /// Its arguments, exactly.
        args: String,
        /// Why nobody here can know.
        reason: String,
        /// Until then an attempt that was sent may still land: before it is over nobody can say that it did not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lands_until: Option<TimeMs>,
    },
}

impl Ask {
    /// Milliseconds until it expires, if ever.
    #[must_use]
    pub const fn expires_in_ms(&self) -> Option<u64> {
        match self {
            Self::Ask { expires_in_ms, .. } | Self::Confirm { expires_in_ms, .. } => *expires_in_ms,
            Self::Resolve { .. } => None,
        }
    }
}

/// A Question that nobody has answered yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenQuestion {
    /// Its identity within the Run.
    pub id: QuestionId,
    /// What is asked.
    pub ask: Ask,
    /// When it was asked.
    pub asked_at: TimeMs,
    /// When it expires, if ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<TimeMs>,
}

/// How a Question ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionEnd {
    /// A person answered; the value is the payload.
    Answered,
    /// A person said that they will not answer.
    Declined,
    /// A person closed it without a word.
    Dismissed,
    /// It expired.
    TimedOut,
    /// Nobody needs the answer any more.
    Withdrawn,
}

/// What a person says about a Call whose effect is unknown. The wire form is the answer's JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case", deny_unknown_fields)]
pub enum Resolution {
    /// It happened; this is its result.
    Landed {
        /// The result as the Loop shall see it.
        #[serde(default)]
        output: String,
    },
    /// It did not happen; the Loop sees a failed Call.
    Failed {
        /// What the person saw.
        #[serde(default)]
        evidence: String,
    },
    /// It did not happen; do it now, as a new Call.
    Retry,
    /// The person cannot tell either; the Loop decides.
    Unknown {
        /// What the person saw.
        #[serde(default)]
        evidence: String,
    },
}

impl Resolution {
    /// The failure that a Loop sees for a Call which a person says did not happen.
    #[must_use]
    pub fn failure(evidence: &str) -> Failure {
        Failure::new("call.did_not_happen", if evidence.is_empty() { "it did not happen" } else { evidence })
    }
}

/// Whether `value` is an answer of the asked kind. A JSON Schema is checked by whoever takes the answer.
pub(crate) fn fits(ask: &Ask, value: &str, ending: bool, settled: impl Fn(TimeMs) -> bool) -> Result<(), String> {
    let text = |error: serde_json::Error| alloc::format!("{error}");
    match ask {
        Ask::Ask { .. } => serde_json::from_str::<&serde_json::value::RawValue>(value).map(drop).map_err(text),
        Ask::Confirm { .. } => serde_json::from_str::<bool>(value).map(drop).map_err(text),
        Ask::Resolve { lands_until, .. } => match serde_json::from_str::<Resolution>(value).map_err(text)? {
            Resolution::Retry if ending => Err("the run is about to end: nothing is sent any more".into()),
            Resolution::Retry | Resolution::Failed { .. } if !lands_until.is_none_or(&settled) => {
                Err("what was sent may still land: look again when its time is over, and answer then".into())
            }
            Resolution::Landed { .. } | Resolution::Failed { .. } | Resolution::Retry | Resolution::Unknown { .. } => {
                Ok(())
            }
        },
    }
}
