//! Questions to people: asked once, ended once.

use crate::conversations::{Found, wake};
use crate::messages::{Draft, hide, message_of};
use crate::rows::{EVERYTHING, Tries, body, conversation_feed, digest, publish, put, record, request_key};
use crate::{Caller, Error, Paging, Platform};
use loopd_kernel::TimeMs;
use loopd_protocol::{
    ActorKey, ActorKind, Answered, AskKind, Block, ConversationId, Event, KnownBlock, MessageId, MessageStatus,
    NewQuestion, Origin, Page, Question, QuestionId, QuestionStatus, Role, Snapshot,
};
use loopd_store::{Batch, Expect, Place, Query, Record, RecordId, Table, Write};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Answers to choose from.
const CHOICES: usize = 50;

/// The longest time that a Question may stay open, in seconds: 30 days.
const LONGEST_S: u64 = 30 * 86_400;

/// Parts of the list of all open Questions that are read for one answer.
const LOOKS: usize = 50;

/// A Question as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub question: Question,
    /// The digest of the request that asked it.
    pub request: String,
    /// Its number in the Run that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_run: Option<u64>,
    /// How it will end if its Run takes the answer that was sent to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<QuestionStatus>,
}

/// A Question before it is asked.
#[derive(Debug, Clone)]
pub(crate) struct Inquiry {
    id: QuestionId,
    from: ActorKey,
    new: NewQuestion,
    key: Option<String>,
    request: String,
}

/// The Question of a Record.
pub(crate) fn shown(row: &Record) -> Result<Question, Error> {
    Ok(body::<Stored>(row)?.question)
}

/// What asking writes: the Question, that it is open, and the Message that shows it.
pub(crate) fn asking(stored: &Stored, key: Option<String>, seq: Option<u64>, at: TimeMs) -> Vec<Write> {
    asking_about(None, stored, key, seq, at)
}

/// The same, in reply to a Message.
fn asking_about(
    reply_to: Option<MessageId>,
    stored: &Stored,
    key: Option<String>,
    seq: Option<u64>,
    at: TimeMs,
) -> Vec<Write> {
    let question = &stored.question;
    let (id, scope) = (RecordId(question.id.0), RecordId(question.conversation.0));
    // A Run's own timer ends its Questions.
    let due = question.deadline.filter(|_| stored.of_run.is_none()).map(TimeMs);
    let row = Record { key, due, ..record(Table::Question, id, scope, stored) };
    let (prompt, number) = (question.prompt.clone(), question.id);
    let block = match question.kind {
        AskKind::Ask => KnownBlock::Ask { question: number, prompt },
        AskKind::Confirm | AskKind::Resolve => KnownBlock::Confirm { question: number, prompt },
    };
    let origin = question.run.clone().map(|run| Origin { call: None, run: Some(run), seq, calls: Vec::new() });
    let draft = Draft {
        id: question.message,
        from: question.from.clone(),
        to: question.to.clone().into_iter().collect(),
        reply_to,
        blocks: vec![Block::Known(block)],
        status: MessageStatus::Completed,
        origin,
        key: None,
        request: String::new(),
        open_ms: None,
    };
    let open = record(Table::Open, id, EVERYTHING, &question.conversation);
    let event = Event::Question { question: Box::new(question.clone()) };
    let mut writes = vec![put(row, Place::Next), put(open, Place::Next)];
    writes.extend(draft.writes(question.conversation, at));
    writes.push(publish(conversation_feed(scope), at, None, &event));
    writes
}

/// What it writes that nobody has to answer a Question any more; `stored` says why.
pub(crate) fn closing(row: &Record, stored: &Stored, at: TimeMs) -> Vec<Write> {
    let question = &stored.question;
    let next = Record { key: row.key.clone(), ..record(Table::Question, row.id, row.scope, stored) };
    let event = Event::Question { question: Box::new(question.clone()) };
    let mut writes = vec![
        put(next, Place::Keep),
        Write::DeleteRecord(Table::Open, row.id),
        publish(conversation_feed(row.scope), at, None, &event),
    ];
    if question.from.kind() == ActorKind::Operator {
        writes.push(wake(&question.from, question.conversation, "question", at));
    }
    writes
}

/// The Question and how it ended, as the Message of whoever answered.
pub(crate) fn reply(question: &Question, answered: &Answered, at: TimeMs) -> Vec<Write> {
    let snapshot = Snapshot {
        question: question.id,
        kind: question.kind,
        title: question.title.clone(),
        prompt: question.prompt.clone(),
        choices: question.choices.clone(),
        status: question.status,
        value: answered.value.clone(),
    };
    let draft = Draft {
        id: message_of(&format!("reply to {}", question.id)),
        from: answered.by.clone(),
        to: vec![question.from.clone()],
        reply_to: Some(question.message),
        blocks: vec![Block::Known(KnownBlock::Reply { snapshot })],
        status: MessageStatus::Completed,
        origin: None,
        key: None,
        request: String::new(),
        open_ms: None,
    };
    draft.writes(question.conversation, at)
}

