//! What people and Operators wish of calls: looking, ending, going on, saying something.

use super::stored::{Ending, Stored, end, shown, write};
use super::voice::asks::identity;
use super::{Engine, Executes};
use crate::conversations::Found;
use crate::rows::{Tries, digest, expect};
use crate::{Caller, Error, Paging, questions};
use loopd_kernel::transcript::MESSAGE_SIGNAL;
use loopd_kernel::{CallId, Limits, MicroUsd, RunId, TimeMs};
use loopd_protocol::{
    Budget, CallPhase, ConversationId, HarnessCall, HarnessCallId, Page, Question, QuestionStatus, Role, Spent, Steer,
    Steered,
};
use loopd_store::{Batch, Expectation, InboxBody, InboxItem, Record, RecordId, RunStatus, StoreError, Table, Write};

/// Bytes of a text for a running call.
const STEER: usize = 100_000;

/// How long a call may go on after it was asked to end because its time was over, in milliseconds. Then it ends as
/// unknown, so that what nobody can end holds neither a slot nor its Conversation.
const GRACE_MS: i64 = 600_000;

/// The key of the inbox item of a steering text begins with this.
pub(super) const STEERED: &str = "steer ";

/// Who cancels a Run whose call has used up its time.
pub(super) const DEADLINE: &str = "loopd/deadline";

/// Who cancels a Run whose Conversation is deleted.
const DELETED: &str = "loopd/deletion";

/// Who cancels a Run that parked although its caller does not wait.
pub(super) const ON_PARK: &str = "loopd/on_park";

