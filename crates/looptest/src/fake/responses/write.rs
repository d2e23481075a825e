//! An answer as a Response.

use crate::fake::answer::{CREATED, Content, Kind, Piece, Said, shreds, words};
use crate::fake::checks::Taken;
use loopd_kernel::model::StopReason;
use serde_json::{Value, json};

/// An answer, and what a later request may go on from.
pub(in crate::fake) struct Written {
    pub(in crate::fake) content: Content,
    pub(in crate::fake) id: String,
    pub(in crate::fake) output: Vec<Value>,
    pub(in crate::fake) whole: Value,
}

/// Writes an answer, streamed or whole.
pub(in crate::fake) fn write(said: &Said, taken: &Taken, body: &Value) -> Written {
    let output = output(said, taken.encrypted);
    let whole = response(said, body, &output, true);
    let content = if taken.stream {
        Content::Events(stream(said, body, &output, &whole))
    } else {
        Content::Whole(whole.to_string())
    };
    Written { content, id: id(said), output, whole }
}

fn id(said: &Said) -> String {
    format!("resp_fake{}", said.number)
}

/// The items of the answer: reasoning, message, calls.
fn output(said: &Said, encrypted: bool) -> Vec<Value> {
    let number = said.number;
    let status = if said.stop == StopReason::Length { "incomplete" } else { "completed" };
    let mut items = Vec::new();
    if let Some(text) = &said.reasoning {
        let summary = json!([{"type": "summary_text", "text": text}]);
        let mut item = json!({"id": format!("rs_fake{number}"), "type": "reasoning", "summary": summary});
        if encrypted {
            item["encrypted_content"] = json!(format!("encrypted-{number}"));
        }
        items.push(item);
    }
    if let Some(text) = &said.text {
        let part = if said.refused() {
            json!({"type": "refusal", "refusal": text})
        } else {
            json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
        };
        items.push(json!({
            "id": format!("msg_fake{number}"), "type": "message", "status": status, "role": "assistant",
            "content": [part],
        }));
    }
    for (slot, (call_id, name, args)) in said.uses.iter().enumerate() {
        items.push(json!({
            "id": format!("fc_fake{number}_{slot}"), "type": "function_call", "status": "completed",
            "call_id": call_id, "name": name, "arguments": args,
        }));
    }
    items
}

/// The whole object; before its end it has no output and no usage.
fn response(said: &Said, body: &Value, output: &[Value], is_done: bool) -> Value {
    let reason = match &said.stop {
        StopReason::Length => Some("max_output_tokens"),
        // Where the filter has not let the model speak.
        StopReason::Refusal if said.text.is_none() => Some("content_filter"),
        StopReason::Other(_) | StopReason::Refusal | StopReason::EndTurn | StopReason::ToolUse => None,
    };
    let status = match (is_done, reason) {
        (false, _) => "in_progress",
        (true, Some(_)) => "incomplete",
        (true, None) => "completed",
    };
    let own = |name: &str, usual: Value| body.get(name).filter(|value| !value.is_null()).cloned().unwrap_or(usual);
    let (input, all_output) = (said.all_input(), said.all_output());
    let usage = json!({
        "input_tokens": input, "output_tokens": all_output, "total_tokens": input + all_output,
        "input_tokens_details": {"cached_tokens": said.usage.cache_read, "cache_write_tokens": said.usage.cache_write},
        "output_tokens_details": {"reasoning_tokens": said.usage.reasoning},
    });
    json!({
        "id": id(said), "object": "response", "created_at": CREATED, "status": status, "background": false,
        "error": null, "incomplete_details": reason.filter(|_| is_done).map(|reason| json!({"reason": reason})),
        "instructions": own("instructions", Value::Null), "max_output_tokens": own("max_output_tokens", Value::Null),
        "model": said.model, "output": if is_done { output } else { &[] },
        "parallel_tool_calls": own("parallel_tool_calls", json!(true)),
        "previous_response_id": own("previous_response_id", Value::Null),
        "reasoning": own("reasoning", json!({"effort": null, "summary": null})),
        "store": own("store", json!(true)), "temperature": own("temperature", json!(1.0)),
        "text": own("text", json!({"format": {"type": "text"}})), "tool_choice": own("tool_choice", json!("auto")),
        "tools": own("tools", json!([])), "top_p": own("top_p", json!(1.0)),
        "truncation": own("truncation", json!("disabled")), "metadata": own("metadata", json!({})),
        "service_tier": "default", "usage": if is_done { usage } else { Value::Null },
    })
}

