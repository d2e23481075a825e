//! The habits, held against this repository, and each check against an input that breaks it.

use anyhow::Result;
use xtask::Scan;
use xtask::repository::{Repository, TextFile, root};
use xtask::tidy::glossary::{self, Words};
use xtask::tidy::size::{self, FILE_LIMIT, FLAT_MATCH, FUNCTION_LIMIT, Ratchet};
use xtask::tidy::{self, manifests, sources, texts};

#[test]
fn this_repository_is_tidy() -> Result<()> {
    let scans = tidy::check(&Repository::read(&root()?)?)?;
    let found = xtask::render(&scans);
    assert!(found.is_empty(), "\n{found}");
    Ok(())
}

fn repository(files: &[(&str, &str)]) -> Result<Repository> {
    let file = |&(path, text): &(&str, &str)| TextFile { path: path.to_owned(), text: text.to_owned() };
    Repository::from_texts(files.iter().map(file).collect())
}

/// Compares the places and messages of a scan with what they must begin with.
#[track_caller]
fn assert_violations(scan: &Scan, expected: &[&str]) {
    let found: Vec<String> = scan.violations.iter().map(ToString::to_string).collect();
    let agree =
        found.len() == expected.len() && found.iter().zip(expected).all(|(text, start)| text.starts_with(start));
    assert!(agree, "expected {expected:#?}\nfound {found:#?}");
}

fn function(name: &str, lines: usize) -> String {
    format!("fn {name}() {{\n{}}}\n", "    work();\n".repeat(lines - 2))
}

#[test]
fn a_large_file_is_found_and_comments_and_tests_do_not_count() -> Result<()> {
    let full = "const A: u8 = 1;\n".repeat(FILE_LIMIT);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "const B: u8 = 1;\n".repeat(FILE_LIMIT));
    let comments = "/// Why.\n// Why.\n\n".repeat(FILE_LIMIT);
    let repository = repository(&[
        (
            "a/src/fits.rs",
            &format!("{full}{tests}{comments}const LAST: u8 = 1;\n").replacen("const A: u8 = 1;\n", "", 1),
        ),
        ("a/src/large.rs", &format!("{full}const LAST: u8 = 1;\n")),
        ("a/src/any_not_test.rs", &format!("{full}#[cfg(any(test, unix))]\nmod tests {{}}\n")),
        ("a/tests/large.rs", &format!("{full}const LAST: u8 = 1;\n")),
    ])?;
    let scan = size::files(&repository, &Ratchet::default());
    assert_eq!(scan.seen, 3);
    let expected = [
        "a/src/any_not_test.rs: the file has 402 lines of code, 400 are allowed",
        "a/src/large.rs: the file has 401 lines of code, 400 are allowed",
    ];
    assert_violations(&scan, &expected);
    Ok(())
}

#[test]
fn a_large_function_is_found_by_its_full_name() -> Result<()> {
    let large = function("f", FUNCTION_LIMIT + 1);
    let text = format!(
        "{}mod inner {{ {large} }}\nimpl Kind {{ {large} }}\nimpl Clone for Kind {{ {large} }}\ntrait Has {{ {large} }}\n\
         #[cfg(test)]\nmod tests {{ {large} }}\n",
        function("fits", FUNCTION_LIMIT)
    );
    let scan = size::functions(&repository(&[("a.rs", &text)])?, &Ratchet::default());
    assert_eq!(scan.seen, 5);
    let expected = [
        "a.rs::<Kind as Clone>::f: the function has 71 lines",
        "a.rs::Has::f: the function has 71",
        "a.rs::Kind::f: the function has 71",
        "a.rs::inner::f: the function has 71",
    ];
    assert_violations(&scan, &expected);
    Ok(())
}

