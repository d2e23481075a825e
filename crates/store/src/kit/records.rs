//! Records, one Batch at a time.

use super::shelf::{
    ASIDE, ELSEWHERE, SCOPE, Shelf, TABLE, conflict, count, feed, find, id, list, listed, names, publish, put, record,
    search, write,
};
use super::world::{create, row, run_id, signal, writes};
use super::{Finding, Handle, Outcome, Subject, Verdict, same};
use crate::batch::{Batch, Expect, Write};
use crate::error::Expectation;
use crate::records::{List, Place, Query, Record, RecordId, Table};
use loopd_kernel::TimeMs;
use std::sync::Arc;

pub(super) async fn a_record_reads_back_whole(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    same("a record that nobody wrote", &find(&store, TABLE, 1).await?, &None)?;
    let mut expected =
        Record { key: Some("key".to_owned()), due: Some(TimeMs(-5)), place: u64::MAX, body: Vec::new(), ..record(1) };
    // What a write says of the revision, and of the place beside its own words for it, counts for nothing.
    let written = Record { rev: 77, place: 78, words: Some("a word".to_owned()), ..expected.clone() };
    write(&store, put(written, Place::At(u64::MAX))).await?;
    same("the record", &find(&store, TABLE, 1).await?, &Some(expected.clone()))?;
    let by_key = store.records(Query::Key(TABLE, SCOPE, "key".to_owned())).await?;
    same("the record by its key", &by_key, &vec![expected.clone()])?;

    (expected.key, expected.due, expected.body) = (None, None, b"longer than before".to_vec());
    for rev in 2..5 {
        write(&store, put(expected.clone(), Place::Keep)).await?;
        expected.rev = rev;
        same("the record once it was written again", &find(&store, TABLE, 1).await?, &Some(expected.clone()))?;
    }
    same("its list", &store.records(Query::List(list(TABLE, SCOPE))).await?, &vec![expected])?;
    for (what, query) in [
        ("its old key", Query::Key(TABLE, SCOPE, "key".to_owned())),
        ("its old time", Query::Due { table: TABLE, until: TimeMs(i64::MAX), limit: 9 }),
        ("its identity in another table", Query::Record(ELSEWHERE, id(1))),
    ] {
        same(what, &store.records(query).await?, &Vec::new())?;
    }
    Ok(Verdict::Passed)
}

fn expecting(rev: Option<u64>, writes: impl IntoIterator<Item = Write>) -> Batch {
    let expect = vec![Expect::Record { table: TABLE, id: id(1), rev }];
    Batch { expect, writes: writes.into_iter().collect() }
}

pub(super) async fn a_revision_is_compared(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let again = || put(record(1), Place::Keep);
    let found = |found| conflict(Expectation::Record { table: TABLE, id: id(1), found });
    same("a revision of nothing", &store.commit(expecting(Some(1), [again()])).await, &found(None))?;
    // All expectations come before all writes.
    store.commit(expecting(None, [again(), again()])).await?;
    for (what, rev) in [("absence", None), ("an old revision", Some(1)), ("a later revision", Some(3))] {
        same(what, &store.commit(expecting(rev, [again()])).await, &found(Some(2)))?;
    }
    let without = expecting(Some(1), []);
    same("an expectation without a write", &store.commit(without).await, &found(Some(2)))?;
    store.commit(expecting(Some(2), [again()])).await?;
    store.commit(expecting(Some(3), [Write::DeleteRecord(TABLE, id(1))])).await?;
    same("a revision of what is gone", &store.commit(expecting(Some(3), [again()])).await, &found(None))?;
    store.commit(expecting(None, [again()])).await?;
    let record = find(&store, TABLE, 1).await?;
    same("the revision of a record that came back", &record.map(|record| record.rev), &Some(1))?;
    Ok(Verdict::Passed)
}

