//! The rows of the in-memory store, and what a Batch does to them.

use crate::batch::{Batch, Expect, Write, head_after};
use crate::error::{Expectation, StoreError};
use crate::memory::records::{self, Records};
use crate::port::{Claim, Claimed, Page, RunFilter};
use crate::rows::{InboxItem, QuestionRow, RunRow, RunStatus, Snapshot, Waiting, WorkerId};
use loopd_kernel::{Digest, Entry, QuestionId, RunId, Seq, TimeMs};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Takes back one write.
type Undo = Box<dyn FnOnce(&mut State)>;
type Written = Result<Undo, StoreError>;

/// Every row.
#[derive(Default)]
pub(super) struct State {
    runs: BTreeMap<RunId, Run>,
    /// Runs in the order of their creation.
    created: BTreeMap<u64, RunId>,
    admissions: BTreeMap<(String, String), RunId>,
    blobs: BTreeMap<Digest, Arc<[u8]>>,
    workers: BTreeMap<WorkerId, TimeMs>,
    pub(super) records: Records,
    next_run: u64,
    next_item: i64,
}

struct Run {
    number: u64,
    row: RunRow,
    entries: Vec<Entry>,
    snapshot: Option<Snapshot>,
    inbox: BTreeMap<i64, InboxItem>,
    /// The size of what is in `inbox`.
    bytes: usize,
    /// Dedup keys of all items there ever were.
    keys: BTreeSet<String>,
    questions: BTreeMap<QuestionId, QuestionRow>,
}

pub(super) fn conflict<T>(expectation: Expectation) -> Result<T, StoreError> {
    Err(StoreError::Conflict(expectation))
}

