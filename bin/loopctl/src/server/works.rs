//! Work conversations: what Operators do for the answers of a Conversation, each in one of its own.

use super::follow::{Ear, Heard};
use super::names::all;
use super::reach::Reach;
use crate::problem::Problem;
use loopd_client::{Client, Start, Window};
use loopd_protocol::{ActorKey, ActorKind, ConversationId, FeedEvent, HarnessCall, Message, MessageId};
use std::collections::{BTreeMap, HashMap};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Messages that one look brings.
const PAGE: u32 = 200;

/// Events that wait for whoever reads them.
const WAITING: usize = 64;

/// The work conversations of a Conversation, followed. What is heard of one is in order; several are not in step.
pub struct Works {
    client: Client,
    conversation: ConversationId,
    followed: BTreeMap<ActorKey, ConversationId>,
    ears: JoinSet<()>,
    tell: mpsc::Sender<Box<FeedEvent>>,
    told: mpsc::Receiver<Box<FeedEvent>>,
}

impl Works {
    /// Follows those that there are.
    ///
    /// # Errors
    /// [`Problem`].
    pub async fn open(reach: &Reach, conversation: ConversationId, start: Start) -> Result<Self, Problem> {
        let (tell, told) = mpsc::channel(WAITING);
        let client = reach.client.clone();
        let (followed, ears) = (BTreeMap::new(), JoinSet::new());
        let mut works = Self { client, conversation, followed, ears, tell, told };
        works.follow(start).await?;
        Ok(works)
    }

    /// Follows those as well that were opened since, from their beginning.
    ///
    /// # Errors
    /// [`Problem`].
    pub async fn look(&mut self) -> Result<(), Problem> {
        self.follow(Start::Beginning).await
    }

    /// Follows the work of whoever is addressed or speaks here for the first time.
    ///
    /// # Errors
    /// [`Problem`].
    pub async fn meet(&mut self, message: &Message) -> Result<(), Problem> {
        let mut there = message.to.iter().chain([&message.from]).filter(|actor| actor.kind() == ActorKind::Operator);
        if there.any(|actor| !self.followed.contains_key(&actor.owner())) { self.look().await } else { Ok(()) }
    }

    /// Which they are.
    pub fn ids(&self) -> Vec<ConversationId> {
        self.followed.values().copied().collect()
    }

    async fn follow(&mut self, start: Start) -> Result<(), Problem> {
        for work in self.client.work(self.conversation).await? {
            let Some(of) = work.work_of.filter(|of| !self.followed.contains_key(&of.operator)) else { continue };
            let mut ear = Ear::of(self.client.clone(), work.id, start.clone()).await?;
            let tell = self.tell.clone();
            self.followed.insert(of.operator, work.id);
            self.ears.spawn(async move {
                // What becomes of the connection, whoever follows the Conversation itself says.
                while let Ok(heard) = ear.next().await {
                    let gone = match heard {
                        Heard::Event(event) => tell.send(event).await.is_err(),
                        Heard::Closed(_) => true,
                        Heard::Delta(_) | Heard::Note(_) | Heard::Reset => false,
                    };
                    if gone {
                        break;
                    }
                }
            });
        }
        Ok(())
    }

    /// What happens next in any of them; it waits as long as it takes.
    pub async fn next(&mut self) -> Box<FeedEvent> {
        match self.told.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }
}

/// What happens next in the work that is followed; nothing ever, where none is.
pub async fn next(works: &mut Option<Works>) -> Box<FeedEvent> {
    match works {
        Some(works) => works.next().await,
        None => std::future::pending().await,
    }
}

/// What was said at work since that moment, with the calls by their output.
pub async fn said(
    reach: &Reach,
    conversation: ConversationId,
    since: i64,
) -> Result<(Vec<Message>, HashMap<MessageId, HarnessCall>), Problem> {
    let client = &reach.client;
    let (mut messages, mut calls) = (Vec::new(), HashMap::new());
    for work in client.work(conversation).await? {
        let mut window = Window::Latest;
        loop {
            let page = client.messages(work.id, window, PAGE).await?;
            let Some(first) = page.first() else { break };
            let goes_on = first.seq > 1 && first.created_at >= since;
            window = Window::Before(first.seq);
            messages.extend(page.into_iter().filter(|message| message.created_at >= since));
            if !goes_on {
                break;
            }
        }
        let made = all(usize::MAX, async |part| client.calls(work.id, &part).await).await?;
        calls.extend(made.into_iter().map(|call| (call.message, call)));
    }
    for message in &mut messages {
        if message.block_count > message.blocks.len() as u64 {
            *message = client.message(message.id).await?;
        }
    }
    messages.sort_by_key(|message| (message.created_at, message.conversation, message.seq));
    Ok((messages, calls))
}
