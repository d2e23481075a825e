//! Counts what a step costs on the device: `steps FOLDER [RUNS] [STEPS] [PAYLOAD]`.
//!
//! A step is one Batch of one Run: three Entries and the run row. Prints one line; under
//! `strace -f -c -e trace=fsync,fdatasync` it also shows the flushes.
#![allow(clippy::print_stdout, reason = "a program whose output is its purpose")]
#![allow(clippy::unwrap_used, reason = "a measurement that fails has no other way out")]

use loopd_kernel::entry::FORMAT;
use loopd_kernel::{Digest, Entry, Epoch, Kind, MicroUsd, RunId, Salt, Seq, TimeMs, chain};
use loopd_store::{Batch, Expect, RunRow, RunStatus, Store, WorkerId, Write};
use loopd_store_sqlite::SqliteStore;
use std::sync::Arc;
use std::time::Instant;

struct Journal {
    row: RunRow,
    payload: usize,
}

impl Journal {
    fn new(n: u64, payload: usize) -> Self {
        let mut run = RunId(Digest::sha256(&[&n.to_be_bytes()]).0[..16].try_into().unwrap());
        run.0[0] = n as u8;
        let row = RunRow {
            run,
            tenant: "default".to_owned(),
            admission: None,
            loop_name: "steps".to_owned(),
            version: "1.0.0".to_owned(),
            definition: Digest::default(),
            origin: None,
            parent: None,
            status: RunStatus::Running,
            head: Seq(0),
            hash: chain::genesis(run),
            epoch: Epoch(1),
            worker: Some(WorkerId(1)),
            wake_at: None,
            outcome: None,
            iteration: 0,
            tokens: 0,
            spent: MicroUsd(0),
            created_at: TimeMs(1_700_000_000_000),
            updated_at: TimeMs(1_700_000_000_000),
        };
        Self { row, payload }
    }

    fn entry(&mut self, kind: Kind, record: String, payload: usize) -> Entry {
        let seq = self.row.head.next();
        let block = |n: u64| Digest::sha256(&[&self.row.run.0, &seq.0.to_be_bytes(), &n.to_be_bytes()]).0;
        let mut entry = Entry {
            run: self.row.run,
            seq,
            kind,
            format: FORMAT,
            at: TimeMs(1_700_000_000_000 + seq.0 as i64 * 31),
            salt: Salt::from_random(block(0)),
            record,
            payload: (1..).flat_map(block).take(payload).collect(),
            hash: Digest::default(),
        };
        entry.hash = entry.hash_after(&self.row.hash);
        (self.row.head, self.row.hash, self.row.updated_at) = (seq, entry.hash, entry.at);
        entry
    }

    fn step(&mut self) -> Batch {
        let (run, seq, epoch) = (self.row.run, self.row.head, self.row.epoch);
        let n = self.row.iteration + 1;
        let settled = format!(
            r#"{{"call":{n},"attempt":1,"end":"landed","usage":{{"input":812,"output":120}},"cost":1834,"body":[0,400]}}"#
        );
        let decided = format!(r#"{{"iteration":{n},"patch":[0,96],"actions":[{{"tool":"search","args":[96,80]}}]}}"#);
        let intended = format!(
            r#"{{"call":{},"tool":"search","class":"once","key":"k{n}","args":[0,{}],"reserve":5000}}"#,
            n + 1,
            self.payload / 4
        );
        let (half, quarter) = (self.payload / 2, self.payload / 4);
        let entries = vec![
            self.entry(Kind::Settled, settled, half),
            self.entry(Kind::Decided, decided, quarter),
            self.entry(Kind::Intended, intended, quarter),
        ];
        (self.row.iteration, self.row.tokens, self.row.spent) = (n, n * 932, MicroUsd(n * 1_834));
        let row = &self.row;
        let update = Write::UpdateRun {
            run,
            status: row.status,
            worker: row.worker,
            wake_at: row.wake_at,
            outcome: None,
            iteration: row.iteration,
            tokens: row.tokens,
            spent: row.spent,
            updated_at: row.updated_at,
        };
        Batch { expect: vec![Expect::RunAt { run, seq, epoch }], writes: vec![Write::Append { run, entries }, update] }
    }
}

/// Bytes that this process has caused to be sent to the device.
fn device_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.unwrap().parse().unwrap()
}

fn cpu_ms() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = text.rsplit(')').next().unwrap().split(' ').collect();
    (fields[12].parse::<u64>().unwrap() + fields[13].parse::<u64>().unwrap()) * 10
}

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() {
    let mut args = std::env::args().skip(1);
    let folder = std::path::PathBuf::from(args.next().unwrap());
    let mut number = |default: u64| args.next().map_or(default, |arg| arg.parse().unwrap());
    let (runs, steps, payload) = (number(1), number(2_000), number(700) as usize);
    let path = folder.join("steps.db");
    let store = Arc::new(SqliteStore::open_driver(&path).unwrap());
    let mut journals: Vec<_> = (0..runs).map(|n| Journal::new(n, payload)).collect();
    for journal in &journals {
        let create = Write::CreateRun(Box::new(journal.row.clone()));
        store.commit(Batch { expect: Vec::new(), writes: vec![create] }).await.unwrap();
    }
    let (before, device, cpu, start) = (store.stats(), device_bytes(), cpu_ms(), Instant::now());
    let mut tasks = Vec::new();
    for mut journal in journals.drain(..) {
        let store = Arc::clone(&store);
        tasks.push(tokio::spawn(async move {
            for _ in 0..steps {
                store.commit(journal.step()).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let (elapsed, cpu) = (start.elapsed().as_secs_f64(), cpu_ms() - cpu);
    let (device, after) = (device_bytes() - device, store.stats());
    drop(store);
    let all = (runs * steps) as f64;
    let stored = std::fs::metadata(&path).unwrap().len() as f64 / all;
    println!(
        "runs {runs} steps {steps}: {:.0} steps/s, {:.1} us cpu/step, groups/step {:.3}, device {:.0} B/step, stored {stored:.0} B/step = {:.3} x (payload + 600)",
        all / elapsed,
        cpu as f64 * 1e3 / all,
        (after.groups - before.groups) as f64 / all,
        device as f64 / all,
        stored / (payload as f64 + 600.0),
    );
}
