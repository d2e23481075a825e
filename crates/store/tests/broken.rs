//! The kit on stores that are broken on purpose: each must fail the case that is about its flaw, and every case
//! must be failed by some store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use async_trait::async_trait;
use loopd_kernel::{Digest, Entry, RunId, Seq, TimeMs};
use loopd_store::kit::{CASES, Features, Finding, Handle, Subject, Verdict, check};
use loopd_store::rows::INBOX_BYTES;
use loopd_store::{
    Batch, Claim, Claimed, Counter, Expect, Expectation, Feed, FeedItem, Hint, Hints, InboxBody, InboxItem, List,
    MemoryStore, Page, Place, Query, QuestionRow, Receipt, Record, RecordId, RunFilter, RunRow, Snapshot, Store,
    StoreError, WorkerId, Write,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tokio::sync::broadcast;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// Compares no epoch.
    AnyEpoch,
    /// Compares the Seq before the epoch.
    SeqFirst,
    /// Compares no Seq.
    AnySeq,
    /// Leaves the first write of a Batch that failed.
    HalfBatches,
    /// Loses the Batch after one that failed, and says that it was committed.
    LosesNeighbours,
    /// Loses every 40th Batch, and says that it was committed.
    LosesSome,
    /// Answers "committed" to this kind of conflict.
    Denies(Kind),
    /// Refuses an empty Batch.
    NothingIsAnError,
    /// Knows an inbox key only while its item waits.
    ForgetsTakenKeys,
    /// Sorts the inbox by key.
    InboxByKey,
    /// Gives the Entries of a page backwards.
    EntriesBackwards,
    /// Does not show the newest Entry yet to whoever reads a whole Journal.
    LateEntries,
    /// Shows a Run with the worker that it had first.
    StaleRows,
    /// Ends every text and payload at a NUL.
    CutsAtNul,
    /// Keeps a mebibyte of a payload.
    CutsLarge,
    /// Keeps 63 bits of a number.
    Clamps,
    /// Keeps the snapshot with the highest Seq.
    NewestSnapshot,
    /// Replaces a blob.
    ReplacesBlobs,
    /// Keeps Questions that ended.
    EternalQuestions,
    /// Has no second page.
    OnePage,
    /// Takes a cursor for a number of rows.
    OffsetPages,
    /// Lets a client do everything.
    TrustsClients,
    /// Looks at no lease.
    Robs,
    /// Lets no lease lapse.
    KeepsLeases,
    /// Calls no Run crashed.
    NeverCrashed,
    /// Gives the old epoch.
    OldEpoch,
    /// Gives everything that is due.
    Greedy,
    /// Takes timers a second early.
    Hasty,
    /// Wants a reason for a claim of one Run.
    WantsReasons,
    /// Gives what it gave before, too.
    GivesTwice,
    /// Tells the next wake of any Run.
    WakesAll,
    /// Sends no hints.
    Mute,
    /// Fails when hints pile up.
    HintsPileUp,
    /// Keeps nothing when it closes.
    Forgets,
    /// Does not notice damage.
    Blind,
    /// Keeps the definition that a Run began with.
    FirstDefinition,
    /// Claims Runs of every major version.
    AnyMajor,
    /// Claims Runs of every definition.
    AnyDefinition,
    /// Claims no Run that has no Entry.
    WantsEntries,
    /// Forgets the parent.
    Orphans,
    /// Lists everybody as a child.
    AnyParent,
    /// Refuses a notice where it refuses an item.
    NoticesAreItems,
    /// Loses notices.
    LosesNotices,
    /// Looks at no cap.
    CountsNothing,
    /// Has no bytes to spare for what stops a Run.
    NoReserve,
    /// Compares no revision.
    AnyRevision,
    /// Says that each Record was written once.
    OneRevision,
    /// Leaves a Record where it is, though it should take the next number.
    KeepsPlaces,
    /// Numbers a Record by how many there are.
    CountsRows,
    /// Uses up the numbers of a Batch that failed.
    NumbersGetLost,
    /// Moves Records to other scopes.
    MovesScopes,
    /// Loses touches.
    LosesTouches,
    /// Writes a Record that it touches.
    TouchIsAWrite,
    /// Removes no scope.
    KeepsScopes,
    /// Goes on behind a place, whoever else stands there.
    SkipsPlaces,
    /// Tells what is due in the order of identities.
    DueByIdentity,
    /// Gives Records in the order of identities.
    SortsThese,
    /// Looks for the first word only.
    FirstWord,
    /// Takes signs for operators.
    Operators,
    /// Keeps the words of a Record that has none any more.
    KeepsWords,
    /// Begins a part of a Feed at the position that it should begin after.
    AfterIsAt,
    /// Reads any number of bytes at once.
    FeedUncapped,
    /// Does not keep what an item tells of.
    ForgetsOf,
    /// Erases no Feed.
    KeepsFeeds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Head,
    Run,
    Admission,
    Sealed,
    InboxFull,
    ItemTooLarge,
    RecordKey,
    Counter,
}

