//! Turns: what an Operator does in a Conversation, and how far it has come there, in one commit.

use super::Engine;
use super::accept::Proposal;
use crate::conversations::{Found, work_id};
use crate::messages::Draft;
use crate::questions::{self, Inquiry};
use crate::reading::{Cursor, cursor_id};
use crate::rows::{Tries, body, conversation_feed, expect, request_key};
use crate::{Caller, Error, is_key};
use loopd_protocol::{Act, Acted, ActorKey, ActorKind, ConversationId, Handled, Keyed, Place, Role, Turn, Turned};
use loopd_store::{Batch, Expect, RecordId, Table, Write};
use std::collections::HashSet;

/// Acts of one Turn.
const ACTS: usize = 50;

/// Keys that are looked up at once.
const KEYS: usize = 50;

/// An act, checked as far as it can be without reading.
struct Planned {
    key: String,
    place: Place,
    what: What,
}

enum What {
    Say(Box<Draft>),
    Call(Box<Proposal>),
    Ask(Box<Inquiry>),
}

/// Where acts happen: the Conversation of the Turn, and the one of the work on it.
struct Places {
    here: Found,
    work: Option<Found>,
}

impl Places {
    const fn at(&self, place: Place) -> Option<&Found> {
        match place {
            Place::Here => Some(&self.here),
            Place::Work => self.work.as_ref(),
        }
    }
}

impl Engine {
    /// Does all acts of a Turn and moves the cursor, in one commit, or nothing of it. An act that was done before under
    /// its key is not done again, and a Turn of which nothing is left to do changes nothing, whoever sends it.
    ///
    /// # Errors
    /// [`Error::Conflict`] `stale_epoch` when the lease was never granted or another process has it by now, `key_taken`
    /// for a key that has done something else, and what else saying, calling, asking and committing are refused for;
    /// what is wrong with one act names its key.
    pub async fn turn(&self, by: &Caller, conversation: ConversationId, turn: Turn) -> Result<Turned, Error> {
        let (engine, by) = (self.clone(), by.clone());
        self.outlive(async move { engine.take_turn(&by, conversation, turn).await }).await
    }

    async fn take_turn(&self, by: &Caller, conversation: ConversationId, turn: Turn) -> Result<Turned, Error> {
        by.must_be(&[Role::Operator])?;
        let platform = self.platform();
        platform.writable(by, conversation).await?;
        let Turn { epoch, acts, handled } = turn;
        if epoch == 0 {
            return Err(Error::invalid("epoch", "that of a lease: 1 or more"));
        }
        let planned = self.planned(by, acts)?;
        let mut tries = Tries::default();
        loop {
            let places = self.places(by, conversation).await?;
            let (cursor, rev) = platform.cursor(by, &places.here).await?;
            let looked = self.looked(&places, &planned, (&cursor, handled.as_ref())).await;
            if let Ok((done, None)) = &looked
                && done.iter().all(Option::is_some)
            {
                return Ok(Turned { acts: done.iter().flatten().cloned().collect(), handled: cursor.handled() });
            }
            // Whoever lost the lease is told that before anything else: others have decided since.
            cursor.is_of(epoch)?;
            let (done, next) = looked?;
            let mut batch = self.opening_batch(by, &places.here, (&cursor, rev), next);
            let mut places = places;
            for (act, _) in planned.iter().zip(&done).filter(|(_, done)| done.is_none()) {
                self.add(by, &mut places, act, &mut batch).await.map_err(|error| about(&act.key, error))?;
            }
            platform.attempt(&mut tries, batch).await?;
        }
    }

    fn planned(&self, by: &Caller, acts: Vec<Act>) -> Result<Vec<Planned>, Error> {
        if acts.len() > ACTS {
            return Err(Error::invalid("acts", format!("at most {ACTS}")));
        }
        let mut planned = Vec::with_capacity(acts.len());
        let mut known = HashSet::new();
        for act in acts {
            let (key, place) = (act.key().to_owned(), act.place());
            if !is_key(&key) {
                return Err(Error::invalid("acts", "a key has 1 to 200 visible ASCII characters, without spaces"));
            }
            let kind = std::mem::discriminant(&act);
            let (what, speaker) = self.what(by, &key, act).map_err(|error| about(&key, error))?;
            if !known.insert((kind, place, speaker, key.clone())) {
                return Err(Error::invalid("acts", format!("`{key}`: there twice")));
            }
            planned.push(Planned { key, place, what });
        }
        Ok(planned)
    }

