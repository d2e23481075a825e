//! Accepting calls: the call and its output Message in one commit, once per key.

use super::queue::Waiting;
use super::stored::{Stored, open_calls, shown, write};
use super::{Engine, Executes};
use crate::conversations::Found;
use crate::messages::{Draft, Window, message_of};
use crate::rows::{Tries, body, digest, expect, request_key};
use crate::{Caller, Error, texts};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use loopd_kernel::model::{Attachment, Message as ModelMessage};
use loopd_kernel::{RunId, TimeMs};
use loopd_protocol::{
    ActorKey, ActorKind, Block, CallPhase, Called, ConversationId, HarnessCall, HarnessCallId, KnownBlock,
    MessageStatus, NewCall, Origin, Role, Said, Say, Spent,
};
use loopd_store::{Batch, Expect, Record, RecordId, Table, Write};
use std::fmt::Write as _;

/// The longest time that a call may take, in seconds: 7 days.
const LONGEST_S: u64 = 7 * 86_400;

/// Bytes of a prompt.
const PROMPT: usize = 1_000_000;

/// Bytes of all files that go with a prompt.
const FILES: usize = 10 << 20;

/// A call before it is accepted.
pub(super) struct Proposal {
    id: HarnessCallId,
    caller: ActorKey,
    actor: ActorKey,
    new: NewCall,
    key: Option<String>,
    request: String,
}

impl Engine {
    /// Calls a Harness. What is accepted is one commit: the call and its output Message; a slot that is free is taken at
    /// once. The same request under the same key is the same call, also when nothing else is accepted any more.
    ///
    /// # Errors
    /// [`Error::Busy`] `capacity` when slots and queue are full, `draining`; [`Error::NotFound`] for the target or the
    /// Conversation; [`Error::Conflict`] `key_taken`, `target_unavailable`; [`Error::Forbidden`], [`Error::Invalid`].
    pub async fn call(
        &self,
        by: &Caller,
        conversation: ConversationId,
        key: &str,
        new: NewCall,
    ) -> Result<Called, Error> {
        let (engine, by, key) = (self.clone(), by.clone(), key.to_owned());
        self.outlive(async move { engine.accept(&by, conversation, &key, new).await }).await
    }

    async fn accept(
        &self,
        by: &Caller,
        conversation: ConversationId,
        key: &str,
        new: NewCall,
    ) -> Result<Called, Error> {
        let platform = self.platform();
        let proposal = self.propose(by, key, new)?;
        let mut tries = Tries::default();
        loop {
            let found = platform.writable(by, conversation).await?;
            if let Some(called) = self.accepted(&found, &proposal).await? {
                return Ok(called);
            }
            let (mut expect, writes) = self.taking(by, &found, &proposal).await?;
            expect.push(found.unchanged());
            platform.attempt(&mut tries, Batch { expect, writes }).await?;
        }
    }

    /// A checked call, as far as it can be without reading.
    pub(super) fn propose(&self, by: &Caller, key: &str, new: NewCall) -> Result<Proposal, Error> {
        by.must_be(&[Role::Operator, Role::Member])?;
        check(&new)?;
        let speaker = self.target(&new.target)?.actor.clone();
        let actor = new.actor.clone().unwrap_or_else(|| speaker.clone());
        if actor != speaker && !by.speaks_as(&actor) {
            return Err(Error::Forbidden(format!("{} may not let the call speak as {actor}", by.actor)));
        }
        let (id, request) = (HarnessCallId(self.platform().new_id()), digest(&new));
        let key = request_key(&by.actor, key);
        Ok(Proposal { id, caller: by.actor.clone(), actor, new, key, request })
    }

