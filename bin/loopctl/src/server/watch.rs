//! `conv watch`: following a Conversation live. Watching owns nothing: everything goes on without it.

use super::follow::{Ear, Heard};
use super::names;
use super::part;
use super::questions;
use super::reach::Reach;
use super::screen::Screen;
use super::works::{self, Works};
use crate::cli::{From, WatchConvArgs};
use crate::context::Context;
use crate::drive::until;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::paint::Tone;
use crate::problem::Problem;
use loopd_client::{Part, Start, Window};
use loopd_fixture::excerpt;
use loopd_protocol::{
    ActorKind, CallPhase, ConversationId, Delta, Event, FeedEvent, Message, MessageStatus, Question, QuestionId,
    QuestionStatus,
};
use std::collections::HashSet;
use std::io::Stdout;
use std::time::Duration;
use tokio::time::Instant;

/// Messages that are looked at to find those that go on.
const LATEST: u32 = 50;

/// Somebody who watches.
pub struct Watcher<'a> {
    context: &'a Context,
    reach: &'a Reach,
    conversation: ConversationId,
    screen: Screen<Stdout>,
    asked: HashSet<QuestionId>,
    /// The last seq that was shown.
    seq: u64,
}

/// Follows a Conversation until it is deleted or somebody asks to stop.
pub async fn watch(context: &Context, reach: &Reach, args: WatchConvArgs) -> Result<Exit, Problem> {
    let conversation = names::conversation(reach, &args.conv).await?;
    context.signals.polite();
    let last_seq = reach.client.conversation(conversation).await?.last_seq;
    let (start, behind) = match args.from {
        From::Now => (Start::Now, 0),
        From::Position(behind) => (Start::Beginning, behind),
    };
    let mut works = match args.work {
        true => Some(Works::open(reach, conversation, start.clone()).await?),
        false => None,
    };
    let mut ear = Ear::open(reach, conversation, start).await?;
    let table = args.format.format == Format::Table;
    let mut watcher = Watcher::new(context, reach, conversation);
    if table && args.from == From::Now {
        watcher.seq = last_seq;
        watcher.catch_up().await?;
        watcher.work_so_far(works.as_ref().map(Works::ids).unwrap_or_default()).await?;
    }
    let deadline = args.timeout.map(|timeout| Instant::now() + Duration::from_millis(timeout.ms));
    loop {
        let heard = tokio::select! {
            heard = ear.next() => heard?,
            event = works::next(&mut works) => {
                if table { watcher.work(&event) } else { output::json(Format::Jsonl, &event)? }
                continue;
            }
            () = context.signals.asked() => {
                watcher.screen_done();
                let again = reach.command(&format!("conv watch {}", names::short(conversation)));
                output::note(&format!("no longer watching; everything goes on. Watch again with  {again}"));
                return Ok(context.signals.exit());
            }
            () = until(deadline) => {
                watcher.screen_done();
                return Ok(Exit::TimedOut);
            }
        };
        if let (Some(works), Heard::Event(event)) = (&mut works, &heard)
            && let Event::Message { message } = &event.event
        {
            works.meet(message).await?;
        }
        match heard {
            Heard::Event(event) if event.position <= behind => {}
            Heard::Event(event) if !table => output::json(Format::Jsonl, &event)?,
            Heard::Event(event) => watcher.event(&event),
            Heard::Delta(delta) => {
                if table {
                    watcher.delta(&delta);
                }
            }
            Heard::Note(note) => watcher.note(&note),
            Heard::Reset => {
                watcher.note("some of what happened is not told any more");
                if table {
                    watcher.catch_up().await?;
                }
            }
            Heard::Closed(code) => {
                watcher.screen_done();
                output::note(&format!("nothing more comes from this conversation ({})", excerpt::line(&code, 60)));
                return Ok(if code == "deleted" { Exit::Completed } else { Exit::Conflict });
            }
        }
    }
}

impl<'a> Watcher<'a> {
    pub fn new(context: &'a Context, reach: &'a Reach, conversation: ConversationId) -> Self {
        let screen = Screen::new(std::io::stdout(), context.paint, output::stdout_is_terminal()).at(conversation);
        Self { context, reach, conversation, screen, asked: HashSet::new(), seq: 0 }
    }

