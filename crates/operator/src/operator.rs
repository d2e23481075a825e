//! What runs a Reconcile: it listens, looks at what is unhandled, and keeps the Operator announced.

use crate::counters::Counted;
use crate::cx::Cx;
use crate::desk::{Desk, Heard};
use crate::error::{Error, patiently};
use crate::queue::Ended;
use crate::turns::Shared;
use async_trait::async_trait;
use loopd_protocol::{ActorKey, ConversationId, Event, Registration};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// When a Conversation is looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// When there is something: a Message, the end of a call, the end of a Question.
    Done,
    /// After this time at the latest. It is not kept over a restart: what is unfinished is unhandled, too.
    Again(Duration),
}

/// What an author writes: it looks at a Conversation and brings it further.
///
/// # Expected flow
/// It reads [`Cx::inputs`], looks at what its keys did before, decides what is next, and returns. What it waits for wakes
/// it. It handles an input in the Turn that finishes it, and not before.
///
/// # Guarantees
/// It runs at most once at a time per Conversation in one process, and is called again for what is unhandled: after each
/// start, after each failure, and when something happened while it ran.
///
/// # Caveats
/// It runs again from its beginning, also after it has done its part and died before the commit. What it does outside of
/// [`Cx`] it may do twice.
#[async_trait]
pub trait Reconcile: Send + Sync + 'static {
    /// Brings the Conversation further. After an error nothing of the Turn is done, and it is tried again, later each
    /// time.
    ///
    /// # Errors
    /// What its requests return, and its own as [`Error::own`].
    async fn reconcile(&self, cx: &mut Cx, conversation: ConversationId) -> Result<Next, Error>;
}

/// How an Operator runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The name of this process among those of the Operator. One that is started again under its name goes on at once;
    /// under another one it waits for the end of the leases of the process before, unless that gave them back.
    pub holder: String,
    /// How long a lease on a Conversation lasts, in seconds; 1 to 3600.
    pub lease_s: u32,
    /// Reconciles at once.
    pub concurrency: usize,
    /// The pause after a failure; it doubles with each further one in a row.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
}

impl Config {
    /// The usual, for a process of this name.
    #[must_use]
    pub fn new(holder: impl Into<String>) -> Self {
        Self {
            holder: holder.into(),
            lease_s: 30,
            concurrency: 16,
            first_pause: Duration::from_millis(200),
            longest_pause: Duration::from_secs(60),
        }
    }
}

/// An Operator: a Reconcile with its name and its desk.
#[derive(Debug)]
pub struct Operator<R> {
    shared: Arc<Shared>,
    registration: Registration,
    reconcile: Arc<R>,
}

/// What a Reconcile came to in the queue.
type Done = (ConversationId, Ended);

impl<R: Reconcile> Operator<R> {
    /// The Operator `actor`, who is announced as `registration` says for as long as it runs.
    pub fn new(desk: Arc<dyn Desk>, actor: ActorKey, registration: Registration, reconcile: R, config: Config) -> Self {
        let shared = Arc::new(Shared::new(desk, actor, config));
        Self { shared, registration, reconcile: Arc::new(reconcile) }
    }

    /// What it has done so far.
    #[must_use]
    pub fn counted(&self) -> Counted {
        let sizes = self.shared.queue().sizes();
        self.shared.counters.read(sizes)
    }

    /// Runs until `stop`: then it begins nothing new, ends what it has begun, and gives its leases back. Dropped instead,
    /// it stops at once, as a process that dies does; nothing is lost by that.
    ///
    /// # Errors
    /// [`Error::Refused`] when the platform does not take it: a token without the role, a registration that is not in
    /// order. Everything else it waits out.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), Error> {
        let done = tokio::select! {
            error = self.stay_announced() => Err(error),
            error = self.listen() => Err(error),
            () = self.work(&stop) => Ok(()),
        };
        self.shared.give_back().await;
        done
    }

    /// Renews the registration while it runs; returns why the platform does not take it.
    async fn stay_announced(&self) -> Error {
        let mut every = Duration::from_secs(u64::from(self.registration.lease_s)) / 3;
        if every.is_zero() {
            every = Duration::from_millis(300);
        }
        loop {
            let done = patiently(|| self.shared.desk.register(&self.shared.actor, &self.registration)).await;
            match done {
                Ok(()) => tokio::time::sleep(every).await,
                Err(error) if error.is_retryable() => {
                    tracing::warn!(%error, "the operator cannot be announced now");
                    tokio::time::sleep(self.shared.config.first_pause).await;
                }
                Err(error) => return error,
            }
        }
    }

    /// Passes on what wakes the Operator; returns why the platform does not let it listen.
    async fn listen(&self) -> Error {
        let mut pause = self.shared.config.first_pause;
        loop {
            match self.hear(&mut pause).await {
                Ok(()) => tracing::debug!("the feed has ended"),
                Err(error) if error.is_retryable() => tracing::warn!(%error, "the operator cannot listen now"),
                Err(error) => return error,
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(self.shared.config.longest_pause);
        }
    }

    async fn hear(&self, pause: &mut Duration) -> Result<(), Error> {
        let feed = format!("actor/{}", self.shared.actor);
        let mut ear = patiently(|| self.shared.desk.listen(&feed)).await?;
        while let Some(heard) = ear.hear().await? {
            match heard {
                Heard::Here => {
                    self.look().await?;
                    *pause = self.shared.config.first_pause;
                }
                Heard::Event(event) => {
                    if let Event::Wake(wake) = event.event {
                        self.shared.wake(wake.conversation);
                    }
                }
            }
        }
        Ok(())
    }

    /// Everything that has something unhandled is looked at.
    async fn look(&self) -> Result<(), Error> {
        let mut cursor = None;
        loop {
            let page = patiently(|| self.shared.desk.unhandled(cursor.clone())).await?;
            for wake in page.items {
                self.shared.wake(wake.conversation);
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    /// Runs Reconciles; returns once it was stopped and all of them have ended.
    async fn work(&self, stop: &CancellationToken) {
        let mut running: JoinSet<Done> = JoinSet::new();
        let most = self.shared.config.concurrency.max(1);
        loop {
            let now = Instant::now();
            while !stop.is_cancelled() && running.len() < most {
                let Some((id, woken)) = self.shared.queue().take(now) else { break };
                let (shared, reconcile) = (Arc::clone(&self.shared), Arc::clone(&self.reconcile));
                running.spawn(async move { (id, shared.take_turn(&*reconcile, id, woken).await) });
            }
            if stop.is_cancelled() && running.is_empty() {
                return;
            }
            let due = self.shared.queue().next().filter(|_| running.len() < most);
            let due = due.unwrap_or_else(|| now + Duration::from_secs(3600));
            tokio::select! {
                Some(Ok((id, ended))) = running.join_next() => self.shared.queue().ended(id, ended, Instant::now()),
                () = tokio::time::sleep_until(due) => {}
                () = self.shared.woken.notified() => {}
                () = stop.cancelled(), if !stop.is_cancelled() => {}
            }
        }
    }
}
