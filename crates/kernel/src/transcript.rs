//! The Transcript: what was said in a Run, as a projection of its Journal. It is not part of State and
//! is stored nowhere else; a [`Head`] is all that a snapshot keeps of it.

use crate::digest::Digest;
use crate::entry::{Entry, Kind};
use crate::ids::Seq;
use crate::model::{Message, ModelReply};
use crate::outcome::Outcome;
use crate::question::{QuestionEnd, Resolution};
use crate::record::{ActionRecord, Joins, Record, RecordError, Settlement};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The version of these rules, recorded when a Run starts.
pub const PROJECTION: u32 = 1;

/// The name of the signal whose body joins the Transcript as a user message.
pub const MESSAGE_SIGNAL: &str = "message";

/// Where the Transcript starts, how long it is, and a digest of all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Head {
    /// The first Entry that belongs to it.
    pub start: Seq,
    /// How many items.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The running digest.
    pub digest: Digest,
}

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
        /// The result.
        text: &'a str,
        /// Whether the text says what went wrong.
        error: bool,
    },
    /// A recorded message: JSON of [`Message`].
    Note(&'a str),
}

impl Item<'_> {
    fn parts(&self) -> [&[u8]; 3] {
        match self {
            Self::User(text) => [b"user", b"", text.as_bytes()],
            Self::Assistant(text) => [b"assistant", b"", text.as_bytes()],
            Self::Tool { id, text, error: false } => [b"tool", id.as_bytes(), text.as_bytes()],
            Self::Tool { id, text, error: true } => [b"tool_error", id.as_bytes(), text.as_bytes()],
            Self::Note(text) => [b"note", b"", text.as_bytes()],
        }
    }

    /// The provider-neutral message.
    ///
    /// # Errors
    /// The JSON error of a reply or note that does not read.
    pub fn message(&self) -> Result<Message, serde_json::Error> {
        Ok(match self {
            Self::User(text) => Message::User { text: plain(text) },
            Self::Assistant(reply) => Message::Assistant { parts: serde_json::from_str::<ModelReply>(reply)?.parts },
            Self::Tool { id, text, error } => {
                Message::Tool { id: String::from(*id), text: String::from(*text), error: *error }
            }
            Self::Note(text) => serde_json::from_str(text)?,
        })
    }
}

/// A JSON string is what it says; any other JSON is its own text.
fn plain(text: &str) -> String {
    serde_json::from_str::<String>(text).unwrap_or_else(|_| text.into())
}

impl Head {
    pub(crate) fn add(&mut self, seq: Seq, item: &Item<'_>) {
        let [role, id, text] = item.parts();
        if self.items == 0 {
            self.start = seq;
        }
        self.items += 1;
        self.bytes += text.len() as u64;
        self.digest = Digest::of("loopd-transcript/1", &[&self.digest.0, role, id, text]);
    }
}

/// What joins the Transcript, where it does.
fn joined<'a>(joins: &'a Option<Joins>, text: &'a str, error: bool) -> Vec<Item<'a>> {
    let item = joins.as_ref().map(|joins| match joins {
        Joins::Assistant => Item::Assistant(text),
        Joins::Tool(id) => Item::Tool { id, text, error },
    });
    item.into_iter().collect()
}

fn note<'a>(action: &ActionRecord, payload: &'a [u8]) -> Option<Item<'a>> {
    let ActionRecord::Note(span) = action else { return None };
    span.text(payload).map(Item::Note)
}

/// The items that an Entry adds.
#[must_use]
pub fn items<'a>(record: &'a Record, payload: &'a [u8]) -> Vec<Item<'a>> {
    let whole = || core::str::from_utf8(payload).unwrap_or("");
    match record {
        Record::Started(started) => started.input.text(payload).map(Item::User).into_iter().collect(),
        Record::Decided(decided) => decided.actions.iter().filter_map(|action| note(action, payload)).collect(),
        Record::Settled(settled) => match (settled.how, &settled.joins) {
            // A model call that did not land said nothing; an unknown one speaks when it is resolved.
            (Settlement::Landed, joins) => joined(joins, whole(), false),
            (Settlement::Unknown, _) | (_, Some(Joins::Assistant)) => Vec::new(),
            (Settlement::Failed | Settlement::Denied | Settlement::Cancelled, joins) => joined(joins, whole(), true),
        },
        Record::Resolved(resolved) => match &resolved.resolution {
            Resolution::Landed { output } => joined(&resolved.joins, output, false),
            Resolution::Failed { .. } => joined(&resolved.joins, "the call did not happen", true),
            Resolution::Unknown { .. } => joined(&resolved.joins, "nobody can tell whether the call happened", true),
            Resolution::Retry => Vec::new(),
        },
        Record::Signal(signal) if signal.name == MESSAGE_SIGNAL => alloc::vec![Item::User(whole())],
        Record::QuestionEnded(ended) => match ended.end {
            QuestionEnd::Answered => joined(&ended.joins, whole(), false),
            QuestionEnd::Declined | QuestionEnd::Dismissed | QuestionEnd::TimedOut | QuestionEnd::Withdrawn => {
                joined(&ended.joins, "nobody answered", true)
            }
        },
        Record::ChildEnded(ended) => match &ended.outcome {
            Outcome::Completed { .. } => joined(&ended.joins, whole(), false),
            Outcome::Failed { failure } => joined(&ended.joins, &failure.message, true),
            Outcome::BudgetExceeded { .. }
            | Outcome::Stuck { .. }
            | Outcome::Interrupted { .. }
            | Outcome::PolicyDenied { .. } => joined(&ended.joins, ended.outcome.name(), true),
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

/// Why an Entry's messages do not read.
#[derive(Debug)]
pub enum ReadError {
    /// The record.
    Record(RecordError),
    /// A reply or note in the payload.
    Message(serde_json::Error),
}

/// The messages that an Entry adds to the Transcript, for building a request.
///
/// # Errors
/// [`ReadError`] when the Entry does not read.
pub fn messages(entry: &Entry) -> Result<Vec<Message>, ReadError> {
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
    items(&record, &entry.payload).iter().map(|item| item.message().map_err(ReadError::Message)).collect()
}
