//! What the tests of this folder build their Batches from.
#![allow(dead_code, reason = "each test program uses a part of it")]

use loopd_kernel::chain::{self, Verifier};
use loopd_kernel::entry::FORMAT;
use loopd_kernel::{Digest, Entry, Epoch, Kind, MicroUsd, RunId, Salt, Seq, TimeMs};
use loopd_store::{Batch, Expect, InboxBody, InboxItem, RunRow, RunStatus, Store, WorkerId, Write};
use std::process::{Child, Command, Stdio};

pub const WORKER: WorkerId = WorkerId(1);

pub fn row(n: u8) -> RunRow {
    let run = RunId([n; 16]);
    RunRow {
        run,
        tenant: "default".to_owned(),
        admission: None,
        loop_name: "echo".to_owned(),
        version: "1.0.0".to_owned(),
        definition: Digest::default(),
        origin: None,
        parent: None,
        status: RunStatus::Running,
        head: Seq(0),
        hash: chain::genesis(run),
        epoch: Epoch(1),
        worker: Some(WORKER),
        wake_at: None,
        outcome: None,
        iteration: 0,
        tokens: 0,
        spent: MicroUsd(0),
        created_at: TimeMs(1_000),
        updated_at: TimeMs(1_000),
    }
}

pub fn creation(row: &RunRow) -> Batch {
    Batch { expect: vec![Expect::RunAbsent(row.run)], writes: vec![Write::CreateRun(Box::new(row.clone()))] }
}

/// A step of three Entries with `payload` bytes in all, and the run row behind it.
pub fn step(row: &mut RunRow, payload: usize) -> Batch {
    let expect = vec![Expect::RunAt { run: row.run, seq: row.head, epoch: row.epoch }];
    let shares = [payload / 2, payload / 4, payload - payload / 2 - payload / 4];
    let entries = shares.into_iter().map(|share| entry(row, share)).collect();
    row.iteration += 1;
    row.tokens = row.tokens.saturating_add(932);
    Batch { expect, writes: vec![Write::Append { run: row.run, entries }, update(row)] }
}

/// The update that makes the stored row look like `row`.
pub fn update(row: &RunRow) -> Write {
    Write::UpdateRun {
        run: row.run,
        status: row.status,
        worker: row.worker,
        wake_at: row.wake_at,
        outcome: row.outcome.clone(),
        iteration: row.iteration,
        tokens: row.tokens,
        spent: row.spent,
        updated_at: row.updated_at,
    }
}

fn entry(row: &mut RunRow, payload: usize) -> Entry {
    let seq = row.head.next();
    let block = |n: u64| Digest::sha256(&[&row.run.0, &seq.0.to_be_bytes(), &n.to_be_bytes()]).0;
    let record = format!(r#"{{"call":{seq},"attempt":1,"end":"landed","usage":{{"input":812,"output":120}}}}"#);
    let mut entry = Entry {
        run: row.run,
        seq,
        kind: Kind::Settled,
        format: FORMAT,
        at: TimeMs(1_700_000_000_000 + seq.0 as i64),
        salt: Salt::from_random(block(0)),
        record,
        payload: (1..).flat_map(block).take(payload).collect(),
        hash: Digest::default(),
    };
    entry.hash = entry.hash_after(&row.hash);
    (row.head, row.hash, row.updated_at) = (seq, entry.hash, entry.at);
    entry
}

pub fn signal(run: RunId, key: &str) -> Batch {
    let body = InboxBody::Signal { name: "more".to_owned(), body: String::new() };
    let item = InboxItem { id: 0, run, key: key.to_owned(), at: TimeMs(5_000), body };
    Batch { expect: Vec::new(), writes: vec![Write::AddInbox(item)] }
}

/// The head of a Journal that reads and verifies to its end.
pub async fn verified(store: &dyn Store, run: RunId) -> Seq {
    let row = store.run(run).await.unwrap().unwrap();
    let mut verifier = Verifier::new(run);
    for entry in store.entries(run, Seq(0), usize::MAX).await.unwrap() {
        verifier.take(&entry).unwrap();
    }
    verifier.finish(row.head, &row.hash).unwrap();
    row.head
}

/// The variable that makes a test of this program act as a child process.
pub const CHILD: &str = "LOOPD_TEST_CHILD";

/// Starts this test program again, to run only the test `name`, which finds `argument` in [`child_argument`].
pub fn child(name: &str, argument: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--quiet"])
        .env(CHILD, argument)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What the parent said, when this process is a child.
pub fn child_argument() -> Option<String> {
    std::env::var(CHILD).ok()
}

/// A generator of numbers that a seed repeats (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    pub fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.roll(2) == 0 { Some(make(self)) } else { None }
    }
}