impl Kind {
    fn is(self, conflict: &Expectation) -> bool {
        match self {
            Self::Head => matches!(conflict, Expectation::Head { .. }),
            Self::Run => matches!(conflict, Expectation::Run(_)),
            Self::Admission => matches!(conflict, Expectation::Admission(_)),
            Self::Sealed => matches!(conflict, Expectation::Sealed(_)),
            Self::InboxFull => matches!(conflict, Expectation::InboxFull(_)),
            Self::ItemTooLarge => matches!(conflict, Expectation::ItemTooLarge { .. }),
            Self::RecordKey => matches!(conflict, Expectation::RecordKey(..)),
            Self::Counter => matches!(conflict, Expectation::Counter(_)),
        }
    }
}

#[derive(Default)]
struct Memory {
    commits: usize,
    failed: bool,
    renamed: usize,
    blobs: BTreeMap<Digest, Vec<u8>>,
    workers: BTreeMap<RunId, Option<WorkerId>>,
    offsets: BTreeMap<RunId, usize>,
    given: Vec<Claimed>,
    words: BTreeMap<RecordId, String>,
}

#[derive(Clone)]
struct Broken {
    flaw: Flaw,
    inner: MemoryStore,
    memory: Arc<Mutex<Memory>>,
    mute: broadcast::Sender<Hint>,
}

impl Broken {
    fn new(flaw: Flaw) -> Self {
        let (inner, memory) = (MemoryStore::new(), Arc::default());
        Self { flaw, inner, memory, mute: broadcast::Sender::new(1) }
    }

    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    /// What becomes of the expectations.
    async fn expect(&self, batch: &mut Batch) -> Result<(), StoreError> {
        if self.is(Flaw::AnyRevision) {
            batch.expect.retain(|expect| !matches!(expect, Expect::Record { .. }));
        }
        for expect in &mut batch.expect {
            let Expect::RunAt { run, seq, epoch } = expect else {
                continue;
            };
            let Some(row) = self.inner.run(*run).await? else {
                continue;
            };
            if self.is(Flaw::SeqFirst) && row.head != *seq {
                let conflict = Expectation::Head { run: *run, expected: *seq, found: row.head };
                return Err(StoreError::Conflict(conflict));
            }
            if self.is(Flaw::AnyEpoch) {
                *epoch = row.epoch;
            }
            if self.is(Flaw::AnySeq) {
                *seq = row.head;
            }
        }
        Ok(())
    }

    /// Refuses what would stop a Run, as if it were any item.
    async fn stops(&self, batch: &Batch) -> Result<(), StoreError> {
        for write in &batch.writes {
            if let Write::AddInbox(item) = write
                && self.is(Flaw::NoReserve)
            {
                let waiting = self.inner.inbox(item.run, usize::MAX).await?;
                let bytes: usize = waiting.iter().map(|item| item.body.size()).sum();
                if bytes >= INBOX_BYTES {
                    return Err(StoreError::Conflict(Expectation::InboxFull(item.run)));
                }
            }
        }
        Ok(())
    }

