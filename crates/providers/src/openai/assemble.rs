//! An answer out of what arrives: a pure machine from the data of events to a reply.
//!
//! It is complete only when the server says so: `[DONE]`, or a finish reason before the proper end of the response.
//! Everything that cannot be used is an error, nothing is dropped in silence.

use super::calls::Calls;
use super::chunk::{CallPiece, Choice, Chunk, ContentPart, Said};
use super::usage::usage;
use crate::complaint::{Complaint, Known};
use crate::intake::{Assemble, End, is_cut};
use crate::wire::{GrowingText, JsonStr, SseEvent, excerpt};
use loopd_kernel::model::{ModelReply, Part, StopReason};
use loopd_kernel::{CallId, Usage};
use loopd_runtime::{ModelAnswer, ModelError};
use serde_json::value::RawValue;

/// What the answer belongs to.
#[derive(Debug, Clone)]
pub(super) struct Belongs<'a> {
    /// The Call: ids that the server left out are derived from it.
    pub(super) call: CallId,
    /// Provider and model, for reasoning.
    pub(super) origin: &'a str,
    /// What must not show in error messages.
    pub(super) secrets: &'a [&'a str],
}

/// One answer in the making.
#[derive(Debug)]
pub(super) struct Assembler<'a> {
    belongs: Belongs<'a>,
    pieces: Vec<Piece>,
    calls: Calls,
    reasoning: Reasoning,
    refused: bool,
    finish: Option<String>,
    done: bool,
    /// A choice has been seen: something was generated.
    begun: bool,
    usage: Option<Usage>,
    counted: bool,
    model: String,
}

/// What appeared, in order.
#[derive(Debug)]
enum Piece {
    Text(GrowingText),
    Call(usize),
    Reasoning,
}

/// Reasoning as raw JSON: strings are joined without decoding them, so that they go back byte for byte.
#[derive(Debug, Default)]
struct Reasoning {
    content: String,
    plain: String,
    details: Vec<String>,
    thinking: Vec<String>,
}

impl<'a> Assembler<'a> {
    pub(super) fn new(belongs: Belongs<'a>) -> Self {
        Self {
            belongs,
            pieces: Vec::new(),
            calls: Calls::default(),
            reasoning: Reasoning::default(),
            refused: false,
            finish: None,
            done: false,
            begun: false,
            usage: None,
            counted: false,
            model: String::new(),
        }
    }

    fn chunk(&mut self, data: &str) -> Result<String, ModelError> {
        let chunk: Chunk<'_> =
            serde_json::from_str(data).map_err(|error| self.malformed(&format!("{error}: {data}")))?;
        let is_error = chunk.error.is_some() || chunk.object.is_some_and(|object| object.text() == "error");
        if let Some(raw) = chunk.usage {
            self.usage = usage(raw).or(self.usage);
            // An error that comes with a count ends the counting.
            self.counted |= is_error;
        }
        if is_error {
            self.begun |= chunk.choices.is_some_and(|choices| !choices.is_empty());
            return Err(self.complaint(data));
        }
        if let Some(model) = chunk.model.filter(|model| !model.is_empty()) {
            model.text().as_ref().clone_into(&mut self.model);
        }
        let mut shown = String::new();
        for choice in chunk.choices.unwrap_or_default() {
            shown.push_str(&self.choice(choice)?);
        }
        Ok(shown)
    }

    fn choice(&mut self, choice: Choice<'_>) -> Result<String, ModelError> {
        if let Some(error) = choice.error {
            return Err(self.complaint(error.get()));
        }
        // One was asked for. Gateways that spread one answer over several choices number them all 0.
        if choice.index.is_some_and(|index| index != 0) {
            return Err(self.malformed("a second choice, which nobody asked for"));
        }
        self.begun = true;
        if let Some(raw) = choice.usage {
            self.usage = usage(raw).or(self.usage);
        }
        let mut shown = String::new();
        for said in [choice.delta, choice.message].into_iter().flatten() {
            shown.push_str(&self.said(said)?);
        }
        if let Some(finish) = choice.finish_reason.filter(|finish| !finish.is_empty()) {
            self.finish = Some(finish.text().into_owned());
        }
        Ok(shown)
    }

