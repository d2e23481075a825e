//! An answer out of what arrives: a pure machine from responses, or chunks of one, to a reply.
//!
//! It is complete only when the server gives a finish reason, or says that it blocked the prompt. Everything that
//! cannot be used is an error, nothing is dropped in silence.

use super::chunk::{Candidate, Chunk, FunctionPiece, PartPiece};
use super::complaint::Complaint;
use super::names::Names;
use super::usage::Counts;
use crate::complaint::Known;
use crate::intake::{End, is_cut};
use crate::wire::{GrowingText, JsonStr, JsonText, SseEvent, excerpt};
use loopd_kernel::model::{ModelReply, Part, StopReason};
use loopd_kernel::{CallId, Usage};
use loopd_runtime::{ModelAnswer, ModelError};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Ids that this adapter makes up begin so. They never go onto the wire.
const MADE_UP: &str = "gemini_";

/// What the answer belongs to.
#[derive(Debug, Clone)]
pub(super) struct Belongs<'a> {
    /// The Call: ids that the server left out are derived from it.
    pub(super) call: CallId,
    /// Provider and model, for reasoning.
    pub(super) origin: &'a str,
    /// The tools' own names.
    pub(super) names: &'a Names,
    /// What must not show in error messages.
    pub(super) secrets: &'a [&'a str],
}

/// One answer in the making.
#[derive(Debug)]
pub(super) struct Assembler<'a> {
    belongs: Belongs<'a>,
    pieces: Vec<Piece>,
    calls: usize,
    finish: Option<Finish>,
    blocked: Option<Finish>,
    /// A candidate has been seen: something was generated.
    begun: bool,
    /// All of it came in one piece.
    whole: bool,
    counts: Counts,
    /// What was counted last is the whole count: until the answer ends, the server only counts along.
    counted: bool,
    model: String,
}

/// Why it ended, by the server's word, with what it adds for people.
#[derive(Debug)]
struct Finish {
    word: String,
    message: String,
}

/// What appeared, in order.
#[derive(Debug)]
enum Piece {
    /// Text; a signed one takes no more.
    Text { text: GrowingText, signed: bool },
    /// A thought, or a signature that came without anything to sign, in raw JSON.
    Reasoning { thought: bool, body: String, signature: Option<String> },
    /// The signature of the piece that follows, in raw JSON.
    Signature(String),
    /// A tool use. Without arguments it says nothing about them.
    Call { id: String, name: String, args: Option<String> },
}

impl<'a> Assembler<'a> {
    pub(super) fn new(belongs: Belongs<'a>) -> Self {
        Self {
            belongs,
            pieces: Vec::new(),
            calls: 0,
            finish: None,
            blocked: None,
            begun: false,
            whole: false,
            counts: Counts::default(),
            counted: false,
            model: String::new(),
        }
    }

    /// Takes an event of a stream and says what text can be shown.
    pub(super) fn event(&mut self, event: &SseEvent) -> Result<String, ModelError> {
        let data = event.data.trim();
        match event.name.as_str() {
            // A gateway's own end of a stream says nothing about the answer.
            _ if data.is_empty() || data == "[DONE]" => Ok(String::new()),
            "error" => Err(self.complaint(data)),
            _ => self.chunk(data),
        }
    }

    /// Takes a response that came whole: one object, or a list of chunks.
    pub(super) fn whole(mut self, body: &str) -> Result<ModelAnswer, ModelError> {
        match serde_json::from_str::<&RawValue>(body) {
            Ok(_) => {}
            Err(error) if is_cut(body, &error) => return Err(self.interrupted("the answer ends in the middle")),
            Err(_) => return Err(self.malformed(&format!("no JSON: {body}"))),
        }
        self.whole = true;
        if body.trim_start().starts_with('[') {
            let chunks: Vec<&RawValue> =
                serde_json::from_str(body).map_err(|error| self.malformed(&format!("{error}: {body}")))?;
            for chunk in chunks {
                self.chunk(chunk.get())?;
            }
        } else {
            self.chunk(body)?;
        }
        self.end(End::Proper)
    }

    fn chunk(&mut self, data: &str) -> Result<String, ModelError> {
        let chunk: Chunk<'_> =
            serde_json::from_str(data).map_err(|error| self.malformed(&format!("{error}: {data}")))?;
        if let Some(raw) = chunk.usage_metadata {
            self.counts.update(raw);
        }
        if chunk.error.is_some() {
            // An error that comes with a count ends the counting.
            self.counted |= chunk.usage_metadata.is_some();
            return Err(self.complaint(data));
        }
        if let Some(model) = chunk.model_version.filter(|model| !model.is_empty()) {
            model.text().as_ref().clone_into(&mut self.model);
        }
        let mut shown = String::new();
        for candidate in chunk.candidates.unwrap_or_default() {
            shown.push_str(&self.candidate(candidate)?);
        }
        if let Some(feedback) = chunk.prompt_feedback {
            self.blocked = finish(feedback.block_reason, feedback.block_reason_message).or(self.blocked.take());
        }
        self.counted |= chunk.usage_metadata.is_some() && (self.finish.is_some() || self.blocked.is_some());
        Ok(shown)
    }

