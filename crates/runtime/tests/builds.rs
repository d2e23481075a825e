//! One Run, several builds of its Loop: who goes on with it, who says why not, and that nobody bricks it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use expect_test::{Expect, expect};
use loopd_kernel::machine::Admission;
use loopd_kernel::{Cx, Decision, Event, Failure, Limits, Loop, RunId, Upgrade, erase};
use loopd_runtime::{FixedPrograms, Forecast, Program, Runtime, Started};
use loopd_store::{InboxBody, RunStatus};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::marker::PhantomData;
use std::sync::Arc;
use world::kin::Kin;
use world::show_end;

trait Turns: Serialize + DeserializeOwned + Default {
    /// It ends at once.
    const HASTY: bool = false;

    fn turns(&mut self) -> &mut Vec<String>;
}

/// The State of the first build.
#[derive(Serialize, Deserialize, Default)]
struct First {
    turns: Vec<String>,
}

/// It gained a field: both builds read both.
#[derive(Serialize, Deserialize, Default)]
struct Grown {
    turns: Vec<String>,
    #[serde(default)]
    notes: u32,
}

/// Schema version 2: the field has another name, and a migration.
#[derive(Serialize, Deserialize, Default)]
struct Renamed {
    log: Vec<String>,
}

impl Turns for First {
    fn turns(&mut self) -> &mut Vec<String> {
        &mut self.turns
    }
}

/// The same, of a build that decides otherwise.
#[derive(Serialize, Deserialize, Default)]
struct Hasty {
    turns: Vec<String>,
}

impl Turns for Hasty {
    const HASTY: bool = true;

    fn turns(&mut self) -> &mut Vec<String> {
        &mut self.turns
    }
}

impl Turns for Grown {
    fn turns(&mut self) -> &mut Vec<String> {
        self.notes += 1;
        &mut self.turns
    }
}

impl Turns for Renamed {
    fn turns(&mut self) -> &mut Vec<String> {
        &mut self.log
    }
}

/// A build: notes its version at every turn, waits for `go` and ends at `end`.
struct Build<S> {
    version: &'static str,
    schema: u32,
    upgrade: Upgrade,
    state: PhantomData<fn() -> S>,
}

impl<S: Turns + 'static> Loop for Build<S> {
    type Input = String;
    type State = S;
    type Output = Vec<String>;

    fn name(&self) -> &'static str {
        "built"
    }

    fn version(&self) -> &str {
        self.version
    }

    fn state_version(&self) -> u32 {
        self.schema
    }

    fn upgrade(&self) -> Upgrade {
        self.upgrade
    }

    fn migrate(&self, _: u32, state: &str) -> Result<String, Failure> {
        assert_ne!(self.version, "1.2", "this build has a bug");
        Ok(state.replace("turns", "log"))
    }

    fn init(&self, _: String) -> Result<S, Failure> {
        Ok(S::default())
    }

    fn transition(&self, _: &Cx, state: &mut S, event: Event) -> Result<Decision, Failure> {
        state.turns().push(self.version.into());
        Ok(match event {
            Event::SignalReceived { name, .. } if name == "end" => Decision::finish(state.turns()),
            _ if S::HASTY => Decision::finish(state.turns()),
            _ => Decision::none()
                .and(loopd_kernel::Action::Wait { signals: vec!["go".into(), "end".into()], timeout_ms: None }),
        })
    }
}

fn build<S: Turns + 'static>(version: &'static str, schema: u32, upgrade: Upgrade) -> Program {
    Program::new(erase(Build::<S> { version, schema, upgrade, state: PhantomData }, Vec::new()))
}

fn adopts(version: &'static str) -> Program {
    build::<First>(version, 1, Upgrade::Adopt)
}

fn pinned(version: &'static str) -> Program {
    build::<First>(version, 1, Upgrade::Pin)
}

async fn start(runtime: &Runtime, program: &Arc<Program>) -> RunId {
    let limits = Limits::default();
    let admission = Admission { tenant: "default".into(), input: "\"in\"".into(), limits, key: None };
    let Started::New(driven) = runtime.start(program, admission).await.unwrap() else { panic!() };
    driven.run
}