    /// What becomes of a write; nothing, when it is lost.
    async fn spoil(&self, write: &mut Write) -> Option<()> {
        match write {
            Write::Append { entries, .. } if self.is(Flaw::CutsAtNul) => {
                let cut = |entry: &mut Entry| entry.payload.iter().position(|byte| *byte == 0);
                entries.iter_mut().for_each(|entry| {
                    if let Some(at) = cut(entry) {
                        entry.payload.truncate(at);
                    }
                });
            }
            Write::Append { entries, .. } if self.is(Flaw::CutsLarge) => {
                entries.iter_mut().for_each(|entry| entry.payload.truncate(1 << 20));
            }
            Write::CreateRun(row) => {
                if self.is(Flaw::Clamps) {
                    row.tokens = row.tokens.min(i64::MAX as u64);
                }
                if self.is(Flaw::Orphans) {
                    row.parent = None;
                }
                let mut memory = self.memory.lock().unwrap();
                memory.workers.insert(row.run, row.worker);
            }
            Write::PutSnapshot(new) if self.is(Flaw::NewestSnapshot) => {
                let old = self.inner.snapshot(new.run).await.unwrap();
                if old.is_some_and(|old| old.seq > new.seq) {
                    return None;
                }
            }
            Write::PutBlob { digest, bytes } if self.is(Flaw::ReplacesBlobs) => {
                self.memory.lock().unwrap().blobs.insert(*digest, bytes.to_vec());
            }
            Write::AddInbox(item) if self.is(Flaw::ForgetsTakenKeys) => {
                let waiting = self.inner.inbox(item.run, usize::MAX).await.unwrap();
                if !waiting.iter().any(|waiting| waiting.key.split('#').next() == Some(&item.key)) {
                    let mut memory = self.memory.lock().unwrap();
                    memory.renamed += 1;
                    item.key = format!("{}#{}", item.key, memory.renamed);
                }
            }
            Write::EndQuestion { .. } if self.is(Flaw::EternalQuestions) => return None,
            Write::ChangeDefinition { .. } if self.is(Flaw::FirstDefinition) => return None,
            Write::Notify(_) if self.is(Flaw::LosesNotices) => return None,
            Write::Notify(item) if self.is(Flaw::NoticesAreItems) => *write = Write::AddInbox(item.clone()),
            // No cap holds a notice back.
            Write::AddInbox(item) if self.is(Flaw::CountsNothing) => *write = Write::Notify(item.clone()),
            Write::PutRecord(record, place) => self.spoil_record(record, place).await,
            Write::Touch { table, key, place } if self.is(Flaw::TouchIsAWrite) => {
                let held = Query::Key(*table, RecordId([200; 16]), key.clone());
                let held = self.inner.records(held).await.unwrap().pop().filter(|record| record.place < *place)?;
                *write = Write::PutRecord(Box::new(held), Place::At(*place));
            }
            Write::Touch { .. } if self.is(Flaw::LosesTouches) => return None,
            Write::DeleteScope(..) if self.is(Flaw::KeepsScopes) => return None,
            Write::EraseFeed(_) if self.is(Flaw::KeepsFeeds) => return None,
            Write::Publish(item) if self.is(Flaw::ForgetsOf) => item.of = None,
            _ => {}
        }
        Some(())
    }

