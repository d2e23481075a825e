//! Conversations: opening, members, changing, deleting.

use crate::rows::{
    EVERYTHING, Tries, actor_feed, body, conversation_feed, digest, expect, named, publish, put, record, request_key,
};
use crate::{Caller, Error, Paging, Platform};
use loopd_kernel::TimeMs;
use loopd_protocol::{
    ActorKey, ActorKind, ChangeConversation, Conversation, ConversationId, Event, MemberChange, NewConversation, Page,
    Wake, WorkOf,
};
use loopd_store::{Batch, List, Place, Query, Record, RecordId, Table, Write};
use serde::{Deserialize, Serialize};

/// Members of one request besides whoever opens the Conversation.
const NEW_MEMBERS: usize = 100;

/// Members that one request adds or removes.
const CHANGED_MEMBERS: usize = 200;

/// A Conversation as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub title: String,
    pub organiser: ActorKey,
    pub members: Vec<ActorKey>,
    pub work_of: Option<WorkOf>,
    pub archived: bool,
    pub created_at: i64,
    /// The digest of the request that opened it.
    pub request: String,
    /// Gone: only its identity is left.
    #[serde(default)]
    pub deleted: bool,
}

/// A Conversation that was read, and may be changed if it is still so.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub id: ConversationId,
    pub row: Record,
    pub stored: Stored,
}

impl Found {
    pub(crate) const fn scope(&self) -> RecordId {
        RecordId(self.id.0)
    }

    pub(crate) const fn unchanged(&self) -> loopd_store::Expect {
        expect(Table::Conversation, self.row.id, Some(self.row.rev))
    }

    pub(crate) fn is_member(&self, actor: &ActorKey) -> bool {
        let owner = actor.owner();
        self.stored.members.iter().any(|member| member == actor || *member == owner)
    }
}

/// That an Actor belongs to a Conversation, where their list finds it.
pub(crate) fn membership(conversation: ConversationId, actor: &ActorKey, at: TimeMs) -> Write {
    let key = conversation.to_string();
    let row = record(Table::Member, named(&format!("{key} {actor}")), named(actor.as_str()), &conversation);
    put(Record { key: Some(key), ..row }, Place::At(moment(at)))
}

/// Moves a Conversation to the top of its members' lists.
pub(crate) fn touch(conversation: ConversationId, at: TimeMs) -> Write {
    Write::Touch { table: Table::Member, key: conversation.to_string(), place: moment(at) }
}

fn moment(at: TimeMs) -> u64 {
    u64::try_from(at.0).unwrap_or(0)
}

fn check_title(title: &str) -> Result<(), Error> {
    if title.chars().count() > 200 { Err(Error::invalid("title", "at most 200 characters")) } else { Ok(()) }
}

impl Platform {
    /// Opens a Conversation; whoever opens it is its organiser and a member. The key makes it one Conversation, however
    /// often it is asked for; an empty key makes a new one each time. The flag: it was there already.
    ///
    /// # Errors
    /// [`Error::Forbidden`], [`Error::Invalid`], and [`Error::Conflict`] `key_taken` when the key opened another one.
    pub async fn open(&self, by: &Caller, key: &str, new: NewConversation) -> Result<(Conversation, bool), Error> {
        by.must_write()?;
        check_title(&new.title)?;
        if new.members.len() > NEW_MEMBERS {
            return Err(Error::invalid("members", format!("at most {NEW_MEMBERS} when it is opened")));
        }
        let mut members = new.members.clone();
        members.insert(0, by.actor.owner());
        let members = self.distinct(members)?;
        let (id, request) = (ConversationId(self.new_id()), digest(&new));
        let key = request_key(&by.actor, key);
        let mut tries = Tries::default();
        loop {
            let before = match &key {
                Some(key) => self.by_key(Table::Conversation, EVERYTHING, key).await?,
                None => self.get(Table::Conversation, RecordId(id.0)).await?,
            };
            if let Some(row) = before {
                let found = self.found(row)?;
                return match (found.id == id, found.stored.request == request && !found.stored.deleted) {
                    (false, false) => Err(Error::conflict("key_taken", "the key has opened another conversation")),
                    (ours, _) => Ok((self.described(found).await?, !ours)),
                };
            }
            let at = self.time();
            let stored = Stored {
                title: new.title.clone(),
                organiser: by.actor.owner(),
                members: members.clone(),
                work_of: None,
                archived: false,
                created_at: at.0,
                request: request.clone(),
                deleted: false,
            };
            let writes = self.opening(id, &stored, (EVERYTHING, key.clone()), at);
            let expect = vec![expect(Table::Conversation, RecordId(id.0), None)];
            self.attempt(&mut tries, Batch { expect, writes }).await?;
        }
    }

