//! The README shows this program as it is.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

fn text(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

#[test]
fn the_rust_of_the_readme_is_this_program() {
    let (readme, program) = (text("../../README.md"), text("src/main.rs"));
    let (_, rest) = readme.split_once("```rust\n").expect("a block of Rust");
    let (shown, _) = rest.split_once("```").expect("its end");
    let from = program.find("\nuse ").expect("a use") + 1;
    assert_eq!(shown, &program[from..]);
}
