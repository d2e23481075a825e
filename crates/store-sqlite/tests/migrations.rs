//! Stores that an older build left: they open whole, and a migration happens whole or not at all.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use loopd_kernel::{Epoch, RunId, Seq, TimeMs};
use loopd_store::rows::ITEM_OVERHEAD;
use loopd_store::{
    Batch, Claim, InboxBody, Place, Query, Record, RecordId, RunFilter, RunRow, RunStatus, Runnable, Store, StoreError,
    Table, WorkerId, Write,
};
use loopd_store_sqlite::SqliteStore;
use rusqlite::types::Value;
use rusqlite::{Connection, params};
use std::fs;
use std::path::{Path, PathBuf};
use support::{creation, row, signal, step, update, verified};
use tempfile::TempDir;

mod embedded {
    refinery::embed_migrations!("migrations");
}

/// What each schema adds to the one before, from the second one on.
const LATER: [&str; 2] =
    [include_str!("../migrations/V2__children.sql"), include_str!("../migrations/V3__records.sql")];
/// As many signals wait for the first Run.
const SIGNALS: usize = 300;

/// What is missing in a store of this schema, statement by statement.
fn missing(schema: usize) -> Vec<String> {
    LATER.iter().skip(schema - 1).flat_map(|migration| statements(migration)).collect()
}

fn statements(migration: &str) -> Vec<String> {
    let code = migration.lines().map(|line| line.split("--").next().unwrap().trim_end());
    let code = code.collect::<Vec<_>>().join("\n");
    // The trigger's own statement ends inside a line.
    let statements = code.split(";\n").map(|statement| statement.trim().to_owned());
    statements.filter(|statement| !statement.is_empty()).collect()
}

/// A large signal, as it was stored, and the number of bytes that its JSON has.
fn stored(n: usize) -> (String, i64) {
    let body = InboxBody::Signal { name: "more".to_owned(), body: format!("ä{n} ").repeat(400) };
    let json = serde_json::to_string(&body).unwrap();
    let length = json.len() as i64;
    (json, length)
}

/// A store as a build of this schema left it: a suspended Run with a Journal and much that waits, a parked one with a
/// wish to cancel, and one that has ended.
fn store_of(schema: usize, path: &Path) {
    let mut conn = Connection::open(path).unwrap();
    conn.pragma_update(None, "page_size", 2048).unwrap();
    conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
    conn.execute_batch(
        "CREATE TABLE driver (
           one INTEGER PRIMARY KEY CHECK (one = 1),
           epoch INTEGER NOT NULL, pid INTEGER NOT NULL, until INTEGER NOT NULL
         ) STRICT;
         INSERT INTO driver VALUES (1, 4, 1, 0);
         PRAGMA application_id = 0x6c706400;",
    )
    .unwrap();
    let runner = embedded::migrations::runner().set_target(refinery::Target::Version(schema as _)).set_grouped(true);
    runner.run(&mut conn).unwrap();

    let mut runs = [row(1), row(2), row(3)];
    let batches = [step(&mut runs[0], 700), step(&mut runs[0], 700)];
    for (run, status) in runs.iter_mut().zip([RunStatus::Suspended, RunStatus::Parked, RunStatus::Ended]) {
        (run.status, run.worker) = (status, None);
        insert_run(&conn, run);
    }
    for write in batches.into_iter().flat_map(|batch| batch.writes) {
        if let Write::Append { entries, .. } = write {
            entries.iter().for_each(|entry| insert_entry(&conn, entry));
        }
    }
    let item = "INSERT INTO inbox (run, key, at, moves, body) VALUES (?1, ?2, 5000, ?3, ?4)";
    conn.execute(item, params![1, "taken", false, None::<String>]).unwrap();
    for n in 0..SIGNALS {
        conn.execute(item, params![1, format!("key {n}"), false, stored(n).0]).unwrap();
    }
    let cancel = InboxBody::Cancel { actor: "ann".to_owned(), reason: "enough".to_owned() };
    conn.execute(item, params![2, "cancel", true, serde_json::to_string(&cancel).unwrap()]).unwrap();
}

fn insert_run(conn: &Connection, row: &RunRow) {
    let status = RunStatus::ALL.iter().position(|status| *status == row.status).unwrap() as i64;
    let values = params![row.run.0, row.definition.0, status, row.head.0 as i64, row.hash.0, row.updated_at.0];
    let sql = "INSERT INTO run (run, tenant, loop_name, version, definition, status, head, hash, epoch, iteration,
                                tokens, spent, created_at, updated_at)
               VALUES (?1, 'default', 'echo', '1.0.0', ?2, ?3, ?4, ?5, 1, 0, 0, 0, 1000, ?6)";
    conn.execute(sql, values).unwrap();
}

