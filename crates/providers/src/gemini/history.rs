//! What was said, as this protocol wants to hear it.
//!
//! The protocol is strict and our record is faithful, so they differ. On the wire users and the model take turns, the
//! user begins, no part is empty, and directly behind a turn with function calls stands one turn with as many
//! responses in the same order; anything else makes the server refuse this and every later request.
//!
//! A signature is recorded as reasoning directly before the part that it signs, and goes back on that part; only to
//! the provider and the model that wrote it.

use super::Gemini;
use super::assemble::is_made_up;
use super::names::on_wire;
use crate::history::{NOT_MADE, earlier_result, result_of};
use crate::media::{Media, media};
use loopd_kernel::model::{Attachment, Message, Part};
use loopd_runtime::ModelRequest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

const USER: &str = "user";
const MODEL: &str = "model";
/// Stands before a history that begins with the model, for example behind a summary.
const BEGINNING: &str = "(The beginning of this conversation is not shown.)";
/// Google's own word for a call that another model made, or that was made up: its documents name it for histories
/// that come from elsewhere, which are refused without it.
const STAND_IN: &str = "skip_thought_signature_validator";

#[derive(Debug, Serialize)]
pub(super) struct Content<'a> {
    role: &'static str,
    parts: Vec<WirePart<'a>>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WirePart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<Inline<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<WireResult<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<Text<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Inline<'a> {
    mime_type: &'a str,
    data: &'a str,
}

const IMAGES: [&str; 5] = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];
const FILES: [&str; 7] =
    ["application/pdf", "audio/wav", "audio/mp3", "audio/mpeg", "audio/ogg", "audio/flac", "video/mp4"];

/// Text of ours, or text that goes back byte for byte.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Text<'a> {
    Own(Cow<'a, str>),
    Recorded(&'a RawValue),
}

#[derive(Debug, Serialize)]
struct WireCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    args: Args<'a>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Args<'a> {
    Recorded(&'a RawValue),
    /// `{}`, in the place of what is no object.
    None {},
}

#[derive(Debug, Serialize)]
struct WireResult<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    response: Response<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Response<'a> {
    Output(&'a str),
    Error(&'a str),
}

/// Reasoning as the assembler records it. Nothing else gets onto the wire this way, whatever a journal or a fixture
/// from elsewhere says.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Recorded<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    thought: bool,
    #[serde(borrow)]
    thought_signature: Option<&'a RawValue>,
}

impl<'a> WirePart<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: Some(Text::Own(text.into())), ..Self::default() }
    }
}

/// The turns in the making.
#[derive(Default)]
struct Turns<'a> {
    all: Vec<Content<'a>>,
    /// The last turn holds results and nothing else.
    closed: bool,
}

impl<'a> Turns<'a> {
    fn say(&mut self, role: &'static str, parts: Vec<WirePart<'a>>) {
        if parts.is_empty() {
            return;
        }
        if self.all.is_empty() && role == MODEL {
            self.say(USER, vec![WirePart::text(BEGINNING)]);
        }
        let closed = std::mem::take(&mut self.closed);
        match self.all.last_mut() {
            Some(last) if last.role == role && !closed => last.parts.extend(parts),
            Some(_) | None => self.all.push(Content { role, parts }),
        }
    }

    fn results(&mut self, parts: Vec<WirePart<'a>>) {
        if !parts.is_empty() {
            self.all.push(Content { role: USER, parts });
            self.closed = true;
        }
    }
}

/// All messages.
pub(super) fn contents<'a>(model: &Gemini, request: &'a ModelRequest) -> Vec<Content<'a>> {
    let mut turns = Turns::default();
    let all = &request.messages;
    let mut used = vec![false; all.len()];
    for at in 0..all.len() {
        match all[at].as_ref() {
            _ if used[at] => {}
            Message::User { text, attachments } => {
                let said = (!text.is_empty()).then(|| WirePart::text(text));
                turns.say(USER, attachments.iter().map(attached).chain(said).collect());
            }
            Message::Assistant { parts } => {
                turns.say(MODEL, said(model, parts));
                let results = ids(parts).into_iter().map(|(own, id, name)| {
                    let response = response(all, &mut used, at, own);
                    let function_response = Some(WireResult { id, name: on_wire(name), response });
                    WirePart { function_response, ..WirePart::default() }
                });
                turns.results(results.collect());
            }
            // The tool use to which it belongs is gone, for example behind a summary.
            Message::Tool { text, .. } => {
                turns.say(USER, vec![WirePart::text(earlier_result(text))]);
            }
        }
    }
    turns.all
}

