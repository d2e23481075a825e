//! From bytes to an answer: what adapters share of it. Without a connection, so that it is tested at every cut.

use crate::wire::{Body, SseEvent, SseReader};
use loopd_runtime::{CallContext, Delta, ModelAnswer, ModelError};
use reqwest::header::{CONTENT_TYPE, HeaderMap};

/// How the response ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The server closed it properly.
    Proper,
    /// It broke off, for this reason.
    Broken(String),
}

/// A pure machine from the data of events to an answer.
pub(crate) trait Assemble: Sized {
    /// Takes an event of a stream and says what text can be shown.
    ///
    /// # Errors
    /// The event is an error, or cannot be used.
    fn event(&mut self, event: &SseEvent) -> Result<String, ModelError>;

    /// The server has said that nothing follows.
    fn is_done(&self) -> bool;

    /// Takes an answer that came in one piece.
    ///
    /// # Errors
    /// It is an error, or no answer.
    fn whole(self, body: &str) -> Result<ModelAnswer, ModelError>;

    /// The answer, if it is one.
    ///
    /// # Errors
    /// [`ModelError::Interrupted`] when the server did not say that it is complete.
    fn end(self, end: End) -> Result<ModelAnswer, ModelError>;

    /// An answer that cannot be understood.
    fn malformed(&self, what: &str) -> ModelError;

    /// An answer that broke off.
    fn interrupted(&self, what: &str) -> ModelError;
}

/// An answer that comes as events. What is not one is kept until the first event, to tell what came instead.
#[derive(Debug)]
pub(crate) struct Intake<A> {
    assembler: A,
    reader: SseReader,
    before: Option<Vec<u8>>,
}

impl<A: Assemble> Intake<A> {
    pub(crate) fn new(assembler: A) -> Self {
        Self { assembler, reader: SseReader::default(), before: Some(Vec::new()) }
    }

    /// Takes the next bytes; `show` gets the text that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8], show: &mut dyn FnMut(String)) -> Result<(), ModelError> {
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
    pub(crate) fn is_done(&self) -> bool {
        self.assembler.is_done()
    }

    /// The answer, if it is one.
    pub(crate) fn end(self, end: End) -> Result<ModelAnswer, ModelError> {
        match (end, self.before) {
            (End::Proper, Some(instead)) if !instead.trim_ascii().is_empty() => not_a_stream(self.assembler, &instead),
            (end, _) => self.assembler.end(end),
        }
    }
}

/// The answer in a successful response, streamed or not.
pub(crate) async fn answer<A: Assemble>(
    assembler: A,
    headers: &HeaderMap,
    mut body: Body,
    context: &CallContext,
) -> Result<ModelAnswer, ModelError> {
    if is_json(headers) {
        return match body.all().await {
            Ok(body) => whole(assembler, &body),
            Err(why) => assembler.end(End::Broken(why)),
        };
    }
    let mut intake = Intake::new(assembler);
    loop {
        match body.next().await {
            Ok(Some(piece)) => intake.push(&piece, &mut |text| show(context, text))?,
            Ok(None) => return intake.end(End::Proper),
            Err(why) => return intake.end(End::Broken(why)),
        }
        // Nothing of interest follows, and some servers keep the connection open.
        if intake.is_done() {
            body.leave();
            return intake.end(End::Proper);
        }
    }
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json")
}

pub(crate) fn show(context: &CallContext, text: String) {
    if text.is_empty() {
        return;
    }
    if let Some(deltas) = &context.deltas {
        // Whoever watched may have gone; the answer does not depend on it.
        let _ = deltas.send(Delta { run: context.run, call: context.call, attempt: context.attempt, text });
    }
}

/// An answer that came in one piece.
pub(crate) fn whole<A: Assemble>(mut assembler: A, body: &[u8]) -> Result<ModelAnswer, ModelError> {
    let text = std::str::from_utf8(body).map_err(|error| {
        // Cut within a character, or no text at all.
        match error.error_len() {
            None => assembler.interrupted("the answer ends in the middle"),
            Some(_) => assembler.malformed("the answer is not UTF-8"),
        }
    })?;
    // A stream under a wrong name.
    if ["data:", "event:"].iter().any(|field| text.trim_start().starts_with(field)) {
        let events = SseReader::default().push(body).map_err(|error| assembler.malformed(&error.to_string()))?;
        for event in &events {
            assembler.event(event)?;
        }
        return assembler.end(End::Proper);
    }
    assembler.whole(text)
}

/// A response without a single event: one whole answer after all, half an event, or something else altogether.
fn not_a_stream<A: Assemble>(assembler: A, body: &[u8]) -> Result<ModelAnswer, ModelError> {
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

/// Whether `text` is no JSON because it ends too early. A number that is cut counts as a wrong number for serde_json,
/// so the place of the error decides.
pub(crate) fn is_cut(text: &str, error: &serde_json::Error) -> bool {
    let lines = text.split('\n').count();
    let last = text.rsplit('\n').next().map_or(0, str::len);
    error.is_eof() || (error.line() == lines && error.column() >= last)
}