fn signal(name: &str) -> InboxBody {
    InboxBody::Signal { name: name.into(), body: "1".into() }
}

/// The first build starts a Run; each further one is a process of its own that resumes it after a signal. The table
/// says what each made of it; one that cannot drive the Run must leave its Journal alone.
async fn check(builds: impl IntoIterator<Item = Program>, expect: Expect) {
    let kin = Kin::new(builds);
    let mut table = String::new();
    let mut run = None;
    for (n, program) in kin.programs.iter().enumerate() {
        let worker = kin.worker_over(Arc::new(kin.store.clone()), false, std::slice::from_ref(program)).await;
        let version = program.definition().version();
        let run = match run {
            None => *run.insert(start(&worker, program).await),
            Some(run) => run,
        };
        let before = kin.kinds(run).await;
        let name = if n + 1 == kin.programs.len() { "end" } else { "go" };
        worker.tell(run, format!("s{n}"), signal(name)).await.unwrap();
        match worker.resume(run).await {
            Ok(driven) => {
                let end = driven.wait().await;
                let now = kin.kinds(run).await;
                let changed = now[before.len()..].matches("definition_changed").count();
                writeln!(table, "{version}: {} definition_changed={changed}", show_end(&end)).unwrap();
            }
            Err(error) => {
                assert_eq!(kin.kinds(run).await, before, "{version} has touched the journal");
                writeln!(table, "{version}: {error}").unwrap();
            }
        }
        let row = kin.row(run).await;
        assert_eq!(row.worker, None);
        writeln!(table, "  the row says {} {}", row.version, row.status.name()).unwrap();
        worker.shutdown().await;
    }
    expect.assert_eq(&table);
}

