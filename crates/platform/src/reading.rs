//! Poll and Commit: each Actor's own place in each Conversation.

use crate::conversations::Found;
use crate::messages::{Stored, Window};
use crate::rows::{Tries, body, conversation_feed, expect, named, publish, put, record};
use crate::{Caller, Error, Platform};
use loopd_protocol::{ConversationId, Event, Message};
use loopd_store::{Batch, Place, Record, RecordId, Table};
use serde::{Deserialize, Serialize};

/// What polling returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Polled {
    /// The caller's cursor: everything up to this seq was handled, but for what was open.
    pub seq: u64,
    /// Messages that were not handled yet: first those that were open when the cursor passed them, then those behind it,
    /// in order of seq.
    pub messages: Vec<Message>,
    /// Up to this seq everything was looked at: it may be committed once all of `messages` is handled.
    pub upto: u64,
    /// The seqs up to there of Messages that are not whole yet. Committed with `upto`, they come once they are.
    pub open: Vec<u64>,
    /// Whether there are more that could be read now, once this part is committed.
    pub more: bool,
}

/// What was handled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Handled {
    /// Everything up to this seq.
    pub seq: u64,
    /// But for these, which were not whole when they were polled; at most 200. Each is one that the last poll named, or
    /// that was committed as open before. What is still open at this moment is kept either way.
    #[serde(default)]
    #[schema(max_items = 200)]
    pub open: Vec<u64>,
}

impl Handled {
    /// Everything up to this seq that was whole.
    #[must_use]
    pub const fn upto(seq: u64) -> Self {
        Self { seq, open: Vec::new() }
    }
}

/// Open Messages that a cursor passes at most; at the next one it waits.
const PASSED: usize = 200;

fn cursor_id(by: &Caller, conversation: ConversationId) -> RecordId {
    named(&format!("{conversation} {}", by.actor.owner()))
}

impl Platform {
    async fn cursor(&self, by: &Caller, found: &Found) -> Result<(Handled, Option<u64>), Error> {
        let row = self.get(Table::Cursor, cursor_id(by, found.id)).await?;
        let handled = row.as_ref().map(body::<Handled>).transpose()?.unwrap_or_default();
        Ok((handled, row.map(|row| row.rev)))
    }

    /// The Message with this seq, unless it was erased.
    async fn numbered(&self, found: &Found, seq: u64) -> Result<Option<Record>, Error> {
        let row = self.window(found.scope(), Window::After(seq.saturating_sub(1)), 1).await?.pop();
        Ok(row.filter(|row| row.place == seq))
    }

