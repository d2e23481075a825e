//! What a worker says about its Runs, and how anybody talks to one.

use crate::driver::{CommitError, DriveError, LoadError};
use crate::program::CannotRun;
use loopd_kernel::machine::{MachineError, Refused, accepts};
use loopd_kernel::projection::Waits;
use loopd_kernel::question::QuestionEnd;
use loopd_kernel::{Outcome, Projection, QuestionId, RunId, TimeMs};
use loopd_store::{Batch, Expectation, InboxBody, InboxItem, Store, StoreError, Write};
use tokio::sync::watch;

/// How driving a Run ended here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// It is sealed, or parked at a reopenable outcome; the output is JSON text.
    Ended(Outcome),
    /// It waits for a person, a signal or a timer, and costs no memory.
    Suspended(Waits),
    /// The worker stopped first; the Run goes on wherever it is claimed next.
    Released,
    /// The worker had to give it up.
    Lost(DriveError),
}

/// Why a Run was not started, or not taken over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The Loop refused the input, or the machine the Run.
    #[error("{0}")]
    Machine(MachineError),
    /// The admission key names a Run of another Loop or another input.
    #[error("the key is taken by {0}, which does something else")]
    KeyTaken(RunId),
    /// A signal that may start a Run needs an admission key, by which the Run is found the next time.
    #[error("a signal that may start a run needs an admission key")]
    NoKey,
    /// The Run has ended and hears nothing more.
    #[error("{0} has ended and takes no signal")]
    Sealed(RunId),
    /// The Loop panicked over the input.
    #[error("the loop panicked while it read the input")]
    InitPanicked,
    /// Something that the caller expected, or that its own writes need, is otherwise. Nothing was started.
    #[error("the run was not started, because something else changed: {0:?}")]
    Conflict(Expectation),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nobody here can run it.
    #[error("this worker cannot run it: {0}")]
    CannotRun(CannotRun),
    /// It cannot be recovered.
    #[error(transparent)]
    Load(LoadError),
    /// There is no such Run.
    #[error("there is no run {0}")]
    NotFound(RunId),
    /// It has ended, or a live worker drives it.
    #[error("the run cannot be taken over now: it is {0}")]
    NotClaimable(&'static str),
    /// The commit of its first Entries failed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// A Run that is driven here.
#[must_use = "a driven run goes on whether or not anybody waits for it"]
#[derive(Debug, Clone)]
pub struct Driven {
    /// The Run.
    pub run: RunId,
    pub(crate) end: watch::Receiver<Option<RunEnd>>,
}

impl Driven {
    /// Waits until driving it ends here.
    pub async fn wait(mut self) -> RunEnd {
        match self.end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or(RunEnd::Released),
            Err(_) => RunEnd::Released,
        }
    }
}

/// What starting a Run came to.
#[derive(Debug, Clone)]
pub enum Started {
    /// It is new, and driven here.
    New(Driven),
    /// The admission key names a Run that was started before.
    Already(RunId),
}

impl RunEnd {
    pub(crate) fn of(projection: &Projection) -> Self {
        match projection.outcome() {
            Some((outcome, _)) => Self::Ended(outcome.clone()),
            None if projection.is_suspended() => Self::Suspended(projection.waits()),
            None => Self::Released,
        }
    }
}

/// Why an answer was not passed on. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The Question is not open: it ended, or was never asked.
    #[error("question {1} of {0} is not open")]
    NotOpen(RunId, QuestionId),
    /// The Run would not take it.
    #[error("{0}")]
    Refused(Refused),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How a Question ends, as somebody says from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The Question.
    pub question: QuestionId,
    /// How it ends.
    pub end: QuestionEnd,
    /// Who says so.
    pub actor: String,
    /// The answer as JSON text; empty unless it is answered.
    pub value: String,
}

/// Passes an answer on to a Run, from any process, once it fits what the Question asks: a Run that refuses an answer
/// tells nobody. `skew_ms` is [`crate::Config::skew`] of whoever drives the Run.
///
/// # Errors
/// [`AnswerError`]. An item with the same key that is there already is no error.
pub async fn answer(
    store: &dyn Store,
    run: RunId,
    key: String,
    (at, skew_ms): (TimeMs, u64),
    answer: Answer,
) -> Result<(), AnswerError> {
    let Answer { question, end, actor, value } = answer;
    let open = store.questions(Some(run), usize::MAX).await?;
    let open = open.iter().find(|row| row.question.id == question).ok_or(AnswerError::NotOpen(run, question))?;
    accepts(&open.question, end, &value, at, skew_ms).map_err(AnswerError::Refused)?;
    Ok(tell(store, run, key, at, InboxBody::Answer { question, end, actor, value }).await?)
}

/// Adds an inbox item to a store, from any process.
///
/// # Errors
/// [`StoreError`]; an item with the same key that is there already is no error.
pub async fn tell(store: &dyn Store, run: RunId, key: String, at: TimeMs, body: InboxBody) -> Result<(), StoreError> {
    let item = InboxItem { id: 0, run, key, at, body };
    match store.commit(Batch { expect: Vec::new(), writes: vec![Write::AddInbox(item)] }).await {
        Ok(_) | Err(StoreError::Conflict(Expectation::InboxKey(_))) => Ok(()),
        Err(error) => Err(error),
    }
}
