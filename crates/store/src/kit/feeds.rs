//! Feeds and counters, one Batch at a time.

use super::hints::hear;
use super::shelf::{TABLE, conflict, count, counted, feed, id, item, publish, put, record, write};
use super::world::writes;
use super::{Outcome, Subject, Verdict, same};
use crate::batch::Write;
use crate::error::Expectation;
use crate::port::Hint;
use crate::records::{Counter, FEED_BYTES, Feed, FeedKind, Place};
use std::sync::Arc;

pub(super) async fn a_feed_is_numbered_without_a_gap(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let actor = Feed { kind: FeedKind::Actor, ..feed(1) };
    let heads = [feed(1), actor, feed(2), feed(9), feed(1)];
    same("the heads before there is an item", &store.feed_heads(&heads).await?, &vec![0; 5])?;
    same("a feed before it has an item", &store.feed(feed(1), 0, 9).await?, &Vec::new())?;
    store.commit(writes([publish(feed(1), "a", None), publish(actor, "x", None), publish(feed(1), "b", None)])).await?;
    for text in ["c", "d", ""] {
        write(&store, publish(feed(1), text, None)).await?;
        // Numbers are taken, and then the Batch conflicts.
        let fails = writes([publish(feed(1), "lost", None), publish(feed(2), "lost", None), count("c", 1, Some(0))]);
        let full = conflict(Expectation::Counter(Counter("c".to_owned())));
        same("a batch whose last write conflicts", &store.commit(fails).await, &full)?;
    }
    let all: Vec<_> = (1..).zip(["a", "b", "c", "d", ""]).map(|(n, text)| item(n, text, None)).collect();
    same("the feed", &store.feed(feed(1), 0, usize::MAX).await?, &all)?;
    same("a part of it", &store.feed(feed(1), 2, 2).await?, &all.get(2..4).unwrap_or_default().to_vec())?;
    for (after, limit) in [(5, 9), (u64::MAX, 9), (0, 0)] {
        same("nothing of it", &store.feed(feed(1), after, limit).await?, &Vec::new())?;
    }
    same("the feed of another kind", &store.feed(actor, 0, 9).await?, &vec![item(1, "x", None)])?;
    same("the heads", &store.feed_heads(&heads).await?, &vec![5, 1, 0, 0, 5])?;
    same("no heads", &store.feed_heads(&[]).await?, &Vec::new())?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_part_of_a_feed_is_capped_in_bytes(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let half = FEED_BYTES / 2;
    // Two that are just not enough and one more; two that are exactly enough; one that is more than enough alone.
    let sizes = [half, half - 1, 1, half, half, FEED_BYTES + 1, 0, 1];
    let texts: Vec<_> = sizes.iter().map(|size| "x".repeat(*size)).collect();
    for text in &texts {
        write(&store, publish(feed(1), text, None)).await?;
    }
    let mut after = 0;
    for parts in [3, 2, 1, 2, 0] {
        let items = store.feed(feed(1), after, 9).await?;
        let all: Vec<_> = (1..).zip(&texts).map(|(n, text)| item(n, text, None)).collect();
        let from = usize::try_from(after).unwrap_or(usize::MAX);
        same("the next part", &items, &all.get(from..from + parts).unwrap_or_default().to_vec())?;
        after += parts as u64;
    }
    same("fewer than that", &store.feed(feed(1), 0, 1).await?.len(), &1)?;
    Ok(Verdict::Passed)
}

pub(super) async fn an_item_keeps_where_its_record_stood(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let of = Some((TABLE, id(1)));
    let tell = |text: &str| publish(feed(1), text, of);
    store
        .commit(writes([
            tell("absent"),
            put(record(1), Place::Next),
            tell("new"),
            put(record(1), Place::At(u64::MAX)),
            tell("far"),
        ]))
        .await?;
    write(&store, put(record(1), Place::At(40))).await?;
    let touch = Write::Touch { table: TABLE, key: "key".to_owned(), place: 90 };
    let keyed = crate::records::Record { key: Some("key".to_owned()), ..record(1) };
    store.commit(writes([tell("as it was"), put(keyed, Place::Keep), touch, tell("touched")])).await?;
    store.commit(writes([Write::DeleteRecord(TABLE, id(1)), tell("removed"), publish(feed(1), "alone", None)])).await?;
    let expected = [
        ("absent", None),
        ("new", Some((1, 1))),
        ("far", Some((u64::MAX, 2))),
        ("as it was", Some((40, 3))),
        ("touched", Some((90, 4))),
        ("removed", None),
        ("alone", None),
    ];
    let expected: Vec<_> = (1..).zip(expected).map(|(n, (text, of))| item(n, text, of)).collect();
    same("the feed", &store.feed(feed(1), 0, 99).await?, &expected)?;
    Ok(Verdict::Passed)
}

pub(super) async fn an_erased_feed_goes_on(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let all = ["a", "b"].map(|text| publish(feed(1), text, None));
    store.commit(writes(all.into_iter().chain([publish(feed(2), "x", None)]))).await?;
    store.commit(writes([Write::EraseFeed(feed(1)), Write::EraseFeed(feed(9))])).await?;
    same("the feed", &store.feed(feed(1), 0, 9).await?, &Vec::new())?;
    same("the heads", &store.feed_heads(&[feed(1), feed(2), feed(9)]).await?, &vec![2, 1, 0])?;
    let again = [publish(feed(1), "c", None), Write::EraseFeed(feed(1)), publish(feed(1), "d", None)];
    store.commit(writes(again.into_iter().chain([publish(feed(9), "first", None)]))).await?;
    same("the feed once it goes on", &store.feed(feed(1), 0, 9).await?, &vec![item(4, "d", None)])?;
    same("a feed that was erased before it began", &store.feed(feed(9), 0, 9).await?, &vec![item(1, "first", None)])?;
    same("another feed", &store.feed(feed(2), 0, 9).await?, &vec![item(1, "x", None)])?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_counter_is_bounded(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    same("a counter that nobody counts", &counted(&store, "c").await?, &0)?;
    let most = i64::MAX as u64;
    // By how much, up to what, and what it then is; `None` is a conflict.
    let steps = [
        (5, Some(5), Some(5)),
        (1, Some(5), None),
        (0, Some(4), None),
        (0, None, Some(5)),
        (-1, Some(3), None),
        (-2, Some(3), Some(3)),
        (-4, Some(0), Some(0)),
        (i64::MIN, None, Some(0)),
        (7, None, Some(7)),
        (i64::MIN, Some(9), Some(0)),
        (i64::MAX, None, Some(most)),
        (i64::MAX, Some(u64::MAX), Some(2 * most)),
        (2, None, None),
        (1, None, Some(u64::MAX)),
        (1, None, None),
        (-1, None, Some(u64::MAX - 1)),
        (i64::MIN, None, Some(most - 1)),
    ];
    let mut value = 0;
    for (by, max, expected) in steps {
        let what = format!("{value} and {by}, at most {max:?}");
        let answer = write(&store, count("c", by, max)).await.map(|_| ());
        let full = conflict(Expectation::Counter(Counter("c".to_owned()))).map(|_| ());
        same(&what, &answer, &if expected.is_some() { Ok(()) } else { full })?;
        value = expected.unwrap_or(value);
        same(&what, &counted(&store, "c").await?, &value)?;
    }
    store.commit(writes([count("d", 1, Some(2)), count("C", 8, None), count("d", 1, Some(2))])).await?;
    for (name, expected) in [("d", 2), ("C", 8), ("", 0)] {
        same(&format!("the counter {name:?}"), &counted(&store, name).await?, &expected)?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn listeners_hear_of_a_feed(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let mut hints = store.hints();
    store.commit(writes([put(record(1), Place::Next), publish(feed(1), "a", None)])).await?;
    hear(&mut hints, &[Hint::Feed(feed(1))]).await?;
    let actor = Feed { kind: FeedKind::Actor, ..feed(1) };
    store.commit(writes([publish(actor, "a", None), publish(feed(2), "a", None)])).await?;
    hear(&mut hints, &[Hint::Feed(actor)]).await?;
    hear(&mut hints, &[Hint::Feed(feed(2))]).await?;
    Ok(Verdict::Passed)
}
