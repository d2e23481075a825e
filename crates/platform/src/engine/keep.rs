//! What goes on by itself: giving out slots, deadlines, what an earlier process left.

use super::accept::waiting;
use super::stored::{Ending, Stored, end, write};
use super::wishes::{limits, run_of};
use super::{Engine, Executes, remote};
use crate::Error;
use crate::rows::{Tries, body, expect};
use loopd_kernel::machine::Admission;
use loopd_kernel::{Limits, MicroUsd};
use loopd_protocol::{CallPhase, HarnessCall, HarnessCallId};
use loopd_runtime::{Beginning, Program, StartError};
use loopd_store::{Batch, Query, Record, Table};
use std::sync::Arc;
use std::time::Duration;

/// How often deadlines are looked at.
const SWEEP: Duration = Duration::from_millis(500);

/// After so many looks at deadlines, what waits is compared with what is known to wait.
const RELIST: u32 = 60;

/// How long a call that could not be begun waits for the next try.
const AGAIN: Duration = Duration::from_secs(1);

/// Gives out slots until the engine drains.
pub(super) async fn pump(engine: Engine) {
    let inner = &engine.inner;
    loop {
        tokio::select! {
            () = inner.drain.cancelled() => return,
            () = inner.changed.notified() => {}
        }
        loop {
            let next = inner.lock_slots().next();
            let Some(call) = next else { break };
            engine.turn_of(call);
        }
    }
}

/// Looks after deadlines until the engine drains.
pub(super) async fn sweep(engine: Engine) {
    let mut looks = 0;
    loop {
        tokio::select! {
            () = engine.inner.drain.cancelled() => return,
            () = tokio::time::sleep(SWEEP) => {}
        }
        looks += 1;
        let platform = engine.platform();
        let mut results = vec![
            platform.expire_questions().await,
            platform.expire_messages().await,
            engine.time_out(platform.time()).await,
            engine.finish_deletions().await,
        ];
        if looks % RELIST == 0 {
            results.push(engine.relist().await);
        }
        for error in results.into_iter().filter_map(Result::err) {
            tracing::warn!(%error, "what is due could not be looked at; it is looked at again");
        }
    }
}

impl Engine {
    /// Begins a call that has its slot, and puts it back into the line when that fails.
    pub(super) fn turn_of(&self, call: HarnessCallId) {
        let engine = self.clone();
        self.inner.tasks.spawn(async move {
            if let Err(error) = engine.begin(call).await {
                tracing::warn!(%call, %error, "a call could not be begun; it is tried again");
                tokio::select! {
                    () = engine.inner.drain.cancelled() => return,
                    () = tokio::time::sleep(AGAIN) => {}
                }
                engine.again(call).await;
            }
        });
    }

    /// Begins a call that has its slot, or ends one that cannot begin.
    async fn begin(&self, id: HarnessCallId) -> Result<(), Error> {
        let mut tries = Tries::default();
        loop {
            let found = self.platform().call_row(id).await?;
            let Some((row, stored)) = found.filter(|(_, stored)| stored.call.phase == CallPhase::Queued) else {
                self.inner.leave(id);
                return Ok(());
            };
            let target = self.inner.targets.get(&stored.call.target);
            let started = match (target.as_ref().map(|known| &known.spec.executes), run_of(&stored.call)) {
                (Some(Ok(Executes::Loop { program, limits, .. })), Some(_)) => {
                    self.begin_run((&row, &stored), program, *limits, &mut tries).await?
                }
                (Some(Ok(Executes::External(harness))), None) => {
                    remote::begin(self, (&row, &stored), harness.clone(), &mut tries).await?
                }
                (Some(Ok(_)), _) => {
                    let why = "its target has become another kind of thing since the call was accepted";
                    self.give_up((&row, &stored), why, &mut tries).await?
                }
                // Not now: it waits on, and its time may end it.
                (Some(Err(_)), _) => {
                    self.again(id).await;
                    return Ok(());
                }
                (None, _) => {
                    let why = format!("there is no target {} any more", stored.call.target);
                    self.give_up((&row, &stored), &why, &mut tries).await?
                }
            };
            if started {
                return Ok(());
            }
        }
    }

