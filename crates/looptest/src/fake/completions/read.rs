//! What a request for a chat completion says, and what is wrong with it.

use crate::fake::checks::{
    Draft, Taken, get, is_reasoning_model, list, members, missing, not_one_of, openai_name, openai_strict,
    openai_temperature, reasoning, text, unknown,
};
use crate::fake::refusal::Refusal;
use loopd_kernel::model::{Message, Part};
use serde_json::Value;
use std::collections::BTreeSet;

const ROLES: [&str; 6] = ["system", "assistant", "user", "function", "tool", "developer"];

/// The members that OpenAI knows.
const KNOWN: [&str; 36] = [
    "messages",
    "model",
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "modalities",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
];

/// Reads a request.
pub(in crate::fake) fn read(body: &Value) -> Result<Taken, Refusal> {
    if let Some(name) = unknown(body, &KNOWN) {
        let message = format!("Unrecognized request argument supplied: {name}");
        return Err(Refusal::invalid(message).param(name).code("unknown_parameter"));
    }
    let mut draft = Draft { model: text(body, "model").into(), ..Draft::default() };
    if draft.model.is_empty() {
        return Err(Refusal::invalid("you must provide a model parameter"));
    }
    draft.stream = body.get("stream") == Some(&Value::Bool(true));
    if !draft.stream && get(body, "stream_options").is_some() {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(Refusal::invalid(message).param("stream_options"));
    }
    draft.max_output_tokens = limit(body, &draft.model)?;
    draft.temperature = openai_temperature(body, &draft.model)?;
    tools(body, &mut draft)?;
    format(body, &mut draft)?;
    messages(body, &mut draft)?;
    let usage = get(body, "stream_options").and_then(|options| options.get("include_usage"));
    Ok(Taken { stream_usage: usage == Some(&Value::Bool(true)), ..draft.done() })
}

fn limit(body: &Value, model: &str) -> Result<Option<u64>, Refusal> {
    let old = get(body, "max_tokens");
    let new = get(body, "max_completion_tokens");
    if old.is_some() && new.is_some() {
        let message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
        return Err(Refusal::invalid(message).code("invalid_parameter_combination"));
    }
    if old.is_some() && is_reasoning_model(model) {
        let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                       'max_completion_tokens' instead.";
        return Err(Refusal::invalid(message).param("max_tokens").code("unsupported_parameter"));
    }
    let name = if old.is_some() { "max_tokens" } else { "max_completion_tokens" };
    match old.or(new) {
        None => Ok(None),
        Some(value) => match value.as_u64() {
            Some(limit) if limit > 0 => Ok(Some(limit)),
            _ => Err(Refusal::invalid(format!(
                "Invalid '{name}': integer below minimum value. Expected a value >= 1, but got {value} instead."
            ))
            .param(name)
            .code("integer_below_min_value")),
        },
    }
}

fn tools(body: &Value, draft: &mut Draft) -> Result<(), Refusal> {
    let Some(tools) = get(body, "tools") else {
        for name in ["tool_choice", "parallel_tool_calls"] {
            if get(body, name).is_some_and(|choice| choice != "none") {
                let message =
                    format!("Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.");
                return Err(Refusal::invalid(message).param(name));
            }
        }
        return Ok(());
    };
    let tools = tools.as_array().map_or(&[][..], Vec::as_slice);
    if tools.is_empty() {
        let message = "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array \
                       instead.";
        return Err(Refusal::invalid(message).param("tools").code("empty_array"));
    }
    for (at, tool) in tools.iter().enumerate() {
        let kind = text(tool, "type");
        if kind.is_empty() {
            return Err(missing(format!("tools[{at}].type")));
        }
        if kind != "function" {
            return Err(not_one_of(format!("tools[{at}].type"), kind, &["function", "custom"]));
        }
        let function = get(tool, "function").ok_or_else(|| missing(format!("tools[{at}].function")))?;
        let name = text(function, "name");
        openai_name(name, format!("tools[{at}].function.name"))?;
        let parameters = function.get("parameters").unwrap_or(&Value::Null);
        if !parameters.is_null() && text(parameters, "type") != "object" {
            let message = format!(
                "Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', got 'type: \
                 {}'.",
                parameters.get("type").unwrap_or(&Value::Null)
            );
            let param = format!("tools[{at}].function.parameters");
            return Err(Refusal::invalid(message).param(param).code("invalid_function_parameters"));
        }
        if function.get("strict") == Some(&Value::Bool(true)) {
            openai_strict(parameters, &format!("tools[{at}].function.parameters"), name)?;
        }
        draft.add_tool(name, text(function, "description"), parameters);
    }
    let chosen = get(body, "tool_choice").and_then(|choice| choice.get("function")).map(|of| text(of, "name"));
    match chosen.filter(|name| !draft.constants.tools.iter().any(|tool| tool.name == *name)) {
        Some(name) => {
            let message = format!("Tool choice '{name}' not found in 'tools' parameter.");
            Err(Refusal::invalid(message).param("tool_choice"))
        }
        None => Ok(()),
    }
}

