//! What a request for a message says, and what is wrong with it.

use super::blocks;
use crate::fake::checks::{Draft, Taken, get, is_name, list, open_object, temperature, text, unknown};
use crate::fake::refusal::Refusal;
use serde_json::Value;
use std::collections::BTreeSet;

/// The members that Anthropic knows.
const KNOWN: [&str; 24] = [
    "max_tokens",
    "messages",
    "model",
    "cache_control",
    "container",
    "context_management",
    "diagnostics",
    "inference_geo",
    "mcp_servers",
    "metadata",
    "output_config",
    "output_format",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
    "user_profile_id",
];

const MOST_MARKS: usize = 4;

/// Reads a request.
pub(in crate::fake) fn read(body: &Value) -> Result<Taken, Refusal> {
    let mut draft = shared(body)?;
    draft.stream = body.get("stream") == Some(&Value::Bool(true));
    let limit = get(body, "max_tokens").ok_or_else(|| Refusal::invalid("max_tokens: Field required"))?;
    let Some(limit) = limit.as_u64() else {
        return Err(Refusal::invalid("max_tokens: Input should be a valid integer"));
    };
    if limit == 0 {
        return Err(Refusal::invalid("max_tokens: Input should be greater than or equal to 1"));
    }
    draft.max_output_tokens = Some(limit);
    draft.temperature = temperature(body, 1.0).map_err(|_| Refusal::invalid("temperature: range: 0..1"))?;
    thinking(body, limit, draft.temperature)?;
    Ok(draft.done())
}

/// Reads a request that is only counted.
pub(in crate::fake) fn count(body: &Value) -> Result<Taken, Refusal> {
    Ok(shared(body)?.done())
}

fn shared(body: &Value) -> Result<Draft, Refusal> {
    if let Some(name) = unknown(body, &KNOWN) {
        return Err(Refusal::invalid(format!("{name}: Extra inputs are not permitted")));
    }
    let mut draft = Draft { model: text(body, "model").into(), ..Draft::default() };
    if draft.model.is_empty() {
        return Err(Refusal::invalid("model: Field required"));
    }
    system(body, &mut draft)?;
    tools(body, &mut draft)?;
    if marks(body) > MOST_MARKS {
        let message =
            format!("A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {}.", marks(body));
        return Err(Refusal::invalid(message));
    }
    format(body, &mut draft)?;
    let Some(messages) = get(body, "messages") else {
        return Err(Refusal::invalid("messages: Field required"));
    };
    let Some(messages) = messages.as_array() else {
        return Err(Refusal::invalid("messages: Input should be a valid list"));
    };
    let is_thinking = matches!(thinking_type(body), "enabled" | "adaptive");
    blocks::read(messages, thinking_type(body) == "enabled", is_thinking, &mut draft)?;
    Ok(draft)
}

fn thinking_type(body: &Value) -> &str {
    get(body, "thinking").map_or("", |thinking| text(thinking, "type"))
}

fn system(body: &Value, draft: &mut Draft) -> Result<(), Refusal> {
    match get(body, "system") {
        None => Ok(()),
        Some(Value::String(text)) => {
            draft.add_system(text);
            Ok(())
        }
        Some(Value::Array(blocks)) => {
            for (at, block) in blocks.iter().enumerate() {
                if text(block, "type") != "text" {
                    return Err(Refusal::invalid(format!("system.{at}.type: Input should be 'text'")));
                }
                if text(block, "text").is_empty() {
                    return Err(Refusal::invalid("system: text content blocks must be non-empty"));
                }
                draft.add_system(text(block, "text"));
            }
            Ok(())
        }
        Some(_) => Err(Refusal::invalid("system: Input should be a valid list")),
    }
}