impl Platform {
    /// Asks a person. The deadline is fixed now; the same request under the same key is the same Question with the same
    /// deadline. The flag: it was asked already.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for anybody but Operators, Harnesses and admins; [`Error::Invalid`], [`Error::NotFound`],
    /// and [`Error::Conflict`] `key_taken`.
    pub async fn ask(
        &self,
        by: &Caller,
        conversation: ConversationId,
        key: &str,
        new: NewQuestion,
    ) -> Result<(Question, bool), Error> {
        let inquiry = self.inquiry(by, key, new)?;
        let mut tries = Tries::default();
        loop {
            let found = self.writable(by, conversation).await?;
            if let Some(asked) = self.asked_before(&found, &inquiry).await? {
                return Ok(asked);
            }
            let (expect, writes) = self.posing(&found, &inquiry).await?;
            self.attempt(&mut tries, Batch { expect, writes }).await?;
        }
    }

    /// A checked Question, as far as it can be without reading.
    pub(crate) fn inquiry(&self, by: &Caller, key: &str, new: NewQuestion) -> Result<Inquiry, Error> {
        by.must_be(&[Role::Operator, Role::Harness])?;
        check(&new)?;
        let from = new.actor.clone().unwrap_or_else(|| by.actor.clone());
        if !by.speaks_as(&from) {
            return Err(Error::Forbidden(format!("{} may not ask as {from}", by.actor)));
        }
        let (id, request, key) = (QuestionId(self.new_id()), digest(&new), request_key(&from, key));
        Ok(Inquiry { id, from, new, key, request })
    }

    /// What became of it, if it was asked. The flag: somebody else did.
    pub(crate) async fn asked_before(
        &self,
        found: &Found,
        inquiry: &Inquiry,
    ) -> Result<Option<(Question, bool)>, Error> {
        let id = RecordId(inquiry.id.0);
        let before = match &inquiry.key {
            Some(key) => self.by_key(Table::Question, found.scope(), key).await?,
            None => self.get(Table::Question, id).await?,
        };
        let Some(row) = before else { return Ok(None) };
        let stored: Stored = body(&row)?;
        if stored.request != inquiry.request {
            return Err(Error::conflict("key_taken", "the key has asked something else in this conversation"));
        }
        Ok(Some((stored.question, row.id != id)))
    }

    /// What asking it expects and writes.
    pub(crate) async fn posing(&self, found: &Found, inquiry: &Inquiry) -> Result<(Vec<Expect>, Vec<Write>), Error> {
        let Inquiry { id, from, new, key, request } = inquiry;
        self.is_said_in(found, new.reply_to).await?;
        let people = self.people(found).await?;
        if let Some(to) = new.to.as_ref().filter(|to| !people.contains(to)) {
            return Err(Error::invalid("to", format!("{to} is no person of this conversation")));
        }
        let at = self.time();
        let question = asked(*id, found, from, new, at);
        let stored = Stored { question, request: request.clone(), of_run: None, sent: None };
        let mut writes = asking_about(new.reply_to, &stored, key.clone(), None, at);
        let asked = people.iter().filter(|person| new.to.as_ref().is_none_or(|to| to == *person));
        writes.extend(asked.map(|person| wake(person, found.id, "question", at)));
        Ok((vec![found.unchanged()], writes))
    }

    /// That what a Question belongs to was said where it is asked.
    async fn is_said_in(&self, found: &Found, message: Option<MessageId>) -> Result<(), Error> {
        let Some(id) = message else { return Ok(()) };
        let row = self.get(Table::Message, RecordId(id.0)).await?;
        match row.is_some_and(|row| row.scope == found.scope()) {
            true => Ok(()),
            false => Err(Error::invalid("reply_to", "it is not a message of this conversation")),
        }
    }

    pub(crate) async fn question_row(&self, by: &Caller, id: QuestionId) -> Result<(Record, Stored, Found), Error> {
        let row = self.get(Table::Question, RecordId(id.0)).await?.ok_or_else(|| Error::not_found("question", id))?;
        let found = self.readable(by, ConversationId(row.scope.0)).await;
        let found = found.map_err(|error| hide(error, "question", id))?;
        let stored = body(&row)?;
        Ok((row, stored, found))
    }

