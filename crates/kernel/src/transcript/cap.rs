//! Tool results that are too long for a request.

use crate::ids::CallId;
use crate::model::ToolOffer;
use alloc::borrow::Cow;
use alloc::string::String;

/// The name of the tool by which a model reads what was left out of a result. A runtime brings it to every Loop that
/// offers it.
pub const READ_RESULT: &str = "read_result";

/// Bytes that it returns where the model does not say.
pub const READ_BYTES: u64 = 8_000;

/// That tool as a model sees it. `most` is how many bytes one use may ask for.
#[must_use]
pub fn read_result_offer(most: u64) -> ToolOffer {
    ToolOffer {
        name: READ_RESULT.into(),
        description: "Reads bytes that were left out of a long result, as the line in their place says.".into(),
        parameters: alloc::format!(
            r#"{{"type":"object","properties":{{"call":{{"type":"string"}},"from":{{"type":"integer","minimum":0}},"bytes":{{"type":"integer","minimum":1,"maximum":{most}}}}},"required":["call"],"additionalProperties":false}}"#
        ),
    }
}

/// The part of the room that shows the beginning; the rest shows the end.
const HEAD: (usize, usize) = (3, 4);

/// `text` with at most `cap` bytes of it: beginning and end stand, and a line between them says which bytes are left
/// out and, where it is given, which Call's result holds them.
#[must_use]
pub fn capped(text: &str, cap: u64, call: Option<CallId>) -> Cow<'_, str> {
    let cap = usize::try_from(cap).unwrap_or(usize::MAX);
    if text.len() <= cap {
        return Cow::Borrowed(text);
    }
    let head = floor(text, cap / HEAD.1 * HEAD.0);
    let tail = ceil(text, text.len() - (cap - cap / HEAD.1 * HEAD.0));
    let (begin, end) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    let kept = |call: CallId| alloc::format!("; {READ_RESULT} reads them from {call}");
    let whole = call.filter(|call| call.0 > 0).map_or_else(String::new, kept);
    let marker = alloc::format!("[bytes {head} to {tail} of {} are left out here{whole}]", text.len());
    Cow::Owned(alloc::format!("{begin}\n{marker}\n{end}"))
}

/// The last character boundary up to `at`.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The first character boundary from `at`.
fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}