#[test]
fn a_flat_match_may_be_long_and_the_mark_must_be_true() -> Result<()> {
    let table = format!("    match x {{\n{}    }}\n", "        1 => 2,\n".repeat(FUNCTION_LIMIT));
    let long_arm =
        format!("    match x {{\n        1 => {{\n{}        }}\n    }}\n", "work();\n".repeat(FUNCTION_LIMIT));
    let flat = |name: &str, body: &str| format!("{FLAT_MATCH}\nfn {name}(x: u8) -> u8 {{\n{body}}}\n\n\n");
    let text = format!(
        "fn unmarked(x: u8) -> u8 {{\n{table}}}\n\n\n{}{}{}",
        flat("marked", &table),
        flat("long_arm", &long_arm),
        flat("much_around", &format!("{}{table}", "    work();\n".repeat(20)))
    );
    let scan = size::functions(&repository(&[("a.rs", &text)])?, &Ratchet::default());
    let expected =
        ["a.rs::long_arm: is marked", "a.rs::much_around: is marked", "a.rs::unmarked: the function has 74 lines"];
    assert_violations(&scan, &expected);
    Ok(())
}

#[test]
fn the_ratchet_only_shrinks() -> Result<()> {
    let text =
        format!("{}{}{}{}", function("same", 90), function("grew", 92), function("shrank", 80), function("fits", 60));
    let ratchet: Ratchet = toml::from_str(
        "[functions]\n'a.rs::same' = 90\n'a.rs::grew' = 91\n'a.rs::shrank' = 90\n'a.rs::fits' = 90\n'a.rs::gone' = 90\n",
    )?;
    let scan = size::functions(&repository(&[("a.rs", &text)])?, &ratchet);
    let expected = [
        "a.rs::fits: the function is within 70 lines now: remove it",
        "a.rs::gone: is gone: remove it",
        "a.rs::grew: the function grew from 91 to 92 lines",
        "a.rs::shrank: the function shrank to 80 lines: lower 90",
    ];
    assert_violations(&scan, &expected);
    Ok(())
}

#[test]
fn the_top_of_a_source_file_is_checked() -> Result<()> {
    let repository = repository(&[
        ("a/src/lib.rs", "//! A.\n#![deny(clippy::wildcard_enum_match_arm)]\n"),
        ("b/src/lib.rs", "#![allow(dead_code)]\n//! B.\n"),
        ("b/src/bin/c.rs", "//! C.\n#![cfg_attr(unix, expect(clippy::unwrap_used, reason = \"no\"))]\n"),
        ("b/src/inner.rs", "//! Inner.\n"),
        ("bin/d/src/main.rs", "//! D.\n#![allow(clippy::print_stdout)]\n#![cfg_attr(test, allow(clippy::panic))]\n"),
        ("e/src/lib.rs", "//! E.\n#![allow(clippy::print_stdout)]\n"),
        ("e/tests/it.rs", "//! E.\n#![allow(clippy::unwrap_used)]\n"),
    ])?;
    assert_violations(&sources::module_docs(&repository), &["b/src/lib.rs: must begin with a `//!`"]);
    let expected = [
        "b/src/bin/c.rs: switches `clippy::unwrap_used` off",
        "b/src/lib.rs: switches `dead_code` off",
        "e/src/lib.rs: switches `clippy::print_stdout` off",
    ];
    assert_violations(&sources::no_blanket_allow(&repository), &expected);
    let pure = ["a".to_owned(), "b".to_owned()];
    assert_violations(&sources::pure_tier_denies_wildcards(&repository, &pure), &["b/src/lib.rs: must say"]);
    Ok(())
}