    /// The call, if it was accepted.
    pub(super) async fn accepted(&self, found: &Found, proposal: &Proposal) -> Result<Option<Called>, Error> {
        let id = RecordId(proposal.id.0);
        let before = match &proposal.key {
            Some(key) => self.platform().by_key(Table::Call, found.scope(), key).await?,
            None => self.platform().get(Table::Call, id).await?,
        };
        let Some(row) = before else { return Ok(None) };
        let stored: Stored = body(&row)?;
        if stored.request != proposal.request {
            return Err(Error::conflict("key_taken", "the key has made another call in this conversation"));
        }
        // Also when it was accepted before: whoever accepted it may not have come that far.
        self.enqueue(&stored.call);
        Ok(Some(Called { call: shown(&row)?, already: row.id != id }))
    }

    /// What accepting it expects, besides that its Conversation is unchanged, and writes.
    pub(super) async fn taking(
        &self,
        by: &Caller,
        found: &Found,
        proposal: &Proposal,
    ) -> Result<(Vec<Expect>, Vec<Write>), Error> {
        self.accepts()?;
        if let Err(why) = &self.target(&proposal.new.target)?.spec.executes {
            return Err(Error::conflict("target_unavailable", why.clone()));
        }
        let platform = self.platform();
        if let Some(recipient) = &proposal.new.recipient
            && !found.is_member(recipient)
            && !by.speaks_as(recipient)
            && !platform.people(found).await?.contains(recipient)
        {
            return Err(Error::invalid("recipient", format!("{recipient} is no member of this conversation")));
        }
        self.check_files(found, &proposal.new).await?;
        Ok(self.accepting(found, proposal, platform.time()))
    }

    /// Says a Message as [`crate::Platform::say`] does. One that a person says to Harnesses also calls each of them, in
    /// the same commit; what was said before goes with it as its context.
    ///
    /// # Errors
    /// As [`crate::Platform::say`] and [`Engine::call`].
    pub async fn say(&self, by: &Caller, conversation: ConversationId, key: &str, say: Say) -> Result<Said, Error> {
        let (engine, by, key) = (self.clone(), by.clone(), key.to_owned());
        self.outlive(async move { engine.take(&by, conversation, &key, say).await }).await
    }

    async fn take(&self, by: &Caller, conversation: ConversationId, key: &str, say: Say) -> Result<Said, Error> {
        let platform = self.platform();
        let draft = platform.draft(by, key, say)?;
        let mut targets: Vec<_> = Vec::new();
        for actor in draft.to.iter().filter(|to| draft.from.kind() == ActorKind::Person && is_harness(to)) {
            targets.extend(self.inner.targets.get(actor.key()));
        }
        if targets.is_empty() {
            return platform.say_draft(by, conversation, &draft).await;
        }
        let mut tries = Tries::default();
        loop {
            let found = platform.writable(by, conversation).await?;
            if let Some(mut said) = platform.said(&found, &draft).await? {
                for target in &targets {
                    let id = call_of(said.message.id.0, &target.spec.name);
                    if let Some((_, stored)) = platform.call_row(id).await? {
                        self.enqueue(&stored.call);
                        said.calls.push(id);
                    }
                }
                return Ok(said);
            }
            self.accepts()?;
            let (mut expects, mut writes) = platform.saying(by, &found, &draft).await?;
            let history = self.history(&found).await?;
            for known in &targets {
                let (target, actor) = (&known.spec, &known.actor);
                if let Err(why) = &target.executes {
                    return Err(Error::conflict("target_unavailable", format!("{}: {why}", target.name)));
                }
                let id = call_of(draft.id.0, &target.name);
                let new = prompt(&draft, &target.name, &history);
                let (caller, actor) = (draft.from.clone(), actor.clone());
                let proposal = Proposal { id, caller, actor, new, key: None, request: String::new() };
                check(&proposal.new)?;
                self.check_files(&found, &proposal.new).await?;
                let (expect, accepted) = self.accepting(&found, &proposal, platform.time());
                expects.extend(expect);
                writes.extend(accepted);
            }
            platform.attempt(&mut tries, Batch { expect: expects, writes }).await?;
        }
    }

