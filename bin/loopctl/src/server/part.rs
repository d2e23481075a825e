//! The parts of a Message as people read them. What others wrote is made harmless here.

use crate::layout;
use crate::paint::Tone;
use crate::words;
use loopd_fixture::excerpt;
use loopd_kernel::MicroUsd;
use loopd_protocol::{
    AskKind, Block, HarnessCall, KnownBlock, Message, Question, QuestionStatus, Snapshot, ToolStatus,
};
use serde_json::Value;

/// Characters of a tool's arguments or output that are shown.
const TOOL: usize = 100;

/// A part, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// What somebody says: lines.
    Said(String),
    /// What is done or happens: one line, or a few.
    Done(Tone, String),
    /// What is beside the point.
    Beside(String),
}

/// A Block as it is shown. `None` is nothing to see.
pub fn part(block: &Block) -> Option<Part> {
    let Block::Known(block) = block else {
        return Some(Part::Beside(format!("[{}]", excerpt::line(block.kind(), 40))));
    };
    Some(match block {
        KnownBlock::Text { text } | KnownBlock::Markdown { text } => said(text)?,
        KnownBlock::Result { text: Some(text), .. } => said(text)?,
        KnownBlock::Result { json, .. } => Part::Said(excerpt::lines(&layout::json(&json.as_ref()?.to_string()))),
        KnownBlock::Reasoning { text } => Part::Beside(excerpt::lines(text.trim_end())),
        KnownBlock::Tool { name, status, args, output, .. } => tool(name, *status, args, output),
        KnownBlock::Plan { steps } => {
            let step = |(number, step): (usize, &loopd_protocol::PlanStep)| {
                let of = [&step.target, &step.status].map(|text| excerpt::line(text, 40));
                let of: Vec<_> = of.into_iter().filter(|text| !text.is_empty()).collect();
                let of = if of.is_empty() { String::new() } else { format!(" ({})", of.join(", ")) };
                format!("{number}. {}{of}", excerpt::line(&step.text, 200))
            };
            Part::Done(Tone::Live, (1..).zip(steps).map(step).collect::<Vec<_>>().join("\n"))
        }
        KnownBlock::Progress { text, done, total } => {
            let count = match (done, total) {
                (Some(done), Some(total)) => format!(" {done}/{total}"),
                (Some(done), None) => format!(" {done}"),
                (None, _) => String::new(),
            };
            Part::Beside(format!("… {}{count}", excerpt::line(text, 200)))
        }
        KnownBlock::Artifact { artifact, name, media_type, bytes } => {
            let size = words::bytes(usize::try_from(*bytes).unwrap_or(usize::MAX));
            let (name, kind) = (excerpt::line(name, 200), excerpt::line(media_type, 60));
            Part::Done(Tone::Live, format!("file {name} ({kind}, {size}) {artifact}"))
        }
        KnownBlock::Ask { prompt, .. } | KnownBlock::Confirm { prompt, .. } => {
            Part::Done(Tone::Waits, format!("asks: {}", excerpt::lines(prompt)))
        }
        KnownBlock::Reply { snapshot } => Part::Done(Tone::Good, reply(snapshot)),
        KnownBlock::Error(note) => Part::Done(Tone::Bad, error(&note.code, &note.message)),
    })
}

fn said(text: &str) -> Option<Part> {
    let text = text.trim_end();
    (!text.is_empty()).then(|| Part::Said(excerpt::lines(text)))
}

fn error(code: &str, message: &str) -> String {
    format!("{} ({})", excerpt::line(message, 600), excerpt::line(code, 60))
}

fn tool(name: &str, status: ToolStatus, args: &str, output: &str) -> Part {
    let call = format!("{} {}", excerpt::line(name, 60), excerpt::line(args, TOOL));
    let call = call.trim_end();
    let (tone, state) = match status {
        ToolStatus::Running => (Tone::Live, "…".to_owned()),
        ToolStatus::Done => (Tone::Good, format!("→ {}", excerpt::line(output, TOOL))),
        ToolStatus::Failed => (Tone::Bad, format!("failed: {}", excerpt::line(output, TOOL))),
        ToolStatus::Cancelled => (Tone::Waits, "given up".to_owned()),
        ToolStatus::Unknown => (Tone::Waits, "nobody knows whether it happened".to_owned()),
    };
    Part::Done(tone, format!("{call} {}", state.trim_end()))
}

