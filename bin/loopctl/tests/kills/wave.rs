//! One wave of paying Runs: their process is killed and paused at random moments until every Run has ended.

use crate::ledger::{self, Audit, Line, OUTPUT};
use crate::payers::{self, DRIVES, ENDED, Errand, LEASE, RUNS};
use crate::random::Random;
use crate::world::{PATIENCE, World, code, pause, signal};
use loopd_kernel::question::{Ask, QuestionEnd, Resolution};
use loopd_kernel::{Entry, Limits, RunId, Seq};
use loopd_runtime::{Clock, SystemClock};
use loopd_store::{InboxBody, QuestionRow, RunRow, RunStatus, Store, StoreError};
use loopd_store_sqlite::SqliteStore;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The variable that makes a test of this program the paying process; it holds its errand.
pub const ERRAND: &str = "LOOPD_TEST_ERRAND";

/// The longest time until a kill.
const LATEST_MS: u64 = 600;

/// How long the next process may take to drive after the pause of the one before.
pub const TAKEOVER: Duration = LEASE.saturating_add(Duration::from_secs(1));

/// What a wave is to do.
pub struct Plan<'a> {
    pub world: &'a World,
    /// The test of this program that becomes the paying process.
    pub test: &'a str,
    pub wave: String,
    pub kills: u32,
    pub zombies: bool,
    pub lies: bool,
}

/// What it came to.
#[derive(Default)]
pub struct Report {
    pub kills: u32,
    pub audit: Audit,
    /// From each pause until the next process drove.
    pub takeovers: Vec<Duration>,
    /// Effects that landed from a process that had been replaced.
    pub late: usize,
    /// The Journals of the Runs, for whoever looks further.
    pub journals: BTreeMap<RunId, Vec<Entry>>,
}

/// A paying process, and when it said what.
struct Process {
    child: Child,
    said: Receiver<(Instant, String)>,
    drives: Option<Instant>,
    /// It has replaced a paused process, so its role has the long first lease of the store.
    is_heir: bool,
}

impl Process {
    fn start(plan: &Plan<'_>) -> Self {
        let errand = Errand { folder: plan.world.path("."), wave: plan.wave.clone(), lies: plan.lies };
        let mut again = Command::new(std::env::current_exe().expect("this program"));
        again.args(["--exact", plan.test, "--nocapture"]).stdin(Stdio::null());
        again.env(ERRAND, serde_json::to_string(&errand).expect("JSON"));
        let mut child = again.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let (say, said) = channel();
        std::thread::spawn(move || lines.map_while(Result::ok).all(|line| say.send((Instant::now(), line)).is_ok()));
        Self { child, said, drives: None, is_heir: false }
    }

    /// When it said this, and the rest of the line.
    fn says(&self, prefix: &str) -> Option<(Instant, String)> {
        let begun = Instant::now();
        while let Ok((at, line)) = self.said.recv_timeout(PATIENCE.saturating_sub(begun.elapsed())) {
            if let Some(rest) = line.strip_prefix(prefix) {
                return Some((at, rest.to_owned()));
            }
        }
        None
    }

    /// Since when it has the driver role; waits for that.
    fn drives(&mut self) -> Option<Instant> {
        self.drives = self.drives.or_else(|| self.says(DRIVES).map(|(at, _)| at));
        self.drives
    }

