//! Where there is something that an Actor has not handled: what its cursors say, for whoever was not listening.

use crate::conversations::Stored as Place;
use crate::messages::{Stored, Window};
use crate::reading::{Cursor, cursor_id};
use crate::rows::{body, named};
use crate::{Caller, Error, Paging, Platform};
use loopd_protocol::{ActorKey, ConversationId, Page, Wake};
use loopd_store::{Query, Record, RecordId, Table};
use std::collections::HashMap;

impl Platform {
    /// A part of the list of Conversations in which there are whole Messages for the caller that its cursor has not
    /// passed; a part may be empty and not the last. Work conversations are not in it: what they are about is unhandled
    /// where it was asked.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a cursor that no list returned.
    pub async fn unhandled(&self, by: &Caller, paging: Paging) -> Result<Page<Wake>, Error> {
        let me = by.actor.owner();
        // The oldest first: what moves while this is read moves to where it is still to come.
        let (members, next) = self.page((Table::Member, named(me.as_str())), false, &paging).await?;
        let ids = members.iter().map(body::<ConversationId>).collect::<Result<Vec<_>, _>>()?;
        let cursors = ids.iter().map(|id| cursor_id(&me, *id)).collect();
        let cursors = self.store.records(Query::These(Table::Cursor, cursors)).await?;
        let cursors: HashMap<RecordId, Record> = cursors.into_iter().map(|row| (row.id, row)).collect();
        let rows = ids.iter().map(|id| RecordId(id.0)).collect();
        let mut items = Vec::new();
        for row in self.store.records(Query::These(Table::Conversation, rows)).await? {
            let place: Place = body(&row)?;
            if place.deleted || place.work_of.is_some() {
                continue;
            }
            let conversation = ConversationId(row.id.0);
            let cursor = cursors.get(&cursor_id(&me, conversation)).map(body::<Cursor>).transpose()?;
            if self.has_unhandled(row.id, &cursor.unwrap_or_default(), &me).await? {
                items.push(Wake { conversation, reason: "message".to_owned() });
            }
        }
        Ok(Page { items, next })
    }

    async fn has_unhandled(&self, scope: RecordId, cursor: &Cursor, me: &ActorKey) -> Result<bool, Error> {
        let handled = cursor.handled();
        for seq in handled.open {
            let passed = self.window(scope, Window::After(seq.saturating_sub(1)), 1).await?;
            if passed.iter().any(|row| row.place == seq && is_for(row, me)) {
                return Ok(true);
            }
        }
        let limit = self.config.page;
        let rows = self.window(scope, Window::After(handled.seq), limit).await?;
        // Whoever has so much unread may look, whatever it is.
        Ok(rows.len() >= limit || rows.iter().any(|row| is_for(row, me)))
    }
}

/// Whether a whole Message is for them.
fn is_for(row: &Record, me: &ActorKey) -> bool {
    body::<Stored>(row).is_ok_and(|stored| {
        let addressed = stored.to.is_empty() || stored.to.iter().any(|to| to.owner() == *me);
        stored.status.is_final() && stored.from.owner() != *me && addressed
    })
}
