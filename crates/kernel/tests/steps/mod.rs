//! Drives a machine by hand: every step is folded a second time from its Entries and must come to the
//! same Projection, so that each test also proves that recovery is the fold.
#![allow(dead_code, reason = "each test binary uses its part")]

use loopd_kernel::budget::Limits;
use loopd_kernel::child::{Birth, Letter};
use loopd_kernel::failure::Disposition;
use loopd_kernel::machine::{
    Admission, Catalog, Env, Input, MachineError, ModelTerms, Pace, Probe, Settling, ToolTerms,
};
use loopd_kernel::units::Price;
use loopd_kernel::{
    CallId, Cx, Decision, EffectClass, Entry, Epoch, Event, Failure, Loop, Machine, Permit, Projection, RunId, TimeMs,
};
use loopd_kernel::{ErasedLoop, Upgrade, erase};
use std::sync::Arc;

pub type Step = fn(Event) -> Result<Decision, Failure>;

struct ByEvent {
    step: Step,
    version: &'static str,
    schema: u32,
    upgrade: Upgrade,
}

impl Loop for ByEvent {
    type Input = String;
    type State = u64;
    type Output = serde_json::Value;

    fn name(&self) -> &'static str {
        "by-event"
    }

    fn version(&self) -> &str {
        self.version
    }

    fn state_version(&self) -> u32 {
        self.schema
    }

    /// The second schema counts in tens.
    fn migrate(&self, from: u32, state: &str) -> Result<String, Failure> {
        if from + 1 == self.schema { Ok(format!("{state}0")) } else { Err(Failure::new("loop.migration", "too old")) }
    }

    fn upgrade(&self) -> Upgrade {
        self.upgrade
    }

    fn init(&self, input: String) -> Result<u64, Failure> {
        if input == "bad" { Err(Failure::new("loop.input", "bad input")) } else { Ok(0) }
    }

    fn transition(&self, _: &Cx, state: &mut u64, event: Event) -> Result<Decision, Failure> {
        *state += 1;
        (self.step)(event)
    }
}

struct Terms(Option<Price>);

impl Catalog for Terms {
    fn tool(&self, name: &str) -> Option<ToolTerms> {
        let class = match name {
            "look" => EffectClass::Read,
            "pay" => EffectClass::Once,
            "move" | "shift" => EffectClass::Probed,
            _ => return None,
        };
        Some(ToolTerms { class, timeout_ms: 1000 })
    }

    fn landing_bound_ms(&self, tool: &str) -> Option<u64> {
        (tool == "move").then_some(500)
    }

    fn model(&self, name: &str) -> Option<ModelTerms> {
        (name == "m").then_some(ModelTerms { price: self.0, timeout_ms: 1000, max_attempts: 3 })
    }
}

#[derive(Default, Debug)]
pub struct Beside {
    pub births: Vec<Birth>,
    pub letters: Vec<Letter>,
    pub probes: Vec<Probe>,
}

/// A build of the Loop.
pub fn build(step: Step, version: &'static str, schema: u32, upgrade: Upgrade) -> Arc<dyn ErasedLoop> {
    erase(ByEvent { step, version, schema, upgrade }, Vec::new())
}

pub struct Bench {
    machine: Machine,
    folded: Projection,
    pub definition: Arc<dyn ErasedLoop>,
    terms: Terms,
    pub now: i64,
    pub epoch: u64,
    pub permits: usize,
    /// What the last step asked for besides its permits.
    pub last: Beside,
    pub entries: Vec<Entry>,
}

impl Bench {
    pub fn new(step: Step, price: Option<Price>) -> Self {
        let run = RunId([1; 16]);
        Self {
            machine: Machine::new(Projection::new(run)),
            folded: Projection::new(run),
            definition: build(step, "1", 1, Upgrade::Adopt),
            terms: Terms(price),
            now: 1_000,
            epoch: 1,
            permits: 0,
            last: Beside::default(),
            entries: Vec::new(),
        }
    }

    pub fn projection(&self) -> &Projection {
        self.machine.projection()
    }

    pub fn start(&mut self, limits: Limits) -> Vec<Permit> {
        self.apply(Input::Start(admission("in", limits)))
    }

    /// The kinds of all Entries so far.
    pub fn kinds(&self) -> String {
        self.entries.iter().map(|entry| entry.kind.name()).collect::<Vec<_>>().join(" ")
    }

    pub fn apply(&mut self, input: Input) -> Vec<Permit> {
        self.try_apply(input).unwrap()
    }

    pub fn try_apply(&mut self, input: Input) -> Result<Vec<Permit>, MachineError> {
        self.now += 1;
        let mut salt = || [9; 32];
        let mut env = Env {
            now: TimeMs(self.now),
            epoch: Epoch(self.epoch),
            dispatch_window_ms: 5_000,
            skew_ms: 100,
            pace: Pace::Full,
            catalog: &self.terms,
            definition: &*self.definition,
            salt: &mut salt,
        };
        let step = self.machine.apply(input, &mut env)?;
        for entry in &step.entries {
            assert_eq!(entry.hash, entry.hash_after(&self.folded.head.hash));
            self.folded.fold(entry).unwrap();
        }
        assert_eq!(&self.folded, self.machine.projection(), "recovery is the fold");
        let json = serde_json::to_string(&self.folded).unwrap();
        assert_eq!(serde_json::from_str::<Projection>(&json).unwrap(), self.folded, "a snapshot loses nothing");
        self.entries.extend_from_slice(&step.entries);
        self.last = Beside { births: step.births.clone(), letters: step.letters.clone(), probes: step.probes.clone() };
        let permits = step.committed();
        self.permits += permits.len();
        Ok(permits)
    }

    /// The next worker takes the Run over, and goes on.
    pub fn recover(&mut self) -> Vec<Permit> {
        self.epoch += 1;
        let before = self.apply(Input::Recover);
        assert!(before.is_empty(), "a recovery is recorded before anything is sent");
        self.apply(Input::Continue)
    }
}

pub fn admission(input: &str, limits: Limits) -> Admission {
    let input = serde_json::to_string(input).unwrap();
    Admission { tenant: "default".into(), input, limits, key: None }
}

pub fn settle(call: u64, settling: Settling) -> Input {
    Input::Settle { call: CallId(call), settling, usage: None, cost: None }
}

pub fn landed(call: u64, output: &str) -> Input {
    settle(call, Settling::Landed(output.into()))
}

pub fn failed(call: u64, disposition: Disposition) -> Input {
    settle(call, Settling::Failed(Failure::new("tool.failed", "no"), disposition))
}
