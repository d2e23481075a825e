//! The Responses API. What was reported of it is what the kit asks of everybody: errors inside of a successful response
//! (OAI-10), streams that break off (OAI-11), refusals with their class and their wait (OAI-12).

use super::{Adapter, STREAMS, WHOLE, add_result, idle_ms, list, text};
use loopd_kernel::Usage;
use loopd_kernel::model::StopReason;
use loopd_providers::{ModelConfig, ResponsesConfig};
use loopd_runtime::kit::{Dialect, Features, Frame, Heard, HeardUse, Reply, Said, Setup, Streamed, Turn};
use serde_json::{Value, json};

pub struct Items;

fn config(setup: &Setup) -> ModelConfig {
    let mut config = ResponsesConfig::new(&setup.model).at(format!("{}/v1", setup.base_url));
    config.api_key_env = Some("KEY".into());
    config.idle_timeout_ms = idle_ms(setup);
    config.stream = Some(setup.stream);
    ModelConfig::Responses(config)
}

fn adapter(features: Features) -> Adapter<Items> {
    Adapter { dialect: Items, config, features }
}

mod streamed {
    loopd_runtime::conformance!(super::adapter(super::STREAMS));
}

mod whole {
    loopd_runtime::conformance!(super::adapter(super::WHOLE));
}

