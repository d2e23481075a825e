//! The items of one answer, as they grow.

use super::assemble::Belongs;
use super::event::{Kind, WireCall, WireContent, WireMessage, text};
use crate::wire::{GrowingText, JsonText};
use loopd_kernel::model::Part;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Items by which a model waits for something that only whoever asked can do, function calls aside. Nothing of the
/// kind is offered to it.
pub(super) fn waits(kind: &str) -> bool {
    matches!(
        kind,
        "custom_tool_call"
            | "computer_call"
            | "local_shell_call"
            | "shell_call"
            | "apply_patch_call"
            | "mcp_approval_request"
    )
}

#[derive(Debug)]
pub(super) enum Item {
    Message(Message),
    Call(Call),
    /// Its exact text. `grown` are pieces of it that came behind its beginning.
    Kept {
        kind: String,
        raw: String,
        grown: bool,
    },
}

#[derive(Debug, Default)]
pub(super) struct Message {
    contents: Vec<Content>,
    phase: Option<String>,
}

/// Text, or the words of a refusal.
#[derive(Debug)]
struct Content {
    index: Option<u64>,
    refusal: bool,
    text: GrowingText,
}

#[derive(Debug, Default)]
pub(super) struct Call {
    call_id: String,
    name: String,
    args: GrowingText,
    /// The server says that it is not whole.
    cut: bool,
}

/// A piece of text, or of a refusal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) index: Option<u64>,
    pub(super) refusal: bool,
}

/// The id of the item `raw`; empty where it has none.
///
/// # Errors
/// It is no object.
pub(super) fn id(raw: &RawValue) -> Result<String, String> {
    let kind: Kind = parse(raw)?;
    Ok(kind.id.map(JsonText::into_string).unwrap_or_default())
}

fn parse<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Result<T, String> {
    serde_json::from_str(raw.get()).map_err(|error| format!("{error}: {}", raw.get()))
}

impl Item {
    /// The item that `raw` is, and the text of it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(raw: &RawValue) -> Result<(Self, String), String> {
        let kind: Kind = parse(raw)?;
        let kind = kind.kind.map(JsonText::into_string).unwrap_or_default();
        match kind.as_str() {
            "message" => {
                let mut message = Message::default();
                let shown = message.read(&parse(raw)?)?;
                Ok((Self::Message(message), shown))
            }
            "function_call" => Ok((Self::Call(Call::read(parse(raw)?)?), String::new())),
            "" => Err(format!("an item without a type: {}", raw.get())),
            _ => Ok((Self::Kept { kind, raw: raw.get().to_owned(), grown: false }, String::new())),
        }
    }

    /// Takes the item's last word, and says what text of it was not there before. Where the last word says less than
    /// what came on the way, that stays.
    ///
    /// # Errors
    /// It is another kind of item.
    pub(super) fn settle(&mut self, last: Self, text: String) -> Result<String, String> {
        match (self, last) {
            (Self::Message(had), Self::Message(last)) => {
                let (new, says_less) = (had.is_blank(), last.is_blank());
                had.phase = last.phase.or(had.phase.take());
                if !says_less {
                    had.contents = last.contents;
                }
                Ok(if new && !says_less { text } else { String::new() })
            }
            (Self::Call(had), Self::Call(last)) => {
                had.settle(last);
                Ok(String::new())
            }
            (had @ Self::Kept { .. }, last @ Self::Kept { .. }) => {
                *had = last;
                Ok(String::new())
            }
            (Self::Message(_) | Self::Call(_) | Self::Kept { .. }, _) => Err("an item ends as another one".into()),
        }
    }

    /// Takes a piece of text and says what can be shown.
    ///
    /// # Errors
    /// The item has no text.
    pub(super) fn say(&mut self, place: Place, piece: &JsonText) -> Result<String, String> {
        match self {
            Self::Message(message) => Ok(message.content(place).text.push(piece)),
            Self::Call(_) | Self::Kept { .. } => Err("a piece of text that belongs to no message".into()),
        }
    }

    /// Takes all of a text whose pieces were not sent, and says what can be shown.
    ///
    /// # Errors
    /// As [`Item::say`].
    pub(super) fn say_all(&mut self, place: Place, all: &JsonText) -> Result<String, String> {
        if let Self::Message(message) = self
            && !message.content(place).text.is_blank()
        {
            return Ok(String::new());
        }
        self.say(place, all)
    }

    /// Takes a piece of arguments, or all of them (`whole`).
    ///
    /// # Errors
    /// The item is no call.
    pub(super) fn argue(&mut self, piece: &JsonText, whole: bool) -> Result<(), String> {
        match self {
            Self::Call(call) if whole && !call.args.is_blank() => Ok(()),
            Self::Call(call) => {
                call.args.push(piece);
                Ok(())
            }
            Self::Message(_) | Self::Kept { .. } => Err("a piece of arguments that belongs to no call".into()),
        }
    }

    /// Takes a piece of what is kept as a whole: it says that more must come.
    pub(super) const fn grow(&mut self) {
        if let Self::Kept { grown, .. } = self {
            *grown = true;
        }
    }

    pub(super) fn refuses(&self) -> bool {
        matches!(self, Self::Message(message) if message.contents.iter().any(|said| said.refusal && !said.text.is_blank()))
    }

    pub(super) const fn is_call(&self) -> bool {
        matches!(self, Self::Call(_))
    }

    pub(super) const fn is_cut(&self) -> bool {
        matches!(self, Self::Call(Call { cut: true, .. }))
    }

    /// By which kind of item the model waits for what nobody offered.
    pub(super) fn waits(&self) -> Option<&str> {
        match self {
            Self::Kept { kind, .. } if waits(kind) => Some(kind),
            Self::Message(_) | Self::Call(_) | Self::Kept { .. } => None,
        }
    }

    /// Adds the item to the reply; `at` is its place, `cut` that the output limit may have cut it.
    ///
    /// # Errors
    /// What makes it useless.
    pub(super) fn add_to(
        &self,
        parts: &mut Vec<Part>,
        at: usize,
        belongs: &Belongs<'_>,
        cut: bool,
    ) -> Result<(), String> {
        let kept = |opaque: String| Part::Reasoning { opaque, origin: belongs.origin.to_owned() };
        match self {
            Self::Message(message) => {
                let text: String = message.contents.iter().map(|content| content.text.text()).collect();
                if text.is_empty() {
                    return Ok(());
                }
                if let Some(phase) = &message.phase {
                    parts.push(kept(format!("{{\"type\":\"message\",\"phase\":{phase}}}")));
                }
                parts.push(Part::Text { text });
            }
            Self::Call(call) => parts.push(call.part(at, belongs, cut)?),
            Self::Kept { kind, grown: true, .. } if !cut => return Err(format!("an item {kind:?} has no end")),
            Self::Kept { raw, .. } => parts.push(kept(raw.clone())),
        }
        Ok(())
    }
}

