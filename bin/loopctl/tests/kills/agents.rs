//! Runs of an agent that reads files, driven by the real program and killed with it.

use crate::journal::{grown, newest, read_journal, settled_once};
use crate::random::Random;
use crate::world::{World, end, pause, signal};
use loopd_kernel::Entry;
use loopd_store::RunStatus;
use std::time::{Duration, Instant};

/// Kills of one run. A model call that is lost with its worker three times is given up, which is another story.
pub const KILLS_PER_RUN: u32 = 2;

/// The longest time until a kill: about as long as an undisturbed run takes.
const LATEST_MS: u64 = 450;

/// Turns of a model that looks, reads, searches, and reads several files at once.
pub const SCRIPT: &str = r#"{"label": "", "pace": {"delay_ms": 25, "word_ms": 2},
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

/// Starts a run, kills it at most so often, and lets it end. Returns how often it was killed.
pub fn kill_and_finish(world: &World, key: &str, kills: u32, random: &mut Random) -> u32 {
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
