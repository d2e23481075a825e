//! Several processes on one file, and processes that die.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use loopd_kernel::{Epoch, RunId, Seq, TimeMs};
use loopd_store::{Batch, Claim, Expectation, Hint, Store, StoreError, WorkerId};
use loopd_store_sqlite::SqliteStore;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::{child, child_argument, creation, row, signal, step, update, verified};
use tempfile::TempDir;

const ITEMS: usize = 1_000;

/// A child: adds its items as a client, several at a time, and reports the first error by failing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_process() {
    let Some(argument) = child_argument() else { return };
    let (name, path) = argument.split_once('=').unwrap();
    let store = Arc::new(SqliteStore::open_client(path).unwrap());
    let mut tasks = Vec::new();
    for lane in 0..8 {
        let (store, name) = (Arc::clone(&store), name.to_owned());
        tasks.push(tokio::spawn(async move {
            for n in (lane..ITEMS).step_by(8) {
                store.commit(signal(RunId([1; 16]), &format!("{name} {n}"))).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert!(store.hears(), "the driver has a socket");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_add_a_thousand_items_each_beside_a_busy_driver() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("loopd.db");
    let store = Arc::new(SqliteStore::open_driver(&path).unwrap());
    store.commit(creation(&row(1))).await.unwrap();
    let busy = Arc::new(AtomicBool::new(true));
    let mut drivers = Vec::new();
    for n in 2..10 {
        let (store, busy, mut row) = (Arc::clone(&store), Arc::clone(&busy), row(n));
        drivers.push(tokio::spawn(async move {
            store.commit(creation(&row)).await.unwrap();
            while busy.load(Ordering::Relaxed) {
                store.commit(step(&mut row, 700)).await.unwrap();
            }
            row.head
        }));
    }
    let argument = |name: &str| format!("{name}={}", path.display());
    let children = [child("client_process", &argument("a")), child("client_process", &argument("b"))];
    for end in children.map(|child| tokio::task::spawn_blocking(move || child.wait_with_output())) {
        let end = end.await.unwrap().unwrap();
        assert!(end.status.success(), "{}", String::from_utf8_lossy(&end.stdout));
    }
    busy.store(false, Ordering::Relaxed);
    for (n, driver) in (2..).zip(drivers) {
        let head = driver.await.unwrap();
        assert_eq!(verified(&*store, RunId([n; 16])).await, head);
    }
    let keys = store.inbox(RunId([1; 16]), usize::MAX).await.unwrap().into_iter().map(|item| item.key);
    let mut keys: Vec<_> = keys.collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 2 * ITEMS);
}

/// A child: drives one Run, says `ready`, and then commits a step for each line that it reads, or without end when
/// the line is `go`. It says each head that was acknowledged, or why it stops.
#[tokio::test]
async fn driver_process() {
    let Some(path) = child_argument() else { return };
    let store = SqliteStore::open_driver(path).unwrap();
    let mut row = match store.run(RunId([1; 16])).await.unwrap() {
        Some(row) => row,
        None => {
            store.commit(creation(&row(1))).await.unwrap();
            row(1)
        }
    };
    let say = |word: String| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{word}").and_then(|()| out.flush()).unwrap();
    };
    say("ready".to_owned());
    for line in std::io::stdin().lines() {
        let endless = line.unwrap() == "go";
        loop {
            match store.commit(step(&mut row, 2_000)).await {
                Ok(_) => say(format!("head {}", row.head)),
                Err(error) => return say(format!("stopped: {error:?}")),
            }
            if !endless {
                break;
            }
        }
    }
}

/// The next line of a child that begins with `word`; what the test runner prints around it is skipped.
fn heard(lines: &mut impl Iterator<Item = std::io::Result<String>>, word: &str) -> Option<String> {
    lines.map_while(Result::ok).find_map(|line| Some(line[line.find(word)?..].to_owned()))
}

#[tokio::test]
async fn a_killed_driver_leaves_every_acknowledged_step() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("loopd.db");
    let mut last = Seq(0);
    for acknowledged in [1_u64, 2, 3, 7, 20, 61, 150] {
        let mut driver = child("driver_process", path.to_str().unwrap());
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        heard(&mut lines, "ready").unwrap();
        writeln!(driver.stdin.as_ref().unwrap(), "go").unwrap();
        for _ in 0..acknowledged {
            let head = heard(&mut lines, "head ").unwrap();
            last = Seq(head["head ".len()..].parse().unwrap());
        }
        driver.kill().unwrap();
        driver.wait().unwrap();
        // What it had said before it died but nobody had read yet was acknowledged, too.
        while let Some(head) = heard(&mut lines, "head ") {
            last = head["head ".len()..].parse().map_or(last, Seq);
        }
        let store = SqliteStore::open_driver(&path).unwrap();
        let head = verified(&store, RunId([1; 16])).await;
        // At most one step was under way: it is there whole, or not at all.
        assert!(head == last || head.0 == last.0 + 3, "acknowledged {last}, found {head}");
    }
}

#[tokio::test]
async fn a_dead_driver_is_replaced_at_once_and_a_live_one_is_not() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("loopd.db");
    let mut driver = child("driver_process", path.to_str().unwrap());
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    heard(&mut lines, "ready").unwrap();
    let elsewhere = StoreError::DriverElsewhere(format!(" (process {})", driver.id()));
    assert_eq!(SqliteStore::open_driver(&path).map(|_| ()), Err(elsewhere.clone()));
    assert_eq!(elsewhere.to_string(), format!("another process drives this store (process {})", driver.id()));
    driver.kill().unwrap();
    driver.wait().unwrap();
    let store = SqliteStore::open_driver(&path).unwrap();
    assert_eq!(store.epoch(), Some(Epoch(2)));
}

