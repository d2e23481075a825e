//! Streams of models: how fast their bytes become an answer, on each wire.

use crate::probe::Parameters;
use anyhow::{Context as _, Result, bail};
use loopd_kernel::model::Part;
use loopd_providers::recorded::{Wire, read};
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::Instant;

/// Every wire, by the number that a probe gets.
pub const WIRES: [(Wire, &str); 3] = [
    (Wire::ChatCompletions, "chat completions"),
    (Wire::Messages, "Messages API"),
    (Wire::GenerateContent, "generateContent"),
];

/// What a stream delivers, by the number that a probe gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Args,
    Reasoning,
}

const KINDS: [Kind; 3] = [Kind::Text, Kind::Args, Kind::Reasoning];

/// What is cut into deltas: words, white space, letters that are more than a byte, and what JSON escapes.
const TEXT: &str = "The loop, as \"data\": \nwas wäre 那里 ein Satz mit {Klammern} und \\ ohne Ende. ";

/// Bytes a second from a stream of `bytes` bytes whose deltas hold `delta` characters, in pieces of `piece` bytes.
pub fn stream(parameters: &Parameters) -> Result<Value> {
    let index = |key: &str| usize::try_from(parameters.number(key, 0));
    let (wire, _) = WIRES.get(index("wire")?).context("there is no such wire")?;
    let kind = KINDS.get(index("kind")?).context("there is no such kind")?;
    if (*wire, *kind) == (Wire::GenerateContent, Kind::Args) {
        bail!("arguments come whole on this wire");
    }
    let bytes = usize::try_from(parameters.number("bytes", 10_000_000))?;
    let delta = usize::try_from(parameters.number("delta", 5))?;
    let piece = usize::try_from(parameters.number("piece", 65_536))?;
    let (body, text) = body(*wire, *kind, delta, bytes);
    let mut best = f64::INFINITY;
    let mut all = Vec::new();
    for _ in 0..parameters.number("times", 9) {
        let mut shown = 0;
        let start = Instant::now();
        let answer = read(*wire, body.as_bytes().chunks(piece), &mut |text| shown += black_box(text).len())?;
        let seconds = start.elapsed().as_secs_f64();
        check(&answer.reply.parts, *kind, &text)?;
        if *kind == Kind::Text && shown != text.len() {
            bail!("{shown} bytes of {} were shown", text.len());
        }
        best = best.min(seconds);
        all.push(seconds);
    }
    let median = crate::meter::quantile(&mut all, 0.5);
    Ok(json!({
        "mb_per_s": body.len() as f64 / median / 1e6,
        "best_mb_per_s": body.len() as f64 / best / 1e6,
        "ns_per_byte": median * 1e9 / body.len() as f64,
    }))
}

/// What was measured is an answer, and the right one.
fn check(parts: &[Part], kind: Kind, text: &str) -> Result<()> {
    let right = match (kind, parts) {
        (Kind::Text, [Part::Text { text: found }]) => found == text,
        (Kind::Args, [Part::ToolUse { args, .. }]) => args == text,
        (Kind::Reasoning, [Part::Reasoning { opaque, .. }, ..]) => opaque.len() > text.len(),
        _ => false,
    };
    if right { Ok(()) } else { bail!("another answer than was sent") }
}

/// A stream of about `bytes` bytes with deltas of `delta` characters, and what it says.
fn body(wire: Wire, kind: Kind, delta: usize, bytes: usize) -> (String, String) {
    let (mut body, mut said) = (String::new(), String::new());
    let mut source = TEXT.chars().cycle();
    body.push_str(&begin(wire, kind));
    // Arguments are one JSON object with many small ones inside, each of which looks like an end.
    if kind == Kind::Args {
        let object = format!("{{\"all\":[{}{{}}]}}", "{\"a\":1},".repeat(bytes / 40));
        let mut letters = object.chars().peekable();
        while letters.peek().is_some() && body.len() < bytes {
            let piece: String = letters.by_ref().take(delta).collect();
            body.push_str(&event(wire, kind, &piece));
            said.push_str(&piece);
        }
    } else {
        while body.len() < bytes {
            let piece: String = source.by_ref().take(delta).collect();
            body.push_str(&event(wire, kind, &piece));
            said.push_str(&piece);
        }
    }
    body.push_str(&end(wire, kind));
    (body, said)
}

