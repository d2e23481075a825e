//! Deterministic simulation: one thread, virtual time, seeded faults, deaths, pauses and people. A failing seed
//! prints the one command that repeats it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod bare;
mod chance;
mod checks;
mod kin;
mod lives;
mod people;
mod rivals;
mod scripts;
mod stage;
mod witness;
#[path = "../world/mod.rs"]
mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Seeds of a normal test run; `LOOPD_SEEDS` asks for more, `LOOPD_SEED` for one.
const SEEDS: u64 = 200;
/// The same of a story whose seeds are long.
const LONG_SEEDS: u64 = 20;

/// Tells a story of the runtime once per seed.
fn simulate<F: Future>(name: &'static str, story: impl Fn(u64, Arc<AtomicU64>) -> F) {
    let steps = Arc::new(AtomicU64::new(0));
    tell(name, SEEDS, &steps, |seed| drop(once(story(seed, steps.clone()))));
}

/// Tells a story once per seed and says how fast it was.
fn tell(name: &'static str, usual: u64, steps: &AtomicU64, story: impl Fn(u64)) {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seeds = match number("LOOPD_SEED") {
        Some(one) => one..one + 1,
        None => 0..number("LOOPD_SEEDS").unwrap_or(usual),
    };
    let (count, before) = (seeds.end - seeds.start, cpu());
    for seed in seeds {
        let repeat = Repeat(name, seed);
        story(seed);
        std::mem::forget(repeat);
    }
    let steps = steps.load(Ordering::Relaxed);
    let Some((before, after)) = before.zip(cpu()) else {
        println!("sim story={name} seeds={count} steps={steps}");
        return;
    };
    let spent = after - before;
    println!("sim story={name} seeds={count} {}", speed(steps, spent));
    let mut total = TOTAL.lock().unwrap();
    *total = (total.0 + steps, total.1 + spent);
    println!("sim total {}", speed(total.0, total.1));
}

/// Steps and CPU time of all stories of this process so far.
static TOTAL: Mutex<(u64, Duration)> = Mutex::new((0, Duration::ZERO));

/// A step is one input taken by the machine and its commit in the store. The time is all that the thread consumed for
/// it: building worlds, people, targets, every check and the strict replay included.
fn speed(steps: u64, spent: Duration) -> String {
    let ms = spent.as_secs_f64() * 1_000.0;
    format!("steps={steps} cpu_ms={ms:.0} steps_per_cpu_ms={:.1}", steps as f64 / ms.max(0.001))
}

/// Runs one story in a world of its own: one thread, and a clock that jumps to whatever happens next.
fn once<T>(story: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(story)
}

/// CPU time of this thread, where the system tells.
fn cpu() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

#[test]
fn nothing_is_lost_and_nothing_doubled_under_seeded_faults_and_deaths() {
    simulate("lives", lives::live);
}

#[test]
fn two_workers_on_one_run_send_nothing_twice_and_bring_it_to_its_end() {
    simulate("rivals", rivals::live);
}

#[test]
fn a_family_whose_workers_die_does_everything_once_and_comes_to_its_end() {
    simulate("kin", kin::live);
    witness::met_what_is_seldom();
}

#[test]
fn bare_machines_over_a_store_agree_with_a_witness_after_every_step_whatever_befalls_their_workers() {
    let steps = AtomicU64::new(0);
    tell("bare", LONG_SEEDS, &steps, |seed| {
        bare::live(seed, &steps);
    });
    witness::met_what_is_seldom();
    bare::what_befell();
}

#[test]
fn a_seed_comes_to_the_same_journal_every_time() {
    for seed in [1, 2, 3] {
        let head = || once(rivals::live(seed, Arc::default()));
        assert_eq!(head(), head(), "seed {seed} cannot be repeated");
        let heads = || once(kin::live(seed, Arc::default()));
        assert_eq!(heads(), heads(), "seed {seed} of a family cannot be repeated");
        let bare = || bare::live(seed, &AtomicU64::new(0));
        assert_eq!(bare(), bare(), "seed {seed} of bare machines cannot be repeated");
    }
}

/// Says how to repeat the seed that is running when a check fails.
struct Repeat(&'static str, u64);

impl Drop for Repeat {
    fn drop(&mut self) {
        eprintln!("story {}, repeat with: cargo xtask sim --seed {}", self.0, self.1);
    }
}
