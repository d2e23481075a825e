//! The door of the tests of what servers send, for protocols that close an answer with an event of its own.

use crate::intake::{Assemble, End, Intake, whole};
use loopd_kernel::model::Part;
use loopd_runtime::{ModelAnswer, ModelError};
use std::fmt::Write;

/// What came of a stream in `pieces`, and what was shown on the way.
pub(crate) fn read<A: Assemble>(
    assembler: A,
    pieces: &mut dyn Iterator<Item = &[u8]>,
) -> (Result<ModelAnswer, ModelError>, String) {
    let mut intake = Intake::new(assembler);
    let mut shown = String::new();
    for piece in pieces {
        if let Err(error) = intake.push(piece, &mut |text| shown.push_str(&text)) {
            return (Err(error), shown);
        }
        if intake.is_done() {
            break;
        }
    }
    (intake.end(End::Proper), shown)
}

/// What comes of `bytes` as the body of a stream, in words. It must not depend on where they are cut into pieces, and
/// a part of them is no answer.
#[track_caller]
pub(crate) fn streamed<A: Assemble>(assembler: impl Fn() -> A, bytes: &[u8]) -> String {
    let (result, shown) = read(assembler(), &mut [bytes].into_iter());
    if let Ok(answer) = &result {
        let text = answer.reply.joined_text();
        assert!(text == shown || shown.is_empty(), "{shown:?} was shown");
    }
    for size in 1..=bytes.len().max(1) {
        let again = read(assembler(), &mut bytes.chunks(size));
        assert_eq!(again, (result.clone(), shown.clone()), "in pieces of {size}");
    }
    let end = bytes.trim_ascii_end().len();
    for at in 0..bytes.len() {
        match read(assembler(), &mut [&bytes[..at]].into_iter()).0 {
            Err(ModelError::Interrupted { .. }) => {}
            Ok(part) => {
                assert!(at > end, "an answer out of {at} bytes");
                assert_eq!(Ok(part), result, "cut at {at}");
            }
            error => assert_eq!(error, result, "cut at {at}"),
        }
    }
    render(&result)
}

/// What comes of an answer that is not streamed, in words. A part of it is no answer.
#[track_caller]
pub(crate) fn in_one_piece<A: Assemble>(assembler: impl Fn() -> A, body: &str) -> String {
    for at in 0..body.trim_end().len() {
        let part = whole(assembler(), &body.as_bytes()[..at]);
        assert!(matches!(part, Err(ModelError::Interrupted { .. })), "cut at {at}: {part:?}");
    }
    render(&whole(assembler(), body.as_bytes()))
}

/// Each line is the data of an event, whose name is its type; a line that begins with `:` is a comment.
pub(crate) fn stream(events: &str) -> String {
    let mut bytes = String::new();
    for line in events.trim().lines().map(str::trim) {
        let kind = line.strip_prefix(r#"{"type":""#).and_then(|rest| rest.split('"').next());
        let _ = match kind {
            Some(kind) => write!(bytes, "event: {kind}\ndata: {line}\n\n"),
            None if line.starts_with(':') => write!(bytes, "{line}\n\n"),
            None => write!(bytes, "data: {line}\n\n"),
        };
    }
    bytes
}

/// A result in words: parts, why it stopped, by whom, and usage as input+read+written output+reasoning.
pub(crate) fn render(result: &Result<ModelAnswer, ModelError>) -> String {
    let mut text = String::new();
    let answer = match result {
        Ok(answer) => answer,
        Err(error) => return format!("{error}; usage {:?}\n", error.usage().map(|usage| usage.total())),
    };
    for part in &answer.reply.parts {
        let _ = match part {
            Part::Text { text: said } => writeln!(text, "text {said:?}"),
            Part::ToolUse { id, name, args } => writeln!(text, "use {id} {name} {args}"),
            Part::Reasoning { opaque, origin } => writeln!(text, "reasoning {opaque} of {origin}"),
        };
    }
    let usage = answer.usage.map(|u| {
        let thought = if u.reasoning > 0 { format!("+{}", u.reasoning) } else { String::new() };
        format!("{}+{}+{} {}{thought}", u.input, u.cache_read, u.cache_write, u.output)
    });
    let usage = usage.unwrap_or_else(|| "unknown".into());
    let _ = writeln!(text, "{:?} by {:?}, usage {usage}", answer.reply.stop, answer.reply.model);
    text
}
