//! A Conversation as it is written, on one screen: who speaks, text as it comes, tools, Questions.
//!
//! What somebody says is indented, so that no text can pass for a heading. Where nobody watches the text come (a pipe),
//! only what is durable is written; it is written once either way.

use super::part::{self, Part};
use crate::paint::{Paint, Tone};
use loopd_fixture::excerpt;
use loopd_protocol::{Block, BlockOp, ConversationId, Delta, KnownBlock, Message, MessageId, MessageStatus};
use std::collections::HashMap;
use std::io::Write;

/// The screen.
pub struct Screen<W> {
    out: W,
    paint: Paint,
    /// Somebody watches the text come.
    live: bool,
    messages: HashMap<MessageId, Known>,
    /// Whose heading stands above.
    speaker: Option<MessageId>,
    /// The text that stands on the screen and is not durable yet.
    streamed: Option<Streamed>,
    /// The cursor stands at the beginning of a line.
    fresh: bool,
    /// Whose screen it is: what is said elsewhere stands further in.
    home: Option<ConversationId>,
    /// What lines begin with now.
    margin: &'static str,
}

/// What lines begin with that were not said in the Conversation itself.
const ELSEWHERE: &str = "    ";

/// What is known of a Message.
struct Known {
    heading: String,
    margin: &'static str,
    revision: u64,
    status: MessageStatus,
    blocks: usize,
    /// What is being written: which part, and its text so far.
    writes: Option<(String, String)>,
    /// What of it stands on the screen already, further up.
    above: Option<String>,
}

/// Text of a Message as it stands on the screen.
struct Streamed {
    message: MessageId,
    text: String,
}

impl<W: Write> Screen<W> {
    pub fn new(out: W, paint: Paint, live: bool) -> Self {
        let (messages, home) = (HashMap::new(), None);
        Self { out, paint, live, messages, speaker: None, streamed: None, fresh: true, home, margin: "" }
    }

    /// The screen of this Conversation: what is said in others stands further in.
    pub fn at(self, home: ConversationId) -> Self {
        Self { home: Some(home), ..self }
    }

