//! The workloads, driven through the runtime and the SQLite store exactly as a program drives them.

use crate::meter;
use crate::probe::Parameters;
use crate::subject::Subject;
use anyhow::{Context as _, Result, bail};
use loopd_kernel::budget::Limits;
use loopd_kernel::machine::Admission;
use loopd_kernel::question::QuestionEnd;
use loopd_kernel::replay::{Replayer, Strictness};
use loopd_kernel::{RunId, Seq};
use loopd_runtime::{Config, FixedPrograms, Program, RunEnd, Runtime, Started, load};
use loopd_store::{Hint, InboxBody, RunFilter, Store};
use loopd_store_sqlite::SqliteStore;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SERVER_THREADS: usize = 1;

/// One open engine over a fresh or existing file.
struct Engine {
    store: Arc<SqliteStore>,
    runtime: Runtime,
    program: Arc<Program>,
}

impl Engine {
    async fn open(parameters: &Parameters, program: Arc<Program>, claims: bool) -> Result<Self> {
        let store = Arc::new(SqliteStore::open_driver(parameters.folder().join("loopd.db"))?);
        let programs = Arc::new(FixedPrograms::new([program.clone()]));
        let shared: Arc<dyn Store> = store.clone();
        let config = Config { claims, ..Config::default() };
        let runtime = Runtime::builder(shared, programs).config(config).start().await?;
        Ok(Self { store, runtime, program })
    }

    async fn start(&self, input: String, limits: Limits) -> Result<loopd_runtime::Driven> {
        let admission = Admission { tenant: "default".into(), input, limits, key: None };
        match self.runtime.start(&self.program, admission).await? {
            Started::New(driven) => Ok(driven),
            Started::Already(run) => bail!("{run} was started already"),
        }
    }

    async fn close(self) -> Result<()> {
        self.runtime.shutdown().await;
        Ok(())
    }
}

fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(SERVER_THREADS).enable_all().build()?;
    runtime.block_on(future)
}

/// Runs of iterations of one model call and one tool call each: W1 (one Run), W2 (many), W5 (bytes).
pub fn steps(parameters: &Parameters) -> Result<Value> {
    let (runs, iterations) = (parameters.number("runs", 1), parameters.number("iterations", 1000));
    let mut figures = block_on(async {
        let subject = Subject::of(parameters).await?;
        let engine = Engine::open(parameters, subject.program()?, false).await?;
        let figures = drive_all(&engine, runs, iterations, || subject.input(iterations, false)).await?;
        engine.close().await?;
        Ok(figures)
    })?;
    figures["file_bytes"] = json!(meter::file_bytes(&parameters.folder().join("loopd.db")));
    Ok(figures)
}

/// W5: bytes that the last tenth of a Run's steps added to the file, and what its payloads allow.
pub fn bytes(parameters: &Parameters) -> Result<Value> {
    let iterations = parameters.number("iterations", 50);
    let folder = parameters.folder();
    let (mut sizes, mut payloads) = (Vec::new(), Vec::new());
    // Two Runs of different length in files of their own: their difference is what the last steps cost.
    for length in [iterations, iterations + iterations.div_ceil(10).max(50)] {
        let place = folder.join(length.to_string());
        std::fs::create_dir_all(&place)?;
        let here = Parameters::parse(&[format!("dir={}", place.display())]);
        let payload = block_on(async {
            let subject = Subject::of(&here).await?;
            let engine = Engine::open(&here, subject.program()?, false).await?;
            let driven = engine.start(subject.input(length, false), limit(length + 1)).await?;
            let run = driven.run;
            let _ = driven.wait().await;
            let mut payload = 0;
            let mut at = Seq(0);
            loop {
                let page = engine.store.entries(run, at, 1024).await?;
                let Some(last) = page.last() else { break };
                at = last.seq;
                payload += page.iter().map(|entry| entry.payload.len()).sum::<usize>();
            }
            engine.close().await?;
            Ok(payload)
        })?;
        sizes.push(meter::file_bytes(&place.join("loopd.db")) as f64);
        payloads.push(payload as f64);
    }
    let steps = (iterations.div_ceil(10).max(50) * 2) as f64;
    let (file, payload) = ((sizes[1] - sizes[0]) / steps, (payloads[1] - payloads[0]) / steps);
    Ok(json!({
        "file_bytes_per_step": file, "payload_bytes_per_step": payload,
        "stored_over_allowed": file / (payload + 600.0),
    }))
}

