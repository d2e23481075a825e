//! What a step costs, in counts that do not depend on the machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use loopd_kernel::Seq;
use loopd_store::{Batch, Store};
use loopd_store_sqlite::SqliteStore;
use rusqlite::Connection;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use support::{creation, row, step};
use tempfile::TempDir;

/// Bytes that the caller hands over per step, records and salts aside.
const PAYLOAD: usize = 700;

/// The size of the closed file after this many steps of one Run.
async fn stored(path: &Path, steps: u64) -> u64 {
    let store = SqliteStore::open_driver(path).unwrap();
    let mut own = row(1);
    store.commit(creation(&own)).await.unwrap();
    for _ in 0..steps {
        store.commit(step(&mut own, PAYLOAD)).await.unwrap();
    }
    assert_eq!(own.head, Seq(3 * steps));
    drop(store);
    assert!(!path.with_extension("db-wal").exists(), "closing leaves no log behind");
    fs::metadata(path).unwrap().len()
}

#[tokio::test]
async fn stored_bytes_stay_near_the_payload_and_do_not_grow_with_the_run() {
    let folder = TempDir::new().unwrap();
    let mut sizes = Vec::new();
    for steps in [0, 100, 400, 1_600] {
        sizes.push(stored(&folder.path().join(format!("{steps}.db")), steps).await as f64);
    }
    let [empty, hundred, some, many] = sizes[..] else { panic!("{sizes:?}") };
    let (early, late) = ((hundred - empty) / 100.0, (many - some) / 1_200.0);
    let allowed = 1.3 * (PAYLOAD as f64 + 600.0);
    assert!(early <= allowed && late <= allowed, "{early} and {late} bytes per step, allowed are {allowed}");
    assert!((late / early - 1.0).abs() < 0.05, "{early} bytes per step at first, {late} later");
}

#[tokio::test]
async fn a_step_is_one_flush_of_few_pages() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("loopd.db");
    let store = SqliteStore::open_driver(&path).unwrap();
    let mut own = row(1);
    store.commit(creation(&own)).await.unwrap();
    let wal = || fs::metadata(folder.path().join("loopd.db-wal")).unwrap().len() as f64;
    let (before, log) = (store.stats(), wal());
    let steps = 200;
    for _ in 0..steps {
        assert_eq!(store.commit(step(&mut own, PAYLOAD)).await.unwrap().group, 1);
    }
    let after = store.stats();
    assert_eq!((after.groups - before.groups, after.batches - before.batches), (steps, steps));
    // Pages of 2 KiB: the run row, the index, one or two of Entries; where the file grows, its first page and the
    // page above the new one.
    let pages = (wal() - log) / f64::from(2_048 + 24) / steps as f64;
    assert!(pages < 5.0, "{pages} pages per step");

    // What changes nothing flushes nothing.
    for _ in 0..10 {
        let none = loopd_store::Claim {
            worker: support::WORKER,
            now: loopd_kernel::TimeMs(i64::MIN),
            loops: vec![loopd_store::Runnable::any("none")],
            limit: 10,
            only: None,
        };
        assert_eq!(store.claim(none).await.unwrap(), Vec::new());
        store.commit(loopd_store::Batch::default()).await.unwrap();
    }
    assert_eq!(store.stats().groups, after.groups);
}

/// Sends all Batches while somebody else holds the file, so that they wait together however slow the machine is.
async fn commit_together(store: &Arc<SqliteStore>, file: &Connection, batches: Vec<Batch>) {
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    let commits: Vec<_> = batches
        .into_iter()
        .map(|batch| {
            let store = Arc::clone(store);
            tokio::spawn(async move { store.commit(batch).await.unwrap() })
        })
        .collect();
    // The runtime has one thread: each commit runs up to its wait for the writer before this goes on.
    tokio::task::yield_now().await;
    file.execute_batch("ROLLBACK").unwrap();
    for commit in commits {
        commit.await.unwrap();
    }
}

#[tokio::test]
async fn runs_that_step_together_share_flushes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("loopd.db");
    let store = Arc::new(SqliteStore::open_driver(&path).unwrap());
    let file = Connection::open(&path).unwrap();
    let before = store.stats();
    let mut runs: Vec<_> = (0..100).map(row).collect();
    commit_together(&store, &file, runs.iter().map(creation).collect()).await;
    for _ in 0..20 {
        commit_together(&store, &file, runs.iter_mut().map(|run| step(run, PAYLOAD)).collect()).await;
    }
    let after = store.stats();
    assert_eq!(after.batches - before.batches, 2_100);
    // The writer may have taken the first few before the others came: two groups for each of the 21 rounds.
    let groups = after.groups - before.groups;
    assert!(groups <= 42, "{groups} flushes for 2100 batches");
}
