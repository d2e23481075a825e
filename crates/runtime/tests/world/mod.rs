//! A world for tests: an in-memory store, virtual time, counted tools, a Loop made of a closure.
#![allow(dead_code, reason = "each test binary uses its part of the world")]

pub mod dying;
pub mod kin;
pub mod port;
pub mod turned;

use dying::{Death, Dying};
use loopd_kernel::budget::Limits;
use loopd_kernel::machine::{Admission, ToolTerms};
use loopd_kernel::model::{Message, ToolOffer};
use loopd_kernel::{Cx, Decision, EffectClass, ErasedLoop, Event, Failure, Loop, RunId, Seq, TimeMs, erase};
use loopd_runtime::{
    CallContext, Clock, Config, Driven, Entropy, FixedPrograms, Program, RunEnd, Runtime, Started, Tool, ToolError,
};
use loopd_store::{InboxBody, MemoryStore, Store};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub type Step = fn(&Cx, &mut Vec<String>, Event) -> Result<Decision, Failure>;

struct ClosureLoop(&'static str, Step);

impl Loop for ClosureLoop {
    type Input = String;
    type State = Vec<String>;
    type Output = serde_json::Value;

    fn name(&self) -> &'static str {
        self.0
    }

    fn init(&self, _: String) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }

    fn transition(&self, cx: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
        (self.1)(cx, state, event)
    }
}

/// The Loop made of a closure.
pub fn closure(step: Step) -> Arc<dyn ErasedLoop> {
    closure_named("closure", step)
}

/// The same, where several of them run in one world.
pub fn closure_named(name: &'static str, step: Step) -> Arc<dyn ErasedLoop> {
    erase(ClosureLoop(name, step), Vec::new())
}

struct Counted {
    offer: ToolOffer,
    class: EffectClass,
    ms: u64,
    calls: Arc<AtomicU32>,
}

#[async_trait::async_trait]
impl Tool for Counted {
    fn offer(&self) -> &ToolOffer {
        &self.offer
    }

    fn terms(&self) -> ToolTerms {
        ToolTerms { class: self.class, timeout_ms: 3_600_000 }
    }

    async fn call(&self, args: &str, _: &CallContext) -> Result<String, ToolError> {
        let n = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        tokio::time::sleep(Duration::from_millis(self.ms)).await;
        Ok(format!("{}({args}) #{n}", self.offer.name))
    }
}

struct Scripted(Arc<AtomicU32>);

#[async_trait::async_trait]
impl loopd_runtime::Model for Scripted {
    fn terms(&self) -> loopd_kernel::machine::ModelTerms {
        loopd_kernel::machine::ModelTerms {
            price: Some(loopd_kernel::units::Price { input: 1_000_000, output: 1_000_000, ..Default::default() }),
            timeout_ms: 60_000,
            max_attempts: 3,
        }
    }

    async fn call(
        &self,
        request: loopd_runtime::ModelRequest,
        _: CallContext,
    ) -> Result<loopd_runtime::ModelAnswer, loopd_runtime::ModelError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let said = request.messages.iter().filter(|m| matches!(***m, Message::Assistant { .. })).count();
        let usage = loopd_kernel::Usage { input: 10, output: 5, ..Default::default() };
        let reply = loopd_kernel::model::ModelReply::text(format!("turn {said}"));
        Ok(loopd_runtime::ModelAnswer { reply, usage: Some(usage) })
    }
}

/// Virtual time: tokio's paused clock.
pub struct VirtualClock(tokio::time::Instant);

impl Default for VirtualClock {
    fn default() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> TimeMs {
        TimeMs(1_000_000).after(self.0.elapsed().as_millis() as u64)
    }

    fn steady_ms(&self) -> u64 {
        self.0.elapsed().as_millis() as u64
    }
}

/// A counter, and the stream that it counts: two workers that live at once need two.
#[derive(Default)]
pub struct CountedEntropy(AtomicU32, u64);

impl CountedEntropy {
    pub fn of(stream: u64) -> Self {
        Self(AtomicU32::new(0), stream)
    }
}

