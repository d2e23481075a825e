//! `generateContent`.

use super::{Adapter, STREAMS, WHOLE, add_result, idle_ms, list, text};
use loopd_kernel::Usage;
use loopd_kernel::model::StopReason;
use loopd_providers::{GeminiConfig, ModelConfig};
use loopd_runtime::kit::{Dialect, Features, Frame, Heard, HeardUse, Reply, Said, Setup, Streamed, Turn};
use serde_json::{Value, json};

pub struct GenerateContent;

fn config(setup: &Setup) -> ModelConfig {
    let mut config = GeminiConfig::new(&setup.model).at(format!("{}/v1beta", setup.base_url));
    config.api_key_env = Some("KEY".into());
    config.idle_timeout_ms = idle_ms(setup);
    config.stream = Some(setup.stream);
    ModelConfig::Gemini(config)
}

fn adapter(features: Features) -> Adapter<GenerateContent> {
    Adapter { dialect: GenerateContent, config, features }
}

mod streamed {
    // Counts may come behind the finish reason, so a stream is read until it closes.
    loopd_runtime::conformance!(super::adapter(super::Features { ends_itself: false, ..super::STREAMS }));
}

mod whole {
    loopd_runtime::conformance!(super::adapter(super::WHOLE));
}

fn finish_reason(stop: &StopReason) -> &str {
    match stop {
        StopReason::EndTurn | StopReason::ToolUse => "STOP",
        StopReason::Length => "MAX_TOKENS",
        StopReason::Refusal => "SAFETY",
        StopReason::Other(word) => word,
    }
}

/// The parts of what is said. Arguments come whole and stay the text that they are.
fn parts(said: &Said) -> Vec<String> {
    match said {
        Said::Reasoning { text, mark } => {
            vec![json!({ "text": text, "thought": true, "thoughtSignature": mark }).to_string()]
        }
        Said::Text(pieces) => pieces.iter().map(|piece| json!({ "text": piece }).to_string()).collect(),
        Said::Use { id, name, args } => {
            let (id, name) = (json!(id), json!(name));
            vec![format!(r#"{{"functionCall":{{"id":{id},"name":{name},"args":{}}}}}"#, args.concat())]
        }
    }
}

/// A response with these parts; the last one, with a reason, ends the answer.
fn response(reply: &Reply, parts: &[String], last: bool) -> String {
    let reason = if last { format!(",\"finishReason\":{}", json!(finish_reason(&reply.stop))) } else { String::new() };
    let usage = reply.usage.filter(|_| last).map(|usage| format!(",\"usageMetadata\":{}", counts(usage)));
    format!(
        r#"{{"candidates":[{{"content":{{"parts":[{}],"role":"model"}},"index":0{reason}}}],"modelVersion":{}{}}}"#,
        parts.join(","),
        json!(reply.model),
        usage.unwrap_or_default()
    )
}

/// Cached tokens are a part of the prompt, thoughts stand beside the candidates.
fn counts(usage: Usage) -> Value {
    json!({
        "promptTokenCount": usage.input + usage.cache_read + usage.cache_write,
        "cachedContentTokenCount": usage.cache_read, "candidatesTokenCount": usage.output,
        "thoughtsTokenCount": usage.reasoning, "totalTokenCount": usage.total(),
    })
}

impl Dialect for GenerateContent {
    fn streamed(&self, reply: &Reply) -> Streamed {
        let all = reply.said.iter().flat_map(parts);
        let mut frames: Vec<Frame> = all.map(|part| Frame::data(response(reply, &[part], false))).collect();
        frames.push(Frame::data(response(reply, &[r#"{"text":""}"#.to_owned()], true)));
        Streamed { frames, ending: 1 }
    }

    fn whole(&self, reply: &Reply) -> String {
        response(reply, &reply.said.iter().flat_map(parts).collect::<Vec<_>>(), true)
    }

    fn error(&self, status: u16, message: &str) -> String {
        let word = match status {
            400 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            500 => "INTERNAL",
            503 => "UNAVAILABLE",
            504 => "DEADLINE_EXCEEDED",
            _ => "",
        };
        json!({ "error": { "code": status, "message": message, "status": word } }).to_string()
    }

    fn overflow(&self) -> (u16, String) {
        let message = "The input token count (9) exceeds the maximum number of tokens allowed (8).";
        (400, self.error(400, message))
    }

    fn error_event(&self, message: &str) -> Frame {
        Frame::data(self.error(503, message))
    }

    /// What is written to a cache has no count of its own.
    fn counts(&self, usage: Usage) -> Usage {
        Usage { input: usage.input + usage.cache_write, cache_write: 0, ..usage }
    }

    fn hear(&self, body: &Value) -> Heard {
        let system = list(&body["systemInstruction"], "parts").map(|part| text(part, "text")).collect();
        let mut heard = Heard { system, ..Heard::default() };
        if body["tools"].is_array() {
            let declared = list(body, "tools").flat_map(|tool| list(tool, "functionDeclarations"));
            heard.tools = Some(declared.map(|tool| text(tool, "name")).collect());
        }
        for content in list(body, "contents") {
            if content["role"] == "model" {
                let uses = list(content, "parts").map(|part| &part["functionCall"]).filter(|call| call.is_object());
                let uses = uses.map(|call| HeardUse {
                    id: text(call, "id"),
                    name: text(call, "name"),
                    args: call["args"].to_string(),
                });
                let said = list(content, "parts").filter(|part| part["thought"] != true);
                let said = said.map(|part| text(part, "text")).collect();
                heard.turns.push(Turn::Assistant { text: said, uses: uses.collect() });
                continue;
            }
            for part in list(content, "parts") {
                let response = &part["functionResponse"];
                if response.is_object() {
                    let said = text(&response["response"], "output") + &text(&response["response"], "error");
                    add_result(&mut heard.turns, text(response, "id"), said);
                } else {
                    heard.turns.push(Turn::User(text(part, "text")));
                }
            }
        }
        heard
    }
}
