//! Driving one Run in this process: until it has an outcome, waits for a person, or somebody says stop.

mod ending;
mod view;

use crate::cli::DriveArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::Format;
use crate::problem::{Code, Problem};
use crate::words;
use loopd_kernel::projection::Waits;
use loopd_kernel::{RunId, TimeMs};
use loopd_runtime::{Config, Delta, Driven, Programs, RunEnd, Runtime, StartError};
use loopd_store::{Hint, Store};
use loopd_store_sqlite::SqliteStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time::Instant;

pub use ending::{answerable_after, describe_question, report_row, way_on};
pub use view::{View, width};

/// How often an inbox is looked at when nobody can poke this process about it.
const DEAF_LOOK: Duration = Duration::from_secs(1);

/// How driving came to its end here.
#[derive(Debug)]
pub enum Left {
    /// By itself.
    End(RunEnd),
    /// Somebody asked this process to stop.
    Stopped,
    /// The time is over.
    TimedOut,
}

/// A runtime that drives one Run, and what it tells.
pub struct Worker {
    context: Context,
    store: Arc<SqliteStore>,
    runtime: Runtime,
    deltas: mpsc::UnboundedReceiver<Delta>,
    stay: bool,
    deadline: Option<Instant>,
}

impl Worker {
    /// Announces itself in the store, whose driver this process is.
    ///
    /// # Errors
    /// [`Problem`] of the store.
    pub async fn start(
        context: &Context,
        store: Arc<SqliteStore>,
        programs: Arc<dyn Programs>,
        args: &DriveArgs,
    ) -> Result<Self, Problem> {
        // From here on a signal drains: the command ends by itself.
        context.signals.polite();
        let (sender, deltas) = mpsc::unbounded_channel();
        let grace = Duration::from_millis(args.grace.ms);
        let config = Config { claims: false, grace, ..Config::default() };
        let builder = Runtime::builder(store.clone(), programs).config(config).deltas(sender);
        let deadline = args.timeout.map(|timeout| Instant::now() + Duration::from_millis(timeout.ms));
        let runtime = builder.start().await?;
        Ok(Self { context: context.clone(), store, runtime, deltas, stay: args.wait, deadline })
    }

    /// The runtime.
    pub const fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Drives the Run, reports how that ended, and releases everything.
    ///
    /// # Errors
    /// [`Problem`] when it cannot be driven on.
    pub async fn finish(mut self, driven: Driven, mut view: View, format: Format) -> Result<Exit, Problem> {
        let run = driven.run;
        let left = self.drive(driven, &mut view).await;
        self.runtime.shutdown().await;
        view.close();
        let reported = match left {
            Ok(left) => ending::report(&self.context, &*self.store, run, left, format).await,
            Err(problem) => Err(problem),
        };
        drop(self.runtime);
        reported
    }

    async fn drive(&mut self, mut driven: Driven, view: &mut View) -> Result<Left, Problem> {
        let run = driven.run;
        loop {
            let hints = self.store.hints();
            let end = match self.follow(driven, view).await {
                Left::End(end) => end,
                left @ (Left::Stopped | Left::TimedOut) => return Ok(left),
            };
            let waits = match end {
                RunEnd::Released if self.context.signals.is_asked() => return Ok(Left::Stopped),
                RunEnd::Suspended(waits) => waits,
                end @ (RunEnd::Ended(_) | RunEnd::Released | RunEnd::Lost(_)) => return Ok(Left::End(end)),
            };
            if self.context.signals.is_asked() {
                return Ok(Left::Stopped);
            }
            let pending = !self.store.inbox(run, 1).await?.is_empty();
            if !pending {
                let for_people = !(waits.questions.is_empty() && waits.signals.is_empty());
                if (for_people && !self.stay) || (!for_people && waits.wake_at.is_none()) {
                    return Ok(Left::End(RunEnd::Suspended(waits)));
                }
                view.waiting(&self.context, run, &waits);
                if let Some(left) = self.until_due(run, &waits, hints).await? {
                    return Ok(left);
                }
            }
            driven = self.runtime.resume(run).await.map_err(|error| start_problem(error, &self.context))?;
        }
    }