impl Entropy for CountedEntropy {
    fn salt(&self) -> [u8; 32] {
        let n = u64::from(self.0.fetch_add(1, Ordering::SeqCst));
        let mut salt = [0; 32];
        for (at, word) in salt.chunks_exact_mut(8).enumerate() {
            // SplitMix64: spread as well as any digest would be, for a fraction of its price.
            let mut z = (self.1 << 34 | n << 2 | at as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word.copy_from_slice(&(z ^ (z >> 31)).to_be_bytes());
        }
        salt
    }
}

pub struct World {
    program: Program,
    store: MemoryStore,
    dying: Option<Arc<Dying>>,
    counters: BTreeMap<String, Arc<AtomicU32>>,
    limits: Limits,
    clock: Arc<VirtualClock>,
    entropy: Arc<CountedEntropy>,
    runtime: OnceLock<Runtime>,
    run: Cell<Option<RunId>>,
}

impl World {
    pub fn new(step: Step) -> Self {
        Self {
            program: Program::new(closure(step)),
            store: MemoryStore::new(),
            dying: None,
            counters: BTreeMap::new(),
            limits: Limits::default(),
            clock: Arc::default(),
            entropy: Arc::default(),
            runtime: OnceLock::new(),
            run: Cell::new(None),
        }
    }

    pub fn tool(self, name: &str, class: EffectClass) -> Self {
        self.tool_taking(name, class, 0)
    }

    pub fn tool_taking(mut self, name: &str, class: EffectClass, ms: u64) -> Self {
        let calls = Arc::new(AtomicU32::new(0));
        self.counters.insert(name.into(), calls.clone());
        let offer = ToolOffer { name: name.into(), description: String::new(), parameters: "{}".into() };
        self.program = self.program.tool(Arc::new(Counted { offer, class, ms, calls }));
        self
    }

    pub fn with_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.program = self.program.tool(tool);
        self
    }

    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    pub fn calls(&self, tool: &str) -> u32 {
        self.counters[tool].load(Ordering::SeqCst)
    }

    async fn runtime(&self, config: Config) -> Runtime {
        self.try_runtime(config).await.unwrap()
    }

    async fn try_runtime(&self, config: Config) -> Option<Runtime> {
        if let Some(runtime) = self.runtime.get() {
            return Some(runtime.clone());
        }
        let programs = Arc::new(FixedPrograms::new([Arc::new(self.program.clone())]));
        let store: Arc<dyn Store> = match &self.dying {
            Some(dying) => dying.clone(),
            None => Arc::new(self.store.clone()),
        };
        let builder = Runtime::builder(store, programs).config(config);
        let runtime = builder.world(self.clock.clone(), self.entropy.clone()).start().await.ok()?;
        Some(self.runtime.get_or_init(|| runtime).clone())
    }

    /// The process of this world dies at its commit number `at`.
    pub fn dying(mut self, at: u32, death: Death) -> Self {
        self.runtime = OnceLock::new();
        self.dying = Some(Arc::new(Dying::new(self.store.clone(), at, death)));
        self
    }

    pub fn is_dead(&self) -> bool {
        self.dying.as_ref().is_some_and(|dying| dying.is_dead())
    }

    /// Adds a model that answers with the number of assistant messages it sees.
    pub fn scripted_model(mut self, name: &str) -> Self {
        let calls = Arc::new(AtomicU32::new(0));
        self.counters.insert("model".into(), calls.clone());
        self.program = self.program.model(name, Arc::new(Scripted(calls)));
        self
    }

    pub fn all_calls(&self) -> String {
        let calls = self.counters.iter().map(|(name, count)| format!("{name}={}", count.load(Ordering::SeqCst)));
        calls.collect::<Vec<_>>().join(" ")
    }

    /// Runs until it ends, waits, or its process dies.
    pub async fn try_run(&self) -> Option<RunEnd> {
        let driven = self.try_start().await?;
        let mut end = driven.wait().await;
        while let RunEnd::Suspended(waits) = &end {
            if waits.questions.is_empty() {
                tokio::time::advance(Duration::from_secs(3600)).await;
            } else {
                for open in &waits.questions {
                    let end = loopd_kernel::question::QuestionEnd::Answered;
                    let value = "true".to_owned();
                    let body = InboxBody::Answer { question: open.id, end, actor: "ann".into(), value };
                    let run = self.run.get().unwrap();
                    self.runtime.get().unwrap().tell(run, format!("answer-{}", open.id), body).await.ok()?;
                }
            }
            end = self.runtime.get().unwrap().resume(self.run.get().unwrap()).await.ok()?.wait().await;
        }
        Some(end)
    }

    /// Another process takes over once the dead one's lease has lapsed.
    pub async fn take_over(mut self) -> Self {
        self.dying = None;
        tokio::time::advance(Duration::from_secs(60)).await;
        self.restart(Config::default()).await
    }

    /// True when the store knows the Run; a process may die before its first commit.
    pub async fn started(&self) -> bool {
        let page = self.store.runs(loopd_store::RunFilter { limit: 10, ..Default::default() }).await.unwrap();
        self.run.set(page.items.first().map(|row| row.run));
        self.run.get().is_some()
    }

