//! Processes of an Operator.

use super::fail::must;
use super::fated::{Fated, FatedDesk};
use loopd_operator::{Config, Counted, Desk, Error, Operator, Reconcile};
use loopd_protocol::{ActorKey, Registration};
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How a process of an Operator runs.
#[derive(Debug, Clone)]
pub struct Process {
    /// The Operator's settings, with the name of the process.
    pub config: Config,
    /// What happens to one of its requests.
    pub fated: Option<Fated>,
}

impl Process {
    /// One of this name to which nothing happens.
    #[must_use]
    pub fn named(holder: &str) -> Self {
        Self { config: Config::new(holder), fated: None }
    }

    /// The same with a fate.
    #[must_use]
    pub const fn fated(mut self, fated: Fated) -> Self {
        self.fated = Some(fated);
        self
    }
}

/// A process of an Operator. Dropped, it is dead, as a process is that was killed.
#[derive(Debug)]
pub struct Running<R: Reconcile> {
    operator: Arc<Operator<R>>,
    stop: CancellationToken,
    task: JoinHandle<Result<(), Error>>,
    desk: Arc<FatedDesk>,
}

impl<R: Reconcile> Drop for Running<R> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What an Operator of the kit is announced as.
pub(super) fn registration(actor: &ActorKey) -> Registration {
    let name = actor.as_str().rsplit('/').next().unwrap_or_default().to_owned();
    Registration { name, description: "An operator under test.".to_owned(), lease_s: 60 }
}

impl<R: Reconcile> Running<R> {
    /// Starts one at any desk; at that of a [`super::World`] it is [`super::World::start_as`].
    pub fn start(desk: Arc<dyn Desk>, actor: &ActorKey, reconcile: R, process: Process) -> Self {
        let desk = FatedDesk::new(desk, process.fated);
        let registration = registration(actor);
        let operator = Operator::new(desk.clone(), actor.clone(), registration, reconcile, process.config);
        let (operator, stop) = (Arc::new(operator), CancellationToken::new());
        let (running, stopped) = (operator.clone(), stop.clone());
        let task = tokio::spawn(async move { running.run(stopped).await });
        Self { operator, stop, task, desk }
    }

    /// What it has done so far.
    #[must_use]
    pub fn counted(&self) -> Counted {
        self.operator.counted()
    }

    /// The requests that it made, announcing itself left out: methods of [`Desk`].
    #[must_use]
    pub fn seen(&self) -> Vec<&'static str> {
        self.desk.seen()
    }

    /// Waits until its fate has happened.
    pub async fn happened(&self) {
        self.desk.happened.notified().await;
    }

    /// Lets the request go on that [`super::Fate::Hold`] holds.
    pub fn release(&self) {
        self.desk.release.notify_one();
    }

    /// Kills it: nothing of it happens any more.
    pub fn kill(self) {
        drop(self);
    }

    /// Begins to stop it, as a signal does: it begins nothing new.
    pub fn begin_to_stop(&self) {
        self.stop.cancel();
    }

    /// Stops it in order, and returns how it ended.
    ///
    /// # Errors
    /// As [`Operator::run`].
    ///
    /// # Panics
    /// When it panicked outside of its Reconcile.
    pub async fn stop(mut self) -> Result<(), Error> {
        self.begin_to_stop();
        must("the operator", (&mut self.task).await)
    }
}
