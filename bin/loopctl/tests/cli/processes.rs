//! Two processes and one store: who drives, who watches, and what signals do.

use crate::check;
use crate::world::{World, end, signal};
use expect_test::expect;

/// A world in which a run takes its time, and one that has just begun its first call.
fn running(delay_ms: u32) -> (World, std::process::Child) {
    let world = World::slow(delay_ms);
    let child = world.start(&["run", "agent.yaml", "What is in the files?"]);
    world.wait_until(&["run", "why", "-o", "json"], |done| done.out.contains(r#""state": "open""#));
    (world, child)
}

#[test]
fn one_process_drives_and_others_look_on() {
    let (world, child) = running(1_200);
    check(
        &world,
        &["run", "agent.yaml", "Me too."],
        expect![[r#"
        err: error[E-STORE-DRIVER]: another process (process PID) drives this store
        err: why: one process at a time drives the runs of a store; others may list, watch, answer and cancel
        err: fix: wait until it is done, watch it with `loopctl run watch`, or use another --store
        exit 8
    "#]],
    );
    check(
        &world,
        &["run", "resume", "last"],
        expect![[r#"
        err: error[E-STORE-DRIVER]: another process (process PID) drives this store
        err: why: one process at a time drives the runs of a store; others may list, watch, answer and cancel
        err: fix: wait until it is done, watch it with `loopctl run watch`, or use another --store
        exit 8
    "#]],
    );
    check(
        &world,
        &["run", "list", "-o", "name"],
        expect![[r#"
        RUN1
    "#]],
    );
    check(&world, &["store", "verify", "-o", "name"], expect![[""]]);
    check(
        &world,
        &["run", "watch", "--timeout", "1ms"],
        expect![[r#"
        err: RUN1 still moves
        exit 124
    "#]],
    );
    check(
        &world,
        &["run", "watch"],
        expect![[r#"
        Tea is leaves, coffee is beans.
    "#]],
    );
    let child = end(child);
    assert_eq!((child.code, child.out.as_str()), (0, "Tea is leaves, coffee is beans.\n"));
}

#[test]
fn ctrl_c_stops_politely_and_the_run_goes_on_later() {
    let (world, child) = running(1_500);
    signal(&child, "INT");
    let child = end(child);
    assert_eq!(child.code, 130);
    expect![[r#"
        RUN1 stopped; nothing is lost
        go on with loopctl run resume RUN1
    "#]]
    .assert_eq(&world.normal(&child.err));
    check(
        &world,
        &["run", "why"],
        expect![[r#"
        RUN1 stopped
          why it was stopped; nobody drives it now
          call call-2 list_files wanted
          worker nobody, epoch-1
          do loopctl run resume RUN1
    "#]],
    );
    check(
        &world,
        &["run", "resume", "last"],
        expect![[r#"
        Tea is leaves, coffee is beans.
    "#]],
    );
    check(
        &world,
        &["verify", "last"],
        expect![[r#"
        verified RUN1 26 entries, head HASH
    "#]],
    );
}

#[test]
fn a_second_ctrl_c_does_not_wait() {
    let (world, child) = running(60_000);
    signal(&child, "INT");
    signal(&child, "INT");
    assert_eq!(end(child).code, 130);
    check(
        &world,
        &["run", "why", "-o", "name"],
        expect![[r#"
        RUN1
    "#]],
    );
}

/// A model that takes too long is no failure of the run: the call is made again.
#[test]
fn a_call_that_outlives_the_grace_is_made_again() {
    let world = World::slow(60_000);
    let child = world.start(&["run", "agent.yaml", "What is in the files?", "--grace", "50ms"]);
    world.wait_until(&["run", "why", "-o", "json"], |done| done.out.contains(r#""state": "open""#));
    signal(&child, "INT");
    assert_eq!(end(child).code, 130);
    check(
        &world,
        &["run", "why"],
        expect![[r#"
        RUN1 stopped
          why it was stopped; nobody drives it now
          call call-1 demo wanted · not before MOMENT
          worker nobody, epoch-1
          do loopctl run resume RUN1
    "#]],
    );
    check(
        &world,
        &["run", "show", "last"],
        expect![[r#"
            RUN1 reader 1
              asked What is in the files?
              started MOMENT MOMENT TIME so far
              spent 1 iteration · 5,733 tokens (5,733 of them charged unseen) limits: 10 iterations
              chain verified, 5 entries, head HASH

               1 model demo open · 2 attempts
               2 retry demo will be tried again call.stopped
                          the worker stopped while it ran

            open it has not ended
        "#]],
    );
}

#[test]
fn sigterm_drains_as_well() {
    let (world, child) = running(1_500);
    signal(&child, "TERM");
    assert_eq!(end(child).code, 5);
    assert_eq!(world.loopctl(&["run", "resume", "last"]).code, 0);
}

#[test]
fn time_runs_out_and_nothing_is_lost() {
    let world = World::slow(300);
    check(
        &world,
        &["run", "agent.yaml", "Look.", "--timeout", "100ms"],
        expect![[r#"
        err: RUN1 the time is over; the run was released and nothing is lost
        err: go on with loopctl run resume RUN1
        exit 124
    "#]],
    );
    assert_eq!(world.loopctl(&["run", "resume", "last"]).code, 0);
}

#[test]
fn cancelling_reaches_the_process_that_drives() {
    let (world, child) = running(60_000);
    check(
        &world,
        &["run", "cancel", "last"],
        expect![[r#"
        err: RUN1 is cancelled
    "#]],
    );
    let child = end(child);
    assert_eq!(child.code, 5);
    expect![[r#"
        RUN1 cancelled by ada: cancelled from the command line
        what it did: loopctl run show RUN1
    "#]]
    .assert_eq(&world.normal(&child.err));
}

#[test]
fn a_waiting_process_hears_the_answer() {
    let world = World::new();
    let child = world.start(&["run", "agent.yaml", "Which colour?", "--wait"]);
    world.wait_until(&["ask", "list"], |done| done.out.contains("/q1"));
    check(
        &world,
        &["ask", "answer", "last", "red"],
        expect![[r#"
        err: RUN1/q1 answered
    "#]],
    );
    let child = end(child);
    assert_eq!((child.code, child.out.as_str()), (0, "It is decided.\n"));
}

#[test]
fn a_killed_process_is_replaced_at_once() {
    let (world, child) = running(1_000);
    signal(&child, "KILL");
    assert_eq!(end(child).code, 128 + 9);
    check(
        &world,
        &["run", "why", "-o", "name"],
        expect![[r#"
        RUN1
    "#]],
    );
    check(
        &world,
        &["run", "resume", "last"],
        expect![[r#"
        Tea is leaves, coffee is beans.
    "#]],
    );
    check(
        &world,
        &["run", "show", "last"],
        expect![[r#"
            RUN1 reader 1
              asked What is in the files?
              started MOMENT MOMENT took TIME
              spent 3 iterations · 7,912 tokens (5,733 of them charged unseen) limits: 10 iterations
              chain verified, 28 entries, head HASH

               1 model demo 2 attempts · 675 tok · TIME
                          I look at the folder.
                          → list_files {"path":"."}
               2 recovery the worker died; call-1 demo ran again
               3 tool list_files {"path":"."} read · TIME
                          {"path":".","entries":[{"path":"coffee.md","kind":"file","bytes":25},{"path"… (113 B)
               4 model demo 720 tok · TIME
                          I read both.
                          → read_file {"path":"tea.md"}
                          → read_file {"path":"coffee.md"}
               5 tool read_file {"path":"tea.md"} read · TIME
                          {"path":"tea.md","text":"Tea is made of leaves.\n","first_line":1,"first_byt… (109 B)
               6 tool read_file {"path":"coffee.md"} read · TIME
                          {"path":"coffee.md","text":"Coffee is made of beans.\n","first_line":1,"firs… (114 B)
               7 model demo 784 tok · TIME

            completed
              Tea is leaves, coffee is beans.
        "#]],
    );
}
