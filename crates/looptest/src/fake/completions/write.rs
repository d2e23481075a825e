//! An answer as a chat completion.

use crate::fake::answer::{CREATED, Content, Kind, Piece, Said, shreds, words};
use crate::fake::checks::Taken;
use loopd_kernel::model::StopReason;
use serde_json::{Value, json};

/// Writes an answer, streamed or whole.
pub(in crate::fake) fn write(said: &Said, taken: &Taken) -> Content {
    if taken.stream {
        Content::Events(stream(said, taken.stream_usage))
    } else {
        Content::Whole(whole(said).to_string())
    }
}

fn finish(said: &Said) -> &str {
    match &said.stop {
        StopReason::EndTurn => "stop",
        StopReason::ToolUse => "tool_calls",
        StopReason::Length => "length",
        // A model that refuses has stopped; its filter has not let it speak.
        StopReason::Refusal if said.text.is_some() => "stop",
        StopReason::Refusal => "content_filter",
        StopReason::Other(word) => word,
    }
}

fn usage(said: &Said) -> Value {
    let (input, output) = (said.all_input(), said.all_output());
    json!({
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "prompt_tokens_details": {"cached_tokens": said.usage.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": said.usage.reasoning, "audio_tokens": 0, "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}

fn id(said: &Said) -> String {
    format!("chatcmpl-fake{}", said.number)
}

fn whole(said: &Said) -> Value {
    let calls: Vec<Value> = said
        .uses
        .iter()
        .map(|(id, name, args)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": args}}))
        .collect();
    let (content, refusal) = if said.refused() { (None, said.text.as_ref()) } else { (said.text.as_ref(), None) };
    let mut message = json!({"role": "assistant", "content": content, "refusal": refusal, "annotations": []});
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    if let Some(reasoning) = &said.reasoning {
        message["reasoning_content"] = json!(reasoning);
    }
    json!({
        "id": id(said), "object": "chat.completion", "created": CREATED, "model": said.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish(said)}],
        "usage": usage(said), "service_tier": "default", "system_fingerprint": "fp_fake",
    })
}

fn stream(said: &Said, with_usage: bool) -> Vec<Piece> {
    let chunk = |choices: Value, usage: Option<Value>| {
        let mut chunk = json!({
            "id": id(said), "object": "chat.completion.chunk", "created": CREATED, "model": said.model,
            "choices": choices, "service_tier": "default", "system_fingerprint": "fp_fake",
        });
        if with_usage {
            chunk["usage"] = usage.unwrap_or_default();
        }
        chunk
    };
    let delta = |delta: Value, finish: Option<&str>| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]), None)
    };
    let mut pieces =
        vec![Piece::data(Kind::Plain, &delta(json!({"role": "assistant", "content": "", "refusal": null}), None))];
    for word in said.reasoning.iter().flat_map(|text| words(text)) {
        pieces.push(Piece::data(Kind::Plain, &delta(json!({"reasoning_content": word}), None)));
    }
    let member = if said.refused() { "refusal" } else { "content" };
    for word in said.text.iter().flat_map(|text| words(text)) {
        pieces.push(Piece::data(Kind::Word, &delta(json!({ member: word }), None)));
    }
    for (index, (id, name, args)) in said.uses.iter().enumerate() {
        let function = json!({"name": name, "arguments": ""});
        let first = json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]});
        pieces.push(Piece::data(Kind::Plain, &delta(first, None)));
        for shred in shreds(args) {
            let more = json!({"tool_calls": [{"index": index, "function": {"arguments": shred}}]});
            pieces.push(Piece::data(Kind::Plain, &delta(more, None)));
        }
    }
    pieces.push(Piece::data(Kind::Plain, &delta(json!({}), Some(finish(said)))));
    if with_usage {
        pieces.push(Piece::data(Kind::Usage, &chunk(json!([]), Some(usage(said)))));
    }
    pieces.push(Piece { kind: Kind::End, text: "data: [DONE]\n\n".into() });
    pieces
}
