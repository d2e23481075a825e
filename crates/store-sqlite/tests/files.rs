//! The file itself: what is no store, what is too new, what is full, what is damaged, and copies.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use loopd_kernel::{RunId, Seq};
use loopd_store::{Batch, RunFilter, Store, StoreError, Write};
use loopd_store_sqlite::SqliteStore;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use support::{creation, row, signal, step, verified};
use tempfile::TempDir;

fn error(path: impl AsRef<Path>) -> StoreError {
    SqliteStore::open_driver(path).map(|_| ()).unwrap_err()
}

/// Every file of a folder and what it holds.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.map(|path| (path.display().to_string(), fs::read(&path).unwrap())).collect()
}

#[test]
fn a_place_that_cannot_be_used_is_named() {
    let folder = TempDir::new().unwrap();
    let new = folder.path().join("a/b/c/loopd.db");
    drop(SqliteStore::open_driver(&new).unwrap());
    assert!(new.exists());

    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    // `/proc` takes no new files from anybody, also not from root.
    let places = [file.join("loopd.db"), folder.path().join("a"), "/proc/self/loopd.db".into()];
    for place in places {
        let error = error(&place);
        let StoreError::Unavailable(text) = &error else { panic!("{error:?}") };
        assert!(text.contains(place.to_str().unwrap()), "{text}");
    }
}

#[test]
fn what_is_no_store_is_refused_untouched() {
    let folder = TempDir::new().unwrap();
    let (text, other) = (folder.path().join("text"), folder.path().join("other.db"));
    fs::write(&text, "Dear diary, ".repeat(100)).unwrap();
    let conn = Connection::open(&other).unwrap();
    conn.execute_batch("CREATE TABLE song (title TEXT); INSERT INTO song VALUES ('loop');").unwrap();
    drop(conn);
    let before = files(folder.path());
    let display = |path: &Path| path.display().to_string();
    let expected = [
        (&text, format!("{} is not a database", display(&text))),
        (&other, format!("{} is a database of another program", display(&other))),
    ];
    for (path, text) in expected {
        assert_eq!(error(path), StoreError::Corrupt(text.clone()));
        assert_eq!(SqliteStore::open_client(path).map(|_| ()), Err(StoreError::Corrupt(text)));
    }
    assert_eq!(files(folder.path()), before);
}

#[test]
fn a_newer_schema_is_refused_untouched() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("loopd.db");
    drop(SqliteStore::open_driver(&path).unwrap());
    let migrated = "INSERT INTO refinery_schema_history VALUES (7, 'later', '2030-01-01T00:00:00Z', '1')";
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(migrated).unwrap();
    drop(conn);
    // Newer, but this build may still read it.
    drop(SqliteStore::open_driver(&path).unwrap());
    drop(SqliteStore::open_client(&path).unwrap());

    let conn = Connection::open(&path).unwrap();
    conn.pragma_update(None, "user_version", 5).unwrap();
    drop(conn);
    let before = files(folder.path());
    let too_new = StoreError::TooNew { found: 7, supported: 3 };
    assert_eq!(error(&path), too_new);
    assert_eq!(SqliteStore::open_client(&path).map(|_| ()), Err(too_new.clone()));
    assert_eq!(files(folder.path()), before);
    assert_eq!(too_new.to_string(), "the store has schema 7; this build reads up to 3: use a newer loopd");
}

fn blob(n: u8, bytes: usize) -> Batch {
    let bytes: Arc<[u8]> = vec![n; bytes].into();
    let digest = loopd_kernel::Digest::sha256(&[&bytes]);
    Batch { expect: Vec::new(), writes: vec![Write::PutBlob { digest, bytes }] }
}

/// Commits steps until the store is full; then nothing acknowledged is missing and nothing refused is there.
async fn fill(store: &SqliteStore) {
    let mut own = row(1);
    store.commit(creation(&own)).await.unwrap();
    let full = loop {
        let mut next = own.clone();
        match store.commit(step(&mut next, 30_000)).await {
            Ok(_) => own = next,
            Err(error) => break error,
        }
        assert!(own.head < Seq(3_000), "it never fills up");
    };
    assert!(matches!(full, StoreError::Full(_)), "{full:?}");
    assert_eq!(verified(store, own.run).await, own.head);
    assert!(own.head > Seq(0));
}

#[tokio::test]
async fn a_full_store_refuses_and_loses_nothing() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(SqliteStore::open_driver(folder.path().join("loopd.db")).unwrap());
    store.limit(1 << 20).await.unwrap();
    fill(&store).await;

    // A large Batch that finds no room does not take small neighbours of the same group with it.
    store.limit((1 << 20) + 100_000).await.unwrap();
    let large = (0..4).map(|n| blob(n, 400_000));
    let small = (0..20).map(|n| signal(RunId([1; 16]), &format!("key {n}")));
    let sent = large.chain(small).map(|batch| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.commit(batch).await })
    });
    let mut results = Vec::new();
    for sent in sent.collect::<Vec<_>>() {
        results.push(sent.await.unwrap());
    }
    let (large, small) = results.split_at(4);
    assert!(large.iter().all(|result| matches!(result, Err(StoreError::Full(_)))), "{large:?}");
    assert!(small.iter().all(Result::is_ok), "{small:?}");
    store.limit(64 << 20).await.unwrap();
    store.commit(blob(1, 400_000)).await.unwrap();
}

