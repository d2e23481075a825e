//! Zombies: processes that are paused while they drive, are replaced, and go on as if nothing had happened.
//!
//! The pause lasts as long as a lease, which no flag shortens: each test takes some twenty seconds, nearly all of
//! them spent waiting.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "cli/world.rs"]
#[expect(dead_code, reason = "the world of the other tests, of which these need a part")]
mod world;

#[path = "kills/journal.rs"]
mod journal;

#[path = "kills/payment.rs"]
mod payment;

use journal::{grown, newest, read_journal, settled_once};
use loopd_kernel::{Kind, Outcome, RunId};
use loopd_runtime::RunEnd;
use loopd_store::RunStatus;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use world::{PATIENCE, World, end, pause, signal};

/// A lease of the driver role, and the second within which the next process has to be driving.
const TAKEOVER: Duration = Duration::from_secs(15 + 1);

/// The variable that makes the second test of this program the paying process; it holds its folder.
const PAYS: &str = "LOOPD_TEST_PAYS";

const ANSWER: &str = "Tea is leaves, coffee is beans.\n";

/// Pauses a process whose newest run has an open call of this class. Returns the run.
fn freeze(world: &World, child: &Child, class: &str) -> RunId {
    let open = format!(r#""state":"open","class":"{class}""#);
    world.wait_until(&["run", "why", "-o", "jsonl"], |done| done.out.contains(&open));
    signal(child, "STOP");
    newest(world).expect("a run").0
}

/// What has to hold of the store once everybody is done.
fn is_whole(world: &World, run: RunId) {
    assert_eq!(newest(world), Some((run, RunStatus::Ended)));
    println!("{}", settled_once(&read_journal(world, run)));
    let verified = world.loopctl(&["store", "verify"]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
}

#[test]
fn e2e_a_zombie_is_fenced_and_settles_nothing() {
    let world = World::slow(1_000);
    let zombie = world.start(&["run", "agent.yaml", "What is in the files?"]);
    let run = freeze(&world, &zombie, "billable");
    let paused = Instant::now();
    let before = read_journal(&world, run);

    // While its lease lasts nobody can know that it is paused.
    assert_eq!(world.loopctl(&["run", "resume", "last"]).code, 8);
    let heir = loop {
        let begun = Instant::now();
        let done = world.loopctl(&["run", "resume", "last"]);
        if done.code != 8 {
            println!("taken over {} ms after the pause", (begun - paused).as_millis());
            assert!(begun - paused < TAKEOVER, "the lease should have lapsed: {}", done.err);
            break done;
        }
        assert!(paused.elapsed() < PATIENCE, "nobody could take the run over: {}", done.err);
        pause(Duration::from_millis(100));
    };
    assert_eq!((heir.code, heir.out.as_str()), (0, ANSWER), "{}", heir.err);
    let sealed = grown(before, read_journal(&world, run));

    // Its model has answered long ago: it wakes up with a result in hand.
    signal(&zombie, "CONT");
    let zombie = end(zombie);
    println!("the zombie ends with {}: {}", zombie.code, zombie.err);
    assert!(matches!(zombie.code, 1 | 5), "exit {}: {}", zombie.code, zombie.err);
    assert_eq!(zombie.out, "", "it says that it has completed the run");
    assert_eq!(read_journal(&world, run), sealed, "a fenced process has written");
    is_whole(&world, run);
    assert_eq!(world.loopctl(&["record", "last", "-o", "run.loopfix"]).code, 0);
    let replayed = world.loopctl(&["replay", "run.loopfix", "--strict"]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
}

/// A payment that is under way when its process is paused, and lands when that goes on, long after another process
/// has taken over: nobody pays again. A person is asked meanwhile; the paused process hands its result in, which
/// withdraws the question.
#[test]
fn e2e_a_payment_of_a_zombie_lands_once() {
    if let Some(folder) = std::env::var_os(PAYS) {
        println!("ended: {}", payment::pays(folder.as_ref()));
        return;
    }
    let world = World::new();
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    again.args(["--exact", "e2e_a_payment_of_a_zombie_lands_once", "--nocapture"]).env(PAYS, world.path("."));
    let zombie = again.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let run = freeze(&world, &zombie, "once");

    let (asked, ended) = payment::takes_over(&world, run, || {
        assert_eq!(payment::ledger(&world), "", "it was not to land yet");
        signal(&zombie, "CONT");
        let zombie = end(zombie);
        println!("{}", zombie.out);
        assert!(zombie.out.contains("ended: Lost(Fenced)"), "{}{}", zombie.out, zombie.err);
        assert_eq!(payment::ledger(&world), "\"7 dollars to Ada\"\n");
    });
    assert!(matches!(asked, RunEnd::Suspended(_)), "{asked:?}");
    assert_eq!(ended, RunEnd::Ended(Outcome::Completed { output: "\"paid\"".into() }));
    assert_eq!(payment::ledger(&world), "\"7 dollars to Ada\"\n");
    let late = read_journal(&world, run).iter().filter(|entry| entry.kind == Kind::LateResult).count();
    assert_eq!(late, 1, "it went on by something else than the result of the process that was paused");
    is_whole(&world, run);
}