impl Engine {
    /// The call, with what it has consumed until now.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn harness_call(&self, by: &Caller, id: HarnessCallId) -> Result<HarnessCall, Error> {
        let (row, _) = self.platform().readable_call(by, id).await?;
        self.current(&row).await
    }

    /// What a Run has consumed is known while it goes on, and written into the call when its phase changes.
    pub(super) async fn current(&self, row: &Record) -> Result<HarnessCall, Error> {
        let mut call = shown(row)?;
        let open = run_of(&call).filter(|_| !call.phase.is_final());
        if let Some(run) = open
            && let Some(run) = self.platform().store().run(run).await?
        {
            call.spent = Spent { tokens: run.tokens, micro_usd: run.spent.0, iterations: run.iteration };
        }
        Ok(call)
    }

    /// A part of the list of calls in a Conversation, the newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Invalid`] for a cursor that no list returned.
    pub async fn harness_calls(
        &self,
        by: &Caller,
        conversation: ConversationId,
        paging: Paging,
    ) -> Result<Page<HarnessCall>, Error> {
        let found = self.platform().readable(by, conversation).await?;
        let (rows, next) = self.platform().page((Table::Call, found.scope()), true, &paging).await?;
        let mut items = Vec::with_capacity(rows.len());
        for row in &rows {
            items.push(self.current(row).await?);
        }
        Ok(Page { items, next })
    }

    /// Ends a call. One that waits for its slot ends at once; a Run of ours ends at its next step, which its Feed tells;
    /// of an external execution the call then says whether the remote confirmed that it stopped.
    ///
    /// # Errors
    /// [`Error::Conflict`] `call_final` when it has ended otherwise; [`Error::NotFound`], [`Error::Forbidden`].
    pub async fn cancel(&self, by: &Caller, id: HarnessCallId, reason: &str) -> Result<HarnessCall, Error> {
        let (engine, by, reason) = (self.clone(), by.clone(), reason.to_owned());
        self.outlive(async move { engine.end_early(&by, id, &reason).await }).await
    }

    async fn end_early(&self, by: &Caller, id: HarnessCallId, reason: &str) -> Result<HarnessCall, Error> {
        by.must_write()?;
        let actor = by.actor.to_string();
        let reason: String = reason.chars().take(1000).collect();
        let mut tries = Tries::default();
        loop {
            let (row, stored) = self.platform().readable_call(by, id).await?;
            match stored.call.phase {
                CallPhase::Cancelled => return shown(&row),
                phase if phase.is_final() => {
                    return Err(Error::conflict("call_final", format!("the call has ended: {}", phase.name())));
                }
                _ if stored.call.cancel_requested => {
                    self.stop_remote(id);
                    return self.current(&row).await;
                }
                _ => {}
            }
            let batch = self.cancelling((&row, &stored), (&actor, &reason)).await?;
            self.carry_out(&mut tries, id, batch).await?;
        }
    }

    /// Commits that a call ends or is asked to, and tells who has it here: the line, and the driver of a remote.
    async fn carry_out(&self, tries: &mut Tries, id: HarnessCallId, batch: Batch) -> Result<(), Error> {
        self.platform().attempt(tries, batch).await?;
        self.lock_slots().forget(id);
        self.stop_remote(id);
        Ok(())
    }

    /// What ending a call that has not ended writes.
    pub(super) async fn cancelling(
        &self,
        (row, stored): (&Record, &Stored),
        (actor, reason): (&str, &str),
    ) -> Result<Batch, Error> {
        let at = self.platform().time();
        let expect = vec![expect(Table::Call, row.id, Some(row.rev))];
        let late = actor == DEADLINE;
        if stored.call.phase == CallPhase::Queued {
            let (message, said) = self.platform().output_of(&stored.call).await?;
            let ending = if late {
                Ending::failed(CallPhase::TimedOut, "call.timed_out", "its time was over before it got a slot")
            } else {
                let message = format!("{actor} ended it before it began: {reason}");
                Ending::failed(CallPhase::Cancelled, "call.cancelled", message)
            };
            return Ok(Batch { expect, writes: end((row, stored), (&message, &said, Vec::new()), ending, at) });
        }
        let call = HarnessCall { cancel_requested: true, ..stored.call.clone() };
        let mut writes = write(&Stored { call, ..stored.clone() }, row.key.clone(), at);
        if let Some(run) = run_of(&stored.call) {
            let body = InboxBody::Cancel { actor: actor.to_owned(), reason: reason.to_owned() };
            // It never fails the commit: a Run that is sealed meanwhile has ended the call by itself.
            writes.push(Write::Notify(InboxItem { id: 0, run, key: format!("cancel by {actor}"), at, body }));
        }
        Ok(Batch { expect, writes })
    }

    /// Lets a call go on whose Run parked, with limits raised to these: a person's decision, which the audit log keeps.
    ///
    /// # Errors
    /// [`Error::Conflict`] `call_not_parked` when there is nothing to go on with; [`Error::Forbidden`], also for limits
    /// beyond those of the target unless an admin raises them; [`Error::NotFound`].
    pub async fn resume(&self, by: &Caller, id: HarnessCallId, raise: Budget) -> Result<HarnessCall, Error> {
        by.must_be(&[Role::Member])?;
        let (_, stored) = self.platform().readable_call(by, id).await?;
        let not_parked = || Error::conflict("call_not_parked", "the call does not wait at a limit");
        let run = run_of(&stored.call).ok_or_else(not_parked)?;
        let parked = self.platform().store().run(run).await?.ok_or_else(not_parked)?;
        if parked.status != RunStatus::Parked || stored.call.cancel_requested {
            return Err(not_parked());
        }
        let raise = limits(raise);
        if !by.is_admin() && self.exceeds(&stored.call.target, raise) {
            return Err(Error::Forbidden("only an admin lets a call exceed the limits of its target".to_owned()));
        }
        let words = format!("{raise:?}");
        let body = InboxBody::Reopen { actor: by.actor.to_string(), raise };
        // Once per park: pressing twice raises once.
        let key = format!("reopen at {}", parked.head.0);
        self.tell(run, key, body).await.map_err(|error| sealed(error, not_parked()))?;
        self.platform().note(by, "call.resume", &id.to_string(), &words).await?;
        self.harness_call(by, id).await
    }

    /// Says something to a running call. It sees the text at its next step, which the Feed of its Conversation tells
    /// with the name that this returns; a text of which the Feed has told nothing when the call ends came too late. The
    /// key makes it one text, however often it is sent; another text under the same key is another one.
    ///
    /// # Errors
    /// [`Error::Conflict`] `call_final`, `call_not_steerable` for an execution that takes no text; [`Error::NotFound`],
    /// [`Error::Forbidden`], [`Error::Invalid`], [`Error::TooLarge`].
    pub async fn steer(&self, by: &Caller, id: HarnessCallId, key: &str, steer: Steer) -> Result<Steered, Error> {
        by.must_write()?;
        if steer.text.trim().is_empty() {
            return Err(Error::invalid("text", "at least one character"));
        }
        if steer.text.len() > STEER {
            return Err(Error::TooLarge { what: "the text", bytes: steer.text.len(), limit: STEER });
        }
        let (_, stored) = self.platform().readable_call(by, id).await?;
        let over = || Error::conflict("call_final", "the call has ended");
        if stored.call.phase.is_final() {
            return Err(over());
        }
        // Whatever has become of its target: what executes goes on.
        let run = run_of(&stored.call);
        let run =
            run.ok_or_else(|| Error::conflict("call_not_steerable", "this target takes no text while it runs"))?;
        if stored.call.phase == CallPhase::Queued {
            return Err(Error::conflict("call_queued", "the call has not begun: it takes text once it runs"));
        }
        let name = match key {
            "" => HarnessCallId(self.platform().new_id()).to_string(),
            // With the text in its name another text under the same key is another one, and is not lost.
            key => format!("{} {key} {:.12}", by.actor, digest(&steer)),
        };
        let body = InboxBody::Signal { name: MESSAGE_SIGNAL.to_owned(), body: steer.text };
        self.tell(run, format!("{STEERED}{name}"), body).await.map_err(|error| sealed(error, over()))?;
        Ok(Steered { steer: name })
    }

    /// Whether a raise goes beyond what the target allows. Of one that is not there now nobody knows what that is.
    fn exceeds(&self, target: &str, raise: Limits) -> bool {
        match self.target(target).as_ref().map(|known| &known.spec.executes) {
            Ok(Ok(Executes::Loop { limits, .. })) => exceeds(raise, *limits),
            Ok(_) | Err(_) => raise != Limits::default(),
        }
    }

    async fn tell(&self, run: RunId, key: String, body: InboxBody) -> Result<(), StoreError> {
        let store = self.platform().store();
        loopd_runtime::tell(&**store, run, key, self.platform().time(), body).await
    }

    fn stop_remote(&self, id: HarnessCallId) {
        let remote = self.inner.remote.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(stop) = remote.get(&id) {
            stop.notify_one();
        }
    }

    /// Ends calls whose time is over; returns how many it looked at. One that cannot be ended now does not keep the
    /// others waiting.
    pub(super) async fn time_out(&self, now: TimeMs) -> Result<usize, Error> {
        let query = loopd_store::Query::Due { table: Table::Call, until: now, limit: 100 };
        let due = self.platform().store().records(query).await?;
        let looked = due.len();
        for row in due {
            if let Err(error) = self.is_over(&row, now).await {
                tracing::warn!(call = %HarnessCallId(row.id.0), %error, "a call whose time is over cannot be ended now");
            }
        }
        Ok(looked)
    }

    /// Goes on with deletions: ends calls that were accepted while the decision was made, and erases what is left.
    pub(super) async fn finish_deletions(&self) -> Result<usize, Error> {
        let deleted = self.platform().deleted().await?;
        for found in &deleted {
            if let Err(error) = self.finish_deletion(found).await {
                tracing::warn!(conversation = %found.id, %error, "a deleted conversation is erased later");
            }
        }
        Ok(deleted.len())
    }

    async fn finish_deletion(&self, found: &Found) -> Result<(), Error> {
        for row in self.platform().open_calls(found).await? {
            let stored: Stored = crate::rows::body(&row)?;
            if stored.call.cancel_requested {
                continue;
            }
            let batch = self.cancelling((&row, &stored), (DELETED, "its conversation is deleted")).await?;
            self.carry_out(&mut Tries::default(), stored.call.id, batch).await?;
        }
        self.platform().erase(found).await
    }

    async fn is_over(&self, row: &Record, now: TimeMs) -> Result<(), Error> {
        let stored: Stored = crate::rows::body(row)?;
        let id = stored.call.id;
        // What is driven here ends by itself once its tool does, and would end the call a second time.
        let is_driven = run_of(&stored.call)
            .and_then(|run| self.inner.runtime.get().map(|runtime| runtime.driven(run).is_some()))
            .unwrap_or(false);
        let ends = stored.look_at.is_some() && !is_driven;
        let batch = if ends {
            let (message, said) = self.platform().output_of(&stored.call).await?;
            let why = "its time was over, and it did not end when it was asked to: what it does may go on";
            let ending = Ending::failed(CallPhase::Unknown, "call.unknown", why);
            let expect = vec![expect(Table::Call, row.id, Some(row.rev))];
            let mut writes = end((row, &stored), (&message, &said, Vec::new()), ending, now);
            writes.extend(self.withdrawn(&stored.call, now).await?);
            Batch { expect, writes }
        } else {
            let look_at = Some(now.0.saturating_add(GRACE_MS));
            let asked = Stored { look_at, ..stored.clone() };
            self.cancelling((row, &asked), (DEADLINE, "its time is over")).await?
        };
        self.carry_out(&mut Tries::default(), id, batch).await?;
        if ends {
            self.inner.leave(id);
            self.inner.deltas.settle(RunId(id.0), CallId(u64::MAX));
        }
        Ok(())
    }

    /// What it writes that nobody has to answer the Questions of a call's Run any more.
    async fn withdrawn(&self, call: &HarnessCall, now: TimeMs) -> Result<Vec<Write>, Error> {
        let Some(run) = run_of(call) else { return Ok(Vec::new()) };
        let mut writes = Vec::new();
        for open in self.platform().store().questions(Some(run), usize::MAX).await? {
            let id = RecordId(identity(run, &open.question).0);
            let Some(row) = self.platform().get(Table::Question, id).await? else { continue };
            let stored: questions::Stored = crate::rows::body(&row)?;
            if !stored.question.status.is_final() {
                let question = Question { status: QuestionStatus::Withdrawn, answer: None, ..stored.question.clone() };
                writes.extend(questions::closing(&row, &questions::Stored { question, ..stored }, now));
            }
        }
        Ok(writes)
    }
}

/// The Run of a call of ours.
pub(super) fn run_of(call: &HarnessCall) -> Option<RunId> {
    call.run.as_ref().map(|_| RunId(call.id.0))
}

/// The Record of the call that a Run belongs to.
pub(super) const fn call_record(run: RunId) -> RecordId {
    RecordId(run.0)
}

pub(super) fn limits(budget: Budget) -> Limits {
    let Budget { tokens, micro_usd, iterations } = budget;
    Limits { tokens, micro_usd: micro_usd.map(MicroUsd), iterations, ..Limits::default() }
}

/// Whether a raise goes beyond what the target allows.
fn exceeds(raise: Limits, most: Limits) -> bool {
    let beyond = |raise: Option<u64>, most: Option<u64>| raise.zip(most).is_some_and(|(raise, most)| raise > most);
    let money = |money: Option<MicroUsd>| money.map(|money| money.0);
    beyond(raise.iterations, most.iterations)
        || beyond(raise.tokens, most.tokens)
        || beyond(money(raise.micro_usd), money(most.micro_usd))
}

fn sealed(error: StoreError, otherwise: Error) -> Error {
    match error {
        StoreError::Conflict(Expectation::Sealed(_)) => otherwise,
        error => error.into(),
    }
}
