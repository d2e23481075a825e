//! `kill -9` of the real program at random moments of real agent runs, until each has ended all the same.
//!
//! `LOOPD_KILLS=N` says how often (5 here, more in `cargo xtask kills`), `LOOPD_SEED=S` repeats a series. What is
//! checked, after every kill and at the end:
//! * what a reader had seen before the kill is still there, byte by byte (acknowledged is durable);
//! * the chain verifies;
//! * every call was intended before it settled, and settled exactly once;
//! * the strict replay of the recording agrees.
//!
//! It does not prove that an effect in the world happens only once: the tools here read. The crash matrix and the
//! small model do, and `a_call_that_may_have_happened_asks_a_person` shows it in this program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "cli/world.rs"]
#[expect(dead_code, reason = "the world of the other tests, of which this one needs a part")]
mod world;

#[path = "kills/journal.rs"]
mod journal;

use journal::{grown, newest, read_journal, settled_once};
use loopd_kernel::Entry;
use loopd_store::RunStatus;
use std::time::{Duration, Instant};
use world::{World, end, pause, signal};

/// Kills of one run. A model call that is lost with its worker three times is given up, which is another story.
const KILLS_PER_RUN: u32 = 2;

/// The longest time until a kill: about as long as an undisturbed run takes.
const LATEST_MS: u64 = 450;

/// Attempts in a row that ended before their kill, after which something is wrong with this test.
const MISSES: u32 = 200;

/// Turns of a model that looks, reads, searches, and reads several files at once.
const SCRIPT: &str = r#"{"label": "", "pace": {"delay_ms": 25, "word_ms": 2},
 "turns": [
  {"when": {"turn": 1}, "say": "I look at the folder.", "use": [{"tool": "list_files", "args": {"path": "."}}]},
  {"when": {"turn": 2}, "use": [{"tool": "read_file", "args": {"path": "tea.md"}}, {"tool": "read_file", "args": {"path": "coffee.md"}}]},
  {"when": {"turn": 3}, "use": [{"tool": "search_files", "args": {"text": "made of"}}]},
  {"when": {"turn": 4}, "use": [{"tool": "read_file", "args": {"path": "none.md"}}]},
  {"when": {"turn": 5}, "use": [{"tool": "read_file", "args": {"wrong": true}}]},
  {"when": {"turn": 6}, "use": [{"tool": "list_files", "args": {"path": "."}}, {"tool": "read_file", "args": {"path": "tea.md"}},
    {"tool": "search_files", "args": {"text": "beans"}}]},
  {"when": {"turn": 7}, "say": "Tea is leaves, coffee is beans."}
 ]}"#;

/// Small, and the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        // xorshift64*: good enough to choose moments.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

#[expect(clippy::disallowed_methods, reason = "a seed that differs from one series to the next; it is printed")]
fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    u64::from(now.subsec_nanos()) << 20 | u64::from(std::process::id())
}

#[test]
fn e2e_kills_lose_nothing_and_repeat_nothing() {
    let kills = u32::try_from(number("LOOPD_KILLS").unwrap_or(5)).expect("a count");
    let seed = number("LOOPD_SEED").unwrap_or_else(fresh_seed);
    println!("LOOPD_KILLS={kills} LOOPD_SEED={seed} cargo test -p loopctl --test kills -- --nocapture");
    let mut random = Random(seed | 1);
    let world = World::new();
    world.write("demo.json", SCRIPT);
    let (mut done, mut runs, mut misses) = (0, 0, 0);
    while done < kills {
        let key = format!("k{runs}");
        runs += 1;
        let of_this = u32::min(KILLS_PER_RUN, kills - done);
        let killed = kill_and_finish(&world, &key, of_this, &mut random);
        done += killed;
        misses = if killed == 0 { misses + 1 } else { 0 };
        assert!(misses < MISSES, "every run ended before it could be killed");
    }
    let verified = world.loopctl(&["store", "verify"]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    println!("{done} kills over {runs} runs");
}

/// Starts a run, kills it at most so often, and lets it end. Returns how often it was killed.
fn kill_and_finish(world: &World, key: &str, kills: u32, random: &mut Random) -> u32 {
    let start = ["run", "agent.yaml", "What is in the files?", "--key", key];
    let before = newest(world);
    let mut killed = 0;
    let mut seen: Vec<Entry> = Vec::new();
    for _ in 0..kills {
        // After the first time the run may be named by its key or by what it is.
        let args: &[&str] = match newest(world) {
            newest if newest != before && random.below(2) == 0 => &["run", "resume", "last"],
            _ => &start,
        };
        let child = world.start(args);
        let moment = Instant::now() + Duration::from_millis(random.below(LATEST_MS));
        while Instant::now() < moment {
            if let Some((run, _)) = newest(world).filter(|newest| Some(*newest) != before) {
                seen = grown(seen, read_journal(world, run));
            }
            pause(Duration::from_millis(3));
        }
        signal(&child, "KILL");
        killed += u32::from(end(child).code == 128 + 9);
    }
    let last = world.loopctl(&start);
    assert_eq!((last.code, last.out.as_str()), (0, "Tea is leaves, coffee is beans.\n"), "{}", last.err);
    let (run, status) = newest(world).expect("a run");
    assert_eq!(status, RunStatus::Ended);
    let entries = grown(seen, read_journal(world, run));
    println!("  {}", settled_once(&entries));
    let fixture = format!("{key}.loopfix");
    assert_eq!(world.loopctl(&["record", "last", "-o", &fixture]).code, 0);
    let replayed = world.loopctl(&["replay", &fixture, "--strict"]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
    killed
}
