//! What the server heard.

use loopd_runtime::ModelRequest;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// A provider's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// OpenAI chat completions.
    Completions,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
    /// Gemini `generateContent`.
    Gemini,
}

/// A request that arrived, and what became of it.
#[derive(Debug, Clone)]
pub struct Heard {
    /// The protocol in which it was answered.
    pub wire: Wire,
    /// For example `POST`.
    pub method: String,
    /// The path with its query; a key in it is `[secret]`.
    pub path: String,
    /// The headers; keys are `[secret]`.
    pub headers: BTreeMap<String, String>,
    /// The body: text, where it is no JSON, and null where there is none.
    pub body: Value,
    /// Which attempt, from 1: how many requests were the same, byte for byte, with this one.
    pub attempt: u32,
    /// The request without any provider's form, where it asks a model to say something and is one that the provider
    /// would take.
    pub request: Option<ModelRequest>,
    /// Whether it asked for a stream.
    pub stream: bool,
    /// The status of the response; 0 where the connection broke before.
    pub status: u16,
    /// The turn that was played, as its place in the script, from 1.
    pub turn: Option<usize>,
    /// Why it was refused, in the provider's words. Faults of the script are not in here.
    pub refused: Option<String>,
    pub(super) is_call: bool,
}

impl Heard {
    /// Whether it asked a model to say something.
    #[must_use]
    pub const fn is_call(&self) -> bool {
        self.is_call
    }

    /// The form in which a program in another language reads it.
    pub(super) fn to_json(&self) -> Value {
        let request = self.request.as_ref().map(|request| {
            json!({
                "model": request.model,
                "system": request.constants.system,
                "tools": request.constants.tools,
                "output_schema": request.constants.output_schema,
                "messages": request.messages.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
                "max_output_tokens": request.max_output_tokens,
                "temperature_milli": request.temperature_milli,
            })
        });
        json!({
            "wire": self.wire, "method": self.method, "path": self.path, "headers": self.headers, "body": self.body,
            "attempt": self.attempt, "request": request, "stream": self.stream, "status": self.status,
            "turn": self.turn, "refused": self.refused, "is_call": self.is_call,
        })
    }
}

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} attempt {}: {}", self.method, self.path, self.attempt, self.status)?;
        if let Some(turn) = self.turn {
            write!(f, ", turn {turn}")?;
        }
        if let Some(refused) = &self.refused {
            write!(f, ", refused: {}", loopd_fixture::excerpt::line(refused, 300))?;
        }
        Ok(())
    }
}
