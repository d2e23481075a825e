//! `edit_file`: another text in the place of one that is there.

use super::hint;
use super::place::{Moment, Place};
use super::read;
use super::root::{Below, Root};
use super::tool::Attempt;
use loopd_runtime::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

pub(super) const DESCRIPTION: &str = "Replaces a text of a file by another one. The old text has to occur exactly \
                                      once, white space included, or `all` has to be true. Everything else in the \
                                      file stays as it is.";

/// Bytes of a file that is edited, before and after.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// Lines that an error names.
const MAX_NAMED: usize = 10;

/// What to replace.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The file.
    path: String,
    /// The text that is there, exactly; with enough around it to occur once.
    #[schemars(length(min = 1))]
    old: String,
    /// The text to put in its place; empty to remove it.
    new: String,
    /// Whether to replace every occurrence.
    #[serde(default)]
    all: bool,
}

/// The answer of `edit_file`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edited {
    /// The file.
    pub path: String,
    /// How often the text was replaced.
    pub replaced: u64,
    /// The line of the first place, from 1.
    pub first_line: u64,
    /// The length of the file now.
    pub bytes: u64,
}

pub(super) fn run(root: &Root, args: Args, attempt: &Attempt) -> Result<Edited, ToolError> {
    with(root, args, attempt, |_| ())
}

fn with(root: &Root, args: Args, attempt: &Attempt, meanwhile: impl FnMut(Moment)) -> Result<Edited, ToolError> {
    let path = Below::parse(&args.path)?;
    let place = Place::find(root, &path, attempt)?;
    let (before, about) = place.read_writable(MAX_FILE)?;
    let text = read::text(&mut before.clone(), false).map_err(|(at, what)| {
        ToolError::did_not_happen("file.not_text", format!("{path} is not UTF-8 text: byte {at} is {what}"))
    })?;
    let (after, edited) = apply(&path, &text, &args)?;
    attempt.stop.check()?;
    let staged = place.stage(after.as_bytes(), Some(&about))?;
    attempt.stop.check()?;
    staged.exchange(&before, after.as_bytes(), meanwhile)?;
    Ok(edited)
}

/// The text after the edit.
fn apply(path: &Below, text: &str, args: &Args) -> Result<(String, Edited), ToolError> {
    let crlf = ends_in_crlf(text);
    let (old, new) = (fit(&args.old, crlf), fit(&args.new, crlf));
    if old.is_empty() {
        return Err(ToolError::invalid_args(
            "old: expected the text that is to be replaced; to write a file, use write_file",
        ));
    }
    if old == new {
        return Err(ToolError::invalid_args("new: it is the same as `old`; there is nothing to replace"));
    }
    let places = places(text, &old);
    let first = match places.as_slice() {
        [] => return Err(not_there(path, text, &old)),
        [first, _, ..] if !args.all => return Err(too_often(path, text, &places, *first)),
        [first, ..] => *first,
    };
    let replaced = text.matches(&*old).count() as u64;
    let length = text.len() as u64 + replaced * new.len() as u64 - replaced * old.len() as u64;
    if length > MAX_FILE {
        let message = format!("{path} would have {length} bytes; at most {MAX_FILE} are written");
        return Err(ToolError::did_not_happen("file.too_large", message));
    }
    let edited = Edited { path: path.to_string(), replaced, first_line: line_of(text, first), bytes: length };
    Ok((text.replace(&*old, &new), edited))
}

/// True when every line of the text ends with CR LF.
fn ends_in_crlf(text: &str) -> bool {
    let lines = text.matches('\n').count();
    lines > 0 && text.matches("\r\n").count() == lines
}

/// A text of a model with the line ends of the file: models write LF.
fn fit(text: &str, crlf: bool) -> Cow<'_, str> {
    if crlf { text.replace("\r\n", "\n").replace('\n', "\r\n").into() } else { text.into() }
}

/// Where `old` is, overlapping places included: `aa` occurs twice in `aaa`, and which one is meant is open.
fn places(text: &str, old: &str) -> Vec<usize> {
    let (mut found, mut from) = (Vec::new(), 0);
    let step = old.chars().next().map_or(1, char::len_utf8);
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(old)) {
        found.push(from + at);
        from += at + step;
    }
    found
}

fn line_of(text: &str, at: usize) -> u64 {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() as u64 + 1
}

fn not_there(path: &Below, text: &str, old: &str) -> ToolError {
    let hint = hint::nearest(text, old).map(|hint| format!(" {hint}")).unwrap_or_default();
    let message = format!("the old text occurs 0 times in {path}; nothing was written.{hint}");
    ToolError::did_not_happen("edit.not_found", message)
}

fn too_often(path: &Below, text: &str, places: &[usize], first: usize) -> ToolError {
    let mut lines: Vec<String> = Vec::new();
    let (mut at, mut line) = (first, line_of(text, first));
    for place in places.iter().take(MAX_NAMED) {
        line += text.bytes().take(*place).skip(at).filter(|byte| *byte == b'\n').count() as u64;
        at = *place;
        lines.push(line.to_string());
    }
    let more = if places.len() > MAX_NAMED { ", …" } else { "" };
    let message = format!(
        "the old text occurs {} times in {path}, at lines {}{more}; nothing was written. \
         Give more of the text around the place that is meant, or set `all`",
        places.len(),
        lines.join(", ")
    );
    ToolError::did_not_happen("edit.ambiguous", message)
}

#[cfg(test)]
mod tests;
