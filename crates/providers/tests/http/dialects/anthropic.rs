//! The Messages API.

use super::{Adapter, STREAMS, WHOLE, add_result, idle_ms, list, text};
use loopd_kernel::Usage;
use loopd_kernel::model::StopReason;
use loopd_providers::{AnthropicConfig, ModelConfig};
use loopd_runtime::kit::{Dialect, Features, Frame, Heard, HeardUse, Reply, Said, Setup, Streamed, Turn};
use serde_json::{Value, json};

pub struct Messages;

fn config(setup: &Setup) -> ModelConfig {
    let mut config = AnthropicConfig::new(&setup.model).at(&setup.base_url);
    config.api_key_env = Some("KEY".into());
    config.idle_timeout_ms = idle_ms(setup);
    config.stream = Some(setup.stream);
    ModelConfig::Anthropic(config)
}

fn adapter(features: Features) -> Adapter<Messages> {
    Adapter { dialect: Messages, config, features }
}

mod streamed {
    loopd_runtime::conformance!(super::adapter(super::STREAMS));
}

mod whole {
    loopd_runtime::conformance!(super::adapter(super::WHOLE));
}

/// The classes of the input are disjoint; reasoning is a part of the output.
fn counts(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input, "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write, "output_tokens": usage.output + usage.reasoning,
        "output_tokens_details": { "thinking_tokens": usage.reasoning },
    })
}

fn stop_reason(stop: &StopReason) -> &str {
    match stop {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::Length => "max_tokens",
        StopReason::Refusal => "refusal",
        StopReason::Other(word) => word,
    }
}

fn event(mut value: Value, kind: &str) -> Frame {
    value["type"] = json!(kind);
    Frame::named(kind, value.to_string())
}

/// A block as its beginning and its pieces.
fn block(said: &Said) -> (Value, Vec<Value>) {
    match said {
        Said::Reasoning { text, mark } => (
            json!({ "type": "thinking", "thinking": "", "signature": "" }),
            vec![
                json!({ "type": "thinking_delta", "thinking": text }),
                json!({ "type": "signature_delta", "signature": mark }),
            ],
        ),
        Said::Text(pieces) => (
            json!({ "type": "text", "text": "" }),
            pieces.iter().map(|piece| json!({ "type": "text_delta", "text": piece })).collect(),
        ),
        Said::Use { id, name, args } => (
            json!({ "type": "tool_use", "id": id, "name": name, "input": {} }),
            args.iter().map(|piece| json!({ "type": "input_json_delta", "partial_json": piece })).collect(),
        ),
    }
}

/// A block in one piece. Arguments stay the text that they are.
fn whole_block(said: &Said) -> String {
    match said {
        Said::Reasoning { text, mark } => {
            json!({ "type": "thinking", "thinking": text, "signature": mark }).to_string()
        }
        Said::Text(pieces) => json!({ "type": "text", "text": pieces.concat() }).to_string(),
        Said::Use { id, name, args } => {
            let begin = json!({ "type": "tool_use", "id": id, "name": name }).to_string();
            format!("{},\"input\":{}}}", begin.trim_end_matches('}'), args.concat())
        }
    }
}

impl Dialect for Messages {
    fn streamed(&self, reply: &Reply) -> Streamed {
        let mut message = json!({ "role": "assistant", "model": reply.model, "content": [], "stop_reason": null });
        let mut last = json!({ "delta": { "stop_reason": stop_reason(&reply.stop) } });
        if let Some(usage) = reply.usage {
            message["usage"] = counts(Usage { output: 1, reasoning: 0, ..usage });
            last["usage"] = json!({
                "output_tokens": usage.output + usage.reasoning,
                "output_tokens_details": { "thinking_tokens": usage.reasoning },
            });
        }
        let mut frames = vec![event(json!({ "message": message }), "message_start")];
        for (index, said) in reply.said.iter().enumerate() {
            let (begin, pieces) = block(said);
            frames.push(event(json!({ "index": index, "content_block": begin }), "content_block_start"));
            let piece = |delta| event(json!({ "index": index, "delta": delta }), "content_block_delta");
            frames.extend(pieces.into_iter().map(piece));
            frames.push(event(json!({ "index": index }), "content_block_stop"));
        }
        frames.push(event(last, "message_delta"));
        frames.push(event(json!({}), "message_stop"));
        Streamed { frames, ending: 2 }
    }

    fn whole(&self, reply: &Reply) -> String {
        let blocks: Vec<String> = reply.said.iter().map(whole_block).collect();
        let usage = reply.usage.map(|usage| format!(",\"usage\":{}", counts(usage))).unwrap_or_default();
        let rest = json!({ "type": "message", "model": reply.model, "stop_reason": stop_reason(&reply.stop) });
        let rest = rest.to_string();
        format!("{},\"content\":[{}]{usage}}}", rest.trim_end_matches('}'), blocks.join(","))
    }

    fn error(&self, status: u16, message: &str) -> String {
        let kind = match status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            504 => "timeout_error",
            529 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        };
        json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_1" }).to_string()
    }

    fn overflow(&self) -> (u16, String) {
        (400, self.error(400, "prompt is too long: 210000 tokens > 200000 maximum"))
    }

    fn error_event(&self, message: &str) -> Frame {
        Frame::named("error", self.error(529, message))
    }

    fn pings(&self) -> Vec<Frame> {
        vec![event(json!({}), "ping")]
    }

    fn hear(&self, body: &Value) -> Heard {
        let mut heard =
            Heard { system: list(body, "system").map(|block| text(block, "text")).collect(), ..Heard::default() };
        if body["tools"].is_array() {
            heard.tools = Some(list(body, "tools").map(|tool| text(tool, "name")).collect());
        }
        for message in list(body, "messages") {
            if message["role"] == "assistant" {
                let of = |kind: &'static str| list(message, "content").filter(move |block| block["type"] == kind);
                let uses = of("tool_use").map(|block| HeardUse {
                    id: text(block, "id"),
                    name: text(block, "name"),
                    args: block["input"].to_string(),
                });
                let said = of("text").map(|block| text(block, "text")).collect();
                heard.turns.push(Turn::Assistant { text: said, uses: uses.collect() });
                continue;
            }
            for block in list(message, "content") {
                match block["type"].as_str() {
                    Some("tool_result") => {
                        add_result(&mut heard.turns, text(block, "tool_use_id"), text(block, "content"));
                    }
                    _ => heard.turns.push(Turn::User(text(block, "text"))),
                }
            }
        }
        heard
    }
}
