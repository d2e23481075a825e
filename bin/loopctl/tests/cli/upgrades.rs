//! What an upgrade would do, asked beforehand.

use crate::check;
use crate::world::{AGENT, World, end, signal};
use expect_test::expect;

/// A world with one Run that waits for a person.
fn waiting() -> World {
    let world = World::new();
    assert_eq!(world.loopctl(&["run", "agent.yaml", "Which colour?"]).code, 5);
    world
}

#[test]
fn an_upgrade_happens_by_itself_and_says_so() {
    let world = World::new();
    check(
        &world,
        &["upgrade"],
        expect![[r#"
        err: error[E-USAGE]: there is nothing to do for an upgrade
        err: why: a run goes on with a new build by itself, the next time somebody resumes it; the switch is recorded
        err: fix: look first: loopctl upgrade --check
        exit 2
    "#]],
    );
    check(
        &world,
        &["upgrade", "--check"],
        expect![[r#"
        err: error[E-STORE-MISSING]: there is no store at ./.loopd/store.db
        err: fix: start a run, which makes one, or name another with --store
        exit 8
    "#]],
    );
    check(
        &world,
        &["upgrade", "--agent", "agent.yaml"],
        expect![[r#"
        err: error: the following required arguments were not provided:
        err: --check
        err:
        err: Usage: loopctl upgrade --check --agent <FILE>
        err:
        err: For more information, try '--help'.
        exit 2
    "#]],
    );
}

#[test]
fn the_build_that_drove_a_run_agrees_with_it() {
    let world = waiting();
    check(
        &world,
        &["upgrade", "--check"],
        expect![[r#"
        RUN AGENT VERSION FINDING WHY
        RUN1 reader 1 clean 2 decisions agree
    "#]],
    );
    check(
        &world,
        &["upgrade", "--check", "--agent", "agent.yaml"],
        expect![[r#"
        RUN AGENT VERSION FINDING WHY
        RUN1 reader 1 clean 2 decisions agree
        err: nothing takes over: a run keeps the manifest that it was started with
    "#]],
    );
    assert_eq!(world.loopctl(&["run", "cancel", "last"]).code, 0);
    check(
        &world,
        &["upgrade", "--check"],
        expect![[r#"
        err: no open runs
    "#]],
    );
}

#[test]
fn a_manifest_with_other_words_would_be_adopted() {
    let world = waiting();
    world.write("new.yaml", &AGENT.replace("You read files.", "You read files slowly."));
    check(
        &world,
        &["upgrade", "--check", "--agent", "new.yaml"],
        expect![[r#"
        RUN AGENT VERSION FINDING WHY
        RUN1 reader 1 clean 2 decisions agree; the switch will be recorded
        err: nothing takes over: a run keeps the manifest that it was started with
    "#]],
    );
}

#[test]
fn a_manifest_without_the_tool_that_was_called_decides_otherwise() {
    let world = waiting();
    world.write("new.yaml", &AGENT.replace("    - use: ask\n", ""));
    check(
        &world,
        &["upgrade", "--check", "--agent", "new.yaml"],
        expect![[r#"
        RUN AGENT VERSION FINDING WHY
        RUN1 reader 1 decisions differ entry 6: not the same decision; the switch will be recorded
        err: nothing takes over: a run keeps the manifest that it was started with
        err: error[E-UPGRADE]: 1 open run would have been decided otherwise
        err: why: what is recorded stays; from the next decision on the new code decides
        err: fix: see both sides: loopctl upgrade --check -o json
        exit 7
    "#]],
    );
    check(
        &world,
        &["upgrade", "--check", "--agent", "new.yaml", "-o", "json"],
        expect![[r#"
        [
          {
            "run": "RUN1",
            "loop": "reader",
            "version": "1",
            "status": "suspended",
            "finding": "decisions_differ",
            "goes_on": true,
            "adopts": true,
            "why": "entry 6: not the same decision",
            "differs": {
              "seq": 6,
              "what": "decision",
              "recorded": "ask \n",
              "replayed": "note \n"
            }
          }
        ]
        err: {"error":{"code":"E-UPGRADE","exit":7,"fix":"see both sides: loopctl upgrade --check -o json","what":"1 open run would have been decided otherwise","why":"what is recorded stays; from the next decision on the new code decides"}}
        exit 7
    "#]],
    );
    check(
        &world,
        &["run", "why"],
        expect![[r#"
        RUN1 waits
          why it waits for a person
          worker nobody, epoch-1
        ? RUN1/q1 Which colour?
          one of red | blue
          answer loopctl ask answer RUN1/q1 red
    "#]],
    );
}

#[test]
fn another_major_version_would_leave_the_run_alone() {
    let world = waiting();
    world.write("new.yaml", &AGENT.replace("  name: reader\n", "  name: reader\n  version: \"7\"\n"));
    check(
        &world,
        &["upgrade", "--check", "--agent", "new.yaml"],
        expect![[r#"
        RUN AGENT VERSION FINDING WHY
        RUN1 reader 1 cannot run the run has version 1, here is version 7: another major version
        err: nothing takes over: a run keeps the manifest that it was started with
        err: error[E-CANNOT-RUN]: 1 open run would not go on here
        err: why: each one stays as it is, and the build that drives it now goes on with it
        err: fix: keep that build until they have ended, or cancel them
        exit 2
    "#]],
    );
}

#[test]
fn it_looks_beside_a_process_that_drives_the_store() {
    let world = World::slow(2_000);
    let driver = world.start(&["run", "agent.yaml", "What is there?"]);
    world.wait_until(&["run", "list", "-o", "name"], |done| done.code == 0 && !done.out.is_empty());
    let done = world.loopctl(&["upgrade", "--check", "-o", "jsonl"]);
    assert_eq!((done.code, done.out.contains(r#""finding":"clean""#)), (0, true), "{}{}", done.out, done.err);
    signal(&driver, "INT");
    assert_eq!(end(driver).code, 130);
}