fn tools(body: &Value, draft: &mut Draft) -> Result<(), Refusal> {
    let mut names = BTreeSet::new();
    for (at, tool) in list(body, "tools").iter().enumerate() {
        let name = text(tool, "name");
        // Tools that the provider brings have a type with a date in it.
        let kind = text(tool, "type");
        if !matches!(kind, "" | "custom") {
            draft.add_tool(name, "", &Value::Null);
            continue;
        }
        let place = format!("tools.{at}.custom");
        if name.is_empty() {
            return Err(Refusal::invalid(format!("{place}.name: Field required")));
        }
        if !is_name(name, 128, "_-") {
            let message = format!("{place}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'");
            return Err(Refusal::invalid(message));
        }
        if !names.insert(name) {
            return Err(Refusal::invalid("tools: Tool names must be unique."));
        }
        let Some(schema) = get(tool, "input_schema") else {
            return Err(Refusal::invalid(format!("{place}.input_schema: Field required")));
        };
        if text(schema, "type") != "object" {
            let problem = if schema.get("type").is_none() { "Field required" } else { "Input should be 'object'" };
            return Err(Refusal::invalid(format!("{place}.input_schema.type: {problem}")));
        }
        if let Some(word) = ["oneOf", "allOf", "anyOf"].iter().find(|word| schema.get(**word).is_some()) {
            let message = format!("{place}.input_schema: input_schema does not support {word} at the top level");
            return Err(Refusal::invalid(message));
        }
        draft.add_tool(name, text(tool, "description"), schema);
    }
    let Some(choice) = get(body, "tool_choice") else {
        return Ok(());
    };
    let kind = text(choice, "type");
    if !matches!(kind, "auto" | "any" | "tool" | "none") {
        let message = format!(
            "tool_choice: Input tag '{kind}' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'"
        );
        return Err(Refusal::invalid(message));
    }
    if draft.constants.tools.is_empty() && kind != "none" {
        return Err(Refusal::invalid("tool_choice may only be specified while providing tools"));
    }
    let name = text(choice, "name");
    if kind == "tool" && !draft.constants.tools.iter().any(|tool| tool.name == name) {
        return Err(Refusal::invalid(format!("Tool '{name}' not found in provided tools")));
    }
    Ok(())
}

fn format(body: &Value, draft: &mut Draft) -> Result<(), Refusal> {
    let (place, format) = match get(body, "output_config").and_then(|config| get(config, "format")) {
        Some(format) => ("output_config.format", Some(format)),
        None => ("output_format", get(body, "output_format")),
    };
    let Some(format) = format else {
        return Ok(());
    };
    if text(format, "type") != "json_schema" {
        return Err(Refusal::invalid(format!("{place}.type: Input should be 'json_schema'")));
    }
    let Some(schema) = get(format, "schema") else {
        return Err(Refusal::invalid(format!("{place}.schema: Field required")));
    };
    if open_object(schema, &mut Vec::new()) {
        let message =
            format!("{place}.schema: For 'object' type, 'additionalProperties' must be explicitly set to false");
        return Err(Refusal::invalid(message));
    }
    draft.constants.output_schema = Some(schema.to_string());
    Ok(())
}

fn thinking(body: &Value, limit: u64, temperature: Option<f64>) -> Result<(), Refusal> {
    const LEAST: u64 = 1024;
    let kind = thinking_type(body);
    match kind {
        "" | "disabled" => return Ok(()),
        "enabled" => {
            let budget = get(body, "thinking").and_then(|own| get(own, "budget_tokens")).and_then(Value::as_u64);
            let Some(budget) = budget else {
                return Err(Refusal::invalid("thinking.enabled.budget_tokens: Field required"));
            };
            if budget < LEAST {
                let message =
                    format!("thinking.enabled.budget_tokens: Input should be greater than or equal to {LEAST}");
                return Err(Refusal::invalid(message));
            }
            if budget >= limit {
                return Err(Refusal::invalid("`max_tokens` must be greater than `thinking.budget_tokens`."));
            }
        }
        "adaptive" => {}
        other => {
            let message = format!(
                "thinking: Input tag '{other}' found using 'type' does not match any of the expected tags: 'disabled', 'enabled', 'adaptive'"
            );
            return Err(Refusal::invalid(message));
        }
    }
    #[expect(clippy::float_cmp, reason = "exactly the default is taken")]
    let is_default = temperature.is_none_or(|value| value == 1.0);
    if !is_default {
        return Err(Refusal::invalid("`temperature` may only be set to 1 when thinking is enabled."));
    }
    if matches!(get(body, "tool_choice").map(|choice| text(choice, "type")), Some("any" | "tool")) {
        return Err(Refusal::invalid("Thinking may not be enabled when tool_choice forces tool use."));
    }
    Ok(())
}

/// How many marks for the cache there are, wherever they stand.
fn marks(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(marks).sum(),
        Value::Object(members) => {
            let own = usize::from(members.get("cache_control").is_some_and(Value::is_object));
            let inner = members.iter().filter(|(name, _)| !matches!(name.as_str(), "input" | "input_schema"));
            own + inner.map(|(_, member)| marks(member)).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
