//! Messages: saying, streaming, reading.

use crate::conversations::{Found, membership, show, touch, wake};
use crate::pieces;
use crate::rows::{Tries, body, conversation_feed, digest, expect, named, publish, put, record, request_key};
use crate::texts::{ADDRESSEES, length, mentions, words};
use crate::{Caller, Error, Platform};
use loopd_kernel::TimeMs;
use loopd_protocol::{
    ActorKey, ActorKind, Block, ConversationId, ErrorNote, Event, HarnessCallId, Message, MessageId, MessageStatus,
    Open, Origin, Said, Say,
};
use loopd_store::{Batch, Expect, List, Place, Query, Record, RecordId, Table, Write};
use serde::{Deserialize, Serialize};

/// Which part of a Conversation is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// Messages behind this seq, the first of them.
    After(u64),
    /// Messages before this seq, the last of them.
    Before(u64),
    /// The last Messages.
    Latest,
}

/// A Message as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub from: ActorKey,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<ActorKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    pub status: MessageStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorNote>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    pub created_at: i64,
    pub updated_at: i64,
    /// The digest of the request that began it.
    pub request: String,
    /// The parts of a Message that was said at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Vec<Block>>,
    /// How many parts stand in Records of their own.
    #[serde(default)]
    pub count: u64,
    /// Bytes of all that was written into it.
    #[serde(default)]
    pub bytes: u64,
    /// The digest of the update that made this revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<String>,
}

/// Calls that a Message names.
const NAMED_CALLS: usize = 100;

/// A Message before it is said.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub id: MessageId,
    pub from: ActorKey,
    pub to: Vec<ActorKey>,
    pub reply_to: Option<MessageId>,
    pub blocks: Vec<Block>,
    pub status: MessageStatus,
    pub origin: Option<Origin>,
    pub key: Option<String>,
    pub request: String,
    /// How long it may stay open; what a call says ends with the call.
    pub open_ms: Option<i64>,
}

impl Draft {
    /// Names the calls that it is made of: with others, it is another Message.
    pub(crate) fn made_of(mut self, calls: Vec<HarnessCallId>) -> Result<Self, Error> {
        if calls.len() > NAMED_CALLS {
            return Err(Error::invalid("calls", format!("at most {NAMED_CALLS}")));
        }
        if !calls.is_empty() {
            self.request = digest(&(&self.request, &calls));
            self.origin = Some(Origin { calls, ..Origin::default() });
        }
        Ok(self)
    }

    pub(crate) fn stored(&self, at: TimeMs) -> Stored {
        let inline = self.status.is_final();
        Stored {
            from: self.from.clone(),
            to: self.to.clone(),
            reply_to: self.reply_to,
            status: self.status,
            error: None,
            origin: self.origin.clone(),
            created_at: at.0,
            updated_at: at.0,
            request: self.request.clone(),
            blocks: inline.then(|| self.blocks.clone()),
            count: if inline { 0 } else { self.blocks.len() as u64 },
            bytes: length(&self.blocks),
            update: None,
        }
    }

    /// What saying it writes, besides what its addressees get.
    pub(crate) fn writes(&self, conversation: ConversationId, at: TimeMs) -> Vec<Write> {
        let (id, scope) = (RecordId(self.id.0), RecordId(conversation.0));
        let stored = self.stored(at);
        let words = stored.status.is_final().then(|| words(&self.blocks));
        let due = self.open_ms.map(|open_ms| TimeMs(at.0.saturating_add(open_ms)));
        let row = Record { key: self.key.clone(), words, due, ..record(Table::Message, id, scope, &stored) };
        let mut writes = vec![put(row, Place::Next)];
        if !stored.status.is_final() {
            writes.extend(self.blocks.iter().zip(0..).map(|(block, index)| pieces::whole(id, index, block)));
        }
        let message = shown((conversation, self.id), (0, 0), stored, self.blocks.clone());
        let event = Event::Message { message: Box::new(message) };
        writes.push(publish(conversation_feed(scope), at, Some((Table::Message, id)), &event));
        writes.push(touch(conversation, at));
        writes
    }
}

pub(crate) fn shown(
    (conversation, id): (ConversationId, MessageId),
    (seq, revision): (u64, u64),
    stored: Stored,
    blocks: Vec<Block>,
) -> Message {
    let block_count = stored.blocks.as_ref().map_or(stored.count, |blocks| blocks.len() as u64);
    Message {
        id,
        conversation,
        seq,
        from: stored.from,
        to: stored.to,
        reply_to: stored.reply_to,
        status: stored.status,
        revision,
        blocks,
        block_count,
        error: stored.error,
        origin: stored.origin,
        created_at: stored.created_at,
        updated_at: stored.updated_at,
    }
}

