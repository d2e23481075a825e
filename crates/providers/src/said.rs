//! Messages and their parts, as the adapters' tests write them.

use loopd_kernel::model::{Message, Part};

pub(crate) fn user(text: &str) -> Message {
    Message::user(text)
}

pub(crate) fn text(text: &str) -> Part {
    Part::Text { text: text.into() }
}

pub(crate) fn uses(id: &str, name: &str, args: &str) -> Part {
    Part::ToolUse { id: id.into(), name: name.into(), args: args.into() }
}

pub(crate) fn reasoning(origin: &str, opaque: &str) -> Part {
    Part::Reasoning { opaque: opaque.into(), origin: origin.into() }
}

pub(crate) fn assistant(parts: &[Part]) -> Message {
    Message::Assistant { parts: parts.to_vec() }
}

pub(crate) fn result(id: &str, text: &str) -> Message {
    Message::Tool { id: id.into(), text: text.into(), error: false }
}

pub(crate) fn failure(id: &str, text: &str) -> Message {
    Message::Tool { id: id.into(), text: text.into(), error: true }
}