async fn drive_all(engine: &Engine, runs: u64, iterations: u64, input: impl Fn() -> String) -> Result<Value> {
    let groups = engine.store.stats().groups;
    let (device, cpu) = (meter::device_bytes(), meter::cpu_us());
    let start = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..runs {
        let begun = Instant::now();
        let driven = engine.start(input(), limit(iterations + 1)).await?;
        tasks.push(tokio::spawn(async move { (driven.wait().await, begun.elapsed()) }));
    }
    let mut latencies = Vec::new();
    for task in tasks {
        let (end, elapsed) = task.await?;
        if !matches!(end, RunEnd::Ended(_)) {
            bail!("a run did not end: {end:?}");
        }
        latencies.push(elapsed.as_secs_f64() * 1e3);
    }
    let steps = (runs * iterations * 2) as f64;
    Ok(json!({
        "steps_per_s": steps / start.elapsed().as_secs_f64(),
        "commits_per_step": (engine.store.stats().groups - groups) as f64 / steps,
        "device_bytes_per_step": (meter::device_bytes() - device) as f64 / steps,
        "cpu_us_per_step": (meter::cpu_us() - cpu) as f64 / steps,
        "run_ms_p50": meter::quantile(&mut latencies, 0.5),
        "run_ms_p99": meter::quantile(&mut latencies, 0.99),
        "resident_mib": meter::resident_bytes() as f64 / 1048576.0,
    }))
}

fn limit(iterations: u64) -> Limits {
    Limits { iterations: Some(iterations), ..Limits::default() }
}

/// Builds a Run of about `entries` Entries and leaves it parked at its iteration limit.
pub fn build(parameters: &Parameters) -> Result<Value> {
    // An iteration is IterationStarted, two decisions, two intents, two settlements, and a last decision.
    let iterations = parameters.number("entries", 10_000) / 8;
    block_on(async {
        let subject = Subject::of(parameters).await?;
        let engine = Engine::open(parameters, subject.program()?, false).await?;
        let driven = engine.start(subject.input(u64::MAX, false), limit(iterations)).await?;
        let run = driven.run;
        let end = driven.wait().await;
        let head = engine.store.run(run).await?.context("the run is gone")?.head;
        engine.close().await?;
        Ok(json!({ "entries": head.0, "end": matches!(end, RunEnd::Ended(_)) }))
    })
}

/// W3: from process start until the next step of that Run is durable.
pub fn resume(parameters: &Parameters) -> Result<Value> {
    let verify = parameters.number("verify", 0) == 1;
    let start = Instant::now();
    block_on(async {
        let subject = Subject::of(parameters).await?;
        let engine = Engine::open(parameters, subject.program()?, false).await?;
        let run = only_run(&engine).await?;
        let opened = start.elapsed();
        let verified = if verify { verify_chain(&engine, run).await? } else { 0 };
        let reads = engine.store.stats().reads;
        let raise = limit(1 << 40);
        engine
            .runtime
            .tell(
                run,
                format!("raise-{}", start.elapsed().as_nanos()),
                InboxBody::Reopen { actor: "bench".into(), raise },
            )
            .await?;
        let mut hints = engine.store.hints();
        let head = engine.store.run(run).await?.context("the run is gone")?.head;
        drop(engine.runtime.resume(run).await?);
        // The step that settles the first new call is the first whose head passed the reopening by five.
        loop {
            hints.recv().await?;
            if engine.store.run(run).await?.is_some_and(|row| row.head.0 > head.0 + 4) {
                break;
            }
        }
        let elapsed = start.elapsed();
        let reads = engine.store.stats().reads - reads;
        engine.close().await?;
        Ok(json!({
            "ms": elapsed.as_secs_f64() * 1e3, "open_ms": opened.as_secs_f64() * 1e3,
            "verified_entries": verified, "reads": reads,
        }))
    })
}

async fn only_run(engine: &Engine) -> Result<RunId> {
    let page = engine.store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await?;
    Ok(page.items.first().context("there is no run")?.run)
}