    /// Shows what the Run does while it is driven. A signal drains the runtime, which ends this.
    async fn follow(&mut self, driven: Driven, view: &mut View) -> Left {
        let mut hints = self.store.hints();
        let run = driven.run;
        let mut end = std::pin::pin!(driven.wait());
        let (mut stopping, mut late) = (false, false);
        view.catch_up(&*self.store, run).await;
        loop {
            tokio::select! {
                end = &mut end => {
                    view.catch_up(&*self.store, run).await;
                    return match end {
                        RunEnd::Released | RunEnd::Suspended(_) if late => Left::TimedOut,
                        end => Left::End(end),
                    };
                }
                hint = hints.recv() => if matches!(hint, Ok(Hint::Run(changed)) if changed == run)
                    || matches!(hint, Err(RecvError::Lagged(_)))
                {
                    view.catch_up(&*self.store, run).await;
                },
                Some(delta) = self.deltas.recv() => if delta.run == run {
                    view.delta(&delta);
                },
                () = self.context.signals.asked(), if !stopping => {
                    stopping = true;
                    view.say("stopping: open calls may still settle; Ctrl-C again stops at once");
                    self.drain();
                }
                () = until(self.deadline), if !stopping => {
                    (stopping, late) = (true, true);
                    self.drain();
                }
            }
        }
    }

    fn drain(&self) {
        let runtime = self.runtime.clone();
        tokio::spawn(async move { runtime.shutdown().await });
    }

    /// Waits until there is something for a suspended Run: its time has come, or its inbox holds an item.
    async fn until_due(
        &self,
        run: RunId,
        waits: &Waits,
        mut hints: loopd_store::Hints,
    ) -> Result<Option<Left>, Problem> {
        let wake = waits.wake_at.map(|at| Instant::now() + Duration::from_millis(at.since(self.runtime.now())));
        let deaf = !self.store.hears();
        loop {
            tokio::select! {
                hint = hints.recv() => {
                    let told = match hint {
                        Ok(Hint::Inbox(told)) => told == run,
                        Ok(Hint::Foreign) | Err(RecvError::Lagged(_)) => true,
                        Ok(Hint::Run(_) | Hint::Feed(_)) | Err(RecvError::Closed) => false,
                    };
                    if told && !self.store.inbox(run, 1).await?.is_empty() {
                        return Ok(None);
                    }
                }
                () = until(wake) => return Ok(None),
                () = tokio::time::sleep(DEAF_LOOK), if deaf => {
                    if !self.store.inbox(run, 1).await?.is_empty() {
                        return Ok(None);
                    }
                }
                () = self.context.signals.asked() => return Ok(Some(Left::Stopped)),
                () = until(self.deadline) => return Ok(Some(Left::TimedOut)),
            }
        }
    }
}

/// Waits until this moment; without one, for ever.
pub async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// A Run that was not started or not taken over.
pub fn start_problem(error: StartError, context: &Context) -> Problem {
    match error {
        StartError::Machine(error) => {
            Problem::new(Code::Input, format!("the input is refused: {error}")).why("nothing was started")
        }
        StartError::InitPanicked => {
            Problem::new(Code::Input, "the loop panicked while it read the input").why("nothing was started")
        }
        StartError::KeyTaken(run) => {
            Problem::new(Code::RunState, format!("the key is taken by {run}, which does something else"))
                .why("a key names one question to one agent; starting again with both goes on with that run")
                .fix("choose another --key")
        }
        StartError::NoKey => Problem::new(Code::Usage, error.to_string()).fix("name the run with --key"),
        StartError::Sealed(_) => Problem::new(Code::RunState, error.to_string()).fix("choose another --key"),
        StartError::Conflict(broken) => loopd_store::StoreError::Conflict(broken).into(),
        StartError::Store(error) => error.into(),
        StartError::CannotRun(why) => Problem::new(Code::CannotRun, why.to_string()),
        StartError::Load(error) => match error {
            loopd_runtime::LoadError::Store(error) => error.into(),
            other => Problem::new(Code::Journal, other.to_string())
                .fix("restore the store from a backup; `loopctl store verify` names every run that is affected"),
        },
        StartError::NotFound(run) => Problem::new(Code::RunUnknown, format!("there is no run {run}"))
            .fix(format!("list them with `{}`", context.place.command("run list"))),
        StartError::NotClaimable(status) => {
            Problem::new(Code::RunState, format!("the run cannot be taken over now: it is {status}"))
                .fix(context.place.command("run why"))
        }
        StartError::Commit(error) => match error {
            loopd_runtime::CommitError::Store(error) => error.into(),
            loopd_runtime::CommitError::Fenced => {
                Problem::new(Code::StoreDriver, "another process has taken the store over")
            }
        },
    }
}

/// How long from `now` to `at`, in words.
pub fn in_time(at: TimeMs, now: TimeMs) -> String {
    match at.since(now) {
        0 => "now".into(),
        ms => format!("in {}", words::duration(ms)),
    }
}
