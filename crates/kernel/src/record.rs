//! What each kind of Entry says. Records are JSON; fields are only ever added, never renamed, so a
//! record of an older build of the same format still reads.

use crate::budget::{Ledger, Limits, Reservation};
use crate::child::{ClosePolicy, Parent, Recipient, Spent};
use crate::digest::Digest;
use crate::effect::EffectClass;
use crate::entry::{Kind, Span};
use crate::failure::Failure;
use crate::ids::{CallId, Epoch, QuestionId, RunId, Seq, TimerId};
use crate::model::ModelCall;
use crate::outcome::Outcome;
use crate::patch::StatePatch;
use crate::question::{Ask, QuestionEnd, Resolution};
use crate::units::{MicroUsd, TimeMs, Usage};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// The Run exists.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Started {
    /// The outermost scope of names and budgets.
    pub tenant: String,
    /// The Loop's name.
    #[serde(rename = "loop")]
    pub loop_name: String,
    /// The Loop's declared version.
    pub version: String,
    /// SHA-256 of the definition's bytes (an Agent's manifest), stored by content.
    pub definition: Digest,
    /// The input, as JSON text in the payload.
    pub input: Span,
    /// The State that `init` made, as JSON text in the payload.
    pub state: Span,
    /// The limits.
    #[serde(default)]
    pub limits: Limits,
    /// The version of the Transcript's projection rules.
    pub projection: u32,
    /// The caller's key: starting twice with one key gives one Run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<String>,
    /// The version of State's schema.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub state_version: u32,
    /// The Run that started this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
}

const fn first() -> u32 {
    1
}

const fn is_first(version: &u32) -> bool {
    *version == first()
}

/// From here on another definition decides: a worker with a newer, or the older, build took the Run over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DefinitionChanged {
    /// The Loop's declared version now.
    pub version: String,
    /// SHA-256 of the definition's bytes now.
    pub definition: Digest,
    /// The version of State's schema now.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub state_version: u32,
    /// What the migration changed in State.
    #[serde(default = "same", skip_serializing_if = "is_same")]
    pub patch: StatePatch,
    /// SHA-256 of the State after the patch; absent when it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Digest>,
}

/// An iteration begins.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IterationStarted {
    /// Its number, from 1.
    pub iteration: u64,
}

/// A transition decided.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Decided {
    /// The Entry whose Event the transition consumed.
    pub consumed: u64,
    /// What it asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ActionRecord>,
    /// What it changed in State.
    #[serde(default = "same", skip_serializing_if = "is_same")]
    pub patch: StatePatch,
    /// SHA-256 of the State after the patch; absent when it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Digest>,
}

fn same() -> StatePatch {
    StatePatch::Same
}

fn is_same(patch: &StatePatch) -> bool {
    *patch == StatePatch::Same
}

/// One Action as recorded: bodies are spans of the payload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionRecord {
    /// Call a model; messages, if any, are JSON in the span.
    Model {
        /// The Call.
        id: CallId,
        /// The request without its messages.
        call: ModelCall,
        /// The messages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        messages: Option<Span>,
    },
    /// Call a tool.
    Tool {
        /// The Call.
        id: CallId,
        /// The tool.
        tool: String,
        /// The arguments.
        args: Span,
        /// The model's tool use that the result replies to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<String>,
        /// Bytes of the result that join the Transcript.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cap: Option<u64>,
    },
    /// The last `calls` Calls of this decision are joined.
    Join {
        /// How many.
        calls: u32,
        /// How many have to land; without it all have to settle.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ok: Option<u32>,
    },
    /// Start a child Run.
    Spawn {
        /// The Call that stands for it.
        id: CallId,
        /// The parent's name for it.
        name: String,
        /// The Loop that it runs.
        #[serde(rename = "loop")]
        loop_name: String,
        /// The digest of its definition's bytes, where it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        definition: Option<Digest>,
        /// Its input.
        input: Span,
        /// The limits that were asked for.
        #[serde(default, skip_serializing_if = "Limits::is_empty")]
        limits: Limits,
        /// What becomes of it when the parent is sealed first.
        #[serde(default, skip_serializing_if = "ClosePolicy::is_default")]
        close: ClosePolicy,
        /// The model's tool use that its outcome replies to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<String>,
        /// Bytes of its output that join the Transcript.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cap: Option<u64>,
    },
    /// Signal another Run.
    Signal {
        /// Whom.
        to: Recipient,
        /// The signal's name.
        name: String,
        /// Its body.
        body: Span,
    },
    /// Give a parked child more room.
    RaiseChild {
        /// The parent's name for it.
        child: String,
        /// How much more was asked for.
        #[serde(default, skip_serializing_if = "Limits::is_empty")]
        by: Limits,
    },
    /// Ask a child to cancel.
    CancelChild {
        /// The parent's name for it.
        child: String,
        /// Why.
        reason: String,
    },
    /// Publish text.
    Speak(Span),
    /// Ask a person.
    Ask {
        /// The Question.
        id: QuestionId,
        /// What is asked.
        ask: Ask,
    },
    /// Wait for a signal.
    Wait {
        /// The names.
        signals: Vec<String>,
        /// The timer that ends the wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<(TimerId, u64)>,
    },
    /// Wait for a time.
    Sleep {
        /// The timer.
        id: TimerId,
        /// Milliseconds.
        ms: u64,
    },
    /// A message for the Transcript, as JSON in the payload.
    Note(Span),
    /// The Transcript begins anew.
    Compact {
        /// The summary.
        summary: Span,
        /// The user messages of Entries after this one stay.
        after: Seq,
    },
    /// What may be cut is cancelled in this commit.
    CancelCalls,
    /// A label.
    Label(String, String),
    /// Finish with the output.
    Finish(Span),
    /// Fail.
    Fail(Failure),
}

