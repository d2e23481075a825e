//! How a server sends an answer: everything that can go wrong, or merely differ, between a model and its client.

use crate::script::FaultKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// How an answer travels. Only a server can play this; the demo model refuses a script that has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OnWire {
    /// Another status than 200. Without a body, the provider's own error form for it is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// More headers, for example `retry-after` in either of its forms; they win over the usual ones.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Another body. A string is sent as it stands, anything else as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The connection breaks here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Place>,
    /// Nothing more comes from here on, until a gate is opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall: Option<Stall>,
    /// Broken JSON: the body, or the event in the middle of a stream.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub malformed: bool,
    /// An error object inside of a response whose status says success; what would have followed does not come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_inside: Option<InnerError>,
    /// A stream ends without the event that says so. HTTP ends properly.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_end: bool,
    /// Sent in pieces of so many bytes each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_bytes: Option<usize>,
    /// A comment stands before each event of a stream, as servers send them to keep a connection alive.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub comments: bool,
    /// A stream says its usage twice.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub usage_twice: bool,
}

/// A place in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Before its head: nothing came at all.
    Head,
    /// After so many bytes of its body.
    Bytes(usize),
    /// After so many events of a stream. A response that is not streamed counts as one event.
    Events(usize),
    /// In the middle of event N, from 1.
    InEvent(usize),
}

/// A place where a response waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// Where.
    pub at: Place,
    /// The gate that has to be opened. A gate that is open stays open.
    pub gate: String,
}

/// An error inside of a successful response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InnerError {
    /// Which, in the provider's words.
    pub error: FaultKind,
    /// After how many events of a stream.
    #[serde(default)]
    pub after_events: usize,
}

impl OnWire {
    /// Answers with `status` in the provider's error form.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// Breaks the connection at `place`.
    #[must_use]
    pub fn cut(place: Place) -> Self {
        Self { cut: Some(place), ..Self::default() }
    }

    /// Waits at `place` until `gate` is opened.
    #[must_use]
    pub fn stall(at: Place, gate: impl Into<String>) -> Self {
        Self { stall: Some(Stall { at, gate: gate.into() }), ..Self::default() }
    }

    /// Sends the body in pieces of `bytes` bytes.
    #[must_use]
    pub fn chunks(bytes: usize) -> Self {
        Self { chunk_bytes: Some(bytes), ..Self::default() }
    }

    /// The same with this header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Whether the turn needs nothing to say, because this is sent in its place.
    #[must_use]
    pub fn replaces_the_answer(&self) -> bool {
        self.status.is_some() || self.body.is_some() || self.cut == Some(Place::Head)
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}
