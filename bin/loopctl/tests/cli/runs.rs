//! What a run does, stops at and goes on from.

use crate::check;
use crate::world::{self, World};
use expect_test::expect;

#[test]
fn a_run_answers_and_can_be_looked_at() {
    let world = World::new();
    check(
        &world,
        &["run", "agent.yaml", "What is in the files?"],
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
              spent 3 iterations · 2,179 tokens limits: 10 iterations
              chain verified, 26 entries, head HASH

               1 model demo 675 tok · TIME
                          I look at the folder.
                          → list_files {"path":"."}
               2 tool list_files {"path":"."} read · TIME
                          {"path":".","entries":[{"path":"coffee.md","kind":"file","bytes":25},{"path"… (113 B)
               3 model demo 720 tok · TIME
                          I read both.
                          → read_file {"path":"tea.md"}
                          → read_file {"path":"coffee.md"}
               4 tool read_file {"path":"tea.md"} read · TIME
                          {"path":"tea.md","text":"Tea is made of leaves.\n","first_line":1,"first_byt… (109 B)
               5 tool read_file {"path":"coffee.md"} read · TIME
                          {"path":"coffee.md","text":"Coffee is made of beans.\n","first_line":1,"firs… (114 B)
               6 model demo 784 tok · TIME

            completed
              Tea is leaves, coffee is beans.
        "#]],
    );
    check(
        &world,
        &["run", "show", "last", "--full"],
        expect![[r#"
            RUN1 reader 1
              asked What is in the files?
              started MOMENT MOMENT took TIME
              spent 3 iterations · 2,179 tokens limits: 10 iterations
              chain verified, 26 entries, head HASH

               1 model demo 675 tok · TIME
                          I look at the folder.
                          → list_files {"path":"."}
               2 tool list_files {"path":"."} read · TIME
                          {"path":"."}
                          {"path":".","entries":[{"path":"coffee.md","kind":"file","bytes":25},{"path":"tea.md","kind":"file","bytes":23}]}
               3 model demo 720 tok · TIME
                          I read both.
                          → read_file {"path":"tea.md"}
                          → read_file {"path":"coffee.md"}
               4 tool read_file {"path":"tea.md"} read · TIME
                          {"path":"tea.md"}
                          {"path":"tea.md","text":"Tea is made of leaves.\n","first_line":1,"first_byte":0,"bytes":23,"total_bytes":23}
               5 tool read_file {"path":"coffee.md"} read · TIME
                          {"path":"coffee.md"}
                          {"path":"coffee.md","text":"Coffee is made of beans.\n","first_line":1,"first_byte":0,"bytes":25,"total_bytes":25}
               6 model demo 784 tok · TIME

            completed
              Tea is leaves, coffee is beans.
        "#]],
    );
    check(
        &world,
        &["run", "why"],
        expect![[r#"
        RUN1 Completed
          why it has ended: completed
          worker nobody, epoch-1
          do loopctl run show RUN1
    "#]],
    );
    check(
        &world,
        &["run", "watch"],
        expect![[r#"
        Tea is leaves, coffee is beans.
    "#]],
    );
    check(
        &world,
        &["run", "resume", "last"],
        expect![[r#"
        Tea is leaves, coffee is beans.
        err: RUN1 had ended already
    "#]],
    );
}

#[test]
fn a_limit_parks_the_run_until_it_is_raised() {
    let world = World::new();
    check(
        &world,
        &["run", "agent.yaml", "Look.", "--max-iterations", "2"],
        expect![[r#"
        err: RUN1 stopped at a limit: the limit is 2 iterations; 2 iterations used
        err: go on with loopctl run resume RUN1 --max-iterations 6
        err: what it did: loopctl run show RUN1
        exit 3
    "#]],
    );
    check(
        &world,
        &["run", "why"],
        expect![[r#"
        RUN1 parked: BudgetExceeded
          why stopped at a limit: the limit is 2 iterations; 2 iterations used
          worker nobody, epoch-1
          do loopctl run resume RUN1 --max-iterations 6
    "#]],
    );
    check(
        &world,
        &["run", "resume", "last"],
        expect![[r#"
        err: error[E-RUN-LIMIT]: RUN1 is at its limit: the limit is 2 iterations; 2 iterations used
        err: why: it goes on only when somebody raises that limit
        err: fix: loopctl run resume RUN1 --max-iterations 6
        exit 3
    "#]],
    );
    check(
        &world,
        &["run", "resume", "last", "--max-iterations", "2"],
        expect![[r#"
        err: error[E-RUN-LIMIT]: RUN1 is at its limit: the limit is 2 iterations; 2 iterations used
        err: why: it goes on only when somebody raises that limit
        err: fix: loopctl run resume RUN1 --max-iterations 6
        exit 3
    "#]],
    );
    check(
        &world,
        &["run", "resume", "last", "--max-tokens", "100000"],
        expect![[r#"
        err: error[E-RUN-LIMIT]: RUN1 is at its limit: the limit is 2 iterations; 2 iterations used
        err: why: it goes on only when somebody raises that limit
        err: fix: loopctl run resume RUN1 --max-iterations 6
        exit 3
    "#]],
    );
    check(
        &world,
        &["run", "resume", "last", "--max-iterations", "5"],
        expect![[r#"
        Tea is leaves, coffee is beans.
    "#]],
    );
    check(
        &world,
        &["run", "show", "last"],
        expect![[r#"
            RUN1 reader 1
              asked Look.
              started MOMENT MOMENT took TIME
              spent 3 iterations · 2,167 tokens limits: 5 iterations
              chain verified, 28 entries, head HASH

               1 model demo 671 tok · TIME
                          I look at the folder.
                          → list_files {"path":"."}
               2 tool list_files {"path":"."} read · TIME
                          {"path":".","entries":[{"path":"coffee.md","kind":"file","bytes":25},{"path"… (113 B)
               3 model demo 716 tok · TIME
                          I read both.
                          → read_file {"path":"tea.md"}
                          → read_file {"path":"coffee.md"}
               4 tool read_file {"path":"tea.md"} read · TIME
                          {"path":"tea.md","text":"Tea is made of leaves.\n","first_line":1,"first_byt… (109 B)
               5 tool read_file {"path":"coffee.md"} read · TIME
                          {"path":"coffee.md","text":"Coffee is made of beans.\n","first_line":1,"firs… (114 B)
               6 park the run stopped
                          BudgetExceeded: iterations limit 2, used 2, 1 more needed
               7 reopen reopened by ada: iterations to 5
               8 model demo 780 tok · TIME

            completed
              Tea is leaves, coffee is beans.
        "#]],
    );
}

#[test]
fn cancelling_is_for_good_and_needs_neither_agent_nor_driver() {
    let world = World::new();
    assert_eq!(world.loopctl(&["run", "agent.yaml", "Which colour?"]).code, 5);
    std::fs::remove_file(world.path("agent.yaml")).expect("removed");
    std::fs::remove_dir_all(world.path("docs")).expect("removed");
    check(
        &world,
        &["run", "cancel", "last", "--reason", "no need any more"],
        expect![[r#"
        err: RUN1 is cancelled
    "#]],
    );
    check(
        &world,
        &["run", "cancel", "last"],
        expect![[r#"
        err: error[E-RUN-STATE]: RUN1 has ended already: Interrupted
        err: fix: loopctl run show RUN1
        exit 8
    "#]],
    );
    check(
        &world,
        &["run", "show", "last"],
        expect![[r#"
            RUN1 reader 1
              asked Which colour?
              started MOMENT MOMENT took TIME
              spent 1 iteration · 680 tokens limits: 10 iterations
              chain verified, 9 entries, head HASH

               1 model demo 680 tok · TIME
                          I have to ask.
                          → ask {"choices":["red","blue"],"question":"Which colour?"}
               2 ask q1 Which colour? cancelled · withdrawn · TIME
               3 cancel asked by ada: no need any more

            cancelled by ada: no need any more
        "#]],
    );
    check(
        &world,
        &["run", "resume", "last"],
        expect![[r#"
        err: RUN1 had ended already
        err: RUN1 cancelled by ada: no need any more
        err: what it did: loopctl run show RUN1
        exit 5
    "#]],
    );
    check(
        &world,
        &["ask", "answer", "last", "red"],
        expect![[r#"
        err: error[E-QUESTION-UNKNOWN]: RUN1 asks nothing now
        err: fix: list them with `loopctl ask list`
        exit 8
    "#]],
    );
}

#[test]
fn a_key_starts_once() {
    let world = World::new();
    let args = ["run", "agent.yaml", "Which colour?", "--key", "k1"];
    assert_eq!(world.loopctl(&args).code, 5);
    assert_eq!(world.loopctl(&args).code, 5);
    assert_eq!(world.loopctl(&["ask", "answer", "last", "red"]).code, 0);
    check(
        &world,
        &args,
        expect![[r#"
        It is decided.
    "#]],
    );
    check(
        &world,
        &args,
        expect![[r#"
        It is decided.
    "#]],
    );
    let runs = world.loopctl(&["run", "list", "-o", "name"]).out;
    assert_eq!(runs.lines().count(), 1);
}

#[test]
fn a_run_goes_on_from_another_folder_and_after_its_manifest_moved() {
    let world = World::new();
    assert_eq!(world.loopctl(&["run", "agent.yaml", "Look.", "--max-iterations", "1"]).code, 3);
    let store = world.path(".loopd/store.db");
    let store = store.to_str().expect("text");
    let from = |cwd: &std::path::Path, args: &[&str]| {
        let output = world.command(&[args, &["--store", store]].concat()).current_dir(cwd).output().expect("it starts");
        (world::code(output.status), String::from_utf8(output.stderr).expect("text"))
    };
    let elsewhere = tempfile::tempdir().expect("a folder");
    let raised = from(elsewhere.path(), &["run", "resume", "last", "--max-iterations", "2"]);
    assert_eq!(raised.0, 3, "{}", raised.1);
    std::fs::create_dir(world.path("moved")).expect("a folder");
    for name in ["agent.yaml", "docs"] {
        std::fs::rename(world.path(name), world.path(&format!("moved/{name}"))).expect("moved");
    }
    check(
        &world,
        &["run", "resume", "last", "--max-iterations", "9"],
        expect![[r#"
        err: error[E-TOOL]: the folder DIR/docs does not exist
        err: why: spec.tools: root `docs` is relative to the manifest's folder
        err: fix: put the folder there, or say with --agent FILE where the manifest is now
        exit 2
    "#]],
    );
    check(
        &world,
        &["run", "why"],
        expect![[r#"
        RUN1 parked: BudgetExceeded
          why stopped at a limit: the limit is 2 iterations; 2 iterations used
          worker nobody, epoch-2
          cannot this machine cannot run it: the folder DIR/docs does not exist; put the folder there, or say with --agent FILE where the manifest is now
          do loopctl run resume RUN1 --max-iterations 6
    "#]],
    );
    check(
        &world,
        &["run", "resume", "last", "--max-iterations", "9", "--agent", "moved/agent.yaml"],
        expect![[r#"
        Tea is leaves, coffee is beans.
    "#]],
    );
}

#[test]
fn a_run_is_named_by_its_id_or_its_beginning() {
    let world = World::new();
    check(
        &world,
        &["run", "show", "last"],
        expect![[r#"
        err: error[E-STORE-MISSING]: there is no store at ./.loopd/store.db
        err: fix: start a run, which makes one, or name another with --store
        exit 8
    "#]],
    );
    for _ in 0..2 {
        assert_eq!(world.loopctl(&["run", "agent.yaml", "Look."]).code, 0);
    }
    let names = world.loopctl(&["run", "list", "-o", "name"]).out;
    let first = names.lines().next().expect("a run");
    for name in [first, &first[4..], &first[..18]] {
        assert_eq!(world.loopctl(&["run", "show", name, "-o", "name"]).out.trim(), first);
    }
    check(
        &world,
        &["run", "show", "run_0"],
        expect![[r#"
        err: error[E-RUN-AMBIGUOUS]: several runs begin with `run_0`
        err: fix: write more of it:
        err: RUN1
        err: RUN2
        exit 8
    "#]],
    );
    check(
        &world,
        &["run", "show", "ffff"],
        expect![[r#"
        err: error[E-RUN-UNKNOWN]: no run begins with `ffff`
        err: fix: list them with `loopctl run list`
        exit 8
    "#]],
    );
    check(
        &world,
        &["run", "show", "nonsense"],
        expect![[r#"
        err: error[E-RUN-UNKNOWN]: `nonsense` is no run
        err: why: a run is named by its id, by the beginning of its id, or by `last`
        err: fix: list them with `loopctl run list`
        exit 8
    "#]],
    );
    check(
        &world,
        &["run", "list", "--status", "parked"],
        expect![[r#"
        err: no runs
    "#]],
    );
    check(
        &world,
        &["run", "list", "--status", "gone"],
        expect![[r#"
        err: error: invalid value 'gone' for '--status <STATUS>': expected one of: running, suspended, parked, ended
        err:
        err: For more information, try '--help'.
        exit 2
    "#]],
    );
}
