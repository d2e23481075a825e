//! Several Loops over one store, and any number of workers that live at once.

use super::dying::{Death, Dying};
use super::{CountedEntropy, Step, VirtualClock};
use loopd_kernel::machine::Admission;
use loopd_kernel::record::Record;
use loopd_kernel::replay::{Replayer, Strictness};
use loopd_kernel::{Cx, Decision, Event, Failure, Limits, Loop, RunId, Seq, erase};
use loopd_runtime::{Config, Driven, FixedPrograms, Program, Runtime, Started};
use loopd_store::{InboxBody, MemoryStore, RunFilter, RunRow, Store};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A Loop with a name, made of a function. The input `"refused"` is refused, over `"panics"` it panics.
struct Named(&'static str, Step);

impl Loop for Named {
    type Input = String;
    type State = Vec<String>;
    type Output = serde_json::Value;

    fn name(&self) -> &str {
        self.0
    }

    fn init(&self, input: String) -> Result<Vec<String>, Failure> {
        assert_ne!(input, "panics");
        if input == "refused" {
            return Err(Failure::new("loop.input", "this input is refused"));
        }
        Ok(Vec::new())
    }

    fn transition(&self, cx: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
        (self.1)(cx, state, event)
    }
}

pub fn named(name: &'static str, step: Step) -> Program {
    Program::new(erase(Named(name, step), Vec::new()))
}

/// A store and what its workers share.
pub struct Kin {
    pub store: MemoryStore,
    pub programs: Vec<Arc<Program>>,
    pub clock: Arc<VirtualClock>,
    began: tokio::time::Instant,
    workers: AtomicU64,
}

impl Kin {
    pub fn new(programs: impl IntoIterator<Item = Program>) -> Self {
        let programs = programs.into_iter().map(Arc::new).collect();
        let (began, workers) = (tokio::time::Instant::now(), AtomicU64::new(0));
        Self { store: MemoryStore::new(), programs, clock: Arc::default(), began, workers }
    }

    /// A worker that knows every Loop.
    pub async fn worker(&self, claims: bool) -> Runtime {
        self.worker_over(Arc::new(self.store.clone()), claims, &self.programs).await
    }

    /// A worker that knows these Loops, and reaches the store through `store`.
    pub async fn worker_over(&self, store: Arc<dyn Store>, claims: bool, programs: &[Arc<Program>]) -> Runtime {
        self.try_worker(store, claims, programs).await.unwrap()
    }

    /// The same, where the process may die at once.
    pub async fn try_worker(&self, store: Arc<dyn Store>, claims: bool, programs: &[Arc<Program>]) -> Option<Runtime> {
        let stream = self.workers.fetch_add(1, Ordering::SeqCst) + 1;
        Runtime::builder(store, Arc::new(FixedPrograms::new(programs.iter().cloned())))
            .config(Config { claims, ..Config::default() })
            .world(self.clock.clone(), Arc::new(CountedEntropy::of(stream)))
            .start()
            .await
            .ok()
    }

    /// A handle on the store whose process dies at its commit number `at`.
    pub fn dying(&self, at: u32, death: Death) -> Arc<Dying> {
        Arc::new(Dying::new(self.store.clone(), at, death))
    }

    /// Starts a Run of the first Loop.
    pub async fn start(&self, runtime: &Runtime) -> Driven {
        self.try_start(runtime).await.unwrap()
    }

    pub async fn try_start(&self, runtime: &Runtime) -> Option<Driven> {
        let limits = Limits::default();
        let admission = Admission { tenant: "default".into(), input: "\"in\"".into(), limits, key: None };
        match runtime.start(&self.programs[0], admission).await.ok()? {
            Started::New(driven) => Some(driven),
            Started::Already(run) => panic!("{run}"),
        }
    }

    /// When this world began.
    pub fn clock_start(&self) -> tokio::time::Instant {
        self.began
    }

    pub async fn row(&self, run: RunId) -> RunRow {
        self.store.run(run).await.unwrap().unwrap()
    }

    /// Waits until the Run's row is as wanted, at most a virtual day.
    pub async fn until(&self, run: RunId, wanted: impl Fn(&RunRow) -> bool) -> RunRow {
        let mut hints = self.store.hints();
        let day = tokio::time::Instant::now() + Duration::from_secs(86_400);
        loop {
            let row = self.row(run).await;
            if wanted(&row) {
                return row;
            }
            let heard = tokio::time::timeout_at(day, hints.recv()).await;
            assert!(heard.is_ok(), "{row:?} {}", self.kinds(run).await);
        }
    }

    /// Every Run of the store, the oldest first.
    pub async fn rows(&self) -> Vec<RunRow> {
        let page = self.store.runs(RunFilter { limit: 1_000, ..RunFilter::default() }).await.unwrap();
        page.items.into_iter().rev().collect()
    }

    /// The children of a Run, in the order of their names.
    pub async fn children(&self, parent: RunId) -> Vec<RunRow> {
        let filter = RunFilter { parent: Some(parent), limit: 1_000, ..RunFilter::default() };
        let mut rows = self.store.runs(filter).await.unwrap().items;
        rows.sort_by(|a, b| a.loop_name.cmp(&b.loop_name));
        rows
    }

    /// The only child of a Run.
    pub async fn child(&self, parent: RunId) -> RunRow {
        let mut children = self.children(parent).await;
        assert_eq!(children.len(), 1);
        children.remove(0)
    }

    pub async fn kinds(&self, run: RunId) -> String {
        let entries = self.store.entries(run, Seq(0), 10_000).await.unwrap();
        entries.iter().map(|entry| entry.kind.name()).collect::<Vec<_>>().join(" ")
    }

    /// One line a Run: its Loop, how it stands, its kinds of Entries.
    pub async fn table(&self) -> String {
        let mut rows = self.rows().await;
        rows.sort_by(|a, b| (a.parent.is_some(), &a.loop_name).cmp(&(b.parent.is_some(), &b.loop_name)));
        let mut table = String::new();
        for row in rows {
            let outcome = row.outcome.as_deref().unwrap_or("-");
            let (status, kinds) = (row.status.name(), self.kinds(row.run).await);
            writeln!(table, "{}: {status} {outcome}: {kinds}", row.loop_name).unwrap();
        }
        table
    }

    /// Every Journal verifies, replays by the code of its Loop, and settles every Call once.
    pub async fn verify(&self) {
        for row in self.rows().await {
            let program = self.programs.iter().find(|program| program.definition().name() == row.loop_name);
            let definition = program.map(|program| &**program.definition());
            let entries = self.store.entries(row.run, Seq(0), 10_000).await.unwrap();
            let mut replayer = Replayer::new(row.run, definition, Strictness::Strict);
            let mut settled = BTreeMap::new();
            for entry in &entries {
                replayer.take(entry).unwrap();
                if let Record::Settled(one) = Record::decode(entry.kind, &entry.record).unwrap() {
                    *settled.entry(one.call).or_insert(0) += 1;
                }
            }
            replayer.verifier().finish(row.head, &row.hash).unwrap();
            assert!(settled.values().all(|count| *count == 1), "{}: {settled:?}", row.loop_name);
        }
    }
}

pub async fn answer(runtime: &Runtime, run: RunId, key: &str, value: &str) {
    let row = runtime.store().questions(Some(run), 10).await.unwrap().remove(0);
    let end = loopd_kernel::question::QuestionEnd::Answered;
    let body = InboxBody::Answer { question: row.question.id, end, actor: "ann".into(), value: value.into() };
    runtime.tell(run, key, body).await.unwrap();
}

pub fn cancel() -> InboxBody {
    InboxBody::Cancel { actor: "ann".into(), reason: "enough".into() }
}
