//! The same requests to this store and to the in-memory one: they must answer alike and hold the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use loopd_kernel::question::{Ask, OpenQuestion};
use loopd_kernel::{Digest, QuestionId, RunId, Seq, TimeMs};
use loopd_store::{
    Batch, Claim, Expect, InboxBody, InboxItem, MemoryStore, QuestionRow, RunFilter, RunRow, RunStatus, Runnable,
    Snapshot, Store, WorkerId, Write,
};
use loopd_store_sqlite::SqliteStore;
use std::sync::Arc;
use support::{Dice, row, step};
use tempfile::TempDir;

const RUNS: u8 = 5;

/// What requests are made of.
trait Proposes {
    fn run(&mut self) -> RunId;
    fn time(&mut self) -> TimeMs;
    fn version(&mut self) -> String;
    fn runnable(&mut self) -> Runnable;
    fn status(&mut self) -> RunStatus;
}

impl Proposes for Dice {
    fn run(&mut self) -> RunId {
        RunId([1 + self.roll(u64::from(RUNS)) as u8; 16])
    }

    fn time(&mut self) -> TimeMs {
        TimeMs(self.roll(20) as i64 * 100)
    }

    fn version(&mut self) -> String {
        ["1.0.0", "1.2", "2.0", "12", ""][self.roll(5) as usize].to_owned()
    }

    fn runnable(&mut self) -> Runnable {
        Runnable {
            loop_name: ["echo", "echo", "echo", "poem"][self.roll(4) as usize].to_owned(),
            major: self.maybe(|dice| ["1", "2", "1.0", ""][dice.roll(4) as usize].to_owned()),
            version: self.maybe(Self::version),
            definition: self.maybe(|dice| Digest::sha256(&[&[dice.roll(2) as u8]])),
        }
    }

    fn status(&mut self) -> RunStatus {
        // Seldom the end: little happens after it.
        let at = [0, 0, 1, 1, 1, 2, 2, 3][self.roll(8) as usize];
        RunStatus::ALL[at]
    }
}

/// What a Run looks like to the model, so that most requests make sense and some do not.
async fn known(model: &MemoryStore, run: RunId) -> RunRow {
    model.run(run).await.unwrap().unwrap_or_else(|| row(run.0[0]))
}

async fn write(dice: &mut Dice, model: &MemoryStore) -> Write {
    let run = dice.run();
    let mut own = known(model, run).await;
    match dice.roll(14) {
        0 | 1 => {
            own = row(run.0[0]);
            own.admission = dice.maybe(|dice| format!("key {}", dice.roll(3)));
            (own.status, own.wake_at) = (dice.status(), dice.maybe(Dice::time));
            own.worker = dice.maybe(|dice| WorkerId(dice.roll(3)));
            (own.parent, own.version) = (dice.maybe(Dice::run), dice.version());
            own.updated_at = dice.time();
            Write::CreateRun(Box::new(own))
        }
        2 | 3 => {
            if dice.roll(5) == 0 {
                own.head = Seq(own.head.0 + 1);
            }
            step(&mut own, dice.roll(200) as usize).writes.swap_remove(0)
        }
        4 => Write::UpdateRun {
            run,
            status: dice.status(),
            worker: dice.maybe(|dice| WorkerId(dice.roll(3))),
            wake_at: dice.maybe(Dice::time),
            outcome: dice.maybe(|_| "completed".to_owned()),
            iteration: dice.roll(9),
            tokens: u64::MAX - dice.roll(9),
            spent: loopd_kernel::MicroUsd(dice.roll(9)),
            updated_at: dice.time(),
        },
        5 => Write::PutSnapshot(Snapshot { run, seq: Seq(dice.roll(5)), body: vec![0; dice.roll(9) as usize] }),
        6 => {
            let bytes: Arc<[u8]> = vec![dice.roll(4) as u8; 3].into();
            Write::PutBlob { digest: Digest::sha256(&[&bytes]), bytes }
        }
        at @ (7 | 10 | 11) => {
            let text = || "x".to_owned();
            let body = match dice.roll(2) {
                0 => InboxBody::Signal { name: text(), body: text() },
                _ => InboxBody::Cancel { actor: text(), reason: text() },
            };
            let key = format!("key {}", dice.roll(12));
            let item = InboxItem { id: 0, run, key, at: dice.time(), body };
            if at == 11 { Write::Notify(item) } else { Write::AddInbox(item) }
        }
        8 => Write::TakeInbox { run, id: dice.roll(20) as i64 },
        9 => {
            let ask = Ask::Confirm { prompt: "well?".to_owned(), expires_in_ms: None };
            let id = QuestionId(dice.roll(3));
            let question = OpenQuestion { id, ask, asked_at: dice.time(), expires_at: None };
            Write::OpenQuestion(Box::new(QuestionRow { run, question }))
        }
        12 => {
            let definition = Digest::sha256(&[&[dice.roll(2) as u8]]);
            Write::ChangeDefinition { run, version: dice.version(), definition }
        }
        _ => Write::EndQuestion { run, question: QuestionId(dice.roll(3)) },
    }
}

