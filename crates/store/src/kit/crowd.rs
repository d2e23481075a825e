//! Many at once, on Records, Feeds and counters.

use super::parallel::together;
use super::shelf::{SCOPE, TABLE, conflict, count, counted, feed, find, id, item, list, publish, put, record};
use super::world::writes;
use super::{Finding, Handle, Outcome, Subject, Verdict, ensure, same};
use crate::batch::{Batch, Expect, Write};
use crate::error::{Expectation, StoreError};
use crate::records::{Counter, NewItem, Place, Query, Record, RecordId};
use loopd_kernel::TimeMs;
use std::sync::Arc;

const WRITERS: u8 = 8;
const BATCHES: u8 = 30;

fn full() -> Result<(), StoreError> {
    conflict(Expectation::Counter(Counter("full".to_owned()))).map(|_| ())
}

/// Every third Batch conflicts in its last write, once everything else of it is written.
fn is_bad(writer: u8, batch: u8) -> bool {
    (writer + batch).is_multiple_of(3)
}

async fn commit(store: &Handle, mut all: Vec<Write>, bad: bool) -> Result<(), Finding> {
    if bad {
        all.push(count("full", 1, Some(0)));
    }
    let answer = store.commit(writes(all)).await.map(|_| ());
    same("a batch among others", &answer, &if bad { full() } else { Ok(()) })
}

fn news(writer: u8, batch: u8, n: u8) -> Write {
    let body = Arc::from([writer, batch, n]);
    Write::Publish(NewItem { feed: feed(1), at: TimeMs(i64::from(batch)), of: None, body })
}

pub(super) async fn publishers_leave_no_gap(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let publisher = |writer: u8, store: Handle| async move {
        for batch in 0..BATCHES {
            let items = (0..=batch % 3).map(|n| news(writer, batch, n)).collect();
            commit(&store, items, is_bad(writer, batch)).await?;
        }
        Ok::<_, Finding>(())
    };
    let watcher = |store: Handle| async move {
        // Whoever reads on from where it was misses nothing and sees no Batch in part.
        let mut seen = Vec::new();
        while seen.len() < expected().len() {
            let items = store.feed(feed(1), seen.len() as u64, usize::MAX).await?;
            let next = seen.len() as u64 + 1;
            ensure(items.iter().map(|item| item.position).eq((next..).take(items.len())), || {
                format!("a gap after position {}: {items:?}", next - 1)
            })?;
            let whole = items.last().is_none_or(|item| {
                let [_, batch, n] = item.body[..] else { return false };
                n == batch % 3
            });
            ensure(whole, || format!("a batch was seen in part: {items:?}"))?;
            seen.extend(items);
            tokio::task::yield_now().await;
        }
        Ok::<_, Finding>(seen)
    };
    let (watched, writers) = (tokio::spawn(watcher(Arc::clone(&store))), 0..WRITERS);
    for result in together(writers.map(|writer| publisher(writer, Arc::clone(&store)))).await? {
        result?;
    }
    let items = store.feed(feed(1), 0, usize::MAX).await?;
    let head = vec![expected().len() as u64];
    same("the head", &store.feed_heads(&[feed(1)]).await?, &head)?;
    for writer in 0..WRITERS {
        let own = items.iter().map(|item| &item.body).filter(|body| body.first() == Some(&writer));
        let wanted = expected().into_iter().filter(|body| body.first() == Some(&writer));
        same("the items of one writer, in order", &own.cloned().collect::<Vec<_>>(), &wanted.collect())?;
    }
    let watched = watched.await.map_err(|error| Finding::new(error.to_string()))??;
    same("what somebody saw who read along", &watched, &items)?;
    Ok(Verdict::Passed)
}

/// The bodies of everything that is committed, by writers.
fn expected() -> Vec<Vec<u8>> {
    let batches = (0..WRITERS).flat_map(|writer| (0..BATCHES).map(move |batch| (writer, batch)));
    let good = batches.filter(|(writer, batch)| !is_bad(*writer, *batch));
    good.flat_map(|(writer, batch)| (0..=batch % 3).map(move |n| vec![writer, batch, n])).collect()
}

