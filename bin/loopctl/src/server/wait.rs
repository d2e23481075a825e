//! Waiting for what was called: a spectator with an exit code.

use super::follow::{Ear, Heard};
use super::names;
use super::part;
use super::questions;
use super::reach::Reach;
use super::watch::Watcher;
use super::works::{self, Works};
use crate::context::Context;
use crate::drive::until;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use loopd_agent::manifest::Duration as Span;
use loopd_client::Part;
use loopd_protocol::{
    ActorKey, ActorKind, CallPhase, ConversationId, Event, HarnessCall, HarnessCallId, Message, MessageStatus,
    Question, QuestionStatus,
};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// What is waited for.
pub enum Awaited {
    /// The ends of these calls.
    Calls(Vec<HarnessCallId>),
    /// A Message of one of these, behind this seq.
    Reply(Vec<ActorKey>, u64),
}

impl Awaited {
    /// Whether a Message of this one may be the reply.
    fn is_of(&self, from: &ActorKey) -> bool {
        matches!(self, Self::Reply(of, _) if of.iter().any(|actor| *actor == *from || *actor == from.owner()))
    }
}

/// How somebody waits.
pub struct Patience {
    /// No longer than this.
    pub timeout: Option<Span>,
    /// How the answers are written.
    pub format: Format,
    /// What is done meanwhile is told on stderr.
    pub progress: bool,
    /// The work that is done for the answer, where an Operator may do some.
    pub works: Option<Works>,
}

impl Patience {
    /// Waits, and says nothing of what is done meanwhile.
    pub const fn new(timeout: Option<Span>, format: Format) -> Self {
        Self { timeout, format, progress: false, works: None }
    }
}

/// Somebody who waits.
struct Waiting<'a> {
    reach: &'a Reach,
    conversation: ConversationId,
    watcher: Watcher<'a>,
    awaited: Awaited,
    /// Where the calls stand.
    calls: BTreeMap<HarnessCallId, HarnessCall>,
    /// Something happened since somebody looked whether it is over.
    news: bool,
    /// The answers are shown as they come.
    live: bool,
    /// What is done meanwhile is told on stderr.
    progress: bool,
    format: Format,
}

/// Waits, and writes the answers to stdout: to a terminal as they come, otherwise alone.
///
/// # Errors
/// [`Problem`].
pub async fn wait(
    context: &Context,
    reach: &Reach,
    (conversation, mut ear): (ConversationId, Ear),
    awaited: Awaited,
    patience: Patience,
) -> Result<Exit, Problem> {
    let Patience { timeout, format, progress, mut works } = patience;
    context.signals.polite();
    let live = format == Format::Table && output::stdout_is_terminal();
    let watcher = Watcher::new(context, reach, conversation);
    let calls = BTreeMap::new();
    let mut waiting = Waiting { reach, conversation, watcher, awaited, calls, news: true, live, progress, format };
    waiting.look().await?;
    let deadline = timeout.map(|timeout| Instant::now() + Duration::from_millis(timeout.ms));
    loop {
        if let Some(exit) = waiting.is_over().await? {
            return Ok(exit);
        }
        let heard = tokio::select! {
            heard = ear.next() => heard?,
            event = works::next(&mut works) => {
                if let Some(exit) = waiting.at_work(&event.event) {
                    return Ok(exit);
                }
                continue;
            }
            () = context.signals.asked() => {
                waiting.watcher.screen_done();
                let later = waiting.later();
                output::note(&format!("no longer waiting; it goes on; {later}"));
                return Ok(context.signals.exit());
            }
            () = until(deadline) => {
                waiting.watcher.screen_done();
                let what = format!("it is not done after {}", crate::words::duration(timeout.map_or(0, |span| span.ms)));
                let later = waiting.later();
                return Err(Problem::new(Code::Timeout, what).why("it goes on").fix(later));
            }
        };
        if let Some(exit) = waiting.take(heard).await? {
            return Ok(exit);
        }
    }
}

