//! Poll and Commit: each Actor's own place in each Conversation.

use crate::conversations::Found;
use crate::lease::Held;
use crate::messages::{Stored, Window};
use crate::rows::{Tries, body, conversation_feed, expect, named, publish, put, record};
use crate::{Caller, Error, Platform};
use loopd_protocol::{ActorKey, ActorKind, ConversationId, Event, Handled, Polled};
use loopd_store::{Batch, Expect, Place, Record, RecordId, Table, Write};
use serde::{Deserialize, Serialize};

/// A cursor as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Cursor {
    seq: u64,
    #[serde(default)]
    open: Vec<u64>,
    /// Which process of an Operator moves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Held>,
}

impl Cursor {
    pub(crate) fn handled(&self) -> Handled {
        Handled { seq: self.seq, open: self.open.clone() }
    }

    /// # Errors
    /// [`Error::Conflict`] `stale_epoch` unless this is the Epoch of its lease.
    pub(crate) fn is_of(&self, epoch: u64) -> Result<(), Error> {
        let now = self.lease.as_ref().map_or(0, |lease| lease.epoch);
        if now == epoch {
            return Ok(());
        }
        let detail = format!("the turn is of the epoch {epoch}, and the lease of the epoch {now}");
        Err(Error::conflict("stale_epoch", detail))
    }

    /// The same, under a lease that lasts from now on.
    pub(crate) fn renewed(self, now: i64) -> Self {
        let lease = self.lease.map(|lease| lease.renewed(now));
        Self { lease, ..self }
    }

    pub(crate) fn leased(self, lease: Held) -> Self {
        Self { lease: Some(lease), ..self }
    }

    pub(crate) fn moved(self, to: Handled) -> Self {
        Self { seq: to.seq, open: to.open, ..self }
    }
}

/// Open Messages that a cursor passes at most; at the next one it waits.
const PASSED: usize = 200;

pub(crate) fn cursor_id(actor: &ActorKey, conversation: ConversationId) -> RecordId {
    named(&format!("{conversation} {}", actor.owner()))
}

impl Platform {
    /// The caller's cursor, and how often it was written.
    pub(crate) async fn cursor(&self, by: &Caller, found: &Found) -> Result<(Cursor, Option<u64>), Error> {
        let row = self.get(Table::Cursor, cursor_id(&by.actor, found.id)).await?;
        let cursor = row.as_ref().map(body::<Cursor>).transpose()?.unwrap_or_default();
        Ok((cursor, row.map(|row| row.rev)))
    }

    /// What it takes for Operators that become members to begin with what is said from now on: what was said to everybody
    /// before was not said to them. One that was a member before goes on where it was.
    pub(crate) async fn beginning(
        &self,
        found: &Found,
        joins: &[ActorKey],
    ) -> Result<(Vec<Expect>, Vec<Write>), Error> {
        let (mut expects, mut writes) = (Vec::new(), Vec::new());
        let operators: Vec<_> = joins.iter().filter(|actor| actor.kind() == ActorKind::Operator).collect();
        let last = if operators.is_empty() { None } else { self.window(found.scope(), Window::Latest, 1).await?.pop() };
        let Some(last) = last else { return Ok((expects, writes)) };
        for actor in operators {
            let id = cursor_id(actor, found.id);
            if self.get(Table::Cursor, id).await?.is_none() {
                let cursor = Cursor { seq: last.place, ..Cursor::default() };
                expects.push(expect(Table::Cursor, id, None));
                writes.push(put(record(Table::Cursor, id, found.scope(), &cursor), Place::Keep));
            }
        }
        Ok((expects, writes))
    }

    /// The Message with this seq, unless it was erased.
    pub(crate) async fn numbered(&self, found: &Found, seq: u64) -> Result<Option<Record>, Error> {
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
        let mut tries = Tries::default();
        loop {
            let found = self.readable(by, conversation).await?;
            let (now, rev) = self.cursor(by, &found).await?;
            let Some(next) = self.moving(&found, &now, &handled).await? else { return Ok(now.handled()) };
            let id = cursor_id(&by.actor, conversation);
            let writes = self.reaching(by, &found, &now, next);
            let expect = vec![found.unchanged(), expect(Table::Cursor, id, rev)];
            self.attempt(&mut tries, Batch { expect, writes }).await?;
        }
    }

    /// Where the cursor is to stand once this is handled; `None` where it stands already.
    pub(crate) async fn moving(
        &self,
        found: &Found,
        now: &Cursor,
        handled: &Handled,
    ) -> Result<Option<Handled>, Error> {
        if handled.open.len() > PASSED {
            return Err(Error::invalid("open", format!("at most {PASSED}")));
        }
        let last = self.window(found.scope(), Window::Latest, 1).await?.pop().map_or(0, |last| last.place);
        if handled.seq > last {
            return Err(Error::invalid("seq", format!("the conversation has {last} messages")));
        }
        self.advanced(found, &now.handled(), handled).await
    }

    /// What moving the cursor writes.
    pub(crate) fn reaching(&self, by: &Caller, found: &Found, now: &Cursor, next: Handled) -> Vec<Write> {
        let id = cursor_id(&by.actor, found.id);
        let (before, seq) = (now.seq, next.seq);
        let mut writes = vec![put(record(Table::Cursor, id, found.scope(), &now.clone().moved(next)), Place::Keep)];
        if seq > before {
            let event = Event::Read { actor: by.actor.owner(), seq };
            writes.push(publish(conversation_feed(found.scope()), self.time(), None, &event));
        }
        writes
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
