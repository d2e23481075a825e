//! One Turn: the lease, what was said, the author's Reconcile, the commit.

use crate::counters::{Counters, micros};
use crate::desk::Desk;
use crate::error::{Error, patiently};
use crate::queue::{Ended, Queue};
use crate::{Config, Cx, Next, Reconcile};
use futures::FutureExt;
use loopd_protocol::{ActorKey, ConversationId, NewLease, Turn};
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::Instrument;

/// Messages that one Reconcile reads.
const POLL: u32 = 50;

/// What is remembered of Conversations before what is over is forgotten.
const REMEMBERED: usize = 10_000;

/// A lease that this process has.
#[derive(Debug, Clone, Copy)]
struct Held {
    epoch: u64,
    until: Instant,
}

/// What the tasks of one Operator share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub desk: Arc<dyn Desk>,
    pub actor: ActorKey,
    pub config: Config,
    pub counters: Counters,
    pub woken: Notify,
    queue: Mutex<Queue>,
    leases: Mutex<HashMap<ConversationId, Held>>,
    /// Where what is said in a work conversation is handled.
    homes: Mutex<HashMap<ConversationId, ConversationId>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while the contents are half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a Turn came to.
enum Ending {
    /// What the author said; or at once, since it came further and there is more.
    Next(Next, bool),
    /// Another process has the Conversation, for so long.
    Elsewhere(Duration),
    /// It is handled in another Conversation.
    Home(ConversationId),
}

impl Shared {
    pub(crate) fn new(desk: Arc<dyn Desk>, actor: ActorKey, config: Config) -> Self {
        let queue = Mutex::new(Queue::new(config.first_pause, config.longest_pause));
        let (counters, woken) = (Counters::default(), Notify::new());
        Self { desk, actor, config, counters, woken, queue, leases: Mutex::default(), homes: Mutex::default() }
    }

