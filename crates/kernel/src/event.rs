//! What a transition sees: past facts, each derived from one Entry.

use crate::failure::Failure;
use crate::ids::{CallId, QuestionId, RunId, TimerId};
use crate::model::{KnownUsage, ModelReply};
use crate::outcome::Outcome;
use crate::question::QuestionEnd;
use alloc::string::String;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A fact that a transition consumes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// An iteration begins; the first is 1.
    IterationStarted {
        /// Its number.
        iteration: u64,
    },
    /// A model answered.
    ModelReplied {
        /// The Call.
        call: CallId,
        /// The complete reply.
        reply: ModelReply,
        /// The budget left room for less output than the Loop asked for: a reply that was cut was cut by it.
        clamped: bool,
        /// What it consumed, where the provider said so: the size of the conversation in tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: KnownUsage,
    },
    /// A tool returned.
    ToolReturned(ToolReturned),
    /// A Call failed.
    CallFailed {
        /// The Call.
        call: CallId,
        /// The tool or model.
        target: String,
        /// Why.
        failure: Failure,
    },
    /// Policy denied a Call.
    CallDenied {
        /// The Call.
        call: CallId,
        /// The tool or model.
        target: String,
        /// Why.
        failure: Failure,
    },
    /// A person looked, and nobody can tell whether the Call happened.
    CallUnknown {
        /// The Call.
        call: CallId,
        /// The tool.
        target: String,
        /// What the person saw.
        evidence: String,
    },
    /// A Question ended.
    Answered {
        /// The Question.
        question: QuestionId,
        /// How it ended.
        end: QuestionEnd,
        /// The answer as JSON text; empty unless it was answered.
        value: String,
    },
    /// A signal arrived.
    SignalReceived {
        /// Its name.
        name: String,
        /// Its body, exactly as sent.
        body: String,
    },
    /// A timer fired: a sleep, or a wait that timed out.
    TimerFired {
        /// The timer.
        timer: TimerId,
    },
    /// A child Run is sealed.
    ChildEnded {
        /// The Call that started it.
        call: CallId,
        /// The child.
        child: RunId,
        /// The parent's name for it.
        name: String,
        /// How it ended; the output is JSON text.
        outcome: Outcome,
    },
    /// A child Run stopped at a reopenable outcome. It may be raised, cancelled, or waited for.
    ChildParked {
        /// The Call that started it.
        call: CallId,
        /// The child.
        child: RunId,
        /// The parent's name for it.
        name: String,
        /// How it stands.
        outcome: Outcome,
    },
}

/// What a tool returned.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ToolReturned {
    /// The Call.
    pub call: CallId,
    /// The tool's name.
    pub tool: String,
    /// The output, exactly.
    pub output: String,
}

impl ToolReturned {
    /// The output as a type.
    ///
    /// # Errors
    /// A [`Failure`] with code `loop.decode` when the output is not that type's JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        Ok(serde_json::from_str(&self.output)?)
    }
}

impl Event {
    /// The name as it is written in output.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::IterationStarted { .. } => "IterationStarted",
            Self::ModelReplied { .. } => "ModelReplied",
            Self::ToolReturned(_) => "ToolReturned",
            Self::CallFailed { .. } => "CallFailed",
            Self::CallDenied { .. } => "CallDenied",
            Self::CallUnknown { .. } => "CallUnknown",
            Self::Answered { .. } => "Answered",
            Self::SignalReceived { .. } => "SignalReceived",
            Self::TimerFired { .. } => "TimerFired",
            Self::ChildEnded { .. } => "ChildEnded",
            Self::ChildParked { .. } => "ChildParked",
        }
    }
}
