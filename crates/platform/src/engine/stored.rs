//! Calls as Records.

use crate::conversations::wake;
use crate::error::Error;
use crate::messages;
use crate::pieces;
use crate::rows::{body, conversation_feed, publish, put, record};
use crate::texts;
use crate::{Caller, Platform};
use loopd_kernel::TimeMs;
use loopd_protocol::{
    ActorKind, Block, BlockOp, CallPhase, ErrorNote, Event, HarnessCall, HarnessCallId, KnownBlock, MessageId,
    MessageStatus,
};
use loopd_store::{Counter, Place, Record, RecordId, Table, Write};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Calls that have not ended, over all targets.
pub(super) fn open_calls() -> Counter {
    Counter("calls that have not ended".to_owned())
}

/// A call as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stored {
    pub call: HarnessCall,
    /// The digest of the request that made it.
    pub request: String,
    /// How many updates of an external execution are written down.
    #[serde(default)]
    pub checkpoint: u64,
    /// The rolling digest of those updates.
    #[serde(default)]
    pub seen: String,
    /// Who began an external execution: whoever reads its own mark here, and nobody else, submits it.
    #[serde(default)]
    pub begun_by: String,
    /// When it is looked at again, in milliseconds since 1970, after it was asked to end and has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look_at: Option<i64>,
}

impl Stored {
    pub const fn new(call: HarnessCall) -> Self {
        Self {
            call,
            request: String::new(),
            checkpoint: 0,
            seen: String::new(),
            begun_by: String::new(),
            look_at: None,
        }
    }

    /// When somebody has to look at it, unless it has ended.
    pub fn due(&self) -> Option<TimeMs> {
        (!self.call.phase.is_final()).then(|| TimeMs(self.look_at.unwrap_or(self.call.deadline)))
    }
}

/// The call of a Record.
pub(crate) fn shown(row: &Record) -> Result<HarnessCall, Error> {
    let stored: Stored = body(row)?;
    Ok(HarnessCall { revision: row.rev, ..stored.call })
}

/// Writes a call, and tells of it. Its deadline is looked at until it has ended.
pub(super) fn write(stored: &Stored, key: Option<String>, at: TimeMs) -> Vec<Write> {
    let call = &stored.call;
    let (id, scope) = (RecordId(call.id.0), RecordId(call.conversation.0));
    let row = Record { key, due: stored.due(), ..record(Table::Call, id, scope, stored) };
    let event = Event::Call { call: Box::new(call.clone()) };
    let mut writes =
        vec![put(row, Place::Keep), publish(conversation_feed(scope), at, Some((Table::Call, id)), &event)];
    if call.phase.is_final() {
        writes.push(Write::Count { counter: open_calls(), by: -1, max: None });
        if call.caller.kind() == ActorKind::Operator {
            writes.push(wake(&call.caller, call.conversation, "call", at));
        }
    }
    writes
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ending {
    pub phase: CallPhase,
    pub reason: Option<String>,
    pub error: Option<ErrorNote>,
    pub result: Option<Value>,
}

impl Ending {
    pub fn failed(phase: CallPhase, code: &str, message: impl Into<String>) -> Self {
        let error = Some(ErrorNote { code: code.to_owned(), message: message.into() });
        Self { phase, reason: None, error, result: None }
    }

    const fn status(&self) -> MessageStatus {
        match self.phase {
            CallPhase::Succeeded => MessageStatus::Completed,
            CallPhase::Cancelled => MessageStatus::Cancelled,
            CallPhase::Queued
            | CallPhase::Running
            | CallPhase::Waiting
            | CallPhase::Failed
            | CallPhase::TimedOut
            | CallPhase::Unknown => MessageStatus::Failed,
        }
    }
}

/// What ending a call writes: the call, the result as a Block, the end of its output Message, and who is told. `ops` are
/// changes of Blocks that the same commit writes: a revision is told in one event.
pub(super) fn end(
    (row, stored): (&Record, &Stored),
    (message, said, mut ops): (&Record, &messages::Stored, Vec<BlockOp>),
    ending: Ending,
    at: TimeMs,
) -> Vec<Write> {
    let status = ending.status();
    let Ending { phase, reason, error, result } = ending;
    let mut writes = Vec::new();
    let mut count = said.count;
    let mut words = String::new();
    if let Some(result) = &result {
        let block = Block::Known(match result {
            Value::String(text) => KnownBlock::Result { text: Some(text.clone()), json: None },
            json => KnownBlock::Result { text: None, json: Some(json.clone()) },
        });
        words = texts::words(std::slice::from_ref(&block));
        writes.push(pieces::whole(message.id, count, &block));
        count += 1;
        ops.push(BlockOp::Push { block });
    }
    let added = serde_json::to_vec(&ops).unwrap_or_default().len() as u64;
    if !ops.is_empty() {
        let (id, revision) = (MessageId(message.id.0), message.rev + 1);
        let event = Event::MessageUpdated { message: id, revision, ops };
        writes.push(publish(conversation_feed(message.scope), at, None, &event));
    }
    let bytes = said.bytes + added;
    let said =
        messages::Stored { status, error: error.clone(), updated_at: at.0, count, bytes, update: None, ..said.clone() };
    writes.extend(messages::ending(message, &said, words, at));
    let call = HarnessCall { phase, reason, error, result, ended_at: Some(at.0), ..stored.call.clone() };
    writes.extend(write(&Stored { call, ..stored.clone() }, row.key.clone(), at));
    writes.push(crate::conversations::touch(stored.call.conversation, at));
    let recipient = stored.call.recipient.as_ref().unwrap_or(&stored.call.caller);
    if *recipient != stored.call.actor {
        writes.push(wake(recipient, stored.call.conversation, "message", at));
    }
    writes
}

impl Platform {
    pub(super) async fn call_row(&self, id: HarnessCallId) -> Result<Option<(Record, Stored)>, Error> {
        let Some(row) = self.get(Table::Call, RecordId(id.0)).await? else { return Ok(None) };
        let stored = body(&row)?;
        Ok(Some((row, stored)))
    }

    /// The call, for whoever may read its Conversation.
    pub(super) async fn readable_call(&self, by: &Caller, id: HarnessCallId) -> Result<(Record, Stored), Error> {
        let (row, stored) = self.call_row(id).await?.ok_or_else(|| Error::not_found("call", id))?;
        let found = self.readable(by, stored.call.conversation).await;
        found.map_err(|error| messages::hide(error, "call", id))?;
        Ok((row, stored))
    }

    /// The output Message of a call.
    pub(super) async fn output_of(&self, call: &HarnessCall) -> Result<(Record, messages::Stored), Error> {
        let row = self.get(Table::Message, RecordId(call.message.0)).await?;
        let row = row.ok_or_else(|| Error::not_found("message", call.message))?;
        let stored = body(&row)?;
        Ok((row, stored))
    }
}