    /// What accepting writes.
    fn accepting(&self, found: &Found, proposal: &Proposal, at: TimeMs) -> (Vec<Expect>, Vec<Write>) {
        let Proposal { id, caller, actor, new, key, request } = proposal;
        let ours = self.inner.targets.get(&new.target);
        let ours = ours.is_some_and(|known| matches!(known.spec.executes, Ok(Executes::Loop { .. })));
        let timeout_ms = i64::try_from(new.timeout_s.saturating_mul(1000)).unwrap_or(i64::MAX);
        let run = ours.then(|| RunId(id.0).to_string());
        let message = message_of(&id.to_string());
        let call = HarnessCall {
            id: *id,
            conversation: found.id,
            message,
            target: new.target.clone(),
            effect_key: new.effect_key.clone(),
            caller: caller.clone(),
            actor: actor.clone(),
            recipient: new.recipient.clone(),
            prompt: new.prompt.clone(),
            artifacts: new.artifacts.clone(),
            reply_to: new.reply_to,
            budget: new.budget,
            on_park: new.on_park,
            priority: new.priority,
            phase: CallPhase::Queued,
            reason: None,
            error: None,
            result: None,
            run: run.clone(),
            execution_ref: None,
            cancel_requested: false,
            stop_confirmed: None,
            may_have_changed: false,
            spent: Spent::default(),
            created_at: at.0,
            started_at: None,
            ended_at: None,
            deadline: at.0.saturating_add(timeout_ms),
            revision: 1,
        };
        let output = Draft {
            id: message,
            from: actor.clone(),
            to: vec![new.recipient.clone().unwrap_or_else(|| caller.clone())],
            reply_to: new.reply_to,
            blocks: Vec::new(),
            status: MessageStatus::Streaming,
            origin: Some(Origin { call: Some(*id), run, seq: None, calls: Vec::new() }),
            key: None,
            request: String::new(),
            open_ms: None,
        };
        let config = self.platform().config();
        let most = u64::from(config.slots) + u64::from(config.queue);
        let stored = Stored { request: request.clone(), ..Stored::new(call) };
        let mut writes = vec![Write::Count { counter: open_calls(), by: 1, max: Some(most) }];
        writes.extend(output.writes(found.id, at));
        writes.extend(write(&stored, key.clone(), at));
        (vec![expect(Table::Call, RecordId(id.0), None)], writes)
    }

    /// The call waits for its slot, which it gets at once when there is one.
    fn enqueue(&self, call: &HarnessCall) {
        if call.phase == CallPhase::Queued {
            self.lock_slots().wait(waiting(call));
            self.inner.changed.notify_one();
        }
    }