    /// What an act is, and whose key it has.
    fn what(&self, by: &Caller, key: &str, act: Act) -> Result<(What, ActorKey), Error> {
        Ok(match act {
            Act::Say { say, calls, .. } => {
                let draft = self.platform().draft(by, key, say)?.made_of(calls)?;
                let speaker = draft.from.clone();
                (What::Say(Box::new(draft)), speaker)
            }
            Act::Call { call, .. } => (What::Call(Box::new(self.propose(by, key, call)?)), by.actor.clone()),
            Act::Ask { ask, .. } => {
                let speaker = ask.actor.clone().unwrap_or_else(|| by.actor.clone());
                (What::Ask(Box::new(self.platform().inquiry(by, key, ask)?)), speaker)
            }
        })
    }

    async fn places(&self, by: &Caller, conversation: ConversationId) -> Result<Places, Error> {
        let platform = self.platform();
        let here = platform.writable(by, conversation).await?;
        let work = work_id(conversation, &by.actor.owner());
        let work = platform.get(Table::Conversation, RecordId(work.0)).await?;
        Ok(Places { here, work: work.map(|row| platform.found(row)).transpose()? })
    }

    async fn done_before(&self, places: &Places, act: &Planned) -> Result<Option<Acted>, Error> {
        let Some(found) = places.at(act.place) else { return Ok(None) };
        Ok(match &act.what {
            What::Say(draft) => self
                .platform()
                .said(found, draft)
                .await?
                .map(|said| Acted::Say { message: Box::new(said.message), already: said.already }),
            What::Call(proposal) => self
                .accepted(found, proposal)
                .await?
                .map(|called| Acted::Call { call: Box::new(called.call), already: called.already }),
            What::Ask(inquiry) => self
                .platform()
                .asked_before(found, inquiry)
                .await?
                .map(|(question, already)| Acted::Ask { question: Box::new(question), already }),
        })
    }

    /// What was done of a Turn before, and where the cursor is to go.
    async fn looked(
        &self,
        places: &Places,
        planned: &[Planned],
        (cursor, handled): (&Cursor, Option<&Handled>),
    ) -> Result<(Vec<Option<Acted>>, Option<Handled>), Error> {
        let mut done = Vec::with_capacity(planned.len());
        for act in planned {
            done.push(self.done_before(places, act).await.map_err(|error| about(&act.key, error))?);
        }
        let Some(handled) = handled else { return Ok((done, None)) };
        Ok((done, self.platform().moving(&places.here, cursor, handled).await?))
    }

    /// The Batch of a Turn before its acts: the cursor moves, and the lease is renewed, if nobody else has it by then.
    fn opening_batch(
        &self,
        by: &Caller,
        here: &Found,
        (cursor, rev): (&Cursor, Option<u64>),
        next: Option<Handled>,
    ) -> Batch {
        let renewed = cursor.clone().renewed(self.platform().now());
        let writes = self.platform().reaching(by, here, &renewed, next.unwrap_or_else(|| cursor.handled()));
        let expect = vec![expect(Table::Cursor, cursor_id(&by.actor, here.id), rev), here.unchanged()];
        Batch { expect, writes }
    }

    /// Adds what an act expects and writes.
    async fn add(&self, by: &Caller, places: &mut Places, act: &Planned, batch: &mut Batch) -> Result<(), Error> {
        if act.place == Place::Work && places.work.is_none() {
            places.work = Some(self.open_work(by, &places.here, batch).await?);
        }
        let found = places.at(act.place).ok_or_else(|| Error::not_found("conversation", "of the work"))?;
        let (expects, writes) = match &act.what {
            What::Say(draft) => {
                self.check_calls(draft).await?;
                self.platform().saying(by, found, draft).await?
            }
            What::Call(proposal) => self.taking(by, found, proposal).await?,
            What::Ask(inquiry) => self.platform().posing(found, inquiry).await?,
        };
        merge(batch, expects, writes);
        // An act may have made somebody a member: the next one begins from there.
        refresh(&mut places.here, batch)?;
        places.work.as_mut().map_or(Ok(()), |work| refresh(work, batch))
    }

    /// Who names a call shows it: only one's own can be named.
    async fn check_calls(&self, draft: &Draft) -> Result<(), Error> {
        for id in draft.origin.iter().flat_map(|origin| &origin.calls) {
            let call = self.platform().call_row(*id).await?;
            if call.is_none_or(|(_, stored)| stored.call.caller.owner() != draft.from.owner()) {
                return Err(Error::invalid("calls", format!("{id} is no call of {}", draft.from.owner())));
            }
        }
        Ok(())
    }

