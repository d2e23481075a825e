//! Calls to Harnesses.

use crate::{ActorKey, ArtifactId, ConversationId, ErrorNote, HarnessCallId, MessageId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Where a call stands. The last five are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallPhase {
    /// Accepted; it waits for a slot.
    Queued,
    /// It executes.
    Running,
    /// It waits for a person, or for somebody to raise a limit; it holds no slot.
    Waiting,
    /// It has a result.
    Succeeded,
    /// It ended without one; `error` says why.
    Failed,
    /// It was ended on somebody's wish.
    Cancelled,
    /// Its deadline passed.
    TimedOut,
    /// Nobody can know how it ended.
    Unknown,
}

impl CallPhase {
    /// True when nothing of the call changes any more.
    #[must_use]
    pub const fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::Running | Self::Waiting => false,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::TimedOut | Self::Unknown => true,
        }
    }

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::Unknown => "unknown",
        }
    }
}

/// What becomes of a call whose Run parks at a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnPark {
    /// It waits until somebody raises the limit, or until its deadline.
    #[default]
    Wait,
    /// It fails, and the Run is sealed.
    Fail,
}

/// How soon a call gets a slot, compared with others that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// After all others.
    Low,
    /// In turn.
    #[default]
    Normal,
    /// Before all others.
    High,
}

/// What a call may consume at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money, in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
    /// Iterations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
}

/// What a call has consumed so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Spent {
    /// Tokens.
    pub tokens: u64,
    /// Money, in millionths of a US dollar.
    pub micro_usd: u64,
    /// Iterations.
    pub iterations: u64,
}

/// A call to a Harness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HarnessCall {
    /// Its identity.
    pub id: HarnessCallId,
    /// Where it was made.
    pub conversation: ConversationId,
    /// Its output Message.
    pub message: MessageId,
    /// What it executes on.
    pub target: String,
    /// What the caller calls this step.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub effect_key: String,
    /// Who made it.
    pub caller: ActorKey,
    /// Who speaks in its output.
    pub actor: ActorKey,
    /// Whom the output is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<ActorKey>,
    /// What it was asked.
    pub prompt: String,
    /// Files that go with the prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactId>,
    /// The Message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// What it may consume at most.
    #[serde(default)]
    pub budget: Budget,
    /// What becomes of it when its Run parks.
    #[serde(default)]
    pub on_park: OnPark,
    /// How soon it gets a slot.
    #[serde(default)]
    pub priority: Priority,
    /// Where it stands.
    pub phase: CallPhase,
    /// What it waits for, or how its Run ended: the name of the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it ended without a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorNote>,
    /// The result: a JSON string for text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The Run that executes it, `run_…`, where it is one of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What the remote calls the execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_ref: Option<String>,
    /// Somebody wishes that it ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
    /// Of an external execution that was cancelled: whether the remote confirmed that it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_confirmed: Option<bool>,
    /// It may have changed the world: it has begun a tool call that is neither `pure` nor `read`, a child Run, or an
    /// external execution. Who makes a call once more looks here first. False for good means that nothing was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_have_changed: bool,
    /// What it has consumed.
    #[serde(default)]
    pub spent: Spent,
    /// When it was accepted, in milliseconds since 1970.
    pub created_at: i64,
    /// When it got its slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<i64>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// Until when it may take; fixed when it was accepted.
    pub deadline: i64,
    /// How often it was written.
    pub revision: u64,
}

/// Calls a Harness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCall {
    /// What it executes on: a name that `GET /v1/targets` lists.
    #[schema(min_length = 1, max_length = 100)]
    pub target: String,
    /// What it is asked; 1 to 1,000,000 bytes.
    #[schema(min_length = 1)]
    pub prompt: String,
    /// Files of the Conversation that go with the prompt; at most 20.
    #[serde(default)]
    #[schema(max_items = 20)]
    pub artifacts: Vec<ArtifactId>,
    /// What the caller calls this step; at most 200 characters.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub effect_key: String,
    /// Who speaks in its output, if not the target itself; a role of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorKey>,
    /// Whom the output is for; the caller without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<ActorKey>,
    /// The Message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// Seconds until it times out, 1 to 7 days.
    #[serde(default = "half_an_hour")]
    #[schema(minimum = 1, maximum = 604800)]
    pub timeout_s: u64,
    /// What it may consume at most; what the target's own limits say still holds.
    #[serde(default)]
    pub budget: Budget,
    /// What becomes of it when its Run parks.
    #[serde(default)]
    pub on_park: OnPark,
    /// How soon it gets a slot.
    #[serde(default)]
    pub priority: Priority,
}

const fn half_an_hour() -> u64 {
    30 * 60
}

/// What calling came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Called {
    /// The call.
    pub call: HarnessCall,
    /// True when the same key had made the same call before.
    pub already: bool,
}

/// Text for a running call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Steer {
    /// The text; 1 to 100,000 bytes.
    #[schema(min_length = 1)]
    pub text: String,
}

/// The text is queued; the call sees it at its next step, which its Feed tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Steered {
    /// The name under which the Feed tells that it was seen.
    pub steer: String,
}

/// What calls may execute on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Its adapter: `loop`, `demo`, or the name of an external one.
    pub adapter: String,
    /// Who speaks for it when nobody else is named.
    pub actor: ActorKey,
    /// How many of its calls execute at once.
    pub slots: u32,
    /// How many do.
    pub running: u32,
    /// How many wait for a slot.
    pub queued: u32,
    /// Why it takes no calls now; absent when it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}