fn reply(snapshot: &Snapshot) -> String {
    let ended = match snapshot.status {
        QuestionStatus::Answered if snapshot.kind == AskKind::Confirm => "yes".to_owned(),
        QuestionStatus::Answered => match &snapshot.value {
            Some(Value::String(text)) => excerpt::lines(text),
            Some(value) => excerpt::lines(&value.to_string()),
            None => "yes".to_owned(),
        },
        status => ended(status).to_owned(),
    };
    format!("answers: {ended}")
}

/// How a Question stands, in a word.
pub const fn ended(status: QuestionStatus) -> &'static str {
    match status {
        QuestionStatus::Open => "open",
        QuestionStatus::Answered => "answered",
        QuestionStatus::Declined => "declined",
        QuestionStatus::Dismissed => "dismissed",
        QuestionStatus::TimedOut => "timed out",
        QuestionStatus::Withdrawn => "withdrawn",
    }
}

/// How a Question stands, also between an answer and the Run that takes it.
pub const fn stands(question: &Question) -> &'static str {
    match question.status {
        QuestionStatus::Open if question.answer.is_some() => "sent to the run, which has not taken it yet",
        status => ended(status),
    }
}

/// Who speaks, and to whom.
pub fn heading(message: &Message) -> String {
    let to: Vec<_> = message.to.iter().map(loopd_protocol::ActorKey::as_str).collect();
    if to.is_empty() { message.from.to_string() } else { format!("{} → {}", message.from, to.join(", ")) }
}

/// What of a Message counts as its answer: the result, or else everything that it says.
pub fn answer(message: &Message) -> String {
    let result = message.blocks.iter().find_map(|block| match block {
        Block::Known(KnownBlock::Result { text: Some(text), .. }) => Some(text.clone()),
        Block::Known(KnownBlock::Result { json: Some(json), .. }) => Some(json.to_string()),
        Block::Known(_) | Block::Unknown(_) => None,
    });
    result.unwrap_or_else(|| {
        let said = message.blocks.iter().filter_map(|block| match block {
            Block::Known(KnownBlock::Text { text } | KnownBlock::Markdown { text }) => Some(text.as_str()),
            Block::Known(_) | Block::Unknown(_) => None,
        });
        said.collect::<Vec<_>>().join("\n\n")
    })
}

/// What may be answered, for people; empty where any text may be.
pub fn choices(question: &Question) -> Vec<String> {
    let own = question.choices.iter().map(|choice| choice.value.clone());
    let values = question.schema.as_ref().and_then(|schema| schema.get("enum")?.as_array());
    let of_schema =
        values.into_iter().flatten().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    match question.kind {
        AskKind::Ask => own.chain(of_schema).map(|choice| excerpt::line(&choice, 60)).collect(),
        AskKind::Confirm => ["yes", "no"].map(str::to_owned).to_vec(),
        AskKind::Resolve => ["landed", "failed", "retry", "unknown"].map(str::to_owned).to_vec(),
    }
}

/// Where a call stands, in words.
pub fn standing(call: &HarnessCall) -> (Tone, String) {
    use loopd_protocol::CallPhase::{Cancelled, Failed, Queued, Running, Succeeded, TimedOut, Unknown, Waiting};
    let why = call.error.as_ref().map(|note| error(&note.code, &note.message));
    let reason = call.reason.as_deref().map(|reason| excerpt::line(reason, 60));
    let with =
        |word: &str, more: Option<String>| more.map_or_else(|| word.to_owned(), |more| format!("{word}: {more}"));
    match call.phase {
        Queued => (Tone::Waits, "queued".to_owned()),
        Running if call.cancel_requested => (Tone::Waits, "being cancelled".to_owned()),
        Running => (Tone::Live, "running".to_owned()),
        Waiting => (Tone::Waits, with("waiting", reason)),
        Succeeded => (Tone::Good, "succeeded".to_owned()),
        Failed => (Tone::Bad, with("failed", why)),
        Cancelled => (Tone::Bad, with("cancelled", why)),
        TimedOut => (Tone::Bad, "timed out".to_owned()),
        Unknown => (Tone::Bad, with("unknown", why)),
    }
}

