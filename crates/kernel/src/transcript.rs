//! The Transcript: what was said in a Run, as a projection of its Journal. It is not part of State and
//! is stored nowhere else; a [`Head`] is all that a snapshot keeps of it.

mod cap;
mod head;

use crate::entry::{Entry, Kind, Span};
use crate::ids::{CallId, Seq};
use crate::model::{Message, ModelReply};
use crate::outcome::{Interrupt, Outcome};
use crate::question::{QuestionEnd, Resolution};
use crate::record::{ActionRecord, Joins, Record, RecordError, Settlement};
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
pub use cap::{READ_BYTES, READ_RESULT, capped, read_result_offer};
pub use head::{Head, Mark, Origin};

/// The version of these rules, recorded when a Run starts. A rule for what no older Journal holds changes nothing there
/// and needs no new one.
pub const PROJECTION: u32 = 1;

/// The name of the signal whose body joins the Transcript as a user message.
pub const MESSAGE_SIGNAL: &str = "message";

/// Bytes that an image counts for, whatever its size in bytes: twice the tokens for which a provider charges the
/// largest one.
const IMAGE_BYTES: u64 = 16_384;

/// One item, still as bytes of its Entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item<'a> {
    /// Said by a person or the Loop.
    User(&'a str),
    /// A model's reply: JSON of [`ModelReply`].
    Assistant(&'a str),
    /// A tool's result.
    Tool {
        /// The tool use.
        id: &'a str,
        /// The result, capped.
        text: Cow<'a, str>,
        /// Whether the text says what went wrong.
        error: bool,
    },
    /// A recorded message: JSON of [`Message`].
    Note(&'a str),
    /// The Transcript begins anew: with the Run's input, this summary, and the user messages of Entries after `after`.
    Compacted {
        /// The summary.
        summary: &'a str,
        /// What Entries up to this one said is replaced.
        after: Seq,
    },
}

impl Item<'_> {
    fn parts(&self) -> [&[u8]; 3] {
        match self {
            Self::User(text) => [b"user", b"", text.as_bytes()],
            Self::Assistant(text) => [b"assistant", b"", text.as_bytes()],
            Self::Tool { id, text, error: false } => [b"tool", id.as_bytes(), text.as_bytes()],
            Self::Tool { id, text, error: true } => [b"tool_error", id.as_bytes(), text.as_bytes()],
            Self::Note(text) => [b"note", b"", text.as_bytes()],
            Self::Compacted { summary, .. } => [b"compacted", b"", summary.as_bytes()],
        }
    }

    /// True for what a person or the Loop says, a recorded message included.
    fn is_user(&self) -> bool {
        match self {
            Self::User(_) => true,
            Self::Note(text) => matches!(serde_json::from_str(text), Ok(Message::User { .. })),
            Self::Assistant(_) | Self::Tool { .. } | Self::Compacted { .. } => false,
        }
    }

    /// The bytes that stand for it in a bound of tokens: those of its text, and of what comes with it.
    fn weight(&self) -> u64 {
        let text = match self {
            Self::User(text) | Self::Note(text) => text,
            Self::Assistant(text) | Self::Compacted { summary: text, .. } => return text.len() as u64,
            Self::Tool { text, .. } => return text.len() as u64,
        };
        match attached(text) {
            Some(Message::User { text, attachments }) => {
                let weights = attachments.iter().map(|attachment| match attachment.is_image() {
                    true => IMAGE_BYTES,
                    false => attachment.data.len() as u64,
                });
                weights.fold(text.len() as u64, u64::saturating_add)
            }
            Some(Message::Assistant { .. } | Message::Tool { .. }) | None => text.len() as u64,
        }
    }

    /// The provider-neutral message.
    ///
    /// # Errors
    /// The JSON error of a reply or note that does not read.
    pub fn message(&self) -> Result<Message, serde_json::Error> {
        Ok(match self {
            Self::User(text) => attached(text).unwrap_or_else(|| Message::user(plain(text))),
            Self::Assistant(reply) => Message::Assistant { parts: serde_json::from_str::<ModelReply>(reply)?.parts },
            Self::Tool { id, text, error } => {
                Message::Tool { id: String::from(*id), text: text.clone().into_owned(), error: *error }
            }
            Self::Note(text) => serde_json::from_str(text)?,
            Self::Compacted { summary, .. } => Message::user(*summary),
        })
    }
}

/// A JSON string is what it says; any other JSON is its own text.
fn plain(text: &str) -> String {
    serde_json::from_str::<String>(text).unwrap_or_else(|_| text.into())
}

/// A text that is the JSON of a user's message with attachments. What only looks alike stays text.
fn attached(text: &str) -> Option<Message> {
    // Most texts are long and are none: they are not parsed.
    if !text.trim_start().starts_with('{') || !text.contains("\"attachments\"") {
        return None;
    }
    let message = serde_json::from_str(text).ok()?;
    matches!(&message, Message::User { .. }).then_some(message)
}

/// The items that an Entry adds.
#[must_use]
pub fn items<'a>(record: &'a Record, payload: &'a [u8]) -> Vec<Item<'a>> {
    let whole = || core::str::from_utf8(payload).unwrap_or("");
    match record {
        Record::Started(started) => started.input.text(payload).map(Item::User).into_iter().collect(),
        Record::Decided(decided) => decided.actions.iter().filter_map(|action| said(action, payload)).collect(),
        Record::Settled(settled) => match (settled.how, &settled.joins) {
            // A model call that did not land said nothing; an unknown one speaks when it is resolved.
            (Settlement::Landed, joins) => joined(joins, settled.call, whole(), false),
            (Settlement::Unknown, _) | (_, Some(Joins::Assistant)) => Vec::new(),
            (Settlement::Failed | Settlement::Denied | Settlement::Cancelled, joins) => {
                joined(joins, settled.call, whole(), true)
            }
        },
        Record::Resolved(resolved) => {
            let (call, joins) = (resolved.call, &resolved.joins);
            match &resolved.resolution {
                Resolution::Landed { output } => joined(joins, call, output, false),
                Resolution::Failed { .. } => joined(joins, call, "the call did not happen", true),
                Resolution::Unknown { .. } => joined(joins, call, "nobody can tell whether the call happened", true),
                Resolution::Retry => Vec::new(),
            }
        }
        Record::Signal(signal) if signal.name == MESSAGE_SIGNAL => alloc::vec![Item::User(whole())],
        Record::QuestionEnded(ended) => match ended.end {
            QuestionEnd::Answered => joined(&ended.joins, CallId(0), whole(), false),
            QuestionEnd::Declined | QuestionEnd::Dismissed | QuestionEnd::TimedOut | QuestionEnd::Withdrawn => {
                joined(&ended.joins, CallId(0), "nobody answered", true)
            }
        },
        Record::ChildEnded(ended) => match &ended.outcome {
            Outcome::Completed { .. } => joined(&ended.joins, ended.call, whole(), false),
            Outcome::BudgetExceeded { .. }
            | Outcome::Stuck { .. }
            | Outcome::Interrupted { .. }
            | Outcome::PolicyDenied { .. }
            | Outcome::Failed { .. } => joined(&ended.joins, ended.call, reason(&ended.outcome), true),
        },
        Record::Signal(_)
        | Record::DefinitionChanged(_)
        | Record::Probed(_)
        | Record::LateResult(_)
        | Record::ChildParked(_)
        | Record::IterationStarted(_)
        | Record::Recovered(_)
        | Record::Parked(_)
        | Record::Reopened(_)
        | Record::Ended(_)
        | Record::Intended(_)
        | Record::Attempted(_)
        | Record::TimerFired(_)
        | Record::CancelRequested(_)
        | Record::BudgetChanged(_) => Vec::new(),
    }
}

/// Why a child has no output, in words that a model can use.
fn reason(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Failed { failure } => &failure.message,
        Outcome::Interrupted { interrupt: Interrupt::Cancelled { reason, .. } } => reason,
        Outcome::Completed { .. }
        | Outcome::BudgetExceeded { .. }
        | Outcome::Stuck { .. }
        | Outcome::Interrupted { .. }
        | Outcome::PolicyDenied { .. } => outcome.name(),
    }
}