/// A stream of `count` words.
pub fn words(wire: Wire, count: usize) -> String {
    let events: String = (0..count).map(|_| event(wire, Kind::Text, "word ")).collect();
    begin(wire, Kind::Text) + &events + &end(wire, Kind::Text)
}

fn named(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default())
}

fn begin(wire: Wire, kind: Kind) -> String {
    match wire {
        Wire::ChatCompletions if kind == Kind::Args => {
            let call = json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": "" } });
            chunk(&json!({ "tool_calls": [call] }), &Value::Null)
        }
        Wire::ChatCompletions | Wire::GenerateContent => String::new(),
        Wire::Messages => {
            let block = match kind {
                Kind::Text => json!({ "type": "text", "text": "" }),
                Kind::Args => json!({ "type": "tool_use", "id": "a", "name": "f", "input": {} }),
                Kind::Reasoning => json!({ "type": "thinking", "thinking": "", "signature": "" }),
            };
            named(
                &json!({ "type": "message_start", "message": { "usage": { "input_tokens": 9, "output_tokens": 1 } } }),
            ) + &named(&json!({ "type": "content_block_start", "index": 0, "content_block": block }))
        }
    }
}

/// One delta.
fn event(wire: Wire, kind: Kind, piece: &str) -> String {
    match wire {
        Wire::ChatCompletions => {
            let delta = match kind {
                Kind::Text => json!({ "content": piece }),
                // Some servers number no call; then every piece asks which call is still open.
                Kind::Args => json!({ "tool_calls": [{ "function": { "arguments": piece } }] }),
                Kind::Reasoning => json!({ "reasoning_content": piece }),
            };
            chunk(&delta, &Value::Null)
        }
        Wire::Messages => {
            let delta = match kind {
                Kind::Text => json!({ "type": "text_delta", "text": piece }),
                Kind::Args => json!({ "type": "input_json_delta", "partial_json": piece }),
                Kind::Reasoning => json!({ "type": "thinking_delta", "thinking": piece }),
            };
            named(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
        }
        Wire::GenerateContent => {
            let part = match kind {
                Kind::Text | Kind::Args => json!({ "text": piece }),
                Kind::Reasoning => json!({ "text": piece, "thought": true }),
            };
            response(&part, &Value::Null)
        }
    }
}

fn end(wire: Wire, kind: Kind) -> String {
    match wire {
        Wire::ChatCompletions => {
            let finish = if kind == Kind::Args { "tool_calls" } else { "stop" };
            let usage = json!({ "choices": [], "usage": { "prompt_tokens": 9, "completion_tokens": 2 } });
            format!("{}data: {usage}\n\ndata: [DONE]\n\n", chunk(&json!({}), &json!(finish)))
        }
        Wire::Messages => {
            let delta = json!({ "stop_reason": if kind == Kind::Args { "tool_use" } else { "end_turn" } });
            named(&json!({ "type": "content_block_stop", "index": 0 }))
                + &named(&json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 2 } }))
                + &named(&json!({ "type": "message_stop" }))
        }
        // A model that only thought said nothing, which is no answer here.
        Wire::GenerateContent if kind == Kind::Reasoning => response(&json!({ "text": "ok" }), &json!("STOP")),
        Wire::GenerateContent => response(&json!({ "text": "" }), &json!("STOP")),
    }
}

/// A chunk with the members that servers send besides.
fn chunk(delta: &Value, finish: &Value) -> String {
    let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish });
    let value = json!({
        "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion.chunk", "created": 1741569952,
        "model": "gpt-5-mini-2025-08-07", "service_tier": "default", "choices": [choice],
    });
    format!("data: {value}\n\n")
}

fn response(part: &Value, finish: &Value) -> String {
    let mut candidate = json!({ "content": { "parts": [part], "role": "model" }, "index": 0 });
    if !finish.is_null() {
        candidate["finishReason"] = finish.clone();
    }
    let value = json!({
        "candidates": [candidate], "modelVersion": "gemini-3-pro", "responseId": "kDd1aLzfFaqLxN8P3sWnwAo",
        "usageMetadata": { "promptTokenCount": 9, "candidatesTokenCount": 2, "totalTokenCount": 11 },
    });
    format!("data: {value}\r\n\r\n")
}