#[tokio::test]
async fn a_paused_driver_is_fenced_when_it_goes_on() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("loopd.db");
    let mut paused = child("driver_process", path.to_str().unwrap());
    let mut lines = BufReader::new(paused.stdout.take().unwrap()).lines();
    heard(&mut lines, "ready").unwrap();
    writeln!(paused.stdin.as_ref().unwrap(), "one").unwrap();
    assert_eq!(heard(&mut lines, "head ").unwrap(), "head 3");
    let kill = |signal: &str| Command::new("kill").args([signal, &paused.id().to_string()]).status().unwrap();
    assert!(kill("-STOP").success());

    // Far in the future its lease has lapsed, whatever the clock of this machine says.
    let future = TimeMs(i64::MAX / 2);
    let store = SqliteStore::open_driver_at(&path, future).unwrap();
    assert_eq!(store.epoch(), Some(Epoch(2)));
    let mut row = store.run(RunId([1; 16])).await.unwrap().unwrap();
    store.commit(step(&mut row, 700)).await.unwrap();

    writeln!(paused.stdin.as_ref().unwrap(), "two").unwrap();
    assert!(kill("-CONT").success());
    assert_eq!(heard(&mut lines, "stopped: ").unwrap(), "stopped: Fenced(epoch-1)");
    drop(paused.stdin.take());
    assert!(paused.wait().unwrap().success());
    // The end of the old process frees nothing that the new one holds.
    assert!(matches!(SqliteStore::open_driver_at(&path, future), Err(StoreError::DriverElsewhere(_))));
    store.commit(step(&mut row, 700)).await.unwrap();
    assert_eq!(verified(&store, RunId([1; 16])).await, Seq(9));
}