    fn said(&mut self, said: Said<'_>) -> Result<String, ModelError> {
        self.reason(&said)?;
        let mut shown = match said.content {
            Some(content) => self.content(content)?,
            None => String::new(),
        };
        if let Some(refusal) = said.refusal.filter(|refusal| !refusal.is_empty()) {
            self.refused = true;
            shown.push_str(&self.text(&refusal));
        }
        let old = said.function_call.map(|function| CallPiece { function: Some(function), ..CallPiece::default() });
        for piece in said.tool_calls.unwrap_or_default().into_iter().chain(old) {
            if let Some(opened) = self.calls.add(piece).map_err(|wrong| self.malformed(&wrong))? {
                self.pieces.push(Piece::Call(opened));
            }
        }
        Ok(shown)
    }

    fn content(&mut self, content: &RawValue) -> Result<String, ModelError> {
        let malformed = |error: serde_json::Error| self.malformed(&format!("{error}: {}", content.get()));
        if !content.get().starts_with('[') {
            let text: JsonStr<'_> = serde_json::from_str(content.get()).map_err(malformed)?;
            return Ok(self.text(&text));
        }
        let raw: Vec<&RawValue> = serde_json::from_str(content.get()).map_err(malformed)?;
        let parts: Vec<ContentPart> = serde_json::from_str(content.get()).map_err(malformed)?;
        let mut shown = String::new();
        for (raw, part) in raw.into_iter().zip(parts) {
            let text = match part.kind.as_str() {
                "text" | "output_text" => part.text.unwrap_or_default(),
                "refusal" => {
                    self.refused = true;
                    part.refusal.unwrap_or_default()
                }
                // Mistral's reasoning. It is kept, and does not go back.
                "thinking" => {
                    self.reasoning_before();
                    self.reasoning.thinking.push(raw.get().to_owned());
                    continue;
                }
                kind => return Err(self.malformed(&format!("content of the unknown type {kind:?}"))),
            };
            shown.push_str(&self.text(&text));
        }
        Ok(shown)
    }

    fn text(&mut self, text: &impl AsRef<[u8]>) -> String {
        if text.as_ref().is_empty() {
            return String::new();
        }
        if !matches!(self.pieces.last(), Some(Piece::Text(_))) {
            self.pieces.push(Piece::Text(GrowingText::default()));
        }
        match self.pieces.last_mut() {
            Some(Piece::Text(growing)) => growing.push(text),
            Some(Piece::Call(_) | Piece::Reasoning) | None => String::new(),
        }
    }

    fn reason(&mut self, said: &Said<'_>) -> Result<(), ModelError> {
        let inside = |raw: &'_ RawValue| {
            let body = raw.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).map(str::to_owned);
            body.ok_or_else(|| self.malformed(&format!("reasoning that is no text: {}", raw.get())))
        };
        // Servers that do not reason send empty strings.
        let content = said.reasoning_content.map(inside).transpose()?.filter(|body| !body.is_empty());
        let plain = said.reasoning.map(inside).transpose()?.filter(|body| !body.is_empty());
        let details = said.reasoning_details.as_deref().unwrap_or_default();
        if content.is_some() || plain.is_some() || !details.is_empty() {
            self.reasoning_before();
        }
        self.reasoning.content.push_str(&content.unwrap_or_default());
        self.reasoning.plain.push_str(&plain.unwrap_or_default());
        self.reasoning.details.extend(details.iter().map(|detail| detail.get().to_owned()));
        Ok(())
    }

    /// Gives reasoning its place: where its first piece appears.
    fn reasoning_before(&mut self) {
        if !self.pieces.iter().any(|piece| matches!(piece, Piece::Reasoning)) {
            self.pieces.push(Piece::Reasoning);
        }
    }

    /// What was asked for decides; the finish reason is only advice, except where it says that something is missing.
    fn stop(&self) -> Result<StopReason, ModelError> {
        let word = self.finish.as_deref().unwrap_or("stop");
        let has_text = self.pieces.iter().any(|piece| matches!(piece, Piece::Text(text) if !text.is_blank()));
        Ok(match word {
            "length" | "max_tokens" | "model_length" => StopReason::Length,
            "content_filter" | "safety" | "sensitive" | "refusal" => StopReason::Refusal,
            "error" | "abort" | "network_error" | "insufficient_system_resource" => {
                return Err(self.interrupted(&format!("the server stopped with {word:?}")));
            }
            _ if self.refused => StopReason::Refusal,
            _ if !self.calls.is_empty() => StopReason::ToolUse,
            "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" => StopReason::EndTurn,
            "tool_calls" | "function_call" if !has_text => {
                return Err(self.malformed("the server announces tool calls and sends none"));
            }
            other => StopReason::Other(other.to_owned()),
        })
    }

    fn complaint(&self, body: &str) -> ModelError {
        let usage = self.final_usage();
        let known = Known { retry_after: None, begun: self.begun || self.usage.is_some(), usage };
        Complaint::read(None, body, self.belongs.secrets).into_error(known)
    }

    /// What a failed attempt used, when that is certain: some servers count along in every chunk, and a count
    /// that broke off says nothing about the rest.
    fn final_usage(&self) -> Option<Usage> {
        self.usage.filter(|_| self.finish.is_some() || self.done || self.counted)
    }
}

