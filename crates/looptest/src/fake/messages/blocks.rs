//! The messages, and the rules that hold between their blocks.

use super::signature;
use crate::fake::checks::{Draft, get, is_name, list, reasoning, text};
use crate::fake::refusal::Refusal;
use loopd_kernel::model::{Message, Part};
use serde_json::Value;
use std::collections::BTreeSet;

/// Neighbours of one role are one turn, for every rule.
struct Turn<'a> {
    role: &'a str,
    /// The message where it begins.
    at: usize,
    /// Each block with its place.
    blocks: Vec<(String, &'a Value)>,
    /// Text in the place of blocks.
    said: Option<&'a str>,
}

/// Reads all messages. With `must_think`, the model's turns begin with thinking.
pub(super) fn read(all: &[Value], must_think: bool, is_thinking: bool, draft: &mut Draft) -> Result<(), Refusal> {
    if all.is_empty() {
        return Err(Refusal::invalid("messages: at least one message is required"));
    }
    let turns = turns(all)?;
    if turns.first().is_some_and(|turn| turn.role != "user") {
        return Err(Refusal::invalid("messages: first message must use the \"user\" role"));
    }
    let mut ids: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = Vec::new();
    let mut asked_at = 0;
    for (number, turn) in turns.iter().enumerate() {
        if turn.role == "user" {
            user(turn, &open, asked_at, draft)?;
            open.clear();
        } else {
            let is_last = number + 1 == turns.len();
            open = assistant(turn, is_last, must_think, &mut ids, draft)?;
            asked_at = turn.at;
            if is_last && is_thinking {
                return Err(Refusal::invalid(
                    "This model does not support assistant message prefill. The conversation must end with a user \
                     message.",
                ));
            }
        }
    }
    if !open.is_empty() {
        return Err(unanswered(asked_at, &open));
    }
    let uses = |message: &Message| match message {
        Message::Assistant { parts } => parts.iter().any(|part| matches!(part, Part::ToolUse { .. })),
        Message::User { .. } | Message::Tool { .. } => false,
    };
    if draft.constants.tools.is_empty() && draft.messages.iter().any(uses) {
        let message = "Requests which include `tool_use` or `tool_result` blocks must define tools.";
        return Err(Refusal::invalid(message));
    }
    Ok(())
}

fn turns(all: &[Value]) -> Result<Vec<Turn<'_>>, Refusal> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (at, message) in all.iter().enumerate() {
        let role = text(message, "role");
        match role {
            "user" | "assistant" => {}
            "" => return Err(Refusal::invalid(format!("messages.{at}.role: Field required"))),
            "system" => {
                let message = "messages: Unexpected role \"system\". The Messages API accepts a top-level `system` \
                               parameter, not \"system\" as an input message role.";
                return Err(Refusal::invalid(message));
            }
            other => {
                let message = format!(
                    "messages: Unexpected role \"{other}\". Allowed roles are \"user\" or \"assistant\". For more \
                     information on message roles, see the documentation of the Messages API."
                );
                return Err(Refusal::invalid(message));
            }
        }
        let (blocks, said): (Vec<_>, _) = match message.get("content") {
            Some(Value::String(text)) => (Vec::new(), Some(text.as_str())),
            Some(Value::Array(blocks)) => {
                let placed = |(slot, block)| (format!("messages.{at}.content.{slot}"), block);
                (blocks.iter().enumerate().map(placed).collect(), None)
            }
            Some(_) => return Err(Refusal::invalid(format!("messages.{at}.content: Input should be a valid list"))),
            None => return Err(Refusal::invalid(format!("messages.{at}.content: Field required"))),
        };
        let is_prefill = at + 1 == all.len() && role == "assistant";
        if blocks.is_empty() && said.is_none_or(str::is_empty) && !is_prefill {
            let who = if role == "user" { "user messages" } else { "all messages" };
            let but = if role == "user" { "" } else { " except for the optional final assistant message" };
            return Err(Refusal::invalid(format!("messages.{at}: {who} must have non-empty content{but}")));
        }
        match turns.last_mut().filter(|last| last.role == role && last.said.is_none() && said.is_none()) {
            Some(last) => last.blocks.extend(blocks),
            None => turns.push(Turn { role, at, blocks, said }),
        }
    }
    Ok(turns)
}

fn unanswered(asked_at: usize, open: &[&str]) -> Refusal {
    Refusal::invalid(format!(
        "messages.{asked_at}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` \
         block must have a corresponding `tool_result` block in the next message.",
        open.join(", ")
    ))
}