fn format(body: &Value, draft: &mut Draft) -> Result<(), Refusal> {
    let Some(format) = get(body, "response_format") else {
        return Ok(());
    };
    match text(format, "type") {
        "text" => Ok(()),
        "json_object" => {
            let messages = body.get("messages").map(Value::to_string).unwrap_or_default().to_lowercase();
            if messages.contains("json") {
                return Ok(());
            }
            let message = "'messages' must contain the word 'json' in some form, to use 'response_format' of type \
                           'json_object'.";
            Err(Refusal::invalid(message).param("messages"))
        }
        "json_schema" => {
            let inner = get(format, "json_schema").ok_or_else(|| missing("response_format.json_schema"))?;
            openai_name(text(inner, "name"), "response_format.json_schema.name".into())?;
            let schema = get(inner, "schema").ok_or_else(|| missing("response_format.json_schema.schema"))?;
            if inner.get("strict") == Some(&Value::Bool(true)) {
                openai_strict(schema, "response_format", text(inner, "name"))?;
            }
            draft.constants.output_schema = Some(schema.to_string());
            Ok(())
        }
        other => Err(not_one_of("response_format.type", other, &["json_object", "json_schema", "text"])),
    }
}

fn messages(body: &Value, draft: &mut Draft) -> Result<(), Refusal> {
    let all = get(body, "messages").ok_or_else(|| missing("messages"))?;
    let all = all.as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        let message = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array \
                       instead.";
        return Err(Refusal::invalid(message).param("messages").code("empty_array"));
    }
    // The tool calls of the last message of the model that have no result yet.
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut asked_at = 0;
    for (at, message) in all.iter().enumerate() {
        let role = text(message, "role");
        if role != "tool" && !open.is_empty() {
            return Err(unanswered(&open, asked_at));
        }
        match role {
            "system" | "developer" => draft.add_system(&content(message, at, role)?),
            "user" => draft.messages.push(Message::user(content(message, at, role)?)),
            "assistant" => {
                open = assistant(message, at, draft)?;
                asked_at = at;
            }
            "tool" => {
                let id = text(message, "tool_call_id");
                if id.is_empty() {
                    return Err(missing(format!("messages[{at}].tool_call_id")));
                }
                if !open.remove(id) {
                    let text = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message \
                                with 'tool_calls'.";
                    return Err(Refusal::invalid(text).param(format!("messages.[{at}].role")));
                }
                let text = content(message, at, role)?;
                draft.messages.push(Message::Tool { id: id.into(), text, error: false });
            }
            "" => return Err(missing(format!("messages[{at}].role"))),
            "function" => {
                let text = "Messages with role 'function' are not played by this server; use 'tool'.";
                return Err(Refusal::invalid(text).param(format!("messages[{at}].role")));
            }
            other => return Err(not_one_of(format!("messages[{at}].role"), other, &ROLES)),
        }
    }
    if open.is_empty() { Ok(()) } else { Err(unanswered(&open, asked_at)) }
}