impl Assemble for Assembler<'_> {
    fn event(&mut self, event: &SseEvent) -> Result<String, ModelError> {
        let data = event.data.trim();
        if data.is_empty() || self.done {
            return Ok(String::new());
        }
        if data == "[DONE]" {
            self.done = true;
            return Ok(String::new());
        }
        match event.name.as_str() {
            "error" => Err(self.complaint(data)),
            "ping" | "keepalive" | "keep-alive" | "heartbeat" => Ok(String::new()),
            _ => self.chunk(data),
        }
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn whole(mut self, body: &str) -> Result<ModelAnswer, ModelError> {
        match serde_json::from_str::<&RawValue>(body) {
            Ok(_) => {}
            Err(error) if is_cut(body, &error) => {
                return Err(self.interrupted("the answer ends in the middle"));
            }
            Err(_) => return Err(self.malformed(&format!("no JSON: {body}"))),
        }
        self.chunk(body)?;
        // All of it is there, so it has ended, also for servers that give no finish reason here.
        self.done = true;
        self.end(End::Proper)
    }

    fn end(self, end: End) -> Result<ModelAnswer, ModelError> {
        if !self.done {
            match end {
                End::Broken(why) => return Err(self.interrupted(&why)),
                End::Proper if self.finish.is_none() => {
                    return Err(self.interrupted("the stream ended without saying that the answer is complete"));
                }
                End::Proper => {}
            }
        }
        if !self.begun {
            return Err(self.malformed("an answer without any choice"));
        }
        let stop = self.stop()?;
        let mut parts = Vec::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            parts.push(match piece {
                Piece::Text(text) => Part::Text { text: text.text() },
                Piece::Call(at) => self
                    .calls
                    .part(*at, self.belongs.call, stop == StopReason::Length)
                    .map_err(|wrong| self.malformed(&wrong))?,
                Piece::Reasoning => {
                    Part::Reasoning { opaque: self.reasoning.opaque(), origin: self.belongs.origin.to_owned() }
                }
            });
        }
        Ok(ModelAnswer { reply: ModelReply { parts, stop, model: self.model }, usage: self.usage })
    }

    fn malformed(&self, what: &str) -> ModelError {
        ModelError::Malformed { message: excerpt(what, self.belongs.secrets), usage: self.final_usage() }
    }

    fn interrupted(&self, what: &str) -> ModelError {
        ModelError::Interrupted { message: excerpt(what, self.belongs.secrets), usage: self.final_usage() }
    }
}

impl Reasoning {
    /// The members as they go back, those that do.
    fn opaque(&self) -> String {
        let text = |name: &str, body: &str| (!body.is_empty()).then(|| format!("\"{name}\":\"{body}\""));
        let list = |name: &str, all: &[String]| (!all.is_empty()).then(|| format!("\"{name}\":[{}]", all.join(",")));
        let members = [
            text("reasoning_content", &self.content),
            text("reasoning", &self.plain),
            list("reasoning_details", &self.details),
            list("thinking", &self.thinking),
        ];
        format!("{{{}}}", members.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}