/// A turn of the user: the results of all tools come first.
fn user<'a>(turn: &Turn<'a>, open: &[&str], asked_at: usize, draft: &mut Draft) -> Result<(), Refusal> {
    let mut left: BTreeSet<&str> = open.iter().copied().collect();
    let mut said = turn.said.unwrap_or_default().to_owned();
    let mut results = Vec::new();
    let mut has_text = turn.said.is_some();
    for (place, block) in &turn.blocks {
        match text(block, "type") {
            "tool_result" => {
                let id = text(block, "tool_use_id");
                if id.is_empty() {
                    return Err(Refusal::invalid(format!("{place}.tool_result.tool_use_id: Field required")));
                }
                if !open.contains(&id) {
                    return Err(Refusal::invalid(format!(
                        "{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block \
                         must have a corresponding `tool_use` block in the previous message."
                    )));
                }
                if !left.remove(id) {
                    let message = format!(
                        "{place}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
                    );
                    return Err(Refusal::invalid(message));
                }
                if has_text {
                    // A result behind something else is no result of the message before.
                    return Err(unanswered(asked_at, open));
                }
                results.push(result(block, id, place)?);
            }
            "text" => {
                said.push_str(of_text(block)?);
                has_text = true;
            }
            kind @ ("image" | "document" | "search_result") => {
                said.push_str(&format!("[{kind}]"));
                has_text = true;
            }
            other => {
                return Err(unexpected(place, other, "'document', 'image', 'search_result', 'text', 'tool_result'"));
            }
        }
    }
    if !left.is_empty() {
        let left: Vec<&str> = open.iter().copied().filter(|id| left.contains(id)).collect();
        return Err(unanswered(asked_at, &left));
    }
    draft.messages.extend(results);
    if has_text {
        draft.messages.push(Message::user(said));
    }
    Ok(())
}

fn unexpected(place: &str, kind: &str, known: &str) -> Refusal {
    Refusal::invalid(format!(
        "{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {known}"
    ))
}

fn of_text(block: &Value) -> Result<&str, Refusal> {
    let said = text(block, "text");
    if said.is_empty() {
        return Err(Refusal::invalid("messages: text content blocks must be non-empty"));
    }
    if said.trim().is_empty() {
        return Err(Refusal::invalid("messages: text content blocks must contain non-whitespace text"));
    }
    Ok(said)
}

fn result(block: &Value, id: &str, place: &str) -> Result<Message, Refusal> {
    let error = block.get("is_error") == Some(&Value::Bool(true));
    let text = match get(block, "content") {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(_) => {
            let mut all = String::new();
            for part in list(block, "content") {
                all.push_str(match text(part, "type") {
                    "text" => of_text(part)?,
                    _ => "[attachment]",
                });
            }
            all
        }
    };
    if error && text.is_empty() {
        return Err(Refusal::invalid(format!("{place}: content cannot be empty if `is_error` is true")));
    }
    Ok(Message::Tool { id: id.into(), text, error })
}

/// A turn of the model; the ids that it asked under.
fn assistant<'a>(
    turn: &Turn<'a>,
    is_last: bool,
    must_think: bool,
    ids: &mut BTreeSet<&'a str>,
    draft: &mut Draft,
) -> Result<Vec<&'a str>, Refusal> {
    let mut parts: Vec<Part> = turn.said.iter().map(|text| Part::Text { text: (*text).to_owned() }).collect();
    let mut open = Vec::new();
    for (place, block) in &turn.blocks {
        match text(block, "type") {
            "text" => parts.push(Part::Text { text: of_text(block)?.into() }),
            "thinking" => {
                let thought = text(block, "thinking");
                let signed = text(block, "signature");
                if signed.is_empty() {
                    return Err(Refusal::invalid(format!("{place}.thinking.signature: Field required")));
                }
                if signed != signature(thought) {
                    return Err(Refusal::invalid(format!("{place}: Invalid `signature` in `thinking` block")));
                }
                parts.push(reasoning(thought));
            }
            "redacted_thinking" => parts.push(reasoning("")),
            "tool_use" => {
                parts.push(tool_use(block, place, ids)?);
                open.push(text(block, "id"));
            }
            other => return Err(unexpected(place, other, "'redacted_thinking', 'text', 'thinking', 'tool_use'")),
        }
    }
    if is_last
        && let Some(Part::Text { text }) = parts.last()
        && text.ends_with(char::is_whitespace)
    {
        return Err(Refusal::invalid("messages: final assistant content cannot end with trailing whitespace"));
    }
    // The turn goes on after a result, so it must still have the thinking that led to the call.
    let first = turn.blocks.first();
    if must_think
        && !open.is_empty()
        && let Some((place, block)) = first
    {
        let kind = text(block, "type");
        if !matches!(kind, "thinking" | "redacted_thinking") {
            return Err(Refusal::invalid(format!(
                "{place}.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. When `thinking` is enabled, \
                 a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` \
                 and `tool_result` blocks)."
            )));
        }
    }
    draft.messages.push(Message::Assistant { parts });
    Ok(open)
}

fn tool_use<'a>(block: &'a Value, place: &str, ids: &mut BTreeSet<&'a str>) -> Result<Part, Refusal> {
    let id = text(block, "id");
    if id.is_empty() {
        return Err(Refusal::invalid(format!("{place}.tool_use.id: Field required")));
    }
    if !is_name(id, usize::MAX, "_-") {
        return Err(Refusal::invalid(format!("{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")));
    }
    if !ids.insert(id) {
        return Err(Refusal::invalid("messages: `tool_use` ids must be unique"));
    }
    let name = text(block, "name");
    if !is_name(name, 200, "_-") {
        let message = format!("{place}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,200}}$'");
        return Err(Refusal::invalid(message));
    }
    match block.get("input") {
        Some(input @ Value::Object(_)) => {
            Ok(Part::ToolUse { id: id.into(), name: name.into(), args: input.to_string() })
        }
        Some(_) => Err(Refusal::invalid(format!("{place}.tool_use.input: Input should be a valid dictionary"))),
        None => Err(Refusal::invalid(format!("{place}.tool_use.input: Field required"))),
    }
}
