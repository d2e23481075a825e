//! What was said, as this protocol wants to hear it.
//!
//! The protocol is strict and our record is faithful, so they differ. On the wire the two sides take turns, every tool
//! use has an id of its own and arguments that are a JSON object, and the message behind it begins with the results of
//! all its tool uses, in their order; anything else makes a server refuse this and every later request.

use super::Anthropic;
use super::blocks::is_kept;
use crate::history::{Ids, NOT_MADE, earlier_result, result_of};
use crate::media::{Media, media};
use crate::names::wire_name;
use loopd_kernel::model::{Attachment, Message, Part};
use loopd_runtime::ModelRequest;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

const LONGEST_ID: usize = 128;

/// Says that the prompt up to here may be read from a cache next time.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CacheMark {
    r#type: &'static str,
}

impl CacheMark {
    pub(super) const EPHEMERAL: Self = Self { r#type: "ephemeral" };
}

#[derive(Debug, Serialize)]
pub(super) struct WireMessage<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    User,
    Assistant,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheMark>,
    },
    ToolUse {
        id: String,
        name: Cow<'a, str>,
        input: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheMark>,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheMark>,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    #[serde(untagged)]
    Kept(&'a RawValue),
}

#[derive(Debug, Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const FILES: [&str; 1] = ["application/pdf"];

/// The messages, and the names of all tools that were used in them.
#[derive(Debug)]
pub(super) struct Turns<'a> {
    pub(super) messages: Vec<WireMessage<'a>>,
    pub(super) used: BTreeSet<Cow<'a, str>>,
    ids: Ids,
}

/// All messages of `request`.
pub(super) fn turns<'a>(model: &Anthropic, request: &'a ModelRequest) -> Turns<'a> {
    let ids = Ids::new("toolu", LONGEST_ID);
    let mut turns = Turns { messages: Vec::new(), used: BTreeSet::new(), ids };
    let all = &request.messages;
    let mut answered = vec![false; all.len()];
    for at in 0..all.len() {
        match all[at].as_ref() {
            _ if answered[at] => {}
            Message::User { text, attachments } => {
                attachments.iter().for_each(|attachment| turns.attach(attachment));
                turns.text(Role::User, text.into());
            }
            Message::Assistant { parts } => {
                let uses = turns.assistant(model, at, parts);
                for (id, tool_use_id) in uses {
                    turns.add(Role::User, result(all, &mut answered, at, id, tool_use_id));
                }
            }
            // The tool use to which it belongs is gone, for example behind a summary.
            Message::Tool { text, .. } => {
                turns.text(Role::User, earlier_result(text).into());
            }
        }
    }
    turns.finish(model.prompt_cache);
    turns
}

impl<'a> Turns<'a> {
    fn add(&mut self, role: Role, block: Block<'a>) {
        match self.messages.last_mut() {
            Some(last) if last.role == role => last.content.push(block),
            Some(_) | None => {
                // A conversation begins with a person's words, here.
                if self.messages.is_empty() && role == Role::Assistant {
                    let text = Block::Text { text: "Continue.".into(), cache_control: None };
                    self.messages.push(WireMessage { role: Role::User, content: vec![text] });
                }
                self.messages.push(WireMessage { role, content: vec![block] });
            }
        }
    }

    /// Blank text is refused, and says nothing.
    fn text(&mut self, role: Role, text: Cow<'a, str>) {
        if !text.trim().is_empty() {
            self.add(role, Block::Text { text, cache_control: None });
        }
    }

    fn attach(&mut self, attachment: &'a Attachment) {
        let source = Source { r#type: "base64", media_type: &attachment.media_type, data: &attachment.data };
        match media(attachment, &IMAGES, &FILES) {
            Media::Image(_) => self.add(Role::User, Block::Image { source }),
            Media::File(file) => self.add(Role::User, Block::Document { source, title: file.name.as_deref() }),
            Media::Text(text) => self.text(Role::User, text.into()),
        }
    }

    /// What the model said; its tool uses, by the id in the record and the id on the wire.
    fn assistant(&mut self, model: &Anthropic, at: usize, parts: &'a [Part]) -> Vec<(&'a str, String)> {
        let mut uses = Vec::new();
        for part in parts {
            match part {
                Part::Text { text } => self.text(Role::Assistant, text.into()),
                Part::ToolUse { id, name, args } => {
                    let wire_id = self.ids.on_wire(id, at, uses.len());
                    let name = wire_name(name);
                    self.used.insert(name.clone());
                    let input = object(args);
                    self.add(Role::Assistant, Block::ToolUse { id: wire_id.clone(), name, input, cache_control: None });
                    uses.push((id.as_str(), wire_id));
                }
                Part::Reasoning { opaque, origin } => {
                    if *origin == model.origin
                        && let Some(raw) = kept(opaque)
                    {
                        self.add(Role::Assistant, Block::Kept(raw));
                    }
                }
            }
        }
        uses
    }

    fn finish(&mut self, prompt_cache: bool) {
        let Some(last) = self.messages.last_mut() else {
            return;
        };
        // The model would have to go on behind a space, which is refused.
        if last.role == Role::Assistant
            && let Some(Block::Text { text, .. }) = last.content.last_mut()
        {
            let trimmed = text.trim_end().len();
            match text {
                Cow::Borrowed(text) => *text = &text[..trimmed],
                Cow::Owned(text) => text.truncate(trimmed),
            }
        }
        if !prompt_cache {
            return;
        }
        for block in last.content.iter_mut().rev() {
            match block {
                Block::Text { cache_control, .. }
                | Block::ToolUse { cache_control, .. }
                | Block::ToolResult { cache_control, .. } => {
                    *cache_control = Some(CacheMark::EPHEMERAL);
                    return;
                }
                // These take no mark.
                Block::Kept(_) | Block::Image { .. } | Block::Document { .. } => {}
            }
        }
    }
}

/// The result of tool use `id` of the message at `at`.
fn result<'a>(all: &'a [Arc<Message>], answered: &mut [bool], at: usize, id: &str, tool_use_id: String) -> Block<'a> {
    let (text, is_error) = result_of(all, answered, at, id).unwrap_or((NOT_MADE, true));
    // Blank text is refused; a result may be nothing, an error may not.
    let content = if text.trim().is_empty() { is_error.then_some("It failed without a word.") } else { Some(text) };
    Block::ToolResult { tool_use_id, content, is_error, cache_control: None }
}

/// The arguments, where they are what the protocol demands.
fn object(args: &str) -> &RawValue {
    let given = serde_json::from_str::<&RawValue>(args).ok().filter(|value| value.get().starts_with('{'));
    // Half of a character is JSON, and is refused.
    let has_halves = args.to_ascii_lowercase().contains("\\ud") && serde_json::from_str::<Value>(args).is_err();
    given.filter(|_| !has_halves).unwrap_or_else(|| empty())
}

fn empty() -> &'static RawValue {
    serde_json::from_str("{}").unwrap_or(RawValue::NULL)
}

/// A recorded block that may go back. Nothing else gets onto the wire this way, whatever a journal or a fixture from
/// elsewhere says.
fn kept(opaque: &str) -> Option<&RawValue> {
    #[derive(serde::Deserialize)]
    struct Kind {
        r#type: String,
    }
    let raw: &RawValue = serde_json::from_str(opaque).ok()?;
    let kind: Kind = serde_json::from_str(raw.get()).ok()?;
    is_kept(&kind.r#type).then_some(raw)
}
