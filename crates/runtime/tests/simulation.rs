//! Deterministic simulation: one thread, virtual time, seeded faults and deaths. A failing seed prints
//! the one command that repeats it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod world;

use loopd_kernel::outcome::Interrupt;
use loopd_kernel::question::{Ask, QuestionEnd};
use loopd_kernel::{Cx, Decision, Digest, EffectClass, Event, Failure, Limits, Outcome};
use loopd_runtime::RunEnd;
use loopd_store::InboxBody;
use loopd_store::memory::Fault;
use world::World;
use world::dying::Death;

/// Seeds of a normal test run; `LOOPD_SEEDS` asks for more, `LOOPD_SEED` for one.
const SEEDS: u64 = 200;

/// A small generator: what it yields depends on the seed alone.
struct Chance(u64, u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.1 += 1;
        let digest = Digest::of("chance", &[&self.0.to_be_bytes(), &self.1.to_be_bytes()]);
        u64::from_be_bytes(digest.0[..8].try_into().unwrap()) % n
    }
}

/// Reads, pays, asks, sleeps, and pays once more: every kind of wait around two payments.
fn step(_: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => {
            Decision::none().and_tool("look", &1).and_tool("pay", &1).and_tool("look", &2)
        }
        Event::IterationStarted { iteration: 2 } => Decision::confirm("go on?"),
        Event::IterationStarted { iteration: 3 } => Decision::sleep(5_000),
        Event::IterationStarted { iteration: 4 } => Decision::tool("pay-again", &2),
        Event::IterationStarted { .. } => {
            state.sort();
            Decision::finish(state)
        }
        Event::ToolReturned(r) => {
            state.push(r.tool);
            Decision::none()
        }
        Event::Answered { .. } | Event::TimerFired { .. } => Decision::none(),
        other => return Err(Failure::unexpected(&other)),
    })
}

fn policy(seed: u64) -> impl FnMut(&loopd_store::Batch) -> Option<Fault> + Send + 'static {
    let mut chance = Chance(seed, 1_000_000);
    move |_| match chance.below(10) {
        0 => Some(Fault::Unavailable),
        1 => Some(Fault::AmbiguousCommitted),
        2 => Some(Fault::AmbiguousLost),
        _ => None,
    }
}

/// One life after the other until the Run has ended. Returns the sealed output.
async fn live(seed: u64) -> String {
    let mut chance = Chance(seed, 0);
    let mut world = World::new(step)
        .tool_taking("look", EffectClass::Read, chance.below(50))
        .tool_taking("pay", EffectClass::Once, chance.below(50))
        .tool_taking("pay-again", EffectClass::Once, chance.below(50))
        .faulty(policy(seed));
    let mut started = false;
    for life in 0..60 {
        // The first lives are short; later ones live long enough to come to the end.
        let death = if chance.below(2) == 0 { Death::Before } else { Death::After };
        world = world.dying(u32::try_from(1 + chance.below(6 + life)).unwrap(), death);
        if started {
            while let Some(end) = world.try_resume().await {
                match end {
                    RunEnd::Suspended(waits) => answer(&world, &waits).await,
                    // Lives this short look like a Run that kills its workers; a person looks and reopens it.
                    RunEnd::Ended(Outcome::Interrupted { interrupt: Interrupt::Poisoned { .. } }) => {
                        let body = InboxBody::Reopen { actor: "ann".into(), raise: Limits::default() };
                        let _ = world.try_tell(&format!("reopen-{life}"), body).await;
                    }
                    RunEnd::Ended(outcome) => {
                        world = world.take_over().await;
                        world.verify().await;
                        assert!(world.calls("pay") <= 1 && world.calls("pay-again") <= 1, "a payment happened twice");
                        let Outcome::Completed { output } = outcome else { panic!("{outcome:?}") };
                        return output;
                    }
                    RunEnd::Released | RunEnd::Lost(_) => break,
                }
            }
        } else {
            let _ = world.try_start_and_wait().await;
        }
        world = world.take_over().await;
        started = world.started().await;
        assert!(world.calls("pay") <= 1 && world.calls("pay-again") <= 1, "a payment happened twice");
    }
    panic!("the run never ended");
}

/// People answer; about a lost payment they look at the ledger first.
async fn answer(world: &World, waits: &loopd_kernel::projection::Waits) {
    for open in &waits.questions {
        let value = match &open.ask {
            Ask::Resolve { tool, .. } if world.calls(tool) == 0 => r#"{"call":"retry"}"#,
            Ask::Resolve { .. } => r#"{"call":"landed","output":"paid"}"#,
            Ask::Ask { .. } | Ask::Confirm { .. } => "true",
        };
        let end = QuestionEnd::Answered;
        let body = InboxBody::Answer { question: open.id, end, actor: "ann".into(), value: value.into() };
        let _ = world.try_tell(&format!("answer-{}", open.id), body).await;
    }
    if waits.questions.is_empty() {
        tokio::time::advance(std::time::Duration::from_secs(10)).await;
    }
}

#[test]
fn nothing_is_lost_and_nothing_doubled_under_seeded_faults_and_deaths() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seeds = match number("LOOPD_SEED") {
        Some(one) => one..one + 1,
        None => 0..number("LOOPD_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        let repeat = Repeat(seed);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let output = runtime.block_on(live(seed));
        assert_eq!(output, r#"["look","look","pay","pay-again"]"#, "seed {seed}");
        std::mem::forget(repeat);
    }
}

/// Says how to repeat the seed that is running when a check fails.
struct Repeat(u64);

impl Drop for Repeat {
    fn drop(&mut self) {
        eprintln!("repeat with: LOOPD_SEED={} cargo test -p loopd-runtime --test simulation", self.0);
    }
}