#[tokio::test(start_paused = true)]
async fn a_build_whose_state_grew_and_then_the_first_one_again() {
    let grown = build::<Grown>("1.1", 1, Upgrade::Adopt);
    check([adopts("1"), grown, adopts("1")], expect![[r#"
        1: Suspended(Waits { questions: [], signals: ["go", "end"], children: [], wake_at: None }) definition_changed=0
          the row says 1 suspended
        1.1: Suspended(Waits { questions: [], signals: ["go", "end"], children: [], wake_at: None }) definition_changed=1
          the row says 1.1 suspended
        1: Ended Completed {"output":"[\"1\",\"1\",\"1.1\",\"1\"]"} definition_changed=1
          the row says 1 ended
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_build_that_migrated_the_state_and_then_the_first_one_again() {
    let renamed = || build::<Renamed>("1.1", 2, Upgrade::Adopt);
    check([adopts("1"), renamed(), adopts("1"), renamed()], expect![[r#"
        1: Suspended(Waits { questions: [], signals: ["go", "end"], children: [], wake_at: None }) definition_changed=0
          the row says 1 suspended
        1.1: Suspended(Waits { questions: [], signals: ["go", "end"], children: [], wake_at: None }) definition_changed=1
          the row says 1.1 suspended
        1: this worker cannot run it: its State has version 2, which a newer build wrote; here is version 1
          the row says 1.1 suspended
        1.1: Ended Completed {"output":"[\"1\",\"1\",\"1.1\",\"1.1\",\"1.1\"]"} definition_changed=0
          the row says 1.1 ended
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_pinned_loop_is_driven_by_its_own_definition_only() {
    check([pinned("1"), pinned("1.1"), pinned("1")], expect![[r#"
        1: Suspended(Waits { questions: [], signals: ["go", "end"], children: [], wake_at: None }) definition_changed=0
          the row says 1 suspended
        1.1: this worker cannot run it: its loop is pinned: the run has version 1, here is another definition, version 1.1
          the row says 1 suspended
        1: Ended Completed {"output":"[\"1\",\"1\",\"1\",\"1\"]"} definition_changed=0
          the row says 1 ended
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn another_major_version_leaves_a_run_alone() {
    check([adopts("1.4"), adopts("2"), adopts("1.9")], expect![[r#"
        1.4: Suspended(Waits { questions: [], signals: ["go", "end"], children: [], wake_at: None }) definition_changed=0
          the row says 1.4 suspended
        2: this worker cannot run it: the run has version 1.4, here is version 2: another major version
          the row says 1.4 suspended
        1.9: Ended Completed {"output":"[\"1.4\",\"1.4\",\"1.9\",\"1.9\"]"} definition_changed=1
          the row says 1.9 ended
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_state_that_does_not_read_leaves_a_run_alone() {
    check(
        [adopts("1"), build::<Renamed>("1.1", 1, Upgrade::Adopt), adopts("1.2")],
        expect![[r#"
        1: Suspended(Waits { questions: [], signals: ["go", "end"], children: [], wake_at: None }) definition_changed=0
          the row says 1 suspended
        1.1: this worker cannot run it: the State does not decode: missing field `log` at line 1 column 19 (loop.state)
          the row says 1 suspended
        1.2: Ended Completed {"output":"[\"1\",\"1\",\"1.2\",\"1.2\"]"} definition_changed=1
          the row says 1.2 ended
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn two_versions_of_one_loop_in_one_worker_drive_their_own_runs() {
    for (one, two) in [(adopts("1"), adopts("2")), (pinned("1"), pinned("1.1")), (adopts("1"), pinned("1.1"))] {
        let kin = Kin::new([one, two]);
        let first = kin.worker(true).await;
        let runs = [start(&first, &kin.programs[0]).await, start(&first, &kin.programs[1]).await];
        for run in runs {
            kin.until(run, |row| row.status == RunStatus::Suspended).await;
        }
        first.shutdown().await;
        let second = kin.worker(true).await;
        for (run, program) in runs.into_iter().zip(&kin.programs) {
            second.tell(run, "e", signal("end")).await.unwrap();
            let row = kin.until(run, |row| row.status == RunStatus::Ended).await;
            assert_eq!(row.version, program.definition().version());
            assert!(!kin.kinds(run).await.contains("definition_changed"));
        }
        second.shutdown().await;
    }
}

/// A Run that the worker of `wrong` cannot go on with, while one of `right` lives beside it: it goes on all the same.
async fn beside(wrong: Program, right: Program, maker: Program) {
    let kin = Kin::new([wrong, right, maker]);
    let worker = |n: usize| kin.worker_over(Arc::new(kin.store.clone()), true, &kin.programs[n..=n]);
    let maker = worker(2).await;
    let run = start(&maker, &kin.programs[2]).await;
    kin.until(run, |row| row.status == RunStatus::Suspended).await;
    maker.shutdown().await;
    let (first, second) = (worker(0).await, worker(1).await);
    first.tell(run, "e", signal("end")).await.unwrap();
    let row = kin.until(run, |row| row.status == RunStatus::Ended).await;
    assert!(row.epoch.0 < 10, "it went from hand to hand: {}", row.epoch);
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_cannot_run_is_left_to_the_one_that_can() {
    beside(adopts("2"), adopts("1"), adopts("1")).await;
    beside(pinned("1.1"), pinned("1"), pinned("1")).await;
}

#[tokio::test(start_paused = true)]
async fn a_state_that_only_the_newer_build_reads_is_left_to_it() {
    let renamed = || build::<Renamed>("1.1", 2, Upgrade::Adopt);
    beside(adopts("1"), renamed(), renamed()).await;
}

#[tokio::test(start_paused = true)]
async fn a_migration_that_panics_costs_the_worker_nothing_but_that_run() {
    let buggy = build::<Renamed>("1.2", 2, Upgrade::Adopt);
    let kin = Kin::new([
        adopts("1"),
        buggy,
        world::kin::named("other", |_, _, event| {
            Ok(match event {
                Event::SignalReceived { .. } => Decision::finish(&1),
                _ => Decision::wait("end"),
            })
        }),
    ]);
    let older = kin.worker(true).await;
    let runs = [start(&older, &kin.programs[0]).await, start(&older, &kin.programs[2]).await];
    for run in runs {
        kin.until(run, |row| row.status == RunStatus::Suspended).await;
    }
    older.shutdown().await;
    let newer = kin.worker_over(Arc::new(kin.store.clone()), true, &kin.programs[1..]).await;
    for run in runs {
        newer.tell(run, "e", signal("end")).await.unwrap();
        tokio::time::advance(std::time::Duration::from_secs(5)).await;
    }
    kin.until(runs[1], |row| row.status == RunStatus::Ended).await;
    assert_eq!(kin.row(runs[0]).await.status, RunStatus::Suspended);
    let why = newer.resume(runs[0]).await.unwrap_err().to_string();
    assert!(why.contains("panicked"), "{why}");
}

/// What this build makes of the open Runs.
async fn foresee(kin: &Kin, programs: &[Program]) -> Vec<Forecast> {
    let programs = FixedPrograms::new(programs.iter().cloned().map(Arc::new));
    let forecasts = loopd_runtime::forecast(&kin.store, &programs, None).await.unwrap();
    forecasts.into_iter().map(|(_, forecast)| forecast).collect()
}

#[tokio::test(start_paused = true)]
async fn what_an_upgrade_would_do_is_known_before_and_changes_nothing() {
    let kin = Kin::new([adopts("1")]);
    let worker = kin.worker(true).await;
    let run = start(&worker, &kin.programs[0]).await;
    kin.until(run, |row| row.status == RunStatus::Suspended).await;
    let before = (kin.row(run).await, kin.kinds(run).await);
    let clean = |adopts| Forecast::Clean { adopts, decisions: 1, foreign: 0 };
    assert_eq!(foresee(&kin, &[adopts("1")]).await, [clean(false)]);
    assert_eq!(foresee(&kin, &[build::<Grown>("1.1", 1, Upgrade::Adopt)]).await, [clean(true)]);
    let (from, to) = (1, 2);
    let migrates = Forecast::NeedsMigration { from, to, failure: None };
    assert_eq!(foresee(&kin, &[build::<Renamed>("1.1", 2, Upgrade::Adopt)]).await, [migrates]);
    let buggy = foresee(&kin, &[build::<Renamed>("1.2", 2, Upgrade::Adopt)]).await;
    assert!(matches!(&buggy[0], Forecast::NeedsMigration { failure: Some(why), .. } if why.code == "loop.panicked"));
    for other in [adopts("2"), pinned("1.1"), world::kin::named("other", |_, _, _| Ok(Decision::none()))] {
        let found = foresee(&kin, &[other]).await;
        assert!(matches!(found[..], [Forecast::CannotRun(_)]), "{found:?}");
    }
    assert_eq!((kin.row(run).await, kin.kinds(run).await), before);
    let ends = build::<Hasty>("1.1", 1, Upgrade::Adopt);
    let Forecast::DecisionsDiffer { adopts: true, divergence } = &foresee(&kin, &[ends]).await[0] else { panic!() };
    assert_eq!((divergence.seq.0, divergence.what), (3, "decision"));
}

#[tokio::test(start_paused = true)]
async fn runs_that_a_worker_cannot_go_on_with_do_not_keep_the_others_waiting() {
    let kin = Kin::new([build::<Renamed>("1.1", 2, Upgrade::Adopt), adopts("1")]);
    let newer = kin.worker_over(Arc::new(kin.store.clone()), true, &kin.programs[..1]).await;
    let mut strange = Vec::new();
    // More than one claim takes, and all of them have waited longer.
    for _ in 0..70 {
        strange.push(start(&newer, &kin.programs[0]).await);
    }
    for run in &strange {
        kin.until(*run, |row| row.status == RunStatus::Suspended).await;
    }
    newer.shutdown().await;
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    let older = kin.worker_over(Arc::new(kin.store.clone()), false, &kin.programs[1..]).await;
    let own = start(&older, &kin.programs[1]).await;
    kin.until(own, |row| row.status == RunStatus::Suspended).await;
    older.shutdown().await;
    let older = kin.worker_over(Arc::new(kin.store.clone()), true, &kin.programs[1..]).await;
    for (n, run) in strange.iter().chain([&own]).enumerate() {
        older.tell(*run, format!("e{n}"), signal("end")).await.unwrap();
    }
    kin.until(own, |row| row.status == RunStatus::Ended).await;
    older.shutdown().await;
    for run in strange {
        let row = kin.row(run).await;
        assert_eq!((row.status, row.worker), (RunStatus::Suspended, None), "it is as it was found");
    }
}