fn insert_entry(conn: &Connection, entry: &loopd_kernel::Entry) {
    let kind = i64::from(entry.format) * 65_536 + i64::from(entry.kind.number());
    let body = [&entry.salt.0[..], entry.record.as_bytes(), &entry.payload].concat();
    let values = params![entry.seq.0 as i64, kind, entry.at.0, entry.record.len() as i64, entry.hash.0.to_vec(), body];
    let sql = "INSERT INTO entry (run, seq, kind, at, record_len, hash, body) VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)";
    conn.execute(sql, values).unwrap();
}

/// Everything in the file, but for who drives it.
fn everything(path: &Path) -> Vec<Vec<Value>> {
    let conn = Connection::open(path).unwrap();
    let mut found = select(&conn, "PRAGMA user_version");
    found.extend(select(&conn, "SELECT type, name, sql FROM sqlite_schema WHERE name <> 'driver' ORDER BY name"));
    let tables =
        select(&conn, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'driver' ORDER BY name");
    for table in tables {
        let Value::Text(name) = &table[0] else { panic!("{table:?}") };
        found.extend(select(&conn, &format!("SELECT * FROM {name}")));
    }
    found
}

fn select(conn: &Connection, sql: &str) -> Vec<Vec<Value>> {
    let mut statement = conn.prepare(sql).unwrap();
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| (0..columns).map(|column| row.get(column)).collect());
    rows.unwrap().map(Result::unwrap).collect()
}

/// Opens the store, which is of this schema then, and looks for what was in it.
async fn opens_whole(path: &Path) -> SqliteStore {
    let store = SqliteStore::open_driver(path).unwrap();
    let conn = Connection::open(path).unwrap();
    assert_eq!(select(&conn, "PRAGMA user_version"), [[Value::Integer(3)]]);
    assert_eq!(select(&conn, "PRAGMA integrity_check"), [[Value::Text("ok".to_owned())]]);
    opened_whole(&store).await;
    store
}

/// The store holds what was in it.
async fn opened_whole(store: &SqliteStore) {
    assert_eq!(verified(store, RunId([1; 16])).await, Seq(6));
    let rows = store.runs(RunFilter { limit: 9, ..RunFilter::default() }).await.unwrap().items;
    let found: Vec<_> = rows.iter().map(|row| (row.run.0[0], row.status, row.parent)).collect();
    let expected = [(3, RunStatus::Ended, None), (2, RunStatus::Parked, None), (1, RunStatus::Suspended, None)];
    assert_eq!(found, expected);
    let waiting = store.inbox(RunId([1; 16]), usize::MAX).await.unwrap();
    let keys: Vec<_> = waiting.iter().map(|item| item.key.clone()).collect();
    assert_eq!(keys, (0..SIGNALS).map(|n| format!("key {n}")).collect::<Vec<_>>());
    for (n, item) in waiting.iter().enumerate() {
        assert_eq!(serde_json::to_string(&item.body).unwrap(), stored(n).0);
    }
}

fn place(schema: usize) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("loopd.db");
    store_of(schema, &path);
    (folder, path)
}