    /// What opening a Conversation writes.
    pub(crate) fn opening(
        &self,
        id: ConversationId,
        stored: &Stored,
        (scope, key): (RecordId, Option<String>),
        at: TimeMs,
    ) -> Vec<Write> {
        let row = RecordId(id.0);
        let shown = show(id, stored, (1, at.0, 0, 0));
        let event = Event::Conversation { conversation: Box::new(shown) };
        let mut writes = vec![put(Record { key, ..record(Table::Conversation, row, scope, stored) }, Place::Keep)];
        writes.extend(stored.members.iter().map(|member| membership(id, member, at)));
        writes.push(publish(conversation_feed(row), at, Some((Table::Conversation, row)), &event));
        let others = stored.members.iter().filter(|member| **member != stored.organiser);
        writes.extend(others.map(|member| wake(member, id, "member", at)));
        writes
    }

    fn distinct(&self, actors: Vec<ActorKey>) -> Result<Vec<ActorKey>, Error> {
        let mut members: Vec<ActorKey> = Vec::new();
        for actor in actors {
            let actor = actor.owner();
            if !members.contains(&actor) {
                members.push(actor);
            }
            // Before the list grows: each is compared with all.
            if members.len() > self.config.members {
                return Err(Error::invalid("members", format!("at most {}", self.config.members)));
            }
        }
        Ok(members)
    }

    pub(crate) fn found(&self, row: Record) -> Result<Found, Error> {
        Ok(Found { id: ConversationId(row.id.0), stored: body(&row)?, row })
    }

    /// The Conversation, for whoever may read it: its members and admins. To everybody else it does not exist.
    pub(crate) async fn readable(&self, by: &Caller, id: ConversationId) -> Result<Found, Error> {
        let hidden = || Error::not_found("conversation", id);
        let row = self.get(Table::Conversation, RecordId(id.0)).await?.ok_or_else(hidden)?;
        let found = self.found(row)?;
        if found.stored.deleted {
            return Err(hidden());
        }
        if by.is_admin() || found.is_member(&by.actor) {
            return Ok(found);
        }
        // Whoever may read what was asked may see the work on it.
        let parent = found.stored.work_of.as_ref().map(|work| work.conversation).ok_or_else(hidden)?;
        let parent = self.get(Table::Conversation, RecordId(parent.0)).await?.ok_or_else(hidden)?;
        if self.found(parent)?.is_member(&by.actor) { Ok(found) } else { Err(hidden()) }
    }

    /// The people of a Conversation; of a work conversation those of the one that it works for.
    pub(crate) async fn people(&self, found: &Found) -> Result<Vec<ActorKey>, Error> {
        let mut members = found.stored.members.clone();
        if let Some(work) = &found.stored.work_of
            && let Some(parent) = self.get(Table::Conversation, RecordId(work.conversation.0)).await?
        {
            members.extend(self.found(parent)?.stored.members);
        }
        members.retain(|member| member.kind() == ActorKind::Person);
        Ok(members)
    }

    /// The Conversation, for whoever may speak in it.
    pub(crate) async fn writable(&self, by: &Caller, id: ConversationId) -> Result<Found, Error> {
        let found = self.readable(by, id).await?;
        by.must_write()?;
        Ok(found)
    }

    /// The Conversation.
    ///
    /// # Errors
    /// [`Error::NotFound`], also for whoever is no member.
    pub async fn conversation(&self, by: &Caller, id: ConversationId) -> Result<Conversation, Error> {
        let found = self.readable(by, id).await?;
        self.described(found).await
    }

    pub(crate) async fn described(&self, found: Found) -> Result<Conversation, Error> {
        let list = List { table: Table::Message, scope: found.scope(), beyond: None, newest_first: true, limit: 1 };
        let last = self.store.records(Query::List(list)).await?.pop();
        let head = self.store.feed_heads(&[conversation_feed(found.scope())]).await?;
        let position = head.first().copied().unwrap_or_default();
        let seq = last.map_or(0, |last| last.place);
        let key = found.stored.organiser.as_str();
        let member = self.get(Table::Member, named(&format!("{} {key}", found.id))).await?;
        let updated = member.and_then(|member| i64::try_from(member.place).ok());
        let updated = updated.unwrap_or(found.stored.created_at);
        Ok(show(found.id, &found.stored, (found.row.rev, updated, seq, position)))
    }