    async fn spoil_record(&self, record: &mut Record, place: &mut Place) {
        let old = self.inner.records(Query::Record(record.table, record.id)).await.unwrap().pop();
        match self.flaw {
            Flaw::KeepsPlaces if *place == Place::Next => *place = Place::Keep,
            Flaw::CountsRows if *place == Place::Next => {
                let (table, scope) = (record.table, record.scope);
                let list = List { table, scope, beyond: None, newest_first: false, limit: usize::MAX };
                let rows = self.inner.records(Query::List(list)).await.unwrap().len();
                *place = Place::At(rows as u64 + 1);
            }
            Flaw::MovesScopes if old.is_some_and(|old| old.scope != record.scope) => {
                let gone = vec![Write::DeleteRecord(record.table, record.id)];
                self.inner.commit(Batch { expect: Vec::new(), writes: gone }).await.unwrap();
            }
            Flaw::KeepsWords => {
                let words = &mut self.memory.lock().unwrap().words;
                match &record.words {
                    Some(text) => drop(words.insert(record.id, text.clone())),
                    None => record.words = words.get(&record.id).cloned(),
                }
            }
            Flaw::CutsAtNul => {
                let kept = record.body.iter().take_while(|byte| **byte != 0).count();
                record.body.truncate(kept);
            }
            Flaw::CutsLarge => record.body.truncate(1 << 20),
            _ => {}
        }
    }

    async fn answer(&self, batch: &Batch, result: Result<Receipt, StoreError>) -> Result<Receipt, StoreError> {
        let committed = Ok(Receipt { group: 1 });
        match (&result, self.flaw) {
            (Err(StoreError::Conflict(expectation)), Flaw::Denies(kind)) if kind.is(expectation) => committed,
            (Err(StoreError::Conflict(_)), Flaw::HalfBatches) => {
                let first = batch.writes.first().cloned().into_iter().collect();
                let _ = self.inner.commit(Batch { expect: Vec::new(), writes: first }).await;
                result
            }
            (Err(StoreError::Conflict(_)), Flaw::NumbersGetLost) => {
                for write in &batch.writes {
                    let Write::PutRecord(record, _) = write else { continue };
                    let lost = Record { id: RecordId([250; 16]), key: None, ..(**record).clone() };
                    let gone = Write::DeleteRecord(lost.table, lost.id);
                    let writes = vec![Write::PutRecord(Box::new(lost), Place::Next), gone];
                    self.inner.commit(Batch { expect: Vec::new(), writes }).await.unwrap();
                }
                result
            }
            (Err(_), Flaw::LosesNeighbours) => {
                self.memory.lock().unwrap().failed = true;
                result
            }
            _ => result,
        }
    }
}

#[async_trait]
impl Store for Broken {
    async fn commit(&self, mut batch: Batch) -> Result<Receipt, StoreError> {
        let commits = {
            let mut memory = self.memory.lock().unwrap();
            memory.commits += 1;
            if std::mem::take(&mut memory.failed) {
                return Ok(Receipt { group: 1 });
            }
            memory.commits
        };
        if self.is(Flaw::LosesSome) && commits.is_multiple_of(40) {
            return Ok(Receipt { group: 1 });
        }
        if self.is(Flaw::HintsPileUp) && commits > 1_024 {
            return Err(StoreError::Unavailable("hints pile up".to_owned()));
        }
        if self.is(Flaw::NothingIsAnError) && batch.writes.is_empty() {
            return Err(StoreError::Unavailable("nothing to do".to_owned()));
        }
        self.expect(&mut batch).await?;
        self.stops(&batch).await?;
        let mut writes = Vec::new();
        for mut write in std::mem::take(&mut batch.writes) {
            if self.spoil(&mut write).await.is_some() {
                writes.push(write);
            }
        }
        batch.writes = writes;
        let result = self.inner.commit(batch.clone()).await;
        self.answer(&batch, result).await
    }

