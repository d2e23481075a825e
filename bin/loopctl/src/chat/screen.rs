//! What a conversation looks like: what the agent says on stdout, what it does on stderr.

use crate::context::Context;
use crate::drive::width;
use crate::journal::Reader;
use crate::output;
use crate::steps::Style;
use crate::words;
use loopd_fixture::excerpt;
use loopd_fixture::trajectory::{Step, StepKind, StepState};
use loopd_kernel::model::{ModelCall, ModelReply};
use loopd_kernel::{CallId, Projection, RunId};
use loopd_runtime::Delta;
use loopd_store::Store;
use std::io::Write as _;

/// Entries that one look brings.
const PAGE: usize = 1024;

/// The screen of one conversation.
pub struct Screen {
    style: Style,
    /// Somebody watches the text come.
    live: bool,
    reader: Option<Reader>,
    printed: Vec<bool>,
    /// The call whose text is on the screen, and its attempt.
    streamed: Option<(CallId, u32)>,
    /// The call that was interrupted: what still comes of it is not shown word by word.
    cut: Option<CallId>,
    /// The last text that the model said, by whatever way it came to the screen.
    said: String,
    /// The cursor stands behind something.
    open: bool,
}

impl Screen {
    pub fn new(context: &Context) -> Self {
        Self {
            style: Style { paint: context.paint_err, width: width(), full: false },
            live: output::stdout_is_terminal(),
            reader: None,
            printed: Vec::new(),
            streamed: None,
            cut: None,
            said: String::new(),
            open: false,
        }
    }

    /// Takes what is there already as seen.
    pub async fn skip(&mut self, store: &dyn Store, run: RunId) {
        self.read(store, run).await;
        self.printed =
            self.reader.as_ref().map(|reader| vec![true; reader.builder().steps().len()]).unwrap_or_default();
    }

    /// Shows what is new.
    pub async fn catch_up(&mut self, store: &dyn Store, run: RunId) {
        self.read(store, run).await;
        let Some(reader) = &self.reader else { return };
        let steps = reader.builder().steps();
        self.printed.resize(steps.len(), false);
        let mut lines = Vec::new();
        for (at, step, text) in self.style.steps(steps) {
            if let Some(printed) = self.printed.get_mut(at).filter(|printed| !**printed)
                && step.state != StepState::Open
            {
                *printed = true;
                lines.push((step.clone(), text));
            }
        }
        for (step, text) in lines {
            self.show(&step, &text);
        }
    }

    async fn read(&mut self, store: &dyn Store, run: RunId) {
        let reader = self.reader.get_or_insert_with(|| Reader::new(run));
        loop {
            let Ok(page) = store.entries(run, reader.head(), PAGE).await else { break };
            if page.is_empty() || !page.iter().all(|entry| reader.take(entry)) {
                break;
            }
        }
    }

    fn show(&mut self, step: &Step, text: &str) {
        match step.kind {
            StepKind::Model if is_aside(step) => {}
            StepKind::Model if step.state == StepState::Done => self.reply(step),
            // What is said to people was the model's words a moment ago, or says what went wrong.
            StepKind::Speak if step.args == self.said => {}
            StepKind::Speak => self.say(&step.args),
            // Waiting is the prompt, and what was typed stands on the screen.
            StepKind::Wait | StepKind::Signal | StepKind::Interrupt => {}
            _ => self.note(text),
        }
    }

    fn reply(&mut self, step: &Step) {
        let reply = serde_json::from_str::<ModelReply>(&step.result);
        let text = reply.map(|reply| reply.joined_text()).unwrap_or_default();
        let whole = self.cut.take().is_none_or(|call| Some(call) != step.call);
        let streamed = self.streamed.take().is_some_and(|(call, _)| Some(call) == step.call) && whole;
        if streamed && self.live {
            self.break_line();
            self.said = text;
        } else if self.live && !text.trim().is_empty() {
            self.say(&text);
            self.said = text;
        }
    }

    /// Says something of the agent's.
    fn say(&mut self, text: &str) {
        self.break_line();
        let _ = output::line(&if self.live { excerpt::lines(text) } else { text.into() });
    }

    /// Text as it comes. A new attempt starts afresh.
    pub fn delta(&mut self, delta: &Delta) {
        if !self.live || self.cut == Some(delta.call) {
            return;
        }
        let (call, attempt) = (delta.call, delta.attempt);
        let steps = self.reader.as_ref().map_or(&[][..], |reader| reader.builder().steps());
        // Notes for the model are not said to anybody.
        if steps.iter().rev().any(|step| step.call == Some(call) && is_aside(step)) {
            return;
        }
        match self.streamed {
            Some((of, n)) if of == call && n == attempt => {}
            Some((of, _)) if of == call => self.note("  the answer broke off; it begins again"),
            Some(_) | None => self.break_line(),
        }
        self.streamed = Some((call, attempt));
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(excerpt::lines(&delta.text).as_bytes()).and_then(|()| out.flush());
        self.open = true;
    }

    /// Shows no more words of the reply that is coming.
    pub fn cut(&mut self) {
        self.cut = self.streamed.map(|(call, _)| call);
    }

    /// Says something of the program's.
    pub fn note(&mut self, text: &str) {
        self.break_line();
        output::note(text);
    }

    /// Asks for the next line.
    pub fn prompt(&mut self) {
        self.break_line();
        if output::stderr_is_terminal() {
            let mut err = std::io::stderr().lock();
            let _ = err.write_all(self.style.paint.bold("> ").as_bytes()).and_then(|()| err.flush());
        }
    }

    /// Ends the line of a prompt that nobody ended with Enter.
    pub fn unanswered(&self) {
        if output::stderr_is_terminal() {
            output::note("");
        }
    }

    /// What has been used so far.
    pub fn usage(&mut self) {
        let Some(text) = self.projection().map(|projection| {
            let ledger = &projection.ledger;
            format!("{} · iteration {}", words::spending(ledger.tokens(), ledger.spent), projection.iteration)
        }) else {
            return self.note("nothing so far");
        };
        let text = self.style.paint.dim(text);
        self.note(&text);
    }

    /// The Run as it was read last.
    pub fn projection(&self) -> Option<&Projection> {
        self.reader.as_ref().map(|reader| reader.builder().projection())
    }

    fn break_line(&mut self) {
        if std::mem::take(&mut self.open) {
            let _ = output::line("");
        }
    }
}

/// True for a call that does not join the conversation: the model writes notes for itself.
fn is_aside(step: &Step) -> bool {
    step.kind == StepKind::Model && serde_json::from_str::<ModelCall>(&step.args).is_ok_and(|call| call.aside)
}
