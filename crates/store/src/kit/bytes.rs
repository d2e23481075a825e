//! What goes in comes out, byte for byte.

use super::world::{Pen, View, create, ends_at, item, row, run_id, update, writes};
use super::{Handle, Outcome, Subject, Verdict, same, shelf};
use crate::batch::Write;
use crate::records::{FeedItem, NewItem, Place, Query, Record};
use crate::rows::{ITEM_BYTES, ITEM_OVERHEAD, InboxBody, QuestionRow, RunRow, RunStatus, Snapshot, WorkerId};
use loopd_kernel::budget::Limits;
use loopd_kernel::question::{Ask, OpenQuestion, QuestionEnd};
use loopd_kernel::{Digest, Entry, Epoch, MicroUsd, QuestionId, RunId, Seq, TimeMs};
use std::sync::Arc;

/// Texts that stores have spoiled before: NUL, controls, what no JSON number holds, keys that repeat, escapes of
/// half a character, what looks like another type, spaces at the ends, what compares equal without being it.
const ODD: &[&str] = &[
    "",
    "\0",
    "a\0b",
    "\u{1}\u{7f}\u{85}\u{2028}",
    r#"{"a":1,"a":2,"b":1e400,"c":-0.0,"d":0.10000000000000000001,"e":123456789012345678901234567890}"#,
    r#"{ "half" : "\ud800", "nul" : "\u0000" }"#,
    " 007 ",
    "1e5",
    "NULL",
    "x'00'",
    "'; DROP TABLE run; --",
    "%_\\",
    "é",
    "e\u{301}",
    "\u{feff}\u{10ffff}🦀",
    "STRASSE",
    "straße",
    "\r\n",
];

async fn append(store: &Handle, pen: &mut Pen, entry: Entry) -> Result<(), super::Finding> {
    let run = entry.run;
    store.commit(writes([Write::Append { run, entries: vec![entry.clone()] }])).await?;
    let before = Seq(entry.seq.0.saturating_sub(1));
    same("the entry", &store.entries(run, before, 10).await?, &vec![entry])?;
    ends_at(store, pen).await
}

pub(super) async fn odd_bytes_come_back_exactly(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let mut pen = create(&store, &row(1)).await?;
    for text in ODD {
        let entry = pen.write(text, text.as_bytes());
        append(&store, &mut pen, entry).await?;
    }
    let every_byte: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    let entry = pen.write("{}", &every_byte);
    append(&store, &mut pen, entry).await?;
    let digest = Digest::sha256(&[&every_byte]);
    store.commit(writes([Write::PutBlob { digest, bytes: Arc::from(&every_byte[..]) }])).await?;
    same("a blob of every byte", &store.blob(digest).await?, &Some(every_byte.clone()))?;
    let snapshot = Snapshot { run: run_id(1), seq: Seq(1), body: every_byte };
    store.commit(writes([Write::PutSnapshot(snapshot.clone())])).await?;
    same("a snapshot of every byte", &store.snapshot(run_id(1)).await?, &Some(snapshot))?;

    for (at, text) in ODD.iter().enumerate() {
        odd_row(&store, 100 + at as u64, text).await?;
    }
    Ok(Verdict::Passed)
}

/// A Run with `text` wherever a text can stand.
async fn odd_row(store: &Handle, n: u64, text: &str) -> Result<(), super::Finding> {
    let run = run_id(n);
    let text = || text.to_owned();
    let mut expected = RunRow {
        tenant: text(),
        admission: Some(text()),
        loop_name: text(),
        version: text(),
        origin: Some(text()),
        parent: Some(run_id(n + 1_000)),
        outcome: Some(text()),
        ..row(n)
    };
    let pen = create(store, &expected).await?;
    (expected.head, expected.hash) = (pen.head, pen.hash);
    let ask = Ask::Ask { prompt: text(), schema: Some(text()), expires_in_ms: None, reply_to: Some(text()) };
    let question = OpenQuestion { id: QuestionId(1), ask, asked_at: TimeMs(1), expires_at: None };
    let question = QuestionRow { run, question };
    let bodies = [
        InboxBody::Signal { name: text(), body: text() },
        InboxBody::Answer { question: QuestionId(1), end: QuestionEnd::Answered, actor: text(), value: text() },
        InboxBody::Cancel { actor: text(), reason: text() },
        InboxBody::Reopen { actor: text(), raise: Limits { tokens: Some(u64::MAX), ..Limits::default() } },
    ];
    let items = bodies.into_iter().enumerate();
    let mut items: Vec<_> = items.map(|(at, body)| item(run, &format!("{}{at}", text()), body)).collect();
    let adds = items.iter().cloned().map(Write::AddInbox);
    store.commit(writes(adds.chain([Write::OpenQuestion(Box::new(question.clone()))]))).await?;

    let found = View::of(store, run).await?;
    for (item, stored) in items.iter_mut().zip(&found.inbox) {
        item.id = stored.id;
    }
    let entries = store.entries(run, Seq(0), 10).await?;
    let expected = View { row: Some(expected), entries, snapshot: None, inbox: items, questions: vec![question] };
    same("a run of odd texts", &found, &expected)
}