/// Events that are numbered as they are written.
#[derive(Default)]
struct Events(Vec<Piece>);

impl Events {
    fn add(&mut self, kind: Kind, name: &str, mut event: Value) {
        event["type"] = json!(name);
        event["sequence_number"] = json!(self.0.len());
        self.0.push(Piece::named(kind, &event));
    }

    fn plain(&mut self, name: &str, event: Value) {
        self.add(Kind::Plain, name, event);
    }
}

fn stream(said: &Said, body: &Value, output: &[Value], whole: &Value) -> Vec<Piece> {
    let mut events = Events::default();
    let begun = response(said, body, output, false);
    events.plain("response.created", json!({"response": begun}));
    events.plain("response.in_progress", json!({"response": begun}));
    for (index, item) in output.iter().enumerate() {
        match item.get("type").and_then(Value::as_str) {
            Some("reasoning") => thought(&mut events, index, item, said.reasoning.as_deref().unwrap_or_default()),
            Some("message") => message(&mut events, index, item, said),
            _ => call(&mut events, index, item),
        }
        events.plain("response.output_item.done", json!({"output_index": index, "item": item}));
    }
    let is_complete = whole.get("status").and_then(Value::as_str) == Some("completed");
    let name = if is_complete { "response.completed" } else { "response.incomplete" };
    events.add(Kind::End, name, json!({"response": whole}));
    events.0
}

/// Says that an item begins, with these members still empty.
fn begin(events: &mut Events, index: usize, item: &Value, empty: &[(&str, Value)]) -> Value {
    let mut first = item.clone();
    for (name, value) in empty {
        first[*name] = value.clone();
    }
    events.plain("response.output_item.added", json!({"output_index": index, "item": first}));
    item.get("id").cloned().unwrap_or_default()
}

fn thought(events: &mut Events, index: usize, item: &Value, text: &str) {
    let id = begin(events, index, item, &[("summary", json!([]))]);
    let at = |mut event: Value| {
        event["item_id"] = id.clone();
        event["output_index"] = json!(index);
        event["summary_index"] = json!(0);
        event
    };
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    events.plain("response.reasoning_summary_part.added", at(json!({"part": part("")})));
    for word in words(text) {
        events.plain("response.reasoning_summary_text.delta", at(json!({"delta": word})));
    }
    events.plain("response.reasoning_summary_text.done", at(json!({"text": text})));
    events.plain("response.reasoning_summary_part.done", at(json!({"part": part(text)})));
}

fn message(events: &mut Events, index: usize, item: &Value, said: &Said) {
    let id = begin(events, index, item, &[("content", json!([])), ("status", json!("in_progress"))]);
    let text = said.text.as_deref().unwrap_or_default();
    let at = |mut event: Value| {
        event["item_id"] = id.clone();
        event["output_index"] = json!(index);
        event["content_index"] = json!(0);
        event
    };
    let part = item.pointer("/content/0").cloned().unwrap_or_default();
    let member = if said.refused() { "refusal" } else { "text" };
    let mut empty = part.clone();
    empty[member] = json!("");
    events.plain("response.content_part.added", at(json!({"part": empty})));
    let name = if said.refused() { "response.refusal" } else { "response.output_text" };
    for word in words(text) {
        events.add(Kind::Word, &format!("{name}.delta"), at(json!({"delta": word, "logprobs": []})));
    }
    events.plain(&format!("{name}.done"), at(json!({ member: text, "logprobs": [] })));
    events.plain("response.content_part.done", at(json!({"part": part})));
}

fn call(events: &mut Events, index: usize, item: &Value) {
    let id = begin(events, index, item, &[("arguments", json!("")), ("status", json!("in_progress"))]);
    let member = |name: &str| item.get(name).cloned().unwrap_or_default();
    let args = member("arguments");
    for shred in shreds(args.as_str().unwrap_or_default()) {
        let event = json!({"item_id": id, "output_index": index, "delta": shred});
        events.plain("response.function_call_arguments.delta", event);
    }
    let event = json!({"item_id": id, "output_index": index, "arguments": args, "name": member("name")});
    events.plain("response.function_call_arguments.done", event);
}