    fn margin_of(&self, conversation: ConversationId) -> &'static str {
        if self.home.is_none_or(|home| home == conversation) { "" } else { ELSEWHERE }
    }

    /// Takes a Message as seen.
    pub fn skip(&mut self, message: &Message) {
        let known = Known {
            heading: part::heading(message),
            margin: self.margin_of(message.conversation),
            revision: message.revision,
            status: message.status,
            blocks: message.blocks.len(),
            writes: None,
            above: None,
        };
        self.messages.insert(message.id, known);
    }

    /// A Message was said or begun. The same one again is nothing new.
    pub fn message(&mut self, message: &Message) {
        if self.messages.contains_key(&message.id) {
            return;
        }
        self.skip(message);
        for block in &message.blocks {
            self.block(message.id, block);
        }
        self.failed(message);
    }

    /// An open Message went on, unless that is known already.
    pub fn updated(&mut self, id: MessageId, revision: u64, ops: &[BlockOp]) {
        let Some(known) = self.messages.get_mut(&id).filter(|known| known.revision < revision) else { return };
        known.revision = revision;
        for op in ops {
            match op {
                BlockOp::Push { block } => {
                    if let Some(known) = self.messages.get_mut(&id) {
                        known.blocks += 1;
                    }
                    self.block(id, block);
                }
                BlockOp::Set { block, .. } => self.block(id, block),
                BlockOp::Append { text, .. } => self.say(id, &excerpt::lines(text)),
            }
        }
    }

    /// An open Message ended, unless that is known already.
    pub fn ended(&mut self, message: &Message) {
        let Some(known) = self.messages.get_mut(&message.id).filter(|known| !known.status.is_final()) else { return };
        (known.status, known.revision, known.writes) = (message.status, message.revision, None);
        self.settle(message.id);
        self.failed(message);
    }

    fn failed(&mut self, message: &Message) {
        let word = match message.status {
            MessageStatus::Streaming | MessageStatus::Completed => return,
            MessageStatus::Failed => "failed",
            MessageStatus::Cancelled => "cancelled",
            MessageStatus::Expired => "expired",
        };
        let why = message.error.as_ref().map(|note| format!(": {}", excerpt::line(&note.message, 600)));
        self.heading(message.id);
        self.indented(&self.paint.bad(format!("{word}{}", why.unwrap_or_default())));
    }

    /// Text as it comes: for watching only.
    pub fn delta(&mut self, delta: &Delta) {
        let id = delta.message;
        let Some(known) = self.messages.get_mut(&id).filter(|known| !known.status.is_final()) else { return };
        let offset = usize::try_from(delta.offset).unwrap_or(usize::MAX);
        match &mut known.writes {
            // A stream that came back says again what was said.
            Some((part, text)) if *part == delta.part && text.is_char_boundary(offset) => {
                text.truncate(offset);
                text.push_str(&delta.text);
            }
            // The beginning was missed: what is durable will say it all.
            _ if offset > 0 => return,
            writes => *writes = Some((delta.part.clone(), delta.text.clone())),
        }
        self.stream(id);
    }

    /// Writes what is new of a text that is being written. One at a time: the others come when they are durable.
    fn stream(&mut self, id: MessageId) {
        let others = self.streamed.as_ref().is_some_and(|shown| shown.message != id);
        if !self.live || others {
            return;
        }
        let Some((_, text)) = self.messages.get(&id).and_then(|known| known.writes.clone()) else { return };
        let shown = self.streamed.take().map(|shown| shown.text).unwrap_or_default();
        if shown.is_empty() {
            self.heading(id);
        }
        if let Some(more) = text.strip_prefix(shown.as_str()) {
            self.write(&excerpt::lines(more));
            self.streamed = Some(Streamed { message: id, text });
        } else if shown.starts_with(&text) {
            // It is told from the beginning, and not as far as it was.
            self.streamed = Some(Streamed { message: id, text: shown });
        } else {
            self.break_line();
            self.indented(&self.paint.dim("the answer broke off; it begins again"));
            self.write(&excerpt::lines(&text));
            self.streamed = Some(Streamed { message: id, text });
        }
        let _ = self.out.flush();
    }

    fn block(&mut self, id: MessageId, block: &Block) {
        if let Some(text) = spoken(block)
            && let Some(shown) = self.streamed.take_if(|shown| shown.message == id)
        {
            if let Some(known) = self.messages.get_mut(&id) {
                known.writes = None;
            }
            if let Some(rest) = text.strip_prefix(shown.text.as_str()) {
                self.write(&excerpt::lines(rest.trim_end()));
                self.break_line();
                return;
            }
            if text.trim() == shown.text.trim() {
                self.break_line();
                return;
            }
            self.break_line();
        }
        if let Some(text) = spoken(block)
            && let Some(above) = self.messages.get_mut(&id).and_then(|known| known.above.take())
            && above.trim() == text.trim()
        {
            return;
        }
        match part::part(block) {
            Some(Part::Said(text)) => self.say(id, &text),
            Some(Part::Done(tone, text)) => {
                let text = self.paint.tone(tone, text);
                self.say(id, &text);
            }
            Some(Part::Beside(text)) => {
                let text = self.paint.dim(text);
                self.say(id, &text);
            }
            None => {}
        }
    }

    fn say(&mut self, id: MessageId, text: &str) {
        self.interrupt();
        self.heading(id);
        self.indented(text);
    }

    fn indented(&mut self, text: &str) {
        self.write(text);
        self.break_line();
    }

    /// What was streamed of this Message stands, whatever became of it.
    fn settle(&mut self, id: MessageId) {
        if self.streamed.take_if(|shown| shown.message == id).is_some() {
            self.break_line();
        }
    }

    /// Something else has to be said in the middle of a text: that comes again, whole, when it is durable.
    fn interrupt(&mut self) {
        if let Some(shown) = self.streamed.take()
            && let Some(known) = self.messages.get_mut(&shown.message)
        {
            // Its part is begun anew only by another attempt.
            known.writes = None;
            known.above = Some(shown.text);
            self.speaker = None;
        }
        self.break_line();
    }

    /// Writes a line that nobody in the Conversation said.
    pub fn line(&mut self, tone: Option<Tone>, text: &str) {
        self.interrupt();
        self.speaker = None;
        let text = tone.map_or_else(|| self.paint.dim(text), |tone| self.paint.tone(tone, text));
        let _ = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
    }

    /// Writes a line about what happens in a Conversation, in its place.
    pub fn beside(&mut self, conversation: ConversationId, tone: Tone, text: &str) {
        self.interrupt();
        self.speaker = None;
        let (margin, text) = (self.margin_of(conversation), self.paint.tone(tone, text));
        let _ = writeln!(self.out, "{margin}{text}").and_then(|()| self.out.flush());
    }

    fn heading(&mut self, id: MessageId) {
        if self.speaker.replace(id) == Some(id) {
            return;
        }
        self.break_line();
        let known = self.messages.get(&id).map(|known| (known.margin, known.heading.clone()));
        let (margin, heading) = known.unwrap_or_default();
        self.margin = margin;
        let _ = writeln!(self.out, "{margin}{}", self.paint.bold(heading));
    }

    fn write(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            if self.fresh && piece != "\n" {
                let _ = self.out.write_all(self.margin.as_bytes()).and_then(|()| self.out.write_all(b"  "));
            }
            let _ = self.out.write_all(piece.as_bytes());
            self.fresh = piece.ends_with('\n');
        }
    }

    /// Ends the line that was begun.
    pub fn break_line(&mut self) {
        if !self.fresh {
            let _ = self.out.write_all(b"\n");
            self.fresh = true;
        }
        let _ = self.out.flush();
    }
}

/// The text of a Block that came word by word before.
fn spoken(block: &Block) -> Option<&str> {
    match block {
        Block::Known(
            KnownBlock::Text { text } | KnownBlock::Markdown { text } | KnownBlock::Result { text: Some(text), .. },
        ) => Some(text),
        Block::Known(_) | Block::Unknown(_) => None,
    }
}

#[cfg(test)]
mod tests;
