//! From bytes to an answer, without any connection: what is tested at every cut.

use super::assemble::{Assembler, Belongs};
use crate::intake::End;
use crate::wire::SseReader;
use loopd_runtime::{ModelAnswer, ModelError};

/// How much is kept of what follows the last event.
const TAIL_BYTES: usize = 64 * 1024;

/// An answer that comes as events. What is not one is kept: the whole body until the first event, to tell what came
/// instead of a stream; then what follows the last event, because this server puts an error there without its frame.
#[derive(Debug)]
pub(super) struct Intake<'a> {
    assembler: Assembler<'a>,
    reader: SseReader,
    seen: bool,
    tail: Vec<u8>,
}

impl<'a> Intake<'a> {
    pub(super) fn new(belongs: Belongs<'a>) -> Self {
        Self { assembler: Assembler::new(belongs), reader: SseReader::default(), seen: false, tail: Vec::new() }
    }

    /// Takes the next bytes; `show` gets the text that they complete.
    pub(super) fn push(&mut self, bytes: &[u8], show: &mut dyn FnMut(String)) -> Result<(), ModelError> {
        let events = self.reader.push(bytes).map_err(|error| self.assembler.malformed(&error.to_string()))?;
        if events.is_empty() {
            let room = if self.seen { TAIL_BYTES.saturating_sub(self.tail.len()) } else { bytes.len() };
            self.tail.extend_from_slice(&bytes[..bytes.len().min(room)]);
        } else {
            self.seen = true;
            self.tail.clear();
            let rest = bytes.get(self.reader.behind_last_event()..).unwrap_or_default();
            self.tail.extend_from_slice(&rest[..rest.len().min(TAIL_BYTES)]);
        }
        for event in &events {
            show(self.assembler.event(event)?);
        }
        Ok(())
    }

    /// The answer, if it is one.
    pub(super) fn end(self, end: End) -> Result<ModelAnswer, ModelError> {
        let Self { assembler, seen, tail, .. } = self;
        match end {
            End::Proper if !seen && !tail.trim_ascii().is_empty() => not_a_stream(assembler, &tail),
            end => match unframed_error(&tail) {
                Some(error) => Err(assembler.complaint(error)),
                None => assembler.end(end),
            },
        }
    }
}

/// An error object that follows the last event as plain JSON.
fn unframed_error(tail: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(tail).ok()?.trim();
    let starts = text.match_indices(['{', '[']).map(|(at, _)| at);
    let starts = starts.filter(|at| *at == 0 || text[..*at].ends_with(['\n', '\r']));
    starts.map(|at| &text[at..]).find(|rest| {
        let json: serde_json::Value = serde_json::from_str(rest).unwrap_or_default();
        json.get(0).unwrap_or(&json).get("error").is_some_and(|error| !error.is_null())
    })
}

/// An answer that came in one piece.
pub(super) fn whole(mut assembler: Assembler<'_>, body: &[u8]) -> Result<ModelAnswer, ModelError> {
    let text = std::str::from_utf8(body).map_err(|error| {
        // Cut within a character, or no text at all.
        match error.error_len() {
            None => assembler.interrupted("the answer ends in the middle"),
            Some(_) => assembler.malformed("the answer is not UTF-8"),
        }
    })?;
    // A stream under a wrong name.
    if text.trim_start().starts_with("data:") {
        let events = SseReader::default().push(body).map_err(|error| assembler.malformed(&error.to_string()))?;
        for event in &events {
            assembler.event(event)?;
        }
        return assembler.end(End::Proper);
    }
    assembler.whole(text)
}

/// A response without a single event: one response after all, half an event, or something else altogether.
fn not_a_stream(assembler: Assembler<'_>, body: &[u8]) -> Result<ModelAnswer, ModelError> {
    let start = body.trim_ascii_start();
    let fields = [b"data:".as_slice(), b"event:", b"id:", b"retry:", b":", b"\xEF\xBB\xBF"];
    if fields.iter().any(|field| start.starts_with(field) || field.starts_with(start)) {
        return assembler.end(End::Proper);
    }
    if start.starts_with(b"{") || start.starts_with(b"[") {
        return whole(assembler, body);
    }
    Err(assembler.malformed(&format!("no event stream: {}", String::from_utf8_lossy(start))))
}