    /// Opens the work conversation in the same commit.
    async fn open_work(&self, by: &Caller, here: &Found, batch: &mut Batch) -> Result<Found, Error> {
        let (platform, operator) = (self.platform(), by.actor.owner());
        let id = RecordId(work_id(here.id, &operator).0);
        if operator.kind() != ActorKind::Operator || here.stored.work_of.is_some() {
            let detail = "only an operator has a work conversation, and a work conversation has none";
            return Err(Error::invalid("place", detail));
        }
        if let Some((expect, writes)) = platform.work_for(here, &operator, platform.time()).await? {
            merge(batch, vec![expect], writes);
        }
        let row = written(batch, id).cloned().ok_or_else(|| Error::not_found("conversation", "of the work"))?;
        platform.found(row)
    }

    /// What is known under each of these keys of the caller or of one of its roles, at most 50: what was said and asked by
    /// that one, and what the caller called.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Forbidden`] for the keys of somebody else; [`Error::Invalid`] for none, too many, and
    /// what is no key.
    pub async fn keyed(
        &self,
        by: &Caller,
        conversation: ConversationId,
        (place, actor, keys): (Place, Option<ActorKey>, &[String]),
    ) -> Result<Vec<Keyed>, Error> {
        let here = self.platform().readable(by, conversation).await?;
        let actor = actor.unwrap_or_else(|| by.actor.clone());
        if !by.speaks_as(&actor) {
            return Err(Error::Forbidden(format!("{} may not look for what {actor} did", by.actor)));
        }
        if !(1..=KEYS).contains(&keys.len()) || !keys.iter().all(|key| is_key(key)) {
            let detail =
                format!("1 to {KEYS} keys, each of 1 to 200 visible ASCII characters, with a space between them");
            return Err(Error::invalid("key", detail));
        }
        let scope = match place {
            Place::Here => here.scope(),
            Place::Work => RecordId(work_id(conversation, &by.actor.owner()).0),
        };
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            found.push(self.known_by(by, scope, &actor, key).await?);
        }
        Ok(found)
    }

    async fn known_by(&self, by: &Caller, scope: RecordId, actor: &ActorKey, key: &str) -> Result<Keyed, Error> {
        let platform = self.platform();
        let mut keyed = Keyed::default();
        let (Some(theirs), Some(mine)) = (request_key(actor, key), request_key(&by.actor, key)) else {
            return Ok(keyed);
        };
        if let Some(row) = platform.by_key(Table::Message, scope, &theirs).await? {
            keyed.message = Some(Box::new(platform.whole(&row, platform.config().shown_blocks as u64).await?));
        }
        if let Some(row) = platform.by_key(Table::Question, scope, &theirs).await? {
            keyed.question = Some(Box::new(questions::shown(&row)?));
        }
        if let Some(row) = platform.by_key(Table::Call, scope, &mine).await? {
            keyed.call = Some(Box::new(self.current(&row).await?));
        }
        Ok(keyed)
    }
}

/// A refusal that is about one act.
fn about(key: &str, error: Error) -> Error {
    match error {
        Error::Invalid { field, detail } => Error::Invalid { field, detail: format!("act `{key}`: {detail}") },
        Error::Conflict { code, detail } => Error::Conflict { code, detail: format!("act `{key}`: {detail}") },
        other => other,
    }
}

/// What the Batch writes of a Conversation, at last.
fn written(batch: &Batch, id: RecordId) -> Option<&loopd_store::Record> {
    batch.writes.iter().rev().find_map(|write| match write {
        Write::PutRecord(row, _) if row.table == Table::Conversation && row.id == id => Some(&**row),
        _ => None,
    })
}

fn refresh(found: &mut Found, batch: &Batch) -> Result<(), Error> {
    if let Some(row) = written(batch, found.row.id) {
        found.stored = body(row)?;
    }
    Ok(())
}

/// Adds to a Batch. What it opens already is not opened again, and has no revision yet that could be expected.
fn merge(batch: &mut Batch, expects: Vec<Expect>, mut writes: Vec<Write>) {
    for expected in expects {
        let Expect::Record { table: Table::Conversation, id, rev } = expected else {
            batch.expect.push(expected);
            continue;
        };
        let opened = batch.expect.contains(&expect(Table::Conversation, id, None));
        match (opened, rev) {
            (true, None) => writes.retain(|write| !opens(write, id)),
            (false, _) if !batch.expect.contains(&expected) => batch.expect.push(expected),
            (true, Some(_)) | (false, _) => {}
        }
    }
    batch.writes.append(&mut writes);
}

/// Whether the write is one of those that open this Conversation.
fn opens(write: &Write, id: RecordId) -> bool {
    match write {
        Write::PutRecord(row, _) if row.table == Table::Conversation => row.id == id,
        Write::PutRecord(row, _) if row.table == Table::Member => {
            row.key.as_deref() == Some(ConversationId(id.0).to_string().as_str())
        }
        Write::Publish(item) => item.feed == conversation_feed(id),
        _ => false,
    }
}
