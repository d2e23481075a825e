//! `operator new`: what it makes, what it refuses, and that it builds.

use crate::check;
use crate::world::{World, exists};
use expect_test::expect;
use std::path::Path;
use std::process::Command;

/// This repository, which is a checkout of loopd.
const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What a command says, with the place of this repository left out.
#[track_caller]
fn checked(world: &World, args: &[&str], expected: expect_test::Expect) {
    let here = std::fs::canonicalize(CHECKOUT).expect("a folder");
    expected.assert_eq(&world.say(args).replace(&here.display().to_string(), "CHECKOUT"));
}

#[test]
fn it_makes_a_project_and_overwrites_nothing() {
    let world = World::new();
    checked(
        &world,
        &["operator", "new", "triage", "--loopd", CHECKOUT],
        expect![[r#"
        ./triage is an operator that speaks as operator/triage
        err: built with loopd in CHECKOUT
        err: next: cd triage && cargo test (README.md says how to run it)
    "#]],
    );
    let manifest = world.read("triage/Cargo.toml");
    assert!(manifest.contains("name = \"triage\"\n") && manifest.contains("\n[workspace]\n"), "{manifest}");
    for file in ["src/lib.rs", "src/main.rs", "tests/operator.rs", "README.md", ".gitignore", "Cargo.lock"] {
        assert!(!world.read(&format!("triage/{file}")).contains("scaffold"), "{file}");
    }
    world.write("triage/src/lib.rs", "mine");
    check(
        &world,
        &["operator", "new", "triage", "--loopd", CHECKOUT],
        expect![[r#"
        err: error[E-FILE]: ./triage is there already
        err: why: nothing is overwritten
        err: fix: choose another name, or another folder to call this in
        exit 8
    "#]],
    );
    assert_eq!(world.read("triage/src/lib.rs"), "mine");
    world.write("file", "mine");
    assert_eq!(world.loopctl(&["operator", "new", "file", "--loopd", CHECKOUT]).code, 8);
    assert_eq!(world.read("file"), "mine");
    checked(
        &world,
        &["operator", "new", "two", "--loopd", CHECKOUT, "-o", "json"],
        expect![[r#"
        {
          "name": "two",
          "actor": "operator/two",
          "folder": "two",
          "loopd": "CHECKOUT",
          "files": [
            "Cargo.toml",
            "src/lib.rs",
            "src/main.rs",
            "tests/operator.rs",
            "README.md",
            ".gitignore",
            "Cargo.lock"
          ]
        }
    "#]],
    );
}

#[test]
fn what_is_no_name_or_no_checkout_is_refused_and_leaves_nothing() {
    let world = World::new();
    check(
        &world,
        &["operator", "new", "Triage", "--loopd", CHECKOUT],
        expect![[r#"
        err: error[E-USAGE]: `Triage` is no name for an operator: it is the key of an actor, the name of a crate and of a folder at once
        err: fix: a-z, 0-9, - and _, at most 64, a letter first: loopctl operator new triage
        exit 2
    "#]],
    );
    check(
        &world,
        &["operator", "new", "../up", "--loopd", CHECKOUT],
        expect![[r#"
        err: error[E-USAGE]: `../up` is no name for an operator: it is the key of an actor, the name of a crate and of a folder at once
        err: fix: a-z, 0-9, - and _, at most 64, a letter first: loopctl operator new triage
        exit 2
    "#]],
    );
    check(
        &world,
        &["operator", "new", "match", "--loopd", CHECKOUT],
        expect![[r#"
        err: error[E-USAGE]: `match` is no name for an operator: Rust, cargo or one of its dependencies has that name
        err: fix: a-z, 0-9, - and _, at most 64, a letter first: loopctl operator new triage
        exit 2
    "#]],
    );
    check(
        &world,
        &["operator", "new", "", "--loopd", CHECKOUT],
        expect![[r#"
        err: error[E-USAGE]: `` is no name for an operator: it is empty
        err: fix: a-z, 0-9, - and _, at most 64, a letter first: loopctl operator new triage
        exit 2
    "#]],
    );
    check(
        &world,
        &["operator", "new", "triage", "--loopd", "docs"],
        expect![[r#"
        err: error[E-FILE]: docs is no checkout of loopd
        err: why: there is no crates/operator with the toolkit in it
        err: fix: name the folder that `git clone` made of loopd with --loopd DIR
        exit 8
    "#]],
    );
    check(
        &world,
        &["operator", "new", "triage", "--loopd", "not/there"],
        expect![[r#"
        err: error[E-FILE]: not/there is no checkout of loopd
        err: why: there is no crates/operator with the toolkit in it
        err: fix: name the folder that `git clone` made of loopd with --loopd DIR
        exit 8
    "#]],
    );
    assert!(!exists(&world.path("triage")) && !exists(&world.path("match")));
}

/// What a newcomer does: makes it, and tests it. Without the network, with the versions of this repository.
#[test]
fn e2e_a_new_operator_builds_and_passes_its_tests() {
    let world = World::new();
    assert_eq!(world.loopctl(&["operator", "new", "e2e-triage", "--loopd", CHECKOUT]).code, 0);
    let folder = world.path("e2e-triage");
    // Beside the programs of this build, and compiled as they are: what both need is compiled once.
    let target = Path::new(env!("CARGO_BIN_EXE_loopctl")).parent().and_then(Path::parent).expect("a target folder");
    let cargo = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.envs([("CARGO_PROFILE_DEV_DEBUG", "line-tables-only"), ("CARGO_TERM_COLOR", "never")]);
        command.args(args).current_dir(&folder).env("CARGO_TARGET_DIR", target).env_remove("RUSTFLAGS");
        let done = command.output().expect("cargo starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(done.status.success(), "{args:?}\n{}\n{}", text(&done.stdout), text(&done.stderr));
        text(&done.stdout)
    };
    let plain = ["--offline", "--config", "profile.dev.package.'*'.debug=false"];
    let told = cargo(&[&["test"], &plain[..]].concat());
    assert!(told.contains("test result: ok. 4 passed"), "{told}");
    cargo(&["fmt", "--check"]);
    cargo(&[&["clippy", "--all-targets"], &plain[..], &["--", "-D", "warnings"]].concat());
}