impl ActionRecord {
    /// True when another Run is told something.
    pub(crate) const fn tells(&self) -> bool {
        matches!(self, Self::Signal { .. } | Self::CancelChild { .. } | Self::RaiseChild { .. })
    }
}

/// A worker took over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Recovered {
    /// Its epoch.
    pub epoch: Epoch,
    /// Open Calls that are performed again; those of class `billable` are charged at their reservation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<CallId>,
}

/// The Run stopped at a reopenable outcome.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parked {
    /// The outcome.
    pub outcome: Outcome,
}

/// A parked Run goes on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reopened {
    /// Who reopened it.
    pub by: String,
    /// The limits that were raised.
    #[serde(default)]
    pub raise: Limits,
}

/// The Run is sealed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// How; a completed output stands in the payload, not here.
    pub outcome: Outcome,
    /// What the Run consumed.
    pub totals: Ledger,
    /// The hash of the Entry before, which together with this Entry's Seq seals count and head.
    pub head: Digest,
}

/// A Call may now be sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Intended {
    /// The Call.
    pub call: CallId,
    /// Its effect class.
    pub class: EffectClass,
    /// The digest of a model request. A tool's arguments stand in the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Digest>,
    /// The epoch that may send.
    pub epoch: Epoch,
    /// Not sent later than this many milliseconds after the Entry's time.
    pub send_ms: u64,
    /// Given up this many milliseconds after the Entry's time.
    pub abort_ms: u64,
    /// How long the target of a keyed Call knows its key, in milliseconds after the Entry's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup_ms: Option<u64>,
    /// How long after it was given up an attempt of a probed Call may still land, in milliseconds, as the tool
    /// declares; without it "not landed" is never believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing_ms: Option<u64>,
    /// The output bound of a model call, where what is left clamps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// What it may consume.
    #[serde(default, skip_serializing_if = "Reservation::is_empty")]
    pub reserve: Reservation,
    /// Where the price of a model is from that this Call is reserved and charged at, as its worker names it: a table
    /// and its version, a file and its digest, the manifest. Absent where the price is unknown or nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_from: Option<String>,
    /// The limits that a child Run gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<Limits>,
}

/// Why an attempt did not count as the Call's settlement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setback {
    /// The target failed; it counts against the Call's attempts.
    #[default]
    Failed,
    /// The worker stopped while it ran.
    Stopped,
    /// It was never sent.
    NotSent,
}

fn is_failed(setback: &Setback) -> bool {
    *setback == Setback::Failed
}

/// An attempt failed and the Call will be tried again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attempted {
    /// The Call.
    pub call: CallId,
    /// Which failed attempt, from 1.
    pub n: u32,
    /// Why.
    #[serde(default, skip_serializing_if = "is_failed")]
    pub setback: Setback,
    /// The class of the error.
    pub code: String,
    /// The text of the error, in the payload.
    pub message: Span,
    /// Usage, where known; unknown is charged at the reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Cost, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
    /// Not again before this.
    pub retry_at: TimeMs,
}

/// How a Call settled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settlement {
    /// It happened; the payload is its output.
    Landed,
    /// It failed; the payload says why.
    Failed,
    /// Policy denied it before it was sent.
    Denied,
    /// It was given up before it settled.
    Cancelled,
    /// Nobody here can know; a Question is open.
    Unknown,
}

/// How a settled Call joins the Transcript.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Joins {
    /// As the model's message.
    Assistant,
    /// As the result of the tool use with this id.
    Tool(String),
    /// As the result of a tool use, of which the Transcript holds at most so much.
    Capped {
        /// The tool use.
        id: String,
        /// Bytes.
        cap: u64,
    },
}

impl Joins {
    /// As the result of `reply_to`, where there is one.
    pub(crate) fn reply(reply_to: Option<&String>, cap: Option<u64>) -> Option<Self> {
        let id = reply_to?.clone();
        Some(cap.map_or_else(|| Self::Tool(id.clone()), |cap| Self::Capped { id: id.clone(), cap }))
    }
}