/// A call in a line: what it is for, where it executes, how it stands, what it took.
pub fn called(call: &HarnessCall) -> (Tone, String) {
    let (tone, standing) = standing(call);
    let target = excerpt::line(&call.target, 40);
    let step = excerpt::line(&call.effect_key, 60);
    let mut line = if step.is_empty() { target } else { format!("{step} on {target}") };
    line = format!("{line}: {standing}");
    if let (Some(from), Some(to)) = (call.started_at, call.ended_at) {
        line = format!("{line} · {}", took(from, to));
    }
    if call.spent.tokens > 0 {
        line = format!("{line} · {}", words::spending(call.spent.tokens, MicroUsd(call.spent.micro_usd)));
    }
    (tone, line)
}

/// The time between two moments.
pub fn took(from: i64, to: i64) -> String {
    words::duration(u64::try_from(to.saturating_sub(from)).unwrap_or(0))
}

/// What an Operator says of its work, in a line; nothing where a call says it, or nothing can be read.
pub fn noted(message: &Message) -> Option<String> {
    let of_call = message.origin.as_ref().is_some_and(|origin| origin.call.is_some());
    if of_call || !message.status.is_final() {
        return None;
    }
    message.blocks.iter().find_map(|block| match part(block)? {
        Part::Said(text) | Part::Beside(text) | Part::Done(_, text) => Some(excerpt::line(&text, 200)),
    })
}

/// Whether a Message is what a Question asks.
pub fn is_question(message: &Message) -> bool {
    let asks = |block: &Block| matches!(block, Block::Known(KnownBlock::Ask { .. } | KnownBlock::Confirm { .. }));
    message.blocks.iter().any(asks)
}

/// Whether a Message tells how far somebody is, and nothing else.
pub fn is_progress(message: &Message) -> bool {
    message.blocks.iter().all(|block| matches!(block, Block::Known(KnownBlock::Progress { .. })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: Option<Part>) {
        let block: Block = serde_json::from_str(json).expect("a block");
        assert_eq!(part(&block), expected);
    }

    #[test]
    fn parts_read_well_and_do_nothing_to_the_terminal() {
        check(
            r#"{"type":"markdown","text":"a\u001b[2Jb\u202ec\n"}"#,
            Some(Part::Said("a\\u{1b}[2Jb\\u{202e}c".into())),
        );
        check(r#"{"type":"text","text":" \n"}"#, None);
        check(
            r#"{"type":"tool","name":"read\u0007","status":"done","args":"{\"path\":\"a\"}","output":"one\ntwo"}"#,
            Some(Part::Done(Tone::Good, r#"read\u{7} {"path":"a"} → one two"#.into())),
        );
        check(r#"{"type":"tool","name":"x","status":"running"}"#, Some(Part::Done(Tone::Live, "x …".into())));
        check(r#"{"type":"hologram\u009b","depth":3}"#, Some(Part::Beside("[hologram\\u{9b}]".into())));
        check(
            r#"{"type":"plan","steps":[{"text":"look","target":"harness/a","status":"done"},{"text":"write"}]}"#,
            Some(Part::Done(Tone::Live, "1. look (harness/a, done)\n2. write".into())),
        );
        check(r#"{"type":"result","json":{"a":1}}"#, Some(Part::Said("{\n  \"a\": 1\n}".into())));
        check(r#"{"type":"progress","text":"reads","done":1,"total":3}"#, Some(Part::Beside("… reads 1/3".into())));
    }
}
