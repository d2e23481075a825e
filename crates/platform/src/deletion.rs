//! Deleting Conversations: decided in one commit, and done piece by piece, whatever happens in between.

use crate::conversations::{Found, Stored, everything};
use crate::rows::{Tries, conversation_feed, expect, named, publish, put, record};
use crate::{Caller, Error, Platform};
use loopd_kernel::TimeMs;
use loopd_protocol::{ConversationId, Event};
use loopd_store::{Batch, Expect, List, Place, Query, Record, RecordId, Table, Write};

/// Messages that are erased at once.
const PIECE: usize = 256;

impl Platform {
    /// Deletes a Conversation with all that was said, asked and attached in it, and its work conversations. Calls in it
    /// must have ended. What its Runs recorded in their Journals stays there, and the bytes of files, which are kept by
    /// their content, stay in the store where nobody reaches them. Once this returns nobody reaches it any
    /// more; what is left of it is erased soon, also after a crash.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for anybody but the organiser and admins, and for a work conversation, which goes with the
    /// one that it works for; [`Error::Conflict`] `calls_open`. Then nothing was deleted.
    pub async fn delete(&self, by: &Caller, id: ConversationId) -> Result<(), Error> {
        let mut tries = Tries::default();
        let mut found = self.writable(by, id).await?;
        if found.stored.work_of.is_some() {
            return Err(Error::Forbidden("a work conversation is deleted with the one that it works for".to_owned()));
        }
        if !by.is_admin() && by.actor.owner() != found.stored.organiser {
            return Err(Error::Forbidden("only the organiser deletes a conversation".to_owned()));
        }
        while !found.stored.deleted {
            for place in self.works(&found).await?.iter().chain([&found]) {
                if !self.open_calls(place).await?.is_empty() {
                    let detail = format!("calls in {} have not ended: cancel them first", place.id);
                    return Err(Error::conflict("calls_open", detail));
                }
            }
            let (expected, mut writes) = self.marking(&found);
            writes.push(self.noting(by, "conversation.delete", &id.to_string(), ""));
            self.attempt(&mut tries, Batch { expect: vec![expected], writes }).await?;
            found = self.place(id).await?;
        }
        if let Err(error) = self.erase(&found).await {
            tracing::warn!(conversation = %id, %error, "a deleted conversation is erased later");
        }
        Ok(())
    }

    async fn place(&self, id: ConversationId) -> Result<Found, Error> {
        let row = self.get(Table::Conversation, RecordId(id.0)).await?;
        self.found(row.ok_or_else(|| Error::not_found("conversation", id))?)
    }

    async fn works(&self, found: &Found) -> Result<Vec<Found>, Error> {
        let rows = self.store.records(Query::List(everything(Table::Conversation, found.scope()))).await?;
        rows.into_iter().map(|row| self.found(row)).collect()
    }

    /// Its calls that have not ended.
    pub(crate) async fn open_calls(&self, found: &Found) -> Result<Vec<Record>, Error> {
        let mut calls = self.store.records(Query::List(everything(Table::Call, found.scope()))).await?;
        calls.retain(|call| call.due.is_some());
        Ok(calls)
    }

    /// That it is deleted: nobody reads it or accepts anything in it from then on.
    fn marking(&self, found: &Found) -> (Expect, Vec<Write>) {
        let (id, scope, at) = (found.id, found.scope(), self.time());
        let stored = Stored {
            title: String::new(),
            members: Vec::new(),
            deleted: true,
            request: String::new(),
            ..found.stored.clone()
        };
        // Due until nothing of it is left.
        let row = Record { due: Some(at), ..record(Table::Conversation, scope, found.row.scope, &stored) };
        let mut writes = vec![put(row, Place::Keep), Write::EraseFeed(conversation_feed(scope))];
        let members = found.stored.members.iter();
        writes.extend(members.map(|member| Write::DeleteRecord(Table::Member, named(&format!("{id} {member}")))));
        writes.push(gone(found, at));
        (found.unchanged(), writes)
    }

    /// Deleted Conversations of which something is left, and their work conversations, which are deleted with them.
    pub(crate) async fn deleted(&self) -> Result<Vec<Found>, Error> {
        let (table, until, limit) = (Table::Conversation, self.time(), 100);
        let due = self.store.records(Query::Due { table, until, limit }).await?;
        due.into_iter().map(|row| self.found(row)).collect()
    }

    /// Erases what is left of a deleted Conversation, unless calls in it have still to end.
    pub(crate) async fn erase(&self, found: &Found) -> Result<(), Error> {
        for mut work in self.works(found).await? {
            let mut tries = Tries::default();
            while !work.stored.deleted {
                let (expected, writes) = self.marking(&work);
                self.attempt(&mut tries, Batch { expect: vec![expected], writes }).await?;
                work = self.place(work.id).await?;
            }
            if work.row.due.is_some() {
                self.erase_one(&work).await?;
            }
        }
        self.erase_one(found).await
    }

    async fn erase_one(&self, found: &Found) -> Result<(), Error> {
        let scope = found.scope();
        // One may have been accepted while the decision was made. It ends first, and then this is looked at again.
        if !self.open_calls(found).await?.is_empty() {
            return Ok(());
        }
        loop {
            let list = List { limit: PIECE, ..everything(Table::Message, scope) };
            let messages = self.store.records(Query::List(list)).await?;
            let mut writes: Vec<_> = messages.iter().map(|row| Write::DeleteScope(Table::Block, row.id)).collect();
            writes.extend(messages.iter().map(|row| Write::DeleteRecord(Table::Message, row.id)));
            if !messages.is_empty() {
                self.store.commit(Batch { expect: Vec::new(), writes }).await?;
                continue;
            }
            let open = self.store.records(Query::List(everything(Table::Question, scope))).await?;
            writes.extend(open.iter().map(|row| Write::DeleteRecord(Table::Open, row.id)));
            let tables = [Table::Question, Table::Call, Table::Artifact, Table::Cursor];
            writes.extend(tables.map(|table| Write::DeleteScope(table, scope)));
            // What was told between the decision and now goes, too.
            writes.push(Write::EraseFeed(conversation_feed(scope)));
            writes.push(gone(found, self.time()));
            writes.push(put(record(Table::Conversation, scope, found.row.scope, &found.stored), Place::Keep));
            let expect = vec![expect(Table::Conversation, scope, Some(found.row.rev))];
            return self.attempt(&mut Tries::default(), Batch { expect, writes }).await;
        }
    }
}

fn gone(found: &Found, at: TimeMs) -> Write {
    publish(conversation_feed(found.scope()), at, None, &Event::ConversationDeleted { conversation: found.id })
}
