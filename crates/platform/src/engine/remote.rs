//! External executions: the port, and the driver that keeps its promises.
//!
//! The rule is that nothing is executed a second time in silence. Before the remote is asked for the first time, the
//! call is recorded as running. Whoever takes it over later only attaches: to the same execution by its reference, or
//! by a key that the remote is known to deduplicate. The updates then come again from the start; those that are written
//! down already are counted and compared by a rolling digest. What does not match, or cannot be attached to, ends as
//! unknown.

use super::Engine;
use super::stored::{Ending, Stored, end, write};
use crate::error::Error;
use crate::rows::{Tries, conversation_feed, expect, publish, put};
use crate::{messages, rows};
use async_trait::async_trait;
use loopd_kernel::Digest;
use loopd_protocol::{ActorKey, BlockOp, CallPhase, ErrorNote, Event, HarnessCall, HarnessCallId, MessageId};
use loopd_store::{Batch, Place, Record, Table};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How long a remote may take to say that it stops.
const STOP: Duration = Duration::from_secs(10);

/// The first pause before the remote is looked for again; it doubles up to a minute.
const PAUSE: Duration = Duration::from_millis(500);

/// How an execution is found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// By the reference that the remote gave. A call that was interrupted before it had one ends as unknown.
    Reference,
    /// By the key: the remote is known to give the same execution for the same key.
    Key,
    /// Not at all.
    None,
}

/// What a remote is asked to execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The call.
    pub call: HarnessCallId,
    /// The key: the same execution however often it is sent, where the remote deduplicates.
    pub key: String,
    /// What the caller calls this step.
    pub effect_key: String,
    /// Who speaks; remotes keep a work folder per speaker.
    pub actor: ActorKey,
    /// What it is asked.
    pub prompt: String,
    /// Until when it may take, in milliseconds since 1970.
    pub deadline: i64,
}

/// What an execution tells, in order. A replay from the start tells the same in the same order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Update {
    /// Its output goes on.
    Output {
        /// The changes.
        ops: Vec<BlockOp>,
    },
    /// It has a result; nothing follows.
    Result {
        /// The result: a JSON string for text.
        result: Value,
    },
    /// It failed; nothing follows.
    Failed {
        /// Why.
        error: ErrorNote,
    },
}

/// Why a remote did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HarnessError {
    /// It was not reached, or the connection broke; whether it executes is not known.
    #[error("not reached: {0}")]
    Unreachable(String),
    /// It refused, and executes nothing.
    #[error("refused: {0}")]
    Refused(String),
    /// It knows nothing of this execution.
    #[error("lost: {0}")]
    Lost(String),
}

/// Whether a remote stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It says that it did.
    Confirmed,
    /// It did not say.
    Unconfirmed,
}

/// An execution service outside.
///
/// # What an implementation promises
/// [`Harness::submit`] sends once and repeats nothing by itself. The updates of an execution are the same, in the same
/// order, whenever it is attached to from the start.
#[async_trait]
pub trait Harness: Send + Sync + 'static {
    /// The name of the adapter.
    fn name(&self) -> &str;

    /// How an execution is found again.
    fn recovery(&self) -> Recovery;

    /// Begins an execution.
    ///
    /// # Errors
    /// [`HarnessError`].
    async fn submit(&self, request: &Request) -> Result<Box<dyn Remote>, HarnessError>;

    /// Attaches to an execution that was begun before: by its reference, or without one by the key.
    ///
    /// # Errors
    /// [`HarnessError`].
    async fn attach(&self, request: &Request, reference: Option<&str>) -> Result<Box<dyn Remote>, HarnessError>;
}

/// What the remote executes for one call, told from its start.
#[async_trait]
pub trait Remote: Send {
    /// What the remote calls it.
    fn reference(&self) -> Option<String>;

    /// The next update.
    ///
    /// # Errors
    /// [`HarnessError`]; a stream that ends without a result is [`HarnessError::Unreachable`], not an answer.
    async fn next(&mut self) -> Result<Update, HarnessError>;

    /// Asks it to stop.
    async fn stop(&mut self) -> Stop;
}

