//! What a request for a Response says, and what is wrong with it.

use super::items;
use crate::fake::checks::{
    Draft, Taken, get, is_reasoning_model, list, missing, not_one_of, openai_name, openai_strict, openai_temperature,
    text, unknown,
};
use crate::fake::refusal::Refusal;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The members that OpenAI knows.
const KNOWN: [&str; 33] = [
    "access_programs",
    "background",
    "background_options",
    "context_management",
    "conversation",
    "image",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
];

/// Members of chat completions that people bring along, and what they are called here.
const MOVED: [(&str, &str); 5] = [
    ("messages", "input"),
    ("response_format", "text.format"),
    ("max_tokens", "max_output_tokens"),
    ("max_completion_tokens", "max_output_tokens"),
    ("reasoning_effort", "reasoning.effort"),
];

/// All items of a conversation: those of the response that this one goes on from, and its own.
fn all_items(body: &Value, stored: &BTreeMap<String, Vec<Value>>) -> Result<Vec<Value>, Refusal> {
    let mut all = match get(body, "previous_response_id").and_then(Value::as_str) {
        None => Vec::new(),
        Some(id) => stored.get(id).cloned().ok_or_else(|| {
            Refusal::invalid(format!("Previous response with id '{id}' not found."))
                .param("previous_response_id")
                .code("previous_response_not_found")
        })?,
    };
    match get(body, "input") {
        None => return Err(missing("input")),
        Some(Value::String(text)) => all.push(json!({"type": "message", "role": "user", "content": text})),
        Some(Value::Array(own)) => all.extend(own.iter().cloned()),
        Some(_) => {
            let message = "Invalid type for 'input': expected one of an array of input items or a string.";
            return Err(Refusal::invalid(message).param("input").code("invalid_type"));
        }
    }
    Ok(all)
}

/// Reads a request. `stored` has the items up to and with every stored response.
pub(in crate::fake) fn read(body: &Value, stored: &BTreeMap<String, Vec<Value>>) -> Result<Taken, Refusal> {
    if let Some((old, new)) = MOVED.iter().find(|(old, _)| body.get(*old).is_some()) {
        let message = format!(
            "Unsupported parameter: '{old}'. In the Responses API, this parameter has moved to '{new}'. Try again with \
             the new parameter."
        );
        return Err(Refusal::invalid(message).param(*old).code("unsupported_parameter"));
    }
    if let Some(name) = unknown(body, &KNOWN).filter(|name| *name != "user") {
        let message = format!("Unknown parameter: '{name}'.");
        return Err(Refusal::invalid(message).param(name).code("unknown_parameter"));
    }
    let mut draft = Draft { model: text(body, "model").into(), ..Draft::default() };
    if draft.model.is_empty() {
        return Err(missing("model"));
    }
    draft.stream = body.get("stream") == Some(&Value::Bool(true));
    draft.max_output_tokens = limit(body)?;
    draft.temperature = openai_temperature(body, &draft.model)?;
    if let Some(instructions) = get(body, "instructions").and_then(Value::as_str) {
        draft.add_system(instructions);
    }
    tools(body, &mut draft)?;
    format(body, &mut draft)?;
    if get(body, "reasoning").is_some_and(|own| get(own, "effort").is_some()) && !is_reasoning_model(&draft.model) {
        let message = "Unsupported parameter: 'reasoning.effort' is not supported with this model.";
        return Err(Refusal::invalid(message).param("reasoning.effort").code("unsupported_parameter"));
    }
    let all = all_items(body, stored)?;
    if all.is_empty() {
        let message = "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array \
                       instead.";
        return Err(Refusal::invalid(message).param("input").code("empty_array"));
    }
    items::read(&all, &mut draft)?;
    let wants = list(body, "include").iter().any(|name| name == "reasoning.encrypted_content");
    let is_kept = body.get("store") != Some(&Value::Bool(false));
    Ok(Taken { encrypted: wants, items: is_kept.then_some(all), ..draft.done() })
}

fn limit(body: &Value) -> Result<Option<u64>, Refusal> {
    const LEAST: u64 = 16;
    match get(body, "max_output_tokens") {
        None => Ok(None),
        Some(value) => match value.as_u64() {
            Some(limit) if limit >= LEAST => Ok(Some(limit)),
            _ => Err(Refusal::invalid(format!(
                "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {LEAST}, but got {value} \
                 instead."
            ))
            .param("max_output_tokens")
            .code("integer_below_min_value")),
        },
    }
}

fn tools(body: &Value, draft: &mut Draft) -> Result<(), Refusal> {
    for (at, tool) in list(body, "tools").iter().enumerate() {
        match text(tool, "type") {
            "" => return Err(missing(format!("tools[{at}].type"))),
            "function" => {
                let name = text(tool, "name");
                openai_name(name, format!("tools[{at}].name"))?;
                let parameters = tool.get("parameters").unwrap_or(&Value::Null);
                // Here, unlike for chat completions, strict is the default; what cannot be strict is let through then.
                if tool.get("strict") == Some(&Value::Bool(true)) {
                    openai_strict(parameters, &format!("tools[{at}].parameters"), name)?;
                }
                draft.add_tool(name, text(tool, "description"), parameters);
            }
            // Tools that the provider brings: they are on offer, and never asked for by a script.
            other => draft.add_tool(other, "", &Value::Null),
        }
    }
    let choice = get(body, "tool_choice").filter(|choice| text(choice, "type") == "function");
    let chosen = choice.map(|choice| text(choice, "name"));
    match chosen.filter(|name| !draft.constants.tools.iter().any(|tool| tool.name == *name)) {
        Some(name) => {
            let message = format!("Tool choice '{name}' not found in 'tools' parameter.");
            Err(Refusal::invalid(message).param("tool_choice"))
        }
        None => Ok(()),
    }
}

fn format(body: &Value, draft: &mut Draft) -> Result<(), Refusal> {
    let Some(format) = get(body, "text").and_then(|own| get(own, "format")) else {
        return Ok(());
    };
    match text(format, "type") {
        "text" => Ok(()),
        "json_object" => {
            let said = [body.get("input"), body.get("instructions")];
            if said.into_iter().flatten().any(|value| value.to_string().to_lowercase().contains("json")) {
                return Ok(());
            }
            let message = "Response input messages must contain the word 'json' in some form to use 'text.format' of \
                           type 'json_object'.";
            Err(Refusal::invalid(message).param("input"))
        }
        "json_schema" => {
            openai_name(text(format, "name"), "text.format.name".into())?;
            let schema = get(format, "schema").ok_or_else(|| missing("text.format.schema"))?;
            if format.get("strict") == Some(&Value::Bool(true)) {
                openai_strict(schema, "text.format.schema", text(format, "name"))?;
            }
            draft.constants.output_schema = Some(schema.to_string());
            Ok(())
        }
        other => Err(not_one_of("text.format.type", other, &["json_object", "json_schema", "text"])),
    }
}