#[tokio::test]
async fn a_store_of_the_first_schema_opens_keeps_its_rows_and_works() {
    let (_folder, path) = place(1);
    let before = everything(&path);
    let text = format!("{} has to be opened by a driver first", path.display());
    assert_eq!(SqliteStore::open_client(&path).map(|_| ()), Err(StoreError::Unavailable(text)));
    assert_eq!(everything(&path), before, "a client changes nothing");

    let store = opens_whole(&path).await;
    assert_eq!(store.epoch(), Some(Epoch(5)));
    let conn = Connection::open(&path).unwrap();
    let sizes = select(&conn, "SELECT size FROM inbox WHERE run = 1 ORDER BY id");
    let counted = (0..SIGNALS).map(|n| vec![Value::Integer(ITEM_OVERHEAD as i64 + stored(n).1)]);
    assert_eq!(sizes, [vec![Value::Integer(0)]].into_iter().chain(counted).collect::<Vec<_>>());

    let claim = Claim {
        worker: WorkerId(1),
        now: TimeMs(9_000),
        loops: vec![Runnable { major: Some("1".to_owned()), ..Runnable::any("echo") }],
        limit: 9,
        only: None,
    };
    let mut claimed = store.claim(claim).await.unwrap();
    claimed.sort_by_key(|claimed| claimed.row.run);
    let [first, second] = &claimed[..] else { panic!("{claimed:?}") };
    assert_eq!((first.row.run, second.row.run), (RunId([1; 16]), RunId([2; 16])));
    let mut own = first.row.clone();
    let oldest = store.inbox(own.run, 1).await.unwrap().remove(0);
    let mut batch = step(&mut own, 700);
    batch.writes.push(Write::TakeInbox { run: own.run, id: oldest.id });
    store.commit(batch).await.unwrap();
    assert_eq!(verified(&store, own.run).await, Seq(9));
    for key in ["taken", "key 0", "key 1"] {
        let known = store.commit(signal(own.run, key)).await;
        assert!(matches!(known, Err(StoreError::Conflict(_))), "{key}: {known:?}");
    }
    store.commit(signal(own.run, "new")).await.unwrap();
    assert_eq!(store.inbox(own.run, usize::MAX).await.unwrap().len(), SIGNALS);
    let child = RunRow { parent: Some(own.run), ..row(4) };
    store.commit(creation(&child)).await.unwrap();
    let children = RunFilter { parent: Some(own.run), limit: 9, ..RunFilter::default() };
    assert_eq!(store.runs(children).await.unwrap().items, [child]);
    store.commit(Batch { expect: Vec::new(), writes: vec![update(&own)] }).await.unwrap();
    SqliteStore::open_client(&path).unwrap().commit(signal(own.run, "from a client")).await.unwrap();
}

#[tokio::test]
async fn a_store_of_the_second_schema_opens_and_takes_records() {
    let (_folder, path) = place(2);
    let store = opens_whole(&path).await;
    let mut record = Record {
        table: Table::Message,
        id: RecordId([1; 16]),
        scope: RecordId([2; 16]),
        place: 1,
        key: Some("key".to_owned()),
        due: Some(TimeMs(5)),
        rev: 1,
        words: Some("a word".to_owned()),
        body: b"{}".to_vec(),
    };
    let put = Write::PutRecord(Box::new(record.clone()), Place::Next);
    store.commit(Batch { expect: Vec::new(), writes: vec![put] }).await.unwrap();
    record.words = None;
    let (table, scopes, text) = (record.table, vec![record.scope], "word".to_owned());
    assert_eq!(store.records(Query::Search { table, scopes, text, limit: 9 }).await.unwrap(), [record]);
}

#[tokio::test]
async fn a_client_that_was_there_before_the_migration_loses_no_item() {
    let (_folder, path) = place(1);
    let conn = Connection::open(&path).unwrap();
    let mut add = conn.prepare("INSERT INTO inbox (run, key, at, moves, body) VALUES (1, ?1, 5000, 0, ?2)").unwrap();
    let store = opens_whole(&path).await;
    add.execute(("from before", stored(1).0)).unwrap();
    let item = store.inbox(RunId([1; 16]), usize::MAX).await.unwrap().pop().unwrap();
    assert_eq!(item.key, "from before");
    let size = select(&conn, "SELECT size FROM inbox WHERE key = 'from before'");
    assert_eq!(size, [[Value::Integer(ITEM_OVERHEAD as i64 + stored(1).1)]]);
    store
        .commit(Batch { expect: Vec::new(), writes: vec![Write::TakeInbox { run: item.run, id: item.id }] })
        .await
        .unwrap();
    opened_whole(&store).await;
}

#[tokio::test]
async fn whoever_does_not_drive_writes_nothing_into_a_newer_schema() {
    let (_folder, path) = place(1);
    let fenced = SqliteStore::open_driver_at(&path, TimeMs(0)).unwrap();
    let client = SqliteStore::open_client(&path).unwrap();
    let _driver = SqliteStore::open_driver_at(&path, TimeMs(i64::MAX / 2)).unwrap();
    for (name, store) in [("client", &client), ("fenced", &fenced)] {
        store.commit(signal(RunId([1; 16]), name)).await.unwrap();
    }
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 9).unwrap();
    let before = everything(&path);
    let too_new = Err(StoreError::TooNew { found: 9, supported: 3 });
    for store in [&client, &fenced] {
        assert_eq!(store.commit(signal(RunId([1; 16]), "later")).await.map(|_| ()), too_new);
    }
    let own = fenced.run(RunId([1; 16])).await.unwrap().unwrap();
    let update = Batch { expect: Vec::new(), writes: vec![update(&own)] };
    assert_eq!(fenced.commit(update).await.map(|_| ()), Err(StoreError::Fenced(Epoch(5))));
    assert_eq!(everything(&path), before);
}