impl Waiting<'_> {
    /// Where the calls stand now: they may have ended before anybody listened.
    async fn look(&mut self) -> Result<(), Problem> {
        let Awaited::Calls(ids) = &self.awaited else { return Ok(()) };
        for id in ids {
            let call = self.reach.client.call(*id).await?;
            if self.live {
                self.watcher.message(&self.reach.client.message(call.message).await?);
            }
            self.calls.insert(*id, call);
        }
        self.news = true;
        Ok(())
    }

    /// What an Operator does for the answer.
    fn at_work(&mut self, event: &Event) -> Option<Exit> {
        match event {
            Event::Question { question } if matches!(self.awaited, Awaited::Reply(..)) => {
                return self.asked(question, false);
            }
            Event::Call { call } if self.progress => self.tell_call(call),
            Event::Message { message } if self.progress => {
                if let Some(note) = part::noted(message) {
                    self.watcher.note(&format!("… {note}"));
                }
            }
            _ => {}
        }
        None
    }

    fn tell_call(&mut self, call: &HarnessCall) {
        if call.phase != CallPhase::Queued {
            self.watcher.note(&format!("… {}", part::called(call).1));
        }
    }

    /// A person is asked, without whom the answer may never come.
    fn asked(&mut self, question: &Question, shown: bool) -> Option<Exit> {
        if question.status != QuestionStatus::Open || question.answer.is_some() {
            return None;
        }
        self.watcher.screen_done();
        if !shown {
            output::note(&questions::asks(question));
            output::note(&questions::how(self.reach, question));
        }
        output::note(&format!("and then  {}", self.command()));
        Some(Exit::Waiting)
    }

    fn command(&self) -> String {
        let command = match &self.awaited {
            Awaited::Calls(ids) if ids.len() == 1 => {
                let id = ids.first().map(names::short).unwrap_or_default();
                format!("call show {id} --wait")
            }
            Awaited::Calls(_) | Awaited::Reply(..) => format!("conv watch {}", names::short(self.conversation)),
        };
        self.reach.command(&command)
    }

    fn later(&self) -> String {
        format!("see what comes of it:  {}", self.command())
    }

    /// Tells how far it is, unless that stands on the screen.
    fn told(&mut self, event: &Event) {
        match event {
            Event::Message { message } if !self.live && part::is_progress(message) => {
                if let Some(note) = part::noted(message) {
                    self.watcher.note(&note);
                }
            }
            Event::Call { call } if self.calls.contains_key(&call.id) && !call.phase.is_final() => self.tell_call(call),
            _ => {}
        }
    }

    async fn is_over(&mut self) -> Result<Option<Exit>, Problem> {
        let Awaited::Calls(ids) = &self.awaited else { return Ok(None) };
        if !std::mem::take(&mut self.news) || !rest(self.reach, self.calls.values()).await? {
            return Ok(None);
        }
        self.watcher.screen_done();
        let calls = ids.iter().filter_map(|id| self.calls.get(id));
        ended(self.reach, calls, (self.live, self.format)).await.map(Some)
    }

    async fn take(&mut self, heard: Heard) -> Result<Option<Exit>, Problem> {
        match heard {
            Heard::Event(event) => {
                self.news = true;
                if self.live && !is_own(&event.event) {
                    self.watcher.event(&event);
                }
                if self.progress {
                    self.told(&event.event);
                }
                match event.event {
                    Event::Call { call } => {
                        if let Some(known) = self.calls.get_mut(&call.id).filter(|known| known.revision < call.revision)
                        {
                            *known = *call;
                        }
                    }
                    Event::Question { question } if self.awaited.is_of(&question.from) => {
                        return Ok(self.asked(&question, self.live));
                    }
                    Event::Message { message } | Event::MessageEnded { message }
                        if is_reply(&self.awaited, &message) =>
                    {
                        self.watcher.screen_done();
                        return replied(self.reach, &message, (self.live, self.format)).await.map(Some);
                    }
                    _ => {}
                }
            }
            Heard::Delta(delta) => {
                if self.live {
                    self.watcher.delta(&delta);
                }
            }
            Heard::Note(note) => self.watcher.note(&note),
            Heard::Reset => self.look().await?,
            Heard::Closed(_) => {
                return Err(Problem::new(Code::ServerConflict, "the conversation was closed meanwhile"));
            }
        }
        Ok(None)
    }
}

