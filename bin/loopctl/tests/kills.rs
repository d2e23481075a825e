//! `kill -9` of real processes at random moments, over one store, until every Run has ended all the same.
//!
//! `LOOPD_KILLS=N` says how often (6 here, more in `cargo xtask kills`), `LOOPD_ZOMBIES=1` that some of the kills are
//! pauses past the lease, `LOOPD_SEED=S` repeats the moments of a series. Two kinds of load take turns:
//! * `loopctl run` of an agent whose tools read files;
//! * a process that drives a dozen Runs at once, each paying in every step, into a ledger outside the store.
//!
//! What is checked, after every kill and at the end:
//! * what a reader had seen before the kill is still there, byte by byte (acknowledged is durable);
//! * the chain verifies, and the strict replay agrees;
//! * every call of an agent was intended before it settled, and settled exactly once;
//! * every payment is in the ledger exactly once, as its target counts, and every Run has completed. Questions are
//!   answered by what the ledger says, when nobody drives any more.
//!
//! The last test shows that a payment which happened twice would be noticed, and one that is missing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "cli/world.rs"]
#[expect(dead_code, reason = "the world of the other tests, of which this one needs a part")]
mod world;

#[path = "kills/agents.rs"]
mod agents;
#[path = "kills/journal.rs"]
mod journal;
#[path = "kills/ledger.rs"]
mod ledger;
#[path = "kills/payers.rs"]
mod payers;
#[path = "kills/random.rs"]
mod random;
#[path = "kills/wave.rs"]
mod wave;

use ledger::Audit;
use random::{Random, number, seed};
use std::time::Duration;
use wave::{ERRAND, Plan, TAKEOVER};
use world::World;

/// Kills of one wave of paying Runs.
const KILLS_PER_WAVE: u32 = 6;

/// Runs in a row that ended before their kill, after which something is wrong with this test.
const MISSES: u32 = 200;

/// Kills within which a tool that lies is found; the first one nearly always does it.
const LIES: u32 = 60;

/// Everything that a series came to.
#[derive(Default)]
struct Series {
    kills: u32,
    runs: usize,
    audit: Audit,
    takeovers: Vec<Duration>,
    late: usize,
    misses: u32,
}

impl Series {
    fn count(&mut self, kills: u32, runs: usize) {
        self.kills += kills;
        self.runs += runs;
        self.misses = if kills == 0 { self.misses + 1 } else { 0 };
        assert!(self.misses < MISSES, "every run ended before it could be killed");
    }

    /// Prints what was found, in one line that `cargo xtask kills` ends with, and fails when something is wrong.
    fn finish(&self) {
        let longest = self.takeovers.iter().max();
        if let Some(longest) = longest {
            let (pauses, late, allowed) = (self.takeovers.len(), self.late, TAKEOVER.as_millis());
            let longest = longest.as_millis();
            println!("pauses={pauses} landed-late={late} longest-takeover={longest}ms, {allowed}ms are allowed");
        }
        let Audit { effects, doubled, lost, unknown, wrong } = &self.audit;
        let (kills, runs) = (self.kills, self.runs);
        println!("kills={kills} runs={runs} effects={effects} doubled={doubled} lost={lost} unknown={unknown}");
        assert!(wrong.is_empty() && *doubled == 0 && *lost == 0, "{wrong:#?}");
        assert!(longest.is_none_or(|longest| *longest <= TAKEOVER), "nobody took over in time: {:?}", self.takeovers);
    }
}

/// The paying process, when this program was started to be it.
fn is_an_errand() -> bool {
    let errand = std::env::var(ERRAND).ok();
    if let Some(errand) = &errand {
        payers::run(&serde_json::from_str(errand).expect("an errand"));
    }
    errand.is_some()
}

#[test]
fn e2e_kills_lose_nothing_and_repeat_nothing() {
    if is_an_errand() {
        return;
    }
    let kills = u32::try_from(number("LOOPD_KILLS").unwrap_or(6)).expect("a count");
    let (seed, zombies) = (seed(), number("LOOPD_ZOMBIES").is_some_and(|zombies| zombies > 0));
    let pauses = if zombies { "LOOPD_ZOMBIES=1 " } else { "" };
    println!(
        "{pauses}LOOPD_KILLS={kills} LOOPD_SEED={seed} cargo test -p loopctl --test kills e2e_kills -- --nocapture"
    );
    let mut random = Random(seed | 1);
    let world = World::new();
    world.write("demo.json", agents::SCRIPT);
    let mut series = Series::default();
    let mut round = 0;
    while series.kills < kills && series.audit.wrong.is_empty() {
        round += 1;
        let of_this = agents::KILLS_PER_RUN.min(kills - series.kills);
        let killed = agents::kill_and_finish(&world, &format!("k{round}"), of_this, &mut random);
        series.count(killed, 1);
        if series.kills == kills {
            break;
        }
        let of_this = KILLS_PER_WAVE.min(kills - series.kills);
        let test = "e2e_kills_lose_nothing_and_repeat_nothing";
        let plan = Plan { world: &world, test, wave: format!("w{round}-"), kills: of_this, zombies, lies: false };
        let report = wave::ride(&plan, &mut random);
        println!("  {} kills of {} paying runs: {:?}", report.kills, payers::RUNS, report.audit);
        series.count(report.kills, payers::RUNS);
        series.audit.add(report.audit);
        series.takeovers.extend(report.takeovers);
        series.late += report.late;
    }
    let verified = world.loopctl(&["store", "verify"]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    series.finish();
    // Two kills are those of the first agent.
    assert!(!zombies || kills <= agents::KILLS_PER_RUN || !series.takeovers.is_empty(), "nobody was paused");
}

/// The same load with a tool that pays and says that it reads: what it repeats after a kill is found. So is a payment
/// that is not in the ledger.
#[test]
fn e2e_a_payment_that_is_declared_a_read_is_found() {
    if is_an_errand() {
        return;
    }
    let test = "e2e_a_payment_that_is_declared_a_read_is_found";
    let mut random = Random(17);
    let (mut kills, mut waves) = (0, 0);
    while kills < LIES {
        let world = World::new();
        waves += 1;
        let plan = Plan { world: &world, test, wave: format!("w{waves}-"), kills: 2, zombies: false, lies: true };
        let report = wave::ride(&plan, &mut random);
        kills += report.kills;
        assert_eq!(report.audit.lost, 0, "{:?}", report.audit);
        if report.audit.doubled == 0 {
            continue;
        }
        println!("{} payments doubled after {kills} kills", report.audit.doubled);
        let (run, entries) = report.journals.first_key_value().expect("a run");
        let mut lines = ledger::read(&world);
        let key = lines.iter().find(|line| line.run == run.to_string()).expect("it has paid").key.clone();
        lines.retain(|line| line.key != key);
        // The Journal says that it landed, and the Run that it is complete.
        assert_eq!(ledger::audit(*run, entries, &*payers::definition(), &lines).lost, 2);
        return;
    }
    panic!("a payment that happened twice is not noticed");
}