async fn batch(dice: &mut Dice, model: &MemoryStore) -> Batch {
    let mut batch = Batch::default();
    for _ in 0..dice.roll(3) {
        let own = known(model, dice.run()).await;
        let (seq, epoch) = match dice.roll(8) {
            0 => (own.head.next(), own.epoch),
            1 => (own.head, own.epoch.next()),
            _ => (own.head, own.epoch),
        };
        batch.expect.push(match dice.roll(6) {
            0 => Expect::RunAbsent(own.run),
            _ => Expect::RunAt { run: own.run, seq, epoch },
        });
    }
    for _ in 0..dice.roll(4) {
        let write = write(dice, model).await;
        batch.writes.push(write);
    }
    batch
}

/// Everything that a store shows, as text.
async fn everything(store: &dyn Store) -> String {
    let all = usize::MAX;
    let mut seen = Vec::new();
    for n in 1..=RUNS {
        let run = RunId([n; 16]);
        seen.push(format!("{:?}", store.run(run).await.unwrap()));
        seen.push(format!("{:?}", store.entries(run, Seq(0), all).await.unwrap()));
        seen.push(format!("{:?}", store.snapshot(run).await.unwrap()));
        seen.push(format!("{:?}", store.inbox(run, all).await.unwrap()));
    }
    for n in 1..=RUNS {
        let children = RunFilter { parent: Some(RunId([n; 16])), limit: 2, ..RunFilter::default() };
        seen.push(format!("{:?}", store.runs(children).await.unwrap()));
    }
    for n in 0..4 {
        seen.push(format!("{:?}", store.blob(Digest::sha256(&[&[n; 3]])).await.unwrap()));
    }
    seen.push(format!("{:?}", store.questions(None, all).await.unwrap()));
    seen.push(format!("{:?}", store.next_wake().await.unwrap()));
    seen.push(format!("{:?}", store.runs(RunFilter { limit: 3, ..RunFilter::default() }).await.unwrap()));
    seen.join("\n")
}

#[tokio::test]
async fn it_answers_like_the_model() {
    let folder = TempDir::new().unwrap();
    let mut committed = 0;
    for seed in 0..12_u64 {
        let (mut dice, model) = (Dice(seed), MemoryStore::new());
        let store = SqliteStore::open_driver(folder.path().join(format!("{seed}.db"))).unwrap();
        for at in 0..250 {
            let what = format!("seed {seed}, request {at}");
            match dice.roll(12) {
                0 => {
                    let (worker, until) = (WorkerId(dice.roll(3)), dice.time());
                    assert_eq!(store.heartbeat(worker, until).await, model.heartbeat(worker, until).await, "{what}");
                }
                1 => {
                    let claim = Claim {
                        worker: WorkerId(dice.roll(3)),
                        now: dice.time(),
                        loops: dice.maybe(Dice::runnable).into_iter().collect(),
                        limit: dice.roll(4) as usize,
                        only: dice.maybe(Dice::run),
                    };
                    assert_eq!(store.claim(claim.clone()).await, model.claim(claim).await, "{what}");
                }
                _ => {
                    let batch = batch(&mut dice, &model).await;
                    let answer = store.commit(batch.clone()).await;
                    committed += usize::from(answer.is_ok());
                    assert_eq!(answer, model.commit(batch.clone()).await, "{what}: {batch:?}");
                }
            }
            if at % 10 == 0 {
                assert_eq!(everything(&store).await, everything(&model).await, "{what}");
            }
        }
        assert_eq!(everything(&store).await, everything(&model).await, "seed {seed}");
    }
    // The dice are of use only while a good part of what they propose is accepted.
    assert!(committed > 500, "{committed}");
}