/// The real thing, where this process may mount: a disk of one megabyte.
#[tokio::test]
async fn a_full_disk_refuses_and_loses_nothing() {
    let folder = TempDir::new().unwrap();
    let mount = |arguments: &[&str]| Command::new("mount").args(arguments).arg(folder.path()).output();
    if !mount(&["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).is_ok_and(|output| output.status.success()) {
        return;
    }
    let store = SqliteStore::open_driver(folder.path().join("loopd.db")).unwrap();
    fill(&store).await;
    // Room again: it goes on.
    assert!(mount(&["-o", "remount,size=4m"]).unwrap().status.success());
    store.commit(signal(RunId([1; 16]), "key")).await.unwrap();
    drop(store);
    let store = SqliteStore::open_driver(folder.path().join("loopd.db")).unwrap();
    verified(&store, RunId([1; 16])).await;
    drop(store);
    assert!(Command::new("umount").arg(folder.path()).status().unwrap().success());
}

#[tokio::test]
async fn a_row_that_does_not_decode_is_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("loopd.db");
    let store = SqliteStore::open_driver(&path).unwrap();
    let mut own = row(1);
    store.commit(creation(&own)).await.unwrap();
    store.commit(step(&mut own, 100)).await.unwrap();
    store.commit(signal(own.run, "key")).await.unwrap();
    let conn = Connection::open(&path).unwrap();
    let damages = [
        ("kind = 9999", "unknown kind 9999"),
        ("kind = 70000 * 65536 + 1", "unknown format"),
        ("record_len = 100000", "the body is shorter than its record"),
        ("record_len = -1", "the length of the record is negative"),
        ("body = x'00'", "the body is shorter than its salt"),
        ("body = zeroblob(20)", "the body is shorter than its record"),
        ("body = CAST(zeroblob(16) || x'ffff' AS BLOB), record_len = 2", "the record is not text"),
        ("hash = x'00'", ""),
    ];
    for (damage, why) in damages {
        let mut undo = conn.prepare("SELECT kind, record_len, body, hash FROM entry WHERE seq = 2").unwrap();
        let before: (i64, i64, Vec<u8>, Vec<u8>) =
            undo.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
        conn.execute(&format!("UPDATE entry SET {damage} WHERE seq = 2"), []).unwrap();
        let found = store.entries(own.run, Seq(0), 10).await;
        let Err(StoreError::Corrupt(text)) = found else { panic!("{damage}: {found:?}") };
        assert!(text.starts_with(&format!("{} entry 2: ", own.run)) && text.contains(why), "{damage}: {text}");
        assert_eq!(store.entries(own.run, Seq(2), 10).await.unwrap().len(), 1);
        conn.execute("UPDATE entry SET kind = ?1, record_len = ?2, body = ?3, hash = ?4 WHERE seq = 2", before)
            .unwrap();
    }
    conn.execute("UPDATE inbox SET body = '{}'", []).unwrap();
    let found = store.inbox(own.run, 10).await;
    assert!(matches!(&found, Err(StoreError::Corrupt(text)) if text.contains("inbox item 1")), "{found:?}");
    conn.execute("UPDATE run SET status = 9", []).unwrap();
    let all = RunFilter { limit: 10, ..RunFilter::default() };
    for found in [store.run(own.run).await.map(|_| ()), store.runs(all).await.map(|_| ())] {
        assert!(
            matches!(&found, Err(StoreError::Corrupt(text)) if text.starts_with(&own.run.to_string())),
            "{found:?}"
        );
    }
}

#[tokio::test]
async fn a_file_with_torn_pages_is_corrupt_not_wrong() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("loopd.db");
    let store = SqliteStore::open_driver(&path).unwrap();
    let mut own = row(1);
    store.commit(creation(&own)).await.unwrap();
    for _ in 0..20 {
        store.commit(step(&mut own, 3_000)).await.unwrap();
    }
    drop(store);
    let mut bytes = fs::read(&path).unwrap();
    let keep = bytes.len() / 2;
    bytes[keep..].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let store = SqliteStore::open_driver(&path).unwrap();
    let found = store.entries(own.run, Seq(0), usize::MAX).await;
    assert!(matches!(found, Err(StoreError::Corrupt(_))), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_busy_store_is_one_moment_of_it() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(SqliteStore::open_driver(folder.path().join("loopd.db")).unwrap());
    let mut writers = Vec::new();
    for n in 1..5 {
        let (store, mut own) = (Arc::clone(&store), row(n));
        store.commit(creation(&own)).await.unwrap();
        writers.push(tokio::spawn(async move {
            for _ in 0..100 {
                store.commit(step(&mut own, 700)).await.unwrap();
            }
        }));
    }
    let to = folder.path().join("backup.db");
    store.backup(&to).await.unwrap();
    let again = store.backup(&to).await;
    assert!(matches!(&again, Err(StoreError::Unavailable(text)) if text.contains("backup.db")), "{again:?}");
    let nowhere = store.backup(folder.path().join("missing/backup.db")).await;
    assert!(matches!(nowhere, Err(StoreError::Unavailable(_))), "{nowhere:?}");
    for writer in writers {
        writer.await.unwrap();
    }
    let copy = SqliteStore::open_driver(&to).unwrap();
    for n in 1..5 {
        let head = verified(&copy, RunId([n; 16])).await;
        assert!(head.0.is_multiple_of(3) && head <= Seq(300), "{head}");
    }
    drop(copy);
    let names = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let left: Vec<_> = names.filter(|name| name.ends_with(".part")).collect();
    assert_eq!(left, Vec::<String>::new());
}
