//! Parents and children, as people see them. The Runs are those of a loop in Rust.

use crate::check;
use crate::world::World;
use expect_test::expect;
use loopd_kernel::machine::Admission;
use loopd_kernel::{Cx, Decision, Event, Failure, Limits, Loop, erase};
use loopd_runtime::{Config, FixedPrograms, Program, Runtime, Started};
use loopd_store_sqlite::SqliteStore;
use std::sync::Arc;

/// `parent` starts a `child` and ends with it; `child` asks.
struct Named(&'static str);

impl Loop for Named {
    type Input = String;
    type State = ();
    type Output = serde_json::Value;

    fn name(&self) -> &str {
        self.0
    }

    fn init(&self, _: String) -> Result<(), Failure> {
        Ok(())
    }

    fn transition(&self, _: &Cx, (): &mut (), event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { .. } if self.0 == "parent" => Decision::spawn("one", "child", &"in"),
            Event::IterationStarted { .. } => Decision::confirm("Go on?"),
            _ => Decision::finish(&1),
        })
    }
}

/// A world whose store holds a parent that waits for its child, which waits for a person.
fn family() -> World {
    let world = World::new();
    std::fs::create_dir(world.path(".loopd")).unwrap();
    let path = world.path(".loopd/store.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Arc::new(SqliteStore::open_driver(&path).unwrap());
        let programs = ["parent", "child"].map(|name| Arc::new(Program::new(erase(Named(name), Vec::new()))));
        let config = Config { claims: false, ..Config::default() };
        let worker = Runtime::builder(store, Arc::new(FixedPrograms::new(programs.clone()))).config(config);
        let worker = worker.start().await.unwrap();
        let limits = Limits::default();
        let admission = Admission { tenant: "default".into(), input: "\"in\"".into(), limits, key: None };
        let Started::New(driven) = worker.start(&programs[0], admission).await.unwrap() else { panic!() };
        let _ = driven.wait().await;
        worker.shutdown().await;
    });
    world
}

fn child(world: &World) -> String {
    world.loopctl(&["run", "list", "--loop", "child", "-o", "name"]).out.trim().to_owned()
}

#[test]
fn a_family_is_listed_and_shown_from_both_ends() {
    let world = family();
    let child = child(&world);
    let parent = world.loopctl(&["run", "list", "--loop", "parent", "-o", "name"]).out.trim().to_owned();
    // Whoever is named first is the first.
    check(
        &world,
        &["run", "list", "--loop", "parent", "-o", "name"],
        expect![[r#"
        RUN1
    "#]],
    );
    check(
        &world,
        &["run", "list", "--children", &parent],
        expect![[r#"
        RUN AGENT STATE ITER TOKENS COST STARTED TOOK
        RUN2 child waits 1 0 now TIME
    "#]],
    );
    check(
        &world,
        &["run", "list", "--children", &child],
        expect![[r#"
        err: no runs
    "#]],
    );
    check(
        &world,
        &["run", "show", &parent],
        expect![[r#"
        RUN1 parent 1
          asked in
          started MOMENT MOMENT TIME so far
          spent 1 iteration · 0 tokens limits: none
          chain verified, 4 entries, head HASH
          children RUN2 child waits

           1 child one child "in" open

        open it has not ended
    "#]],
    );
    check(
        &world,
        &["run", "show", &child],
        expect![[r#"
        RUN2 child 1
          asked in
          started MOMENT MOMENT TIME so far
          spent 1 iteration · 0 tokens limits: none
          chain verified, 3 entries, head HASH
          parent RUN1

           1 confirm q1 Go on? waits for you

        open it has not ended
        err: ? RUN2/q1 Go on?
        err: answer loopctl ask answer RUN2/q1 yes|no
    "#]],
    );
    check(
        &world,
        &["run", "why", &child],
        expect![[r#"
        RUN2 waits
          why it waits for a person
          parent RUN1
          worker nobody, epoch-1
          cannot this machine cannot run it: `child` is a loop in Rust; start that program again; it goes on with RUN2
        ? RUN2/q1 Go on?
          answer loopctl ask answer RUN2/q1 yes|no
    "#]],
    );
    let why: serde_json::Value =
        serde_json::from_str(&world.loopctl(&["run", "why", &child, "-o", "json"]).out).unwrap();
    assert_eq!(why["parent"], parent);
    let shown = world.loopctl(&["run", "show", &parent, "-o", "json"]).out;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["children"][0]["run"], &shown["children"][0]["status"]), (&child.into(), &"suspended".into()));
}

#[test]
fn a_loop_in_rust_is_what_loopctl_cannot_go_on_with() {
    let world = family();
    check(
        &world,
        &["upgrade", "--check"],
        expect![[r#"
        RUN AGENT VERSION FINDING WHY
        RUN1 child 1 cannot run `child` is a loop in Rust
        RUN2 parent 1 cannot run `parent` is a loop in Rust
        err: error[E-CANNOT-RUN]: 2 open runs would not go on here
        err: why: each one stays as it is, and the build that drives it now goes on with it
        err: fix: keep that build until they have ended, or cancel them
        exit 2
    "#]],
    );
}
