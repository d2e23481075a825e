//! What people are asked.

use crate::{ActorKey, ConversationId, MessageId, QuestionId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// What kind of answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// A choice, a text, or what a form holds.
    Ask,
    /// Accept or decline.
    Confirm,
    /// What became of a call that nobody can know of: `{"call":"landed","output":…}`, `{"call":"failed","evidence":…}`,
    /// `{"call":"retry"}` or `{"call":"unknown","evidence":…}`. It can be neither declined nor dismissed.
    Resolve,
}

/// One answer to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// What is answered.
    pub value: String,
    /// How it is shown; the value without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// What it means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// The exact call that a Question is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Authorises {
    /// The tool.
    pub tool: String,
    /// Its arguments as JSON text, exactly.
    pub args: String,
}

/// How far a consent reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This time.
    #[default]
    Once,
    /// For the rest of this Run.
    Run,
    /// For this Conversation.
    Conversation,
    /// As a rule from now on.
    Rule,
}

/// Where a Question stands. All but `open` are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionStatus {
    /// Somebody has to answer.
    Open,
    /// Answered; of a Confirm: accepted.
    Answered,
    /// A person said no.
    Declined,
    /// A person closed it without an answer.
    Dismissed,
    /// Its deadline passed.
    TimedOut,
    /// Nobody needs the answer any more.
    Withdrawn,
}

impl QuestionStatus {
    /// True when nothing of the Question changes any more.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Open)
    }
}

/// How a Question was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Answered {
    /// Who said so.
    pub by: ActorKey,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The answer; absent unless it was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// How far a consent reaches.
    #[serde(default)]
    pub scope: Scope,
}

/// A Question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Question {
    /// Its identity.
    pub id: QuestionId,
    /// Where it was asked.
    pub conversation: ConversationId,
    /// The Message that shows it.
    pub message: MessageId,
    /// What kind of answer is wanted.
    pub kind: AskKind,
    /// Who asks.
    pub from: ActorKey,
    /// Who may answer; any person of the Conversation without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<ActorKey>,
    /// A short title; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The question.
    pub prompt: String,
    /// Answers to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// Whether another text than the choices is an answer too.
    #[serde(default)]
    pub free_text: bool,
    /// The JSON Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The exact call that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorises: Option<Authorises>,
    /// Where it stands.
    pub status: QuestionStatus,
    /// How it was ended by hand. Of a Run's Question that is still open: the answer that was sent to the Run, which ends
    /// the Question when it takes it, or otherwise when it has no use for it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answered>,
    /// When it was asked, in milliseconds since 1970.
    pub asked_at: i64,
    /// Until when it can be answered; fixed when it was asked. Absent only where a Run waits for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
    /// The Run that asks, `run_…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// A Question and how it ended, renderable alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Snapshot {
    /// Which one.
    pub question: QuestionId,
    /// What kind of answer was wanted.
    pub kind: AskKind,
    /// Its title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The question.
    pub prompt: String,
    /// What could be chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// How it ended.
    pub status: QuestionStatus,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// Asks a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewQuestion {
    /// Who asks: the caller, or a role of theirs; the caller without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorKey>,
    /// What kind of answer is wanted: `ask` or `confirm`.
    pub kind: AskKind,
    /// Who may answer; any person of the Conversation without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<ActorKey>,
    /// A short title; at most 200 characters.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub title: String,
    /// The question; 1 to 10,000 characters.
    #[schema(min_length = 1, max_length = 10000)]
    pub prompt: String,
    /// Answers to choose from; at most 50, each value once.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub choices: Vec<Choice>,
    /// Whether another text than the choices is an answer too. Without choices and schema any text is.
    #[serde(default)]
    pub free_text: bool,
    /// The JSON Schema of the answer; not together with choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub schema: Option<Value>,
    /// The exact call that a Confirm is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorises: Option<Authorises>,
    /// Seconds until it times out, 1 to 30 days.
    #[schema(minimum = 1, maximum = 2592000)]
    pub timeout_s: u64,
    /// The Message that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
}

/// Ends a Question by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// `answered`, `declined` or `dismissed`.
    pub status: QuestionStatus,
    /// The answer; only with `answered`, and of a Confirm not needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// How far a consent reaches.
    #[serde(default)]
    pub scope: Scope,
}
