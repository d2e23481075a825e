//! An answer as a `GenerateContentResponse`.

use super::{signature, signs};
use crate::fake::answer::{Content, Kind, Piece, Said, value_of, words};
use crate::fake::checks::Taken;
use loopd_kernel::model::StopReason;
use serde_json::{Value, json};

/// Writes an answer: whole, as events, or as a list that grows.
pub(in crate::fake) fn write(said: &Said, taken: &Taken, events: bool) -> Content {
    if !taken.stream {
        let parts = parts(said).into_iter().map(|(_, part)| part).collect();
        return Content::Whole(response(said, parts, true).to_string());
    }
    let chunks = chunks(said);
    if events {
        return Content::Events(chunks.iter().map(|(kind, chunk)| Piece::data(*kind, chunk)).collect());
    }
    let piece = |(at, (kind, chunk)): (usize, &(Kind, Value))| {
        let before = if at == 0 { "[" } else { "\n,\r\n" };
        Piece { kind: *kind, text: format!("{before}{chunk}") }
    };
    let mut pieces: Vec<Piece> = chunks.iter().enumerate().map(piece).collect();
    pieces.push(Piece { kind: Kind::Plain, text: "\n]".into() });
    Content::List(pieces)
}

/// An error object where a chunk should be. It ends a list.
pub(in crate::fake) fn error_piece(error: &Value, events: bool, is_first: bool) -> Piece {
    if events {
        return Piece::data(Kind::Plain, error);
    }
    Piece { kind: Kind::Plain, text: format!("{}{error}\n]", if is_first { "[" } else { "\n,\r\n" }) }
}

fn finish(said: &Said) -> &str {
    match &said.stop {
        StopReason::EndTurn | StopReason::ToolUse => "STOP",
        StopReason::Length => "MAX_TOKENS",
        StopReason::Refusal => "SAFETY",
        StopReason::Other(word) => word,
    }
}

fn usage(said: &Said) -> Value {
    let (input, output) = (said.all_input(), said.all_output());
    let mut usage = json!({
        "promptTokenCount": input, "candidatesTokenCount": said.usage.output, "totalTokenCount": input + output,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": input}],
    });
    if said.usage.reasoning > 0 {
        usage["thoughtsTokenCount"] = json!(said.usage.reasoning);
    }
    if said.usage.cache_read > 0 {
        usage["cachedContentTokenCount"] = json!(said.usage.cache_read);
    }
    usage
}

fn response(said: &Said, parts: Vec<Value>, is_last: bool) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if is_last {
        candidate["finishReason"] = json!(finish(said));
        if said.refused() {
            candidate["finishMessage"] = json!(said.text);
        }
    }
    json!({
        "candidates": [candidate], "usageMetadata": usage(said), "modelVersion": said.model,
        "responseId": format!("fake{}", said.number),
    })
}

/// The parts of a whole answer.
fn parts(said: &Said) -> Vec<(Kind, Value)> {
    let mut parts = Vec::new();
    if let Some(thought) = &said.reasoning {
        parts.push((Kind::Plain, json!({"text": thought, "thought": true})));
    }
    if let Some(text) = said.text.as_ref().filter(|text| !text.is_empty() && !said.refused()) {
        parts.push((Kind::Word, json!({"text": text})));
    }
    parts.extend(calls(said));
    parts
}

fn calls(said: &Said) -> Vec<(Kind, Value)> {
    let call = |(slot, (id, name, args)): (usize, &(String, String, String))| {
        let mut call = json!({"name": name, "args": value_of(args)});
        let signs = signs(&said.model);
        // Older models give their calls no ids: they are matched by their order.
        if signs {
            call["id"] = json!(id);
        }
        let mut part = json!({"functionCall": call});
        if signs && slot == 0 {
            part["thoughtSignature"] = json!(signature(name));
        }
        (Kind::Plain, part)
    };
    said.uses.iter().enumerate().map(call).collect()
}

/// The chunks of a stream; the last has the reason to stop.
fn chunks(said: &Said) -> Vec<(Kind, Value)> {
    let mut parts: Vec<(Kind, Value)> = Vec::new();
    for word in said.reasoning.iter().flat_map(|text| words(text)) {
        parts.push((Kind::Plain, json!({"text": word, "thought": true})));
    }
    let text = said.text.iter().filter(|_| !said.refused());
    parts.extend(text.flat_map(|text| words(text)).map(|word| (Kind::Word, json!({"text": word}))));
    parts.extend(calls(said));
    let chunk = |(kind, part): (Kind, Value)| (kind, response(said, vec![part], false));
    let mut chunks: Vec<(Kind, Value)> = parts.into_iter().map(chunk).collect();
    // This protocol has no event that says the end but the reason to stop.
    let last = response(said, vec![json!({"text": ""})], true);
    chunks.push((Kind::End, last));
    chunks
}
