//! What the bare workers drive: a parent that goes through every kind of Action again and again, and its children.

use crate::scripts::{DEDUP_FOR, LANDING_BOUND};
use loopd_kernel::child::{Recipient, Spawn};
use loopd_kernel::machine::{Catalog, ModelTerms, ToolTerms};
use loopd_kernel::model::ModelCall;
use loopd_kernel::question::Ask;
use loopd_kernel::units::Price;
use loopd_kernel::{
    Action, Cx, Decision, EffectClass, ErasedLoop, Event, Failure, Limits, Loop, MicroUsd, ParallelCall, ToolCall,
    erase,
};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, LazyLock};

/// How long an attempt may take.
pub const TIMEOUT_MS: u64 = 20_000;
/// How often a parent goes around.
const LAPS: u64 = 12;

/// What there is to call. `shift` can be asked, and does not say how late it lands.
pub struct Offers;

impl Offers {
    fn class(name: &str) -> Option<EffectClass> {
        Some(match name {
            "look" => EffectClass::Read,
            "pay" => EffectClass::Once,
            "charge" => EffectClass::Keyed,
            "transfer" | "shift" => EffectClass::Probed,
            _ => return None,
        })
    }

    pub const PRICE: Price = Price { input: 1_000_000, output: 1_000_000, cache_read: 0, cache_write: 0, reasoning: 0 };
}

impl Catalog for Offers {
    fn tool(&self, name: &str) -> Option<ToolTerms> {
        Self::class(name).map(|class| ToolTerms { class, timeout_ms: TIMEOUT_MS })
    }

    fn dedup_for_ms(&self, tool: &str) -> Option<u64> {
        (tool == "charge").then_some(DEDUP_FOR.as_millis() as u64)
    }

    fn landing_bound_ms(&self, tool: &str) -> Option<u64> {
        (tool == "transfer").then_some(LANDING_BOUND.as_millis() as u64)
    }

    fn model(&self, _: &str) -> Option<ModelTerms> {
        Some(ModelTerms { price: Some(Self::PRICE), timeout_ms: TIMEOUT_MS, max_attempts: 3 })
    }
}

/// What a Run counts of what it heard. Small, as a State should be.
#[derive(Serialize, Deserialize, Default)]
pub struct Tally {
    /// Effects other than reads that returned.
    pub landed: usize,
    failed: u32,
    signals: u32,
    raised: u32,
}

struct Parent;
struct Kid;

/// The Loop with this name.
pub fn named(name: &str) -> &'static dyn ErasedLoop {
    static PARENT: LazyLock<Arc<dyn ErasedLoop>> = LazyLock::new(|| erase(Parent, Vec::new()));
    static KID: LazyLock<Arc<dyn ErasedLoop>> = LazyLock::new(|| erase(Kid, Vec::new()));
    if name == "kid" { &**KID } else { &**PARENT }
}

fn said() -> ModelCall {
    ModelCall { max_output_tokens: 64, ..ModelCall::transcript("scripted") }
}

fn of(name: &str, args: u64) -> ToolCall {
    ToolCall::new(name, &args).expect("a number")
}

fn tool(name: &str, args: u64) -> Action {
    Action::CallTool(of(name, args))
}

fn looks(from: u64) -> impl Iterator<Item = ParallelCall> {
    (from..from + 3).map(|n| of("look", n).into())
}

fn spawn(iteration: u64) -> Action {
    let limits = Limits { micro_usd: Some(MicroUsd(250)), iterations: Some(40), ..Limits::default() };
    Action::Spawn(Spawn { limits, ..Spawn::new("kid", "kid", format!("\"{iteration}\"")) })
}

impl Loop for Parent {
    type Input = String;
    type State = Tally;
    type Output = Tally;

    fn name(&self) -> &'static str {
        "parent"
    }

    fn init(&self, _: String) -> Result<Tally, Failure> {
        Ok(Tally::default())
    }

    fn transition(&self, _: &Cx, tally: &mut Tally, event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { iteration } if iteration > LAPS * 10 => Decision::finish(tally),
            Event::IterationStarted { iteration } => around(iteration),
            Event::ChildParked { name, .. } => {
                tally.raised += 1;
                let by = Limits { micro_usd: Some(MicroUsd(250)), ..Limits::default() };
                Decision::none().and(if tally.raised.is_multiple_of(4) {
                    Action::CancelChild { child: name, reason: "it takes too much".into() }
                } else {
                    Action::RaiseChild { child: name, by }
                })
            }
            other => heard(tally, &other),
        })
    }
}

/// One of ten things to do, and then the first one again.
fn around(iteration: u64) -> Decision {
    let args = iteration * 10;
    match iteration % 10 {
        1 => Decision::all(looks(args).chain([of("pay", args + 3).into()])),
        2 => Decision::first_ok(looks(args).chain([said().into()])),
        3 => Decision::none().and(tool("transfer", args)).and(tool("charge", args + 1)).and(tool("look", args + 2)),
        4 if iteration > 10 => Decision::none().and(spawn(iteration)).and(tool("transfer", args)),
        5 => Decision::all([ParallelCall::from(of("transfer", args)), said().into(), of("charge", args + 1).into()]),
        6 => Decision::first_ok(looks(args)).and(Action::Sleep { ms: 500 }),
        7 => Decision::none().and(Action::Wait { signals: vec!["go".into()], timeout_ms: Some(2_000) }),
        8 => {
            let ask = Ask::Confirm { prompt: "go on?".into(), expires_in_ms: Some(5_000) };
            Decision::none().and(Action::Ask(ask)).and(tool("look", args))
        }
        9 => Decision::none().and(tool("shift", args)).and(Action::CallModel(said())),
        _ => Decision::all(looks(args).chain(looks(args + 3))),
    }
}

impl Loop for Kid {
    type Input = String;
    type State = Tally;
    type Output = Tally;

    fn name(&self) -> &'static str {
        "kid"
    }

    fn init(&self, _: String) -> Result<Tally, Failure> {
        Ok(Tally::default())
    }

    fn transition(&self, _: &Cx, tally: &mut Tally, event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { iteration: 1 } => Decision::all(looks(1).chain([said().into()])),
            Event::IterationStarted { iteration: 2 } => Decision::none().and(tool("transfer", 5)).and(tool("pay", 6)),
            Event::IterationStarted { iteration: 3 } => {
                let news = Action::Signal { to: Recipient::Parent, name: "message".into(), body: "half".into() };
                Decision::none().and(news).and(Action::CallModel(said())).and(tool("charge", 7))
            }
            Event::IterationStarted { iteration: 4 } => Decision::all(looks(8)),
            Event::IterationStarted { .. } => Decision::finish(tally),
            other => heard(tally, &other),
        })
    }
}

fn heard(tally: &mut Tally, event: &Event) -> Decision {
    match event {
        Event::ToolReturned(returned) if returned.tool != "look" => tally.landed += 1,
        Event::CallFailed { .. } | Event::CallUnknown { .. } => tally.failed += 1,
        Event::SignalReceived { .. } => tally.signals += 1,
        Event::IterationStarted { .. }
        | Event::ToolReturned(_)
        | Event::ModelReplied { .. }
        | Event::Answered { .. }
        | Event::TimerFired { .. }
        | Event::ChildEnded { .. }
        | Event::ChildParked { .. }
        | Event::CallDenied { .. } => {}
    }
    Decision::none()
}
