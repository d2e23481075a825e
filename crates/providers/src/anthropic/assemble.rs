//! An answer out of what arrives: a pure machine from the data of events to a reply.
//!
//! It is complete only when `message_stop` came. Everything that cannot be used is an error, nothing is dropped in
//! silence; only kinds of events that are not known yet are passed over, as the protocol asks.

use super::blocks::Block;
use super::event::{Delta, Event, Said, StopDetails};
use super::numbered::Numbered;
use super::schema::AnswerShape;
use super::usage::Counts;
use crate::complaint::{Complaint, Known};
use crate::intake::{Assemble, End, is_cut};
use crate::wire::{JsonStr, JsonText, SseEvent, excerpt};
use loopd_kernel::model::{ModelReply, Part, StopReason};
use loopd_kernel::{CallId, Usage};
use loopd_runtime::{ModelAnswer, ModelError};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// What the answer belongs to.
#[derive(Debug, Clone)]
pub(super) struct Belongs<'a> {
    /// The Call: ids that the server left out are derived from it.
    pub(super) call: CallId,
    /// Provider and model, for reasoning.
    pub(super) origin: &'a str,
    /// What must not show in error messages.
    pub(super) secrets: &'a [&'a str],
    /// Real names of tools that were offered under others.
    pub(super) names: BTreeMap<String, String>,
    /// The answer comes as a tool use, in this shape.
    pub(super) answer: Option<AnswerShape>,
}

/// One answer in the making.
#[derive(Debug)]
pub(super) struct Assembler<'a> {
    belongs: Belongs<'a>,
    blocks: Numbered<u64, Block>,
    stop: Option<String>,
    explanation: Option<String>,
    done: bool,
    /// The message has begun: the input was read.
    begun: bool,
    counts: Counts,
    /// The counting has ended: with the reason of the end, or with an error.
    counted: bool,
    model: String,
}

impl<'a> Assembler<'a> {
    pub(super) fn new(belongs: Belongs<'a>) -> Self {
        Self {
            belongs,
            blocks: Numbered::new(),
            stop: None,
            explanation: None,
            done: false,
            begun: false,
            counts: Counts::default(),
            counted: false,
            model: String::new(),
        }
    }

    fn take(&mut self, name: &str, data: &str) -> Result<String, ModelError> {
        let event: Event<'_> =
            serde_json::from_str(data).map_err(|error| self.malformed(&format!("{error}: {data}")))?;
        let kind = event.kind.as_ref().map_or(name.into(), JsonStr::text);
        if let Some(raw) = event.usage {
            self.counts.update(raw);
        }
        if kind == "error" || event.error.is_some() {
            self.counted |= event.usage.is_some();
            return Err(self.complaint(data));
        }
        match kind.as_ref() {
            "message_start" => self.said(event.message.unwrap_or_default()),
            "content_block_start" => {
                let raw = event.content_block.ok_or_else(|| self.malformed("a block begins without its beginning"))?;
                let index = event.index.unwrap_or(self.blocks.len() as u64);
                self.begin(index, raw)
            }
            "content_block_delta" => {
                let delta = event.delta.ok_or_else(|| self.malformed("a piece without content"))?;
                self.grow(event.index, &delta)
            }
            "message_delta" => {
                let delta = event.delta.unwrap_or_default();
                self.stops(delta.stop_reason, delta.stop_details);
                self.counted |= event.usage.is_some() && self.stop.is_some();
                Ok(String::new())
            }
            "message_stop" => {
                self.done = true;
                Ok(String::new())
            }
            _ => Ok(String::new()),
        }
    }

    /// A message, or its beginning.
    fn said(&mut self, said: Said<'_>) -> Result<String, ModelError> {
        self.begun = true;
        if let Some(raw) = said.usage {
            self.counts.update(raw);
        }
        if let Some(model) = said.model.filter(|model| !model.is_empty()) {
            self.model = model.into_string();
        }
        let mut shown = String::new();
        for raw in said.content.unwrap_or_default() {
            shown.push_str(&self.begin(self.blocks.len() as u64, raw)?);
        }
        self.stops(said.stop_reason, said.stop_details);
        Ok(shown)
    }

