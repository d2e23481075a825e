//! What a request says, and what is wrong with it.

use super::{contents, member, schema, stranger};
use crate::fake::checks::{Draft, Taken, is_name, list, temperature, text};
use crate::fake::refusal::Refusal;
use serde_json::Value;
use std::collections::BTreeSet;

const KNOWN: [&str; 11] = [
    "model",
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "generationConfig",
    "cachedContent",
    "labels",
    "serviceTier",
    "store",
];

const SETTINGS: [&str; 24] = [
    "maxOutputTokens",
    "temperature",
    "topP",
    "topK",
    "candidateCount",
    "stopSequences",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "_responseJsonSchema",
    "presencePenalty",
    "frequencyPenalty",
    "seed",
    "responseLogprobs",
    "logprobs",
    "enableEnhancedCivicAnswers",
    "responseModalities",
    "speechConfig",
    "thinkingConfig",
    "imageConfig",
    "mediaResolution",
    "routingConfig",
    "modelSelectionConfig",
    "audioTimestamp",
];

const TOOLS: [&str; 9] = [
    "functionDeclarations",
    "googleSearch",
    "googleSearchRetrieval",
    "codeExecution",
    "urlContext",
    "computerUse",
    "fileSearch",
    "googleMaps",
    "mcpServers",
];

const DECLARATION: [&str; 7] =
    ["name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema", "behavior"];

/// The complaint about a member that is not there, in this server's words.
pub(super) fn cannot_find(name: &str, place: &str) -> Refusal {
    let at = if place.is_empty() { String::new() } else { format!(" at '{place}'") };
    Refusal::invalid(format!("Invalid JSON payload received. Unknown name \"{name}\"{at}: Cannot find field."))
}

pub(super) fn wrong(place: &str, problem: &str) -> Refusal {
    Refusal::invalid(format!("* GenerateContentRequest.{place}: {problem}\n"))
}

/// Reads a request for `model`.
pub(in crate::fake) fn read(body: &Value, model: &str, stream: bool) -> Result<Taken, Refusal> {
    if let Some(name) = stranger(body, &KNOWN) {
        return Err(cannot_find(name, ""));
    }
    let mut draft = Draft { model: model.to_owned(), stream, ..Draft::default() };
    if let Some(system) = member(body, "systemInstruction") {
        for part in list(system, "parts") {
            draft.add_system(text(part, "text"));
        }
    }
    tools(body, &mut draft)?;
    settings(body, &mut draft)?;
    contents::read(list(body, "contents"), &mut draft)?;
    Ok(draft.done())
}

/// Reads a request that is only counted: contents alone, or a whole request within.
pub(in crate::fake) fn count(body: &Value, model: &str) -> Result<Taken, Refusal> {
    match member(body, "generateContentRequest") {
        Some(whole) => read(whole, model, false),
        None => read(&serde_json::json!({"contents": body.get("contents")}), model, false),
    }
}

fn settings(body: &Value, draft: &mut Draft) -> Result<(), Refusal> {
    let Some(config) = member(body, "generationConfig") else {
        return Ok(());
    };
    if let Some(name) = stranger(config, &SETTINGS) {
        return Err(cannot_find(name, "generation_config"));
    }
    draft.temperature = temperature(config, 2.0)
        .map_err(|_| wrong("generation_config.temperature", "temperature must be in the range [0.0, 2.0]."))?;
    if let Some(limit) = member(config, "maxOutputTokens") {
        match limit.as_u64() {
            Some(limit) if limit > 0 => draft.max_output_tokens = Some(limit),
            _ => return Err(wrong("generation_config.max_output_tokens", "max_output_tokens must be positive.")),
        }
    }
    if member(config, "candidateCount").is_some_and(|count| count.as_u64() != Some(1)) {
        return Err(Refusal::invalid("Multiple candidates is not enabled for this model"));
    }
    let own = member(config, "responseSchema");
    let json = member(config, "responseJsonSchema").or_else(|| config.get("_responseJsonSchema"));
    if (own.is_some() || json.is_some()) && !matches!(mime(config), "application/json" | "text/x.enum") {
        let message = "Function calling config or response schema is set, but `response_mime_type` is not \
                       `application/json`.";
        return Err(Refusal::invalid(message));
    }
    if let Some(own) = own {
        schema::check(own, "generation_config.response_schema")?;
    }
    draft.constants.output_schema = own.or(json).map(Value::to_string);
    // Models before Gemini 3 answer in JSON or use tools, not both.
    if mime(config) == "application/json" && !draft.constants.tools.is_empty() && !super::signs(&draft.model) {
        let message = "Function calling with a response mime type: 'application/json' is unsupported";
        return Err(Refusal::invalid(message));
    }
    Ok(())
}

fn mime(config: &Value) -> &str {
    member(config, "responseMimeType").and_then(Value::as_str).unwrap_or_default()
}

fn tools(body: &Value, draft: &mut Draft) -> Result<(), Refusal> {
    let Some(tools) = member(body, "tools") else {
        return Ok(());
    };
    let tools = tools.as_array().map_or(std::slice::from_ref(tools), Vec::as_slice);
    let mut names = BTreeSet::new();
    for (at, tool) in tools.iter().enumerate() {
        if let Some(name) = stranger(tool, &TOOLS) {
            return Err(cannot_find(name, &format!("tools[{at}]")));
        }
        let declarations =
            member(tool, "functionDeclarations").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        // A list of no functions is no tool.
        let is_empty = declarations.is_empty() && !TOOLS.iter().skip(1).any(|kind| member(tool, kind).is_some());
        if is_empty {
            let problem = "required one_of 'tool_type' must have one initialized field";
            return Err(wrong(&format!("tools[{at}].tool_type"), problem));
        }
        for (slot, declaration) in declarations.iter().enumerate() {
            let place = format!("tools[{at}].function_declarations[{slot}]");
            declare(declaration, &place, draft)?;
            let name = text(declaration, "name");
            if !names.insert(name.to_owned()) {
                return Err(Refusal::invalid(format!("Duplicate function declaration found: {name}")));
            }
        }
    }
    // The real server forgives an empty list where nothing else is wrong with it; a client that sends one has a fault.
    if tools.is_empty() {
        return Err(wrong("tools", "tools must not be empty: leave them out"));
    }
    Ok(())
}

fn declare(declaration: &Value, place: &str, draft: &mut Draft) -> Result<(), Refusal> {
    if let Some(name) = stranger(declaration, &DECLARATION) {
        return Err(cannot_find(name, place));
    }
    let name = text(declaration, "name");
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !begins || !is_name(name, 128, "_.:-") {
        let problem = "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, \
                       0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.";
        return Err(wrong(&format!("{place}.name"), problem));
    }
    let own = member(declaration, "parameters");
    let json = member(declaration, "parametersJsonSchema");
    if own.is_some() && json.is_some() {
        return Err(wrong(place, "parameters and parameters_json_schema cannot both be set."));
    }
    if let Some(own) = own {
        schema::check(own, &format!("{place}.parameters"))?;
    }
    draft.add_tool(name, text(declaration, "description"), own.or(json).unwrap_or(&Value::Null));
    Ok(())
}
