//! What the traced child does, known in advance to the byte, and whether a store holds a beginning of it.

use crate::series::Verdict;
use crate::support::{creation, row, signal, step};
use loopd_kernel::{Entry, RunId, Seq};
use loopd_store::{Batch, InboxItem, RunFilter, RunRow, Store, StoreError, Write};
use loopd_store_sqlite::SqliteStore;
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Runs that step at the same time, so that commits share flushes.
const RUNS: u8 = 12;
/// Steps of each, half of them after the store was closed and opened again. Enough for the log to be copied back
/// into the database and begun anew in both halves.
const STEPS: usize = 96;
/// Items that a client sends meanwhile, through a connection of its own.
const ITEMS: usize = 48;
/// The Run that gets them.
const ADDRESSEE: u8 = 0;

/// Says that something is durable, in one call.
pub fn acknowledge(what: &str) {
    std::io::stderr().write_all(format!("ack {what}\n").as_bytes()).unwrap();
}

/// Bytes of payload of a step: from less than a page to several.
fn payload(n: u8, step: usize) -> usize {
    200 + (usize::from(n) * 977 + step * 1_319) % 6_000
}

fn key(n: usize) -> String {
    format!("item {n}")
}

/// Lives the story, and acknowledges each commit after it returned.
pub async fn live(path: &Path) {
    let mut rows: Vec<RunRow> = (0..RUNS).map(row).collect();
    for half in 0..2 {
        let driver = Arc::new(SqliteStore::open_driver(path).unwrap());
        let client = SqliteStore::open_client(path).unwrap();
        let mut tasks = Vec::new();
        for (n, mut row) in (0..RUNS).zip(rows.drain(..)) {
            let store = Arc::clone(&driver);
            tasks.push(tokio::spawn(async move {
                if half == 0 {
                    store.commit(creation(&row)).await.unwrap();
                    acknowledge(&format!("run {n} 0 {}", row.hash.text()));
                }
                for number in half * STEPS / 2..(half + 1) * STEPS / 2 {
                    store.commit(step(&mut row, payload(n, number))).await.unwrap();
                    acknowledge(&format!("run {n} {} {}", row.head.0, row.hash.text()));
                }
                row
            }));
        }
        let items = tokio::spawn(async move {
            for n in half * ITEMS / 2..(half + 1) * ITEMS / 2 {
                // The very first may come before its Run does.
                while client.commit(signal(RunId([ADDRESSEE; 16]), &key(n))).await.is_err() {
                    tokio::task::yield_now().await;
                }
                acknowledge(&key(n));
            }
        });
        for task in tasks {
            rows.push(task.await.unwrap());
        }
        items.await.unwrap();
    }
}

/// All that will have been.
pub struct Story {
    /// Of each Run, the row after each number of steps.
    rows: Vec<Vec<RunRow>>,
    /// Of each Run, the Batches between them.
    steps: Vec<Vec<Batch>>,
    /// Of each Run, all Entries.
    entries: Vec<Vec<Entry>>,
}

/// What a store has to hold at least.
struct Promised<'a> {
    /// Of each Run, the Seq and the hash of the newest acknowledgement.
    runs: BTreeMap<u8, (u64, &'a str)>,
    items: BTreeSet<&'a str>,
}