    async fn claim(&self, mut claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        let only = claim.only;
        match self.flaw {
            Flaw::Robs => claim.now = TimeMs(i64::MAX),
            Flaw::Hasty => claim.now = claim.now.after(1_000),
            Flaw::Greedy => claim.limit = usize::MAX,
            Flaw::WantsReasons => claim.only = None,
            Flaw::AnyMajor => claim.loops.iter_mut().for_each(|runnable| runnable.major = None),
            Flaw::AnyDefinition => claim.loops.iter_mut().for_each(|runnable| runnable.definition = None),
            _ => {}
        }
        let mut claimed = self.inner.claim(claim).await?;
        match self.flaw {
            Flaw::WantsEntries => claimed.retain(|claimed| claimed.row.head > Seq(0)),
            Flaw::NeverCrashed => claimed.iter_mut().for_each(|claimed| claimed.crashed = false),
            Flaw::OldEpoch => claimed.iter_mut().for_each(|claimed| claimed.row.epoch.0 -= 1),
            Flaw::WantsReasons => claimed.retain(|claimed| only.is_none_or(|only| claimed.row.run == only)),
            Flaw::GivesTwice if !claimed.is_empty() => {
                let mut memory = self.memory.lock().unwrap();
                let before = std::mem::replace(&mut memory.given, claimed.clone());
                claimed.extend(before);
            }
            _ => {}
        }
        Ok(claimed)
    }

    async fn heartbeat(&self, worker: WorkerId, until: TimeMs) -> Result<(), StoreError> {
        let until = if self.is(Flaw::KeepsLeases) { TimeMs(i64::MAX) } else { until };
        self.inner.heartbeat(worker, until).await
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        let mut row = self.inner.run(run).await?;
        if let Some(row) = &mut row
            && self.is(Flaw::StaleRows)
        {
            row.worker = self.memory.lock().unwrap().workers.get(&run).copied().flatten();
        }
        Ok(row)
    }

    async fn runs(&self, mut filter: RunFilter) -> Result<Page<RunRow>, StoreError> {
        if self.is(Flaw::AnyParent) {
            filter.parent = None;
        }
        if !self.is(Flaw::OffsetPages) {
            let mut page = self.inner.runs(filter).await?;
            if self.is(Flaw::OnePage) {
                page.next = None;
            }
            return Ok(page);
        }
        let skip = match filter.before {
            None => 0,
            Some(cursor) => self.memory.lock().unwrap().offsets.get(&cursor).copied().unwrap_or(usize::MAX),
        };
        let all = self.inner.runs(RunFilter { before: None, limit: usize::MAX, ..filter.clone() }).await?;
        let rows = all.items.into_iter().skip(skip).take(filter.limit + 1).collect();
        let page = Page::of_rows(rows, filter.limit);
        if let Some(next) = page.next {
            self.memory.lock().unwrap().offsets.insert(next, skip + page.items.len());
        }
        Ok(page)
    }

    async fn entries(&self, run: RunId, after: Seq, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let mut entries = self.inner.entries(run, after, limit).await?;
        if self.is(Flaw::EntriesBackwards) {
            entries.reverse();
        }
        if self.is(Flaw::LateEntries) && limit == usize::MAX {
            entries.pop();
        }
        Ok(entries)
    }

    async fn snapshot(&self, run: RunId) -> Result<Option<Snapshot>, StoreError> {
        self.inner.snapshot(run).await
    }

    async fn inbox(&self, run: RunId, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
        let mut items = self.inner.inbox(run, limit).await?;
        if self.is(Flaw::InboxByKey) {
            items.sort_by(|a, b| a.key.cmp(&b.key));
        }
        if self.is(Flaw::CutsAtNul) {
            items.iter_mut().for_each(|item| {
                if let InboxBody::Signal { body, .. } = &mut item.body {
                    *body = body.split('\0').next().unwrap_or_default().to_owned();
                }
            });
        }
        Ok(items)
    }

    async fn questions(&self, run: Option<RunId>, limit: usize) -> Result<Vec<QuestionRow>, StoreError> {
        self.inner.questions(run, limit).await
    }

