//! The one-way rule, held against this workspace, and each of its checks against a workspace that breaks it.

use anyhow::Result;
use xtask::architecture::{self, Metadata};
use xtask::repository::{Repository, TextFile, root};

#[test]
fn this_workspace_obeys() -> Result<()> {
    let root = root()?;
    let scans = architecture::check(&Metadata::read(&root)?, &Repository::read(&root)?);
    let found = xtask::render(&scans);
    assert!(found.is_empty(), "\n{found}");
    Ok(())
}

/// A tiny workspace that obeys: every broken case below differs from it in one line.
const SOUND: &str = r#"{
  "workspace_root": "/w",
  "metadata": { "loopd": {
    "adapters": ["crates/disk", "crates/net"],
    "adapter-users": ["bin/*"],
    "pure": ["crates/core"],
    "no-std": ["crates/core"],
    "pure-dev-dependencies": ["proptest"],
    "layers": { "crates/core": 0, "crates/port": 1, "crates/disk": 2, "crates/net": 2, "crates/kit": 3, "bin/*": 4, "xtask": "tool" },
    "adapter-features": { "crates/kit": { "disk": "crates/disk" } },
    "confined": { "sqlite": ["crates/disk"] },
    "allowed": { "crates/core": ["serde"] }
  } },
  "packages": [
    { "name": "core", "manifest_path": "/w/crates/core/Cargo.toml", "features": {}, "dependencies": [
      { "name": "serde", "kind": null, "optional": false, "path": null },
      { "name": "proptest", "kind": "dev", "optional": false, "path": null } ] },
    { "name": "port", "manifest_path": "/w/crates/port/Cargo.toml", "features": {}, "dependencies": [
      { "name": "core", "kind": null, "optional": false, "path": "/w/crates/core" },
      { "name": "kit", "kind": "dev", "optional": false, "path": "/w/crates/kit" } ] },
    { "name": "disk", "manifest_path": "/w/crates/disk/Cargo.toml", "features": {}, "dependencies": [
      { "name": "sqlite", "kind": null, "optional": false, "path": null },
      { "name": "port", "kind": null, "optional": false, "path": "/w/crates/port" } ] },
    { "name": "net", "manifest_path": "/w/crates/net/Cargo.toml", "features": {}, "dependencies": [] },
    { "name": "kit", "manifest_path": "/w/crates/kit/Cargo.toml", "features": { "disk": ["dep:disk"] }, "dependencies": [
      { "name": "disk", "kind": null, "optional": true, "path": "/w/crates/disk" } ] },
    { "name": "app", "manifest_path": "/w/bin/app/Cargo.toml", "features": {}, "dependencies": [
      { "name": "disk", "kind": null, "optional": false, "path": "/w/crates/disk" },
      { "name": "net", "kind": null, "optional": false, "path": "/w/crates/net" } ] },
    { "name": "xtask", "manifest_path": "/w/xtask/Cargo.toml", "features": {}, "dependencies": [] }
  ] }"#;

const SOUND_ROOT: &str = "//! The core.\n#![no_std]\n";

fn scan(metadata: &str, core: &str) -> Result<String> {
    let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
    let repository =
        Repository::from_texts(vec![file("crates/core/src/lib.rs", core), file("crates/core/Cargo.toml", "")])?;
    Ok(xtask::render(&architecture::check(&serde_json::from_str(metadata)?, &repository)))
}

#[test]
fn the_sound_example_is_sound() -> Result<()> {
    assert_eq!(scan(SOUND, SOUND_ROOT)?, "");
    Ok(())
}