    fn stops(&mut self, reason: Option<JsonText>, details: Option<StopDetails>) {
        if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
            self.stop = Some(reason.into_string());
        }
        self.explanation = details.and_then(|details| details.explanation).or_else(|| self.explanation.take());
    }

    fn begin(&mut self, index: u64, raw: &RawValue) -> Result<String, ModelError> {
        self.begun = true;
        if self.blocks.has(&index) {
            return Err(self.malformed(&format!("block {index} begins twice")));
        }
        let (block, shown) = Block::begin(raw, &self.belongs).map_err(|wrong| self.malformed(&wrong))?;
        self.blocks.push(index, block);
        Ok(shown)
    }

    fn grow(&mut self, index: Option<u64>, delta: &Delta<'_>) -> Result<String, ModelError> {
        let block = match index {
            Some(index) => self.blocks.get_mut(&index),
            None => self.blocks.last_mut(),
        };
        let grown = match block {
            Some(block) => block.grow(delta),
            None => Err("a piece of a block that has not begun".into()),
        };
        grown.map_err(|wrong| self.malformed(&wrong))
    }

    fn answer(&self) -> Result<ModelAnswer, ModelError> {
        let stop = self.stop_reason()?;
        let cut = stop == StopReason::Length;
        // Beside an answer under a schema, words are no part of the answer.
        let is_answer = self.blocks.iter().any(|block| block.is_answer());
        let blocks = self.blocks.iter().enumerate().filter(|(_, block)| !(is_answer && block.is_text()));
        let mut parts: Vec<Part> = blocks.map(|(at, block)| block.part(at, &self.belongs, cut)).collect();
        // A filter that refuses leaves no words of the model, only its own.
        let wordless = !self.blocks.iter().any(|block| block.is_visible_text());
        if let Some(text) = self.explanation.clone().filter(|_| stop == StopReason::Refusal && wordless) {
            parts.push(Part::Text { text });
        }
        let reply = ModelReply { parts, stop, model: self.model.clone() };
        Ok(ModelAnswer { reply, usage: self.final_usage() })
    }

    /// What was asked for decides; the reason is only advice, except where it says that something is missing.
    fn stop_reason(&self) -> Result<StopReason, ModelError> {
        let uses = self.blocks.iter().any(|block| block.is_use());
        let has_text = self.blocks.iter().any(|block| block.is_visible_text());
        Ok(match self.stop.as_deref() {
            Some("max_tokens") => StopReason::Length,
            Some("refusal") => StopReason::Refusal,
            Some(_) if uses => StopReason::ToolUse,
            Some("end_turn" | "stop_sequence") => StopReason::EndTurn,
            // The answer under a schema comes as a tool use, which nobody has to answer.
            Some("tool_use") if self.blocks.iter().any(|block| block.is_answer()) => StopReason::EndTurn,
            Some("tool_use") if !has_text => {
                return Err(self.malformed("the server announces a tool use and sends none"));
            }
            Some(other) => StopReason::Other(other.to_owned()),
            None => return Err(self.malformed("the answer does not say why it ended")),
        })
    }

    fn complaint(&self, body: &str) -> ModelError {
        let known = Known { retry_after: None, begun: self.begun, usage: self.final_usage() };
        Complaint::read(None, body, self.belongs.secrets).into_error(known)
    }

    /// What the attempt used, when that is certain: a count on the way says nothing about what was generated since.
    fn final_usage(&self) -> Option<Usage> {
        self.counts.usage().filter(|_| self.counted)
    }
}

impl Assemble for Assembler<'_> {
    fn event(&mut self, event: &SseEvent) -> Result<String, ModelError> {
        let data = event.data.trim();
        // Some gateways close with the word of another protocol, which proves nothing here.
        if data.is_empty() || data == "[DONE]" || self.done || event.name == "ping" {
            return Ok(String::new());
        }
        if event.name == "error" {
            return Err(self.complaint(data));
        }
        self.take(&event.name, data)
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn whole(mut self, body: &str) -> Result<ModelAnswer, ModelError> {
        let said: Said<'_> = match serde_json::from_str(body) {
            Ok(said) => said,
            Err(error) if is_cut(body, &error) => return Err(self.interrupted("the answer ends in the middle")),
            Err(error) => return Err(self.malformed(&format!("{error}: {body}"))),
        };
        if said.error.is_some() || said.kind == Some("error".into()) {
            return Err(self.complaint(body));
        }
        if said.content.is_none() {
            return Err(self.malformed(&format!("no message: {body}")));
        }
        self.counted = said.usage.is_some();
        self.said(said)?;
        self.done = true;
        self.end(End::Proper)
    }

    fn end(self, end: End) -> Result<ModelAnswer, ModelError> {
        match (self.done, end) {
            (true, _) if !self.begun => Err(self.malformed("an end without a message")),
            (true, _) => self.answer(),
            (false, End::Broken(why)) => Err(self.interrupted(&why)),
            (false, End::Proper) => {
                Err(self.interrupted("the stream ended without saying that the answer is complete"))
            }
        }
    }

    fn malformed(&self, what: &str) -> ModelError {
        ModelError::Malformed { message: excerpt(what, self.belongs.secrets), usage: self.final_usage() }
    }

    fn interrupted(&self, what: &str) -> ModelError {
        ModelError::Interrupted { message: excerpt(what, self.belongs.secrets), usage: self.final_usage() }
    }
}