    fn is_there(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    /// True when it was still there to be killed.
    fn kill(mut self) -> bool {
        if self.is_there() {
            signal(&self.child, "KILL");
        }
        let status = self.child.wait().expect("it ends");
        assert!(matches!(code(status), 0 | 137), "{}", self.trouble());
        code(status) == 137
    }

    /// Waits for its own end and returns its last word.
    fn end(mut self) -> String {
        let last = self.says(ENDED);
        if last.is_none() {
            // It hangs, or it has failed already.
            let _ = self.child.kill();
        }
        let status = self.child.wait().expect("it ends");
        match last {
            Some((_, last)) if code(status) == 0 => last,
            _ => panic!("a paying process failed with {status}: {}", self.trouble()),
        }
    }

    fn trouble(&mut self) -> String {
        let mut text = String::new();
        let _ = self.child.stderr.take().expect("a pipe").read_to_string(&mut text);
        text
    }
}

impl Drop for Process {
    /// A test that fails leaves nobody behind, least of all a paused process.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Kills and pauses a process at random moments, answers what it leaves open, and looks at what came of it.
pub fn ride(plan: &Plan<'_>, random: &mut Random) -> Report {
    let mut report = Report::default();
    let mut left = plan.kills;
    let mut process = Process::start(plan);
    loop {
        let moment = Instant::now() + Duration::from_millis(random.below(LATEST_MS));
        while left > 0 && Instant::now() < moment && process.is_there() {
            pause(Duration::from_millis(3));
        }
        if left > 0 && process.is_there() {
            look(plan, Duration::ZERO, &mut report);
            let before = report.kills;
            if plan.zombies && !process.is_heir && (report.takeovers.is_empty() || random.below(3) == 0) {
                process = replace(plan, process, random, &mut report);
            } else {
                report.kills += u32::from(process.kill());
                process = Process::start(plan);
            }
            left -= report.kills - before;
            continue;
        }
        let last = process.end();
        assert_eq!(last, "well", "nobody has replaced it");
        look(plan, PATIENCE, &mut report);
        if !answer(plan, random) {
            break;
        }
        process = Process::start(plan);
    }
    close(plan, &mut report);
    report
}

/// Pauses the process, lets another one take over, and wakes the first, which may do what a zombie does.
fn replace(plan: &Plan<'_>, mut zombie: Process, random: &mut Random, report: &mut Report) -> Process {
    let paused = zombie.drives().and_then(|_| freeze(plan, &mut zombie));
    let Some(paused) = paused else {
        assert_eq!(zombie.end(), "well", "nobody has replaced it");
        return Process::start(plan);
    };
    let mut heir = Process::start(plan);
    heir.is_heir = true;
    let drives = heir.drives().expect("somebody takes over");
    report.takeovers.push(drives - paused);
    pause(Duration::from_millis(random.below(300)));
    let id = zombie.child.id();
    let landed = || ledger::read(plan.world).iter().filter(|line| line.process == id).count();
    let before = landed();
    signal(&zombie.child, "CONT");
    let last = zombie.end();
    report.late += landed() - before;
    assert!(last == "well" || last.contains("Fenced"), "a zombie: {last}");
    report.kills += 1;
    heir
}

/// Pauses the process between two commits, and says when. A process that is paused within a commit holds the lock of
/// the file, and nobody can take over: docs/durability.md says so, and this is not about that.
fn freeze(plan: &Plan<'_>, process: &mut Process) -> Option<Instant> {
    let begun = Instant::now();
    while process.is_there() && begun.elapsed() < PATIENCE {
        signal(&process.child, "STOP");
        let paused = Instant::now();
        // One thread of it hears the signal and stops the others, which on a busy machine takes a moment.
        pause(Duration::from_millis(30));
        if can_be_written(plan.world.path(".loopd/store.db")) {
            return Some(paused);
        }
        signal(&process.child, "CONT");
        pause(Duration::from_millis(3));
    }
    None
}

/// Whether a client gets the lock of the file: it tells something to nobody, which is refused under that lock.
fn can_be_written(path: PathBuf) -> bool {
    let (say, said) = channel();
    std::thread::spawn(move || {
        let told = SqliteStore::open_client(path).and_then(|store| {
            let body = InboxBody::Signal { name: "anybody".into(), body: String::new() };
            let told = loopd_runtime::tell(&store, RunId([0; 16]), "there".into(), SystemClock.now(), body);
            threads().block_on(told)
        });
        let _ = say.send(matches!(told, Err(StoreError::Conflict(_))));
    });
    said.recv_timeout(Duration::from_millis(200)) == Ok(true)
}

fn threads() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("threads")
}

/// Reads the store as a client, as soon as there is one to read. Until the first driver has made it there is none.
fn read<T>(plan: &Plan<'_>, patience: Duration, work: impl AsyncFnOnce(&SqliteStore) -> T) -> Option<T> {
    let begun = Instant::now();
    loop {
        match SqliteStore::open_client(plan.world.path(".loopd/store.db")) {
            Ok(store) => return Some(threads().block_on(work(&store))),
            Err(StoreError::Unavailable(_)) if begun.elapsed() >= patience => return None,
            Err(StoreError::Unavailable(_)) => pause(Duration::from_millis(10)),
            Err(error) => panic!("{error}"),
        }
    }
}

/// The Runs of this wave, and their Journals as a reader sees them now.
fn journals(plan: &Plan<'_>, patience: Duration) -> Option<Vec<(RunRow, Vec<Entry>)>> {
    read(plan, patience, async |store| {
        let mut found = Vec::new();
        for row in payers::runs_of(store, &plan.wave).await.expect("runs") {
            let entries = store.entries(row.run, Seq(0), usize::MAX).await.expect("entries");
            found.push((row, entries));
        }
        found
    })
}

/// Looks at every Journal: what was seen before has to be there, byte by byte.
fn look(plan: &Plan<'_>, patience: Duration, report: &mut Report) {
    let Some(found) = journals(plan, patience) else { return };
    let mut now: BTreeMap<RunId, Vec<Entry>> = found.into_iter().map(|(row, entries)| (row.run, entries)).collect();
    for (run, before) in std::mem::take(&mut report.journals) {
        let after = now.entry(run).or_default();
        if !after.starts_with(&before) {
            report.audit.lose(format!("{run}: of {} acknowledged entries some are gone or changed", before.len()));
            show(run, &before);
            show(run, after);
        }
    }
    report.journals = now;
}

/// Answers every open question by what the ledger says, and reopens what was parked for being killed too often.
/// Nobody drives meanwhile, so nothing lands after the look. True: there was something to say.
fn answer(plan: &Plan<'_>, random: &mut Random) -> bool {
    wait_until_nothing_lands(plan);
    let ledger = ledger::read(plan.world);
    let mut said = false;
    let answered = read(plan, PATIENCE, async |store| {
        for row in payers::runs_of(store, &plan.wave).await.expect("runs") {
            for open in store.questions(Some(row.run), 99).await.expect("questions") {
                let value = serde_json::to_string(&truth(&open, &ledger, random)).expect("JSON");
                let end = QuestionEnd::Answered;
                let body = InboxBody::Answer { question: open.question.id, end, actor: "ada".into(), value };
                tell(store, row.run, format!("answer {}", open.question.id), body).await;
                said = true;
            }
            if row.status == RunStatus::Parked {
                let body = InboxBody::Reopen { actor: "ada".into(), raise: Limits::default() };
                tell(store, row.run, format!("reopen {}", row.head), body).await;
                said = true;
            }
        }
    });
    answered.expect("a store");
    said
}

/// Whoever says that a call did not happen looks when it cannot happen any more; a Run refuses an earlier answer.
fn wait_until_nothing_lands(plan: &Plan<'_>) {
    let until = read(plan, PATIENCE, async |store| {
        let open = store.questions(None, 999).await.expect("questions");
        let until = |row: QuestionRow| match row.question.ask {
            Ask::Resolve { lands_until, .. } => lands_until,
            Ask::Ask { .. } | Ask::Confirm { .. } => None,
        };
        open.into_iter().filter_map(until).max()
    });
    if let Some(until) = until.expect("a store") {
        let left = Duration::from_millis(until.since(SystemClock.now()));
        pause(left + payers::SKEW + Duration::from_millis(5));
    }
}

/// What became of a call. That it did not happen can be said in two ways.
fn truth(open: &QuestionRow, ledger: &[Line], random: &mut Random) -> Resolution {
    let Ask::Resolve { tool, args, .. } = &open.question.ask else { panic!("{open:?}") };
    let payers::Step { step } = serde_json::from_str(args).expect("its arguments");
    let run = open.run.to_string();
    if ledger.iter().any(|line| line.run == run && line.tool == *tool && line.step == step) {
        Resolution::Landed { output: OUTPUT.into() }
    } else if random.below(2) == 0 {
        Resolution::Retry
    } else {
        Resolution::Failed { evidence: "it is not in the ledger".into() }
    }
}

async fn tell(store: &SqliteStore, run: RunId, key: String, body: InboxBody) {
    loopd_runtime::tell(store, run, key, SystemClock.now(), body).await.expect("told");
}

/// Compares every Journal with the ledger, now that nothing moves any more.
fn close(plan: &Plan<'_>, report: &mut Report) {
    let ledger = ledger::read(plan.world);
    let definition = payers::definition();
    let found = journals(plan, PATIENCE).expect("a store");
    if found.len() != RUNS {
        report.audit.lose(format!("{} of {RUNS} runs are there", found.len()));
    }
    for (row, entries) in found {
        let audit = ledger::audit(row.run, &entries, &*definition, &ledger);
        if !audit.wrong.is_empty() && !plan.lies {
            println!("{} is {:?}: {:?}", row.run, row.status, audit.wrong);
            show(row.run, &entries);
        }
        report.audit.add(audit);
    }
}

fn show(run: RunId, entries: &[Entry]) {
    println!("the journal of {run}, {} entries:", entries.len());
    for entry in entries {
        println!("  {} {:?} {} {}", entry.seq, entry.kind, entry.record, String::from_utf8_lossy(&entry.payload));
    }
}
