//! An answer before it is bytes on a connection.

use loopd_kernel::Usage;
use loopd_kernel::model::{Part, StopReason};
use loopd_script::{Played, REASONING_TEXT};
use serde_json::Value;

/// When everything here was made, as providers say it: seconds since 1970. The same in every test.
pub(super) const CREATED: u64 = 1_700_000_000;

/// What the model says, ready to be written in a provider's form.
#[derive(Debug, Clone)]
pub(super) struct Said {
    /// The number of the request, for ids.
    pub(super) number: usize,
    pub(super) model: String,
    pub(super) reasoning: Option<String>,
    pub(super) text: Option<String>,
    /// Id, name and arguments.
    pub(super) uses: Vec<(String, String, String)>,
    pub(super) stop: StopReason,
    pub(super) usage: Usage,
}

impl Said {
    pub(super) fn of(played: Played, number: usize, model: &str) -> Self {
        let Played { reply, usage } = played;
        let reasoning = reply.parts.iter().find_map(|part| match part {
            Part::Reasoning { opaque, .. } => Some(reasoning_text(opaque)),
            Part::Text { .. } | Part::ToolUse { .. } => None,
        });
        let text = reply.parts.iter().any(|part| matches!(part, Part::Text { .. })).then(|| reply.joined_text());
        let own = |(id, name, args): (&str, &str, &str)| (id.to_owned(), name.to_owned(), args.to_owned());
        let uses = reply.tool_uses().map(own).collect();
        Self { number, model: model.to_owned(), reasoning, text, uses, stop: reply.stop, usage }
    }

    pub(super) fn refused(&self) -> bool {
        self.stop == StopReason::Refusal
    }

    /// Input tokens however they were served.
    pub(super) const fn all_input(&self) -> u64 {
        self.usage.input + self.usage.cache_read + self.usage.cache_write
    }

    /// Output tokens, reasoning included.
    pub(super) const fn all_output(&self) -> u64 {
        self.usage.output + self.usage.reasoning
    }
}

fn reasoning_text(opaque: &str) -> String {
    let value: Value = serde_json::from_str(opaque).unwrap_or_default();
    value.get(REASONING_TEXT).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The arguments as a value; what is no JSON stays text.
pub(super) fn value_of(args: &str) -> Value {
    serde_json::from_str(args).unwrap_or_else(|_| Value::String(args.to_owned()))
}

/// Text in the pieces in which it is streamed.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// Arguments in the pieces in which they are streamed: never at a comfortable place.
pub(super) fn shreds(args: &str) -> Vec<&str> {
    const BYTES: usize = 7;
    let mut rest = args;
    let mut shreds = Vec::new();
    while rest.len() > BYTES {
        let (shred, behind) = rest.split_at(rest.ceil_char_boundary(BYTES));
        shreds.push(shred);
        rest = behind;
    }
    if !rest.is_empty() {
        shreds.push(rest);
    }
    shreds
}

/// What an event of a stream is to whoever plans its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Anything.
    Plain,
    /// A word of the text.
    Word,
    /// Usage.
    Usage,
    /// The event that says that the stream is complete.
    End,
}

/// An event of a stream, as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) kind: Kind,
    pub(super) text: String,
}

impl Piece {
    /// An event without a name.
    pub(super) fn data(kind: Kind, data: &Value) -> Self {
        Self { kind, text: format!("data: {data}\n\n") }
    }

    /// An event whose name is the `type` of its data.
    pub(super) fn named(kind: Kind, data: &Value) -> Self {
        let name = data.get("type").and_then(Value::as_str).unwrap_or_default();
        Self { kind, text: format!("event: {name}\ndata: {data}\n\n") }
    }
}

/// The body of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// All at once.
    Whole(String),
    /// Server-sent events.
    Events(Vec<Piece>),
    /// A JSON list that grows: what Gemini streams where nobody asks for events.
    List(Vec<Piece>),
}