impl State {
    /// Checks all expectations, then makes the writes in order; takes all of them back when one fails.
    pub(super) fn commit(&mut self, batch: Batch) -> Result<(), StoreError> {
        batch.expect.iter().try_for_each(|expect| self.check(expect))?;
        let mut done = Vec::with_capacity(batch.writes.len());
        for write in batch.writes {
            match self.write(write) {
                Ok(undo) => done.push(undo),
                Err(error) => {
                    done.into_iter().rev().for_each(|undo| undo(self));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn check(&self, expect: &Expect) -> Result<(), StoreError> {
        match *expect {
            Expect::RunAt { run, seq, epoch } => {
                let row = &self.known(run)?.row;
                if row.epoch != epoch {
                    return Err(StoreError::Fenced(epoch));
                }
                if row.head != seq {
                    return conflict(Expectation::Head { run, expected: seq, found: row.head });
                }
                Ok(())
            }
            Expect::RunAbsent(run) if self.runs.contains_key(&run) => conflict(Expectation::Run(run)),
            Expect::RunAbsent(_) => Ok(()),
            Expect::Record { table, id, rev } => self.records.check(table, id, rev),
        }
    }

    fn known(&self, run: RunId) -> Result<&Run, StoreError> {
        self.runs.get(&run).ok_or(StoreError::Conflict(Expectation::Run(run)))
    }

    fn known_mut(&mut self, run: RunId) -> Result<&mut Run, StoreError> {
        self.runs.get_mut(&run).ok_or(StoreError::Conflict(Expectation::Run(run)))
    }

    fn write(&mut self, write: Write) -> Written {
        match write {
            Write::CreateRun(row) => self.create(*row),
            Write::Append { run, entries } => self.append(run, entries),
            Write::UpdateRun { run, .. } => {
                let row = &mut self.known_mut(run)?.row;
                let before = row.as_update();
                row.update(write);
                Ok(on_run(run, |run| run.row.update(before)))
            }
            Write::ChangeDefinition { run, version, definition } => {
                let row = &mut self.known_mut(run)?.row;
                let version = std::mem::replace(&mut row.version, version);
                let definition = std::mem::replace(&mut row.definition, definition);
                Ok(on_run(run, move |run| (run.row.version, run.row.definition) = (version, definition)))
            }
            Write::PutSnapshot(snapshot) => {
                let run = snapshot.run;
                let before = self.known_mut(run)?.snapshot.replace(snapshot);
                Ok(on_run(run, |run| run.snapshot = before))
            }
            Write::PutBlob { digest, bytes } => {
                let new = !self.blobs.contains_key(&digest);
                self.blobs.entry(digest).or_insert(bytes);
                Ok(Box::new(move |state| {
                    if new {
                        state.blobs.remove(&digest);
                    }
                }))
            }
            Write::AddInbox(item) => self.add_inbox(item),
            Write::Notify(item) => Ok(self.notify(item)),
            Write::TakeInbox { run, id } => {
                let taken = self.known_mut(run)?.take_item(id);
                let Some(item) = taken else {
                    return conflict(Expectation::InboxItem(id));
                };
                Ok(on_run(run, move |run| run.put_item(item)))
            }
            Write::OpenQuestion(row) => {
                let (run, id) = (row.run, row.question.id);
                let before = self.known_mut(run)?.questions.insert(id, *row);
                Ok(on_run(run, move |run| restore(&mut run.questions, id, before)))
            }
            Write::EndQuestion { run, question } => {
                let before = self.known_mut(run)?.questions.remove(&question);
                Ok(on_run(run, move |run| restore(&mut run.questions, question, before)))
            }
            Write::PutRecord(record, place) => self.records.put(*record, place).map(on_records),
            Write::DeleteRecord(table, id) => Ok(on_records(self.records.delete(table, id))),
            Write::DeleteScope(table, scope) => Ok(on_records(self.records.delete_scope(table, scope))),
            Write::Touch { table, key, place } => Ok(on_records(self.records.touch(table, key, place))),
            Write::Publish(item) => Ok(on_records(self.records.publish(item))),
            Write::EraseFeed(feed) => Ok(on_records(self.records.erase(feed))),
            Write::Count { counter, by, max } => self.records.count(counter, by, max).map(on_records),
        }
    }

    fn create(&mut self, row: RunRow) -> Written {
        let id = row.run;
        if self.runs.contains_key(&id) {
            return conflict(Expectation::Run(id));
        }
        let admission = row.admission.clone().map(|key| (row.tenant.clone(), key));
        if let Some(key) = &admission {
            if let Some(holder) = self.admissions.get(key) {
                return conflict(Expectation::Admission(*holder));
            }
            self.admissions.insert(key.clone(), id);
        }
        self.next_run += 1;
        let number = self.next_run;
        self.created.insert(number, id);
        let run = Run {
            number,
            row,
            entries: Vec::new(),
            snapshot: None,
            inbox: BTreeMap::new(),
            bytes: 0,
            keys: BTreeSet::new(),
            questions: BTreeMap::new(),
        };
        self.runs.insert(id, run);
        Ok(Box::new(move |state| {
            state.runs.remove(&id);
            state.created.remove(&number);
            if let Some(key) = admission {
                state.admissions.remove(&key);
            }
        }))
    }

    fn append(&mut self, id: RunId, entries: Vec<Entry>) -> Written {
        let run = self.known_mut(id)?;
        let (head, hash) = head_after(id, (run.row.head, run.row.hash), &entries)?;
        let before = (run.row.head, run.row.hash, run.entries.len());
        run.entries.extend(entries);
        (run.row.head, run.row.hash) = (head, hash);
        Ok(on_run(id, move |run| {
            (run.row.head, run.row.hash) = (before.0, before.1);
            run.entries.truncate(before.2);
        }))
    }

    fn add_inbox(&mut self, item: InboxItem) -> Written {
        let run = self.known(item.run)?;
        if run.keys.contains(&item.key) {
            return conflict(Expectation::InboxKey(item.key));
        }
        if run.row.status == RunStatus::Ended {
            return conflict(Expectation::Sealed(item.run));
        }
        let bytes = item.body.size();
        let limit = item.body.largest();
        if bytes > limit {
            return conflict(Expectation::ItemTooLarge { run: item.run, bytes, limit });
        }
        if !item.body.has_room(Waiting { items: run.inbox.len(), bytes: run.bytes }) {
            return conflict(Expectation::InboxFull(item.run));
        }
        Ok(self.put(item))
    }

    fn notify(&mut self, item: InboxItem) -> Undo {
        let takes = |run: &Run| run.row.status != RunStatus::Ended && !run.keys.contains(&item.key);
        if self.runs.get(&item.run).is_some_and(takes) { self.put(item) } else { Box::new(|_| {}) }
    }

    fn put(&mut self, item: InboxItem) -> Undo {
        let id = self.next_item + 1;
        self.next_item = id;
        let (to, key) = (item.run, item.key.clone());
        if let Some(run) = self.runs.get_mut(&to) {
            run.keys.insert(key.clone());
            run.put_item(InboxItem { id, ..item });
        }
        let undo = on_run(to, move |run| {
            run.keys.remove(&key);
            run.take_item(id);
        });
        Box::new(move |state| {
            state.next_item = id - 1;
            undo(state);
        })
    }
}

impl Run {
    fn put_item(&mut self, item: InboxItem) {
        self.bytes += item.body.size();
        self.inbox.insert(item.id, item);
    }

    fn take_item(&mut self, id: i64) -> Option<InboxItem> {
        let item = self.inbox.remove(&id)?;
        self.bytes -= item.body.size();
        Some(item)
    }
}

fn on_run(id: RunId, undo: impl FnOnce(&mut Run) + 'static) -> Undo {
    Box::new(move |state| {
        if let Some(run) = state.runs.get_mut(&id) {
            undo(run);
        }
    })
}

fn on_records(undo: records::Undo) -> Undo {
    Box::new(|state| undo(&mut state.records))
}

pub(super) fn restore<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, before: Option<V>) {
    match before {
        Some(value) => drop(map.insert(key, value)),
        None => drop(map.remove(&key)),
    }
}

/// Claims and leases.
impl State {
    pub(super) fn heartbeat(&mut self, worker: WorkerId, until: TimeMs) {
        self.workers.insert(worker, until);
    }

    pub(super) fn claim(&mut self, claim: &Claim) -> Vec<Claimed> {
        let due = self.runs.values().filter(|run| self.due(run, claim));
        let mut due: Vec<_> = due.map(|run| (run.row.updated_at, run.number, run.row.run)).collect();
        // Whoever waits longest goes first, so that a small limit starves nobody.
        due.sort_unstable();
        due.truncate(claim.limit);
        due.into_iter().filter_map(|(.., run)| self.take(run, claim.worker)).collect()
    }

    fn due(&self, run: &Run, claim: &Claim) -> bool {
        let row = &run.row;
        let alive = |worker: &WorkerId| self.workers.get(worker).is_some_and(|until| *until > claim.now);
        if !claim.loops.is_empty() && !claim.loops.iter().any(|runnable| runnable.fits(row)) {
            return false;
        }
        if let Some(only) = claim.only {
            let elsewhere = row.worker.is_some_and(|worker| worker != claim.worker && alive(&worker));
            return row.run == only && row.status != RunStatus::Ended && !elsewhere;
        }
        if row.worker.as_ref().is_some_and(alive) {
            return false;
        }
        match row.status {
            RunStatus::Running => true,
            RunStatus::Suspended => !run.inbox.is_empty() || row.wake_at.is_some_and(|at| at <= claim.now),
            RunStatus::Parked => run.inbox.values().any(|item| item.body.moves_parked()),
            RunStatus::Ended => false,
        }
    }

    fn take(&mut self, run: RunId, worker: WorkerId) -> Option<Claimed> {
        let row = &mut self.runs.get_mut(&run)?.row;
        let crashed = row.status == RunStatus::Running && row.worker.is_some();
        row.epoch = row.epoch.next();
        row.worker = Some(worker);
        if row.status != RunStatus::Parked {
            row.status = RunStatus::Running;
        }
        Some(Claimed { row: row.clone(), crashed })
    }
}

/// Reads.
impl State {
    pub(super) fn run(&self, run: RunId) -> Option<RunRow> {
        self.runs.get(&run).map(|run| run.row.clone())
    }

    pub(super) fn runs(&self, filter: &RunFilter) -> Page<RunRow> {
        let end = match filter.before {
            None => u64::MAX,
            Some(cursor) => self.runs.get(&cursor).map_or(0, |run| run.number),
        };
        let newest_first = self.created.range(..end).rev().filter_map(|(_, run)| self.runs.get(run));
        let shown = newest_first.map(|run| &run.row).filter(|row| filter.shows(row));
        let rows = shown.take(filter.limit.saturating_add(1)).cloned().collect();
        Page::of_rows(rows, filter.limit)
    }

    pub(super) fn entries(&self, run: RunId, after: Seq, limit: usize) -> Vec<Entry> {
        let Some(run) = self.runs.get(&run) else {
            return Vec::new();
        };
        let from = run.entries.partition_point(|entry| entry.seq <= after);
        run.entries.iter().skip(from).take(limit).cloned().collect()
    }

    pub(super) fn snapshot(&self, run: RunId) -> Option<Snapshot> {
        self.runs.get(&run)?.snapshot.clone()
    }

    pub(super) fn inbox(&self, run: RunId, limit: usize) -> Vec<InboxItem> {
        let Some(run) = self.runs.get(&run) else {
            return Vec::new();
        };
        run.inbox.values().take(limit).cloned().collect()
    }

    pub(super) fn questions(&self, run: Option<RunId>, limit: usize) -> Vec<QuestionRow> {
        let wanted = self.runs.iter().filter(|(id, _)| run.is_none_or(|run| run == **id));
        let mut rows: Vec<_> = wanted.flat_map(|(_, run)| run.questions.values().cloned()).collect();
        rows.sort_by_key(|row| (row.question.asked_at, row.run, row.question.id));
        rows.truncate(limit);
        rows
    }

    pub(super) fn blob(&self, digest: Digest) -> Option<Vec<u8>> {
        self.blobs.get(&digest).map(|bytes| bytes.to_vec())
    }

    pub(super) fn next_wake(&self) -> Option<TimeMs> {
        let waits = |row: &RunRow| row.worker.is_none() && row.status == RunStatus::Suspended;
        self.runs.values().map(|run| &run.row).filter(|row| waits(row)).filter_map(|row| row.wake_at).min()
    }
}
