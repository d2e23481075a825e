//! Tool calls out of fragments. The documentation says that `index` tells them apart; servers disagree.

use super::chunk::{CallPiece, FunctionPiece};
use crate::wire::{GrowingText, JsonText};
use loopd_kernel::CallId;
use loopd_kernel::model::Part;
use serde_json::value::RawValue;

/// The calls of one answer, in the order in which they appeared.
#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    index: Option<i64>,
    id: String,
    name: String,
    args: Args,
    nesting: Nesting,
}

/// How deep the text of arguments is in brackets. It is kept along, because every fragment of a long text asks whether
/// the text is whole.
#[derive(Debug, Default)]
struct Nesting {
    depth: usize,
    in_text: bool,
    escaped: bool,
    /// It is an object, as far as brackets tell, and closed again.
    closed: bool,
    /// What closed is JSON.
    parsed: bool,
}

impl Nesting {
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_text => self.escaped = true,
                b'"' => self.in_text = !self.in_text,
                _ if self.in_text => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => continue,
            }
            self.closed = *byte == b'}' && self.depth == 0 && !self.in_text;
        }
    }
}

#[derive(Debug)]
enum Args {
    /// JSON text in pieces.
    Text(GrowingText),
    /// A JSON value in the place of text, in its exact form.
    Value(String),
}

impl Default for Args {
    fn default() -> Self {
        Self::Text(GrowingText::default())
    }
}

/// The arguments of a fragment.
enum Piece {
    None,
    Text(JsonText),
    Value(String),
}

impl Slot {
    /// Its arguments are one whole JSON object: whatever comes next belongs to another call.
    fn is_whole(&self) -> bool {
        match &self.args {
            Args::Text(_) => self.nesting.closed && self.nesting.parsed,
            Args::Value(_) => true,
        }
    }

    fn add(&mut self, piece: Piece) -> Result<(), String> {
        match (&mut self.args, piece) {
            (_, Piece::None) => Ok(()),
            (Args::Text(text), Piece::Text(more)) => {
                text.push(&more);
                self.nesting.push(more.as_ref());
                // Only what closes can have become whole.
                if self.nesting.closed && !more.is_blank() {
                    self.nesting.parsed = serde_json::from_str::<&RawValue>(&text.text()).is_ok();
                }
                Ok(())
            }
            (Args::Text(text), Piece::Value(value)) if text.is_blank() => {
                self.args = Args::Value(value);
                Ok(())
            }
            (Args::Value(_), Piece::Text(more)) if more.is_blank() => Ok(()),
            (Args::Value(had), Piece::Value(value)) if *had == value => Ok(()),
            (Args::Text(_) | Args::Value(_), Piece::Text(_) | Piece::Value(_)) => {
                Err(format!("the arguments of tool call {:?} came twice", self.name))
            }
        }
    }
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Adds a fragment. The number of a call that it opened, else `None`.
    ///
    /// # Errors
    /// What is wrong with a fragment that belongs to no call.
    pub(super) fn add(&mut self, piece: CallPiece<'_>) -> Result<Option<usize>, String> {
        let CallPiece { index, id, function } = piece;
        let FunctionPiece { name, arguments } = function.unwrap_or_default();
        let id = id.map(|id| id.text().into_owned()).unwrap_or_default();
        let name = name.map(|name| name.text().into_owned()).unwrap_or_default();
        let args = match arguments {
            None => Piece::None,
            Some(raw) if raw.get().starts_with('"') => {
                Piece::Text(serde_json::from_str(raw.get()).map_err(|error| error.to_string())?)
            }
            Some(raw) => Piece::Value(raw.get().to_owned()),
        };
        let has_args = match &args {
            Piece::None => false,
            Piece::Text(text) => !text.is_blank(),
            Piece::Value(_) => true,
        };
        let found = self.find(index, &id, &name, has_args)?;
        let at = found.unwrap_or_else(|| {
            self.slots.push(Slot { index, ..Slot::default() });
            self.slots.len() - 1
        });
        let slot = &mut self.slots[at];
        if slot.id.is_empty() {
            slot.id = id;
        }
        if slot.name.is_empty() {
            slot.name = name;
        } else if !name.is_empty() && name != slot.name {
            return Err(format!("one tool call has two names, {:?} and {name:?}", slot.name));
        }
        slot.add(args)?;
        Ok(found.is_none().then_some(at))
    }

    /// The call that a fragment continues; `None` opens a new one.
    fn find(&self, index: Option<i64>, id: &str, name: &str, has_args: bool) -> Result<Option<usize>, String> {
        if !id.is_empty() {
            if let Some(at) = self.slots.iter().rposition(|slot| slot.id == id) {
                return Ok(Some(at));
            }
            // An id that comes after its call's first fragment; a second id in the same place is a second call.
            let late = match index {
                Some(_) => self.slots.iter().rposition(|slot| slot.index == index),
                None => self.slots.len().checked_sub(1).filter(|_| name.is_empty()),
            };
            return Ok(late.filter(|at| self.slots[*at].id.is_empty() && !self.starts_anew(*at, name, has_args)));
        }
        if index.is_some() {
            let at = self.slots.iter().rposition(|slot| slot.index == index);
            return Ok(at.filter(|at| !self.starts_anew(*at, name, has_args)));
        }
        if !name.is_empty() {
            let last = self.slots.len().checked_sub(1);
            return Ok(last.filter(|at| !self.starts_anew(*at, name, has_args)));
        }
        let open: Vec<usize> = (0..self.slots.len()).filter(|at| !self.slots[*at].is_whole()).collect();
        match open.as_slice() {
            [only] => Ok(Some(*only)),
            // A fragment that says nothing continues anything.
            [] => Ok(self.slots.len().checked_sub(1).filter(|_| !has_args)),
            _ => Err("a piece of a tool call says neither which one it continues nor what it starts".into()),
        }
    }

    /// Whether a fragment with this name begins a call of its own instead of continuing the call at `at`. Some
    /// servers repeat the name in every fragment, some put every call at index 0.
    fn starts_anew(&self, at: usize, name: &str, has_args: bool) -> bool {
        let slot = &self.slots[at];
        let named = !name.is_empty() && !slot.name.is_empty();
        named && (name != slot.name || (has_args && slot.is_whole()))
    }

    /// The call at `at` as it goes into the reply.
    ///
    /// # Errors
    /// The call has no name: it cannot be executed, and must not vanish.
    pub(super) fn part(&self, at: usize, call: CallId, cut: bool) -> Result<Part, String> {
        let slot = &self.slots[at];
        if slot.name.is_empty() {
            return Err("a tool call without a name".into());
        }
        let args = match &slot.args {
            // Nothing is how some servers write the arguments of a tool that takes none; behind the output limit it
            // is what was cut off.
            Args::Text(text) if text.is_blank() && !cut => "{}".into(),
            Args::Text(text) => text.text(),
            Args::Value(value) => value.clone(),
        };
        // Without an id from the provider, one that comes out the same whenever this call is made again.
        let id = if slot.id.is_empty() { format!("call_{}_{at}", call.0) } else { slot.id.clone() };
        Ok(Part::ToolUse { id, name: slot.name.clone(), args })
    }
}