/// Why nobody may write this Block.
pub(crate) fn not_written(block: &Block) -> Option<String> {
    let kind = block.kind();
    if kind.is_empty() {
        return Some("each block has a `type`".to_owned());
    }
    if block.is_reserved() {
        return Some(format!("`{kind}` is written by the platform only: ask a question"));
    }
    block.is_misshapen().then(|| format!("a block of the type `{kind}` has other fields"))
}

impl Platform {
    /// Says a whole Message. The key makes it one Message, however often it is sent; an empty key says it each time.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Forbidden`], [`Error::Invalid`], [`Error::TooLarge`], and [`Error::Conflict`]
    /// `key_taken` when the key said something else.
    pub async fn say(&self, by: &Caller, conversation: ConversationId, key: &str, say: Say) -> Result<Said, Error> {
        let draft = self.draft(by, key, say)?;
        self.say_draft(by, conversation, &draft).await
    }

    /// Says it, once.
    pub(crate) async fn say_draft(
        &self,
        by: &Caller,
        conversation: ConversationId,
        draft: &Draft,
    ) -> Result<Said, Error> {
        let mut tries = Tries::default();
        loop {
            let found = self.writable(by, conversation).await?;
            if let Some(said) = self.said(&found, draft).await? {
                return Ok(said);
            }
            let (expect, writes) = self.saying(by, &found, draft).await?;
            self.attempt(&mut tries, Batch { expect, writes }).await?;
        }
    }

    /// Opens a Message that goes on with [`Platform::update`] and ends with [`Platform::end`].
    ///
    /// # Errors
    /// As [`Platform::say`].
    pub async fn begin(&self, by: &Caller, conversation: ConversationId, key: &str, open: Open) -> Result<Said, Error> {
        // Saying and beginning share their keys, and are not the same request.
        let request = digest(&("begin", &open));
        let Open { actor, to, reply_to, blocks } = open;
        let status = MessageStatus::Streaming;
        let draft = self.drafted(by, (key, request), status, Say { actor, to, reply_to, blocks })?;
        self.say_draft(by, conversation, &draft).await
    }

    /// A checked Message, as far as it can be without reading.
    pub(crate) fn draft(&self, by: &Caller, key: &str, say: Say) -> Result<Draft, Error> {
        if say.blocks.is_empty() {
            return Err(Error::invalid("blocks", "at least one"));
        }
        let request = digest(&say);
        self.drafted(by, (key, request), MessageStatus::Completed, say)
    }

    fn drafted(
        &self,
        by: &Caller,
        (key, request): (&str, String),
        status: MessageStatus,
        say: Say,
    ) -> Result<Draft, Error> {
        let Say { actor, mut to, reply_to, blocks } = say;
        let from = actor.unwrap_or_else(|| by.actor.clone());
        if !by.speaks_as(&from) {
            return Err(Error::Forbidden(format!("{} may not speak as {from}", by.actor)));
        }
        self.check_blocks(&blocks)?;
        if to.len() > ADDRESSEES {
            return Err(Error::invalid("to", format!("at most {ADDRESSEES}")));
        }
        for mentioned in mentions(&blocks) {
            if !to.contains(&mentioned) && to.len() < ADDRESSEES {
                to.push(mentioned);
            }
        }
        let (id, key) = (MessageId(self.new_id()), request_key(&from, key));
        let open_ms = (!status.is_final()).then(|| i64::from(self.config.message_open_s) * 1000);
        Ok(Draft { id, from, to, reply_to, blocks, status, origin: None, key, request, open_ms })
    }

    fn check_blocks(&self, blocks: &[Block]) -> Result<(), Error> {
        if blocks.len() > 100 {
            return Err(Error::invalid("blocks", "at most 100 at once"));
        }
        let bytes = usize::try_from(length(blocks)).unwrap_or(usize::MAX);
        let limit = self.config.message_bytes;
        if bytes > limit {
            return Err(Error::TooLarge { what: "the message", bytes, limit });
        }
        match blocks.iter().find_map(not_written) {
            Some(why) => Err(Error::invalid("blocks", why)),
            None => Ok(()),
        }
    }