pub(super) async fn large_bodies_come_back_exactly(subject: Arc<dyn Subject>) -> Outcome {
    const LARGE: usize = 2 << 20;
    let store = subject.open().await?;
    let mut pen = create(&store, &row(1)).await?;
    // Neither constant nor compressible, and with every byte in it.
    let bytes: Vec<u8> = (0..LARGE as u64 / 32).flat_map(|n| Digest::sha256(&[&n.to_be_bytes()]).0).collect();
    let entry = pen.write("{}", &bytes);
    append(&store, &mut pen, entry).await?;
    let record = format!("\"{}\"", "x\u{fc}".repeat(LARGE / 3));
    let entry = pen.write(&record, b"");
    append(&store, &mut pen, entry).await?;
    let small = pen.write("{}", b"small");
    append(&store, &mut pen, small).await?;

    let digest = Digest::sha256(&[&bytes]);
    let snapshot = Snapshot { run: run_id(1), seq: Seq(2), body: bytes.clone() };
    let largest = ITEM_BYTES - ITEM_OVERHEAD - "large".len();
    let signal = InboxBody::Signal { name: "large".to_owned(), body: "\0".repeat(largest) };
    let mut item = item(run_id(1), "large", signal);
    store
        .commit(writes([
            Write::PutBlob { digest, bytes: Arc::from(&bytes[..]) },
            Write::PutSnapshot(snapshot.clone()),
            Write::AddInbox(item.clone()),
        ]))
        .await?;
    same("a large blob", &store.blob(digest).await?, &Some(bytes))?;
    same("a large snapshot", &store.snapshot(run_id(1)).await?, &Some(snapshot))?;
    let inbox = store.inbox(run_id(1), 10).await?;
    item.id = inbox.first().map_or(0, |item| item.id);
    same("a large inbox item", &inbox, &vec![item])?;
    Ok(Verdict::Passed)
}

pub(super) async fn numbers_come_back_at_their_limits(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let limits = [(1, u64::MAX, i64::MAX), (2, 1 << 63, i64::MIN), (3, (1 << 63) - 1, -1), (4, 0, 0)];
    for (n, number, time) in limits {
        let mut expected = RunRow {
            run: if n == 1 { RunId([0xff; 16]) } else { RunId([n as u8 - 2; 16]) },
            status: RunStatus::Suspended,
            epoch: Epoch(number),
            worker: Some(WorkerId(number)),
            wake_at: Some(TimeMs(time)),
            iteration: number,
            tokens: number,
            spent: MicroUsd(number),
            created_at: TimeMs(time),
            updated_at: TimeMs(time),
            ..row(n)
        };
        expected.hash = loopd_kernel::chain::genesis(expected.run);
        let pen = create(&store, &expected).await?;
        (expected.head, expected.hash) = (pen.head, pen.hash);
        same("a row at the limits", &store.run(expected.run).await?, &Some(expected.clone()))?;
        expected.worker = None;
        store.commit(writes([update(&expected)])).await?;
        same("the same after an update", &store.run(expected.run).await?, &Some(expected))?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn records_and_items_hold_any_bytes(subject: Arc<dyn Subject>) -> Outcome {
    const LARGE: usize = 2 << 20;
    let store = subject.open().await?;
    let every_byte: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    let large: Vec<u8> = (0..LARGE as u64 / 32).flat_map(|n| Digest::sha256(&[&n.to_be_bytes()]).0).collect();
    for (n, body) in (1..).zip([&every_byte, &large, &Vec::new()]) {
        let expected = Record { place: u64::from(n), body: body.clone(), ..shelf::record(n) };
        let item = NewItem { feed: shelf::feed(1), at: TimeMs(i64::MIN), of: None, body: Arc::from(&body[..]) };
        store.commit(writes([shelf::put(expected.clone(), Place::Next), Write::Publish(item)])).await?;
        same("the record", &shelf::find(&store, shelf::TABLE, n).await?, &Some(expected))?;
        let item = FeedItem { position: u64::from(n), at: TimeMs(i64::MIN), of: None, body: body.clone() };
        same("the item", &store.feed(shelf::feed(1), u64::from(n) - 1, 9).await?, &vec![item])?;
    }
    for (n, text) in (10..).zip(ODD) {
        let key = Some((*text).to_owned());
        let expected = Record { key: key.clone(), scope: shelf::ASIDE, place: u64::from(n) - 9, ..shelf::record(n) };
        // A text is no reason for anything, also where words are taken from it.
        let put = shelf::put(Record { words: key.clone(), ..expected.clone() }, Place::Next);
        store.commit(writes([put, shelf::count(text, i64::from(n), None)])).await?;
        let by_key = Query::Key(shelf::TABLE, shelf::ASIDE, (*text).to_owned());
        same("the record with an odd key", &store.records(by_key).await?, &vec![expected])?;
        same("the counter with an odd name", &shelf::counted(&store, text).await?, &u64::from(n))?;
        let touch = Write::Touch { table: shelf::TABLE, key: (*text).to_owned(), place: 1_000 + u64::from(n) };
        store.commit(writes([touch])).await?;
    }
    let moved: Vec<_> = (10..).zip(ODD).map(|(n, _)| (n, 1_000 + u64::from(n))).collect();
    same("each touch moved one", &shelf::listed(&store, shelf::TABLE, shelf::ASIDE).await?, &moved)?;
    Ok(Verdict::Passed)
}
