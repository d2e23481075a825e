//! Listening to a Feed in process.

use crate::said;
use async_trait::async_trait;
use loopd_operator::{Ear, Error, Heard};
use loopd_platform::{Caller, FeedName, Platform};
use loopd_protocol::FeedEvent;
use loopd_store::{Hint, Hints};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// Events that are read at once.
const EVENTS: usize = 500;

/// So often the Feed is read without a hint: makes up for lost ones.
const EVERY: Duration = Duration::from_secs(5);

/// What listens to one Feed.
pub(crate) struct Inner {
    platform: Platform,
    by: Caller,
    name: FeedName,
    hints: Hints,
    deaf: bool,
    /// The position that was read last, once it listens.
    position: Option<u64>,
    ready: VecDeque<FeedEvent>,
    /// The Feed may have something.
    rung: bool,
}

impl Inner {
    pub(crate) fn new(platform: Platform, by: Caller, name: FeedName) -> Self {
        let hints = platform.store().hints();
        Self { platform, by, name, hints, deaf: false, position: None, ready: VecDeque::new(), rung: true }
    }

    /// Waits until the Feed may have something.
    async fn ring(&mut self) {
        let feed = self.name.feed();
        while !self.rung {
            let heard = if self.deaf {
                tokio::time::sleep(EVERY).await;
                Ok(Hint::Foreign)
            } else {
                tokio::time::timeout(EVERY, self.hints.recv()).await.unwrap_or(Ok(Hint::Foreign))
            };
            match heard {
                Ok(Hint::Feed(other)) => self.rung = other == feed,
                Ok(Hint::Foreign) | Err(RecvError::Lagged(_)) => self.rung = true,
                Ok(Hint::Run(_) | Hint::Inbox(_)) => {}
                Err(RecvError::Closed) => self.deaf = true,
            }
        }
    }
}

#[async_trait]
impl Ear for Inner {
    async fn hear(&mut self) -> Result<Option<Heard>, Error> {
        let Some(position) = self.position else {
            let heads = self.platform.positions(std::slice::from_ref(&self.name)).await.map_err(said)?;
            self.position = Some(heads.first().copied().unwrap_or_default());
            return Ok(Some(Heard::Here));
        };
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.position = Some(event.position);
                return Ok(Some(Heard::Event(Box::new(event))));
            }
            self.ring().await;
            // Whoever was a member when it began may be none any more.
            self.platform.may_follow(&self.by, &self.name).await.map_err(said)?;
            let (events, more) = self.platform.events(&self.name, position, EVENTS).await.map_err(said)?;
            // With a full part there may be more behind it.
            self.rung = more;
            self.ready.extend(events);
        }
    }
}