#[tokio::test]
async fn a_lapsed_driver_is_fenced_in_everything_that_a_client_may_not_do() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("loopd.db");
    let open = |now| SqliteStore::open_driver_at(&path, TimeMs(now));
    let first = open(0).unwrap();
    let mut own = row(1);
    first.commit(creation(&own)).await.unwrap();
    first.heartbeat(WorkerId(1), TimeMs(50_000)).await.unwrap();
    assert!(matches!(open(49_999), Err(StoreError::DriverElsewhere(_))));
    // A heartbeat never shortens what the opening promised.
    first.heartbeat(WorkerId(1), TimeMs(10)).await.unwrap();
    assert!(matches!(open(49_999), Err(StoreError::DriverElsewhere(_))));

    let second = open(50_000).unwrap();
    let fenced = StoreError::Fenced(Epoch(1));
    let claim = |now| Claim { worker: WorkerId(2), now: TimeMs(now), loops: Vec::new(), limit: 9, only: None };
    assert_eq!(first.commit(step(&mut own.clone(), 10)).await, Err(fenced.clone()));
    let both = Batch { expect: Vec::new(), writes: [signal(own.run, "both").writes, vec![update(&own)]].concat() };
    assert_eq!(first.commit(both).await, Err(fenced.clone()));
    assert_eq!(first.limit(1 << 30).await, Err(fenced.clone()));
    assert_eq!(first.claim(claim(99_000)).await, Err(fenced.clone()));
    assert_eq!(first.heartbeat(WorkerId(1), TimeMs(99_000)).await, Err(fenced));
    assert_eq!(first.run(own.run).await.unwrap().map(|row| row.head), Some(Seq(0)));

    // What it learned too late still arrives, and whoever drives now hears of it.
    let mut hints = second.hints();
    first.commit(signal(own.run, "late")).await.unwrap();
    let heard = tokio::time::timeout(Duration::from_secs(60), hints.recv()).await;
    assert_eq!(heard.unwrap().unwrap(), Hint::Foreign);
    let keys: Vec<_> = second.inbox(own.run, 9).await.unwrap().into_iter().map(|item| item.key).collect();
    assert_eq!(keys, ["late"]);
    let known = StoreError::Conflict(Expectation::InboxKey("late".to_owned()));
    assert_eq!(first.commit(signal(own.run, "late")).await, Err(known));

    // What the fenced process held is due at once: nobody waits for the lease of its worker.
    let claimed = second.claim(claim(0)).await.unwrap();
    assert_eq!(claimed.iter().map(|claimed| claimed.crashed).collect::<Vec<_>>(), [true]);
    own = claimed[0].row.clone();
    second.commit(step(&mut own, 10)).await.unwrap();
    drop(first);
    assert!(matches!(open(50_000), Err(StoreError::DriverElsewhere(_))));
    drop(second);
    let third = open(0).unwrap();
    assert_eq!(third.epoch(), Some(Epoch(3)));
    assert_eq!(verified(&third, own.run).await, Seq(3));
}

#[tokio::test]
async fn what_a_lapsed_driver_may_not_do_leaves_its_items_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("loopd.db");
    let first = Arc::new(SqliteStore::open_driver_at(&path, TimeMs(0)).unwrap());
    let mut own = row(1);
    first.commit(creation(&own)).await.unwrap();
    let second = SqliteStore::open_driver_at(&path, TimeMs(i64::MAX / 2)).unwrap();

    // Nobody writes while this transaction is open, so that everything behind the first request gathers.
    let mut other = rusqlite::Connection::open(&path).unwrap();
    let held = other.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let mut sent = Vec::new();
    for n in 0..20 {
        let steps = step(&mut own.clone(), 10);
        let batch = if n % 2 == 0 { signal(own.run, &format!("key {n}")) } else { steps };
        let first = Arc::clone(&first);
        sent.push(tokio::spawn(async move { first.commit(batch).await }));
    }
    tokio::task::yield_now().await;
    drop(held);
    let mut groups = Vec::new();
    for (n, sent) in sent.into_iter().enumerate() {
        match sent.await.unwrap() {
            Ok(receipt) if n % 2 == 0 => groups.push(receipt.group),
            answer => assert_eq!((n % 2, answer), (1, Err(StoreError::Fenced(Epoch(1))))),
        }
    }
    assert!(groups.iter().any(|group| *group > 1), "nothing shared a transaction: {groups:?}");
    assert_eq!(second.inbox(own.run, 99).await.unwrap().len(), 10);
    second.commit(step(&mut own, 10)).await.unwrap();
    assert_eq!(verified(&second, own.run).await, Seq(3));
}

