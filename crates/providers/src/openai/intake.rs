//! From bytes to an answer, without any connection: what is tested at every cut.

use super::assemble::{Assembler, Belongs, End};
use crate::wire::SseReader;
use loopd_runtime::{ModelAnswer, ModelError};

/// An answer that comes as events. What is not one is kept until the first event, to tell what came instead.
#[derive(Debug)]
pub(super) struct Intake<'a> {
    assembler: Assembler<'a>,
    reader: SseReader,
    before: Option<Vec<u8>>,
}

impl<'a> Intake<'a> {
    pub(super) fn new(belongs: Belongs<'a>) -> Self {
        Self { assembler: Assembler::new(belongs), reader: SseReader::default(), before: Some(Vec::new()) }
    }

    /// Takes the next bytes; `show` gets the text that they complete.
    pub(super) fn push(&mut self, bytes: &[u8], show: &mut dyn FnMut(String)) -> Result<(), ModelError> {
        let events = self.reader.push(bytes).map_err(|error| self.assembler.malformed(&error.to_string()))?;
        if let Some(before) = &mut self.before {
            if events.is_empty() {
                before.extend_from_slice(bytes);
            } else {
                self.before = None;
            }
        }
        for event in &events {
            show(self.assembler.event(event)?);
        }
        Ok(())
    }

    /// The server has said that nothing follows.
    pub(super) const fn is_done(&self) -> bool {
        self.assembler.is_done()
    }

    /// The answer, if it is one.
    pub(super) fn end(self, end: End) -> Result<ModelAnswer, ModelError> {
        match (end, self.before) {
            (End::Proper, Some(instead)) if !instead.trim_ascii().is_empty() => not_a_stream(self.assembler, &instead),
            (end, _) => self.assembler.end(end),
        }
    }
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

/// A response without a single event: one completion after all, half an event, or something else altogether.
fn not_a_stream(assembler: Assembler<'_>, body: &[u8]) -> Result<ModelAnswer, ModelError> {
    let start = body.trim_ascii_start();
    let fields = [b"data:".as_slice(), b"event:", b"id:", b"retry:", b":", b"\xEF\xBB\xBF"];
    if fields.iter().any(|field| start.starts_with(field) || field.starts_with(start)) {
        return assembler.end(End::Proper);
    }
    if start.starts_with(b"{") {
        return whole(assembler, body);
    }
    Err(assembler.malformed(&format!("no event stream: {}", String::from_utf8_lossy(start))))
}