    /// A part of the list of the caller's Conversations, the latest activity first; archived ones or the others. Work
    /// conversations are listed with [`Platform::work_conversations`].
    ///
    /// # Errors
    /// [`Error::Invalid`] for a cursor that no list returned.
    pub async fn conversations(
        &self,
        by: &Caller,
        archived: bool,
        paging: Paging,
    ) -> Result<Page<Conversation>, Error> {
        let mine = (Table::Member, named(by.actor.owner().as_str()));
        let (members, next) = self.page(mine, true, &paging).await?;
        let ids = members.iter().map(|member| body::<ConversationId>(member).map(|id| RecordId(id.0)));
        let ids = ids.collect::<Result<Vec<_>, _>>()?;
        let mut items = Vec::new();
        for row in self.store.records(Query::These(Table::Conversation, ids)).await? {
            let found = self.found(row)?;
            if found.stored.archived == archived && !found.stored.deleted && found.stored.work_of.is_none() {
                items.push(self.described(found).await?);
            }
        }
        Ok(Page { items, next })
    }

    /// The work conversations of a Conversation: one per Operator that was addressed in it.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn work_conversations(&self, by: &Caller, id: ConversationId) -> Result<Vec<Conversation>, Error> {
        let found = self.readable(by, id).await?;
        let paging = Paging { cursor: None, limit: self.config.page };
        let (rows, _) = self.page((Table::Conversation, found.scope()), false, &paging).await?;
        let mut items = Vec::new();
        for row in rows {
            let work = self.found(row)?;
            if !work.stored.deleted {
                items.push(self.described(work).await?);
            }
        }
        Ok(items)
    }

    /// Changes title or archive. With a revision, only if it is still that one.
    ///
    /// # Errors
    /// [`Error::Conflict`] `revision` when it is another one; [`Error::NotFound`], [`Error::Forbidden`],
    /// [`Error::Invalid`].
    pub async fn change(
        &self,
        by: &Caller,
        id: ConversationId,
        revision: Option<u64>,
        change: ChangeConversation,
    ) -> Result<Conversation, Error> {
        if let Some(title) = &change.title {
            check_title(title)?;
        }
        self.rewrite(by, id, revision, |stored| {
            if let Some(title) = &change.title {
                stored.title.clone_from(title);
            }
            if let Some(archived) = change.archived {
                stored.archived = archived;
            }
            Ok(())
        })
        .await
    }

    /// Adds and removes members. Members may add; the organiser and admins may also remove others, and everybody may
    /// leave.
    ///
    /// # Errors
    /// As [`Platform::change`].
    pub async fn change_members(
        &self,
        by: &Caller,
        id: ConversationId,
        revision: Option<u64>,
        change: MemberChange,
    ) -> Result<Conversation, Error> {
        for (field, actors) in [("add", &change.add), ("remove", &change.remove)] {
            if actors.len() > CHANGED_MEMBERS {
                return Err(Error::invalid(field, format!("at most {CHANGED_MEMBERS} at once")));
            }
        }
        let changed = self.rewrite(by, id, revision, |stored| {
            if stored.work_of.is_some() && change.add.iter().any(|new| new.kind() == ActorKind::Person) {
                let detail = "people are in a work conversation as members of the one that it works for";
                return Err(Error::invalid("add", detail));
            }
            for gone in &change.remove {
                let gone = gone.owner();
                if gone == stored.organiser {
                    return Err(Error::invalid("remove", "the organiser stays"));
                }
                if !by.is_admin() && by.actor.owner() != stored.organiser && by.actor.owner() != gone {
                    return Err(Error::Forbidden("only the organiser removes others".to_owned()));
                }
                stored.members.retain(|member| *member != gone);
            }
            let added = change.add.iter().map(ActorKey::owner);
            stored.members = self.distinct(stored.members.iter().cloned().chain(added).collect())?;
            Ok(())
        });
        let changed = changed.await?;
        let words = |actors: &[ActorKey]| actors.iter().map(ActorKey::as_str).collect::<Vec<_>>().join(" ");
        let detail = format!("added {}; removed {}", words(&change.add), words(&change.remove));
        self.note(by, "conversation.members", &id.to_string(), &detail).await?;
        Ok(changed)
    }

    async fn rewrite(
        &self,
        by: &Caller,
        id: ConversationId,
        revision: Option<u64>,
        change: impl Fn(&mut Stored) -> Result<(), Error>,
    ) -> Result<Conversation, Error> {
        let mut tries = Tries::default();
        let mut wrote = false;
        loop {
            let (found, hidden) = match self.writable(by, id).await {
                Ok(found) => (found, None),
                // Whoever has just left is told so.
                Err(error @ Error::NotFound { .. }) if tries.any() => {
                    let row = self.get(Table::Conversation, RecordId(id.0)).await?;
                    let found = row.map(|row| self.found(row)).transpose()?;
                    (found.filter(|found| !found.stored.deleted).ok_or_else(|| error.clone())?, Some(error))
                }
                Err(error) => return Err(error),
            };
            let mut stored = found.stored.clone();
            change(&mut stored)?;
            if stored == found.stored {
                return self.described(found).await;
            }
            if let Some(hidden) = hidden {
                return Err(hidden);
            }
            if let Some(expected) = revision.filter(|expected| *expected != found.row.rev && !wrote) {
                let detail = format!("it has revision {}, not {expected}: read it again", found.row.rev);
                return Err(Error::conflict("revision", detail));
            }
            let at = self.time();
            let event =
                Event::Conversation { conversation: Box::new(show(id, &stored, (found.row.rev + 1, at.0, 0, 0))) };
            let mut row = record(Table::Conversation, found.row.id, found.row.scope, &stored);
            row.key.clone_from(&found.row.key);
            let mut writes = vec![put(row, Place::Keep)];
            let new = stored.members.iter().filter(|member| !found.stored.members.contains(member));
            let new: Vec<_> = new.cloned().collect();
            let (begins, cursors) = self.beginning(&found, &new).await?;
            writes.extend(cursors);
            for member in &new {
                writes.push(membership(id, member, at));
                writes.push(wake(member, id, "member", at));
            }
            let gone = found.stored.members.iter().filter(|member| !stored.members.contains(member));
            writes.extend(gone.map(|member| Write::DeleteRecord(Table::Member, named(&format!("{id} {member}")))));
            writes.push(publish(
                conversation_feed(found.scope()),
                at,
                Some((Table::Conversation, found.row.id)),
                &event,
            ));
            let expect = std::iter::once(found.unchanged()).chain(begins).collect();
            self.attempt(&mut tries, Batch { expect, writes }).await?;
            wrote = revision.is_none();
        }
    }
}

