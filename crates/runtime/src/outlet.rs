//! What is committed beside the steps of Runs: the port through which somebody keeps up with them without a gap.

use crate::driver::{CommitError, Patience};
use async_trait::async_trait;
use loopd_kernel::question::OpenQuestion;
use loopd_kernel::{Entry, Projection, Seq};
use loopd_store::{RunStatus, StoreError, Write};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// A Run before one commit, as its Journal has it: whoever claimed it meanwhile does not show.
#[derive(Debug, Clone, Copy)]
pub struct Before<'a> {
    /// The last Seq; 0 for a Run that begins with this commit.
    pub head: Seq,
    /// The status. A Run that waited for room under a limit, and nothing else, counts as `Running` after its worker
    /// has changed.
    pub status: RunStatus,
    /// The Questions that were open.
    pub questions: &'a [OpenQuestion],
}

/// One commit of a Run, right before it is made.
#[derive(Debug, Clone, Copy)]
pub struct Stepped<'a> {
    /// The caller's key for starting the Run once.
    pub admission: Option<&'a str>,
    /// Before it.
    pub before: Before<'a>,
    /// After it: the Run, its tenant and parent, its open Questions, what it has spent, its outcome.
    pub after: &'a Projection,
    /// The status that it commits.
    pub status: RunStatus,
    /// The Entries that it appends, in order. None when it only changes the status.
    pub entries: &'a [Entry],
    /// The key of the inbox item that these Entries record and that it takes, when there is one: an Entry itself does
    /// not say which signal or answer it was.
    pub item: Option<&'a str>,
}

/// Adds writes to the commits of Runs, so that what a Run has decided and what is said of it elsewhere are durable
/// together or not at all.
///
/// # Expected flow
/// A worker asks once for every Batch that appends Entries to a Run that it drives, or changes its status: the first
/// one of a Run, its steps, recovery, parking, ending and release, of parents and children alike. It asks right before
/// it hands the Batch to the store, and adds the writes at its end.
///
/// # Guarantees
/// The writes are made exactly once when the Entries are, in one transaction. A Batch that is sent again, because
/// nobody knew what became of it, holds the same writes. Commits of one Run are asked for one after another, in the
/// order of its Journal; those of different Runs at once. A Batch that loses the Run to another worker leaves nothing.
///
/// # What an implementation promises
/// Its writes cannot conflict: no key that may be taken, no [`Write::Count`] with a bound, and no
/// [`Write::AddInbox`]; a conflict would keep the Run from ever getting on. It writes no rows of Runs. It changes
/// nothing itself, since the commit may still fail and it is asked again then. It answers soon: while it thinks, the
/// time in which the intents of the step may be sent runs. It is total: one that panics counts as one that cannot
/// read.
#[async_trait]
pub trait Outlet: Send + Sync + 'static {
    /// The writes that belong to the step.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot know them. [`StoreError::Unavailable`] is asked again for as long as the store
    /// itself would be; after that, and after any other error, nothing is committed and the Run is given up here, to
    /// be recovered from what is durable.
    async fn beside(&self, step: Stepped<'_>) -> Result<Vec<Write>, StoreError>;
}

/// What `outlet` adds to a step; nothing where there is none.
pub(crate) async fn beside(
    outlet: Option<&Arc<dyn Outlet>>,
    step: Stepped<'_>,
    patience: &Patience,
) -> Result<Vec<Write>, CommitError> {
    let Some(outlet) = outlet else { return Ok(Vec::new()) };
    let mut waiting = patience.begin();
    loop {
        let error = match total(outlet.beside(step)).await {
            Ok(writes) => return Ok(writes),
            Err(error) => error,
        };
        match error {
            StoreError::Unavailable(_) if waiting.pause().await => {}
            StoreError::Fenced(_) => return Err(CommitError::Fenced),
            StoreError::Unavailable(_)
            | StoreError::Conflict(_)
            | StoreError::Ambiguous(_)
            | StoreError::Full(_)
            | StoreError::Corrupt(_)
            | StoreError::DriverElsewhere(_)
            | StoreError::ClientOnly
            | StoreError::TooNew { .. } => return Err(CommitError::Store(error)),
        }
    }
}

/// A panic would take the Run's activation with it, and its row would say for ever that it is driven here.
async fn total<T>(asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let mut asked = pin!(asked);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| asked.as_mut().poll(cx))) {
        Ok(polled) => polled,
        Err(_) => Poll::Ready(Err(StoreError::Unavailable("the outlet panicked".into()))),
    })
    .await
}