/// Makes one statement of the migration fail, looks that nothing is left of it, and mends the store.
#[track_caller]
fn fails(schema: usize, damage: &str, mend: &str) {
    let (_folder, path) = place(schema);
    let conn = Connection::open(&path).unwrap();
    let intact = everything(&path);
    conn.execute_batch(damage).unwrap();
    let before = everything(&path);
    for _ in 0..2 {
        let error = SqliteStore::open_driver(&path).map(|_| ()).unwrap_err();
        assert!(matches!(&error, StoreError::Unavailable(text) if text.contains("migration failed")), "{error:?}");
        assert_eq!(everything(&path), before, "{damage}");
    }
    conn.execute_batch(mend).unwrap();
    assert_eq!(everything(&path), intact, "{mend}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(opens_whole(&path));
}

#[test]
fn a_migration_that_fails_leaves_nothing_of_itself() {
    fails(1, "ALTER TABLE run ADD COLUMN parent TEXT", "ALTER TABLE run DROP COLUMN parent");
    fails(1, "CREATE INDEX run_parent ON run (tenant)", "DROP INDEX run_parent");
    fails(1, "ALTER TABLE inbox ADD COLUMN size INTEGER", "ALTER TABLE inbox DROP COLUMN size");
    let never = "BEGIN SELECT RAISE(ABORT, 'never'); END";
    fails(1, &format!("CREATE TRIGGER never BEFORE UPDATE ON inbox {never}"), "DROP TRIGGER never");
    fails(1, &format!("CREATE TRIGGER inbox_size BEFORE UPDATE ON question {never}"), "DROP TRIGGER inbox_size");
    let again = "CREATE INDEX inbox_waiting ON inbox (run) WHERE body IS NOT NULL";
    fails(1, "DROP INDEX inbox_waiting", again);
    // The very last thing: the note that it was applied.
    let note = format!("CREATE TRIGGER never BEFORE INSERT ON refinery_schema_history {never}");
    fails(1, &note, "DROP TRIGGER never");
    fails(2, &note, "DROP TRIGGER never");
    for schema in [1, 2] {
        fails(schema, "CREATE TABLE record (id)", "DROP TABLE record");
        fails(schema, "CREATE INDEX record_due ON run (tenant)", "DROP INDEX record_due");
        // One of the tables that the index of words keeps for itself.
        fails(schema, "CREATE TABLE record_words_docsize (id)", "DROP TABLE record_words_docsize");
        fails(schema, "CREATE TABLE counter (name)", "DROP TABLE counter");
    }
}

#[tokio::test]
async fn a_migration_that_is_cut_off_leaves_nothing_of_itself() {
    for (schema, count) in [(1, 21), (2, 13)] {
        let statements = missing(schema);
        assert_eq!(statements.len(), count, "{statements:?}");
        cut_off(schema, &statements).await;
    }
}

async fn cut_off(schema: usize, statements: &[String]) {
    let (folder, path) = place(schema);
    let before = everything(&path);
    let wal = |path: &Path| path.with_extension("db-wal");
    let conn = Connection::open(&path).unwrap();
    // So few that a transaction writes pages long before its COMMIT.
    conn.pragma_update(None, "cache_size", 2).unwrap();
    let mut grew = 0;
    for count in 1..=statements.len() {
        let length = || fs::metadata(wal(&path)).map_or(0, |file| file.len());
        let quiet = length();
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        statements[..count].iter().for_each(|statement| conn.execute_batch(statement).unwrap());
        grew += usize::from(length() > quiet);
        let copy = folder.path().join(count.to_string());
        fs::create_dir(&copy).unwrap();
        let copy = copy.join("loopd.db");
        fs::copy(&path, &copy).unwrap();
        fs::copy(wal(&path), wal(&copy)).unwrap();
        conn.execute_batch("ROLLBACK").unwrap();
        assert_eq!(everything(&copy), before, "cut off after {count} statements");
        opens_whole(&copy).await;
    }
    assert!(grew > 0, "no copy holds a page of a transaction under way");
    assert_eq!(everything(&path), before);
    drop(conn);
    opens_whole(&path).await;
}