    async fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        if self.is(Flaw::ReplacesBlobs) {
            return Ok(self.memory.lock().unwrap().blobs.get(&digest).cloned());
        }
        self.inner.blob(digest).await
    }

    async fn next_wake(&self) -> Result<Option<TimeMs>, StoreError> {
        if !self.is(Flaw::WakesAll) {
            return self.inner.next_wake().await;
        }
        let all = self.inner.runs(RunFilter { limit: usize::MAX, ..RunFilter::default() }).await?;
        Ok(all.items.iter().filter_map(|row| row.wake_at).min())
    }

    async fn records(&self, mut query: Query) -> Result<Vec<Record>, StoreError> {
        match &mut query {
            Query::List(list) if self.is(Flaw::SkipsPlaces) => {
                list.beyond = list.beyond.map(|(place, _)| (place, RecordId([0xff; 16])));
            }
            Query::Search { text, .. } if self.is(Flaw::FirstWord) => {
                *text = text.split_whitespace().next().unwrap_or_default().to_owned();
            }
            Query::Search { text, .. } if self.is(Flaw::Operators) && text.contains(['"', '(', '*']) => {
                return Err(StoreError::Unavailable("fts5: syntax error".to_owned()));
            }
            _ => {}
        }
        let mut records = self.inner.records(query.clone()).await?;
        match (self.flaw, query) {
            (Flaw::OneRevision, _) => records.iter_mut().for_each(|record| record.rev = 1),
            (Flaw::DueByIdentity, Query::Due { .. }) | (Flaw::SortsThese, Query::These(..)) => {
                records.sort_by_key(|record| record.id);
            }
            _ => {}
        }
        Ok(records)
    }

    async fn feed(&self, feed: Feed, after: u64, limit: usize) -> Result<Vec<FeedItem>, StoreError> {
        let after = if self.is(Flaw::AfterIsAt) { after.saturating_sub(1) } else { after };
        let mut items = self.inner.feed(feed, after, limit).await?;
        while self.is(Flaw::FeedUncapped) && items.len() < limit {
            let after = items.last().map_or(after, |item| item.position);
            match self.inner.feed(feed, after, limit - items.len()).await? {
                more if more.is_empty() => break,
                more => items.extend(more),
            }
        }
        Ok(items)
    }

    async fn feed_heads(&self, feeds: &[Feed]) -> Result<Vec<u64>, StoreError> {
        self.inner.feed_heads(feeds).await
    }

    async fn counter(&self, counter: Counter) -> Result<u64, StoreError> {
        self.inner.counter(counter).await
    }

    fn hints(&self) -> Hints {
        if self.is(Flaw::Mute) { self.mute.subscribe() } else { self.inner.hints() }
    }
}

#[async_trait]
impl Subject for Broken {
    fn features(&self) -> Features {
        Features { durable: true, clients: true, damage: self.is(Flaw::Blind) }
    }

    async fn open(&self) -> Result<Handle, StoreError> {
        if self.is(Flaw::Forgets) {
            return Ok(Arc::new(Self::new(Flaw::None)));
        }
        Ok(Arc::new(self.clone()))
    }

    async fn client(&self) -> Result<Handle, StoreError> {
        if self.is(Flaw::TrustsClients) {
            return self.open().await;
        }
        Ok(Arc::new(Self { inner: self.inner.client(), ..self.clone() }))
    }

    async fn damage(&self, _: RunId, _: Seq) -> Result<(), StoreError> {
        Ok(())
    }
}

