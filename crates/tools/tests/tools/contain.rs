//! SEC-03: nothing outside the root is written, whatever the path says and whoever changes the folders meanwhile.

use crate::{Folder, context_of, said};
use loopd_tools::FileTool;
use proptest::prelude::*;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A root with ways out, and what lies outside.
fn trapped() -> Folder {
    let folder = Folder::with(&[("in.md", b"inside\n"), ("sub/in.md", b"inside\n")]);
    let (root, outside) = (folder.root(), folder.outside().to_path_buf());
    std::fs::write(outside.join("secret"), "SECRET\n").unwrap();
    std::fs::create_dir(outside.join("docs-evil")).unwrap();
    std::fs::write(outside.join("docs-evil/secret"), "SECRET\n").unwrap();
    symlink("../secret", root.join("link")).unwrap();
    symlink("../docs-evil", root.join("folder-link")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("/", root.join("sub/top")).unwrap();
    symlink("../new-file", root.join("dangling")).unwrap();
    folder
}

/// What is outside the root, by name and content.
fn outside(folder: &Folder) -> Vec<String> {
    fn walk(at: &Path, root: &Path, out: &mut Vec<String>) {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path == root {
                continue;
            }
            if path.is_dir() {
                walk(&path, root, out);
            } else {
                out.push(format!("{} {:?}", path.display(), std::fs::read(&path).unwrap()));
            }
        }
    }
    let mut out = Vec::new();
    walk(folder.outside(), &folder.root(), &mut out);
    out.sort();
    out
}

fn component() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "..", ".", "", "in.md", "sub", "top", "up", "link", "folder-link", "dangling", "docs", "docs-evil", "secret",
            "new", "etc", "~", "...", "..\\secret", "%2e%2e", "\u{2025}", "\u{ff0e}\u{ff0e}", "..\u{0}", "sub ", "C:",
        ])
        .prop_map(str::to_owned),
        1 => "[a-z./\\\\]{0,6}",
        1 => any::<String>(),
    ]
}

fn path() -> impl Strategy<Value = String> {
    (any::<bool>(), prop::collection::vec(component(), 0..6))
        .prop_map(|(absolute, parts)| format!("{}{}", if absolute { "/" } else { "" }, parts.join("/")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_path_writes_outside(paths in prop::collection::vec(path(), 1..8)) {
        let folder = trapped();
        let before = outside(&folder);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (number, path) in paths.iter().enumerate() {
            for (tool, args) in [
                (FileTool::Write, serde_json::json!({ "path": path, "content": "OWNED" })),
                (FileTool::Write, serde_json::json!({ "path": path, "content": "OWNED", "must_not_exist": true })),
                (FileTool::Edit, serde_json::json!({ "path": path, "old": "SECRET", "new": "OWNED" })),
                (FileTool::Edit, serde_json::json!({ "path": path, "old": "root:", "new": "root:" })),
                (FileTool::Read, serde_json::json!({ "path": path })),
            ] {
                let context = context_of(number as u64);
                let answer = runtime.block_on(async { said(folder.tool(tool).call(&args.to_string(), &context).await) });
                prop_assert!(!answer.contains("SECRET"), "{path:?}: {answer}");
                let climbs = path.starts_with('/') || path.split('/').any(|part| part == "..");
                prop_assert!(!climbs || answer.starts_with("! file."), "{path:?}: {answer}");
            }
        }
        prop_assert_eq!(outside(&folder), before);
        prop_assert!(folder.root().join("link").is_symlink() && folder.root().join("dangling").is_symlink());
    }
}

/// Somebody swaps a folder for a link while files are written through it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swap_during_a_write_does_not_lead_outside() {
    let folder = trapped();
    let (root, done) = (folder.root(), AtomicBool::new(false));
    let before = outside(&folder);
    let (write, edit) = (folder.tool(FileTool::Write), folder.tool(FileTool::Edit));
    let (mut calls, mut inside, mut links) = (0_u64, 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            symlink("../docs-evil", root.join("other")).unwrap();
            // The name is always there: as the folder, or as the link.
            let swap = || renameat_with(CWD, root.join("sub"), CWD, root.join("other"), RenameFlags::EXCHANGE);
            while !done.load(Ordering::Relaxed) {
                swap().unwrap();
            }
        });
        tokio::task::block_in_place(|| {
            let here = tokio::runtime::Handle::current();
            while calls < 20_000 && !(calls >= 400 && inside > 0 && links > 0) {
                let context = context_of(calls);
                let written = here.block_on(write.call(r#"{"path":"sub/secret","content":"OWNED"}"#, &context));
                let edited =
                    here.block_on(edit.call(r#"{"path":"sub/secret","old":"SECRET","new":"OWNED"}"#, &context));
                for answer in [said(written), said(edited)] {
                    calls += 1;
                    inside += u32::from(answer.starts_with('{'));
                    links += u32::from(answer.starts_with("! file.link"));
                }
            }
            done.store(true, Ordering::Relaxed);
        });
    });
    assert_eq!(outside(&folder), before, "{calls} calls");
    // Both sides of the race have to be seen, or the test shows nothing.
    assert!(inside > 0 && links > 0, "{calls} calls, {inside} inside, {links} links");
}