/// The exact bytes of what a model was sent and what it answered, stored by content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Exchanged {
    /// SHA-256 of the request's body.
    pub request: Digest,
    /// SHA-256 of the response's body.
    pub response: Digest,
}

/// A Call has its one settlement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Settled {
    /// The Call.
    pub call: CallId,
    /// How.
    #[serde(rename = "as")]
    pub how: Settlement,
    /// The failure's code unless it landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Usage, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Cost, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
    /// How it joins the Transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins: Option<Joins>,
    /// What was exchanged with a model's server, where its worker keeps that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Exchanged>,
}

/// What the target of a probed Call says about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// It has happened; the Entry after this one settles the Call.
    Landed,
    /// It has not happened.
    NotLanded,
    /// The target could not say; the payload tells why.
    Unclear,
}

/// The target of a Call was asked whether it happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Probed {
    /// The Call.
    pub call: CallId,
    /// The answer.
    pub found: Found,
    /// When the question was sent.
    pub asked_at: TimeMs,
    /// The answer settles nothing yet: the target is asked again, not before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_at: Option<TimeMs>,
}

/// A worker that no longer drives the Run had the result of a Call. The Entry after this one settles or resolves it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LateResult {
    /// The Call.
    pub call: CallId,
    /// The epoch of the worker.
    pub epoch: Epoch,
}

/// A person resolved an unknown Call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Resolved {
    /// The Call.
    pub call: CallId,
    /// Who.
    pub by: String,
    /// What they say.
    pub resolution: Resolution,
    /// How the result joins the Transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins: Option<Joins>,
}

/// A signal arrived; its body is the payload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Signal {
    /// Its name.
    pub name: String,
}

/// A Question ended; the answer is the payload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QuestionEnded {
    /// The Question.
    pub question: QuestionId,
    /// How.
    pub end: QuestionEnd,
    /// Who.
    pub actor: String,
    /// How the answer joins the Transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins: Option<Joins>,
}

/// A timer fired.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TimerFired {
    /// The timer.
    pub timer: TimerId,
}

/// A child Run is sealed, and with it the Call that stood for it settles; a completed output stands in the payload.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChildEnded {
    /// The Call.
    pub call: CallId,
    /// The child.
    pub child: RunId,
    /// How it ended.
    pub outcome: Outcome,
    /// What it consumed.
    pub spent: Spent,
    /// How its outcome joins the Transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins: Option<Joins>,
}

/// A child Run stopped at a reopenable outcome.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChildParked {
    /// The Call.
    pub call: CallId,
    /// The child.
    pub child: RunId,
    /// How it stands.
    pub outcome: Outcome,
}

/// Somebody asked to cancel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CancelRequested {
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
}

/// The limits changed while the Run was open.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BudgetChanged {
    /// Who changed them.
    pub by: String,
    /// The limits that were raised.
    pub raise: Limits,
}

/// A record does not read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordError {
    /// The kind has a name in this format, and this build neither writes nor reads it.
    Unsupported {
        /// The kind.
        kind: Kind,
    },
    /// The record is not that kind's JSON.
    Malformed {
        /// The kind.
        kind: Kind,
        /// What was expected.
        message: String,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { kind } => write!(f, "this build does not read entries of kind {kind}"),
            Self::Malformed { kind, message } => write!(f, "the {kind} record does not read: {message}"),
        }
    }
}

impl core::error::Error for RecordError {}

macro_rules! records {
    ($($name:ident),*; $($unread:ident),*) => {
        /// A decoded record.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Record {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name($name),)*
        }

        impl Record {
            /// The kind of Entry that holds this record.
            #[must_use]
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$name(_) => Kind::$name,)* }
            }

            /// The JSON text that is committed.
            ///
            /// # Errors
            /// [`RecordError::Malformed`] when serde refuses, which no record of this module does.
            pub fn encode(&self) -> Result<String, RecordError> {
                let text = match self { $(Self::$name(record) => serde_json::to_string(record),)* };
                text.map_err(|error| RecordError::Malformed {
                    kind: self.kind(),
                    message: alloc::format!("{error}"),
                })
            }

            /// Reads a record.
            ///
            /// # Errors
            /// [`RecordError`], naming the kind.
            pub fn decode(kind: Kind, text: &str) -> Result<Self, RecordError> {
                let malformed = |error| RecordError::Malformed { kind, message: alloc::format!("{error}") };
                match kind {
                    $(Kind::$name => serde_json::from_str(text).map(Self::$name).map_err(malformed),)*
                    $(Kind::$unread)|* => Err(RecordError::Unsupported { kind }),
                }
            }
        }
    };
}

records!(
    Started, IterationStarted, Decided, DefinitionChanged, Recovered, Parked, Reopened, Ended, Intended, Attempted,
    Settled, Probed, LateResult, Resolved, Signal, QuestionEnded, TimerFired, ChildEnded, ChildParked,
    CancelRequested, BudgetChanged;
    Compacted, ForkedFrom, ToolsChanged, Judged, Warned, GuardRaised
);
