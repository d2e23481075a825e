//! Hostile text and surroundings: escapes, line breaks, an environment that is no text, two answers at once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

#[path = "cli/world.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod world;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use world::World;

#[test]
fn no_escape_through_choices() {
    let world = World::new();
    world.write("demo.json", r#"{"label":"","turns":[{"use":[{"tool":"ask","args":{"question":"Go?","choices":["\u001b]0;owned\u0007y\nes","no"]}}]}]}"#);
    let done = world.loopctl(&["run", "agent.yaml", "hello"]);
    assert_eq!(done.code, 5, "{}", done.err);
    let list = world.loopctl(&["ask", "list"]);
    assert!(!list.out.contains('\u{1b}') && !done.err.contains('\u{1b}'), "{:?}\n{:?}", list.out, done.err);
}

#[test]
fn jsonl_is_one_line() {
    let world = World::new();
    world.write("agent.yaml", &format!("{}  output:\n    schema: {{\"type\": \"object\"}}\n", world::AGENT));
    world.write("demo.json", r#"{"label":"","turns":[{"say":"{\n  \"a\": 1\n}"}]}"#);
    let done = world.loopctl(&["run", "agent.yaml", "hello", "-o", "jsonl"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(done.out.trim_end().lines().count(), 1, "{}", done.out);
}

#[test]
fn one_key_is_not_two_questions() {
    let world = World::new();
    world.write("demo.json", r#"{"label":"","turns":[{"when":{"user_contains":"one"},"say":"ONE"},{"say":"TWO"}]}"#);
    assert_eq!(world.loopctl(&["run", "agent.yaml", "one", "--key", "k"]).out.trim(), "ONE");
    let other = world.loopctl(&["run", "agent.yaml", "two", "--key", "k"]);
    println!("{} {:?} {:?}", other.code, other.out, other.err);
    assert_ne!(other.out.trim(), "ONE");
}

#[test]
fn environment_need_not_be_text() {
    let world = World::new();
    assert_eq!(world.loopctl(&["run", "agent.yaml", "hello"]).code, 0);
    let out = world
        .command(&["record", "last", "-o", "a.loopfix"])
        .env("ODD", std::ffi::OsStr::from_bytes(b"\xff"))
        .output()
        .expect("runs");
    assert!(out.status.success(), "{:?} {}", out.status, String::from_utf8_lossy(&out.stderr));
}

#[test]
fn a_backup_is_as_private_as_the_store() {
    let world = World::new();
    assert_eq!(world.loopctl(&["run", "agent.yaml", "hello", "--store", "s/x.db"]).code, 0);
    assert_eq!(world.loopctl(&["store", "backup", "b.db", "--store", "s/x.db"]).code, 0);
    let mode = |p: &str| std::fs::metadata(world.path(p)).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode("s/x.db"), mode("b.db")), (0o600, 0o600), "{:o}", mode("b.db"));
}