pub(super) async fn places_are_numbered_in_order(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let places = [
        (1, Place::Keep),
        (2, Place::Next),
        (3, Place::At(70)),
        (4, Place::Keep),
        // What is there: it stays, moves to the next number, and moves to where it is told to.
        (1, Place::Keep),
        (2, Place::Next),
        (3, Place::At(5)),
        (5, Place::Next),
        (3, Place::Keep),
    ];
    store.commit(writes(places.map(|(n, place)| put(record(n), place)))).await?;
    let expected = vec![(1, 1), (4, 3), (2, 4), (3, 5), (5, 5)];
    same("the places", &listed(&store, TABLE, SCOPE).await?, &expected)?;

    let aside = Record { scope: ASIDE, ..record(6) };
    let elsewhere = Record { table: ELSEWHERE, ..record(1) };
    store.commit(writes([put(aside, Place::Next), put(elsewhere, Place::Next)])).await?;
    same("the places of another scope", &listed(&store, TABLE, ASIDE).await?, &vec![(6, 1)])?;
    same("the places of another table", &listed(&store, ELSEWHERE, SCOPE).await?, &vec![(1, 1)])?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_number_is_given_once(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let keyed = |n| Record { key: Some("key".to_owned()), ..record(n) };
    write(&store, put(keyed(1), Place::Next)).await?;
    for _ in 0..3 {
        // Numbers are taken, and then the Batch conflicts.
        let fails = [put(record(2), Place::Next), put(record(3), Place::Keep), put(keyed(4), Place::Next)];
        let taken = conflict(Expectation::RecordKey(TABLE, id(1)));
        same("a batch whose last write conflicts", &store.commit(writes(fails)).await, &taken)?;
    }
    write(&store, put(record(2), Place::Next)).await?;
    write(&store, Write::DeleteRecord(TABLE, id(2))).await?;
    write(&store, put(record(3), Place::Next)).await?;
    same("the places", &listed(&store, TABLE, SCOPE).await?, &vec![(1, 1), (3, 3)])?;
    store.commit(writes([Write::DeleteScope(TABLE, SCOPE), put(record(4), Place::Keep)])).await?;
    same("the places of a new start", &listed(&store, TABLE, SCOPE).await?, &vec![(4, 4)])?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_record_stays_in_its_scope(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    write(&store, put(record(1), Place::Next)).await?;
    write(&store, put(Record { key: Some("key".to_owned()), scope: ASIDE, ..record(2) }, Place::Next)).await?;
    // The scope is looked at before the key, which is taken there.
    let moved = Record { scope: ASIDE, key: Some("key".to_owned()), ..record(1) };
    let found = conflict(Expectation::Record { table: TABLE, id: id(1), found: Some(1) });
    same("a record of another scope", &write(&store, put(moved.clone(), Place::Next)).await, &found)?;
    same("the record", &find(&store, TABLE, 1).await?, &Some(record(1)))?;
    same("the other scope", &listed(&store, TABLE, ASIDE).await?, &vec![(2, 1)])?;
    let moved = Record { key: None, ..moved };
    store.commit(writes([Write::DeleteRecord(TABLE, id(1)), put(moved, Place::Next)])).await?;
    same("the other scope at last", &listed(&store, TABLE, ASIDE).await?, &vec![(2, 1), (1, 2)])?;
    Ok(Verdict::Passed)
}

pub(super) async fn keys_are_unique_per_table_and_scope(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let keyed = |n, key: &str| Record { key: Some(key.to_owned()), ..record(n) };
    let keep = |record| put(record, Place::Keep);
    store.commit(writes([keep(keyed(1, "key")), keep(keyed(2, "")), keep(record(3)), keep(record(4))])).await?;
    let taken = |holder| conflict(Expectation::RecordKey(TABLE, id(holder)));
    same("a new record with a key that is taken", &write(&store, keep(keyed(5, "key"))).await, &taken(1))?;
    same("a record that takes the key", &write(&store, keep(keyed(3, "key"))).await, &taken(1))?;
    same("a record that takes the empty key", &write(&store, keep(keyed(3, ""))).await, &taken(2))?;
    let twice = writes([keep(keyed(6, "new")), keep(keyed(7, "new"))]);
    same("a key twice in one batch", &store.commit(twice).await, &taken(6))?;
    same("a record of a refused batch", &find(&store, TABLE, 6).await?, &None)?;

    let aside = Record { scope: ASIDE, ..keyed(8, "key") };
    let elsewhere = Record { table: ELSEWHERE, ..keyed(1, "key") };
    // Its own key, other cases of it, other scopes and tables are free.
    store.commit(writes([keyed(1, "key"), keyed(5, "KEY"), keyed(7, "key "), aside, elsewhere].map(keep))).await?;
    // Whoever lets go of a key frees it, within the Batch too.
    store.commit(writes([keep(record(1)), keep(keyed(3, "key")), keep(keyed(2, "other")), keep(keyed(4, ""))])).await?;
    write(&store, Write::DeleteRecord(TABLE, id(3))).await?;
    write(&store, keep(keyed(9, "key"))).await?;
    for (scope, key, expected) in [
        (SCOPE, "key", vec![9]),
        (SCOPE, "", vec![4]),
        (SCOPE, "other", vec![2]),
        (SCOPE, "KEY", vec![5]),
        (ASIDE, "key", vec![8]),
        (SCOPE, "new", vec![]),
    ] {
        let found = store.records(Query::Key(TABLE, scope, key.to_owned())).await?;
        same(&format!("who has the key {key:?}"), &names(&found), &expected)?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn a_touch_moves_what_is_behind(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let keyed = |n, key: &str| Record { key: Some(key.to_owned()), due: Some(TimeMs(3)), ..record(n) };
    let words = |record| Record { words: Some("word".to_owned()), ..record };
    let aside = Record { scope: ASIDE, ..keyed(2, "key") };
    let elsewhere = Record { table: ELSEWHERE, ..keyed(3, "key") };
    store
        .commit(writes([
            put(words(keyed(1, "key")), Place::At(5)),
            put(aside.clone(), Place::At(20)),
            put(elsewhere, Place::At(5)),
            put(keyed(4, "key 2"), Place::At(5)),
            put(record(5), Place::At(5)),
        ]))
        .await?;
    let touch = |key: &str, place| Write::Touch { table: TABLE, key: key.to_owned(), place };
    for (place, first, second) in [(4, 5, 20), (5, 5, 20), (12, 12, 20), (3, 12, 20), (u64::MAX, u64::MAX, u64::MAX)] {
        store.commit(writes([touch("key", place), touch("nobody's", 90)])).await?;
        let what = format!("after a touch to {place}");
        same(&what, &find(&store, TABLE, 1).await?, &Some(Record { place: first, ..keyed(1, "key") }))?;
        same(&what, &find(&store, TABLE, 2).await?, &Some(Record { place: second, ..aside.clone() }))?;
        let mut rest = vec![(1, first), (4, 5), (5, 5)];
        rest.sort_by_key(|(n, place)| (*place, *n));
        same(&what, &listed(&store, TABLE, SCOPE).await?, &rest)?;
        same(&what, &listed(&store, ELSEWHERE, SCOPE).await?, &vec![(3, 5)])?;
    }
    same("what its words find", &search(&store, &[SCOPE], "word").await?, &vec![1])?;
    // The numbers do not notice.
    write(&store, put(record(6), Place::Next)).await?;
    same("the first number", &find(&store, TABLE, 6).await?, &Some(record(6)))?;
    Ok(Verdict::Passed)
}

pub(super) async fn what_is_removed_is_gone(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let full = |n: u8, table: Table, scope: RecordId| {
        let (key, words) = (Some(format!("key {n}")), Some("word".to_owned()));
        put(Record { table, scope, key, words, due: Some(TimeMs(i64::from(n))), ..record(n) }, Place::Next)
    };
    let all = (1..=4).map(|n| full(n, TABLE, SCOPE));
    let others = [full(5, TABLE, ASIDE), full(1, ELSEWHERE, SCOPE)];
    store.commit(writes(all.chain(others))).await?;
    let gone =
        [Write::DeleteRecord(TABLE, id(2)), Write::DeleteRecord(TABLE, id(2)), Write::DeleteRecord(TABLE, id(9))];
    store.commit(writes(gone)).await?;
    same("the list without one", &listed(&store, TABLE, SCOPE).await?, &vec![(1, 1), (3, 3), (4, 4)])?;
    same("what its words find", &search(&store, &[SCOPE, ASIDE], "word").await?, &vec![4, 3, 5, 1])?;

    store.commit(writes([Write::DeleteScope(TABLE, SCOPE), Write::DeleteScope(TABLE, id(99))])).await?;
    same("the list of the scope", &listed(&store, TABLE, SCOPE).await?, &Vec::new())?;
    for n in 1..=4 {
        same("a record of the scope", &find(&store, TABLE, n).await?, &None)?;
        let key = Query::Key(TABLE, SCOPE, format!("key {n}"));
        same("its key", &store.records(key).await?, &Vec::new())?;
    }
    let due = store.records(Query::Due { table: TABLE, until: TimeMs(i64::MAX), limit: 9 }).await?;
    same("what is still due", &names(&due), &vec![5])?;
    same("what their words find", &search(&store, &[SCOPE, ASIDE], "word").await?, &vec![5])?;
    same("the list of another scope", &listed(&store, TABLE, ASIDE).await?, &vec![(5, 1)])?;
    same("the list of another table", &listed(&store, ELSEWHERE, SCOPE).await?, &vec![(1, 1)])?;
    // What takes their place has nothing of them.
    let come_back = Record { place: 5, ..record(2) };
    write(&store, put(come_back.clone(), Place::Next)).await?;
    same("a record that came back", &find(&store, TABLE, 2).await?, &Some(come_back))?;
    same("what its old words find", &search(&store, &[SCOPE], "word").await?, &Vec::new())?;
    Ok(Verdict::Passed)
}

pub(super) async fn what_is_due_is_found(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let due = |n, at| put(Record { due: Some(TimeMs(at)), ..record(n) }, Place::Next);
    let elsewhere = put(Record { table: ELSEWHERE, due: Some(TimeMs(1)), ..record(1) }, Place::Next);
    let all = [due(1, 500), due(3, 100), due(2, 100), due(4, i64::MIN), due(5, i64::MAX)];
    store.commit(writes(all.into_iter().chain([put(record(6), Place::Next), elsewhere]))).await?;
    let tell = |until, limit| store.records(Query::Due { table: TABLE, until: TimeMs(until), limit });
    same("nothing in time", &names(&tell(99, 9).await?), &vec![4])?;
    same("in the order of time", &names(&tell(500, 9).await?), &vec![4, 2, 3, 1])?;
    same("the first two", &names(&tell(i64::MAX, 2).await?), &vec![4, 2])?;
    same("all", &names(&tell(i64::MAX, usize::MAX).await?), &vec![4, 2, 3, 1, 5])?;
    store.commit(writes([due(2, 900), put(record(3), Place::Keep), Write::DeleteRecord(TABLE, id(4))])).await?;
    same("once some are done", &names(&tell(i64::MAX - 1, 9).await?), &vec![1, 2])?;
    Ok(Verdict::Passed)
}

pub(super) async fn records_come_in_the_order_asked(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let all = [3, 1, 2].map(|n| put(record(n), Place::Next));
    let elsewhere = put(Record { table: ELSEWHERE, ..record(9) }, Place::Next);
    store.commit(writes(all.into_iter().chain([elsewhere]))).await?;
    let asked = [2, 9, 1, 7, 3, 2].map(id).to_vec();
    same("these", &names(&store.records(Query::These(TABLE, asked)).await?), &vec![2, 1, 3, 2])?;
    same("none of them", &store.records(Query::These(TABLE, Vec::new())).await?, &Vec::new())?;
    let many: Vec<_> = (0..=255).rev().chain(0..=255).map(id).collect();
    same("many", &names(&store.records(Query::These(TABLE, many)).await?), &vec![3, 2, 1, 1, 2, 3])?;
    Ok(Verdict::Passed)
}

async fn pages(store: &Handle, newest_first: bool, limit: usize) -> Result<Vec<u8>, Finding> {
    let mut list = List { newest_first, limit, ..list(TABLE, SCOPE) };
    let mut all = Vec::new();
    loop {
        let page = store.records(Query::List(list)).await?;
        let Some(last) = page.last() else { return Ok(all) };
        list.beyond = Some((last.place, last.id));
        all.extend(names(&page));
    }
}

pub(super) async fn a_list_is_paged_by_place_and_identity(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    // Equal places, places at both ends, identities in no order.
    let places = [(9, 0), (3, 5), (1, 5), (2, 5), (200, 5), (4, 1), (8, u64::MAX), (7, 1 << 63)];
    store.commit(writes(places.map(|(n, place)| put(record(n), Place::At(place))))).await?;
    write(&store, put(Record { scope: ASIDE, ..record(5) }, Place::At(5))).await?;
    write(&store, put(Record { table: ELSEWHERE, ..record(1) }, Place::At(5))).await?;
    let mut expected = vec![9, 4, 1, 2, 3, 200, 7, 8];
    for limit in [1, 2, 3, 8, usize::MAX] {
        same(&format!("pages of {limit}"), &pages(&store, false, limit).await?, &expected)?;
        expected.reverse();
        same(&format!("pages of {limit} backwards"), &pages(&store, true, limit).await?, &expected)?;
        expected.reverse();
    }
    let none = List { limit: 0, ..list(TABLE, SCOPE) };
    same("a page of nothing", &store.records(Query::List(none)).await?, &Vec::new())?;

    // Between two pages the Record at the cursor goes, and others come before and behind it at its place.
    let first = List { limit: 3, ..list(TABLE, SCOPE) };
    same("the first page", &names(&store.records(Query::List(first)).await?), &vec![9, 4, 1])?;
    let at = |n| put(record(n), Place::At(5));
    store.commit(writes([Write::DeleteRecord(TABLE, id(1)), at(0), at(6), put(record(2), Place::At(2))])).await?;
    let next = |newest_first| List { beyond: Some((5, id(1))), newest_first, ..list(TABLE, SCOPE) };
    same("the next page", &names(&store.records(Query::List(next(false))).await?), &vec![3, 6, 200, 7, 8])?;
    same("the page before", &names(&store.records(Query::List(next(true))).await?), &vec![0, 2, 4, 9])?;
    Ok(Verdict::Passed)
}

pub(super) async fn record_writes_are_all_or_nothing(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    create(&store, &row(1)).await?;
    write(&store, Write::AddInbox(signal(run_id(1), "known"))).await?;
    let (key, words) = (Some("key".to_owned()), Some("a word".to_owned()));
    let full = |n| Record { key: key.clone(), words: words.clone(), due: Some(TimeMs(5)), ..record(n) };
    let aside = Record { scope: ASIDE, ..full(2) };
    let first = [put(full(1), Place::Next), put(aside, Place::Next), put(record(3), Place::Next)];
    let more = [publish(feed(0), "first", Some((TABLE, id(1)))), count("c", 5, None)];
    store.commit(writes(first.into_iter().chain(more))).await?;
    let before = Shelf::of(&store).await?;

    // One write of every kind, some of them on top of each other, and at the end one that cannot be made.
    let table = TABLE;
    let every = || {
        [
            put(Record { words: None, key: None, ..full(1) }, Place::Next),
            put(Record { words: Some("another word".to_owned()), ..record(3) }, Place::At(0)),
            Write::Touch { table, key: "key".to_owned(), place: 50 },
            Write::DeleteRecord(TABLE, id(2)),
            put(full(4), Place::Keep),
            publish(feed(0), "second", Some((TABLE, id(4)))),
            publish(feed(1), "first", None),
            Write::EraseFeed(feed(0)),
            publish(feed(0), "third", None),
            count("c", -9, None),
            Write::DeleteScope(TABLE, SCOPE),
            put(full(5), Place::Next),
            put(Record { table: ELSEWHERE, ..full(1) }, Place::Next),
        ]
    };
    let conflicts: [(Write, Expectation); 4] = [
        (put(full(6), Place::Next), Expectation::RecordKey(TABLE, id(5))),
        (count("c", 7, Some(6)), Expectation::Counter(crate::records::Counter("c".to_owned()))),
        (
            put(Record { scope: ASIDE, ..record(5) }, Place::Keep),
            Expectation::Record { table, id: id(5), found: Some(1) },
        ),
        (Write::AddInbox(signal(run_id(1), "known")), Expectation::InboxKey("known".to_owned())),
    ];
    for (last, expectation) in conflicts {
        let batch = writes(every().into_iter().chain([last]));
        let what = format!("a batch that ends in {expectation:?}");
        same(&what, &store.commit(batch).await, &conflict(expectation))?;
        same(&format!("{what}: what there is"), &Shelf::of(&store).await?, &before)?;
    }
    // Nothing of it is in the way of the same writes later, and no number was used.
    store.commit(writes(every())).await?;
    same("the places", &listed(&store, TABLE, SCOPE).await?, &vec![(5, 5)])?;
    same("the feed", &store.feed_heads(&[feed(0), feed(1)]).await?, &vec![3, 1])?;
    Ok(Verdict::Passed)
}
