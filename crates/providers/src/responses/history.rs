//! What was said, as this protocol wants to hear it.
//!
//! The protocol is strict and our record is faithful, so they differ. On the wire every function call has an id of its
//! own, arguments that are a JSON object, and exactly one output behind it; reasoning stands directly before what it
//! led to. Anything else makes a server refuse this and every later request.

use super::Responses;
use super::items::waits;
use crate::history::{Ids, NOT_MADE, earlier_result, is_object, result_of};
use crate::media::{Media, data_url, media, name};
use crate::names::wire_name;
use loopd_kernel::model::{Attachment, Message, Part};
use loopd_runtime::ModelRequest;
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// OpenAI's limit.
const LONGEST_ID: usize = 64;

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WireItem<'a> {
    Message {
        role: &'static str,
        content: Content<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a RawValue>,
    },
    FunctionCall {
        call_id: String,
        name: Cow<'a, str>,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: String,
        output: &'a str,
    },
    /// An item as it came.
    #[serde(untagged)]
    Kept(&'a RawValue),
    /// The same without a member that may not go back.
    #[serde(untagged)]
    Members(BTreeMap<String, &'a RawValue>),
}

/// Text, or parts where something comes with it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<InputPart<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type")]
pub(super) enum InputPart<'a> {
    #[serde(rename = "input_text")]
    Text { text: Cow<'a, str> },
    #[serde(rename = "input_image")]
    Image { image_url: String },
    #[serde(rename = "input_file")]
    File { filename: &'a str, file_data: String },
}

const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const FILES: [&str; 1] = ["application/pdf"];

/// What recorded reasoning is good for.
enum Recorded<'a> {
    /// Reasoning, which belongs to the item behind it.
    Reasoning(WireItem<'a>),
    /// The phase of the message behind it.
    Phase(&'a RawValue),
    /// Another item.
    Item(WireItem<'a>),
    /// An item that may not go back, and neither may the reasoning that led to it.
    Dropped,
    /// Nothing here.
    Nothing,
}

/// All messages of `request`.
pub(super) fn items<'a>(model: &Responses, request: &'a ModelRequest) -> Vec<WireItem<'a>> {
    let mut wire = Vec::new();
    let mut ids = Ids::new("call", LONGEST_ID);
    let all = &request.messages;
    let mut used = vec![false; all.len()];
    for at in 0..all.len() {
        match all[at].as_ref() {
            _ if used[at] => {}
            Message::User { text, attachments } => wire.push(with_files(text, attachments)),
            Message::Assistant { parts } => {
                for (id, call_id) in said(model, at, parts, &mut ids, &mut wire) {
                    let (output, _) = result_of(all, &mut used, at, id).unwrap_or((NOT_MADE, true));
                    wire.push(WireItem::FunctionCallOutput { call_id, output });
                }
            }
            // The tool use to which it belongs is gone, for example behind a summary.
            Message::Tool { text, .. } => wire.push(user(earlier_result(text).into())),
        }
    }
    wire
}

const fn user(content: Cow<'_, str>) -> WireItem<'_> {
    WireItem::Message { role: "user", content: Content::Text(content), phase: None }
}

fn with_files<'a>(text: &'a str, attachments: &'a [Attachment]) -> WireItem<'a> {
    if attachments.is_empty() {
        return user(text.into());
    }
    let parts = attachments.iter().map(|attachment| match media(attachment, &IMAGES, &FILES) {
        Media::Image(image) => InputPart::Image { image_url: data_url(image) },
        Media::File(file) => InputPart::File { filename: name(file), file_data: data_url(file) },
        Media::Text(text) => InputPart::Text { text: text.into() },
    });
    let said = (!text.is_empty()).then(|| InputPart::Text { text: text.into() });
    WireItem::Message { role: "user", content: Content::Parts(parts.chain(said).collect()), phase: None }
}

/// Adds what the model said; its tool uses, by the id in the record and the id on the wire.
fn said<'a>(
    model: &Responses,
    at: usize,
    parts: &'a [Part],
    ids: &mut Ids,
    wire: &mut Vec<WireItem<'a>>,
) -> Vec<(&'a str, String)> {
    let mut uses = Vec::new();
    // Reasoning without the item that it led to is refused, so it waits for one.
    let mut reasoning = Vec::new();
    let mut phase = None;
    for part in parts {
        let item = match part {
            Part::Text { text } if text.is_empty() => continue,
            Part::Text { text } => {
                WireItem::Message { role: "assistant", content: Content::Text(text.into()), phase: phase.take() }
            }
            Part::ToolUse { id, name, args } => {
                let call_id = ids.on_wire(id, at, uses.len());
                uses.push((id.as_str(), call_id.clone()));
                let arguments = if is_object(args) { args } else { "{}" };
                WireItem::FunctionCall { call_id, name: wire_name(name), arguments }
            }
            Part::Reasoning { opaque, origin } => match recorded(model, opaque, origin) {
                Recorded::Reasoning(item) => {
                    reasoning.push(item);
                    continue;
                }
                Recorded::Phase(word) => {
                    phase = Some(word);
                    continue;
                }
                Recorded::Item(item) => item,
                Recorded::Dropped => {
                    reasoning.clear();
                    continue;
                }
                Recorded::Nothing => continue,
            },
        };
        wire.append(&mut reasoning);
        wire.push(item);
    }
    uses
}

/// A recorded item that may go back. Whatever a journal or a fixture from elsewhere says, nothing gets onto the wire
/// this way that speaks for somebody, names something at the server, or is the result of a call.
fn recorded<'a>(model: &Responses, opaque: &'a str, origin: &str) -> Recorded<'a> {
    if *origin != model.origin {
        return Recorded::Nothing;
    }
    let Ok(raw) = serde_json::from_str::<&RawValue>(opaque) else {
        return Recorded::Nothing;
    };
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(opaque).unwrap_or_default();
    let kind: String = members.get("type").and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    match kind.as_str() {
        "message" => match members.get("phase").filter(|raw| raw.get().starts_with('"')) {
            Some(phase) => Recorded::Phase(phase),
            None => Recorded::Dropped,
        },
        "reasoning" if !holds_itself(&members) => Recorded::Nothing,
        // How far an item had got is for whoever receives it; sent back with reasoning, it is refused.
        "reasoning" => Recorded::Reasoning(match members.remove("status") {
            Some(_) => WireItem::Members(members),
            None => WireItem::Kept(raw),
        }),
        "" | "function_call" | "item_reference" => Recorded::Dropped,
        kind if waits(kind) || kind.ends_with("_output") || members.contains_key("role") => Recorded::Dropped,
        _ => Recorded::Item(WireItem::Kept(raw)),
    }
}

/// Whether reasoning has its content in it. Without, it is the name of something at the server, which kept nothing.
fn holds_itself(members: &BTreeMap<String, &RawValue>) -> bool {
    let says = |name: &str, empty: [&str; 2]| members.get(name).is_some_and(|raw| !empty.contains(&raw.get()));
    says("encrypted_content", ["null", "\"\""]) || says("content", ["null", "[]"])
}