/// Records that a call executes, and drives it. False: look again.
pub(super) async fn begin(
    engine: &Engine,
    (row, stored): (&Record, &Stored),
    harness: Arc<dyn Harness>,
    tries: &mut Tries,
) -> Result<bool, Error> {
    let at = engine.platform().time();
    let call = HarnessCall {
        phase: CallPhase::Running,
        started_at: Some(at.0),
        may_have_changed: true,
        ..stored.call.clone()
    };
    let (id, mark) = (call.id, HarnessCallId(engine.platform().new_id()).to_string());
    let writes = write(&Stored { call, begun_by: mark.clone(), ..stored.clone() }, row.key.clone(), at);
    let expect = vec![expect(Table::Call, row.id, Some(row.rev))];
    engine.platform().attempt(tries, Batch { expect, writes }).await?;
    // Whoever began it has to know: nobody else will submit it.
    let Some(found) = insist(engine, id, || engine.platform().call_row(id)).await else { return Ok(true) };
    let Some((_, stored)) = found else { return Ok(false) };
    if stored.call.phase != CallPhase::Running || stored.begun_by != mark {
        return Ok(false);
    }
    spawn(engine, &stored, harness, true);
    Ok(true)
}

/// Looks for an execution that an earlier process began.
pub(super) fn take_up(engine: &Engine, stored: &Stored) {
    let id = stored.call.id;
    engine.lock_slots().enter(id, &stored.call.target);
    let target = engine.inner.targets.get(&stored.call.target);
    match target.as_ref().map(|known| &known.spec.executes) {
        Some(Ok(super::Executes::External(harness))) => spawn(engine, stored, harness.clone(), false),
        Some(_) | None => {
            let (engine, why) = (engine.clone(), "nobody here can attach to it any more");
            let tasks = engine.inner.tasks.clone();
            tasks.spawn(async move {
                finish(&engine, id, unknown(why)).await;
                engine.inner.leave(id);
            });
        }
    }
}

fn spawn(engine: &Engine, stored: &Stored, harness: Arc<dyn Harness>, fresh: bool) {
    let stop = Arc::new(Notify::new());
    let id = stored.call.id;
    engine.inner.remote.lock().unwrap_or_else(PoisonError::into_inner).insert(id, stop.clone());
    if stored.call.cancel_requested {
        stop.notify_one();
    }
    let (engine, call) = (engine.clone(), stored.call.clone());
    let tasks = engine.inner.tasks.clone();
    tasks.spawn(async move {
        let driver = Driver { engine: engine.clone(), harness, call, stop };
        let ending = driver.drive(fresh).await;
        if let Some(ending) = ending {
            finish(&engine, id, ending).await;
        }
        engine.inner.remote.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        engine.inner.leave(id);
    });
}

fn unknown(why: &str) -> (Ending, Option<bool>) {
    (Ending::failed(CallPhase::Unknown, "call.unknown", why), None)
}