pub(crate) const fn everything(table: Table, scope: RecordId) -> List {
    List { table, scope, beyond: None, newest_first: false, limit: usize::MAX }
}

/// Tells an Actor that there is something for them.
pub(crate) fn wake(actor: &ActorKey, conversation: ConversationId, reason: &str, at: TimeMs) -> Write {
    let owner = actor.owner();
    publish(actor_feed(&owner), at, None, &Event::Wake(Wake { conversation, reason: reason.to_owned() }))
}

pub(crate) fn show(
    id: ConversationId,
    stored: &Stored,
    (revision, updated_at, last_seq, position): (u64, i64, u64, u64),
) -> Conversation {
    Conversation {
        id,
        title: stored.title.clone(),
        organiser: stored.organiser.clone(),
        members: stored.members.clone(),
        work_of: stored.work_of.clone(),
        archived: stored.archived,
        created_at: stored.created_at,
        updated_at,
        last_seq,
        position,
        revision,
    }
}

/// The identity of the work conversation of an Operator: there is one.
pub(crate) fn work_id(parent: ConversationId, operator: &ActorKey) -> ConversationId {
    ConversationId(named(&format!("work of {operator} in {parent}")).0)
}

impl Platform {
    /// What it takes to give an Operator its work conversation, unless it has it.
    pub(crate) async fn work_for(
        &self,
        parent: &Found,
        operator: &ActorKey,
        at: TimeMs,
    ) -> Result<Option<(loopd_store::Expect, Vec<Write>)>, Error> {
        let operator = operator.owner();
        let id = work_id(parent.id, &operator);
        if operator.kind() != ActorKind::Operator
            || parent.stored.work_of.is_some()
            || self.get(Table::Conversation, RecordId(id.0)).await?.is_some()
        {
            return Ok(None);
        }
        let work_of = Some(WorkOf { conversation: parent.id, operator: operator.clone() });
        let stored = Stored {
            title: parent.stored.title.clone(),
            organiser: operator.clone(),
            // People are there as those of the parent, for as long as they are.
            members: vec![operator.clone()],
            work_of,
            archived: false,
            created_at: at.0,
            request: String::new(),
            deleted: false,
        };
        let writes = self.opening(id, &stored, (parent.scope(), Some(operator.to_string())), at);
        Ok(Some((expect(Table::Conversation, RecordId(id.0), None), writes)))
    }
}
