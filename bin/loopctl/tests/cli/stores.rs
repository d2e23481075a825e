//! The store: wrong ones, copies, and what programs read.

use crate::check;
use crate::world::World;
use expect_test::expect;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_store_is_private_verified_and_copied() {
    let world = World::new();
    assert_eq!(world.loopctl(&["run", "agent.yaml", "Look."]).code, 0);
    let mode = |name: &str| std::fs::metadata(world.path(name)).expect("is there").permissions().mode() & 0o777;
    assert_eq!((mode(".loopd"), mode(".loopd/store.db")), (0o700, 0o600));
    check(
        &world,
        &["store", "verify"],
        expect![[r#"
        verified RUN1 26 entries, head HASH
    "#]],
    );
    check(
        &world,
        &["verify", "--all"],
        expect![[r#"
        verified RUN1 26 entries, head HASH
    "#]],
    );
    check(
        &world,
        &["store", "backup", "copy.db"],
        expect![[r#"
        err: ./.loopd/store.db copied to copy.db
    "#]],
    );
    check(
        &world,
        &["store", "backup", "copy.db"],
        expect![[r#"
        err: error[E-FILE]: copy.db is there already
        err: fix: choose a name that is free: a backup replaces nothing
        exit 8
    "#]],
    );
    check(
        &world,
        &["store", "verify", "--store", "copy.db"],
        expect![[r#"
        verified RUN1 26 entries, head HASH
    "#]],
    );
    check(
        &world,
        &["run", "show", "last", "--store", "sqlite://copy.db", "-o", "name"],
        expect![[r#"
        RUN1
    "#]],
    );
}

#[test]
fn a_store_that_is_none_is_said_so() {
    let world = World::new();
    world.write("text.db", &"This is no database. ".repeat(100));
    world.write("file", "");
    check(
        &world,
        &["run", "list", "--store", "text.db"],
        expect![[r#"
            err: error[E-STORE-CORRUPT]: the store is corrupt: text.db is not a database
            err: fix: name another file with --store, or restore a backup
            exit 7
        "#]],
    );
    check(
        &world,
        &["run", "agent.yaml", "Look.", "--store", "text.db"],
        expect![[r#"
            err: error[E-STORE-CORRUPT]: the store is corrupt: text.db is not a database
            err: fix: name another file with --store, or restore a backup
            exit 7
        "#]],
    );
    check(
        &world,
        &["run", "agent.yaml", "Look.", "--store", "file/store.db"],
        expect![[r#"
            err: error[E-STORE-UNAVAILABLE]: the store is unavailable: file/store.db: File exists
            err: fix: look at the path and its permissions with `loopctl doctor`
            exit 9
        "#]],
    );
    check(
        &world,
        &["run", "list", "--store", "postgres://x"],
        expect![[r#"
        err: error[E-USAGE]: there is no store of kind `postgres`
        err: fix: write --store PATH or --store sqlite://PATH
        exit 2
    "#]],
    );
    assert_eq!(world.read("text.db"), "This is no database. ".repeat(100));
}

#[test]
fn programs_read_json() {
    let world = World::new();
    assert_eq!(world.loopctl(&["run", "agent.yaml", "Which colour?"]).code, 5);
    assert_eq!(world.loopctl(&["record", "last", "-o", "run.loopfix"]).code, 0);
    let commands: [&[&str]; 13] = [
        &["run", "list"],
        &["run", "show", "last"],
        &["run", "why"],
        &["run", "watch"],
        &["ask", "list"],
        &["verify", "last", "run.loopfix"],
        &["store", "verify"],
        &["replay", "run.loopfix"],
        &["diff", "run.loopfix", "last"],
        &["show", "run.loopfix"],
        &["fixture", "scan", "run.loopfix"],
        &["agent", "check", "agent.yaml"],
        &["doctor"],
    ];
    for args in commands {
        let json = world.loopctl(&[args, &["-o", "json"]].concat()).out;
        serde_json::from_str::<serde_json::Value>(&json).unwrap_or_else(|error| panic!("{args:?}: {error}\n{json}"));
        for line in world.loopctl(&[args, &["-o", "jsonl"]].concat()).out.lines() {
            let read = serde_json::from_str::<serde_json::Value>(line);
            assert!(read.is_ok(), "{args:?}: {line}");
        }
    }
    let error = world.loopctl(&["run", "show", "ffff", "-o", "json"]);
    assert_eq!((error.code, error.out.as_str()), (8, ""));
    expect![[r#"
        {"error":{"code":"E-RUN-UNKNOWN","exit":8,"fix":"list them with `loopctl run list`","what":"no run begins with `ffff`","why":null}}
    "#]].assert_eq(&error.err);
    let schema = world.loopctl(&["agent", "schema"]).out;
    serde_json::from_str::<serde_json::Value>(&schema).expect("JSON");
}

#[test]
fn a_shell_completes_and_help_is_no_error() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = world.loopctl(&["completions", shell]);
        assert!(done.code == 0 && done.out.contains("loopctl"), "{shell}");
    }
    assert_eq!(world.loopctl(&["--help"]).code, 0);
    assert_eq!(world.loopctl(&["--version"]).code, 0);
    assert_eq!(world.loopctl(&["frobnicate"]).code, 2);
    assert_eq!(world.loopctl(&[]).code, 2);
    assert_eq!(world.loopctl(&["run"]).code, 2);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let world = World::new();
    assert_eq!(world.loopctl(&["run", "agent.yaml", "Look."]).code, 0);
    let mut child = world.start(&["run", "show", "last"]);
    drop(child.stdout.take());
    assert_eq!(crate::world::end(child).code, 0);
}