/// Does it until it is done: what was told or decided is in hand, and may not come again. `None`: the engine drains.
async fn insist<T, F: Future<Output = Result<T, Error>>>(
    engine: &Engine,
    call: HarnessCallId,
    doing: impl Fn() -> F,
) -> Option<T> {
    loop {
        match doing().await {
            Ok(done) => return Some(done),
            Err(error) => tracing::warn!(%call, %error, "it is tried again"),
        }
        tokio::select! {
            () = engine.inner.drain.cancelled() => return None,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

/// Writes how an external call ended, until it is written or the engine drains.
async fn finish(engine: &Engine, id: HarnessCallId, ending: (Ending, Option<bool>)) {
    insist(engine, id, || write_end(engine, id, &ending)).await;
}

async fn write_end(
    engine: &Engine,
    id: HarnessCallId,
    (ending, confirmed): &(Ending, Option<bool>),
) -> Result<(), Error> {
    let platform = engine.platform();
    let mut tries = Tries::default();
    loop {
        let Some((row, stored)) = platform.call_row(id).await? else { return Ok(()) };
        if stored.call.phase.is_final() {
            return Ok(());
        }
        let (message, said) = platform.output_of(&stored.call).await?;
        let call = HarnessCall { stop_confirmed: *confirmed, ..stored.call.clone() };
        let stored = Stored { call, ..stored };
        let writes = end((&row, &stored), (&message, &said, Vec::new()), ending.clone(), platform.time());
        let expect = vec![expect(Table::Call, row.id, Some(row.rev))];
        platform.attempt(&mut tries, Batch { expect, writes }).await?;
    }
}

struct Driver {
    engine: Engine,
    harness: Arc<dyn Harness>,
    call: HarnessCall,
    stop: Arc<Notify>,
}

/// Why following an execution stopped before its end.
enum Break {
    /// The remote was lost; attaching may help.
    Again(String),
    /// It ended.
    Ended((Ending, Option<bool>)),
    /// This process drains: the next one goes on.
    Drained,
}

impl Driver {
    fn request(&self) -> Request {
        Request {
            call: self.call.id,
            key: self.call.id.to_string(),
            effect_key: self.call.effect_key.clone(),
            actor: self.call.actor.clone(),
            prompt: self.call.prompt.clone(),
            deadline: self.call.deadline,
        }
    }

    /// Follows the execution to its end. `None`: another process goes on.
    async fn drive(&self, fresh: bool) -> Option<(Ending, Option<bool>)> {
        let mut submit = fresh;
        let mut pause = PAUSE;
        loop {
            let opened = tokio::select! {
                // What is to stop is not begun.
                biased;
                () = self.engine.inner.drain.cancelled() => return None,
                () = self.stop.notified() => return Some(self.stopped(Some(false)).await),
                opened = self.open(submit) => opened,
            };
            submit = false;
            let broken = match opened {
                Ok(remote) => self.follow(remote).await,
                Err(broken) => broken,
            };
            let why = match broken {
                Break::Ended(ending) => return Some(ending),
                Break::Drained => return None,
                Break::Again(why) => why,
            };
            if self.harness.recovery() == Recovery::None {
                return Some(unknown(&format!("it cannot be attached to again: {why}")));
            }
            tokio::select! {
                () = self.engine.inner.drain.cancelled() => return None,
                () = self.stop.notified() => return Some(self.stopped(Some(false)).await),
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(Duration::from_secs(60));
        }
    }

    async fn open(&self, submit: bool) -> Result<Box<dyn Remote>, Break> {
        let request = self.request();
        let opened = if submit {
            self.harness.submit(&request).await
        } else {
            let stored = self.engine.platform().call_row(self.call.id).await;
            let stored = stored.map_err(|error| Break::Again(error.to_string()))?;
            let reference = stored.and_then(|(_, stored)| stored.call.execution_ref);
            match (self.harness.recovery(), &reference) {
                (Recovery::None, _) => return Err(Break::Ended(unknown("it cannot be attached to again"))),
                (Recovery::Reference, None) => {
                    return Err(Break::Ended(unknown("it was interrupted before the remote had named it")));
                }
                (Recovery::Reference, Some(_)) | (Recovery::Key, _) => {}
            }
            self.harness.attach(&request, reference.as_deref()).await
        };
        opened.map_err(|error| match error {
            HarnessError::Refused(why) => {
                Break::Ended((Ending::failed(CallPhase::Failed, "harness.refused", why), None))
            }
            HarnessError::Lost(why) => Break::Ended(unknown(&why)),
            HarnessError::Unreachable(why) => Break::Again(why),
        })
    }

    async fn follow(&self, mut remote: Box<dyn Remote>) -> Break {
        let reference = remote.reference();
        if insist(&self.engine, self.call.id, || self.name(reference.clone())).await.is_none() {
            return Break::Drained;
        }
        let (mut count, mut seen) = (0_u64, String::new());
        loop {
            let next = tokio::select! {
                () = self.engine.inner.drain.cancelled() => return Break::Drained,
                () = self.stop.notified() => {
                    let confirmed = tokio::time::timeout(STOP, remote.stop()).await == Ok(Stop::Confirmed);
                    return Break::Ended(self.stopped(Some(confirmed)).await);
                }
                next = remote.next() => next,
            };
            let update = match next {
                Ok(update) => update,
                Err(HarnessError::Unreachable(why)) => return Break::Again(why),
                Err(HarnessError::Lost(why)) => return Break::Ended(unknown(&why)),
                Err(HarnessError::Refused(why)) => {
                    return Break::Ended((Ending::failed(CallPhase::Failed, "harness.failed", why), None));
                }
            };
            count += 1;
            let bytes = serde_json::to_vec(&update).unwrap_or_default();
            seen = Digest::sha256(&[seen.as_bytes(), &bytes]).to_string();
            match insist(&self.engine, self.call.id, || self.note((count, &seen), update.clone())).await {
                Some(None) => {}
                Some(Some(ending)) => return Break::Ended(ending),
                None => return Break::Drained,
            }
        }
    }

    /// Writes down what the remote calls it.
    async fn name(&self, reference: Option<String>) -> Result<(), Error> {
        let Some(reference) = reference else { return Ok(()) };
        let platform = self.engine.platform();
        let mut tries = Tries::default();
        loop {
            let Some((row, stored)) = platform.call_row(self.call.id).await? else { return Ok(()) };
            if stored.call.execution_ref.as_ref() == Some(&reference) || stored.call.phase.is_final() {
                return Ok(());
            }
            let call = HarnessCall { execution_ref: Some(reference.clone()), ..stored.call.clone() };
            let writes = write(&Stored { call, ..stored }, row.key.clone(), platform.time());
            let expect = vec![expect(Table::Call, row.id, Some(row.rev))];
            platform.attempt(&mut tries, Batch { expect, writes }).await?;
        }
    }

    /// Writes an update down, unless it is; the end when it is the last one.
    async fn note(&self, (count, seen): (u64, &str), update: Update) -> Result<Option<(Ending, Option<bool>)>, Error> {
        let platform = self.engine.platform();
        let mut tries = Tries::default();
        loop {
            let Some((row, stored)) = platform.call_row(self.call.id).await? else { return Ok(None) };
            if count == stored.checkpoint && seen != stored.seen {
                return Ok(Some(unknown("the remote tells another story than before")));
            }
            let known = count <= stored.checkpoint;
            let ops = match &update {
                Update::Output { .. } if known => return Ok(None),
                Update::Output { ops } => ops,
                Update::Result { .. } | Update::Failed { .. } if known => {
                    return Ok(Some(unknown("the remote tells less than before")));
                }
                Update::Result { result } => {
                    let (phase, result) = (CallPhase::Succeeded, Some(result.clone()));
                    return Ok(Some((Ending { phase, reason: None, error: None, result }, None)));
                }
                Update::Failed { error } => {
                    return Ok(Some((Ending::failed(CallPhase::Failed, &error.code, error.message.clone()), None)));
                }
            };
            let at = platform.time();
            let (message, said) = platform.output_of(&stored.call).await?;
            let (blocks, mut writes) = match platform.applied(&message, said.count, ops).await {
                Ok(applied) => applied,
                Err(Error::Store(error)) => return Err(error.into()),
                Err(error) => {
                    let ending = Ending::failed(CallPhase::Failed, "harness.output", error.to_string());
                    return Ok(Some((ending, None)));
                }
            };
            let bytes = said.bytes + serde_json::to_vec(ops).unwrap_or_default().len() as u64;
            if bytes > platform.config().message_total_bytes {
                let message = format!("its output has more than {} bytes", platform.config().message_total_bytes);
                return Ok(Some((Ending::failed(CallPhase::Failed, "harness.output", message), None)));
            }
            let said = messages::Stored { count: blocks, bytes, updated_at: at.0, ..said };
            writes.push(put(messages::rewritten(&message, &said), Place::Keep));
            let event =
                Event::MessageUpdated { message: MessageId(message.id.0), revision: message.rev + 1, ops: ops.clone() };
            writes.push(publish(conversation_feed(message.scope), at, Some((Table::Message, message.id)), &event));
            // The call is written in silence: its phase is the same.
            let next = Stored { checkpoint: count, seen: seen.to_owned(), ..stored };
            let silent =
                Record { key: row.key.clone(), due: next.due(), ..rows::record(Table::Call, row.id, row.scope, &next) };
            writes.push(put(silent, Place::Keep));
            let expect = vec![expect(Table::Call, row.id, Some(row.rev))];
            platform.attempt(&mut tries, Batch { expect, writes }).await?;
        }
    }

    /// The end of a call that was asked to end.
    async fn stopped(&self, confirmed: Option<bool>) -> (Ending, Option<bool>) {
        let late = self.engine.platform().now() >= self.call.deadline;
        let ending = if late {
            Ending::failed(CallPhase::TimedOut, "call.timed_out", "its time was over")
        } else {
            let words = match confirmed {
                Some(true) => "it was ended, and the remote confirmed that it stopped",
                Some(false) | None => "it was ended; what the remote does may go on",
            };
            Ending::failed(CallPhase::Cancelled, "call.cancelled", words)
        };
        (ending, confirmed)
    }
}