    /// Messages that the caller has not handled, at least once: until [`Platform::commit`] says so, they come again.
    /// A Message that is not whole yet is named in `open`, and comes once it is; with `streaming` it also comes before the
    /// cursor has passed it, as it is then.
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
        let (cursor, _) = self.cursor(by, &found).await?;
        let limit = self.limit(limit);
        let mut polled =
            Polled { seq: cursor.seq, messages: Vec::new(), upto: cursor.seq, open: Vec::new(), more: false };
        let mut rows = Vec::new();
        for seq in &cursor.open {
            rows.extend(self.numbered(&found, *seq).await?);
        }
        let behind = self.window(found.scope(), Window::After(cursor.seq), limit + 1).await?;
        polled.more = behind.len() > limit;
        rows.extend(behind);
        let mut bytes = 0;
        for row in rows {
            let is_open = !body::<Stored>(&row)?.status.is_final();
            bytes += self.weight(&row)?;
            let is_full =
                polled.messages.len() >= limit || bytes > self.config.list_bytes && !polled.messages.is_empty();
            // Of an open one that the cursor has passed only its end is told.
            let is_told = !is_open || streaming && row.place > cursor.seq;
            if is_full && is_told {
                polled.more = true;
                // What the cursor has passed already is not lost by ending here.
                if row.place <= cursor.seq {
                    polled.open.push(row.place);
                    continue;
                }
                break;
            }
            if is_open {
                // More than a cursor can pass: it waits for one of them.
                if polled.open.len() >= PASSED {
                    polled.more = false;
                    break;
                }
                polled.open.push(row.place);
            }
            if is_told {
                polled.messages.push(self.whole(&row, u64::MAX).await?);
            }
            polled.upto = polled.upto.max(row.place);
        }
        Ok(polled)
    }

    /// Moves the caller's cursor; returns where it stands then. What was handled stays handled: a smaller seq, or one
    /// that says the same, changes nothing.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a seq that the Conversation has not reached, and for an open one that was handled or that is
    /// behind it; [`Error::Conflict`] `too_many_open`; [`Error::NotFound`].
    pub async fn commit(&self, by: &Caller, conversation: ConversationId, handled: Handled) -> Result<Handled, Error> {
        if handled.open.len() > PASSED {
            return Err(Error::invalid("open", format!("at most {PASSED}")));
        }
        let mut tries = Tries::default();
        loop {
            let found = self.readable(by, conversation).await?;
            let (now, rev) = self.cursor(by, &found).await?;
            let last = self.window(found.scope(), Window::Latest, 1).await?.pop().map_or(0, |last| last.place);
            if handled.seq > last {
                return Err(Error::invalid("seq", format!("the conversation has {last} messages")));
            }
            let Some(next) = self.advanced(&found, &now, &handled).await? else { return Ok(now) };
            let id = cursor_id(by, conversation);
            let mut writes = vec![put(record(Table::Cursor, id, found.scope(), &next), Place::Keep)];
            if next.seq > now.seq {
                let event = Event::Read { actor: by.actor.owner(), seq: next.seq };
                writes.push(publish(conversation_feed(found.scope()), self.time(), None, &event));
            }
            let expect = vec![found.unchanged(), expect(Table::Cursor, id, rev)];
            self.attempt(&mut tries, Batch { expect, writes }).await?;
        }
    }

    /// Where the cursor stands after this; `None` where it stands already.
    async fn advanced(&self, found: &Found, now: &Handled, handled: &Handled) -> Result<Option<Handled>, Error> {
        if handled.seq < now.seq {
            return Ok(None);
        }
        let mut open = Vec::new();
        for seq in &handled.open {
            let may_be = now.open.contains(seq) || (*seq > now.seq && *seq <= handled.seq);
            // One that was handled meanwhile is told again by whoever repeats an older commit.
            match (may_be, *seq <= now.seq) {
                (true, _) => open.push(*seq),
                (false, true) => {}
                (false, false) => return Err(Error::invalid("open", format!("{seq} is not up to {}", handled.seq))),
            }
        }
        for seq in now.open.iter().filter(|seq| !handled.open.contains(seq)) {
            open.extend(self.still_open(found, *seq).await?);
        }
        let mut from = now.seq;
        while from < handled.seq {
            let rows = self.window(found.scope(), Window::After(from), self.config.page).await?;
            for row in rows.iter().filter(|row| row.place <= handled.seq && !handled.open.contains(&row.place)) {
                if !body::<Stored>(row)?.status.is_final() {
                    open.push(row.place);
                }
            }
            from = rows.last().map_or(handled.seq, |row| row.place);
        }
        open.sort_unstable();
        open.dedup();
        if open.len() > PASSED {
            let detail = format!("more than {PASSED} messages are open up to {}", handled.seq);
            return Err(Error::conflict("too_many_open", detail));
        }
        let next = Handled { seq: handled.seq, open };
        Ok((next != *now).then_some(next))
    }

    async fn still_open(&self, found: &Found, seq: u64) -> Result<Option<u64>, Error> {
        let Some(row) = self.numbered(found, seq).await? else { return Ok(None) };
        Ok((!body::<Stored>(&row)?.status.is_final()).then_some(seq))
    }
}
