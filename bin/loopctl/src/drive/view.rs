//! What a person sees while a Run is driven or watched: steps as they are done, and below them what goes on.

use crate::context::Context;
use crate::drive::{describe_question, in_time};
use crate::journal::Reader;
use crate::output;
use crate::paint::Paint;
use crate::steps::Style;
use crate::words;
use indicatif::{ProgressBar, ProgressStyle};
use loopd_fixture::excerpt;
use loopd_fixture::trajectory::{StepKind, StepState};
use loopd_kernel::projection::Waits;
use loopd_kernel::{CallId, QuestionId, RunId};
use loopd_runtime::Delta;
use loopd_store::Store;
use std::time::Duration;

/// Characters of streamed text that are kept for showing.
const STREAM: usize = 2000;

/// Lines of streamed text that are shown.
const STREAM_LINES: usize = 3;

/// Entries that one look brings.
const PAGE: usize = 1024;

/// A view of one Run.
pub struct View {
    bar: Option<ProgressBar>,
    /// Done steps are written; without it nothing is.
    lines: bool,
    style: Style,
    reader: Option<Reader>,
    printed: Vec<bool>,
    stream: Option<(CallId, u32, String)>,
    /// The last Question that was said.
    asked: QuestionId,
}

impl View {
    /// A live view on a terminal, done steps in a log, and nothing at all where nobody looks.
    pub fn new(context: &Context, quiet: bool) -> Self {
        let terminal = output::stderr_is_terminal() && !quiet;
        let bar = (terminal && !context.logging).then(bar);
        Self::with(bar, terminal, context.paint_err)
    }

    fn with(bar: Option<ProgressBar>, lines: bool, paint: Paint) -> Self {
        let width = width();
        Self {
            bar,
            lines,
            style: Style { paint, width, full: false },
            reader: None,
            printed: Vec::new(),
            stream: None,
            asked: QuestionId(0),
        }
    }

    /// Takes the Entries that are new. What does not read is for whoever drives or verifies to say.
    pub async fn catch_up(&mut self, store: &dyn Store, run: RunId) {
        if !self.lines {
            return;
        }
        let reader = self.reader.get_or_insert_with(|| Reader::new(run));
        loop {
            let Ok(page) = store.entries(run, reader.head(), PAGE).await else { break };
            if page.is_empty() || !page.iter().all(|entry| reader.take(entry)) {
                break;
            }
        }
        self.print();
        self.refresh();
    }

    fn print(&mut self) {
        let Some(reader) = &self.reader else { return };
        let steps = reader.builder().steps();
        self.printed.resize(steps.len(), false);
        let mut lines = Vec::new();
        for (at, step, text) in self.style.steps(steps) {
            if let Some(printed) = self.printed.get_mut(at).filter(|printed| !**printed)
                && step.state != StepState::Open
            {
                *printed = true;
                lines.push(text);
            }
        }
        lines.iter().for_each(|line| self.say(line));
    }

    /// Streamed text of a running model call. A new attempt starts afresh.
    pub fn delta(&mut self, delta: &Delta) {
        if self.bar.is_none() {
            return;
        }
        let same = self.stream.as_ref().is_some_and(|(call, n, _)| (*call, *n) == (delta.call, delta.attempt));
        if !same {
            self.stream = Some((delta.call, delta.attempt, String::new()));
        }
        if let Some((_, _, text)) = &mut self.stream {
            text.push_str(&delta.text);
            if text.len() > 2 * STREAM {
                let from = text.char_indices().map(|(at, _)| at).find(|at| *at >= text.len() - STREAM);
                text.drain(..from.unwrap_or(0));
            }
        }
        self.refresh();
    }

    /// Says something above what moves.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| output::note(text)),
            None if self.lines => output::note(text),
            None => {}
        }
    }

    /// Says what the Run waits for, if it was suspended when it was last looked at.
    pub fn waiting_now(&mut self, context: &Context, run: RunId) {
        let projection = self.reader.as_ref().map(|reader| reader.builder().projection());
        if let Some(waits) = projection.filter(|now| now.is_suspended()).map(|now| now.waits()) {
            self.waiting(context, run, &waits);
        }
    }

    /// Says what a suspended Run waits for.
    pub fn waiting(&mut self, context: &Context, run: RunId, waits: &Waits) {
        for question in waits.questions.iter().filter(|question| question.id > self.asked) {
            let text = describe_question(context, context.paint_err, run, question);
            match &self.bar {
                Some(bar) => bar.suspend(|| output::note(&text)),
                None => output::note(&text),
            }
        }
        self.asked = waits.questions.iter().map(|question| question.id).max().unwrap_or(self.asked).max(self.asked);
        let paint = self.style.paint;
        if let Some(bar) = &self.bar {
            let what = match (waits.questions.is_empty(), waits.wake_at) {
                (false, _) => "waits for an answer".into(),
                (true, Some(at)) => format!("sleeps; goes on {}", in_time(at, context.now())),
                (true, None) => "waits for a signal".into(),
            };
            bar.set_message(format!(" · {}", paint.wait(what)));
        }
    }

    fn refresh(&self) {
        let (Some(bar), Some(reader)) = (&self.bar, &self.reader) else { return };
        let projection = reader.builder().projection();
        let (paint, room) = (self.style.paint, self.style.width.saturating_sub(4).max(20));
        let spending = words::spending(projection.ledger.tokens(), projection.ledger.spent);
        bar.set_prefix(format!("iteration {} · {spending}", projection.iteration));
        let mut message = String::new();
        for step in reader.builder().steps().iter().filter(|step| step.state == StepState::Open) {
            let call = match step.kind {
                StepKind::Model => step.name.clone(),
                _ => format!("{} {}", step.name, step.args),
            };
            message.push_str(&format!("\n  {}", paint.live(excerpt::line(&call, room))));
            let stream = self.stream.as_ref().filter(|(id, _, _)| Some(*id) == step.call);
            if let Some((_, _, text)) = stream {
                let lines = wrapped(text, room);
                for line in lines.iter().skip(lines.len().saturating_sub(STREAM_LINES)) {
                    message.push_str(&format!("\n  {}", paint.dim(line)));
                }
            }
        }
        bar.set_message(message);
    }

    /// Takes the moving part off the screen.
    pub fn close(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.close();
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} · {elapsed}{msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// Text in lines of at most `room` characters, made harmless.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let word = excerpt::line(word, room);
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
                lines.push(std::mem::take(&mut line));
            }
            line = if line.is_empty() { word } else { format!("{line} {word}") };
        }
        lines.extend((!line.is_empty()).then_some(line));
    }
    lines
}

/// Characters in a line of this terminal, or of a page.
pub fn width() -> usize {
    let found = comfy_table::Table::new().width().map(usize::from);
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    set.or(found).unwrap_or(100).clamp(40, 160)
}