    /// The Question.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn question(&self, by: &Caller, id: QuestionId) -> Result<Question, Error> {
        Ok(self.question_row(by, id).await?.1.question)
    }

    /// A part of the list of open Questions that the caller may answer, the longest open first; of one Conversation, or
    /// of all of theirs.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Invalid`] for a cursor that no list returned.
    pub async fn questions(
        &self,
        by: &Caller,
        conversation: Option<ConversationId>,
        paging: Paging,
    ) -> Result<Page<Question>, Error> {
        if let Some(id) = conversation {
            self.readable(by, id).await?;
        }
        let (limit, mut from) = (self.limit(paging.limit), paging.cursor);
        let (mut items, mut readable) = (Vec::new(), HashMap::new());
        // What others are asked does not make a page empty: it is read on until there is something, or nothing more.
        for _ in 0..LOOKS {
            let paging = Paging { cursor: from, limit: limit - items.len() };
            let (open, next) = self.page((Table::Open, EVERYTHING), false, &paging).await?;
            let ids = open.iter().map(|row| row.id).collect();
            for row in self.store.records(Query::These(Table::Question, ids)).await? {
                let question = shown(&row)?;
                let place = question.conversation;
                let for_them = question.to.as_ref().is_none_or(|to| *to == by.actor || by.is_admin());
                if conversation.is_some_and(|id| id != place) || !for_them {
                    continue;
                }
                let may_read = match readable.get(&place) {
                    Some(known) => *known,
                    None => self.readable(by, place).await.is_ok(),
                };
                readable.insert(place, may_read);
                if may_read {
                    items.push(question);
                }
            }
            from = next;
            if from.is_none() || items.len() >= limit {
                break;
            }
        }
        Ok(Page { items, next: from })
    }
}

fn asked(id: QuestionId, found: &Found, from: &ActorKey, new: &NewQuestion, at: TimeMs) -> Question {
    let timeout_ms = i64::try_from(new.timeout_s.saturating_mul(1000)).unwrap_or(i64::MAX);
    Question {
        id,
        conversation: found.id,
        message: message_of(&id.to_string()),
        kind: new.kind,
        from: from.clone(),
        to: new.to.clone(),
        title: new.title.clone(),
        prompt: new.prompt.clone(),
        choices: new.choices.clone(),
        free_text: new.free_text || (new.choices.is_empty() && new.schema.is_none() && new.kind == AskKind::Ask),
        schema: new.schema.clone(),
        authorises: new.authorises.clone(),
        status: QuestionStatus::Open,
        answer: None,
        asked_at: at.0,
        deadline: Some(at.0.saturating_add(timeout_ms)),
        run: None,
    }
}

fn check(new: &NewQuestion) -> Result<(), Error> {
    let chars = |text: &str| text.chars().count();
    if new.kind == AskKind::Resolve {
        return Err(Error::invalid("kind", "ask or confirm"));
    }
    if new.prompt.trim().is_empty() || chars(&new.prompt) > 10_000 {
        return Err(Error::invalid("prompt", "1 to 10,000 characters"));
    }
    if chars(&new.title) > 200 {
        return Err(Error::invalid("title", "at most 200 characters"));
    }
    if !(1..=LONGEST_S).contains(&new.timeout_s) {
        return Err(Error::invalid("timeout_s", "1 second to 30 days"));
    }
    if new.to.as_ref().is_some_and(|to| to.kind() != ActorKind::Person) {
        return Err(Error::invalid("to", "a person"));
    }
    if new.choices.len() > CHOICES {
        return Err(Error::invalid("choices", format!("at most {CHOICES}")));
    }
    let values: Vec<_> = new.choices.iter().map(|choice| &choice.value).collect();
    let doubled = values.iter().enumerate().any(|(at, value)| values.iter().skip(at + 1).any(|other| other == value));
    if doubled || values.iter().any(|value| value.is_empty() || value.len() > 1000) {
        return Err(Error::invalid("choices", "each value once, 1 to 1,000 bytes"));
    }
    let form = new.schema.is_some();
    if new.kind == AskKind::Confirm && (form || new.free_text || !new.choices.is_empty()) {
        return Err(Error::invalid("kind", "a confirm has neither choices nor free text nor a schema"));
    }
    if form && (new.free_text || !new.choices.is_empty()) {
        return Err(Error::invalid("schema", "not together with choices or free text"));
    }
    if let Some(schema) = &new.schema {
        if !schema.is_object() {
            return Err(Error::invalid("schema", "a JSON Schema is an object"));
        }
        let bytes = schema.to_string().len();
        if bytes > 64 << 10 {
            return Err(Error::TooLarge { what: "the schema", bytes, limit: 64 << 10 });
        }
        jsonschema::validator_for(schema).map_err(|error| Error::invalid("schema", error.to_string()))?;
    }
    Ok(())
}