    /// What became of the draft, if it was said.
    pub(crate) async fn said(&self, found: &Found, draft: &Draft) -> Result<Option<Said>, Error> {
        let before = match &draft.key {
            Some(key) => self.by_key(Table::Message, found.scope(), key).await?,
            None => self.get(Table::Message, RecordId(draft.id.0)).await?,
        };
        let Some(row) = before else { return Ok(None) };
        let stored: Stored = body(&row)?;
        if stored.request != draft.request {
            return Err(Error::conflict("key_taken", "the key has said something else in this conversation"));
        }
        let already = row.id != RecordId(draft.id.0);
        let message = self.whole(&row, self.config.shown_blocks as u64).await?;
        Ok(Some(Said { message, already, calls: Vec::new() }))
    }

    /// What saying the draft expects and writes.
    pub(crate) async fn saying(
        &self,
        by: &Caller,
        found: &Found,
        draft: &Draft,
    ) -> Result<(Vec<Expect>, Vec<Write>), Error> {
        let at = self.time();
        if let Some(reply_to) = draft.reply_to {
            let row = self.get(Table::Message, RecordId(reply_to.0)).await?;
            if row.is_none_or(|row| row.scope != found.scope()) {
                return Err(Error::invalid("reply_to", "it is not a message of this conversation"));
            }
        }
        let mut expects = vec![found.unchanged(), expect(Table::Message, RecordId(draft.id.0), None)];
        let mut to = Vec::new();
        let mut joins = Vec::new();
        let mut writes = Vec::new();
        for actor in &draft.to {
            let member = found.is_member(actor) || self.people(found).await?.contains(actor);
            if !member && (actor.kind() == ActorKind::Person || !self.is_known(actor).await?) {
                let what = match actor.kind() {
                    ActorKind::Person => "no member of this conversation",
                    ActorKind::Operator | ActorKind::Harness => "no agent and no operator that this server knows",
                };
                let detail = format!("{actor} is {what}");
                // Whoever only mentioned them need not know who there is.
                let explicit = !mentions(&draft.blocks).contains(actor);
                if explicit { return Err(Error::invalid("to", detail)) } else { continue }
            }
            to.push(actor.clone());
            if !member && actor.kind() == ActorKind::Operator && !joins.contains(&actor.owner()) {
                joins.push(actor.owner());
            }
            if let Some((expect, work)) = self.work_for(found, actor, at).await? {
                expects.push(expect);
                writes.extend(work);
            }
        }
        if found.stored.members.len() + joins.len() > self.config.members {
            return Err(Error::invalid("to", format!("a conversation has at most {} members", self.config.members)));
        }
        let (begins, cursors) = self.beginning(found, &joins).await?;
        expects.extend(begins);
        writes.extend(cursors);
        writes.extend(self.joining(found, joins, at));
        let draft = Draft { to, ..draft.clone() };
        writes.extend(draft.writes(found.id, at));
        if draft.status.is_final() {
            writes.extend(wakes(found, &by.actor, &draft.to, at));
        }
        Ok((expects, writes))
    }

    /// Makes Operators that are addressed members: they have to read what they are asked about.
    fn joining(&self, found: &Found, joins: Vec<ActorKey>, at: TimeMs) -> Vec<Write> {
        if joins.is_empty() {
            return Vec::new();
        }
        let mut stored = found.stored.clone();
        let mut writes = Vec::new();
        for actor in joins {
            writes.push(membership(found.id, &actor, at));
            stored.members.push(actor);
        }
        let event = show(found.id, &stored, (found.row.rev + 1, at.0, 0, 0));
        let event = Event::Conversation { conversation: Box::new(event) };
        let mut row = record(Table::Conversation, found.row.id, found.row.scope, &stored);
        row.key.clone_from(&found.row.key);
        writes.push(put(row, Place::Keep));
        writes.push(publish(conversation_feed(found.scope()), at, Some((Table::Conversation, found.row.id)), &event));
        writes
    }