    /// What goes with a prompt belongs to the Conversation; where an Operator works, also to the one that it works for.
    async fn check_files(&self, found: &Found, new: &NewCall) -> Result<(), Error> {
        let of = found.stored.work_of.as_ref().map(|work| RecordId(work.conversation.0));
        let is_here = |row: &Record| row.scope == found.scope() || Some(row.scope) == of;
        let mut bytes = 0;
        for id in &new.artifacts {
            let row = self.platform().get(Table::Artifact, RecordId(id.0)).await?;
            let row = row.filter(is_here);
            let row = row.ok_or_else(|| Error::invalid("artifacts", format!("{id} is not of this conversation")))?;
            bytes += body::<loopd_protocol::Artifact>(&row)?.bytes;
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if bytes > FILES {
            return Err(Error::TooLarge { what: "the files of one prompt", bytes, limit: FILES });
        }
        if let Some(id) = new.reply_to {
            let row = self.platform().get(Table::Message, RecordId(id.0)).await?;
            if !row.is_some_and(|row| is_here(&row)) {
                return Err(Error::invalid("reply_to", "it is not a message of this conversation"));
            }
        }
        Ok(())
    }

    /// What was said before, as an agent reads it; the oldest goes first where it is too much.
    async fn history(&self, found: &Found) -> Result<String, Error> {
        let config = self.platform().config();
        let rows = self.platform().window(found.scope(), Window::Latest, config.history_messages).await?;
        let mut lines: Vec<String> = Vec::new();
        let mut bytes = 0;
        for row in rows.iter().rev() {
            let message = self.platform().whole(row, config.shown_blocks as u64).await?;
            if !message.status.is_final() {
                continue;
            }
            let said = texts::words(&message.blocks);
            let line = format!("{}: {}", message.from, said.trim());
            bytes += line.len();
            if said.trim().is_empty() || bytes > config.history_bytes {
                continue;
            }
            lines.push(line);
        }
        lines.reverse();
        Ok(lines.join("\n\n"))
    }

    /// The input of the Run of a call: its text, or a message with its files.
    pub(super) async fn input(&self, call: &HarnessCall) -> Result<String, Error> {
        let text = call.prompt.clone();
        let corrupt = |error: serde_json::Error| Error::invalid("prompt", error.to_string());
        if call.artifacts.is_empty() {
            return serde_json::to_string(&text).map_err(corrupt);
        }
        let mut attachments = Vec::new();
        // The platform itself reads what the call was accepted with.
        let by = Caller::new(call.caller.clone(), Role::Admin);
        for id in &call.artifacts {
            let (artifact, bytes) = self.platform().artifact(&by, *id).await?;
            let data = BASE64_STANDARD.encode(bytes);
            attachments.push(Attachment { media_type: artifact.media_type, name: Some(artifact.name), data });
        }
        serde_json::to_string(&ModelMessage::User { text, attachments }).map_err(corrupt)
    }
}

pub(super) fn waiting(call: &HarnessCall) -> Waiting {
    let (target, caller) = (call.target.clone(), call.caller.owner());
    Waiting { call: call.id, target, caller, priority: call.priority }
}

fn is_harness(actor: &ActorKey) -> bool {
    actor.kind() == ActorKind::Harness
}

/// The call that a Message makes to a target: there is one.
fn call_of(message: [u8; 16], target: &str) -> HarnessCallId {
    let mut id = crate::rows::hashed(&[&message, target.as_bytes()]).0;
    // The time of the Message sorts its calls, as it sorts others.
    for (slot, byte) in id.iter_mut().zip(message).take(6) {
        *slot = byte;
    }
    HarnessCallId(id)
}

/// The call that a directed Message makes.
fn prompt(draft: &Draft, target: &str, history: &str) -> NewCall {
    let said = texts::words(&draft.blocks);
    let mut text = String::new();
    if !history.is_empty() {
        let _ = write!(text, "What was said so far in this conversation, for context:\n\n{history}\n\n---\n\n");
    }
    text.push_str(said.trim());
    let artifacts = draft.blocks.iter().filter_map(|block| match block {
        Block::Known(KnownBlock::Artifact { artifact, .. }) => Some(*artifact),
        Block::Known(_) | Block::Unknown(_) => None,
    });
    NewCall {
        target: target.to_owned(),
        prompt: text,
        artifacts: artifacts.collect(),
        effect_key: String::new(),
        actor: None,
        recipient: Some(draft.from.clone()),
        reply_to: None,
        timeout_s: 30 * 60,
        budget: loopd_protocol::Budget::default(),
        on_park: loopd_protocol::OnPark::Wait,
        priority: loopd_protocol::Priority::Normal,
    }
}

fn check(new: &NewCall) -> Result<(), Error> {
    if new.prompt.trim().is_empty() && new.artifacts.is_empty() {
        return Err(Error::invalid("prompt", "at least one character"));
    }
    if new.prompt.len() > PROMPT {
        return Err(Error::TooLarge { what: "the prompt", bytes: new.prompt.len(), limit: PROMPT });
    }
    if !(1..=LONGEST_S).contains(&new.timeout_s) {
        return Err(Error::invalid("timeout_s", "1 second to 7 days"));
    }
    if new.effect_key.chars().count() > 200 {
        return Err(Error::invalid("effect_key", "at most 200 characters"));
    }
    if new.artifacts.len() > 20 {
        return Err(Error::invalid("artifacts", "at most 20"));
    }
    Ok(())
}