#[test]
fn manifests_and_lock_file_are_checked() -> Result<()> {
    let lock = "[[package]]\nname = 'ours'\n[[package]]\nname = 'good'\n\
        source = 'registry+https://github.com/rust-lang/crates.io-index'\n[[package]]\nname = 'ring'\n\
        source = 'registry+https://mirror.example/index'\n";
    let repository = repository(&[
        ("Cargo.toml", "[workspace.metadata.loopd]\npure = ['crates/core']\n"),
        ("Cargo.lock", lock),
        ("deny.toml", "[bans]\ndeny = [{ crate = 'ring' }]\n"),
        ("a/Cargo.toml", "[lints]\nworkspace = true\n[dependencies]\nserde.workspace = true\n"),
        (
            "b/Cargo.toml",
            "[dependencies]\nserde = '1'\n[target.'cfg(unix)'.dev-dependencies]\nlibc = { version = '1' }\n",
        ),
    ])?;
    assert_eq!(manifests::pure_folders(&repository)?, ["crates/core"]);
    let expected = [
        "b/Cargo.toml: `libc` must come from [workspace.dependencies]",
        "b/Cargo.toml: `serde` must come from",
        "b/Cargo.toml: must say `[lints] workspace = true`",
    ];
    assert_violations(&manifests::inherit(&repository)?, &expected);
    let expected = ["Cargo.lock: `ring` comes from registry+https://mirror"];
    assert_violations(&manifests::lock_file(&repository)?, &expected);
    let resolved = ["ours".to_owned(), "ring".to_owned()];
    assert_violations(&manifests::banned(&repository, &resolved)?, &["Cargo.lock: `ring` is banned"]);
    Ok(())
}

#[test]
fn a_dependency_without_a_reason_is_found() -> Result<()> {
    let repository = repository(&[
        ("Cargo.toml", "[workspace.dependencies]\nown = { path = 'own' }\na = '1'\nb = '1'\nc = '1'\n"),
        ("docs/dependencies.md", "| crate | for |\n|---|---|\n| a, b | speed, unlike c |\n"),
    ])?;
    let expected = ["Cargo.toml: `c` has no line in docs/dependencies.md"];
    assert_violations(&manifests::dependencies_have_reasons(&repository)?, &expected);
    Ok(())
}