    /// Shows what is open now, and what was said since the last Message that was shown.
    async fn catch_up(&mut self) -> Result<(), Problem> {
        let client = &self.reach.client;
        for message in client.messages(self.conversation, Window::Latest, LATEST).await? {
            if message.seq > self.seq || message.status == MessageStatus::Streaming {
                self.screen.message(&message);
            } else {
                self.screen.skip(&message);
            }
            self.seq = self.seq.max(message.seq);
        }
        for question in client.questions(Some(self.conversation), &Part::default()).await?.items {
            self.question(&question);
        }
        Ok(())
    }

    /// Takes what was said at work as seen, but for what goes on.
    async fn work_so_far(&mut self, works: Vec<ConversationId>) -> Result<(), Problem> {
        for work in works {
            for message in self.reach.client.messages(work, Window::Latest, LATEST).await? {
                if message.status == MessageStatus::Streaming {
                    self.screen.message(&message);
                } else {
                    self.screen.skip(&message);
                }
            }
        }
        Ok(())
    }

    /// Shows what an Operator does.
    fn work(&mut self, event: &FeedEvent) {
        match &event.event {
            Event::Message { message } => self.screen.message(message),
            Event::Call { call } if call.phase != CallPhase::Queued => {
                let (tone, line) = part::called(call);
                self.screen.beside(call.conversation, tone, &line);
            }
            Event::Call { .. } | Event::Conversation { .. } => {}
            _ => self.event(event),
        }
    }

    /// Says something that nobody in the Conversation said.
    pub fn note(&mut self, text: &str) {
        self.screen.break_line();
        output::note(&self.context.paint_err.dim(text));
    }

    /// Shows a Message, with what there is of it.
    pub fn message(&mut self, message: &Message) {
        self.screen.message(message);
    }

    /// Text as it comes.
    pub fn delta(&mut self, delta: &Delta) {
        self.screen.delta(delta);
    }

    /// Nothing more is shown.
    pub fn screen_done(&mut self) {
        self.screen.break_line();
    }

    /// Shows what happened.
    pub fn event(&mut self, event: &FeedEvent) {
        match &event.event {
            Event::Message { message } => {
                self.seq = self.seq.max(message.seq);
                self.screen.message(message);
            }
            Event::MessageUpdated { message, revision, ops } => self.screen.updated(*message, *revision, ops),
            Event::MessageEnded { message } => self.screen.ended(message),
            Event::Question { question } => self.question(question),
            Event::Call { call } => {
                let at_limit = call.phase == CallPhase::Waiting && call.reason.as_deref() != Some("question");
                if at_limit {
                    let (tone, standing) = part::standing(call);
                    let resume = self.reach.command(&format!("call resume {} --max-…", names::short(call.id)));
                    self.screen
                        .line(Some(tone), &format!("{}: {standing}; raise the limit with  {resume}", call.actor));
                }
            }
            Event::Conversation { conversation } if conversation.revision > 1 => {
                let members: Vec<_> = conversation.members.iter().map(|member| member.as_str()).collect();
                let put_away = if conversation.archived { ", put away" } else { "" };
                let title = excerpt::line(&conversation.title, 200);
                self.screen.line(None, &format!("“{title}”, with {}{put_away}", members.join(", ")));
            }
            Event::Steered { .. } => self.screen.line(None, "what was sent while it ran has been seen"),
            Event::Conversation { .. } | Event::ConversationDeleted { .. } | Event::Read { .. } | Event::Wake(_) => {}
        }
    }

    fn question(&mut self, question: &Question) {
        // What it asks, and who answered what, its Messages say.
        let late = matches!(question.status, QuestionStatus::TimedOut | QuestionStatus::Withdrawn);
        if question.status == QuestionStatus::Open && question.answer.is_none() && self.asked.insert(question.id) {
            let how = questions::how(self.reach, question);
            self.screen.line(Some(Tone::Waits), &how);
        } else if late {
            let uncounted = question.answer.as_ref().filter(|answer| answer.by.kind() == ActorKind::Person);
            let uncounted = uncounted.map(|answer| format!("; the answer of {} did not count", answer.by));
            let (name, ended) = (names::short(question.id), part::ended(question.status));
            self.screen.line(None, &format!("{name} is {ended}{}", uncounted.unwrap_or_default()));
        }
    }
}
