//! Records, Feeds and counters: the same requests to this store and to the in-memory one, and what reads cost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use loopd_kernel::TimeMs;
use loopd_store::{
    Batch, Counter, Expect, Feed, FeedKind, List, MemoryStore, NewItem, Place, Query, Record, RecordId, Store, Table,
    Write,
};
use loopd_store_sqlite::SqliteStore;
use support::Dice;
use tempfile::TempDir;

const TABLES: [Table; 2] = [Table::Message, Table::Member];
const IDS: u8 = 6;
const SCOPES: u8 = 3;
const TEXTS: [&str; 8] = ["one", "two", "One two", "", "\"one", "one OR two", "Größe *", "NEAR(one two)"];
const PLACES: [u64; 6] = [0, 1, 3, 1 << 63, u64::MAX - 1, u64::MAX];

fn id(n: u64) -> RecordId {
    // At both ends of the order of bytes.
    RecordId([[0, 1, 7, 127, 128, 255][n as usize]; 16])
}

fn table(dice: &mut Dice) -> Table {
    TABLES[dice.roll(2) as usize]
}

fn one(dice: &mut Dice) -> RecordId {
    id(dice.roll(u64::from(IDS)))
}

fn scope(dice: &mut Dice) -> RecordId {
    id(dice.roll(u64::from(SCOPES)))
}

fn key(dice: &mut Dice) -> String {
    ["a", "b", "b\0", ""][dice.roll(4) as usize].to_owned()
}

fn text(dice: &mut Dice) -> String {
    TEXTS[dice.roll(8) as usize].to_owned()
}

fn feed(dice: &mut Dice) -> Feed {
    let kind = [FeedKind::Conversation, FeedKind::Actor][dice.roll(2) as usize];
    Feed { kind, id: scope(dice) }
}

fn counter(dice: &mut Dice) -> Counter {
    Counter(key(dice))
}

async fn put(dice: &mut Dice, model: &MemoryStore) -> Write {
    let (table, id) = (table(dice), one(dice));
    let old = model.records(Query::Record(table, id)).await.unwrap().pop();
    // Seldom another scope than it has.
    let scope = match old {
        Some(old) if dice.roll(9) != 0 => old.scope,
        Some(_) | None => scope(dice),
    };
    let record = Record {
        table,
        id,
        scope,
        place: dice.roll(9),
        key: dice.maybe(key),
        due: dice.maybe(|dice| TimeMs(dice.roll(5) as i64 - 2)),
        rev: dice.roll(9),
        words: dice.maybe(text),
        body: vec![0; dice.roll(3) as usize],
    };
    let place = match dice.roll(3) {
        0 => Place::Keep,
        1 => Place::Next,
        _ => Place::At(PLACES[dice.roll(6) as usize]),
    };
    Write::PutRecord(Box::new(record), place)
}

async fn write(dice: &mut Dice, model: &MemoryStore) -> Write {
    match dice.roll(14) {
        0..6 => put(dice, model).await,
        6 => Write::DeleteRecord(table(dice), one(dice)),
        7 => Write::DeleteScope(table(dice), scope(dice)),
        8 => Write::Touch { table: table(dice), key: key(dice), place: PLACES[dice.roll(6) as usize] },
        9 | 10 => {
            let of = dice.maybe(|dice| (table(dice), one(dice)));
            Write::Publish(NewItem { feed: feed(dice), at: TimeMs(-1), of, body: b"\0"[..].into() })
        }
        11 => Write::EraseFeed(feed(dice)),
        _ => {
            let by = [1, 5, -3, i64::MAX, i64::MIN][dice.roll(5) as usize];
            Write::Count { counter: counter(dice), by, max: dice.maybe(|dice| dice.roll(9)) }
        }
    }
}

async fn batch(dice: &mut Dice, model: &MemoryStore) -> Batch {
    let mut batch = Batch::default();
    if dice.roll(3) == 0 {
        let (table, id) = (table(dice), one(dice));
        let rev = model.records(Query::Record(table, id)).await.unwrap().pop().map(|record| record.rev);
        let rev = if dice.roll(4) == 0 { Some(2) } else { rev };
        batch.expect.push(Expect::Record { table, id, rev });
    }
    for _ in 0..dice.roll(5) {
        batch.writes.push(write(dice, model).await);
    }
    batch
}

/// Everything that a store shows, as text.
async fn everything(store: &dyn Store) -> String {
    let ids: Vec<_> = (0..u64::from(IDS)).rev().chain([2]).map(id).collect();
    let mut queries = Vec::new();
    for table in TABLES {
        queries.push(Query::These(table, ids.clone()));
        queries.push(Query::Due { table, until: TimeMs(1), limit: 3 });
        queries.extend(ids.iter().map(|id| Query::Record(table, *id)));
        for text in TEXTS {
            let scopes = vec![id(0), id(2), id(0)];
            queries.push(Query::Search { table, scopes, text: text.to_owned(), limit: 2 });
        }
        for scope in (0..u64::from(SCOPES)).map(id) {
            queries.extend(["a", "b", "b\0", ""].map(|key| Query::Key(table, scope, key.to_owned())));
            for newest_first in [false, true] {
                queries.push(Query::List(List { table, scope, beyond: None, newest_first, limit: 9 }));
                for place in PLACES {
                    let beyond = Some((place, id(2)));
                    queries.push(Query::List(List { table, scope, beyond, newest_first, limit: 2 }));
                }
            }
        }
    }
    let mut seen = Vec::new();
    for query in queries {
        seen.push(format!("{query:?}: {:?}", store.records(query.clone()).await.unwrap()));
    }
    let kinds = [FeedKind::Conversation, FeedKind::Actor];
    let feeds = kinds.map(|kind| (0..u64::from(IDS)).map(move |n| Feed { kind, id: id(n) }));
    let feeds: Vec<_> = feeds.into_iter().flatten().collect();
    seen.push(format!("{:?}", store.feed_heads(&feeds).await.unwrap()));
    for feed in feeds {
        for after in [0, 2, u64::MAX] {
            seen.push(format!("{:?}", store.feed(feed, after, 4).await.unwrap()));
        }
    }
    for name in ["a", "b", "b\0", "", "none"] {
        seen.push(format!("{:?}", store.counter(Counter(name.to_owned())).await.unwrap()));
    }
    seen.join("\n")
}

