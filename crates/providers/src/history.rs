//! What adapters share of putting a recorded conversation onto the wire. The record is faithful, the protocols are
//! strict: each wants every tool use answered exactly once, under an id that it allows.

use loopd_kernel::model::Message;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Stands for the result of a tool use that has none.
pub(crate) const NOT_MADE: &str = "This call was not made.";

/// The result of tool use `id` of the message at `at`, and whether it says what went wrong. It may stand behind what a
/// person said meanwhile, but not behind the model's next message. `used` marks what was given out.
pub(crate) fn result_of<'a>(
    all: &'a [Arc<Message>],
    used: &mut [bool],
    at: usize,
    id: &str,
) -> Option<(&'a str, bool)> {
    for later in at + 1..all.len() {
        match all[later].as_ref() {
            Message::Assistant { .. } => break,
            Message::Tool { id: of, text, error } if of == id && !used[later] => {
                used[later] = true;
                return Some((text, *error));
            }
            Message::Tool { .. } | Message::User { .. } => {}
        }
    }
    None
}

/// What a user says in the place of a result whose tool use is gone, for example behind a summary.
pub(crate) fn earlier_result(text: &str) -> String {
    format!("Result of an earlier tool call: {text}")
}

/// Whether arguments are one JSON object.
pub(crate) fn is_object(args: &str) -> bool {
    serde_json::from_str::<&RawValue>(args).is_ok_and(|value| value.get().starts_with('{'))
}

/// The ids of tool uses in one request.
#[derive(Debug)]
pub(crate) struct Ids {
    taken: BTreeSet<String>,
    prefix: &'static str,
    longest: usize,
}

impl Ids {
    /// Ids of at most `longest` bytes; those that are made up begin with `prefix`.
    pub(crate) const fn new(prefix: &'static str, longest: usize) -> Self {
        Self { taken: BTreeSet::new(), prefix, longest }
    }

    /// The id where it can be one, else one that comes out the same every time. No two are the same.
    pub(crate) fn on_wire(&mut self, id: &str, message: usize, slot: usize) -> String {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let is_id = (1..=self.longest).contains(&id.len()) && id.bytes().all(fits);
        let mut wire = if is_id && !self.taken.contains(id) {
            id.to_owned()
        } else {
            format!("{}_m{message}_{slot}", self.prefix)
        };
        while !self.taken.insert(wire.clone()) {
            wire.push('x');
        }
        wire
    }
}