/// Cached tokens are a part of the input, reasoning a part of the output.
fn counts(usage: Usage) -> Value {
    let (input, output) = (usage.input + usage.cache_read + usage.cache_write, usage.output + usage.reasoning);
    json!({
        "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
        "input_tokens_details": { "cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write },
        "output_tokens_details": { "reasoning_tokens": usage.reasoning },
    })
}

/// The status at the end, and why an answer is not complete. A refusal is complete, and its content says what it is.
fn status(stop: &StopReason) -> (&'static str, Value) {
    match stop {
        StopReason::EndTurn | StopReason::ToolUse | StopReason::Refusal => ("completed", Value::Null),
        StopReason::Length => ("incomplete", json!({ "reason": "max_output_tokens" })),
        StopReason::Other(word) => ("incomplete", json!({ "reason": word })),
    }
}

fn response(reply: &Reply, status: &str, details: &Value, output: &[Value]) -> Value {
    let usage = reply.usage.filter(|_| status != "in_progress").map(counts);
    json!({
        "object": "response", "status": status, "error": null, "incomplete_details": details, "model": reply.model,
        "output": output, "usage": usage,
    })
}

fn event(kind: &str, mut value: Value) -> Frame {
    let kind = format!("response.{kind}");
    value["type"] = json!(kind);
    Frame::named(kind, value.to_string())
}

/// An item when it is done.
fn item(at: usize, said: &Said, stop: &StopReason) -> Value {
    match said {
        Said::Reasoning { text, mark } => json!({
            "type": "reasoning", "id": format!("rs_{at}"), "encrypted_content": mark,
            "summary": [{ "type": "summary_text", "text": text }],
        }),
        Said::Text(pieces) => {
            let content = match stop {
                StopReason::Refusal => json!({ "type": "refusal", "refusal": pieces.concat() }),
                _ => json!({ "type": "output_text", "text": pieces.concat(), "annotations": [] }),
            };
            json!({ "type": "message", "id": format!("msg_{at}"), "role": "assistant", "content": [content] })
        }
        Said::Use { id, name, args } => json!({
            "type": "function_call", "id": format!("fc_{at}"), "call_id": id, "name": name, "arguments": args.concat(),
        }),
    }
}

/// The events between the beginning of an item and its end: its pieces, then all of it.
fn grow(at: usize, said: &Said, stop: &StopReason, done: &Value) -> Vec<Frame> {
    let one = |kind: &str, name: &str, value: &str| {
        event(kind, json!({ "item_id": done["id"], "output_index": at, "content_index": 0, (name): value }))
    };
    let all = |kind: &str, name: &str, pieces: &[String]| {
        let deltas = pieces.iter().map(|piece| one(&format!("{kind}.delta"), "delta", piece));
        deltas.chain([one(&format!("{kind}.done"), name, &pieces.concat())]).collect()
    };
    match said {
        Said::Reasoning { text, .. } => vec![one("reasoning_summary_text.delta", "delta", text)],
        Said::Text(pieces) if *stop == StopReason::Refusal => all("refusal", "refusal", pieces),
        Said::Text(pieces) => all("output_text", "text", pieces),
        Said::Use { args, .. } => all("function_call_arguments", "arguments", args),
    }
}

impl Dialect for Items {
    fn streamed(&self, reply: &Reply) -> Streamed {
        let begun = response(reply, "in_progress", &Value::Null, &[]);
        let mut frames = vec![event("created", json!({ "response": begun }))];
        let mut output = Vec::new();
        for (at, said) in reply.said.iter().enumerate() {
            let done = item(at, said, &reply.stop);
            let mut empty = done.clone();
            for (name, nothing) in [("content", json!([])), ("summary", json!([])), ("arguments", json!(""))] {
                if empty[name] != Value::Null {
                    empty[name] = nothing;
                }
            }
            frames.push(event("output_item.added", json!({ "output_index": at, "item": empty })));
            frames.extend(grow(at, said, &reply.stop, &done));
            frames.push(event("output_item.done", json!({ "output_index": at, "item": done })));
            output.push(done);
        }
        let (status, details) = status(&reply.stop);
        frames.push(event(status, json!({ "response": response(reply, status, &details, &output) })));
        Streamed { frames, ending: 1 }
    }

    fn whole(&self, reply: &Reply) -> String {
        let output: Vec<Value> = reply.said.iter().enumerate().map(|(at, said)| item(at, said, &reply.stop)).collect();
        let (status, details) = status(&reply.stop);
        response(reply, status, &details, &output).to_string()
    }

    fn error(&self, status: u16, message: &str) -> String {
        let kind = if status < 500 { "invalid_request_error" } else { "server_error" };
        json!({ "error": { "message": message, "type": kind, "param": null, "code": null } }).to_string()
    }

    fn overflow(&self) -> (u16, String) {
        let message = "Your input exceeds the context window of this model.";
        (400, json!({ "error": { "message": message, "code": "context_length_exceeded" } }).to_string())
    }

    fn error_event(&self, message: &str) -> Frame {
        let error = json!({ "type": "error", "code": "server_error", "message": message, "param": null });
        Frame::named("error", error.to_string())
    }

    fn pings(&self) -> Vec<Frame> {
        vec![Frame::named("keepalive", r#"{"type":"keepalive","sequence_number":3}"#)]
    }

    fn hear(&self, body: &Value) -> Heard {
        let mut heard = Heard { system: text(body, "instructions"), ..Heard::default() };
        if body["tools"].is_array() {
            heard.tools = Some(list(body, "tools").map(|tool| text(tool, "name")).collect());
        }
        for item in list(body, "input") {
            match item["type"].as_str() {
                Some("message") if item["role"] == "user" => heard.turns.push(Turn::User(text(item, "content"))),
                Some("message") => said(&mut heard.turns).0.push_str(&text(item, "content")),
                Some("function_call") => said(&mut heard.turns).1.push(HeardUse {
                    id: text(item, "call_id"),
                    name: text(item, "name"),
                    args: text(item, "arguments"),
                }),
                Some("function_call_output") => {
                    add_result(&mut heard.turns, text(item, "call_id"), text(item, "output"));
                }
                _ => {}
            }
        }
        heard
    }
}

/// The model's turn that stands last, or a new one: its items are not bound together.
fn said(turns: &mut Vec<Turn>) -> (&mut String, &mut Vec<HeardUse>) {
    if !matches!(turns.last(), Some(Turn::Assistant { .. })) {
        turns.push(Turn::Assistant { text: String::new(), uses: Vec::new() });
    }
    match turns.last_mut() {
        Some(Turn::Assistant { text, uses }) => (text, uses),
        _ => unreachable!("it was made just now"),
    }
}
