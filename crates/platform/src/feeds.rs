//! Feeds as clients know them.

use crate::rows::{actor_feed, conversation_feed};
use crate::{Caller, Error, Platform};
use loopd_kernel::TimeMs;
use loopd_protocol::{ActorKey, ConversationId, Event, FeedEvent};
use loopd_store::{FEED_BYTES, Feed, FeedItem, RecordId, StoreError};
use std::fmt;
use std::str::FromStr;

/// The name of a Feed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FeedName {
    /// `conversation/con_…`.
    Conversation(ConversationId),
    /// `actor/kind/key`: what wakes an Actor.
    Actor(ActorKey),
}

impl FeedName {
    /// The Feed in the store.
    #[must_use]
    pub fn feed(&self) -> Feed {
        match self {
            Self::Conversation(id) => conversation_feed(RecordId(id.0)),
            // Whoever an Actor's roles are for is woken for all of them.
            Self::Actor(key) => actor_feed(&key.owner()),
        }
    }
}

impl fmt::Display for FeedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conversation(id) => write!(f, "conversation/{id}"),
            Self::Actor(key) => write!(f, "actor/{key}"),
        }
    }
}

impl FromStr for FeedName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let name = match text.split_once('/') {
            Some(("conversation", id)) => id.parse().ok().map(Self::Conversation),
            Some(("actor", key)) => key.parse().ok().map(Self::Actor),
            _ => None,
        };
        name.ok_or_else(|| Error::invalid("feed", "a feed is `conversation/con_…` or `actor/kind/key`"))
    }
}

impl Platform {
    /// Whether the caller may follow the Feed. The flag: their access may end without a word in the Feed itself, because it
    /// is a work conversation's and they are members of the one that it works for.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a Conversation that they may not read; [`Error::Forbidden`] for the Feed of another Actor.
    pub async fn may_follow(&self, by: &Caller, feed: &FeedName) -> Result<bool, Error> {
        match feed {
            FeedName::Conversation(id) => self.readable(by, *id).await.map(|found| found.stored.work_of.is_some()),
            FeedName::Actor(key) if by.is_admin() || by.actor.owner() == key.owner() => Ok(false),
            FeedName::Actor(key) => Err(Error::Forbidden(format!("{} may not follow {key}", by.actor))),
        }
    }

    /// At most `limit` events of a Feed behind a position, in order, and whether more may follow: a part ends early once it
    /// has [`FEED_BYTES`]. Who may see them is [`Platform::may_follow`]'s.
    ///
    /// [`FEED_BYTES`]: loopd_store::FEED_BYTES
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn events(&self, feed: &FeedName, after: u64, limit: usize) -> Result<(Vec<FeedEvent>, bool), Error> {
        let items = self.store.feed(feed.feed(), after, limit).await?;
        let bytes: usize = items.iter().map(|item| item.body.len()).sum();
        let more = items.len() >= limit || bytes >= FEED_BYTES;
        let name = feed.to_string();
        let events = items.into_iter().map(|item| told(&name, item)).collect::<Result<_, _>>()?;
        Ok((events, more))
    }

    /// The last position of each Feed.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn positions(&self, feeds: &[FeedName]) -> Result<Vec<u64>, Error> {
        let feeds: Vec<_> = feeds.iter().map(FeedName::feed).collect();
        Ok(self.store.feed_heads(&feeds).await?)
    }
}

/// The event of an item: what the store assigned is filled in.
fn told(feed: &str, item: FeedItem) -> Result<FeedEvent, Error> {
    let FeedItem { position, at: TimeMs(at), of, body } = item;
    let mut event: Event = serde_json::from_slice(&body)
        .map_err(|error| StoreError::Corrupt(format!("{feed} position {position}: {error}")))?;
    if let Some((place, rev)) = of {
        match &mut event {
            Event::Message { message } | Event::MessageEnded { message } => {
                (message.seq, message.revision) = (place, rev);
            }
            Event::MessageUpdated { revision, .. } => *revision = rev,
            Event::Conversation { conversation } => (conversation.revision, conversation.position) = (rev, position),
            Event::Call { call } => call.revision = rev,
            Event::ConversationDeleted { .. }
            | Event::Question { .. }
            | Event::Steered { .. }
            | Event::Read { .. }
            | Event::Wake(_) => {}
        }
    }
    Ok(FeedEvent { feed: feed.to_owned(), position, at, event })
}
