//! Committing one step, and finding out what became of a commit that nobody is sure about.

use super::load;
use super::patience::{Patience, Waiting};
use loopd_kernel::child::{Birth, Letter, LetterBody};
use loopd_kernel::machine::Step;
use loopd_kernel::projection::Status;
use loopd_kernel::question::OpenQuestion;
use loopd_kernel::{Digest, Entry, Epoch, Projection, RunId, Seq, TimeMs};
use loopd_store::{
    Batch, Expect, Expectation, InboxBody, InboxItem, QuestionRow, RunRow, RunStatus, Store, StoreError, WorkerId,
    Write,
};

/// Why a step was not committed. The machine that made it is ahead of the store and is dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// Somebody else drives the Run: nothing of ours may be sent.
    #[error("another worker has taken this run over")]
    Fenced,
    /// The store failed for good.
    #[error(transparent)]
    Store(StoreError),
}

/// What a commit needs to know besides the step.
#[derive(Debug, Clone, Copy)]
pub struct Holder {
    /// The epoch under which the Run is driven.
    pub epoch: Epoch,
    /// The worker.
    pub worker: WorkerId,
    /// False: this commit is the holder's last one and releases the Run.
    pub keeps: bool,
}

/// The status that lists show. `blocked`: a wanted Call waits until a child gives room under a limit.
#[must_use]
pub fn status(projection: &Projection, blocked: bool) -> RunStatus {
    match &projection.status {
        Status::Ended(_) => RunStatus::Ended,
        Status::Parked(_) => RunStatus::Parked,
        Status::Open if projection.is_suspended() || (blocked && projection.only_children()) => RunStatus::Suspended,
        Status::Open => RunStatus::Running,
    }
}

/// The row of a Run that is about to be created.
#[must_use]
pub fn new_row(projection: &Projection, tenant: &str, admission: Option<String>, holder: &Holder) -> RunRow {
    let status = status(projection, false);
    RunRow {
        run: projection.run,
        tenant: tenant.into(),
        admission,
        loop_name: projection.loop_name.clone(),
        version: projection.version.clone(),
        definition: projection.definition,
        origin: None,
        parent: None,
        status,
        head: Seq(0),
        hash: loopd_kernel::chain::genesis(projection.run),
        epoch: holder.epoch,
        worker: (status == RunStatus::Running).then_some(holder.worker),
        wake_at: projection.wake_at(),
        outcome: projection.outcome().map(|(outcome, _)| outcome.name().into()),
        iteration: projection.iteration,
        tokens: projection.ledger.tokens(),
        spent: projection.ledger.spent,
        created_at: projection.started_at,
        updated_at: projection.head.at,
    }
}

/// The writes that a step makes beside its Entries.
fn step_writes(projection: &Projection, step: &Step, questions: &[OpenQuestion], holder: &Holder) -> Vec<Write> {
    let run = projection.run;
    let mut writes: Vec<Write> = step
        .constants
        .iter()
        .map(|constants| Write::PutBlob { digest: constants.name.digest, bytes: constants.bytes.clone() })
        .collect();
    if !step.entries.is_empty() {
        writes.push(Write::Append { run, entries: step.entries.clone() });
    }
    writes.push(Write::UpdateRun {
        run,
        status: status(projection, step.blocked),
        worker: holder.keeps.then_some(holder.worker),
        wake_at: projection.wake_at(),
        outcome: projection.outcome().map(|(outcome, _)| outcome.name().into()),
        iteration: projection.iteration,
        tokens: projection.ledger.tokens(),
        spent: projection.ledger.spent,
        updated_at: projection.head.at,
    });
    writes.extend(step.births.iter().flat_map(|birth| births(birth, projection.head.at)));
    writes.extend(step.letters.iter().map(|letter| Write::Notify(item(letter, projection.head.at))));
    if step.questions_changed {
        let ended = questions.iter().filter(|old| !projection.questions.iter().any(|new| new.id == old.id));
        writes.extend(ended.map(|question| Write::EndQuestion { run, question: question.id }));
        let opened = projection.questions.iter().filter(|new| !questions.iter().any(|old| old.id == new.id));
        writes.extend(
            opened.map(|question| Write::OpenQuestion(Box::new(QuestionRow { run, question: question.clone() }))),
        );
    }
    writes
}

/// A child as it begins: a row with an empty Journal, and what its first Entry is made of.
fn births(birth: &Birth, at: TimeMs) -> [Write; 2] {
    let Birth { child, parent, tenant } = birth;
    let row = RunRow {
        run: child.run,
        tenant: tenant.clone(),
        admission: None,
        loop_name: child.loop_name.clone(),
        // Whoever takes it says which version it is.
        version: String::new(),
        definition: child.definition.unwrap_or_else(|| Digest::sha256(&[])),
        origin: None,
        parent: Some(parent.run),
        status: RunStatus::Running,
        head: Seq(0),
        hash: loopd_kernel::chain::genesis(child.run),
        epoch: Epoch(0),
        worker: None,
        wake_at: None,
        outcome: None,
        iteration: 0,
        tokens: 0,
        spent: loopd_kernel::MicroUsd(0),
        created_at: at,
        updated_at: at,
    };
    let (tenant, input, limits) = (tenant.clone(), child.input.clone(), child.limits);
    let body = InboxBody::Birth { parent: *parent, tenant, input, limits };
    let first = InboxItem { id: 0, run: child.run, key: "birth".into(), at, body };
    [Write::CreateRun(Box::new(row)), Write::Notify(first)]
}