#[test]
fn the_pure_tier_shares_its_bans() -> Result<()> {
    let bans = "disallowed-methods = ['std::time::SystemTime::now']\n";
    let repository = repository(&[("a/clippy.toml", bans), ("b/clippy.toml", bans), ("c/clippy.toml", "")])?;
    let check = |folders: &[&str]| {
        manifests::pure_tier_bans(&repository, &folders.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_violations(&check(&["a", "b"]), &[]);
    assert_violations(&check(&["a", "c"]), &["c/clippy.toml: differs"]);
    assert_violations(&check(&["c"]), &["c/clippy.toml: does not ban the clock"]);
    assert_violations(&check(&["a", "d"]), &["d/clippy.toml: is missing"]);
    Ok(())
}

#[test]
fn notes_without_a_reason_are_found() -> Result<()> {
    let note = concat!("TO", "DO");
    let text = format!(
        "//! A.\n// {note}(waits for the second store)\n// {note}: later\n// {note}()\n// a{note}b\n// FIX{}\n",
        "ME(with a reason)"
    );
    let scan = texts::todo_has_reason(&repository(&[("a.rs", &text), ("notes.txt", &text)])?);
    assert_violations(&scan, &["a.rs:3:", "a.rs:4:", "a.rs:6:"]);
    Ok(())
}

#[test]
fn machine_paths_and_registries_are_found() -> Result<()> {
    let home = concat!("/ho", "me/");
    let text = format!("cd {home}me\nhttps://example.org{home}page\na{home}b\n'{}x'\n", concat!("/ro", "ot/"));
    let scan = texts::no_machine_paths(&repository(&[("a.md", &text)])?);
    assert_violations(&scan, &["a.md:1: names", "a.md:4: names"]);
    let repository = repository(&[
        (".cargo/config.toml", "[alias]\n[source.crates-io]\nreplace-with = 'x'\n"),
        (
            "web/package-lock.json",
            "\"resolved\": \"https://registry.npmjs.org/a\"\n\"resolved\": \"https://mirror/a\"\n",
        ),
        ("web/.npmrc", "registry=https://mirror\n"),
        ("docs/a.md", "registry=https://mirror\n"),
    ])?;
    let expected = [".cargo/config.toml:2:", ".cargo/config.toml:3:", "web/.npmrc:1:", "web/package-lock.json:2:"];
    assert_violations(&texts::no_registry_hosts(&repository), &expected);
    Ok(())
}

#[test]
fn a_crowded_root_is_found() -> Result<()> {
    let names: Vec<String> = (0..=texts::ROOT_LIMIT).map(|n| format!("{n}/file")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).chain([(".hidden", "")]).collect();
    assert_violations(&texts::small_root(&repository(&files)?), &[".: the root holds 21 entries"]);
    assert_violations(&texts::small_root(&repository(files.get(1..).unwrap_or_default())?), &[]);
    Ok(())
}

const WORDS: &str = "
[[banned]]
words = ['cassette']
instead = 'Fixture'
[[banned]]
names = ['Session', 'session_id']
instead = 'Run'
";

#[test]
fn replaced_words_are_found_in_names_and_docs() -> Result<()> {
    let words: Words = toml::from_str(WORDS)?;
    let text = "//! Plays a cassette.\nstruct CassetteId;\nfn old_cassette(session_id: u8) {}\nenum E { Session }\n\
        struct SessionPool { thread: u8 }\nfn f() { cassette::play(); let cassettes = 1; }\n";
    let repository = repository(&[("a.rs", text)])?;
    let expected = [
        "a.rs:2: the name `CassetteId` says `cassette`; GLOSSARY.md says Fixture",
        "a.rs:3: the name `old_cassette` says `cassette`",
        "a.rs:3: the name `session_id` says `session_id`; GLOSSARY.md says Run",
        "a.rs:4: the name `Session` says",
    ];
    assert_violations(&glossary::identifiers(&repository, &words), &expected);
    assert_violations(&glossary::docs(&repository, &words), &["a.rs:1: the documentation `Plays a cassette.`"]);
    Ok(())
}

#[test]
fn an_exception_excuses_one_file_and_must_be_needed() -> Result<()> {
    let exceptions = "
[[exception]]
word = 'cassette'
file = 'wire.rs'
reason = 'their protocol says so'
[[exception]]
word = 'Session'
file = 'wire.rs'
reason = ''
";
    let words: Words = toml::from_str(&format!("{WORDS}{exceptions}"))?;
    let repository = repository(&[("wire.rs", "fn cassette() {}"), ("other.rs", "fn cassette() {}")])?;
    assert_violations(&glossary::identifiers(&repository, &words), &["other.rs:1: the name `cassette`"]);
    let expected = [
        "wire.rs: the exception for `Session` gives no reason",
        "wire.rs: the exception for `Session` is not needed any more",
    ];
    assert_violations(&glossary::exceptions_are_needed(&repository, &words), &expected);
    Ok(())
}

#[test]
fn a_scan_of_nothing_is_a_violation() -> Result<()> {
    let repository = repository(&[
        ("Cargo.toml", "[workspace.metadata.loopd]\npure = []\n"),
        ("Cargo.lock", ""),
        ("deny.toml", "[bans]\ndeny = []\n"),
        ("docs/dependencies.md", ""),
        ("xtask/ratchet.toml", ""),
        ("xtask/glossary.toml", ""),
    ])?;
    // These look at every file of any language, or at what cargo builds, so that they see something.
    let any_file = ["notes", "machine paths", "registry hosts", "root folder", "banned packages"];
    for scan in tidy::check(&repository)?.iter().filter(|scan| !any_file.contains(&scan.rule)) {
        assert_violations(scan, &["xtask: the scan looked at nothing"]);
    }
    let empty = Repository::default();
    for scan in [
        texts::todo_has_reason(&empty),
        texts::no_machine_paths(&empty),
        texts::no_registry_hosts(&empty),
        texts::small_root(&empty),
    ] {
        assert_violations(&scan, &["xtask: the scan looked at nothing"]);
    }
    Ok(())
}