impl Story {
    /// The same each time.
    pub fn new() -> Self {
        let (mut rows, mut steps, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        for n in 0..RUNS {
            let mut row = row(n);
            let mut of_run = vec![row.clone()];
            let batch = |number| {
                let batch = step(&mut row, payload(n, number));
                of_run.push(row.clone());
                batch
            };
            let batches: Vec<Batch> = (0..STEPS).map(batch).collect();
            entries.push(batches.iter().flat_map(appended).cloned().collect());
            steps.push(batches);
            rows.push(of_run);
        }
        Self { rows, steps, entries }
    }

    /// How many acknowledgements a whole life has.
    pub fn acknowledgements(&self) -> usize {
        self.rows.iter().map(Vec::len).sum::<usize>() + ITEMS
    }

    /// Opens what a cut left, and compares.
    pub fn judge(&self, path: &Path, acks: &[&str]) -> Verdict {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut verdict = Verdict::default();
        let store = match SqliteStore::open_driver(path) {
            Ok(store) => store,
            Err(error) => {
                verdict.broken.push(format!("it does not open: {error:?}"));
                return verdict;
            }
        };
        let compared = runtime.block_on(self.compare(&store, &promised(acks), &mut verdict));
        if let Err(error) = compared {
            verdict.broken.push(format!("it does not read: {error:?}"));
        }
        drop(store);
        verdict.broken.extend(damage(path));
        verdict
    }

    async fn compare(
        &self,
        store: &SqliteStore,
        promised: &Promised<'_>,
        verdict: &mut Verdict,
    ) -> Result<(), StoreError> {
        let mut there = 0;
        for n in 0..RUNS {
            let steps = self.compare_run(store, n, promised, verdict).await?;
            there += usize::from(steps.is_some());
            // And the story goes on.
            if let Some(steps) = steps.filter(|steps| *steps < STEPS) {
                let next = &self.rows[usize::from(n)][steps + 1];
                store.commit(self.steps[usize::from(n)][steps].clone()).await?;
                if store.run(next.run).await?.as_ref() != Some(next) {
                    verdict.broken.push(format!("run {n} does not go on after {steps} steps"));
                }
            }
        }
        if store.runs(RunFilter { limit: usize::from(RUNS) + 1, ..RunFilter::default() }).await?.items.len() != there {
            verdict.broken.push("there is a run that nobody created".to_owned());
        }
        let inbox = store.inbox(RunId([ADDRESSEE; 16]), usize::MAX).await?;
        let found: BTreeSet<_> = inbox.iter().map(|item| item.key.as_str()).collect();
        let of_story = |item: &&InboxItem| {
            let number = (0..ITEMS).find(|n| key(*n) == item.key);
            let batch = number.map(|n| signal(item.run, &key(n)));
            let Some([Write::AddInbox(sent)]) = batch.as_ref().map(|batch| &batch.writes[..]) else { return false };
            (sent.at, &sent.body) == (item.at, &item.body)
        };
        if found.len() != inbox.len() || inbox.iter().filter(of_story).count() != inbox.len() {
            verdict.broken.push(format!("nobody sent such items: {inbox:?}"));
        }
        verdict.lost.extend(promised.items.difference(&found).map(|key| (*key).to_owned()));
        Ok(())
    }

    /// How many steps are there, when the Run is there and whole.
    async fn compare_run(
        &self,
        store: &SqliteStore,
        n: u8,
        promised: &Promised<'_>,
        verdict: &mut Verdict,
    ) -> Result<Option<usize>, StoreError> {
        let (rows, entries) = (&self.rows[usize::from(n)], &self.entries[usize::from(n)]);
        let promised = promised.runs.get(&n);
        let Some(row) = store.run(RunId([n; 16])).await? else {
            verdict.lost.extend(promised.map(|(seq, _)| format!("run {n}, acknowledged up to {seq}, is gone")));
            return Ok(None);
        };
        // The row says how far it came; every byte of it and of its Journal follows from that.
        let Some(steps) = rows.iter().position(|known| *known == row) else {
            verdict.broken.push(format!("run {n} never was {row:?}"));
            return Ok(None);
        };
        if store.entries(row.run, Seq(0), usize::MAX).await? != entries[..row.head.0 as usize] {
            verdict.broken.push(format!("the journal of run {n} is not its {} entries", row.head));
            return Ok(None);
        }
        if let Some((seq, hash)) = promised {
            if row.head.0 < *seq {
                verdict.lost.push(format!("run {n} ends at {}, acknowledged was {seq}", row.head));
            } else if *seq > 0 && entries[*seq as usize - 1].hash.text() != *hash {
                verdict.broken.push(format!("run {n} has another entry {seq} than was acknowledged"));
            }
        }
        Ok(Some(steps))
    }
}

fn appended(batch: &Batch) -> &[Entry] {
    let appended = batch.writes.iter().find_map(|write| match write {
        Write::Append { entries, .. } => Some(&entries[..]),
        _ => None,
    });
    appended.unwrap_or_default()
}

fn promised<'a>(acks: &[&'a str]) -> Promised<'a> {
    let mut promised = Promised { runs: BTreeMap::new(), items: BTreeSet::new() };
    for ack in acks {
        match ack.split(' ').collect::<Vec<_>>()[..] {
            ["run", n, seq, hash] => drop(promised.runs.insert(n.parse().unwrap(), (seq.parse().unwrap(), hash))),
            ["item", _] => drop(promised.items.insert(ack)),
            _ => panic!("who acknowledged {ack:?}?"),
        }
    }
    promised
}

/// What SQLite itself finds wrong with a file.
pub fn damage(path: &Path) -> Vec<String> {
    let asked = |sql: &str| -> rusqlite::Result<Vec<String>> {
        let conn = Connection::open(path)?;
        let mut statement = conn.prepare(sql)?;
        statement.query_map([], |row| row.get(0))?.collect()
    };
    let mut found = asked("PRAGMA integrity_check").unwrap_or_else(|error| vec![error.to_string()]);
    found.retain(|line| line != "ok");
    found.extend(asked("PRAGMA foreign_key_check").unwrap_or_else(|error| vec![error.to_string()]));
    found
}