#[tokio::test]
async fn records_answer_like_the_model() {
    let folder = TempDir::new().unwrap();
    let (mut committed, mut refused) = (0, 0);
    for seed in 0..12_u64 {
        let (mut dice, model) = (Dice(seed), MemoryStore::new());
        let store = SqliteStore::open_driver(folder.path().join(format!("{seed}.db"))).unwrap();
        for at in 0..200 {
            let what = format!("seed {seed}, request {at}");
            let batch = batch(&mut dice, &model).await;
            let answer = store.commit(batch.clone()).await;
            *if answer.is_ok() { &mut committed } else { &mut refused } += 1;
            assert_eq!(answer, model.commit(batch.clone()).await, "{what}: {batch:?}");
            if at % 20 == 0 {
                assert_eq!(everything(&store).await, everything(&model).await, "{what}");
            }
        }
        assert_eq!(everything(&store).await, everything(&model).await, "seed {seed}");
        // The index of words is one of its own kind: SQLite asks it, too, whether it is whole.
        let conn = rusqlite::Connection::open(store.path()).unwrap();
        let whole: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(whole, "ok", "seed {seed}");
    }
    // The dice are of use only while a good part of what they propose is accepted, and a part is not.
    assert!(committed > 1_000 && refused > 300, "{committed} committed, {refused} refused");
}

/// Messages of many scopes with a word in common, and one of its own each.
async fn messages(store: &SqliteStore, scopes: std::ops::Range<u64>) {
    for scope in scopes {
        let id = scope_of(scope);
        let (table, words) = (Table::Message, Some(format!("common own{scope}")));
        let body = vec![0; 4_000];
        let record = Record { table, id, scope: id, place: 0, key: None, due: None, rev: 0, words, body };
        let put = Write::PutRecord(Box::new(record), Place::At(scope));
        store.commit(Batch { expect: Vec::new(), writes: vec![put] }).await.unwrap();
    }
}

fn scope_of(scope: u64) -> RecordId {
    RecordId(u128::from(scope).to_be_bytes())
}

fn search(scopes: impl IntoIterator<Item = u64>, text: &str) -> Query {
    let scopes = scopes.into_iter().map(scope_of).collect();
    Query::Search { table: Table::Message, scopes, text: text.to_owned(), limit: usize::MAX }
}

#[tokio::test]
async fn a_search_takes_as_many_scopes_and_words_as_there_are() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open_driver(folder.path().join("loopd.db")).unwrap();
    messages(&store, 0..100).await;
    let found = store.records(search(0..3_000, "common")).await.unwrap();
    assert_eq!(found.iter().map(|record| record.place).collect::<Vec<_>>(), (0..100).rev().collect::<Vec<_>>());
    let found = store.records(search([7, 9], "common own9")).await.unwrap();
    assert_eq!(found.iter().map(|record| record.place).collect::<Vec<_>>(), [9]);
    let many: String = (0..3_000).map(|n| format!("word{n} ")).collect();
    assert_eq!(store.records(search([7], &many)).await.unwrap(), []);
}

#[tokio::test]
async fn what_surrounds_a_step_shares_its_flush_and_few_pages() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("loopd.db");
    let store = SqliteStore::open_driver(&path).unwrap();
    let mut own = support::row(1);
    store.commit(support::creation(&own)).await.unwrap();
    let feed = Feed { kind: FeedKind::Conversation, id: id(1) };
    let wal = || std::fs::metadata(path.with_extension("db-wal")).unwrap().len() as f64;
    let (before, log) = (store.stats(), wal());
    let steps = 200;
    for n in 0..steps {
        let mut batch = support::step(&mut own, 700);
        let table = Table::Block;
        let id = scope_of(n);
        let body = vec![b'x'; 300];
        let record = Record { table, id, scope: feed.id, place: 0, key: None, due: None, rev: 0, words: None, body };
        batch.writes.push(Write::PutRecord(Box::new(record), Place::Next));
        let body = b"{}"[..].into();
        batch.writes.push(Write::Publish(NewItem { feed, at: TimeMs(1), of: Some((table, id)), body }));
        store.commit(batch).await.unwrap();
    }
    assert_eq!(store.stats().groups - before.groups, steps);
    // Those of a step, and on top: the Record and its two indexes, the number, the item and its index, the head.
    let pages = (wal() - log) / f64::from(2_048 + 24) / steps as f64;
    assert!(pages < 11.0, "{pages} pages per step");
}
