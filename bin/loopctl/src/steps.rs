//! Steps as lines for people. Every text from outside passes through [`excerpt`].

use crate::paint::Paint;
use crate::words;
use crate::words::dollars;
use loopd_fixture::excerpt;
use loopd_fixture::trajectory::{Step, StepKind, StepState};
use loopd_kernel::MicroUsd;
use loopd_kernel::model::{Message, ModelCall, ModelReply};
use loopd_kernel::question::Resolution;

/// Columns before the text of a step.
const MARGIN: usize = 14;

/// Lines of a result that are shown when not everything is.
const LINES: usize = 3;

/// How steps are written.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Colours.
    pub paint: Paint,
    /// Characters in a line.
    pub width: usize,
    /// Everything, not excerpts.
    pub full: bool,
}

impl Style {
    /// The steps as lines, each with its place. How the Loop ended is left out: it is the outcome, which
    /// stands alone and whole.
    pub fn steps<'s>(&self, steps: &'s [Step]) -> impl Iterator<Item = (usize, &'s Step, String)> {
        let (style, answer) = (*self, answer(steps));
        let numbered = steps.iter().enumerate().zip(questions(steps));
        numbered.filter(|((_, step), _)| !matches!(step.kind, StepKind::Finish | StepKind::Fail)).map(
            move |((at, step), question)| {
                let mut text = style.head(at + 1, step, question);
                if answer != Some(at) {
                    style.body(step).iter().for_each(|line| text.push_str(&format!("\n{:MARGIN$}{line}", "")));
                }
                (at, step, text)
            },
        )
    }

    fn head(&self, number: usize, step: &Step, question: Option<usize>) -> String {
        let facts = facts(step).join(" · ");
        let room = self.width.saturating_sub(MARGIN + facts.chars().count() + 2).max(16);
        let what = excerpt::line(&what(step, question), if self.full { 4 * self.width } else { room });
        let gap = room.saturating_sub(what.chars().count()) + 2;
        let name = format!("{:<8}", name(step.kind));
        let name = match step.state {
            StepState::Done => self.paint.bold(name),
            StepState::Open | StepState::Unknown => self.paint.wait(name),
            StepState::Failed | StepState::Denied => self.paint.bad(name),
            StepState::Cancelled => self.paint.dim(name),
        };
        let facts = if facts.is_empty() { facts } else { format!("{:gap$}{}", "", self.paint.dim(facts)) };
        format!("{} {name} {what}{facts}", self.paint.dim(format!("{number:>4}")))
    }

    /// What came of it.
    fn body(&self, step: &Step) -> Vec<String> {
        let mut lines = Vec::new();
        if self.full && step.kind == StepKind::Tool {
            lines.extend(self.text(&step.args).into_iter().map(|line| self.paint.dim(line)));
        }
        match step.kind {
            StepKind::Model if step.state == StepState::Done => self.reply(step, &mut lines),
            StepKind::Finish => {}
            StepKind::Recovery => {}
            _ => lines.extend(self.text(&said(step))),
        }
        if step.state == StepState::Failed
            && let Some(first) = lines.first_mut()
        {
            *first = self.paint.bad(&*first);
        }
        lines
    }

    fn reply(&self, step: &Step, lines: &mut Vec<String>) {
        let Ok(reply) = serde_json::from_str::<ModelReply>(&step.result) else {
            lines.extend(self.text(&step.result));
            return;
        };
        lines.extend(self.text(&reply.joined_text()));
        for (_, name, args) in reply.tool_uses() {
            let wish = excerpt::line(&format!("{name} {args}"), if self.full { usize::MAX } else { self.room() });
            lines.push(format!("{} {wish}", self.paint.dim("→")));
        }
    }

    const fn room(&self) -> usize {
        let room = self.width.saturating_sub(MARGIN + 2);
        if room < 20 { 20 } else { room }
    }

    /// A text as lines that fit: all of it, or its beginning and how much there is.
    pub fn text(&self, text: &str) -> Vec<String> {
        let text = text.trim_end();
        if text.is_empty() {
            return Vec::new();
        }
        if self.full {
            return excerpt::lines(text).lines().map(String::from).collect();
        }
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let room = self.room();
        let fits = lines.len() <= LINES && lines.iter().all(|line| line.chars().count() <= room);
        let mut shown: Vec<String> = lines.iter().take(LINES).map(|line| excerpt::line(line, room)).collect();
        let all = format!(" ({})", words::bytes(text.len()));
        if let (false, Some(last)) = (fits, shown.last_mut()) {
            let line = last.trim_end_matches('…');
            *last = format!("{}{}", excerpt::line(&format!("{line} …"), room - all.len()), self.paint.dim(all));
        }
        shown
    }
}

/// The word for a kind.
const fn name(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Resolve => "unknown",
        StepKind::Attempt => "retry",
        StepKind::Recovery => "recovery",
        other => other.name(),
    }
}