fn attached(attachment: &Attachment) -> WirePart<'_> {
    match media(attachment, &IMAGES, &FILES) {
        Media::Image(media) | Media::File(media) => {
            let inline_data = Some(Inline { mime_type: &media.media_type, data: &media.data });
            WirePart { inline_data, ..WirePart::default() }
        }
        Media::Text(text) => WirePart::text(text),
    }
}

/// The result of tool use `id` of the message at `at`.
fn response<'a>(all: &'a [Arc<Message>], used: &mut [bool], at: usize, id: &str) -> Response<'a> {
    match result_of(all, used, at, id) {
        Some((text, false)) => Response::Output(text),
        Some((text, true)) => Response::Error(text),
        None => Response::Error(NOT_MADE),
    }
}

/// The tool uses of a message: id, id on the wire, name. An id goes back where the server gave it and it tells the
/// calls apart; calls without ids are matched by their order.
fn ids(parts: &[Part]) -> Vec<(&str, Option<&str>, &str)> {
    let mut seen = BTreeSet::new();
    let uses = parts.iter().filter_map(|part| match part {
        Part::ToolUse { id, name, .. } => Some((id.as_str(), name.as_str())),
        Part::Text { .. } | Part::Reasoning { .. } => None,
    });
    uses.map(|(id, name)| {
        let wire = Some(id).filter(|id| !id.is_empty() && !is_made_up(id) && seen.insert(*id));
        (id, wire, name)
    })
    .collect()
}

/// The parts of a model's message that can go back.
fn said<'a>(model: &Gemini, parts: &'a [Part]) -> Vec<WirePart<'a>> {
    let mut wire = Vec::with_capacity(parts.len());
    let mut signature = None;
    let mut ids = ids(parts).into_iter();
    let mut first_call = true;
    for part in parts {
        match part {
            Part::Reasoning { opaque, origin } if *origin == model.origin => match recorded(opaque) {
                Some(Recorded { text: None, thought_signature, .. }) => signature = thought_signature,
                Some(Recorded { text, thought, thought_signature }) => wire.push(WirePart {
                    text: text.map(Text::Recorded),
                    thought,
                    thought_signature: thought_signature.map(Text::Recorded),
                    ..WirePart::default()
                }),
                None => {}
            },
            Part::Reasoning { .. } => {}
            Part::Text { text } => {
                let thought_signature = signature.take().map(Text::Recorded);
                if !text.is_empty() {
                    wire.push(WirePart { thought_signature, ..WirePart::text(text) });
                }
            }
            Part::ToolUse { name, args, .. } => {
                let own = signature.take().map(Text::Recorded);
                // The first call of a turn must be signed, the others are signed with it.
                let stand_in = || (first_call && model.stand_in_signatures).then(|| Text::Own(STAND_IN.into()));
                let thought_signature = own.or_else(stand_in);
                first_call = false;
                let id = ids.next().and_then(|(_, id, _)| id);
                let function_call = Some(WireCall { id, name: on_wire(name), args: object(args) });
                wire.push(WirePart { function_call, thought_signature, ..WirePart::default() });
            }
        }
    }
    wire
}

/// Recorded reasoning that may go back: what is not signed says nothing to the model that it would not find again.
fn recorded(opaque: &str) -> Option<Recorded<'_>> {
    let recorded: Recorded<'_> = serde_json::from_str(opaque).ok()?;
    // Text that holds half of a character is refused.
    let is_text = |raw: &RawValue| serde_json::from_str::<String>(raw.get()).is_ok();
    let fits = recorded.thought_signature.is_some_and(is_text) && recorded.text.is_none_or(is_text);
    fits.then_some(recorded)
}

/// The arguments as they are, where they are an object that the server can read: half of a character and a number
/// beyond all floats are JSON, and are refused.
fn object(args: &str) -> Args<'_> {
    let own: Option<&RawValue> = serde_json::from_str::<Value>(args).ok().and_then(|_| serde_json::from_str(args).ok());
    own.filter(|value| value.get().starts_with('{')).map_or(Args::None {}, Args::Recorded)
}
