//! An answer as a message.

use super::signature;
use crate::fake::answer::{Content, Kind, Piece, Said, shreds, value_of, words};
use crate::fake::checks::Taken;
use loopd_kernel::model::StopReason;
use serde_json::{Value, json};

/// Writes an answer, streamed or whole.
pub(in crate::fake) fn write(said: &Said, taken: &Taken) -> Content {
    if taken.stream { Content::Events(stream(said)) } else { Content::Whole(whole(said).to_string()) }
}

fn stop(said: &Said) -> &str {
    match &said.stop {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::Length => "max_tokens",
        StopReason::Refusal => "refusal",
        StopReason::Other(word) => word,
    }
}

/// What a refusal explains; others explain nothing.
fn details(said: &Said) -> Value {
    let explanation = said.refused().then(|| said.text.clone());
    explanation.map_or(Value::Null, |text| json!({"type": "refusal", "category": null, "explanation": text}))
}

/// The message around its content.
fn message(said: &Said, content: Value, stop: Option<&str>, output: u64) -> Value {
    let is_done = stop.is_some();
    json!({
        "id": format!("msg_fake{}", said.number), "type": "message", "role": "assistant", "model": said.model,
        "content": content, "stop_reason": stop, "stop_sequence": null,
        "stop_details": if is_done { details(said) } else { Value::Null },
        "usage": {
            "input_tokens": said.usage.input, "cache_creation_input_tokens": said.usage.cache_write,
            "cache_read_input_tokens": said.usage.cache_read, "output_tokens": output,
            "output_tokens_details": {"thinking_tokens": if is_done { said.usage.reasoning } else { 0 }},
            "service_tier": "standard",
        },
    })
}

fn whole(said: &Said) -> Value {
    let mut content = Vec::new();
    if let Some(thought) = &said.reasoning {
        content.push(json!({"type": "thinking", "thinking": thought, "signature": signature(thought)}));
    }
    if let Some(text) = said.text.as_ref().filter(|text| !text.is_empty()) {
        content.push(json!({"type": "text", "text": text, "citations": null}));
    }
    for (id, name, args) in &said.uses {
        content.push(json!({"type": "tool_use", "id": id, "name": name, "input": value_of(args)}));
    }
    message(said, Value::Array(content), Some(stop(said)), said.all_output())
}

/// The blocks of a stream, numbered as they are written.
struct Blocks {
    pieces: Vec<Piece>,
    index: usize,
}

impl Blocks {
    fn block(&mut self, first: Value, deltas: Vec<(Kind, Value)>) {
        let index = self.index;
        let start = json!({"type": "content_block_start", "index": index, "content_block": first});
        self.pieces.push(Piece::named(Kind::Plain, &start));
        if index == 0 {
            self.pieces.push(Piece::named(Kind::Plain, &json!({"type": "ping"})));
        }
        for (kind, delta) in deltas {
            let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
            self.pieces.push(Piece::named(kind, &delta));
        }
        self.pieces.push(Piece::named(Kind::Plain, &json!({"type": "content_block_stop", "index": index})));
        self.index += 1;
    }
}

fn stream(said: &Said) -> Vec<Piece> {
    let start = json!({"type": "message_start", "message": message(said, json!([]), None, 1)});
    let mut blocks = Blocks { pieces: vec![Piece::named(Kind::Plain, &start)], index: 0 };
    if let Some(thought) = &said.reasoning {
        let mut deltas: Vec<(Kind, Value)> =
            words(thought).map(|word| (Kind::Plain, json!({"type": "thinking_delta", "thinking": word}))).collect();
        deltas.push((Kind::Plain, json!({"type": "signature_delta", "signature": signature(thought)})));
        blocks.block(json!({"type": "thinking", "thinking": "", "signature": ""}), deltas);
    }
    if let Some(text) = said.text.as_ref().filter(|text| !text.is_empty()) {
        let delta = |word: &str| (Kind::Word, json!({"type": "text_delta", "text": word}));
        blocks.block(json!({"type": "text", "text": ""}), words(text).map(delta).collect());
    }
    for (id, name, args) in &said.uses {
        let mut deltas = vec![(Kind::Plain, json!({"type": "input_json_delta", "partial_json": ""}))];
        // Nothing at all is how this protocol says `{}`.
        let args = if args == "{}" { "" } else { args };
        let delta = |shred: &str| (Kind::Plain, json!({"type": "input_json_delta", "partial_json": shred}));
        deltas.extend(shreds(args).into_iter().map(delta));
        blocks.block(json!({"type": "tool_use", "id": id, "name": name, "input": {}}), deltas);
    }
    let end = json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop(said), "stop_sequence": null, "stop_details": details(said)},
        "usage": {
            "input_tokens": said.usage.input, "cache_creation_input_tokens": said.usage.cache_write,
            "cache_read_input_tokens": said.usage.cache_read, "output_tokens": said.all_output(),
            "output_tokens_details": {"thinking_tokens": said.usage.reasoning},
        },
    });
    blocks.pieces.push(Piece::named(Kind::Usage, &end));
    blocks.pieces.push(Piece::named(Kind::End, &json!({"type": "message_stop"})));
    blocks.pieces
}
