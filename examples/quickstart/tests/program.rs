//! The program itself, in a folder of its own.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::process::Command;

/// What the program prints when it is started in `folder`.
fn start(folder: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_quickstart")).current_dir(folder).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn it_says_the_same_every_time_and_keeps_its_run() {
    let folder = tempfile::TempDir::new().expect("a folder");
    assert_eq!(start(folder.path()), "paid $42 back\n");
    let kept = std::fs::read(folder.path().join("refunds.db")).expect("the store");
    assert!(kept.starts_with(b"SQLite format 3\0"));
    assert_eq!(start(folder.path()), "paid $42 back\n");
}
