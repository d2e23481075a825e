//! The power goes: a disk keeps what was flushed, and of everything else what chance keeps.
//!
//! A child of this program drives a store under `strace`. From its system calls the files are rebuilt as a disk would
//! hold them when the power went at some moment: writes that no flush followed are dropped, survive in part, or are
//! torn into sectors; names that came or went count only when their folder was flushed. Then the store is opened:
//! * what was acknowledged before that moment is there, byte by byte;
//! * every Journal is one that was, up to the head that its row names, and goes on from there;
//! * nothing is there in part, and SQLite finds no damage.
//!
//! `LOOPD_CUTS=N` says how many cuts (300 here, more in `.ci/run --full`), `LOOPD_SEED=S` repeats a series over another
//! recording. The same disk with flushes that do nothing, and SQLite with a lower `synchronous`, must lose something.
//!
//! It does not prove that a device keeps what it says it flushed.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "../support/mod.rs"]
mod support;

mod calls;
mod disk;
mod series;
mod story;

use calls::Event;
use disk::Honest;
use rusqlite::Connection;
use series::{Series, Tally, Verdict};
use std::path::Path;
use story::Story;
use support::child_argument;
use tempfile::TempDir;

/// The file of the store.
const NAME: &str = "loopd.db";
/// Cuts of a control, which only has to fail once.
const CONTROL: usize = 60;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

#[expect(clippy::disallowed_methods, reason = "a seed that differs from one series to the next; it is printed")]
fn seed() -> u64 {
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    number("LOOPD_SEED").unwrap_or_else(|| u64::from(now().subsec_micros()))
}

/// What the child does, given `argument`, to a new folder.
fn recorded(child: &str, argument: &str) -> Vec<Event> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().canonicalize().unwrap();
    calls::record(child, &format!("{argument}{}", path.join(NAME).display()), &path, NAME)
}

/// A child: lives the story.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn story_process() {
    let Some(path) = child_argument() else { return };
    story::live(Path::new(&path)).await;
}

#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    let asked = number("LOOPD_CUTS");
    if !calls::can_trace() {
        assert_eq!(asked, None, "cuts were asked for, and strace is missing or may not trace");
        return;
    }
    let cuts = asked.unwrap_or(300) as usize;
    let seed = seed();
    println!("LOOPD_CUTS={cuts} LOOPD_SEED={seed} cargo test -p loopd-store-sqlite --test power_cut -- --nocapture");
    let events = recorded("story_process", "");
    let story = Story::new();
    let judge = |folder: &Path, acks: &[&str]| story.judge(&folder.join(NAME), acks);
    let acks = events.iter().filter(|event| matches!(event, Event::Acknowledged(_))).count();
    assert_eq!(acks, story.acknowledgements());
    // It groups commits, copies the log back and begins it anew; else less is shown than is said.
    let count = |is: &dyn Fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
    let flushes = count(&|event| matches!(event, Event::Flushed { name, .. } if name == "loopd.db-wal"));
    let copied = count(&|event| matches!(event, Event::Flushed { name, .. } if name == NAME));
    let begun = count(&|event| matches!(event, Event::Wrote { name, at: 0, .. } if name == "loopd.db-wal"));
    println!(
        "{} events, {acks} acknowledgements over {flushes} flushes of the log, which was copied {copied} and begun {begun} times",
        events.len()
    );
    assert!(flushes < acks && copied >= 4 && begun >= 3, "{flushes} {copied} {begun}");

    let honest = Honest::FULLY;
    let series = Series { events: &events, honest, cuts, seed, keep: true };
    let tally = series.run(judge);
    println!("an honest disk: {tally}");
    assert_eq!((tally.lost, tally.broken), (0, 0), "{:#?}", tally.first);
    assert_eq!(tally.cuts, cuts);

    // The same judge, where it has to find something.
    let control = |name: &str, honest| {
        let tally = Series { honest, cuts: CONTROL, keep: false, ..series }.run(judge);
        println!("{name}: {tally}; {}", tally.first.first().map_or("", String::as_str));
        tally
    };
    assert!(control("a disk that flushes no file", Honest { files: false, ..honest }).lost > 0);
    assert!(control("a disk that flushes no folder", Honest { folder: false, ..honest }).lost > 0);
}

/// Rows of [`plain_process`].
const ROWS: i64 = 400;

/// A child: plain SQLite with some `synchronous`, and an acknowledgement after each commit.
#[test]
fn plain_process() {
    let Some(argument) = child_argument() else { return };
    let (level, path) = argument.split_once('=').unwrap();
    let conn = Connection::open(path).unwrap();
    conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
    conn.query_row("PRAGMA wal_autocheckpoint = 50", [], |_| Ok(())).unwrap();
    conn.pragma_update(None, "synchronous", level).unwrap();
    conn.execute_batch("CREATE TABLE row (n INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT").unwrap();
    for n in 1..=ROWS {
        conn.execute("INSERT INTO row VALUES (?1, randomblob(1500))", [n]).unwrap();
        story::acknowledge(&n.to_string());
    }
}

fn judge_plain(folder: &Path, acks: &[&str]) -> Verdict {
    let path = folder.join(NAME);
    let newest = || Connection::open(&path)?.query_row("SELECT ifnull(max(n), 0) FROM row", [], |row| row.get(0));
    let acknowledged: i64 = acks.last().map_or(0, |ack| ack.parse().unwrap());
    let newest: i64 = newest().unwrap_or(0);
    let gone = (newest < acknowledged).then(|| format!("{newest} rows, acknowledged were {acknowledged}"));
    Verdict { lost: gone.into_iter().collect(), broken: story::damage(&path) }
}

#[test]
fn a_lower_level_of_sqlite_is_caught() {
    if !calls::can_trace() {
        return;
    }
    let plain = |level: &str| -> Tally {
        let events = recorded("plain_process", &format!("{level}="));
        let honest = Honest::FULLY;
        let tally = Series { events: &events, honest, cuts: CONTROL, seed: 1, keep: false }.run(judge_plain);
        println!("synchronous={level}: {tally}; {}", tally.first.first().map_or("", String::as_str));
        tally
    };
    let full = plain("FULL");
    assert_eq!((full.lost, full.broken), (0, 0), "{:#?}", full.first);
    let normal = plain("NORMAL");
    assert!(normal.lost > 0 && normal.broken == 0, "{:#?}", normal.first);
    let off = plain("OFF");
    assert!(off.lost > 0, "{:#?}", off.first);
}