    /// The journal verifies and folds, and every Call has exactly one settlement.
    pub async fn verify(&self) {
        let Some(run) = self.run.get() else { return };
        let row = self.store.run(run).await.unwrap().unwrap();
        let definition = self.program.definition().clone();
        let strict = loopd_kernel::replay::Strictness::Strict;
        let mut replayer = loopd_kernel::replay::Replayer::new(run, Some(&*definition), strict);
        let mut settled = BTreeMap::new();
        for entry in self.store.entries(run, Seq(0), 10_000).await.unwrap() {
            replayer.take(&entry).unwrap();
            let record = loopd_kernel::record::Record::decode(entry.kind, &entry.record).unwrap();
            if let loopd_kernel::record::Record::Settled(one) = record {
                *settled.entry(one.call).or_insert(0) += 1;
            }
        }
        replayer.verifier().finish(row.head, &row.hash).unwrap();
        assert!(settled.values().all(|count| *count == 1), "{settled:?}");
        assert!(replayer.projection().open.is_empty());
    }

    /// The Loop with its tools and models.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// This world's processes work on another handle.
    pub fn over(mut self, store: MemoryStore) -> Self {
        self.store = store;
        self
    }

    /// Commits of this world's processes fail as `policy` says.
    pub fn faulty(
        mut self,
        policy: impl FnMut(&loopd_store::Batch) -> Option<loopd_store::memory::Fault> + Send + 'static,
    ) -> Self {
        self.store = self.store.faulty(policy);
        self
    }

    pub async fn try_start_and_wait(&self) -> Option<RunEnd> {
        Some(self.try_start().await?.wait().await)
    }

    /// Drives the Run on, unless the process dies first.
    pub async fn try_resume(&self) -> Option<RunEnd> {
        let runtime = self.try_runtime(Config { claims: false, ..Config::default() }).await?;
        let run = self.run.get()?;
        match runtime.ended(run).await.ok()? {
            Some(outcome) => Some(RunEnd::Ended(outcome)),
            None => Some(runtime.resume(run).await.ok()?.wait().await),
        }
    }

    pub async fn try_tell(&self, key: &str, body: InboxBody) -> Option<()> {
        self.runtime.get()?.tell(self.run.get()?, key, body).await.ok()
    }

    pub async fn start(&self) -> Driven {
        self.try_start().await.unwrap()
    }

    async fn try_start(&self) -> Option<Driven> {
        let config = Config { claims: false, ..Config::default() };
        let runtime = self.try_runtime(config).await?;
        let admission = Admission { tenant: "default".into(), input: "\"in\"".into(), limits: self.limits, key: None };
        let started = runtime.start(&Arc::new(self.program.clone()), admission).await.ok()?;
        let Started::New(driven) = started else { panic!("{started:?}") };
        self.run.set(Some(driven.run));
        Some(driven)
    }

    pub async fn run(&self) -> RunEnd {
        self.start().await.wait().await
    }

    pub async fn resume(&self) -> RunEnd {
        let runtime = self.runtime(Config { claims: false, ..Config::default() }).await;
        let run = self.run.get().unwrap();
        match runtime.ended(run).await.unwrap() {
            Some(outcome) => RunEnd::Ended(outcome),
            None => runtime.resume(run).await.unwrap().wait().await,
        }
    }

    pub async fn tell(&self, key: &str, body: InboxBody) {
        self.runtime.get().unwrap().tell(self.run.get().unwrap(), key, body).await.unwrap();
    }

    pub async fn shutdown(&self) {
        self.runtime.get().unwrap().shutdown().await;
    }

    pub async fn restart(mut self, config: Config) -> Self {
        self.runtime = OnceLock::new();
        self.runtime(Config { claims: false, ..config }).await;
        self
    }

    pub async fn journal(&self) -> String {
        let entries = self.store.entries(self.run.get().unwrap(), Seq(0), 1000).await.unwrap();
        entries.iter().fold(String::new(), |mut out, entry| {
            writeln!(out, "{} {}", entry.seq, entry.kind).unwrap();
            out
        })
    }
}

pub fn show_end(end: &RunEnd) -> String {
    match end {
        RunEnd::Ended(outcome) => {
            let mut json: serde_json::Value = serde_json::to_value(outcome).unwrap();
            json.as_object_mut().unwrap().remove("outcome");
            format!("Ended {} {json}", outcome.name())
        }
        other => format!("{other:?}"),
    }
}

thread_local! {
    static PANICS: Cell<bool> = const { Cell::new(false) };
}

/// Whether the Loop of the calling test shall panic; tests run one thread each.
pub fn panics() -> bool {
    PANICS.get()
}

pub fn set_panics(on: bool) {
    PANICS.set(on);
}
