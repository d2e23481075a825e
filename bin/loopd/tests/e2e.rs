//! The whole, as real processes: `loopd serve`, clients of its HTTP API, and a model server outside that counts what it
//! is asked. The server is killed with `kill -9` in the middle of a stream, of a question and of acceptance, and started
//! again; everything has to be complete, and nothing twice.
//!
//! `LOOPD_ROUNDS=N` says how often each is done (1 here, more in `cargo xtask e2e`), `LOOPD_SEED=S` repeats the moments
//! of the kills. `LOOPD_E2E_MODEL=URL` has a real model answer, too; what it is asked is counted in `LOOPD_E2E_WIRE`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "../../loopctl/tests/kills/random.rs"]
mod random;

#[path = "e2e/acceptance.rs"]
mod acceptance;
#[path = "e2e/model.rs"]
mod model;
#[path = "e2e/question.rs"]
mod question;
#[path = "e2e/real.rs"]
mod real;
#[path = "e2e/router.rs"]
mod router;
#[path = "e2e/stream.rs"]
mod stream;
#[path = "e2e/world.rs"]
mod world;

use random::{Random, number, seed};
use std::ops::AddAssign;

/// What a scenario came to.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// How often a server was killed.
    pub kills: u32,
    /// Answers that are complete.
    pub answers: usize,
    /// What the model server was asked.
    pub model_calls: usize,
    /// Calls that were on their way when their server was killed, and were made again.
    pub again: usize,
    /// Streams that came back.
    pub resumed: u32,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.kills += other.kills;
        self.answers += other.answers;
        self.model_calls += other.model_calls;
        self.again += other.again;
        self.resumed += other.resumed;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e2e_everything_is_complete_and_nothing_is_twice() {
    let rounds = usize::try_from(number("LOOPD_ROUNDS").unwrap_or(1)).expect("a count");
    let seed = seed();
    println!("LOOPD_ROUNDS={rounds} LOOPD_SEED={seed} cargo test -p loopd --test e2e -- --nocapture");
    let mut random = Random(seed | 1);
    let mut all = Tally::default();
    for (name, tally) in [
        ("in the middle of a stream", stream::play(rounds).await),
        ("in the middle of a question", question::play(rounds).await),
        ("in the middle of acceptance", acceptance::play(rounds, &mut random).await),
        ("at each stage of the Router", router::play(rounds, &mut random).await),
    ] {
        println!("  killed {name}: {tally:?}");
        all += tally;
    }
    if let Some(tally) = real::play().await {
        println!("  a real model: {tally:?}");
        all += tally;
    }
    let Tally { kills, answers, model_calls, again, resumed } = all;
    // Whatever is lost or twice has ended the test before.
    println!(
        "e2e kills={kills} answers={answers} model-calls={model_calls} again={again} resumed={resumed} doubled=0 lost=0"
    );
}
