//! Poll and Commit: each Actor's own place in each Conversation.

use crate::conversations::Found;
use crate::messages::Window;
use crate::rows::{Tries, body, conversation_feed, expect, named, publish, put, record};
use crate::{Caller, Error, Platform};
use loopd_protocol::{ConversationId, Event, Message, MessageStatus};
use loopd_store::{Batch, Place, RecordId, Table};
use serde::{Deserialize, Serialize};

/// What polling returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Polled {
    /// The caller's cursor: everything up to this seq was handled.
    pub seq: u64,
    /// Messages behind it, in order.
    pub messages: Vec<Message>,
    /// Whether there are more that could be read now.
    pub more: bool,
}

#[derive(Serialize, Deserialize)]
struct Cursor {
    seq: u64,
}

fn cursor_id(by: &Caller, conversation: ConversationId) -> RecordId {
    named(&format!("{conversation} {}", by.actor.owner()))
}

impl Platform {
    async fn cursor(&self, by: &Caller, found: &Found) -> Result<(u64, Option<u64>), Error> {
        let row = self.get(Table::Cursor, cursor_id(by, found.id)).await?;
        let seq = row.as_ref().map(|row| body::<Cursor>(row)).transpose()?.map_or(0, |cursor| cursor.seq);
        Ok((seq, row.map(|row| row.rev)))
    }

    /// Messages behind the caller's cursor, in order of seq, at least once: until [`Platform::commit`] moves the cursor,
    /// they come again. Without `streaming` it stops before the first Message that is not whole yet, so that a cursor
    /// never passes one.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn poll(
        &self,
        by: &Caller,
        conversation: ConversationId,
        limit: usize,
        streaming: bool,
    ) -> Result<Polled, Error> {
        let found = self.readable(by, conversation).await?;
        let (seq, _) = self.cursor(by, &found).await?;
        let limit = self.limit(limit);
        let rows = self.window(found.scope(), Window::After(seq), limit + 1).await?;
        let mut more = rows.len() > limit;
        let mut messages = Vec::new();
        for row in rows.iter().take(limit) {
            let message = self.whole(row, u64::MAX).await?;
            if message.status == MessageStatus::Streaming && !streaming {
                more = false;
                break;
            }
            messages.push(message);
        }
        Ok(Polled { seq, messages, more })
    }

    /// Moves the caller's cursor forward; returns where it stands then. A smaller seq changes nothing.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a seq that the Conversation has not reached; [`Error::NotFound`].
    pub async fn commit(&self, by: &Caller, conversation: ConversationId, seq: u64) -> Result<u64, Error> {
        let mut tries = Tries::default();
        loop {
            let found = self.readable(by, conversation).await?;
            let (now, rev) = self.cursor(by, &found).await?;
            if now >= seq {
                return Ok(now);
            }
            let last = self.window(found.scope(), Window::Latest, 1).await?.pop().map_or(0, |last| last.place);
            if seq > last {
                return Err(Error::invalid("seq", format!("the conversation has {last} messages")));
            }
            let id = cursor_id(by, conversation);
            let event = Event::Read { actor: by.actor.owner(), seq };
            let writes = vec![
                put(record(Table::Cursor, id, found.scope(), &Cursor { seq }), Place::Keep),
                publish(conversation_feed(found.scope()), self.time(), None, &event),
            ];
            self.attempt(&mut tries, Batch { expect: vec![expect(Table::Cursor, id, rev)], writes }).await?;
        }
    }
}
