//! Streaming: what is said of an open Message until it ends.

use crate::conversations::{Found, touch};
use crate::messages::{Stored, ending, hide, rewritten, wakes};
use crate::rows::{Tries, body, conversation_feed, digest, expect, publish, put};
use crate::texts::words;
use crate::{Caller, Error, Platform};
use loopd_kernel::TimeMs;
use loopd_protocol::{ConversationId, End, ErrorNote, Event, Message, MessageId, MessageStatus, Update};
use loopd_store::{Batch, Place, Query, Record, RecordId, Table};

impl Platform {
    /// A Message of which the caller is the speaker, and its Conversation; with `or_admin` also one of others.
    async fn mine(&self, by: &Caller, id: MessageId, or_admin: bool) -> Result<(Record, Stored, Found), Error> {
        let row = self.get(Table::Message, RecordId(id.0)).await?.ok_or_else(|| Error::not_found("message", id))?;
        let found = self.writable(by, ConversationId(row.scope.0)).await;
        let found = found.map_err(|error| hide(error, "message", id))?;
        let stored: Stored = body(&row)?;
        let is_output = stored.origin.as_ref().is_some_and(|origin| origin.run.is_some() || origin.call.is_some());
        if !(by.speaks_as(&stored.from) || or_admin && by.is_admin()) || is_output {
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
            let (row, stored, _) = self.mine(by, message, false).await?;
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
            let bytes = stored.bytes + serde_json::to_vec(&update.ops).unwrap_or_default().len() as u64;
            let limit = self.config.message_total_bytes;
            if bytes > limit {
                let of = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
                return Err(Error::TooLarge { what: "the message", bytes: of(bytes), limit: of(limit) });
            }
            let stored = Stored { count, bytes, updated_at: at.0, update: Some(this.clone()), ..stored };
            let due = Some(TimeMs(at.0.saturating_add(i64::from(self.config.message_open_s) * 1000)));
            writes.push(put(Record { due, ..rewritten(&row, &stored) }, Place::Keep));
            let (ops, revision) = (update.ops.clone(), row.rev + 1);
            let event = Event::MessageUpdated { message, revision, ops };
            writes.push(publish(conversation_feed(row.scope), at, Some((Table::Message, row.id)), &event));
            let expect = vec![expect(Table::Message, row.id, Some(row.rev))];
            self.attempt(&mut tries, Batch { expect, writes }).await?;
        }
    }

    /// Ends an open Message: its speaker does, or an admin. The same end again changes nothing.
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
            let (row, stored, found) = self.mine(by, message, true).await?;
            if stored.status.is_final() {
                if stored.status == end.status && stored.error == end.error {
                    return self.whole(&row, self.config.shown_blocks as u64).await;
                }
                return Err(Error::conflict("message_final", "the message has ended already"));
            }
            let batch = self.over((&row, stored, &found), end.clone()).await?;
            self.attempt(&mut tries, batch).await?;
        }
    }

    /// What the end of an open Message expects and writes.
    async fn over(&self, (row, stored, found): (&Record, Stored, &Found), end: End) -> Result<Batch, Error> {
        let at = self.time();
        let said = self.whole(row, u64::MAX).await?;
        let stored = Stored { status: end.status, error: end.error, updated_at: at.0, update: None, ..stored };
        let mut writes = ending(row, &stored, words(&said.blocks), at);
        writes.push(touch(found.id, at));
        writes.extend(wakes(found, &stored.from, &stored.to, at));
        Ok(Batch { expect: vec![expect(Table::Message, row.id, Some(row.rev))], writes })
    }

    /// Ends open Messages that nobody has gone on with for long: whoever reads behind them waits for them. Returns how
    /// many it looked at.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn expire_messages(&self) -> Result<usize, Error> {
        let (table, until, limit) = (Table::Message, self.time(), 100);
        let due = self.store.records(Query::Due { table, until, limit }).await?;
        for row in &due {
            if let Err(error) = self.expire_message(row).await {
                tracing::warn!(message = %MessageId(row.id.0), %error, "an open message cannot be ended now");
            }
        }
        Ok(due.len())
    }

    async fn expire_message(&self, row: &Record) -> Result<(), Error> {
        let place = self.get(Table::Conversation, row.scope).await?;
        let found = self.found(place.ok_or_else(|| Error::not_found("conversation", ConversationId(row.scope.0)))?)?;
        let message = "nobody went on with it".to_owned();
        let error = Some(ErrorNote { code: "message.expired".to_owned(), message });
        let batch = self.over((row, body(row)?, &found), End { status: MessageStatus::Expired, error }).await?;
        // Its speaker may go on at this moment: then this changes nothing, and it is due later.
        self.attempt(&mut Tries::default(), batch).await
    }
}