pub(super) async fn numbers_leave_no_gap(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let writer = |writer: u8, store: Handle| async move {
        for batch in 0..BATCHES {
            let of = |n| RecordId([[writer, batch, n, 0]; 4].concat().try_into().unwrap_or([0; 16]));
            let new = |n| Record { id: of(n), words: Some("word".to_owned()), ..record(0) };
            let all = (0..=batch % 3).map(|n| put(new(n), [Place::Next, Place::Keep][usize::from(n % 2)])).collect();
            commit(&store, all, is_bad(writer, batch)).await?;
        }
        Ok::<_, Finding>(())
    };
    for result in together((0..WRITERS).map(|n| writer(n, Arc::clone(&store)))).await? {
        result?;
    }
    let records = store.records(Query::List(list(TABLE, SCOPE))).await?;
    let places: Vec<_> = records.iter().map(|record| record.place).collect();
    same("the places", &places, &(1..=expected().len() as u64).collect())?;
    let mut bodies: Vec<_> = records.iter().map(|record| record.id.0.iter().copied().take(3).collect()).collect();
    for pair in bodies.windows(2) {
        let [first, second] = pair else { continue };
        let (first, second): (&Vec<u8>, &Vec<u8>) = (first, second);
        let in_turn = first.get(..2) != second.get(..2) || first.get(2) < second.get(2);
        ensure(in_turn, || format!("{first:?} came before {second:?} of the same batch"))?;
    }
    bodies.sort();
    same("the records", &bodies, &expected())?;
    let search = Query::Search { table: TABLE, scopes: vec![SCOPE], text: "word".to_owned(), limit: usize::MAX };
    same("how many have the word", &store.records(search).await?.len(), &bodies.len())?;
    Ok(Verdict::Passed)
}

pub(super) async fn one_of_many_wins_each_revision(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    for round in 0..25_u64 {
        let rev = (round > 0).then_some(round);
        let racers = (0..WRITERS).map(|racer| {
            let store = Arc::clone(&store);
            let body = vec![racer];
            let record = Record { body: body.clone(), ..record(1) };
            let expect = vec![Expect::Record { table: TABLE, id: id(1), rev }];
            let batch = Batch { expect, writes: vec![put(record, Place::Keep), publish(feed(1), "", None)] };
            async move { (store.commit(batch).await.map(|_| ()), body) }
        });
        let results = together(racers).await?;
        let winners: Vec<_> = results.iter().filter(|(result, _)| result.is_ok()).map(|(_, body)| body).collect();
        let [winner] = winners[..] else {
            return Err(Finding::new(format!("round {round}: {} of {WRITERS} racers won", winners.len())));
        };
        let found = Some(round + 1);
        let lost = conflict(Expectation::Record { table: TABLE, id: id(1), found }).map(|_| ());
        for (result, _) in results.iter().filter(|(result, _)| result.is_err()) {
            same("what a loser hears", result, &lost)?;
        }
        let expected = Record { rev: round + 1, body: winner.clone(), ..record(1) };
        same("the record", &find(&store, TABLE, 1).await?, &Some(expected))?;
    }
    let items: Vec<_> = (1..=25).map(|n| item(n, "", None)).collect();
    let news = store.feed(feed(1), 0, usize::MAX).await?;
    same("what was told of it", &news, &items)?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_bound_holds_when_many_count(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let counter = |store: Handle| async move {
        let mut counted = 0;
        for _ in 0..BATCHES {
            match store.commit(writes([count("c", 1, Some(100))])).await {
                Ok(_) => counted += 1,
                Err(error) => {
                    let full = StoreError::Conflict(Expectation::Counter(Counter("c".to_owned())));
                    same("what is beyond the bound", &error, &full)?;
                }
            }
        }
        Ok::<u64, Finding>(counted)
    };
    let mut sum = 0;
    for counted in together((0..WRITERS).map(|_| counter(Arc::clone(&store)))).await? {
        sum += counted?;
    }
    same("how many counted", &sum, &100)?;
    same("what was counted", &counted(&store, "c").await?, &100)?;
    let takers = (0..WRITERS).map(|_| {
        let store = Arc::clone(&store);
        async move { store.commit(writes([count("c", -20, None)])).await.map(|_| ()) }
    });
    for taken in together(takers).await? {
        taken?;
    }
    same("what is left when more is taken than there is", &counted(&store, "c").await?, &0)?;
    Ok(Verdict::Passed)
}
