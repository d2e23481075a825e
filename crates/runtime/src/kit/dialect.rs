//! How a provider writes: what the kit says in neutral words, a dialect puts onto the wire.

use loopd_kernel::Usage;
use loopd_kernel::model::StopReason;
use serde_json::Value;

/// A reply that the provider is made to give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What is said, in order.
    pub said: Vec<Said>,
    /// Why it ends.
    pub stop: StopReason,
    /// What it used; `None` when the provider does not say.
    pub usage: Option<Usage>,
    /// The model that answers, by the provider's word. A provider that says none leaves it out.
    pub model: String,
}

/// One part of a reply, in the pieces in which a stream delivers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Reasoning.
    Reasoning {
        /// What a person may read of it.
        text: String,
        /// What must go back: the signature, where the provider has one; behind the text else.
        mark: String,
    },
    /// Text.
    Text(Vec<String>),
    /// The use of a tool.
    Use {
        /// The id that the result must carry.
        id: String,
        /// The tool's name on the wire.
        name: String,
        /// The arguments: JSON text, cut anywhere. A provider that streams no arguments sends them whole.
        args: Vec<String>,
    },
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its `event` field; empty for none.
    pub name: String,
    /// Its data, on one line.
    pub data: String,
}

impl Frame {
    /// An event without a name.
    #[must_use]
    pub fn data(data: impl Into<String>) -> Self {
        Self::named("", data)
    }

    /// An event with a name.
    #[must_use]
    pub fn named(name: impl Into<String>, data: impl Into<String>) -> Self {
        Self { name: name.into(), data: data.into() }
    }

    /// Its bytes with this line end.
    pub(super) fn wire(&self, end: &str) -> String {
        let name = if self.name.is_empty() { String::new() } else { format!("event: {}{end}", self.name) };
        let data: String = self.data.split('\n').map(|line| format!("data: {line}{end}")).collect();
        format!("{name}{data}{end}")
    }
}

/// A reply as a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streamed {
    /// The events, in order.
    pub frames: Vec<Frame>,
    /// How many of the last events say that the answer is complete: without all of them it is none.
    pub ending: usize,
}

/// How a provider writes, and how it reads.
pub trait Dialect: Send + Sync + 'static {
    /// `reply` as a stream. Called only with [`Features::streams`](super::Features::streams).
    fn streamed(&self, reply: &Reply) -> Streamed;

    /// `reply` in one piece. Called only with [`Features::whole`](super::Features::whole).
    fn whole(&self, reply: &Reply) -> String;

    /// The body of a response with this status, 400 to 599, which says `message`.
    fn error(&self, status: u16, message: &str) -> String;

    /// Status and body by which the provider says that a request is larger than the model's window.
    fn overflow(&self) -> (u16, String);

    /// An event that says in a stream that the provider is overloaded, with `message`.
    fn error_event(&self, message: &str) -> Frame;

    /// What a request says.
    fn hear(&self, body: &Value) -> Heard;

    /// What is left of `usage` on this wire: a class that it cannot tell apart is a part of another one. The sum stays.
    fn counts(&self, usage: Usage) -> Usage {
        usage
    }

    /// Events that keep a connection alive, besides comments.
    fn pings(&self) -> Vec<Frame> {
        Vec::new()
    }

    /// Events of a kind that does not exist yet.
    fn unknown(&self) -> Vec<Frame> {
        vec![Frame::named("kit.unknown", r#"{"type":"kit.unknown","kit":[1,{"a":null}]}"#)]
    }
}

/// A request, in neutral words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heard {
    /// The instructions; empty for none.
    pub system: String,
    /// The names of the tools that are offered, on the wire; `None` when the request has no list of tools.
    pub tools: Option<Vec<String>>,
    /// What was said.
    pub turns: Vec<Turn>,
}

/// One turn of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// A person's words.
    User(String),
    /// What the model said.
    Assistant {
        /// Its text, joined.
        text: String,
        /// Its tool uses.
        uses: Vec<HeardUse>,
    },
    /// Results of tools that stand together: in one message, or in messages directly behind each other.
    Results(Vec<HeardResult>),
}

/// A tool use in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeardUse {
    /// Its id.
    pub id: String,
    /// The tool's name on the wire.
    pub name: String,
    /// Its arguments as text.
    pub args: String,
}

/// The result of a tool in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeardResult {
    /// The id of the tool use.
    pub id: String,
    /// Its text.
    pub text: String,
}
