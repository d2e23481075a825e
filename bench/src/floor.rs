//! Physical limits: what the disk and SQLite allow here without any kernel.

use crate::meter;
use crate::noop::fresh_text;
use crate::probe::Parameters;
use anyhow::Result;
use rusqlite::{Connection, TransactionBehavior, params};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc;
use std::time::Instant;
use tokio::sync::oneshot;

/// Appends 512 bytes and flushes, one writer.
pub fn append(parameters: &Parameters) -> Result<Value> {
    let count = parameters.number("n", 2000);
    let mut file = std::fs::File::create(parameters.folder().join("append"))?;
    let block = fresh_text(512);
    let start = Instant::now();
    for _ in 0..count {
        file.write_all(block.as_bytes())?;
        file.sync_data()?;
    }
    Ok(json!({ "per_s": count as f64 / start.elapsed().as_secs_f64() }))
}

/// One row of 512 bytes in each transaction: WAL, synchronous FULL.
pub fn sqlite(parameters: &Parameters) -> Result<Value> {
    let count = parameters.number("n", 2000);
    let mut conn = open(&parameters.folder().join("raw.db"))?;
    let start = Instant::now();
    for seq in 0..count {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        insert(&tx, 1, seq, &fresh_text(512), &[9; 32])?;
        tx.commit()?;
    }
    Ok(json!({ "per_s": count as f64 / start.elapsed().as_secs_f64() }))
}

fn open(path: &Path) -> Result<Connection> {
    let conn = Connection::open(path)?;
    conn.execute_batch(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
         CREATE TABLE event(loop INTEGER NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL, hash BLOB NOT NULL);
         CREATE UNIQUE INDEX event_seq ON event(loop, seq);",
    )?;
    Ok(conn)
}

fn insert(conn: &Connection, id: u64, seq: u64, body: &str, hash: &[u8]) -> Result<()> {
    let mut statement = conn.prepare_cached("INSERT INTO event VALUES(?1, ?2, ?3, ?4)")?;
    statement.execute(params![id as i64, seq as i64, body.as_bytes(), hash])?;
    Ok(())
}

struct Group {
    rows: Vec<(u64, u64, String, [u8; 32])>,
    reply: oneshot::Sender<()>,
}

/// The least that a loop kernel on SQLite must do: two chained events a step, result and next intent in
/// one commit, one writer that commits whatever waits.
pub fn loop_floor(parameters: &Parameters) -> Result<Value> {
    let (loops, steps) = (parameters.number("loops", 1), parameters.number("steps", 2000));
    let path = parameters.folder().join("floor.db");
    let (sender, receiver) = mpsc::channel::<Group>();
    let conn = open(&path)?;
    let writer = std::thread::spawn(move || write_groups(conn, &receiver));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let before = meter::device_bytes();
    let start = Instant::now();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..loops).map(|id| tokio::spawn(one_loop(id, steps, sender.clone()))).collect();
        for task in tasks {
            let _ = task.await;
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    drop(sender);
    let commits = writer.join().unwrap_or(Ok(0))?;
    let total = (loops * steps) as f64;
    Ok(json!({
        "steps_per_s": total / seconds,
        "commits_per_step": commits as f64 / total,
        "device_bytes_per_step": (meter::device_bytes() - before) as f64 / total,
    }))
}

async fn one_loop(id: u64, steps: u64, sender: mpsc::Sender<Group>) {
    let (mut hash, mut seq) = ([0_u8; 32], 0);
    for _ in 0..steps {
        let mut rows = Vec::with_capacity(2);
        for size in [512, 300] {
            seq += 1;
            let body = fresh_text(size);
            hash = Sha256::new().chain_update(hash).chain_update(&body).finalize().into();
            rows.push((id, seq, body, hash));
        }
        let (reply, done) = oneshot::channel();
        if sender.send(Group { rows, reply }).is_err() || done.await.is_err() {
            return;
        }
    }
}

fn write_groups(mut conn: Connection, receiver: &mpsc::Receiver<Group>) -> Result<u64> {
    let mut commits = 0;
    while let Ok(first) = receiver.recv() {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut replies = Vec::new();
        for group in std::iter::once(first).chain(receiver.try_iter()) {
            for (id, seq, body, hash) in group.rows {
                insert(&tx, id, seq, &body, &hash)?;
            }
            replies.push(group.reply);
        }
        tx.commit()?;
        commits += 1;
        for reply in replies {
            let _ = reply.send(());
        }
    }
    Ok(commits)
}