fn flaws() -> Vec<(Flaw, &'static [&'static str])> {
    vec![
        (Flaw::AnyEpoch, &["a_wrong_epoch_is_fenced", "a_claim_raises_the_epoch_and_fences"]),
        (Flaw::SeqFirst, &["the_epoch_is_looked_at_first"]),
        (Flaw::AnySeq, &["a_wrong_seq_is_a_conflict"]),
        (
            Flaw::HalfBatches,
            &["a_batch_is_all_or_nothing", "a_group_isolates_its_members", "record_writes_are_all_or_nothing"],
        ),
        (Flaw::LosesNeighbours, &["a_group_isolates_its_members"]),
        (
            Flaw::LosesSome,
            &["appenders_do_not_disturb_each_other", "the_chain_verifies_after_reopening", "publishers_leave_no_gap"],
        ),
        (Flaw::Denies(Kind::Head), &["appends_are_dense", "one_of_many_wins_each_seq"]),
        (Flaw::Denies(Kind::Run), &["a_run_is_created_once", "an_unknown_run_is_a_conflict"]),
        (
            Flaw::Denies(Kind::Admission),
            &["admission_keys_are_unique_per_tenant", "one_of_many_wins_an_admission_key", "keys_survive_reopening"],
        ),
        (Flaw::Denies(Kind::Sealed), &["a_sealed_run_takes_no_items"]),
        (Flaw::Denies(Kind::InboxFull), &["an_inbox_is_capped", "an_inbox_is_capped_in_bytes"]),
        (Flaw::Denies(Kind::ItemTooLarge), &["an_item_is_capped_in_bytes"]),
        (Flaw::CountsNothing, &["an_item_is_capped_in_bytes", "an_inbox_is_capped_in_bytes", "an_inbox_is_capped"]),
        (Flaw::NoReserve, &["an_inbox_is_capped_in_bytes"]),
        (Flaw::FirstDefinition, &["a_definition_changes_and_nothing_else"]),
        (Flaw::AnyMajor, &["a_claim_takes_only_what_its_worker_can_drive"]),
        (Flaw::AnyDefinition, &["a_claim_takes_only_what_its_worker_can_drive"]),
        (Flaw::WantsEntries, &["a_run_without_entries_is_claimed"]),
        (Flaw::Orphans, &["children_are_listed_by_their_parent", "a_run_reads_back_whole"]),
        (Flaw::AnyParent, &["children_are_listed_by_their_parent"]),
        (Flaw::NoticesAreItems, &["a_notice_never_fails_its_batch", "an_inbox_is_capped_in_bytes"]),
        (Flaw::LosesNotices, &["a_notice_never_fails_its_batch"]),
        (Flaw::NothingIsAnError, &["an_empty_batch_changes_nothing"]),
        (Flaw::ForgetsTakenKeys, &["inbox_keys_are_known_for_ever", "keys_survive_reopening"]),
        (Flaw::InboxByKey, &["inbox_items_wait_in_order_until_taken"]),
        (Flaw::EntriesBackwards, &["a_run_reads_back_whole", "readers_see_whole_prefixes"]),
        (Flaw::LateEntries, &["readers_see_whole_prefixes"]),
        (Flaw::StaleRows, &["a_run_reads_back_whole", "a_claim_raises_the_epoch_and_fences"]),
        (
            Flaw::CutsAtNul,
            &["odd_bytes_come_back_exactly", "large_bodies_come_back_exactly", "records_and_items_hold_any_bytes"],
        ),
        (Flaw::CutsLarge, &["large_bodies_come_back_exactly", "records_and_items_hold_any_bytes"]),
        (Flaw::Clamps, &["numbers_come_back_at_their_limits"]),
        (Flaw::NewestSnapshot, &["a_snapshot_is_replaced"]),
        (Flaw::ReplacesBlobs, &["a_blob_is_stored_once"]),
        (Flaw::EternalQuestions, &["questions_are_listed_until_they_end"]),
        (Flaw::OnePage, &["lists_filter_and_page"]),
        (Flaw::OffsetPages, &["pages_hold_while_runs_are_added"]),
        (Flaw::TrustsClients, &["a_client_only_adds_inbox_items"]),
        (Flaw::Robs, &["a_live_worker_keeps_its_runs", "a_claim_takes_what_is_due_and_nothing_else"]),
        (Flaw::KeepsLeases, &["a_lapsed_worker_loses_its_runs"]),
        (Flaw::NeverCrashed, &["a_lapsed_worker_loses_its_runs"]),
        (Flaw::OldEpoch, &["a_claim_raises_the_epoch_and_fences"]),
        (Flaw::Greedy, &["a_claim_is_limited_and_fair"]),
        (Flaw::Hasty, &["a_claim_takes_what_is_due_and_nothing_else"]),
        (Flaw::WantsReasons, &["a_claim_of_one_run_needs_no_reason"]),
        (Flaw::GivesTwice, &["two_claimers_never_get_the_same_run"]),
        (Flaw::WakesAll, &["next_wake_is_the_earliest_that_a_claim_would_take"]),
        (Flaw::Mute, &["listeners_hear_what_was_committed", "listeners_hear_of_a_feed"]),
        (Flaw::HintsPileUp, &["a_slow_listener_holds_up_nobody"]),
        (
            Flaw::Forgets,
            &["reopening_keeps_everything", "the_chain_verifies_after_reopening", "reopening_keeps_what_surrounds"],
        ),
        (Flaw::Blind, &["damage_is_found_and_named"]),
        (Flaw::AnyRevision, &["a_revision_is_compared", "one_of_many_wins_each_revision"]),
        (Flaw::OneRevision, &["a_record_reads_back_whole", "one_of_many_wins_each_revision"]),
        (Flaw::KeepsPlaces, &["places_are_numbered_in_order"]),
        (Flaw::CountsRows, &["a_number_is_given_once", "places_are_numbered_in_order"]),
        (Flaw::NumbersGetLost, &["a_number_is_given_once", "numbers_leave_no_gap", "record_writes_are_all_or_nothing"]),
        (Flaw::MovesScopes, &["a_record_stays_in_its_scope"]),
        (Flaw::Denies(Kind::RecordKey), &["keys_are_unique_per_table_and_scope", "reopening_keeps_what_surrounds"]),
        (Flaw::LosesTouches, &["a_touch_moves_what_is_behind", "an_item_keeps_where_its_record_stood"]),
        (Flaw::TouchIsAWrite, &["a_touch_moves_what_is_behind"]),
        (Flaw::KeepsScopes, &["what_is_removed_is_gone", "a_number_is_given_once", "words_find_records"]),
        (Flaw::DueByIdentity, &["what_is_due_is_found"]),
        (Flaw::SortsThese, &["records_come_in_the_order_asked"]),
        (Flaw::SkipsPlaces, &["a_list_is_paged_by_place_and_identity"]),
        (Flaw::FirstWord, &["words_find_records", "no_sign_is_an_operator"]),
        (Flaw::Operators, &["no_sign_is_an_operator"]),
        (Flaw::KeepsWords, &["words_find_records", "what_is_removed_is_gone"]),
        (Flaw::AfterIsAt, &["a_feed_is_numbered_without_a_gap"]),
        (Flaw::FeedUncapped, &["a_part_of_a_feed_is_capped_in_bytes"]),
        (Flaw::ForgetsOf, &["an_item_keeps_where_its_record_stood"]),
        (Flaw::KeepsFeeds, &["an_erased_feed_goes_on"]),
        (Flaw::Denies(Kind::Counter), &["a_counter_is_bounded", "a_bound_holds_when_many_count"]),
    ]
}

#[test]
fn each_flaw_fails_its_cases() {
    for (flaw, cases) in flaws() {
        for case in cases {
            let verdict = check(case, Broken::new(flaw));
            assert!(verdict.is_err(), "{flaw:?} passes {case}: {verdict:?}");
        }
    }
}

#[test]
fn every_case_is_failed_by_some_flaw() {
    let failed: BTreeSet<_> = flaws().into_iter().flat_map(|(_, cases)| cases).copied().collect();
    let all: BTreeSet<_> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(failed, all);
}

#[test]
fn the_wrapper_alone_breaks_nothing() {
    for case in CASES {
        let verdict = check(case.name, Broken::new(Flaw::None));
        assert!(matches!(verdict, Ok(Verdict::Passed | Verdict::NotApplicable)), "{}: {verdict:?}", case.name);
    }
}

#[test]
fn an_unknown_case_is_a_finding() {
    let finding: Result<Verdict, Finding> = check("no_such_case", Broken::new(Flaw::None));
    assert_eq!(finding.unwrap_err().to_string(), "there is no case no_such_case");
}
