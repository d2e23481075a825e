//! Drives a machine by hand: every step is folded a second time from its Entries and must come to the
//! same Projection, so that each test also proves that recovery is the fold.
#![allow(dead_code, reason = "each test binary uses its part")]

use loopd_kernel::budget::Limits;
use loopd_kernel::machine::{Admission, Catalog, Env, Input, ModelTerms, Pace, ToolTerms};
use loopd_kernel::units::Price;
use loopd_kernel::{
    Cx, Decision, EffectClass, Entry, Epoch, Event, Failure, Loop, Machine, Permit, Projection, RunId, TimeMs,
};
use loopd_kernel::{ErasedLoop, erase};
use std::sync::Arc;

pub type Step = fn(Event) -> Result<Decision, Failure>;

struct ByEvent(Step);

impl Loop for ByEvent {
    type Input = String;
    type State = u64;
    type Output = serde_json::Value;

    fn name(&self) -> &'static str {
        "by-event"
    }

    fn init(&self, _: String) -> Result<u64, Failure> {
        Ok(0)
    }

    fn transition(&self, _: &Cx, state: &mut u64, event: Event) -> Result<Decision, Failure> {
        *state += 1;
        (self.0)(event)
    }
}

struct Terms(Option<Price>);

impl Catalog for Terms {
    fn tool(&self, name: &str) -> Option<ToolTerms> {
        let class = match name {
            "look" => EffectClass::Read,
            "pay" => EffectClass::Once,
            _ => return None,
        };
        Some(ToolTerms { class, timeout_ms: 1000 })
    }

    fn model(&self, name: &str) -> Option<ModelTerms> {
        (name == "m").then_some(ModelTerms { price: self.0, timeout_ms: 1000, max_attempts: 3 })
    }
}

pub struct Bench {
    machine: Machine,
    folded: Projection,
    definition: Arc<dyn ErasedLoop>,
    terms: Terms,
    pub now: i64,
    pub epoch: u64,
    pub permits: usize,
    pub entries: Vec<Entry>,
}

impl Bench {
    pub fn new(step: Step, price: Option<Price>) -> Self {
        let run = RunId([1; 16]);
        Self {
            machine: Machine::new(Projection::new(run)),
            folded: Projection::new(run),
            definition: erase(ByEvent(step), Vec::new()),
            terms: Terms(price),
            now: 1_000,
            epoch: 1,
            permits: 0,
            entries: Vec::new(),
        }
    }

    pub fn projection(&self) -> &Projection {
        self.machine.projection()
    }

    pub fn start(&mut self, limits: Limits) -> Vec<Permit> {
        let admission = Admission { tenant: "default".into(), input: "\"in\"".into(), limits, key: None };
        self.apply(Input::Start(admission))
    }

    pub fn apply(&mut self, input: Input) -> Vec<Permit> {
        self.now += 1;
        let mut salt = || [9; 32];
        let mut env = Env {
            now: TimeMs(self.now),
            epoch: Epoch(self.epoch),
            dispatch_window_ms: 5_000,
            pace: Pace::Full,
            catalog: &self.terms,
            definition: &*self.definition,
            salt: &mut salt,
        };
        let step = self.machine.apply(input, &mut env).unwrap();
        for entry in &step.entries {
            assert_eq!(entry.hash, entry.hash_after(&self.folded.head.hash));
            self.folded.fold(entry).unwrap();
        }
        assert_eq!(&self.folded, self.machine.projection(), "recovery is the fold");
        let json = serde_json::to_string(&self.folded).unwrap();
        assert_eq!(serde_json::from_str::<Projection>(&json).unwrap(), self.folded, "a snapshot loses nothing");
        self.entries.extend_from_slice(&step.entries);
        let permits = step.committed();
        self.permits += permits.len();
        permits
    }

    /// The next worker takes the Run over, and goes on.
    pub fn recover(&mut self) -> Vec<Permit> {
        self.epoch += 1;
        let before = self.apply(Input::Recover);
        assert!(before.is_empty(), "a recovery is recorded before anything is sent");
        self.apply(Input::Continue)
    }
}
