//! What the cases build their Batches from.

use super::{Finding, Handle, same};
use crate::batch::{Batch, Expect, Write};
use crate::port::{Claim, RunFilter};
use crate::rows::{InboxBody, InboxItem, QuestionRow, RunRow, RunStatus, Snapshot, WorkerId};
use loopd_kernel::chain::{self, ChainError, Verifier};
use loopd_kernel::entry::FORMAT;
use loopd_kernel::question::{Ask, OpenQuestion};
use loopd_kernel::{Digest, Entry, Epoch, Kind, MicroUsd, QuestionId, RunId, Salt, Seq, TimeMs};

/// The worker of most cases, and the one that takes over.
pub(super) const WORKER: WorkerId = WorkerId(7);
pub(super) const OTHER: WorkerId = WorkerId(u64::MAX - 8);

/// The `n`th Run.
pub(super) fn run_id(n: u64) -> RunId {
    let [a, b, c, d] = (n as u32).to_be_bytes();
    // Identities do not follow the order of creation, as random ones do not.
    RunId([d ^ 0xa5, c, 0, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d])
}

/// The row of the `n`th Run: nothing appended yet, driven by [`WORKER`] in epoch 1.
pub(super) fn row(n: u64) -> RunRow {
    let run = run_id(n);
    RunRow {
        run,
        tenant: "default".to_owned(),
        admission: None,
        loop_name: "echo".to_owned(),
        version: "1.0.0".to_owned(),
        definition: Digest::sha256(&[b"definition"]),
        origin: None,
        parent: None,
        status: RunStatus::Running,
        head: Seq(0),
        hash: chain::genesis(run),
        epoch: Epoch(1),
        worker: Some(WORKER),
        wake_at: None,
        outcome: None,
        iteration: 0,
        tokens: 0,
        spent: MicroUsd(0),
        created_at: TimeMs(1_000),
        updated_at: TimeMs(1_000),
    }
}

/// Continues one Journal with a valid chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pen {
    pub(super) run: RunId,
    pub(super) head: Seq,
    pub(super) hash: Digest,
    pub(super) epoch: Epoch,
}

impl Pen {
    /// After what the row says.
    pub(super) fn of(row: &RunRow) -> Self {
        Self { run: row.run, head: row.head, hash: row.hash, epoch: row.epoch }
    }

    /// The next Entry.
    pub(super) fn write(&mut self, record: &str, payload: &[u8]) -> Entry {
        let seq = self.head.next();
        let mut entry = Entry {
            run: self.run,
            seq,
            kind: if seq.0 == 1 { Kind::Started } else { Kind::Settled },
            format: FORMAT,
            at: TimeMs(1_000 + seq.0 as i64),
            salt: Salt::from_random(Digest::sha256(&[&self.run.0, &seq.0.to_be_bytes()]).0),
            record: record.to_owned(),
            payload: payload.to_vec(),
            hash: Digest::default(),
        };
        entry.hash = entry.hash_after(&self.hash);
        (self.head, self.hash) = (seq, entry.hash);
        entry
    }