    fn candidate(&mut self, candidate: Candidate<'_>) -> Result<String, ModelError> {
        // One was asked for.
        if candidate.index.is_some_and(|index| index != 0) {
            return Err(self.malformed("a second candidate, which nobody asked for"));
        }
        self.begun = true;
        let mut shown = String::new();
        for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
            shown.push_str(&self.part(part)?);
        }
        self.finish = finish(candidate.finish_reason, candidate.finish_message).or(self.finish.take());
        Ok(shown)
    }

    fn part(&mut self, raw: &RawValue) -> Result<String, ModelError> {
        let malformed = |error: serde_json::Error| self.malformed(&format!("{error}: {}", raw.get()));
        let part: PartPiece<'_> = serde_json::from_str(raw.get()).map_err(malformed)?;
        let signature = match part.thought_signature.map(RawValue::get) {
            Some(text) if text.starts_with('"') => Some(text.to_owned()).filter(|text| text != "\"\""),
            Some(other) => return Err(self.malformed(&format!("a signature that is no text: {other}"))),
            None => None,
        };
        let thought = part.thought == Some(true);
        if let Some(function) = part.function_call {
            self.pieces.extend(signature.map(Piece::Signature));
            self.call(function)?;
            return Ok(String::new());
        }
        match part.text {
            Some(text) if thought => {
                let body = text.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                let body = body.ok_or_else(|| self.malformed(&format!("a thought that is no text: {}", text.get())))?;
                self.reasoning(true, body, signature);
                Ok(String::new())
            }
            Some(text) => {
                let text: JsonStr<'_> = serde_json::from_str(text.get()).map_err(malformed)?;
                Ok(self.text(&text, signature))
            }
            None => {
                self.known_kind(raw)?;
                self.reasoning(thought, "", signature);
                Ok(String::new())
            }
        }
    }

    /// A part without text and without a call may hold a signature, or nothing, but no data of a kind that was not
    /// asked for and would be lost.
    fn known_kind(&self, raw: &RawValue) -> Result<(), ModelError> {
        let members: BTreeMap<String, IgnoredAny> = serde_json::from_str(raw.get()).unwrap_or_default();
        let known = ["thought", "thoughtSignature", "thought_signature", "partMetadata"];
        match members.keys().find(|name| !known.contains(&name.as_str())) {
            Some(kind) => Err(self.malformed(&format!("a part of the kind {kind:?}, which nobody asked for"))),
            None => Ok(()),
        }
    }

    fn call(&mut self, function: FunctionPiece<'_>) -> Result<(), ModelError> {
        if function.partial_args.is_some() || function.will_continue == Some(true) {
            return Err(self.malformed("arguments in pieces, which nobody asked for"));
        }
        let name = function.name.map(JsonText::into_string).unwrap_or_default();
        if name.is_empty() {
            return Err(self.malformed("a tool call without a name"));
        }
        let id = function.id.map(JsonText::into_string).filter(|id| !id.is_empty());
        // Without an id from the provider, one that comes out the same whenever this call is made again.
        let id = id.unwrap_or_else(|| format!("{MADE_UP}{}_{}", self.belongs.call.0, self.calls));
        self.calls += 1;
        let args = function.args.map(RawValue::get).map(str::to_owned);
        self.pieces.push(Piece::Call { id, name: self.belongs.names.own(name), args });
        Ok(())
    }

    fn text(&mut self, text: &JsonStr<'_>, signature: Option<String>) -> String {
        if text.is_empty() {
            self.reasoning(false, "", signature);
            return String::new();
        }
        // What is signed is not mixed with what is not: the signature is of this part alone.
        let signed = signature.is_some();
        self.pieces.extend(signature.map(Piece::Signature));
        if signed || !matches!(self.pieces.last(), Some(Piece::Text { signed: false, .. })) {
            self.pieces.push(Piece::Text { text: GrowingText::default(), signed });
        }
        match self.pieces.last_mut() {
            Some(Piece::Text { text: growing, .. }) => growing.push(text),
            Some(Piece::Reasoning { .. } | Piece::Signature(_) | Piece::Call { .. }) | None => String::new(),
        }
    }

    /// Strings are joined without decoding them, so that they go back byte for byte.
    fn reasoning(&mut self, thought: bool, more: &str, more_signature: Option<String>) {
        if more.is_empty() && more_signature.is_none() {
            return;
        }
        if let Some(Piece::Reasoning { thought: true, body, signature }) = self.pieces.last_mut()
            && thought
            && signature.is_none()
        {
            body.push_str(more);
            *signature = more_signature;
            return;
        }
        self.pieces.push(Piece::Reasoning { thought, body: more.to_owned(), signature: more_signature });
    }

    /// The answer, if it is one.
    pub(super) fn end(self, end: End) -> Result<ModelAnswer, ModelError> {
        if let End::Broken(why) = end {
            return Err(self.interrupted(&why));
        }
        let (stop, finish) = match (&self.finish, &self.blocked) {
            (Some(finish), _) => (self.stop(finish)?, finish),
            (None, Some(blocked)) => (StopReason::Refusal, blocked),
            (None, None) if self.whole && !self.begun => {
                return Err(self.malformed("an answer without any candidate"));
            }
            (None, None) => {
                return Err(self.interrupted("the answer ended without a finish reason"));
            }
        };
        let mut parts: Vec<Part> = self.pieces.iter().map(|piece| self.reply_part(piece, &stop)).collect();
        if stop == StopReason::Refusal {
            // Whoever reads the answer learns only from here what the filter objected to.
            let what = if self.finish.is_some() { "the answer" } else { "the prompt" };
            parts.push(Part::Text { text: format!("[{what} was blocked: {}]", self.said(finish)) });
        }
        let usage = self.final_usage();
        Ok(ModelAnswer { reply: ModelReply { parts, stop, model: self.model }, usage })
    }

    fn reply_part(&self, piece: &Piece, stop: &StopReason) -> Part {
        let origin = || self.belongs.origin.to_owned();
        match piece {
            Piece::Text { text, .. } => Part::Text { text: text.text() },
            Piece::Signature(signature) => {
                Part::Reasoning { opaque: format!("{{\"thoughtSignature\":{signature}}}"), origin: origin() }
            }
            Piece::Reasoning { thought, body, signature } => {
                let thought = if *thought { ",\"thought\":true" } else { "" };
                let signature = signature.as_ref().map(|text| format!(",\"thoughtSignature\":{text}"));
                let signature = signature.unwrap_or_default();
                Part::Reasoning { opaque: format!("{{\"text\":\"{body}\"{thought}{signature}}}"), origin: origin() }
            }
            Piece::Call { id, name, args } => {
                // A tool that takes no arguments gets none; behind the output limit they are what was cut off.
                let none = if *stop == StopReason::Length { "" } else { "{}" };
                let args = args.as_deref().filter(|args| *args != "null").unwrap_or(none).to_owned();
                Part::ToolUse { id: id.clone(), name: name.clone(), args }
            }
        }
    }

    /// What the finish reason means, together with what came before it.
    fn stop(&self, finish: &Finish) -> Result<StopReason, ModelError> {
        let said = self.said(finish);
        let has_text = self.pieces.iter().any(|piece| matches!(piece, Piece::Text { text, .. } if !text.is_blank()));
        Ok(match finish.word.as_str() {
            "STOP" if self.calls > 0 => StopReason::ToolUse,
            "STOP" if has_text => StopReason::EndTurn,
            "STOP" => return Err(self.malformed("the model stopped without a word")),
            // The limit of the server for one response, behind which another request would go on.
            "MAX_TOKENS" | "CONTINUATION" => StopReason::Length,
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "MODEL_ARMOR"
            | "ESCALATION"
            | "PUP_LIMITED_DISABLED"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION" => StopReason::Refusal,
            // The model made a mistake that another attempt may not make.
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => {
                return Err(self.malformed(&said));
            }
            // The request makes it so.
            "MISSING_THOUGHT_SIGNATURE" | "TOO_MANY_TOOL_CALLS" => return Err(self.stopped(&said)),
            // Whether a call is complete that stands before an unknown end, nobody knows: it is not made.
            _ if self.calls > 0 => return Err(self.stopped(&said)),
            _ => StopReason::Other(said),
        })
    }

    fn said(&self, finish: &Finish) -> String {
        let Finish { word, message } = finish;
        excerpt(&if message.is_empty() { word.clone() } else { format!("{word}: {message}") }, self.belongs.secrets)
    }

    pub(super) fn complaint(&self, body: &str) -> ModelError {
        let usage = self.final_usage();
        let known = Known { retry_after: None, begun: self.begun || usage.is_some(), usage };
        Complaint::read(None, body, self.belongs.secrets).into_error(known)
    }

    pub(super) fn malformed(&self, what: &str) -> ModelError {
        ModelError::Malformed { message: excerpt(what, self.belongs.secrets), usage: self.final_usage() }
    }

    pub(super) fn interrupted(&self, what: &str) -> ModelError {
        ModelError::Interrupted { message: excerpt(what, self.belongs.secrets), usage: self.final_usage() }
    }

    fn stopped(&self, what: &str) -> ModelError {
        ModelError::Stopped { message: excerpt(what, self.belongs.secrets), usage: self.final_usage() }
    }

    fn final_usage(&self) -> Option<Usage> {
        self.counts.usage().filter(|_| self.counted || self.whole)
    }
}

/// Whether `id` was made up by this adapter.
pub(super) fn is_made_up(id: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = id.strip_prefix(MADE_UP).and_then(|rest| rest.split_once('_'));
    numbers.is_some_and(|(call, slot)| number(call) && number(slot))
}

fn finish(word: Option<JsonText>, message: Option<JsonText>) -> Option<Finish> {
    let text = |text: Option<JsonText>| text.map(JsonText::into_string).unwrap_or_default();
    // An unspecified reason is none.
    let word = Some(text(word)).filter(|word| !word.is_empty() && !word.ends_with("_REASON_UNSPECIFIED"));
    word.map(|word| Finish { word, message: text(message) })
}
