//! Nothing outside the root is reached.
#![cfg(unix)]

use crate::{Folder, call};
use expect_test::expect;
use loopd_tools::FileTool;
use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

const SECRET: &[u8] = b"SECRET\n";

/// A root with every way out that somebody may lay.
fn trapped() -> Folder {
    let folder = Folder::with(&[("in.md", b"inside\n"), ("sub/in.md", b"inside\n")]);
    let (root, outside) = (folder.root(), folder.outside().to_path_buf());
    std::fs::write(outside.join("secret"), SECRET).unwrap();
    // The prefix trick: this folder's path begins with the root's.
    std::fs::create_dir(outside.join("docs-evil")).unwrap();
    std::fs::write(outside.join("docs-evil/secret"), SECRET).unwrap();
    symlink("/etc/passwd", root.join("absolute-link")).unwrap();
    symlink("../secret", root.join("relative-link")).unwrap();
    symlink("in.md", root.join("inner-link")).unwrap();
    symlink("../docs-evil", root.join("folder-link")).unwrap();
    symlink("sub", root.join("inner-folder-link")).unwrap();
    symlink("loop-b", root.join("loop-a")).unwrap();
    symlink("loop-a", root.join("loop-b")).unwrap();
    folder
}

#[tokio::test]
async fn no_path_leads_outside() {
    let folder = trapped();
    let root = folder.root().display().to_string();
    let mut out = String::new();
    for path in [
        "../secret",
        "sub/../../secret",
        "sub/../in.md",
        "../docs-evil/secret",
        "..",
        "/etc/passwd",
        "//etc/passwd",
        "ROOT/in.md",
        "ROOT-evil/secret",
        "absolute-link",
        "relative-link",
        "inner-link",
        "folder-link/secret",
        "folder-link",
        "inner-folder-link/in.md",
        "loop-a",
        "loop-a/x",
        "in.md/..",
        "in.md/x",
        "~/x",
        "file:///etc/passwd",
        "a\\u0000b",
        "..\\\\secret",
    ] {
        let args = format!(r#"{{"path":"{}"}}"#, path.replace("ROOT", &root));
        let answer = folder.ask(FileTool::Read, &args).await;
        assert!(!answer.contains("SECRET") && !answer.contains("root:"), "{path}: {answer}");
        writeln!(out, "{path}: {}", answer.replace(&root, "ROOT")).unwrap();
    }
    expect![[r#"
        ../secret: ! file.outside: paths are relative to the folder of the tool, without `..`
        sub/../../secret: ! file.outside: paths are relative to the folder of the tool, without `..`
        sub/../in.md: ! file.outside: paths are relative to the folder of the tool, without `..`
        ../docs-evil/secret: ! file.outside: paths are relative to the folder of the tool, without `..`
        ..: ! file.outside: paths are relative to the folder of the tool, without `..`
        /etc/passwd: ! file.outside: paths are relative to the folder of the tool, without `..`
        //etc/passwd: ! file.outside: paths are relative to the folder of the tool, without `..`
        ROOT/in.md: ! file.outside: paths are relative to the folder of the tool, without `..`
        ROOT-evil/secret: ! file.outside: paths are relative to the folder of the tool, without `..`
        absolute-link: ! file.link: absolute-link leads through a link, which is not followed
        relative-link: ! file.link: relative-link leads through a link, which is not followed
        inner-link: ! file.link: inner-link leads through a link, which is not followed
        folder-link/secret: ! file.link: folder-link/secret leads through a link, which is not followed
        folder-link: ! file.link: folder-link leads through a link, which is not followed
        inner-folder-link/in.md: ! file.link: inner-folder-link/in.md leads through a link, which is not followed
        loop-a: ! file.link: loop-a leads through a link, which is not followed
        loop-a/x: ! file.link: loop-a/x leads through a link, which is not followed
        in.md/..: ! file.outside: paths are relative to the folder of the tool, without `..`
        in.md/x: ! file.not_a_folder: in.md in in.md/x is not a folder
        ~/x: ! file.not_found: ~/x does not exist
        file:///etc/passwd: ! file.not_found: file:/etc/passwd does not exist
        a\u0000b: ! file.invalid_path: a path has at most 4096 bytes and no NUL
        ..\\secret: ! file.not_found: ..\secret does not exist
    "#]]
    .assert_eq(&out);
    let long = format!(r#"{{"path":"{}"}}"#, "a/".repeat(5000));
    assert!(folder.ask(FileTool::Read, &long).await.starts_with("! file.invalid_path"));
}

#[tokio::test]
async fn links_are_listed_and_neither_followed_nor_searched() {
    let folder = trapped();
    expect![[r#"{"path":".","entries":[{"path":"absolute-link","kind":"link"},{"path":"folder-link","kind":"link"},{"path":"in.md","kind":"file","bytes":7},{"path":"inner-folder-link","kind":"link"},{"path":"inner-link","kind":"link"},{"path":"loop-a","kind":"link"},{"path":"loop-b","kind":"link"},{"path":"relative-link","kind":"link"},{"path":"sub","kind":"folder"},{"path":"sub/in.md","kind":"file","bytes":7}]}"#]].assert_eq(&folder.ask(FileTool::List, r#"{"depth":5}"#).await);
    expect!["! file.link: folder-link leads through a link, which is not followed"]
        .assert_eq(&folder.ask(FileTool::List, r#"{"path":"folder-link"}"#).await);
    expect![[r#"{"matches":[],"files":2,"skipped":{"links_and_special":7}}"#]]
        .assert_eq(&folder.ask(FileTool::Search, r#"{"text":"SECRET"}"#).await);
    expect!["! file.link: relative-link leads through a link, which is not followed"]
        .assert_eq(&folder.ask(FileTool::Search, r#"{"text":"SECRET","path":"relative-link"}"#).await);
}

#[tokio::test]
async fn special_files_are_refused_and_do_not_block() {
    let folder = Folder::with(&[("a", b"cat")]);
    assert!(Command::new("mkfifo").arg(folder.root().join("pipe")).status().unwrap().success());
    let _listener = UnixListener::bind(folder.root().join("socket")).unwrap();
    expect!["! file.special: pipe is a pipe, a device or a socket, which is not read"]
        .assert_eq(&folder.ask(FileTool::Read, r#"{"path":"pipe"}"#).await);
    expect!["! file.special: socket is a pipe, a device or a socket, which is not read"]
        .assert_eq(&folder.ask(FileTool::Read, r#"{"path":"socket"}"#).await);
    expect![[r#"{"path":".","entries":[{"path":"a","kind":"file","bytes":3},{"path":"pipe","kind":"special"},{"path":"socket","kind":"special"}]}"#]].assert_eq(&folder.ask(FileTool::List, "{}").await);
    expect![[r#"{"matches":[{"path":"a","line":1,"text":"cat"}],"files":1,"skipped":{"links_and_special":2}}"#]]
        .assert_eq(&folder.ask(FileTool::Search, r#"{"text":"cat"}"#).await);
}

#[tokio::test]
async fn the_root_itself_may_be_reached_through_a_link() {
    let folder = trapped();
    let link = folder.outside().join("link-to-docs");
    symlink(folder.root(), &link).unwrap();
    let tools = loopd_tools::file_tools(&link, &[FileTool::Read]).unwrap();
    assert!(call(tools[0].as_ref(), r#"{"path":"in.md"}"#).await.contains("inside"));
}

/// Somebody swaps a folder for a link, and a file for a link, while the tool walks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swap_during_the_walk_does_not_lead_outside() {
    let folder = trapped();
    let (root, done) = (folder.root(), AtomicBool::new(false));
    let tool = folder.tool(FileTool::Read);
    let (mut calls, mut inside, mut links) = (0, 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::fs::rename(root.join("sub"), root.join("kept")).unwrap();
                symlink("../docs-evil", root.join("sub")).unwrap();
                std::fs::remove_file(root.join("sub")).unwrap();
                std::fs::rename(root.join("kept"), root.join("sub")).unwrap();
                std::fs::rename(root.join("in.md"), root.join("kept.md")).unwrap();
                symlink("../secret", root.join("in.md")).unwrap();
                std::fs::remove_file(root.join("in.md")).unwrap();
                std::fs::rename(root.join("kept.md"), root.join("in.md")).unwrap();
            }
        });
        tokio::task::block_in_place(|| {
            for path in ["sub/secret", "sub/in.md", "in.md"].iter().cycle().take(100_000) {
                let args = format!(r#"{{"path":"{path}"}}"#);
                let answer = tokio::runtime::Handle::current().block_on(call(tool.as_ref(), &args));
                calls += 1;
                inside += u32::from(answer.contains("inside"));
                links += u32::from(answer.starts_with("! file.link"));
                // Both sides of the race have to be seen, or the test shows nothing.
                if answer.contains("SECRET") || (calls >= 3000 && inside > 0 && links > 0) {
                    done.store(true, Ordering::Relaxed);
                    assert!(!answer.contains("SECRET"), "{path}: {answer}");
                    break;
                }
            }
            done.store(true, Ordering::Relaxed);
        });
    });
    assert!(inside > 0 && links > 0, "{calls} calls, {inside} inside, {links} links");
}
