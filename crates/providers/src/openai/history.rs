//! What was said, as this protocol wants to hear it.
//!
//! The protocol is strict and our record is faithful, so they differ: the record holds what a model really wrote, and
//! messages in the order in which they came. On the wire every tool use has arguments that are a JSON object, and its
//! one result directly behind it; anything else makes a server refuse this and every later request.

use super::{OpenAi, ReplayReasoning};
use crate::history::{NOT_MADE, earlier_result, is_object, result_of};
use crate::media::{Media, data_url, media, name};
use loopd_kernel::model::{Attachment, Message, Part, ToolOffer};
use loopd_runtime::ModelRequest;
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// OpenAI's limit.
const LONGEST_ID: usize = 40;
/// OpenAI's limit.
const LONGEST_NAME: usize = 64;

#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(super) enum WireMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
        #[serde(flatten)]
        reasoning: BTreeMap<String, &'a RawValue>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: &'a str,
    },
}

/// Most servers know a plain text only; parts stand where something comes with it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum UserContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<UserPart<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum UserPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: WireUrl },
    File { file: WireFile<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct WireUrl {
    url: String,
}

#[derive(Debug, Serialize)]
pub(super) struct WireFile<'a> {
    filename: &'a str,
    file_data: String,
}

const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const FILES: [&str; 1] = ["application/pdf"];

fn user<'a>(text: &'a str, attachments: &'a [Attachment]) -> UserContent<'a> {
    if attachments.is_empty() {
        return UserContent::Text(text.into());
    }
    let parts = attachments.iter().map(|attachment| match media(attachment, &IMAGES, &FILES) {
        Media::Image(image) => UserPart::ImageUrl { image_url: WireUrl { url: data_url(image) } },
        Media::File(file) => UserPart::File { file: WireFile { filename: name(file), file_data: data_url(file) } },
        Media::Text(text) => UserPart::Text { text: text.into() },
    });
    let said = (!text.is_empty()).then(|| UserPart::Text { text: text.into() });
    UserContent::Parts(parts.chain(said).collect())
}

#[derive(Debug, Serialize)]
pub(super) struct WireCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: WireCallFunction<'a>,
}

#[derive(Debug, Serialize)]
struct WireCallFunction<'a> {
    name: Cow<'a, str>,
    arguments: &'a str,
}

/// The system text and all messages.
pub(super) fn messages<'a>(model: &OpenAi, request: &'a ModelRequest) -> Vec<WireMessage<'a>> {
    let system = request.constants.system.as_deref().filter(|text| !text.is_empty());
    let mut wire: Vec<WireMessage<'a>> = system.map(|content| WireMessage::System { content }).into_iter().collect();
    let all = &request.messages;
    let mut used = vec![false; all.len()];
    for at in 0..all.len() {
        match all[at].as_ref() {
            _ if used[at] => {}
            Message::User { text, attachments } => wire.push(WireMessage::User { content: user(text, attachments) }),
            Message::Assistant { parts } => {
                let calls = calls(parts, at, &request.constants.tools);
                let ids: Vec<Cow<'a, str>> = calls.iter().map(|call| call.id.clone()).collect();
                wire.extend(assistant(model, parts, calls));
                let uses = parts.iter().filter_map(|part| match part {
                    Part::ToolUse { id, .. } => Some(id.as_str()),
                    Part::Text { .. } | Part::Reasoning { .. } => None,
                });
                for (id, tool_call_id) in uses.zip(ids) {
                    let (content, _) = result_of(all, &mut used, at, id).unwrap_or((NOT_MADE, true));
                    wire.push(WireMessage::Tool { tool_call_id, content });
                }
            }
            // The tool use to which it belongs is gone, for example behind a summary.
            Message::Tool { text, .. } => {
                wire.push(WireMessage::User { content: UserContent::Text(earlier_result(text).into()) });
            }
        }
    }
    wire
}

fn assistant<'a>(model: &OpenAi, parts: &'a [Part], tool_calls: Vec<WireCall<'a>>) -> Option<WireMessage<'a>> {
    let mut text = String::new();
    let mut reasoning = BTreeMap::new();
    let wants_reasoning = match model.replay_reasoning {
        ReplayReasoning::Never => false,
        ReplayReasoning::ToolTurns => !tool_calls.is_empty(),
        ReplayReasoning::Always => true,
    };
    for part in parts {
        match part {
            Part::Text { text: more } => text.push_str(more),
            Part::ToolUse { .. } => {}
            Part::Reasoning { opaque, origin } => {
                if wants_reasoning && *origin == model.origin {
                    reasoning = members(opaque);
                }
            }
        }
    }
    // A message that says nothing here, for example another provider's reasoning alone, is no message.
    if text.is_empty() && tool_calls.is_empty() && reasoning.is_empty() {
        return None;
    }
    let content = (!text.is_empty() || tool_calls.is_empty()).then_some(text);
    Some(WireMessage::Assistant { content, tool_calls, reasoning })
}

/// The members of recorded reasoning that may go back. Nothing else gets onto the wire this way, whatever a journal
/// or a fixture from elsewhere says.
fn members(opaque: &str) -> BTreeMap<String, &RawValue> {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(opaque).unwrap_or_default();
    members.retain(|name, _| matches!(name.as_str(), "reasoning_content" | "reasoning" | "reasoning_details"));
    members
}

fn calls<'a>(parts: &'a [Part], message: usize, offered: &[ToolOffer]) -> Vec<WireCall<'a>> {
    let uses = parts.iter().filter_map(|part| match part {
        Part::ToolUse { id, name, args } => Some((id, name, args)),
        Part::Text { .. } | Part::Reasoning { .. } => None,
    });
    let mut ids = BTreeSet::new();
    uses.enumerate()
        .map(|(slot, (id, name, args))| WireCall {
            id: if (1..=LONGEST_ID).contains(&id.len()) && ids.insert(id) {
                id.into()
            } else {
                format!("call_m{message}_{slot}").into()
            },
            r#type: "function",
            function: WireCallFunction {
                name: if offered.iter().any(|offer| offer.name == *name) { name.into() } else { tame(name) },
                arguments: if is_object(args) { args } else { "{}" },
            },
        })
        .collect()
}

/// A name that a model made up, within the alphabet of the protocol.
fn tame(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(fits) {
        return name.into();
    }
    let tame: String = name.chars().take(LONGEST_NAME).map(|c| if fits(c) { c } else { '_' }).collect();
    if tame.is_empty() { "unknown".into() } else { tame.into() }
}