#[test]
fn of_many_that_open_a_new_file_together_one_drives() {
    let folder = TempDir::new().unwrap();
    for round in 0..5 {
        let path = folder.path().join(format!("{round}.db"));
        let barrier = std::sync::Barrier::new(4);
        let opened: Vec<_> = std::thread::scope(|scope| {
            let open = || {
                barrier.wait();
                SqliteStore::open_driver(&path)
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let drivers = opened.iter().filter(|opened| opened.is_ok()).count();
        assert_eq!(drivers, 1, "{opened:?}");
        for error in opened.into_iter().filter_map(Result::err) {
            assert!(matches!(error, StoreError::DriverElsewhere(_) | StoreError::Unavailable(_)), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_client_works_without_a_driver_and_the_next_driver_finds_it() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("loopd.db");
    let missing = SqliteStore::open_client(&path).map(|_| ());
    assert!(matches!(missing, Err(StoreError::Unavailable(_))), "{missing:?}");
    assert!(!path.exists(), "a client creates nothing");
    let store = SqliteStore::open_driver(&path).unwrap();
    store.commit(creation(&row(1))).await.unwrap();
    assert!(store.hears());
    drop(store);

    let client = SqliteStore::open_client(&path).unwrap();
    client.commit(signal(RunId([1; 16]), "key")).await.unwrap();
    assert!(!client.hears(), "nobody listens");
    let store = SqliteStore::open_driver(&path).unwrap();
    assert_eq!(store.inbox(RunId([1; 16]), 10).await.unwrap().len(), 1);
    client.commit(signal(RunId([1; 16]), "other")).await.unwrap();
    assert!(client.hears());
    drop(store);
    assert_eq!(client.inbox(RunId([1; 16]), 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_path_too_long_for_a_socket_only_costs_the_hints() {
    let folder = TempDir::new().unwrap();
    let deep = folder.path().join("d".repeat(120));
    let path = deep.join("loopd.db");
    let store = SqliteStore::open_driver(&path).unwrap();
    store.commit(creation(&row(1))).await.unwrap();
    assert!(!store.hears());
    let client = SqliteStore::open_client(&path).unwrap();
    client.commit(signal(RunId([1; 16]), "key")).await.unwrap();
    assert!(!client.hears());
    assert_eq!(store.inbox(RunId([1; 16]), 10).await.unwrap().len(), 1);
}

/// A store that was cut off while its WAL was being written: copies of its files, the WAL changed.
async fn with_wal(folder: &Path, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> SqliteStore {
    let copy = folder.join(name);
    fs::create_dir(&copy).unwrap();
    fs::copy(folder.join("loopd.db"), copy.join("loopd.db")).unwrap();
    let mut wal = fs::read(folder.join("loopd.db-wal")).unwrap();
    change(&mut wal);
    fs::write(copy.join("loopd.db-wal"), wal).unwrap();
    SqliteStore::open_driver(copy.join("loopd.db")).unwrap()
}

#[tokio::test]
async fn a_torn_wal_tail_costs_whole_steps_at_the_end_only() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open_driver(folder.path().join("loopd.db")).unwrap();
    let mut own = row(1);
    store.commit(creation(&own)).await.unwrap();
    for _ in 0..40 {
        store.commit(step(&mut own, 3_000)).await.unwrap();
    }
    assert_eq!(own.head, Seq(120));
    let folder = folder.path();
    let whole = with_wal(folder, "whole", |_| {}).await;
    assert_eq!(verified(&whole, own.run).await, Seq(120));
    let garbage = with_wal(folder, "garbage", |wal| wal.extend([0xa5; 5_000])).await;
    assert_eq!(verified(&garbage, own.run).await, Seq(120));

    let length = fs::metadata(folder.join("loopd.db-wal")).unwrap().len() as usize;
    for (at, cut) in [1, 17, 2_071, 2_072, 2_073, 9_000, length / 2].into_iter().enumerate() {
        let torn = with_wal(folder, &format!("cut {at}"), |wal| wal.truncate(length - cut)).await;
        let head = verified(&torn, own.run).await;
        assert!(head < Seq(120) && head.0.is_multiple_of(3), "cut by {cut}: {head}");
        let flipped = with_wal(folder, &format!("flipped {at}"), |wal| wal[length - cut] ^= 0x10).await;
        assert_eq!(verified(&flipped, own.run).await, head, "flipped at {cut} from the end");
        // It goes on from there.
        let mut row = flipped.run(own.run).await.unwrap().unwrap();
        flipped.commit(step(&mut row, 700)).await.unwrap();
        assert_eq!(verified(&flipped, own.run).await, row.head);
    }
}