/// Whether nothing happens any more without somebody.
async fn rest(reach: &Reach, calls: impl Iterator<Item = &HarnessCall>) -> Result<bool, Problem> {
    for call in calls {
        let asks = call.phase == CallPhase::Waiting && call.reason.as_deref() == Some("question");
        // It may have been answered, and the Run not have heard of it yet.
        let rests =
            if asks { !open_questions(reach, call).await?.is_empty() } else { call.phase == CallPhase::Waiting };
        if !rests && !call.phase.is_final() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What the call, or one of its children, waits for.
async fn open_questions(reach: &Reach, call: &HarnessCall) -> Result<Vec<Question>, Problem> {
    let mut open =
        names::all(usize::MAX, async |part: Part| reach.client.questions(Some(call.conversation), &part).await).await?;
    open.retain(|question| question.run == call.run || question.from == call.actor);
    Ok(open)
}

/// What people say stands on the screen, or is not what is waited for.
fn is_own(event: &Event) -> bool {
    let Event::Message { message } = event else { return false };
    message.from.kind() == ActorKind::Person
}

fn is_reply(awaited: &Awaited, message: &Message) -> bool {
    let Awaited::Reply(_, seq) = awaited else { return false };
    let is_one = !part::is_progress(message) && !part::is_question(message);
    message.seq > *seq && awaited.is_of(&message.from) && message.status.is_final() && is_one
}

async fn replied(reach: &Reach, message: &Message, (live, format): (bool, Format)) -> Result<Exit, Problem> {
    let message = reach.client.message(message.id).await?;
    say(&message, (live, format))?;
    Ok(if message.status == MessageStatus::Completed { Exit::Completed } else { Exit::Failed })
}

/// Writes what somebody said, unless it stands on the screen.
fn say(message: &Message, (live, format): (bool, Format)) -> Result<(), Problem> {
    match format {
        Format::Json | Format::Jsonl => output::json(format, message)?,
        Format::Name => output::line(&message.id.to_string())?,
        Format::Table if live => {}
        Format::Table => {
            let answer = part::answer(message);
            if !answer.trim().is_empty() {
                output::line(&answer)?;
            }
        }
    }
    Ok(())
}

/// What the calls came to. The first that did not succeed says how the process ends.
async fn ended(
    reach: &Reach,
    calls: impl Iterator<Item = &HarnessCall>,
    (live, format): (bool, Format),
) -> Result<Exit, Problem> {
    let mut exit = Exit::Completed;
    for call in calls {
        if call.phase.is_final() {
            say(&reach.client.message(call.message).await?, (live, format))?;
        }
        let one = of_call(call);
        if one != Exit::Completed {
            tell(reach, call, live).await?;
        }
        if exit == Exit::Completed {
            exit = one;
        }
    }
    Ok(exit)
}

async fn tell(reach: &Reach, call: &HarnessCall, live: bool) -> Result<(), Problem> {
    let id = names::short(call.id);
    let (_, standing) = part::standing(call);
    if call.phase != CallPhase::Waiting {
        output::note(&format!("{id} {standing}"));
        return Ok(());
    }
    if call.reason.as_deref() != Some("question") {
        let resume = reach.command(&format!("call resume {id} --max-…"));
        output::note(&format!("{id} {standing}; raise the limit with  {resume}"));
        return Ok(());
    }
    if !live {
        for question in open_questions(reach, call).await? {
            output::note(&questions::asks(&question));
            output::note(&questions::how(reach, &question));
        }
    }
    output::note(&format!("and then  {}", reach.command(&format!("call show {id} --wait"))));
    Ok(())
}

/// How the process ends after this call.
pub fn of_call(call: &HarnessCall) -> Exit {
    match (call.phase, call.reason.as_deref()) {
        (CallPhase::Succeeded, _) => Exit::Completed,
        (CallPhase::Waiting | CallPhase::Failed, Some("BudgetExceeded")) => Exit::BudgetExceeded,
        (CallPhase::Waiting | CallPhase::Failed, Some("Stuck")) => Exit::Stuck,
        (CallPhase::Waiting | CallPhase::Failed, Some("PolicyDenied")) => Exit::PolicyDenied,
        (CallPhase::Queued | CallPhase::Running | CallPhase::Waiting | CallPhase::Cancelled, _) => Exit::Waiting,
        (CallPhase::Failed | CallPhase::TimedOut, _) => Exit::Failed,
        (CallPhase::Unknown, _) => Exit::Inconclusive,
    }
}
