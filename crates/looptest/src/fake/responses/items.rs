//! The items of a conversation, and the rules that hold between them.

use crate::fake::checks::{Draft, get, list, missing, not_one_of, openai_name, reasoning, text};
use crate::fake::refusal::Refusal;
use loopd_kernel::model::{Message, Part};
use serde_json::Value;
use std::collections::BTreeSet;

const ROLES: [&str; 4] = ["assistant", "system", "developer", "user"];

/// Reads all items.
pub(super) fn read(all: &[Value], draft: &mut Draft) -> Result<(), Refusal> {
    let mut asked: BTreeSet<&str> = BTreeSet::new();
    let mut answered: BTreeSet<&str> = BTreeSet::new();
    for (at, item) in all.iter().enumerate() {
        let kind = text(item, "type");
        match kind {
            "" | "message" => message(item, at, draft)?,
            "function_call" => {
                let id = call(item, at, draft)?;
                if !asked.insert(id) {
                    let text =
                        format!("Duplicate item found with call_id {id}. Remove duplicate items from your input.");
                    return Err(Refusal::invalid(text).param("input"));
                }
            }
            "function_call_output" => {
                let id = text(item, "call_id");
                if id.is_empty() {
                    return Err(missing(format!("input[{at}].call_id")));
                }
                if !asked.contains(id) || !answered.insert(id) {
                    let text = format!("No tool call found for function call output with call_id {id}.");
                    return Err(Refusal::invalid(text).param("input"));
                }
                let text = output(item, at)?;
                draft.messages.push(Message::Tool { id: id.into(), text, error: false });
            }
            "reasoning" => thought(item, all.get(at + 1), at, draft)?,
            "item_reference" => {
                let text = format!("Item with id '{}' not found.", text(item, "id"));
                return Err(Refusal::new(404, text).param("input"));
            }
            other => {
                let known = ["message", "function_call", "function_call_output", "reasoning", "item_reference"];
                return Err(not_one_of(format!("input[{at}]"), other, &known));
            }
        }
    }
    match asked.difference(&answered).next() {
        Some(id) => Err(Refusal::invalid(format!("No tool output found for function call {id}.")).param("input")),
        None => Ok(()),
    }
}

fn message(item: &Value, at: usize, draft: &mut Draft) -> Result<(), Refusal> {
    let role = text(item, "role");
    let said = match role {
        "" => return Err(missing(format!("input[{at}].role"))),
        "user" | "system" | "developer" | "assistant" => content(item, at, role)?,
        other => return Err(not_one_of(format!("input[{at}].role"), other, &ROLES)),
    };
    match role {
        "user" => draft.messages.push(Message::user(said)),
        "assistant" => draft.add_said([Part::Text { text: said }]),
        _ => draft.add_system(&said),
    }
    Ok(())
}

fn content(item: &Value, at: usize, role: &str) -> Result<String, Refusal> {
    let parts = match item.get("content") {
        Some(Value::String(text)) => return Ok(text.clone()),
        Some(Value::Array(parts)) => parts,
        _ => return Err(missing(format!("input[{at}].content"))),
    };
    let known: &[&str] =
        if role == "assistant" { &["output_text", "refusal"] } else { &["input_text", "input_image", "input_file"] };
    let mut all = String::new();
    for (slot, part) in parts.iter().enumerate() {
        let kind = text(part, "type");
        if !known.contains(&kind) {
            return Err(not_one_of(format!("input[{at}].content[{slot}]"), kind, known));
        }
        match kind {
            "refusal" => all.push_str(text(part, "refusal")),
            "input_text" | "output_text" => all.push_str(text(part, "text")),
            other => all.push_str(&format!("[{other}]")),
        }
    }
    Ok(all)
}

fn call<'a>(item: &'a Value, at: usize, draft: &mut Draft) -> Result<&'a str, Refusal> {
    let id = text(item, "call_id");
    if id.is_empty() {
        return Err(missing(format!("input[{at}].call_id")));
    }
    if id.len() > 64 {
        let text = format!(
            "Invalid 'input[{at}].call_id': string too long. Expected a string with maximum length 64, but got a string \
             with length {} instead.",
            id.len()
        );
        return Err(Refusal::invalid(text).param(format!("input[{at}].call_id")).code("string_above_max_length"));
    }
    if get(item, "id").is_some_and(|id| !id.as_str().is_some_and(|id| id.starts_with("fc"))) {
        let text = format!("Invalid 'input[{at}].id': '{}'. Expected an ID that begins with 'fc'.", text(item, "id"));
        return Err(Refusal::invalid(text).param(format!("input[{at}].id")).code("invalid_value"));
    }
    openai_name(text(item, "name"), format!("input[{at}].name"))?;
    let args = item.get("arguments").and_then(Value::as_str);
    let args = args.ok_or_else(|| missing(format!("input[{at}].arguments")))?;
    draft.add_said([Part::ToolUse { id: id.into(), name: text(item, "name").into(), args: args.into() }]);
    Ok(id)
}

fn output(item: &Value, at: usize) -> Result<String, Refusal> {
    match item.get("output") {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => Ok(parts.iter().map(|part| text(part, "text")).collect()),
        _ => Err(missing(format!("input[{at}].output"))),
    }
}

/// Reasoning goes back only with what the model did after it.
fn thought(item: &Value, next: Option<&Value>, at: usize, draft: &mut Draft) -> Result<(), Refusal> {
    let id = text(item, "id");
    if id.is_empty() {
        return Err(missing(format!("input[{at}].id")));
    }
    let own = |next: &Value| match text(next, "type") {
        "function_call" | "reasoning" => true,
        "" | "message" => text(next, "role") == "assistant",
        _ => false,
    };
    if !next.is_some_and(own) {
        let text = format!("Item '{id}' of type 'reasoning' was provided without its required following item.");
        return Err(Refusal::invalid(text).param("input"));
    }
    let summary: String = list(item, "summary").iter().map(|part| text(part, "text")).collect();
    draft.add_said([reasoning(&summary)]);
    Ok(())
}
