//! The blocks of one answer, as they grow.

use super::assemble::Belongs;
use super::event::{Delta, WireBlock};
use super::schema::AnswerShape;
use crate::wire::{GrowingText, JsonStr, JsonText};
use loopd_kernel::model::Part;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The tool by which an answer with a schema arrives. It never stands beside other tools.
pub(super) const ANSWER: &str = "answer";

/// Blocks that have no neutral form and that the server wants to see again as they were.
pub(super) fn is_kept(kind: &str) -> bool {
    matches!(kind, "thinking" | "redacted_thinking" | "server_tool_use" | "mcp_tool_use" | "mcp_tool_result")
        || (kind.ends_with("_tool_result") && kind != "tool_result")
}

#[derive(Debug)]
pub(super) enum Block {
    Text(GrowingText),
    Use(Use),
    /// Its members in their exact text.
    Kept {
        members: BTreeMap<String, String>,
        input: GrowingText,
    },
}

#[derive(Debug)]
pub(super) struct Use {
    id: String,
    name: String,
    /// The arguments of the block's beginning: all of them where nothing is streamed.
    whole: Option<String>,
    pieces: GrowingText,
    /// It is the answer itself, under this schema.
    answer: Option<AnswerShape>,
}

impl Block {
    /// The block that begins with `raw`, and the text of it that can be shown.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn begin(raw: &RawValue, belongs: &Belongs<'_>) -> Result<(Self, String), String> {
        let wrong = |error: serde_json::Error| format!("{error}: {}", raw.get());
        let WireBlock { kind, text, id, name, input } = serde_json::from_str(raw.get()).map_err(wrong)?;
        let kind = kind.map(JsonText::into_string).unwrap_or_default();
        match kind.as_str() {
            "text" => {
                let mut growing = GrowingText::default();
                let shown = text.map(|text| growing.push(&text)).unwrap_or_default();
                Ok((Self::Text(growing), shown))
            }
            "tool_use" => {
                let name = name.map(JsonText::into_string).unwrap_or_default();
                if name.is_empty() {
                    return Err("a tool use without a name".into());
                }
                let answer = belongs.answer.filter(|_| name == ANSWER);
                // A stream begins with an empty object in the place of what follows.
                let whole = input.map(|raw| raw.get().to_owned()).filter(|text| text != "null");
                let id = id.map(JsonText::into_string).unwrap_or_default();
                Ok((Self::Use(Use { id, name, whole, pieces: GrowingText::default(), answer }), String::new()))
            }
            kind if is_kept(kind) => {
                let members: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).map_err(wrong)?;
                let members = members.into_iter().map(|(name, raw)| (name, raw.get().to_owned())).collect();
                Ok((Self::Kept { members, input: GrowingText::default() }, String::new()))
            }
            kind => Err(format!("content of the unknown type {kind:?}")),
        }
    }

    /// Takes a piece and says what text can be shown.
    ///
    /// # Errors
    /// What is wrong with a piece that does not belong here.
    pub(super) fn grow(&mut self, delta: &Delta<'_>) -> Result<String, String> {
        let kind = delta.kind.as_ref().map(JsonStr::text).unwrap_or_default();
        match (kind.as_ref(), self) {
            ("text_delta", Self::Text(growing)) => {
                Ok(delta.text.as_ref().map(|text| growing.push(text)).unwrap_or_default())
            }
            ("input_json_delta", Self::Use(tool)) => {
                let shown = delta.partial_json.as_ref().map(|piece| tool.pieces.push(piece)).unwrap_or_default();
                Ok(if tool.answer == Some(AnswerShape::Plain) { shown } else { String::new() })
            }
            ("input_json_delta", Self::Kept { input, .. }) => {
                if let Some(piece) = &delta.partial_json {
                    input.push(piece);
                }
                Ok(String::new())
            }
            ("thinking_delta", Self::Kept { members, .. }) => {
                let more = delta.thinking.map_or("\"\"", RawValue::get);
                let had = members.entry("thinking".into()).or_insert_with(|| "\"\"".into());
                if !join(had, more) {
                    return Err(format!("thinking that is no text: {more}"));
                }
                Ok(String::new())
            }
            // It comes whole, and its exact text is what makes it valid.
            ("signature_delta", Self::Kept { members, .. }) => {
                if let Some(signature) = delta.signature {
                    members.insert("signature".into(), signature.get().to_owned());
                }
                Ok(String::new())
            }
            // Where a statement comes from has no neutral form, and does not have to go back.
            ("citations_delta", Self::Text(_)) => Ok(String::new()),
            (kind, _) => Err(format!("a piece of the unexpected type {kind:?}")),
        }
    }

    pub(super) const fn is_use(&self) -> bool {
        matches!(self, Self::Use(Use { answer: None, .. }))
    }

    pub(super) const fn is_answer(&self) -> bool {
        matches!(self, Self::Use(Use { answer: Some(_), .. }))
    }

    pub(super) const fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    pub(super) fn is_visible_text(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_blank(),
            Self::Use(_) | Self::Kept { .. } => false,
        }
    }

    /// The block as it goes into the reply; `at` is its place, `cut` that the output limit may have cut it.
    pub(super) fn part(&self, at: usize, belongs: &Belongs<'_>, cut: bool) -> Part {
        match self {
            Self::Text(text) => Part::Text { text: text.text() },
            Self::Use(tool) => tool.part(at, belongs, cut),
            Self::Kept { members, input } => {
                let mut members = members.clone();
                if !input.is_blank() {
                    members.insert("input".into(), input.text());
                }
                let kind = members.remove("type").unwrap_or_default();
                let name = |name: &String| serde_json::Value::from(name.as_str()).to_string();
                let rest: String = members.iter().map(|(own, raw)| format!(",{}:{raw}", name(own))).collect();
                Part::Reasoning { opaque: format!("{{\"type\":{kind}{rest}}}"), origin: belongs.origin.to_owned() }
            }
        }
    }
}

impl Use {
    fn part(&self, at: usize, belongs: &Belongs<'_>, cut: bool) -> Part {
        let args = match &self.whole {
            _ if !self.pieces.is_blank() => self.pieces.text(),
            // Nothing streamed means no arguments; behind the output limit it is what was cut off.
            Some(whole) if whole != "{}" => whole.clone(),
            Some(_) | None if cut => String::new(),
            Some(_) | None => "{}".into(),
        };
        if let Some(shape) = self.answer {
            return Part::Text { text: shape.unwrap(args) };
        }
        // Without an id from the server, one that comes out the same whenever this call is made again.
        let id = if self.id.is_empty() { format!("call_{}_{at}", belongs.call.0) } else { self.id.clone() };
        let name = belongs.names.get(&self.name).unwrap_or(&self.name).clone();
        Part::ToolUse { id, name, args }
    }
}

/// Adds a JSON string to another without decoding them, so that they go back byte for byte; false when they are none.
fn join(first: &mut String, second: &str) -> bool {
    let tail = second.strip_prefix('"').filter(|tail| tail.ends_with('"'));
    match tail {
        Some(tail) if first.len() > 1 && first.starts_with('"') && first.ends_with('"') => {
            first.pop();
            first.push_str(tail);
            true
        }
        Some(_) | None => false,
    }
}