    /// Starts the Run of a call: its first Entries and the call's new phase are one commit. False: look again.
    async fn begin_run(
        &self,
        (row, stored): (&Record, &Stored),
        program: &Arc<Program>,
        most: Limits,
        tries: &mut Tries,
    ) -> Result<bool, Error> {
        let call = &stored.call;
        let runtime = self.inner.runtime.get().ok_or_else(not_started)?;
        let input = match self.input(call).await {
            Ok(input) => input,
            Err(Error::Store(error)) => return Err(error.into()),
            Err(error) => return self.give_up((row, stored), &error.to_string(), tries).await,
        };
        let config = self.platform().config();
        let admission = Admission {
            tenant: config.tenant.clone(),
            input,
            limits: least(most, limits(call.budget)),
            key: Some(format!("call {}", call.id)),
        };
        let (at, run) = (self.platform().time(), run_of(call).ok_or_else(not_started)?);
        let running = HarnessCall { phase: CallPhase::Running, started_at: Some(at.0), ..call.clone() };
        let writes = write(&Stored { call: running, ..stored.clone() }, row.key.clone(), at);
        let beginning = Beginning { run, expect: vec![expect(Table::Call, row.id, Some(row.rev))], writes };
        match runtime.start_as(program, admission, beginning).await {
            Ok(_) => Ok(true),
            // Somebody changed the call meanwhile.
            Err(StartError::Conflict(_)) => Ok(false),
            Err(StartError::Store(error)) => Err(error.into()),
            Err(error @ (StartError::Commit(_) | StartError::Load(_) | StartError::NotClaimable(_))) => {
                Err(loopd_store::StoreError::Unavailable(error.to_string()).into())
            }
            Err(error) => self.give_up((row, stored), &error.to_string(), tries).await,
        }
    }

    /// Ends a call that cannot begin.
    async fn give_up(&self, (row, stored): (&Record, &Stored), why: &str, tries: &mut Tries) -> Result<bool, Error> {
        let (message, said) = self.platform().output_of(&stored.call).await?;
        let ending = Ending::failed(CallPhase::Failed, "call.cannot_begin", why);
        let writes = end((row, stored), (&message, &said, Vec::new()), ending, self.platform().time());
        let expect = vec![expect(Table::Call, row.id, Some(row.rev))];
        self.platform().attempt(tries, Batch { expect, writes }).await?;
        // The next look finds it ended, and gives its slot back.
        Ok(false)
    }

    /// Puts a call that could not be begun back into the line.
    async fn again(&self, id: HarnessCallId) {
        self.inner.leave(id);
        match self.platform().call_row(id).await {
            Ok(Some((_, stored))) if stored.call.phase == CallPhase::Queued => {
                self.lock_slots().wait(waiting(&stored.call));
            }
            // It seemed to fail, and began all the same.
            Ok(Some((_, stored))) if stored.call.phase == CallPhase::Running => {
                self.lock_slots().enter(id, &stored.call.target);
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%id, %error, "a call waits until the line is compared with the store"),
        }
        self.inner.changed.notify_one();
    }

    /// The calls that have not ended. There are at most as many as slots and queue allow.
    async fn open(&self) -> Result<Vec<Record>, Error> {
        let (table, until) = (Table::Call, loopd_kernel::TimeMs(i64::MAX));
        Ok(self.platform().store().records(Query::Due { table, until, limit: usize::MAX }).await?)
    }

    /// Puts calls into the line that should be in it: whoever accepted them could not.
    async fn relist(&self) -> Result<usize, Error> {
        let mut queued = 0;
        for row in self.open().await? {
            let stored: Stored = body(&row)?;
            if stored.call.phase == CallPhase::Queued {
                self.lock_slots().wait(waiting(&stored.call));
                queued += 1;
            }
        }
        self.inner.changed.notify_one();
        Ok(queued)
    }

    /// Takes up what an earlier process left: the calls that wait for a slot. Runs are claimed by the Runtime, and
    /// external executions are looked for again.
    pub(super) async fn take_up(&self) -> Result<(), Error> {
        let mut queued = Vec::new();
        for row in self.open().await? {
            let stored: Stored = body(&row)?;
            match stored.call.phase {
                CallPhase::Queued => queued.push(waiting(&stored.call)),
                CallPhase::Running if run_of(&stored.call).is_some() => {
                    self.lock_slots().enter(stored.call.id, &stored.call.target);
                }
                CallPhase::Running => remote::take_up(self, &stored),
                CallPhase::Waiting
                | CallPhase::Succeeded
                | CallPhase::Failed
                | CallPhase::Cancelled
                | CallPhase::TimedOut
                | CallPhase::Unknown => {}
            }
        }
        // The longest waiting goes first; identities begin with their time.
        queued.sort_by_key(|waiting| waiting.call);
        queued.into_iter().for_each(|waiting| self.lock_slots().wait(waiting));
        Ok(())
    }
}

fn not_started() -> Error {
    loopd_store::StoreError::Unavailable("the engine was not started".to_owned()).into()
}

/// The smaller one of each limit.
fn least(one: Limits, other: Limits) -> Limits {
    let least = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    let money = |money: Option<MicroUsd>| money.map(|money| money.0);
    Limits {
        iterations: least(one.iterations, other.iterations),
        tokens: least(one.tokens, other.tokens),
        micro_usd: least(money(one.micro_usd), money(other.micro_usd)).map(MicroUsd),
        wall_ms: least(one.wall_ms, other.wall_ms),
        retries: least(one.retries, other.retries),
    }
}