    pub(crate) fn queue(&self) -> MutexGuard<'_, Queue> {
        locked(&self.queue)
    }

    /// There is something in this Conversation.
    pub(crate) fn wake(&self, id: ConversationId) {
        self.queue().wake(id, Instant::now());
        self.woken.notify_one();
    }

    /// One Reconcile, from the lease to the commit; says when the next one is due.
    pub(crate) async fn take_turn<R: Reconcile>(&self, reconcile: &R, id: ConversationId, woken: Instant) -> Ended {
        let begun = Instant::now();
        let waited = begun.saturating_duration_since(woken);
        let waited_us = micros(waited);
        let span = tracing::info_span!("turn", operator = %self.actor, conversation = %id, waited_us);
        let turn = AssertUnwindSafe(self.turn(reconcile, id, waited)).catch_unwind().instrument(span.clone());
        let done = turn.await.unwrap_or_else(|_| Err(Error::own("the reconcile panicked")));
        self.counters.worked(begun.elapsed());
        let _entered = span.enter();
        match done {
            Ok(Ending::Next(_, true)) => Ended::Again(Duration::ZERO),
            Ok(Ending::Next(Next::Done, false)) => Ended::Done,
            Ok(Ending::Next(Next::Again(after), false)) => Ended::Again(after),
            Ok(Ending::Home(home)) => {
                self.wake(home);
                Ended::Done
            }
            Ok(Ending::Elsewhere(until)) => {
                self.counters.elsewhere();
                Ended::Failed(until)
            }
            Err(error) if error.is_gone() && self.forget(id) => {
                tracing::debug!(%error, "the conversation is gone");
                Ended::Done
            }
            Err(error) if error.is_stale() => {
                tracing::info!(%error, "another process has the conversation");
                self.counters.fenced();
                Ended::Failed(Duration::ZERO)
            }
            Err(error) => {
                tracing::warn!(code = error.code(), %error, "a reconcile failed; it will be tried again");
                self.counters.failed();
                let after = if let Error::Capacity { after, .. } = &error { *after } else { None };
                Ended::Failed(after.unwrap_or_default())
            }
        }
    }

    /// Whether the Conversation was not known to be there.
    fn forget(&self, id: ConversationId) -> bool {
        locked(&self.leases).remove(&id).is_none()
    }

    async fn turn<R: Reconcile>(&self, reconcile: &R, id: ConversationId, waited: Duration) -> Result<Ending, Error> {
        let home = self.home(id).await?;
        if home != id {
            return Ok(Ending::Home(home));
        }
        let epoch = match self.lease(id).await? {
            Ok(epoch) => epoch,
            Err(until) => return Ok(Ending::Elsewhere(until)),
        };
        let polled = patiently(|| self.desk.poll(id, POLL)).await?;
        self.counters.begun(waited);
        let mut cx = Cx::new(Arc::clone(&self.desk), self.actor.clone(), id, polled);
        let next = reconcile.reconcile(&mut cx, id).await?;
        let more = cx.leaves_inputs();
        let (acts, handled) = cx.into_turn();
        let moved = handled.is_some();
        if !acts.is_empty() || moved {
            let count = acts.len();
            let turn = Turn { epoch, acts, handled };
            let done = patiently(|| self.desk.turn(id, &turn)).await;
            if done.as_ref().is_err_and(Error::is_stale) {
                self.forget(id);
            }
            done?;
            self.counters.turn(count);
            self.keep(id, epoch);
            tracing::debug!(acts = count, moved, "a turn is committed");
        }
        // Whoever handles one input per Turn need not be woken for the next one.
        Ok(Ending::Next(next, more && moved))
    }

    /// Where what is said in this Conversation is handled.
    async fn home(&self, id: ConversationId) -> Result<ConversationId, Error> {
        if let Some(home) = locked(&self.homes).get(&id) {
            return Ok(*home);
        }
        let found = patiently(|| self.desk.conversation(id)).await?;
        let mine = found.work_of.filter(|work| work.operator == self.actor);
        let home = mine.map_or(id, |work| work.conversation);
        let mut homes = locked(&self.homes);
        if homes.len() >= REMEMBERED {
            homes.clear();
        }
        homes.insert(id, home);
        Ok(home)
    }

    /// The Epoch under which this process may commit; or for how long another one has the Conversation.
    async fn lease(&self, id: ConversationId) -> Result<Result<u64, Duration>, Error> {
        let held = locked(&self.leases).get(&id).copied();
        if let Some(held) = held.filter(|held| held.until > Instant::now()) {
            return Ok(Ok(held.epoch));
        }
        let mut wish = NewLease {
            holder: self.config.holder.clone(),
            epoch: held.map(|held| held.epoch),
            lease_s: self.config.lease_s,
        };
        let mut lease = patiently(|| self.desk.lease(id, &wish)).await?;
        if !lease.granted && wish.epoch.take().is_some() {
            lease = patiently(|| self.desk.lease(id, &wish)).await?;
        }
        if !lease.granted {
            self.forget(id);
            return Ok(Err(Duration::from_millis(lease.expires_in_ms)));
        }
        self.keep(id, lease.epoch);
        Ok(Ok(lease.epoch))
    }

    /// The lease was granted or renewed just now.
    fn keep(&self, id: ConversationId, epoch: u64) {
        let now = Instant::now();
        // A part of it is left for the way to the platform.
        let until = now + Duration::from_secs(u64::from(self.config.lease_s)) * 3 / 4;
        let mut leases = locked(&self.leases);
        if leases.len() >= REMEMBERED {
            leases.retain(|_, held| held.until > now);
        }
        leases.insert(id, Held { epoch, until });
    }

    /// Gives all leases back, so that another process need not wait for their end.
    pub(crate) async fn give_back(&self) {
        let held: Vec<_> = locked(&self.leases).drain().filter(|(_, held)| held.until > Instant::now()).collect();
        for (id, held) in held {
            let wish = NewLease { holder: self.config.holder.clone(), epoch: Some(held.epoch), lease_s: 0 };
            if let Err(error) = self.desk.lease(id, &wish).await {
                tracing::debug!(conversation = %id, %error, "a lease is not given back; it ends by itself");
            }
        }
    }
}
