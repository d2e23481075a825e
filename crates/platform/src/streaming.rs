//! Streaming: what is said of an open Message until it ends.

use crate::conversations::{Found, touch};
use crate::messages::{Stored, ending, hide, rewritten, wakes, words};
use crate::rows::{Tries, body, conversation_feed, digest, expect, publish, put};
use crate::{Caller, Error, Platform};
use loopd_protocol::{ConversationId, End, Event, Message, MessageId, Update};
use loopd_store::{Batch, Place, Record, RecordId, Table};

impl Platform {
    /// A Message of which the caller is the speaker, and its Conversation.
    async fn mine(&self, by: &Caller, id: MessageId) -> Result<(Record, Stored, Found), Error> {
        let row = self.get(Table::Message, RecordId(id.0)).await?.ok_or_else(|| Error::not_found("message", id))?;
        let found = self.writable(by, ConversationId(row.scope.0)).await;
        let found = found.map_err(|error| hide(error, "message", id))?;
        let stored: Stored = body(&row)?;
        if !by.speaks_as(&stored.from) || stored.origin.as_ref().is_some_and(|origin| origin.run.is_some()) {
            return Err(Error::Forbidden("only its speaker changes a message".to_owned()));
        }
        Ok((row, stored, found))
    }

    /// Goes on with an open Message.
    ///
    /// # Errors
    /// [`Error::Conflict`] `revision` when the Message has another revision, `message_final` when it has ended;
    /// [`Error::NotFound`], [`Error::Forbidden`], [`Error::Invalid`], [`Error::TooLarge`].
    pub async fn update(&self, by: &Caller, message: MessageId, update: Update) -> Result<Message, Error> {
        if update.ops.is_empty() || update.ops.len() > 100 {
            return Err(Error::invalid("ops", "1 to 100"));
        }
        let this = digest(&update);
        let mut tries = Tries::default();
        loop {
            let (row, stored, found) = self.mine(by, message).await?;
            if row.rev == update.revision + 1 && stored.update.as_ref() == Some(&this) {
                return self.whole(&row, self.config.shown_blocks as u64).await;
            }
            if stored.status.is_final() {
                return Err(Error::conflict("message_final", "the message has ended"));
            }
            if row.rev != update.revision {
                let detail = format!("the message has revision {}, not {}", row.rev, update.revision);
                return Err(Error::conflict("revision", detail));
            }
            let at = self.time();
            let (count, mut writes) = self.applied(&row, stored.count, &update.ops).await?;
            let stored = Stored { count, updated_at: at.0, update: Some(this.clone()), ..stored };
            writes.push(put(rewritten(&row, &stored), Place::Keep));
            let (ops, revision) = (update.ops.clone(), row.rev + 1);
            let event = Event::MessageUpdated { message, revision, ops };
            writes.push(publish(conversation_feed(found.scope()), at, Some((Table::Message, row.id)), &event));
            let expect = vec![expect(Table::Message, row.id, Some(row.rev))];
            self.attempt(&mut tries, Batch { expect, writes }).await?;
        }
    }

    /// Ends an open Message. The same end again changes nothing.
    ///
    /// # Errors
    /// [`Error::Conflict`] `message_final` when it has ended otherwise; [`Error::NotFound`], [`Error::Forbidden`],
    /// [`Error::Invalid`].
    pub async fn end(&self, by: &Caller, message: MessageId, end: End) -> Result<Message, Error> {
        if !end.status.is_final() {
            return Err(Error::invalid("status", "a final one: completed, failed, cancelled or expired"));
        }
        let mut tries = Tries::default();
        loop {
            let (row, stored, found) = self.mine(by, message).await?;
            if stored.status.is_final() {
                if stored.status == end.status && stored.error == end.error {
                    return self.whole(&row, self.config.shown_blocks as u64).await;
                }
                return Err(Error::conflict("message_final", "the message has ended already"));
            }
            let at = self.time();
            let said = self.whole(&row, u64::MAX).await?;
            let stored =
                Stored { status: end.status, error: end.error.clone(), updated_at: at.0, update: None, ..stored };
            let mut writes = ending(&row, &stored, words(&said.blocks), at);
            writes.push(touch(found.id, at));
            writes.extend(wakes(&found, &by.actor, &stored.to, at));
            let expect = vec![expect(Table::Message, row.id, Some(row.rev))];
            self.attempt(&mut tries, Batch { expect, writes }).await?;
        }
    }
}