fn unanswered(open: &BTreeSet<&str>, asked_at: usize) -> Refusal {
    let ids: Vec<&str> = open.iter().copied().collect();
    let text = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The \
         following tool_call_ids did not have response messages: {}",
        ids.join(", ")
    );
    Refusal::invalid(text).param(format!("messages.[{}].role", asked_at + 1))
}

/// The text of a message.
fn content(message: &Value, at: usize, role: &str) -> Result<String, Refusal> {
    let wrong = |text: String| Refusal::invalid(text).param(format!("messages.[{at}].content"));
    let parts = match message.get("content") {
        Some(Value::String(text)) => return Ok(text.clone()),
        Some(Value::Array(parts)) if !parts.is_empty() => parts,
        other => {
            let kind = if other.is_some_and(Value::is_array) { "an empty array" } else { "null" };
            return Err(wrong(format!("Invalid value for 'content': expected a string, got {kind}.")));
        }
    };
    let mut all = String::new();
    for (slot, part) in parts.iter().enumerate() {
        match text(part, "type") {
            "text" => all.push_str(text(part, "text")),
            "refusal" if role == "assistant" => all.push_str(text(part, "refusal")),
            kind @ ("image_url" | "input_audio" | "file") if role == "user" => all.push_str(&format!("[{kind}]")),
            other => {
                let known: &[&str] = if role == "user" {
                    &["text", "image_url", "input_audio", "refusal", "audio", "file"]
                } else {
                    &["text"]
                };
                return Err(not_one_of(format!("messages[{at}].content[{slot}].type"), other, known));
            }
        }
    }
    Ok(all)
}

/// What the model said; the ids that it asked under.
fn assistant<'a>(message: &'a Value, at: usize, draft: &mut Draft) -> Result<BTreeSet<&'a str>, Refusal> {
    let mut parts: Vec<Part> = Vec::new();
    if let Some(thought) = get(message, "reasoning_content").and_then(Value::as_str) {
        parts.push(reasoning(thought));
    }
    let calls = get(message, "tool_calls");
    let said = get(message, "refusal").is_some() || members(message).any(|(name, _)| name == "audio");
    if get(message, "content").is_some() || (calls.is_none() && !said) {
        let text = content(message, at, "assistant")?;
        if !text.is_empty() {
            parts.push(Part::Text { text });
        }
    }
    let mut ids = BTreeSet::new();
    if calls.is_some_and(|calls| calls.as_array().is_none_or(Vec::is_empty)) {
        let text = format!(
            "Invalid 'messages[{at}].tool_calls': empty array. Expected an array with minimum length 1, but got an empty \
             array instead."
        );
        return Err(Refusal::invalid(text).param(format!("messages[{at}].tool_calls")).code("empty_array"));
    }
    for (slot, call) in list(message, "tool_calls").iter().enumerate() {
        let place = format!("messages[{at}].tool_calls[{slot}]");
        let id = text(call, "id");
        if id.is_empty() {
            return Err(missing(format!("{place}.id")));
        }
        if id.len() > 40 {
            let text = format!(
                "Invalid '{place}.id': string too long. Expected a string with maximum length 40, but got a string with \
                 length {} instead.",
                id.len()
            );
            return Err(Refusal::invalid(text).param(format!("{place}.id")).code("string_above_max_length"));
        }
        if text(call, "type") != "function" {
            return Err(missing(format!("{place}.type")));
        }
        let function = get(call, "function").ok_or_else(|| missing(format!("{place}.function")))?;
        openai_name(text(function, "name"), format!("{place}.function.name"))?;
        let args = function.get("arguments").and_then(Value::as_str);
        let args = args.ok_or_else(|| missing(format!("{place}.function.arguments")))?;
        if !ids.insert(id) {
            let text = format!("Duplicate value for 'tool_call_id' of '{id}' in message[{at}]");
            return Err(Refusal::invalid(text).param(place));
        }
        parts.push(Part::ToolUse { id: id.into(), name: text(function, "name").into(), args: args.into() });
    }
    draft.messages.push(Message::Assistant { parts });
    Ok(ids)
}