async fn verify_chain(engine: &Engine, run: RunId) -> Result<u64> {
    let row = engine.store.run(run).await?.context("the run is gone")?;
    let mut replayer = Replayer::new(run, None, Strictness::Strict);
    let mut at = Seq(0);
    while at < row.head {
        let page = engine.store.entries(run, at, 1024).await?;
        at = page.last().context("the journal is cut")?.seq;
        page.iter().try_for_each(|entry| replayer.take(entry))?;
    }
    replayer.verifier().finish(row.head, &row.hash)?;
    Ok(row.head.0)
}

/// W4: suspended Runs: memory and disk of each, and the time to wake one.
pub fn suspended(parameters: &Parameters) -> Result<Value> {
    let runs = parameters.number("runs", 10_000);
    let path = parameters.folder().join("loopd.db");
    block_on(async {
        let subject = Subject::of(parameters).await?;
        let engine = Engine::open(parameters, subject.program()?, true).await?;
        // Caches and allocator arenas fill once; they belong to no Run.
        for _ in 0..runs.min(500) {
            let _ = engine.start(subject.input(1, true), Limits::default()).await?.wait().await;
        }
        let before = meter::resident_bytes();
        let mut waiting = Vec::new();
        for _ in 0..runs {
            waiting.push(engine.start(subject.input(1, true), Limits::default()).await?);
            if waiting.len() == 100 {
                for driven in waiting.drain(..) {
                    let _ = driven.wait().await;
                }
            }
        }
        for driven in waiting.drain(..) {
            let _ = driven.wait().await;
        }
        let grown = meter::resident_bytes().saturating_sub(before);
        let (mut wakes, idle) = wake_some(&engine, parameters.number("wakes", 200)).await?;
        engine.close().await?;
        Ok(json!({
            "resident_bytes_per_run": grown as f64 / runs as f64,
            "file_bytes_per_run": meter::file_bytes(&path) as f64 / runs as f64,
            "wake_ms_p50": meter::quantile(&mut wakes, 0.5), "wake_ms_p99": meter::quantile(&mut wakes, 0.99),
            "wakeups_in_10_s_idle": idle,
        }))
    })
}

/// W4 again: a new process opens the file with all of them.
pub fn reopen(parameters: &Parameters) -> Result<Value> {
    let start = Instant::now();
    block_on(async {
        let subject = Subject::of(parameters).await?;
        let engine = Engine::open(parameters, subject.program()?, true).await?;
        let opened = start.elapsed();
        let resident = meter::resident_bytes();
        let (mut wakes, _) = wake_some(&engine, 20).await?;
        engine.close().await?;
        Ok(json!({
            "open_ms": opened.as_secs_f64() * 1e3, "resident_mib": resident as f64 / 1048576.0,
            "wake_ms_p50": meter::quantile(&mut wakes, 0.5),
        }))
    })
}

/// Signals Runs one after the other; each wake ends when the Run's next Entries are durable.
async fn wake_some(engine: &Engine, count: u64) -> Result<(Vec<f64>, u64)> {
    // What the last suspension set in motion comes to rest first.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = meter::wakeups();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let idle = meter::wakeups() - before;
    let page = engine.store.runs(RunFilter { limit: usize::try_from(count)?, ..RunFilter::default() }).await?;
    let mut hints = engine.store.hints();
    let mut wakes = Vec::new();
    for row in &page.items {
        let body = match engine.store.questions(Some(row.run), 1).await?.pop() {
            Some(open) => InboxBody::Answer {
                question: open.question.id,
                end: QuestionEnd::Answered,
                actor: "bench".into(),
                value: "\"yes\"".into(),
            },
            None => InboxBody::Signal { name: "go".into(), body: "1".into() },
        };
        let start = Instant::now();
        engine.runtime.tell(row.run, format!("wake-{}", row.updated_at.0), body).await?;
        while hints.recv().await? != Hint::Run(row.run) {}
        wakes.push(start.elapsed().as_secs_f64() * 1e3);
        if let Some(driven) = engine.runtime.driven(row.run) {
            let _ = driven.wait().await;
        }
    }
    // One of them is folded as a check that what was woken is what was put to sleep.
    if let Some(row) = page.items.first() {
        let row = engine.store.run(row.run).await?.context("the run is gone")?;
        load(&*engine.store, &row).await?;
    }
    Ok((wakes, idle))
}
