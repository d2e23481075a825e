//! The turns, and the rules that hold between their parts.

use super::read::{cannot_find, wrong};
use super::{member, signature, signs, stranger};
use crate::fake::checks::{Draft, get, list, reasoning, text};
use crate::fake::refusal::Refusal;
use loopd_kernel::model::{Message, Part};
use serde_json::Value;

/// What a part may hold, and what may stand beside it.
const PART: [&str; 14] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
    "thought",
    "thoughtSignature",
    "videoMetadata",
    "mediaResolution",
    "partMetadata",
];
const DATA: usize = 9;

/// Google's words for a call whose signature nobody has.
const STAND_INS: [&str; 2] = ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

/// A call that waits for its response.
struct Open {
    /// The server's own id, or one that is made for the record.
    id: String,
    name: String,
}

/// Reads all turns.
pub(super) fn read(all: &[Value], draft: &mut Draft) -> Result<(), Refusal> {
    if all.is_empty() {
        return Err(wrong("contents", "contents is not specified"));
    }
    let mut open: Vec<Open> = Vec::new();
    let mut before = "";
    // Signatures are demanded since a person spoke last.
    let current = all.iter().rposition(is_spoken).unwrap_or(0);
    for (at, content) in all.iter().enumerate() {
        if let Some(name) = stranger(content, &["role", "parts"]) {
            return Err(cannot_find(name, &format!("contents[{at}]")));
        }
        let role = match text(content, "role") {
            // A role may be left out, and is the user's then.
            "" | "user" | "function" => "user",
            "model" => "model",
            _ => return Err(Refusal::invalid("Please use a valid role: user, model.")),
        };
        let parts = list(content, "parts");
        if parts.is_empty() {
            return Err(wrong(&format!("contents[{at}].parts"), "contents.parts must not be empty."));
        }
        parts.iter().enumerate().try_for_each(|(slot, part)| whole(part, &format!("contents[{at}].parts[{slot}]")))?;
        if role == "model" {
            if !open.is_empty() {
                return Err(uneven());
            }
            let has_call = parts.iter().any(|part| member(part, "functionCall").is_some());
            if has_call && before != "user" {
                return Err(Refusal::invalid(
                    "Please ensure that function call turn comes immediately after a user turn or after a function \
                     response turn.",
                ));
            }
            open = said(parts, at, at >= current, draft)?;
        } else {
            user(parts, &mut open, draft)?;
        }
        before = role;
    }
    if before == "model" {
        let message = if all.len() == 1 {
            "Please ensure that single turn requests end with a user role or the role field is empty."
        } else {
            "Please ensure that multiturn requests end with a user role or a function response."
        };
        return Err(Refusal::invalid(message));
    }
    Ok(())
}

fn is_spoken(content: &Value) -> bool {
    text(content, "role") != "model"
        && list(content, "parts").iter().any(|part| member(part, "functionResponse").is_none())
}

fn uneven() -> Refusal {
    Refusal::invalid(
        "Please ensure that the number of function response parts is equal to the number of function call parts of the \
         function call turn.",
    )
}

/// A part holds one thing, and nothing unknown.
fn whole(part: &Value, place: &str) -> Result<(), Refusal> {
    if let Some(name) = stranger(part, &PART) {
        return Err(cannot_find(name, place));
    }
    match PART.iter().take(DATA).filter(|name| member(part, name).is_some()).count() {
        1 => Ok(()),
        0 => Err(wrong(&format!("{place}.data"), "required oneof field 'data' must have one initialized field")),
        _ => Err(Refusal::invalid(format!(
            "Invalid value at '{place}' (oneof), oneof field 'data' is already set. Cannot set another."
        ))),
    }
}

/// A turn of the model; the calls in it.
fn said(parts: &[Value], at: usize, is_current: bool, draft: &mut Draft) -> Result<Vec<Open>, Refusal> {
    let mut own = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    for (slot, part) in parts.iter().enumerate() {
        let signed = member(part, "thoughtSignature").and_then(Value::as_str);
        let is_thought = part.get("thought") == Some(&Value::Bool(true));
        if let Some(call) = member(part, "functionCall") {
            let name = text(call, "name");
            if signs(&draft.model) && is_current {
                check_signature(name, signed, open.is_empty(), slot)?;
            }
            let id = get(call, "id").and_then(Value::as_str).map_or_else(|| format!("call_{at}_{slot}"), str::to_owned);
            let args = get(call, "args").map_or_else(|| "{}".to_owned(), Value::to_string);
            own.push(Part::ToolUse { id: id.clone(), name: name.into(), args });
            open.push(Open { id, name: name.into() });
        } else if is_thought {
            own.push(reasoning(text(part, "text")));
        } else {
            own.push(Part::Text { text: text(part, "text").into() });
        }
    }
    draft.messages.push(Message::Assistant { parts: own });
    Ok(open)
}

/// The first call of a turn is signed; whatever is signed is signed by this server.
fn check_signature(name: &str, signed: Option<&str>, is_first: bool, slot: usize) -> Result<(), Refusal> {
    match signed {
        None if is_first => Err(Refusal::invalid(format!(
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work \
             correctly, and missing thought_signature may lead to degraded model performance. Additional data, function \
             call `default_api:{name}` , position {}.",
            slot + 1
        ))),
        Some(signed) if signed != signature(name) && !STAND_INS.contains(&signed) => {
            Err(Refusal::invalid("Corrupted thought signature."))
        }
        Some(_) | None => Ok(()),
    }
}

/// A turn of the user: words, or the responses to all calls of the turn before.
fn user(parts: &[Value], open: &mut Vec<Open>, draft: &mut Draft) -> Result<(), Refusal> {
    let responses: Vec<&Value> = parts.iter().filter_map(|part| member(part, "functionResponse")).collect();
    if !responses.is_empty() && open.is_empty() {
        return Err(Refusal::invalid(
            "Please ensure that function response turn comes immediately after a function call turn.",
        ));
    }
    if responses.len() != open.len() {
        return Err(uneven());
    }
    for (call, response) in std::mem::take(open).into_iter().zip(responses) {
        if text(response, "name") != call.name {
            let message = format!(
                "Function response `{}` does not match the function call `{}`.",
                text(response, "name"),
                call.name
            );
            return Err(Refusal::invalid(message));
        }
        let body = response.get("response").filter(|body| body.is_object());
        let body = body.ok_or_else(|| wrong("contents.parts.function_response.response", "missing field."))?;
        let (said, error) = match (get(body, "error"), get(body, "output").or_else(|| get(body, "result"))) {
            (Some(error), None) => (error, true),
            (_, Some(output)) => (output, false),
            (None, None) => (body, false),
        };
        let text = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
        draft.messages.push(Message::Tool { id: call.id, text, error });
    }
    let mut words = String::new();
    for part in parts.iter().filter(|part| member(part, "functionResponse").is_none()) {
        match part.get("text").and_then(Value::as_str) {
            Some(text) => words.push_str(text),
            None => words.push_str("[data]"),
        }
    }
    let has_words = parts.iter().any(|part| member(part, "functionResponse").is_none());
    if has_words {
        draft.messages.push(Message::user(words));
    }
    Ok(())
}