    /// A part of a Conversation, in the order of `seq`. Long Messages are shown with their first Blocks. It may be shorter
    /// than was asked for, where Messages are large; it is empty only where there is nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn messages(
        &self,
        by: &Caller,
        conversation: ConversationId,
        window: Window,
        limit: usize,
    ) -> Result<Vec<Message>, Error> {
        let found = self.readable(by, conversation).await?;
        let mut rows = self.window(found.scope(), window, self.limit(limit)).await?;
        let newest_first = !matches!(window, Window::After(_));
        if newest_first {
            rows.reverse();
        }
        let (mut messages, mut bytes) = (Vec::with_capacity(rows.len()), 0);
        for row in rows {
            bytes += self.weight(&row)?;
            if bytes > self.config.list_bytes && !messages.is_empty() {
                break;
            }
            messages.push(self.whole(&row, self.config.shown_blocks as u64).await?);
        }
        if newest_first {
            messages.reverse();
        }
        Ok(messages)
    }

    /// About how many bytes a Message has.
    pub(crate) fn weight(&self, row: &Record) -> Result<u64, Error> {
        Ok(body::<Stored>(row)?.bytes.max(row.body.len() as u64))
    }

    pub(crate) async fn window(&self, scope: RecordId, window: Window, limit: usize) -> Result<Vec<Record>, Error> {
        let (newest_first, beyond) = match window {
            Window::After(seq) => (false, Some((seq, RecordId([0xff; 16])))),
            Window::Before(seq) => (true, Some((seq, RecordId([0; 16])))),
            Window::Latest => (true, None),
        };
        let list = List { table: Table::Message, scope, beyond, newest_first, limit };
        let mut rows = self.store.records(Query::List(list)).await?;
        if newest_first {
            rows.reverse();
        }
        Ok(rows)
    }

    /// A Message with all its Blocks.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn message(&self, by: &Caller, message: MessageId) -> Result<Message, Error> {
        let row = self.get(Table::Message, RecordId(message.0)).await?;
        let row = row.ok_or_else(|| Error::not_found("message", message))?;
        let found = self.readable(by, ConversationId(row.scope.0)).await;
        found.map_err(|error| hide(error, "message", message))?;
        self.whole(&row, u64::MAX).await
    }

    /// The Message of a Record, with its first `blocks` Blocks. One that goes on meanwhile is read again, so that its
    /// revision and its Blocks are of one moment.
    pub(crate) async fn whole(&self, row: &Record, blocks: u64) -> Result<Message, Error> {
        let ids = (ConversationId(row.scope.0), MessageId(row.id.0));
        let mut newest = None;
        loop {
            let row = newest.as_ref().unwrap_or(row);
            let stored: Stored = body(row)?;
            if let Some(parts) = stored.blocks.clone() {
                return Ok(shown(ids, (row.place, row.rev), stored, parts));
            }
            let parts = self.blocks(row.id, blocks).await?;
            let now = if stored.status.is_final() { None } else { self.get(Table::Message, row.id).await? };
            match now.filter(|now| now.rev != row.rev) {
                Some(now) => newest = Some(now),
                None => return Ok(shown(ids, (row.place, row.rev), stored, parts)),
            }
        }
    }
}

/// To whoever may not know the Conversation, the thing itself is what there is not.
pub(crate) fn hide(error: Error, what: &'static str, id: impl ToString) -> Error {
    match error {
        Error::NotFound { .. } => Error::not_found(what, id),
        other => other,
    }
}

/// A Message's Record with another body.
pub(crate) fn rewritten(row: &Record, stored: &Stored) -> Record {
    Record { key: row.key.clone(), ..record(Table::Message, row.id, row.scope, stored) }
}

/// What ending a Message writes.
pub(crate) fn ending(row: &Record, stored: &Stored, words: String, at: TimeMs) -> Vec<Write> {
    let ids = (ConversationId(row.scope.0), MessageId(row.id.0));
    let message = shown(ids, (row.place, row.rev + 1), stored.clone(), Vec::new());
    let event = Event::MessageEnded { message: Box::new(message) };
    vec![
        put(Record { words: Some(words), ..rewritten(row, stored) }, Place::Keep),
        publish(conversation_feed(row.scope), at, Some((Table::Message, row.id)), &event),
    ]
}

/// Tells those whom a whole Message is for: the addressees, or of one to everybody all members but the speaker.
pub(crate) fn wakes(found: &Found, speaker: &ActorKey, to: &[ActorKey], at: TimeMs) -> Vec<Write> {
    let mut whom: Vec<_> = if to.is_empty() { &found.stored.members } else { to }.iter().map(ActorKey::owner).collect();
    whom.sort();
    whom.dedup();
    whom.retain(|actor| *actor != speaker.owner() && actor.kind() != ActorKind::Harness);
    whom.iter().map(|actor| wake(actor, found.id, "message", at)).collect()
}

/// The identity of a Message that follows from something else, for example from a Question.
pub(crate) fn message_of(name: &str) -> MessageId {
    MessageId(named(name).0)
}
