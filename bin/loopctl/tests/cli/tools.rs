//! Agents that write files, get pages and run programs, in the real program.

use crate::check;
use crate::world::{World, code, end, pause, signal};
use expect_test::expect;

const AGENT: &str = "\
apiVersion: loopd.dev/v1alpha1
kind: Agent
metadata: { name: worker }
spec:
  model: { provider: demo, script: demo.json }
  tools:
    - { use: files, root: docs, allow: [read, write, edit] }
    - { use: http, hosts: [docs.test], addresses: [10.0.0.0/8] }
    - { use: shell, root: docs, programs: [sh, env, cat], timeout: 10m, env: [MOOD] }
";

fn world(script: &str) -> World {
    let world = World::new();
    world.write("agent.yaml", AGENT);
    world.write("demo.json", script);
    world
}

#[test]
fn a_check_names_what_is_not_there_by_its_plain_path() {
    let world = world(r#"{"turns": [{"say": "Done."}]}"#);
    world.write(
        "agent.yaml",
        &AGENT.replace("root: docs", "root: ./docs").replace("[sh, env, cat]", "[sh, no-such, /no]"),
    );
    check(
        &world,
        &["agent", "check", "agent.yaml"],
        expect![[r#"
            worker 1
              model demo plays demo.json
              tool read_file read · files below ./docs
              tool write_file probed · files below ./docs
              tool edit_file once · files below ./docs
              tool http_get read · docs.test, also 10.0.0.0/8
              tool shell once · runs sh, no-such, /no in ./docs
              tool read_result read · built in
              limits 50 iterations
              note spec.tools: the program `no-such` is not on this machine
              note spec.tools: the program `/no` is not on this machine
              state ready to run
        "#]],
    );
    world.write("agent.yaml", &AGENT.replace("root: docs", "root: ./none"));
    check(
        &world,
        &["run", "agent.yaml", "Hello"],
        expect![[r#"
            err: error[E-TOOL]: the folder DIR/none does not exist
            err: why: spec.tools: root `./none` is relative to the manifest's folder
            err: fix: put the folder there, or correct spec.tools
            exit 2
        "#]],
    );
    world.write("agent.yaml", &format!("{AGENT}  agents: [{{ name: scout, manifest: ./none.yaml }}]\n"));
    check(
        &world,
        &["agent", "check", "agent.yaml"],
        expect![[r#"
            err: error[E-MANIFEST]: DIR/none.yaml: No such file or directory
            err: why: spec.agents names it, relative to the manifest's folder
            err: fix: put it there, or correct spec.agents
            exit 2
        "#]],
    );
}

#[test]
fn the_tools_are_named_with_their_classes() {
    let world = world(r#"{"turns": [{"say": "Done."}]}"#);
    check(
        &world,
        &["agent", "check", "agent.yaml"],
        expect![[r#"
            worker 1
              model demo plays demo.json
              tool read_file read · files below docs
              tool write_file probed · files below docs
              tool edit_file once · files below docs
              tool http_get read · docs.test, also 10.0.0.0/8
              tool shell once · runs sh, env, cat in docs
              tool read_result read · built in
              limits 50 iterations
              state ready to run
        "#]],
    );
    world.write("agent.yaml", &AGENT.replace("root: docs, programs", "root: none, programs"));
    check(
        &world,
        &["agent", "check", "agent.yaml"],
        expect![[r#"
            worker 1
              model demo plays demo.json
              tool read_file read · files below docs
              tool write_file probed · files below docs
              tool edit_file once · files below docs
              tool http_get read · docs.test, also 10.0.0.0/8
              tool shell once · runs sh, env, cat in none
              tool read_result read · built in
              limits 50 iterations
              state cannot run here: the folder DIR/none does not exist (E-TOOL)
              do put the folder there, or correct spec.tools
            exit 2
        "#]],
    );
}

#[test]
fn an_agent_writes_edits_and_runs_what_it_wrote() {
    let world = world(
        r#"{"label": "", "turns": [
        {"when": {"turn": 1}, "use": [{"tool": "write_file", "args": {"path": "plan/a.txt", "content": "one\ntwo\n"}}]},
        {"when": {"turn": 2}, "use": [{"tool": "edit_file", "args": {"path": "plan/a.txt", "old": "two", "new": "three"}}]},
        {"when": {"turn": 3}, "use": [{"tool": "shell", "args": {"argv": ["cat", "a.txt", ">", "b.txt"], "dir": "plan"}}]},
        {"when": {"turn": 4}, "use": [{"tool": "shell", "args": {"argv": ["rm", "-rf", "."]}},
                                      {"tool": "http_get", "args": {"url": "http://169.254.169.254/"}}]},
        {"say": "{{tool.shell}} {{tool.http_get}}"}]}"#,
    );
    check(
        &world,
        &["run", "agent.yaml", "Go."],
        expect![[r#"
        `rm` may not be run; the programs are sh, env, cat 169.254.169.254 may not be asked; the hosts are docs.test
    "#]],
    );
    assert_eq!(world.read("docs/plan/a.txt"), "one\nthree\n");
    assert!(!world.path("docs/plan/b.txt").exists());
    check(
        &world,
        &["run", "show", "last"],
        expect![[r#"
            RUN1 worker 1
              asked Go.
              started MOMENT MOMENT took TIME
              spent 5 iterations · 4,392 tokens limits: 50 iterations
              chain verified, 42 entries, head HASH

               1 model demo 805 tok · TIME
                          → write_file {"content":"one\ntwo\n","path":"plan/a.txt"}
               2 tool write_file {"content":"one\ntwo\n","path":"plan/a.txt"} probed · TIME
                          {"path":"plan/a.txt","bytes":8,"created":true}
               3 model demo 830 tok · TIME
                          → edit_file {"new":"three","old":"two","path":"plan/a.txt"}
               4 tool edit_file {"new":"three","old":"two","path":"plan/a.txt"} once · TIME
                          {"path":"plan/a.txt","replaced":1,"first_line":2,"bytes":10}
               5 model demo 859 tok · TIME
                          → shell {"argv":["cat","a.txt",">","b.txt"],"dir":"plan"}
               6 tool shell {"argv":["cat","a.txt",">","b.txt"],"dir":"plan"} once · TIME
                          {"ended":"exited","exit_code":1,"stdout":{"text":"one\nthree\n","bytes":10},… (184 B)
               7 model demo 922 tok · TIME
                          → shell {"argv":["rm","-rf","."]}
                          → http_get {"url":"http://169.254.169.254/"}
               8 tool shell {"argv":["rm","-rf","."]} failed · once · shell.not_allowed · TIME
                          `rm` may not be run; the programs are sh, env, cat
               9 tool http_get {"url":"http://169.254.169.254/"} failed · read · http.host · TIME
                          169.254.169.254 may not be asked; the hosts are docs.test
              10 model demo 976 tok · TIME

            completed
              `rm` may not be run; the programs are sh, env, cat 169.254.169.254 may not be asked; the hosts are docs.test
        "#]],
    );
}

/// SEC-04: a key of the worker is neither in what a program sees nor anywhere in the store or a recording.
#[test]
fn no_secret_of_the_worker_reaches_a_program() {
    let world = world(
        r#"{"label": "", "turns": [
        {"when": {"turn": 1}, "use": [{"tool": "shell", "args": {"argv": ["env"]}}]},
        {"say": "{{tool.shell/stdout/text}}"}]}"#,
    );
    let secret = "sk-test-123456789012345678901234567890";
    let mut command = world.command(&["run", "agent.yaml", "What is there?"]);
    let output = command.env("OPENAI_API_KEY", secret).env("AWS_SECRET", secret).env("MOOD", "calm").output().unwrap();
    assert_eq!(code(output.status), 0);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "MOOD=calm\nPATH=/usr/bin:/bin\nTZ=UTC\n\n");
    assert_eq!(world.loopctl(&["record", "last", "-o", "a.loopfix"]).code, 0);
    let mut looked_at = 0;
    for file in ["a.loopfix", ".loopd/store.db", ".loopd/store.db-wal"] {
        let Ok(bytes) = std::fs::read(world.path(file)) else { continue };
        assert!(!bytes.windows(11).any(|part| part == b"sk-test-123"), "{file}");
        looked_at += 1;
    }
    assert!(looked_at >= 2 && world.read("a.loopfix").contains("MOOD=calm"));
}

/// HITL-05: what was killed in the middle is in doubt, and nobody runs it again without being told to.
#[test]
fn a_program_whose_worker_is_killed_asks_a_person() {
    let world = world(
        r#"{"label": "", "turns": [
        {"when": {"turn": 1}, "use": [{"tool": "shell",
          "args": {"argv": ["sh", "-c", "echo run >> runs; echo $$ > pid; exec sleep 600"]}}]},
        {"say": "I heard: {{tool.shell}}"}]}"#,
    );
    let child = world.start(&["run", "agent.yaml", "Go."]);
    while !std::fs::read_to_string(world.path("docs/pid")).is_ok_and(|text| text.ends_with('\n')) {
        pause(std::time::Duration::from_millis(5));
    }
    signal(&child, "KILL");
    assert_eq!(end(child).code, 128 + 9);
    // The program outlives its worker: that is why a person has to look.
    let pid = world.read("docs/pid");
    let left = std::process::Command::new("kill").args(["-9", pid.trim()]).status().unwrap();
    assert!(left.success(), "it was gone already");
    check(
        &world,
        &["run", "resume", "last"],
        expect![[r#"
        err: ? RUN1/q1 call-2 may have happened, and nobody here can know: the worker died after it might have sent this call and before it recorded a result
        err: call shell {"argv":["sh","-c","echo run >> runs; echo $$ > pid; exec sleep 600"]}
        err: answer loopctl ask answer RUN1/q1 landed|failed|retry|unknown
        err: note it may still land: `failed` and `retry` are taken after MOMENT MOMENT
        err: then loopctl run resume RUN1
        exit 5
    "#]],
    );
    check(
        &world,
        &["run", "why"],
        expect![[r#"
        RUN1 waits
          why it waits for a person
          call call-2 shell unknown · once · given up at MOMENT
          worker nobody, epoch-2
        ? RUN1/q1 call-2 may have happened, and nobody here can know: the worker died after it might have sent this call and before it recorded a result
          call shell {"argv":["sh","-c","echo run >> runs; echo $$ > pid; exec sleep 600"]}
          answer loopctl ask answer RUN1/q1 landed|failed|retry|unknown
          note it may still land: `failed` and `retry` are taken after MOMENT MOMENT
    "#]],
    );
    assert_eq!(world.read("docs/runs"), "run\n");
}

/// A worker that is killed while a file is written: what the folder shows settles the call, and nobody is asked.
#[test]
fn a_file_that_was_written_is_not_written_again() {
    let world = world(
        r#"{"label": "", "turns": [
        {"when": {"turn": 1}, "use": [
          {"tool": "write_file", "args": {"path": "a.txt", "content": "new\n"}},
          {"tool": "shell", "args": {"argv": ["sh", "-c", "until [ -s a.txt ]; do :; done; kill -9 $PPID"]}}]},
        {"say": "{{tool.write_file}}"}]}"#,
    );
    let first = world.loopctl(&["run", "agent.yaml", "Go."]);
    assert_eq!(first.code, 128 + 9, "{}{}", first.out, first.err);
    let shown = world.say(&["run", "resume", "last"]);
    assert!(shown.contains("shell") && !shown.contains("write_file"), "{shown}");
    assert_eq!(world.read("docs/a.txt"), "new\n");
}