/// The item of what joins the Transcript, when it does.
fn joined<'a>(joins: &'a Option<Joins>, call: CallId, text: &'a str, error: bool) -> Vec<Item<'a>> {
    match joins {
        Some(Joins::Assistant) => alloc::vec![Item::Assistant(text)],
        Some(Joins::Tool(id)) => alloc::vec![Item::Tool { id, text: text.into(), error }],
        Some(Joins::Capped { id, cap }) => {
            alloc::vec![Item::Tool { id, text: capped(text, *cap, Some(call)), error }]
        }
        None => Vec::new(),
    }
}

/// What an Action adds.
fn said<'a>(action: &'a ActionRecord, payload: &'a [u8]) -> Option<Item<'a>> {
    let text = |span: &Span| span.text(payload);
    match action {
        ActionRecord::Note(span) => text(span).map(Item::Note),
        ActionRecord::Compact { summary, after } => {
            Some(Item::Compacted { summary: text(summary).unwrap_or_default(), after: *after })
        }
        ActionRecord::Model { .. }
        | ActionRecord::Tool { .. }
        | ActionRecord::Join { .. }
        | ActionRecord::Spawn { .. }
        | ActionRecord::Signal { .. }
        | ActionRecord::RaiseChild { .. }
        | ActionRecord::CancelChild { .. }
        | ActionRecord::CancelCalls
        | ActionRecord::Speak(_)
        | ActionRecord::Ask { .. }
        | ActionRecord::Wait { .. }
        | ActionRecord::Sleep { .. }
        | ActionRecord::Label(..)
        | ActionRecord::Finish(_)
        | ActionRecord::Fail(_) => None,
    }
}

/// Why an Entry's messages do not read.
#[derive(Debug)]
pub enum ReadError {
    /// The record.
    Record(RecordError),
    /// A reply or note in the payload.
    Message(serde_json::Error),
}

/// One thing that an Entry does to the list of messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A message joins.
    Say(Message),
    /// Everything is replaced by the Run's input, this message, and the user messages of Entries after `after`.
    Compact {
        /// The summary.
        summary: Message,
        /// The user messages of Entries after this one stay, behind the summary.
        after: Seq,
    },
}

/// What an Entry does to the messages of the Transcript, for building a request.
///
/// # Errors
/// [`ReadError`] when the Entry does not read.
pub fn changes(entry: &Entry) -> Result<Vec<Change>, ReadError> {
    let joins = matches!(
        entry.kind,
        Kind::Started
            | Kind::Decided
            | Kind::Settled
            | Kind::Resolved
            | Kind::Signal
            | Kind::QuestionEnded
            | Kind::ChildEnded
    );
    if !joins {
        return Ok(Vec::new());
    }
    let record = Record::decode(entry.kind, &entry.record).map_err(ReadError::Record)?;
    let change = |item: &Item<'_>| {
        let message = item.message().map_err(ReadError::Message)?;
        Ok(match item {
            Item::Compacted { after, .. } => Change::Compact { summary: message, after: *after },
            Item::User(_) | Item::Assistant(_) | Item::Tool { .. } | Item::Note(_) => Change::Say(message),
        })
    };
    items(&record, &entry.payload).iter().map(change).collect()
}