/// What is asked for, in one line.
fn what(step: &Step, question: Option<usize>) -> String {
    let asked = question.map(|number| format!("q{number} ")).unwrap_or_default();
    match step.kind {
        StepKind::Model => match last_message(&step.args) {
            Some(message) => format!("{} {message}", step.name),
            None => step.name.clone(),
        },
        StepKind::Tool | StepKind::Child | StepKind::Tell => format!("{} {}", step.name, step.args),
        StepKind::Probe => format!("the target of {} was asked: {}", step.name, step.args),
        StepKind::Late => format!("{} handed in the result of {}", step.args, step.name),
        StepKind::Upgrade => format!("version {} decides from here on", step.name),
        StepKind::Ask | StepKind::Confirm => format!("{asked}{}", step.args),
        StepKind::Resolve => format!("{asked}did the call of {} happen?", step.name),
        StepKind::Recovery => {
            let again = step.args.strip_prefix("again: ").map(|calls| format!("; {calls} ran again"));
            format!("the worker died{}", again.unwrap_or_default())
        }
        StepKind::Attempt => format!("{} will be tried again", step.name),
        StepKind::Park => "the run stopped".into(),
        StepKind::Reopen if step.args.is_empty() => format!("reopened by {}", step.name),
        StepKind::Reopen => format!("reopened by {}: {}", step.name, step.args),
        StepKind::Budget => format!("{} raised {}", step.name, step.args),
        StepKind::Cancel => format!("asked by {}: {}", step.name, step.args),
        StepKind::Fail => step.args.clone(),
        StepKind::Note => note(&step.args),
        StepKind::Compact => format!("a summary takes the place of what was said: {}", step.args),
        StepKind::Interrupt => "what was under way was given up".into(),
        StepKind::Speak | StepKind::Sleep | StepKind::Finish => step.args.clone(),
        StepKind::Label | StepKind::Wait | StepKind::Signal => format!("{} {}", step.name, step.args),
    }
}

fn last_message(args: &str) -> Option<String> {
    match serde_json::from_str::<ModelCall>(args).ok()?.messages.pop()? {
        Message::User { text, .. } | Message::Tool { text, .. } => Some(text),
        Message::Assistant { .. } => None,
    }
}

fn note(args: &str) -> String {
    match serde_json::from_str::<Message>(args) {
        Ok(Message::User { text, .. }) => format!("to the model: {text}"),
        Ok(Message::Tool { text, error: true, .. }) => format!("refused: {text}"),
        Ok(Message::Tool { text, .. }) => format!("read: {text}"),
        Ok(Message::Assistant { .. }) | Err(_) => args.into(),
    }
}

/// What came of it, in words where the recorded form is for machines.
fn said(step: &Step) -> String {
    match step.kind {
        StepKind::Resolve => match serde_json::from_str::<Resolution>(&step.result) {
            Ok(Resolution::Landed { output }) if output.is_empty() => "it happened".into(),
            Ok(Resolution::Landed { output }) => format!("it happened: {output}"),
            Ok(Resolution::Failed { evidence }) => format!("it did not happen. {evidence}"),
            Ok(Resolution::Retry) => "it did not happen; done again".into(),
            Ok(Resolution::Unknown { evidence }) => format!("nobody can tell. {evidence}"),
            Err(_) => step.result.clone(),
        },
        StepKind::Ask | StepKind::Confirm if step.state == StepState::Done => {
            let answer = serde_json::from_str::<String>(&step.result).unwrap_or_else(|_| step.result.clone());
            format!("{}: {answer}", if step.name.is_empty() { "answer" } else { &step.name })
        }
        _ => step.result.clone(),
    }
}

fn facts(step: &Step) -> Vec<String> {
    let mut facts = Vec::new();
    match (step.state, step.kind) {
        (StepState::Done, _) | (StepState::Failed, StepKind::Fail | StepKind::Attempt) => {}
        (StepState::Open, StepKind::Ask | StepKind::Confirm | StepKind::Resolve) => facts.push("waits for you".into()),
        (StepState::Open, StepKind::Wait | StepKind::Sleep) => facts.push("waits".into()),
        (state, _) => facts.push(state.name().into()),
    }
    if step.kind == StepKind::Tool {
        facts.extend(step.class.map(|class| class.name().into()));
    }
    facts.extend(step.code.as_deref().map(|code| excerpt::line(code, 40)));
    if step.attempts > 0 && step.kind != StepKind::Attempt {
        facts.push(format!("{} attempts", step.attempts + 1));
    }
    facts.extend(step.usage.map(|usage| format!("{} tok", words::count(usage.total()))));
    facts.extend(step.cost.filter(|cost| *cost > MicroUsd(0)).map(dollars));
    facts.extend(step.duration_ms.map(words::duration));
    facts
}

/// The model call whose reply is the answer that the Loop finished with, so that it is not shown twice.
fn answer(steps: &[Step]) -> Option<usize> {
    let finish = steps.iter().rfind(|step| step.kind == StepKind::Finish)?;
    let at = steps.iter().rposition(|step| step.kind == StepKind::Model)?;
    let reply: ModelReply = serde_json::from_str(&steps.get(at)?.result).ok()?;
    let said = reply.joined_text();
    let text = serde_json::from_str::<String>(&finish.args);
    let same = reply.tool_uses().next().is_none()
        && (said.trim() == finish.args.trim() || text.is_ok_and(|text| text.trim() == said.trim()));
    same.then_some(at)
}

/// For each step, which Question it is, if it is one: they are numbered in the order in which they were asked.
fn questions(steps: &[Step]) -> impl Iterator<Item = Option<usize>> {
    let mut last = 0;
    steps.iter().map(move |step| {
        let asks = matches!(step.kind, StepKind::Ask | StepKind::Confirm | StepKind::Resolve);
        last += usize::from(asks);
        asks.then_some(last)
    })
}
