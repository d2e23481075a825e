//! Recordings: written, verified, replayed, compared, and refused.

use crate::check;
use crate::world::World;
use expect_test::expect;
use loopd_fixture::{Fixture, Secrets};
use loopd_kernel::{Entry, Kind};

/// A world with one recorded run.
fn recorded() -> World {
    let world = World::new();
    assert_eq!(world.loopctl(&["run", "agent.yaml", "What is in the files?"]).code, 0);
    assert_eq!(world.loopctl(&["record", "last", "-o", "run.loopfix"]).code, 0);
    world
}

#[test]
fn a_recording_verifies_and_replays_without_a_store() {
    let world = recorded();
    check(
        &world,
        &["record", "last", "-o", "run.loopfix"],
        expect![[r#"
        err: error[E-FILE]: run.loopfix is there already
        err: fix: choose another name, or --force to replace it
        exit 8
    "#]],
    );
    let kept = world.read("run.loopfix");
    assert_eq!(world.loopctl(&["record", "last", "-o", "-"]).out, kept);
    std::fs::remove_dir_all(world.path(".loopd")).expect("removed");
    std::fs::remove_dir_all(world.path("docs")).expect("removed");
    check(
        &world,
        &["verify", "run.loopfix"],
        expect![[r#"
        verified run.loopfix 26 entries, head HASH
    "#]],
    );
    check(
        &world,
        &["replay", "run.loopfix", "--strict"],
        expect![[r#"
        agrees run.loopfix strict: 9 decisions over 26 entries
    "#]],
    );
    check(
        &world,
        &["replay", "run.loopfix", "--structure", "-o", "json"],
        expect![[r#"
        [
          {
            "file": "run.loopfix",
            "agrees": true,
            "mode": "structure",
            "entries": 26,
            "decisions": 9
          }
        ]
    "#]],
    );
    check(
        &world,
        &["show", "run.loopfix"],
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
        &["diff", "run.loopfix", "run.loopfix", "--exit-code"],
        expect![[r#"
            - RUN1 of reader 1 (definition HASH
            + RUN1 of reader 1 (definition HASH
            every step is the same (7)
            totals
              iterations 3
              model calls 3
              tool calls 3
              tokens 2179
              cost $0.000000
              time TIME
              incidents 0
            input
                "What is in the files?"
            outcome
                Completed with "Tea is leaves, coffee is beans."
        "#]],
    );
    check(
        &world,
        &["fixture", "scan", "run.loopfix"],
        expect![[r#"
        err: no secrets found
    "#]],
    );
}

#[test]
fn a_changed_file_is_named_by_its_entry() {
    let world = recorded();
    let text = world.read("run.loopfix");
    // The two files are read at the same time: only what comes before has the same place every time.
    world.write("edited.loopfix", &text.replacen("I look at the folder.", "I look at nothing.", 1));
    let lines: Vec<&str> = text.lines().collect();
    world.write("cut.loopfix", &format!("{}\n", lines[..9].join("\n")));
    let mut swapped = lines.clone();
    swapped.swap(7, 8);
    world.write("swapped.loopfix", &format!("{}\n", swapped.join("\n")));
    world.write("other.loopfix", "not a fixture\n");
    check(
        &world,
        &["verify", "run.loopfix", "edited.loopfix", "cut.loopfix", "swapped.loopfix"],
        expect![[r#"
            verified run.loopfix 26 entries, head HASH
            broken edited.loopfix line 6 (entry 5): entry 5 was edited: it is not what was committed
            broken cut.loopfix line 9 (entry 8): truncated: the last entry is 8, the head HASH 26
            broken swapped.loopfix line 8 (entry 8): reordered: entry 8 stands before entry 7
            err: error[E-VERIFY]: 3 of 4 are not what was committed
            err: why: the bytes were changed after they were written: by a tool, by hand, or by a failing disk
            err: fix: take the file from version control, or the store from a backup
            exit 7
        "#]],
    );
    check(
        &world,
        &["replay", "edited.loopfix"],
        expect![[r#"
            err: error[E-FIXTURE]: edited.loopfix: line 6 (entry 5): entry 5 was edited: it is not what was committed
            err: why: the file is not the one that was recorded
            err: fix: take it from version control again, or record the run anew
            exit 7
        "#]],
    );
    check(
        &world,
        &["show", "other.loopfix"],
        expect![[r#"
        err: error[E-FIXTURE]: other.loopfix: line 1: this is not a .loopfix file: its first line is no header
        err: why: the file is not the one that was recorded
        err: fix: take it from version control again, or record the run anew
        exit 7
    "#]],
    );
    check(
        &world,
        &["replay", "none.loopfix"],
        expect![[r#"
        err: error[E-FILE]: none.loopfix: No such file or directory
        exit 8
    "#]],
    );
}

/// The chain is whole and the recording is not what this agent decides: a build that changed.
#[test]
fn a_replay_that_diverges_shows_the_first_difference() {
    let world = recorded();
    let mut fixture = loopd_fixture::read(world.read("run.loopfix").as_bytes()).expect("reads");
    for entry in &mut fixture.entries {
        if entry.kind == Kind::Decided && entry.payload == br#"{"path":"."}"# {
            entry.payload = br#"{"path":"x"}"#.to_vec();
        }
    }
    world.write("changed.loopfix", &rechained(fixture));
    check(
        &world,
        &["verify", "changed.loopfix"],
        expect![[r#"
        verified changed.loopfix 26 entries, head HASH
    "#]],
    );
    check(
        &world,
        &["replay", "changed.loopfix"],
        expect![[r#"
            diverges changed.loopfix strict: entry 6: not the same arguments
            - recorded
            - tool list_files {"path":"x"} as call-2 for demo_1_0, 32768 bytes
            + replayed
            + tool list_files {"path":"."} as call-2 for demo_1_0, 32768 bytes
            err: error[E-REPLAY]: changed.loopfix diverges: entry 6: not the same arguments
            err: why: this build of the agent decides otherwise than the recording
            err: fix: if the change is meant, record the run anew; --structure compares the calls and not their texts
            exit 7
        "#]],
    );
    check(
        &world,
        &["replay", "changed.loopfix", "--structure"],
        expect![[r#"
        agrees changed.loopfix structure: 9 decisions over 26 entries
    "#]],
    );
    let json = world.loopctl(&["replay", "changed.loopfix", "-o", "jsonl"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(
        json["divergence"]["replayed"],
        "tool list_files {\"path\":\".\"} as call-2 for demo_1_0, 32768 bytes\n"
    );
}

/// The file of a Fixture whose Entries were changed, with a chain that fits them.
fn rechained(mut fixture: Fixture) -> String {
    let mut hash = loopd_kernel::chain::genesis(fixture.header.run);
    for entry in &mut fixture.entries {
        sealed(entry, hash);
        entry.hash = entry.hash_after(&hash);
        hash = entry.hash;
    }
    String::from_utf8(loopd_fixture::write(&fixture, &Secrets::patterns()).expect("written")).expect("text")
}

/// A seal names the hash before it.
fn sealed(entry: &mut Entry, before: loopd_kernel::Digest) {
    if entry.kind == Kind::Ended {
        let mut record: serde_json::Value = serde_json::from_str(&entry.record).expect("JSON");
        record["head"] = before.text().into();
        let ended: loopd_kernel::record::Ended = serde_json::from_value(record).expect("a record");
        entry.record = serde_json::to_string(&ended).expect("text");
    }
}

#[test]
fn two_runs_are_compared_call_by_call() {
    let world = recorded();
    world.write("docs/tea.md", "Tea is made of petals.\n");
    assert_eq!(world.loopctl(&["run", "agent.yaml", "What is in the files?"]).code, 0);
    check(
        &world,
        &["diff", "run.loopfix", "last"],
        expect![[r#"
            - RUN1 of reader 1 (definition HASH
            + RUN2 of reader 1 (definition HASH
            they part at entry 14 of - and at entry 14 of +, after 6 steps that are the same in all
            ~ 14 tool read_file
            - result …","text":"Tea is made of leaves.\n","first_line":1,"first_byte":0,"bytes":23,"…
            + result …","text":"Tea is made of petals.\n","first_line":1,"first_byte":0,"bytes":23,"…
            totals
              iterations 3
              model calls 3
              tool calls 3
              tokens 2179
              cost $0.000000
              time TIME -> TIME
              incidents 0
            input
                "What is in the files?"
            outcome
                Completed with "Tea is leaves, coffee is beans."
        "#]],
    );
    check(
        &world,
        &["diff", "run.loopfix", "last", "--exit-code", "-o", "name"],
        expect![[r#"
        different
        exit 7
    "#]],
    );
}

#[test]
fn a_secret_is_not_recorded() {
    let world = World::new();
    world.write("docs/secret.md", "The key is sk-abcdefghijklmnop1234567890.\n");
    assert_eq!(world.loopctl(&["run", "agent.yaml", "Read the secret."]).code, 0);
    check(
        &world,
        &["record", "last", "-o", "secret.loopfix"],
        expect![[r#"
        err: error[E-SECRET]: not recorded: the payload of entry 8 holds an API key (sk-…)
        err: why: a recording is shared; a secret in it is a leak. The run itself is as it was
        err: fix: keep secrets out of questions, files and tool results, change this one, and run again
        exit 7
    "#]],
    );
    assert!(!world.path("secret.loopfix").exists());
    world.write("docs/secret.md", "The word is swordfish-and-chips.\n");
    assert_eq!(world.loopctl(&["run", "agent.yaml", "Read the secret."]).code, 0);
    let known = |args: &[&str]| {
        let output = world.command(args).env("DEPLOY_TOKEN", "swordfish-and-chips").output().expect("it starts");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), world.normal(&String::from_utf8(text).expect("text")))
    };
    let (code, text) = known(&["record", "last", "-o", "secret.loopfix"]);
    assert_eq!(code, Some(7));
    assert!(text.contains("DEPLOY_TOKEN") && !text.contains("swordfish"), "{text}");
    assert_eq!(world.loopctl(&["record", "last", "-o", "leaky.loopfix"]).code, 0);
    let (code, text) = known(&["fixture", "scan", "leaky.loopfix"]);
    assert_eq!(code, Some(7));
    expect![[r#"
        leaky.loopfix: the payload of entry 8 holds the value of DEPLOY_TOKEN
    "#]]
    .assert_eq(&text);
}
