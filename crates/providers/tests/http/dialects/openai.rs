//! Chat completions.

use super::{Adapter, STREAMS, WHOLE, add_result, idle_ms, list, text};
use loopd_kernel::Usage;
use loopd_kernel::model::StopReason;
use loopd_providers::{ModelConfig, OpenAiConfig};
use loopd_runtime::kit::{Dialect, Features, Frame, Heard, HeardUse, Reply, Said, Setup, Streamed, Turn};
use serde_json::{Value, json};

pub struct ChatCompletions;

fn config(setup: &Setup) -> ModelConfig {
    let mut config = OpenAiConfig::new(&setup.model).at(format!("{}/v1", setup.base_url));
    config.api_key_env = Some("KEY".into());
    config.idle_timeout_ms = idle_ms(setup);
    config.stream = Some(setup.stream);
    ModelConfig::Openai(config)
}

fn adapter(features: Features) -> Adapter<ChatCompletions> {
    Adapter { dialect: ChatCompletions, config, features }
}

mod streamed {
    loopd_runtime::conformance!(super::adapter(super::STREAMS));
}

mod whole {
    loopd_runtime::conformance!(super::adapter(super::WHOLE));
}

/// Cached tokens are a part of the prompt, reasoning a part of the completion.
fn counts(usage: Usage) -> Value {
    let (prompt, completion) = (usage.input + usage.cache_read + usage.cache_write, usage.output + usage.reasoning);
    json!({
        "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
        "prompt_tokens_details": { "cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write },
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning },
    })
}

fn finish(stop: &StopReason) -> &str {
    match stop {
        StopReason::EndTurn => "stop",
        StopReason::ToolUse => "tool_calls",
        StopReason::Length => "length",
        StopReason::Refusal => "content_filter",
        StopReason::Other(word) => word,
    }
}

fn tool_call(id: &str, name: &str, args: &str) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": args } })
}

impl Dialect for ChatCompletions {
    fn streamed(&self, reply: &Reply) -> Streamed {
        let chunk = |delta: Value, finish: Value| {
            let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
            Frame::data(
                json!({ "object": "chat.completion.chunk", "model": reply.model, "choices": [choice] }).to_string(),
            )
        };
        let mut frames = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
        let mut calls = 0;
        for said in &reply.said {
            match said {
                Said::Reasoning { text, mark } => {
                    frames.push(chunk(json!({ "reasoning_content": format!("{text}{mark}") }), Value::Null));
                }
                Said::Text(pieces) => {
                    frames.extend(pieces.iter().map(|piece| chunk(json!({ "content": piece }), Value::Null)));
                }
                Said::Use { id, name, args } => {
                    let mut first = tool_call(id, name, "");
                    first["index"] = json!(calls);
                    frames.push(chunk(json!({ "tool_calls": [first] }), Value::Null));
                    frames.extend(args.iter().map(|piece| {
                        let more = json!({ "index": calls, "function": { "arguments": piece } });
                        chunk(json!({ "tool_calls": [more] }), Value::Null)
                    }));
                    calls += 1;
                }
            }
        }
        let before = frames.len();
        frames.push(chunk(json!({}), json!(finish(&reply.stop))));
        frames.extend(reply.usage.map(|usage| {
            Frame::data(json!({ "model": reply.model, "choices": [], "usage": counts(usage) }).to_string())
        }));
        frames.push(Frame::data("[DONE]"));
        Streamed { ending: frames.len() - before, frames }
    }

    fn whole(&self, reply: &Reply) -> String {
        let mut message = json!({ "role": "assistant", "content": null });
        let mut calls = Vec::new();
        for said in &reply.said {
            match said {
                Said::Reasoning { text, mark } => message["reasoning_content"] = json!(format!("{text}{mark}")),
                Said::Text(pieces) => message["content"] = json!(pieces.concat()),
                Said::Use { id, name, args } => calls.push(tool_call(id, name, &args.concat())),
            }
        }
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        let choice = json!({ "index": 0, "message": message, "finish_reason": finish(&reply.stop) });
        let mut body = json!({ "object": "chat.completion", "model": reply.model, "choices": [choice] });
        if let Some(usage) = reply.usage {
            body["usage"] = counts(usage);
        }
        body.to_string()
    }

    fn error(&self, status: u16, message: &str) -> String {
        let kind = if status < 500 { "invalid_request_error" } else { "server_error" };
        json!({ "error": { "message": message, "type": kind, "param": null, "code": null } }).to_string()
    }

    fn overflow(&self) -> (u16, String) {
        let message = "This model's maximum context length is 8192 tokens.";
        (400, json!({ "error": { "message": message, "code": "context_length_exceeded" } }).to_string())
    }

    fn error_event(&self, message: &str) -> Frame {
        Frame::data(self.error(503, message))
    }

    fn hear(&self, body: &Value) -> Heard {
        let mut heard = Heard::default();
        if body["tools"].is_array() {
            heard.tools = Some(list(body, "tools").map(|tool| text(&tool["function"], "name")).collect());
        }
        for message in list(body, "messages") {
            let content = text(message, "content");
            match message["role"].as_str() {
                Some("system") => heard.system = content,
                Some("user") => heard.turns.push(Turn::User(content)),
                Some("tool") => add_result(&mut heard.turns, text(message, "tool_call_id"), content),
                _ => {
                    let uses = list(message, "tool_calls").map(|call| HeardUse {
                        id: text(call, "id"),
                        name: text(&call["function"], "name"),
                        args: text(&call["function"], "arguments"),
                    });
                    heard.turns.push(Turn::Assistant { text: content, uses: uses.collect() });
                }
            }
        }
        heard
    }
}