fn item(letter: &Letter, at: TimeMs) -> InboxItem {
    let body = match letter.body.clone() {
        LetterBody::Signal { name, body } => InboxBody::Signal { name, body },
        LetterBody::Cancel { actor, reason } => InboxBody::Cancel { actor, reason },
        LetterBody::Reopen { actor, raise } => InboxBody::Reopen { actor, raise },
        LetterBody::News(news) => InboxBody::News(news),
    };
    InboxItem { id: 0, run: letter.to, key: letter.key.clone(), at, body }
}

/// The Batch of one step. `before` is the Journal's head before it, `questions` the open Questions then.
#[must_use]
pub fn batch(
    projection: &Projection,
    step: &Step,
    before: Seq,
    questions: &[OpenQuestion],
    holder: &Holder,
    with_snapshot: bool,
) -> Batch {
    let run = projection.run;
    let mut writes = step_writes(projection, step, questions, holder);
    if with_snapshot && let Some(snapshot) = load::snapshot(projection) {
        writes.push(Write::PutSnapshot(snapshot));
    }
    Batch { expect: vec![Expect::RunAt { run, seq: before, epoch: holder.epoch }], writes }
}

/// Commits `batch`, which appends `entries` to `run` after `before`.
///
/// # Errors
/// [`CommitError`]; the store's own failure once the patience has run out. After an ambiguous commit the Entries are read back and compared byte by byte: equal
/// is committed, absent is tried again, anything else is fenced. Nothing is guessed.
pub async fn commit(
    store: &dyn Store,
    batch: Batch,
    run: RunId,
    before: Seq,
    entries: &[Entry],
    patience: &Patience,
) -> Result<(), CommitError> {
    let mut unsure = false;
    let mut waiting = patience.begin();
    loop {
        let error = match store.commit(batch.clone()).await {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        match &error {
            StoreError::Fenced(_) => return Err(CommitError::Fenced),
            // A retry after an unsure commit meets its own Entries; without one, they are somebody else's.
            StoreError::Conflict(Expectation::Head { run: at, .. } | Expectation::Run(at)) if unsure && *at == run => {
                return if read_back(store, run, before, entries, &mut waiting).await? {
                    Ok(())
                } else {
                    Err(CommitError::Fenced)
                };
            }
            StoreError::Conflict(Expectation::Head { run: at, .. }) if *at == run => return Err(CommitError::Fenced),
            StoreError::Ambiguous(_) => {
                unsure = true;
                let landed = if entries.is_empty() {
                    is_released(store, &batch, run, &mut waiting).await?
                } else {
                    read_back(store, run, before, entries, &mut waiting).await?
                };
                if landed {
                    return Ok(());
                }
            }
            // The first try of a commit without Entries has taken the item.
            StoreError::Conflict(Expectation::InboxItem(_)) if unsure && entries.is_empty() => return Ok(()),
            StoreError::Unavailable(_) => {}
            StoreError::Conflict(_)
            | StoreError::Full(_)
            | StoreError::Corrupt(_)
            | StoreError::DriverElsewhere(_)
            | StoreError::ClientOnly
            | StoreError::TooNew { .. } => return Err(CommitError::Store(error)),
        }
        if !waiting.pause().await {
            return Err(CommitError::Store(error));
        }
    }
}

/// True: a Batch that does nothing but release the Run is in the store. Nothing else tells whether it is: it appends no
/// Entry, and what it writes beside must not be written twice.
async fn is_released(
    store: &dyn Store,
    batch: &Batch,
    run: RunId,
    waiting: &mut Waiting<'_>,
) -> Result<bool, CommitError> {
    let releases = |write: &Write| matches!(write, Write::UpdateRun { run: of, worker: None, .. } if *of == run);
    let takes = |write: &Write| matches!(write, Write::TakeInbox { .. });
    if !batch.writes.iter().any(releases) || batch.writes.iter().any(takes) {
        return Ok(false);
    }
    loop {
        match store.run(run).await {
            Ok(row) => {
                let ours =
                    |row: &RunRow| batch.expect.contains(&Expect::RunAt { run, seq: row.head, epoch: row.epoch });
                return Ok(row.is_some_and(|row| ours(&row) && row.worker.is_none()));
            }
            Err(StoreError::Unavailable(_)) if waiting.pause().await => {}
            Err(error) => return Err(CommitError::Store(error)),
        }
    }
}

/// True: the store holds exactly these Entries. False: it holds none after `before`.
async fn read_back(
    store: &dyn Store,
    run: RunId,
    before: Seq,
    entries: &[Entry],
    waiting: &mut Waiting<'_>,
) -> Result<bool, CommitError> {
    let found = loop {
        match store.entries(run, before, entries.len() + 1).await {
            Ok(found) => break found,
            Err(StoreError::Unavailable(_)) if waiting.pause().await => {}
            Err(error) => return Err(CommitError::Store(error)),
        }
    };
    if found.is_empty() {
        return Ok(false);
    }
    if found == entries { Ok(true) } else { Err(CommitError::Fenced) }
}
