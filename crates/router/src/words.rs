//! What people read.

use crate::board::{Board, Task};
use loopd_protocol::{CallPhase, HarnessCall};
use std::fmt::Write as _;

/// Nothing more can be paid for.
pub(crate) const NO_BUDGET: &str = "the budget of this answer is used up";

/// Somebody ended it.
pub(crate) const STOPPED: &str = "it was stopped";

/// Bytes of an answer: it has to fit into a Message, however it is written there.
const ANSWER: usize = 128 << 10;

/// Bytes of one thing that was said meanwhile, and of all of them: with the rest it has to fit into a prompt.
const SAYING: usize = 32 << 10;
const SAYINGS: usize = 128 << 10;

/// Why a call has no result.
pub(crate) fn why(call: &HarnessCall) -> String {
    let said = call.error.as_ref().map(|error| one_line(&error.message, 300)).filter(|said| !said.is_empty());
    let usual = match call.phase {
        CallPhase::Queued | CallPhase::Running | CallPhase::Waiting => "it goes on",
        CallPhase::Succeeded => "it has a result",
        CallPhase::Failed => "it failed",
        CallPhase::Cancelled => "it was stopped",
        CallPhase::TimedOut => "it took too long",
        CallPhase::Unknown => "nobody knows how it ended",
    };
    said.unwrap_or_else(|| usual.to_owned())
}

/// A task as people know it.
pub(crate) fn titled(task: &Task) -> String {
    format!("**{}** ({})", one_line(&task.part.title, 120), task.part.agent)
}

/// What people said, one after the other, as a model is shown it.
pub(crate) fn said<'a>(sayings: impl Iterator<Item = &'a crate::board::Saying>) -> String {
    let said = sayings.map(|said| format!("{}: {}", said.from, cut(&said.text, SAYING)));
    cut(&said.collect::<Vec<_>>().join("\n\n"), SAYINGS)
}

/// What people are told who said more while the work went on.
pub(crate) fn taken_in(board: &Board) -> String {
    let (done, all) =
        board.tasks().fold((0, 0), |(done, all), task| (done + u32::from(task.calls.text().is_some()), all + 1));
    match (done, all) {
        (_, 0) => "I take that in, and plan anew.".to_owned(),
        (done, all) => format!("I take that in, and plan anew with what is there: {done} of {all} parts are done."),
    }
}

/// The answer: the text, or without one what was found; and in any case what is not in it, and why. All of a text that is
/// too long is at work.
pub(crate) fn answer(board: &Board, text: Option<String>, why: Option<&str>) -> String {
    let found = || found(board);
    let whole = text.or_else(found).map(|whole| cut(&whole, ANSWER));
    let mut missing: Vec<_> = board.tasks().filter(|task| task.calls.text().is_none()).filter_map(missing).collect();
    missing.extend(why.filter(|_| whole.is_some()).map(|why| format!("- {}.", capital(why))));
    let Some(mut out) = whole else {
        let reasons = missing.join("\n");
        return match why {
            Some(why) if reasons.is_empty() => format!("I have no answer: {why}."),
            Some(why) => format!("I have no answer: {why}.\n\n{reasons}"),
            None => format!("I have no answer.\n\n{reasons}"),
        };
    };
    if !missing.is_empty() {
        let _ = write!(out, "\n\n---\n\nNot everything went well:\n\n{}", missing.join("\n"));
    }
    out
}

fn missing(task: &Task) -> Option<String> {
    let call = task.calls.last()?;
    let twice = if task.calls.again.is_some() { ", twice" } else { "" };
    Some(format!("- {}{twice}: {}", titled(task), why(call)))
}

/// What was found, under the titles of the tasks.
fn found(board: &Board) -> Option<String> {
    let parts = board.tasks().filter_map(|task| {
        let text = task.calls.text()?;
        Some(format!("## {}\n\n{text}", one_line(&task.part.title, 120)))
    });
    let parts: Vec<_> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// What was found, as a model is shown it, in at most about so many bytes.
pub(crate) fn evidence(board: &Board, bytes: usize) -> String {
    let tasks: Vec<_> = board.tasks().collect();
    let share = bytes / tasks.len().max(1);
    let mut out = String::new();
    for task in tasks {
        let head = format!("[{}] {}, by {}", task.name, one_line(&task.part.title, 120), task.part.agent);
        let _ = match (task.calls.text(), task.calls.last()) {
            (Some(text), _) => write!(out, "{head}:\n{}\n\n", cut(&text, share)),
            (None, Some(call)) if !call.phase.is_final() => write!(out, "{head}: is still being worked on\n\n"),
            (None, Some(call)) => write!(out, "{head}: failed ({})\n\n", why(call)),
            (None, None) => write!(out, "{head}: was not begun\n\n"),
        };
    }
    if out.is_empty() { "Nothing.".to_owned() } else { out.trim_end().to_owned() }
}

/// The beginning of a text, with a word about the rest.
pub(crate) fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let kept = text.get(..text.floor_char_boundary(bytes)).unwrap_or_default();
    format!("{kept} […{} bytes left out]", text.len() - kept.len())
}

/// A text as a part of a line.
pub(crate) fn one_line(text: &str, characters: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= characters {
        return line;
    }
    line.chars().take(characters.saturating_sub(1)).chain(['…']).collect()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
