//! A Conversation's Feed as commands hear it: losses of the connection become one line each.

use super::reach::Reach;
use crate::problem::Problem;
use loopd_client::{Client, Follow, Start, Told};
use loopd_protocol::{ConversationId, Delta, FeedEvent};

/// What is heard.
pub enum Heard {
    /// Something happened, for the first time.
    Event(Box<FeedEvent>),
    /// Text as it arrives.
    Delta(Delta),
    /// Something about the connection.
    Note(String),
    /// Events are gone that were not heard: read anew what there is.
    Reset,
    /// Nothing more comes.
    Closed(String),
}

/// The Feed of one Conversation.
pub struct Ear {
    follow: Follow,
    away: bool,
}

impl Ear {
    /// Begins to listen; what happens from now on will be heard.
    ///
    /// # Errors
    /// [`Problem`].
    pub async fn open(reach: &Reach, conversation: ConversationId, start: Start) -> Result<Self, Problem> {
        Self::of(reach.client.clone(), conversation, start).await
    }

    /// As [`Ear::open`], with a client of its own.
    ///
    /// # Errors
    /// [`Problem`].
    pub async fn of(client: Client, conversation: ConversationId, start: Start) -> Result<Self, Problem> {
        let mut follow = Follow::new(client, vec![format!("conversation/{conversation}")], start);
        // The first thing is always where the stream stands.
        follow.next().await?;
        Ok(Self { follow, away: false })
    }

    /// What is heard next. It may be dropped at any point and called again.
    ///
    /// # Errors
    /// [`Problem`] when coming back is no use.
    pub async fn next(&mut self) -> Result<Heard, Problem> {
        loop {
            return Ok(match self.follow.next().await? {
                Some(Told::Event(event)) => Heard::Event(event),
                Some(Told::Delta(delta)) => Heard::Delta(delta),
                Some(Told::Lost(why)) => {
                    if std::mem::replace(&mut self.away, true) {
                        continue;
                    }
                    {
                        tracing::debug!(%why, "the stream broke off");
                        Heard::Note("the connection is lost; waiting for the server".to_owned())
                    }
                }
                Some(Told::Hello(_)) => {
                    if !std::mem::take(&mut self.away) {
                        continue;
                    }
                    Heard::Note("the server is back; nothing was missed".to_owned())
                }
                Some(Told::Reset(_)) => Heard::Reset,
                Some(Told::Closed { code, .. }) => Heard::Closed(code),
                None => Heard::Closed("closed".to_owned()),
            });
        }
    }
}