impl Message {
    fn read(&mut self, wire: &WireMessage<'_>) -> Result<String, String> {
        // Which part of an answer it is; such models want to hear it again.
        self.phase = wire.phase.map(|raw| raw.get().to_owned()).filter(|raw| raw.starts_with('"'));
        let Some(raw) = wire.content else {
            return Ok(String::new());
        };
        let contents: Vec<WireContent> = if raw.get().starts_with('[') {
            parse(raw)?
        } else {
            vec![WireContent { kind: "output_text".into(), text: Some(text(Some(raw))?), refusal: None }]
        };
        let mut shown = String::new();
        for (index, content) in contents.into_iter().enumerate() {
            let (refusal, text) = match content.kind.as_str() {
                "output_text" | "text" => (false, content.text),
                "refusal" => (true, content.refusal),
                kind => return Err(format!("content of the unknown type {kind:?}")),
            };
            let place = Place { index: u64::try_from(index).ok(), refusal };
            shown.push_str(&self.content(place).text.push(&text.unwrap_or_default()));
        }
        Ok(shown)
    }

    /// The content in this place; without a number, the last one of its kind.
    fn content(&mut self, Place { index, refusal }: Place) -> &mut Content {
        let is_it = |content: &Content| {
            content.refusal == refusal && (index.is_none() || content.index.is_none() || content.index == index)
        };
        let at = self.contents.iter().rposition(is_it).unwrap_or(self.contents.len());
        if at == self.contents.len() {
            self.contents.push(Content { index, refusal, text: GrowingText::default() });
        }
        &mut self.contents[at]
    }

    fn is_blank(&self) -> bool {
        self.contents.iter().all(|content| content.text.is_blank())
    }
}

impl Call {
    fn read(wire: WireCall<'_>) -> Result<Self, String> {
        let mut args = GrowingText::default();
        args.push(&text(wire.arguments)?);
        Ok(Self {
            call_id: wire.call_id.map(JsonText::into_string).unwrap_or_default(),
            name: wire.name.map(JsonText::into_string).unwrap_or_default(),
            args,
            cut: wire.status == Some("incomplete".into()),
        })
    }

    fn settle(&mut self, last: Self) {
        if !last.call_id.is_empty() {
            self.call_id = last.call_id;
        }
        if !last.name.is_empty() {
            self.name = last.name;
        }
        if !last.args.is_blank() {
            self.args = last.args;
        }
        self.cut = last.cut;
    }

    fn part(&self, at: usize, belongs: &Belongs<'_>, cut: bool) -> Result<Part, String> {
        if self.name.is_empty() {
            return Err("a function call without a name".into());
        }
        // Nothing is how some servers write the arguments of a tool that takes none; behind the output limit it is what
        // was cut off.
        let args = if self.args.is_blank() && !cut { "{}".into() } else { self.args.text() };
        // Without an id from the server, one that comes out the same whenever this call is made again.
        let id = if self.call_id.is_empty() { format!("call_{}_{at}", belongs.call.0) } else { self.call_id.clone() };
        let name = belongs.names.get(&self.name).unwrap_or(&self.name).clone();
        Ok(Part::ToolUse { id, name, args })
    }
}