#[test]
fn every_check_finds_what_it_is_for() -> Result<()> {
    let own = |name: &str, kind: &str, folder: &str| {
        format!(r#"{{ "name": "{name}", "kind": {kind}, "optional": false, "path": "/w/{folder}" }}"#)
    };
    let external =
        |name: &str, kind: &str| format!(r#"{{ "name": "{name}", "kind": {kind}, "optional": false, "path": null }}"#);
    // (package that gains a dependency, the dependency, what must be said)
    let gains = [
        (
            "core",
            own("port", "null", "crates/port"),
            "[direction] crates/core: (layer 0) depends on crates/port (layer 1)",
        ),
        (
            "disk",
            own("net", "null", "crates/net"),
            "[direction] crates/disk: (layer 2) depends on crates/net (layer 2)",
        ),
        ("core", own("kit", "\"dev\"", "crates/kit"), "[direction] crates/core: is pure, and so are its tests"),
        ("port", own("xtask", "null", "xtask"), "[direction] crates/port: depends on xtask: a tool stands outside"),
        (
            "xtask",
            own("core", "null", "crates/core"),
            "[direction] xtask: depends on crates/core: a tool stands outside",
        ),
        ("kit", own("net", "null", "crates/net"), "[adapters] crates/kit: names the adapter crates/net"),
        ("port", own("disk", "\"build\"", "crates/disk"), "[adapters] crates/port: names the adapter crates/disk"),
        ("app", external("sqlite", "null"), "[confined] bin/app: depends on sqlite, which is confined to crates/disk"),
        ("core", external("tokio", "null"), "[allowed] crates/core: is pure: tokio is not on its list"),
        ("core", external("tokio", "\"dev\""), "[allowed] crates/core: is pure: tokio is not on its list"),
        ("core", external("proptest", "null"), "[allowed] crates/core: is pure: proptest is not on its list"),
    ];
    for (package, dependency, expected) in gains {
        let mut metadata: serde_json::Value = serde_json::from_str(SOUND)?;
        let packages = metadata["packages"].as_array_mut().into_iter().flatten();
        for found in packages.filter(|found| found["name"] == package) {
            found["dependencies"].as_array_mut().into_iter().for_each(|all| {
                all.push(serde_json::from_str(&dependency).unwrap_or_default());
            });
        }
        assert_found(&scan(&metadata.to_string(), SOUND_ROOT)?, expected);
    }
    // (text of the sound example, what replaces it, what must be said)
    let edits = [
        (r#""crates/net": 2, "#, "", "[listed] crates/net: has no layer"),
        (r#""xtask": "tool""#, r#""xtask": "toll""#, "[listed] xtask: the layer `toll`"),
        (r#""pure": ["crates/core"]"#, r#""pure": ["crates/cor"]"#, "names `crates/cor`, where no crate is"),
        (
            "/w/crates/core/Cargo.toml",
            "/w/crates/moved/Cargo.toml",
            "crates/core/Cargo.toml: this manifest is no member",
        ),
        (
            r#""pure": ["crates/core"]"#,
            r#""pure": ["crates/core", "crates/net"]"#,
            "[allowed] crates/net: is pure, but has no list",
        ),
        (r#""optional": true"#, r#""optional": false"#, "must be optional and turned on by the feature `disk` alone"),
        (r#""disk": ["dep:disk"]"#, r#""disk": ["dep:disk"], "more": ["dep:disk"]"#, "by the feature `disk` alone"),
    ];
    for (sound, broken, expected) in edits {
        assert_found(&scan(&SOUND.replacen(sound, broken, 1), SOUND_ROOT)?, expected);
    }
    for core in ["//! The core.\n", "//! The core.\n#![cfg_attr(not(test), no_std)]\n"] {
        assert_found(&scan(SOUND, core)?, "[no_std] crates/core/src/lib.rs: must say `#![no_std]`");
    }
    Ok(())
}

#[test]
fn a_scan_of_nothing_is_a_violation() -> Result<()> {
    let mut metadata: serde_json::Value = serde_json::from_str(SOUND)?;
    metadata["packages"] = serde_json::Value::Array(Vec::new());
    let text = xtask::render(&architecture::check(&serde_json::from_value(metadata)?, &Repository::default()));
    for rule in ["listed", "direction", "adapters", "confined", "allowed", "no_std"] {
        assert_found(&text, &format!("[{rule}] xtask: the scan looked at nothing"));
    }
    Ok(())
}

#[track_caller]
fn assert_found(text: &str, expected: &str) {
    assert!(text.contains(expected), "expected: {expected}\nfound:\n{text}");
}