    /// The next `count` Entries.
    pub(super) fn some(&mut self, count: usize) -> Vec<Entry> {
        (0..count).map(|at| self.write(&format!(r#"{{"at":{at}}}"#), b"payload")).collect()
    }

    /// What a Batch expects of the Run as it stands now.
    pub(super) fn expect(&self) -> Expect {
        Expect::RunAt { run: self.run, seq: self.head, epoch: self.epoch }
    }

    /// A Batch that appends `count` Entries where the pen stands, and moves the pen.
    pub(super) fn step(&mut self, count: usize) -> Batch {
        let expect = vec![self.expect()];
        Batch { expect, writes: vec![Write::Append { run: self.run, entries: self.some(count) }] }
    }
}

/// A Batch of these writes alone.
pub(super) fn writes(writes: impl IntoIterator<Item = Write>) -> Batch {
    Batch { expect: Vec::new(), writes: writes.into_iter().collect() }
}

/// Creates the Run of this row and its first Entry.
pub(super) fn creation(row: &RunRow) -> (Batch, Pen) {
    let mut pen = Pen::of(row);
    let entries = pen.some(1);
    let create = Write::CreateRun(Box::new(row.clone()));
    let batch = Batch {
        expect: vec![Expect::RunAbsent(row.run)],
        writes: vec![create, Write::Append { run: row.run, entries }],
    };
    (batch, pen)
}

/// Commits [`creation`].
pub(super) async fn create(store: &Handle, row: &RunRow) -> Result<Pen, Finding> {
    let (batch, pen) = creation(row);
    store.commit(batch).await?;
    Ok(pen)
}

/// The update that makes the stored row look like `row`.
pub(super) fn update(row: &RunRow) -> Write {
    Write::UpdateRun {
        run: row.run,
        status: row.status,
        worker: row.worker,
        wake_at: row.wake_at,
        outcome: row.outcome.clone(),
        iteration: row.iteration,
        tokens: row.tokens,
        spent: row.spent,
        updated_at: row.updated_at,
    }
}

/// An inbox item.
pub(super) fn item(run: RunId, key: &str, body: InboxBody) -> InboxItem {
    InboxItem { id: 0, run, key: key.to_owned(), at: TimeMs(5_000), body }
}

/// A signal, which waits while a Run is parked.
pub(super) fn signal(run: RunId, key: &str) -> InboxItem {
    item(run, key, InboxBody::Signal { name: "more".to_owned(), body: format!("body of {key}") })
}

/// A wish to cancel, which moves a parked Run.
pub(super) fn cancel(run: RunId, key: &str) -> InboxItem {
    item(run, key, InboxBody::Cancel { actor: "ann".to_owned(), reason: "enough".to_owned() })
}

/// A Question.
pub(super) fn question(run: RunId, id: u64, asked_at: i64) -> QuestionRow {
    let ask = Ask::Confirm { prompt: format!("question {id}?"), expires_in_ms: Some(60_000) };
    let expires_at = Some(TimeMs(asked_at + 60_000));
    QuestionRow { run, question: OpenQuestion { id: QuestionId(id), ask, asked_at: TimeMs(asked_at), expires_at } }
}

/// A claim of anything that is due.
pub(super) fn claim(worker: WorkerId, now: i64) -> Claim {
    Claim { worker, now: TimeMs(now), loops: Vec::new(), limit: 1_000, only: None }
}

/// Everything that a store shows of a Run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct View {
    pub(super) row: Option<RunRow>,
    pub(super) entries: Vec<Entry>,
    pub(super) snapshot: Option<Snapshot>,
    pub(super) inbox: Vec<InboxItem>,
    pub(super) questions: Vec<QuestionRow>,
}

impl View {
    pub(super) async fn of(store: &Handle, run: RunId) -> Result<Self, Finding> {
        Ok(Self {
            row: store.run(run).await?,
            entries: store.entries(run, Seq(0), usize::MAX).await?,
            snapshot: store.snapshot(run).await?,
            inbox: store.inbox(run, usize::MAX).await?,
            questions: store.questions(Some(run), usize::MAX).await?,
        })
    }
}

/// Reads a whole Journal in pages and verifies its chain against the row.
pub(super) async fn verify(store: &Handle, run: RunId) -> Result<Result<Seq, ChainError>, Finding> {
    let Some(row) = store.run(run).await? else {
        return Err(Finding::new(format!("{run} is not there")));
    };
    let mut verifier = Verifier::new(run);
    loop {
        let page = store.entries(run, verifier.head().0, 7).await?;
        if page.is_empty() {
            return Ok(verifier.finish(row.head, &row.hash).map(|()| row.head));
        }
        for entry in &page {
            if let Err(error) = verifier.take(entry) {
                return Ok(Err(error));
            }
        }
    }
}

/// Verifies that the Journal ends, whole, where the pen stands.
pub(super) async fn ends_at(store: &Handle, pen: &Pen) -> Result<(), Finding> {
    same("the verified head of the journal", &verify(store, pen.run).await?, &Ok(pen.head))
}

/// All Runs, by pages of `limit`.
pub(super) async fn all_runs(store: &Handle, limit: usize) -> Result<Vec<RunId>, Finding> {
    let mut filter = RunFilter { limit, ..RunFilter::default() };
    let mut all = Vec::new();
    loop {
        let page = store.runs(filter.clone()).await?;
        all.extend(page.items.iter().map(|row| row.run));
        match page.next {
            Some(cursor) => filter.before = Some(cursor),
            None => return Ok(all),
        }
    }
}
