//! `list_files`, offers and roots.

use crate::{Folder, call, context};
use expect_test::{Expect, expect};
use loopd_kernel::EffectClass;
use loopd_tools::files::Listing;
use loopd_tools::{FileTool, file_offers, file_tools};
use std::path::Path;
use std::time::Duration;

const TREE: &[(&str, &[u8])] = &[
    ("b.md", b"bee"),
    ("a/z.md", b""),
    ("a/deep/er/x", b"1"),
    (".hidden", b""),
    (".git/x", b""),
    ("B.md", b"BB"),
    ("a.md", b"ay"),
];

async fn check(args: &str, expected: Expect) {
    expected.assert_eq(&Folder::with(TREE).ask(FileTool::List, args).await);
}

#[tokio::test]
async fn entries_come_in_the_order_of_their_names() {
    check("", expect![[r#"{"path":".","entries":[{"path":".git","kind":"folder"},{"path":".hidden","kind":"file","bytes":0},{"path":"B.md","kind":"file","bytes":2},{"path":"a","kind":"folder"},{"path":"a.md","kind":"file","bytes":2},{"path":"b.md","kind":"file","bytes":3}]}"#]]).await;
    check(r#"{"path":"a","depth":2}"#, expect![[r#"{"path":"a","entries":[{"path":"a/deep","kind":"folder"},{"path":"a/deep/er","kind":"folder"},{"path":"a/z.md","kind":"file","bytes":0}]}"#]]).await;
    check(r#"{"depth":32}"#, expect![[r#"{"path":".","entries":[{"path":".git","kind":"folder"},{"path":".hidden","kind":"file","bytes":0},{"path":"B.md","kind":"file","bytes":2},{"path":"a","kind":"folder"},{"path":"a/deep","kind":"folder"},{"path":"a/deep/er","kind":"folder"},{"path":"a/deep/er/x","kind":"file","bytes":1},{"path":"a/z.md","kind":"file","bytes":0},{"path":"a.md","kind":"file","bytes":2},{"path":"b.md","kind":"file","bytes":3}]}"#]]).await;
    check(
        r#"{"path":".git","depth":3}"#,
        expect![[r#"{"path":".git","entries":[{"path":".git/x","kind":"file","bytes":0}]}"#]],
    )
    .await;
    check(r#"{"depth":0}"#, expect!["! tool.invalid_args: depth: expected 1 to 32"]).await;
    check(r#"{"path":"b.md"}"#, expect!["! file.not_a_folder: b.md is not a folder"]).await;
    check(r#"{"path":"nowhere/a"}"#, expect!["! file.not_found: nowhere/a does not exist"]).await;
    check(
        r#"{"recursive":true}"#,
        expect!["! tool.invalid_args: unknown field `recursive`, expected `path` or `depth` at line 1 column 12"],
    )
    .await;
}

#[tokio::test]
async fn a_large_folder_is_cut_with_counts() {
    let folder = Folder::with(&[]);
    for number in 0..1234 {
        std::fs::write(folder.root().join(format!("{number:04}")), b"").unwrap();
    }
    let answer = folder.ask(FileTool::List, "{}").await;
    let listing: Listing = serde_json::from_str(&answer).unwrap();
    assert_eq!(listing.entries.len(), 1000);
    assert_eq!(listing.entries[999].path, "0999");
    expect!["1000 of 1234 entries are shown; list a folder of them"]
        .assert_eq(listing.truncated.as_deref().unwrap_or_default());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn names_that_are_not_text_are_counted() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = Folder::with(&[("a", b"")]);
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    std::fs::write(folder.root().join(name), b"").unwrap();
    expect![[r#"{"path":".","entries":[{"path":"a","kind":"file","bytes":0}],"skipped":{"bad_names":1}}"#]]
        .assert_eq(&folder.ask(FileTool::List, "{}").await);
}

#[test]
fn a_wrong_root_is_named() {
    let error = |root: &Path| file_tools(root, &FileTool::ALL).map(drop).unwrap_err().to_string();
    expect!["the folder no/such/folder does not exist"].assert_eq(&error(Path::new("no/such/folder")));
    let folder = Folder::with(&[("a.md", b"")]);
    let file = error(&folder.root().join("a.md"));
    expect!["ROOT/a.md is not a folder"].assert_eq(&file.replace(&folder.root().display().to_string(), "ROOT"));
}

#[test]
fn offers_say_what_the_tools_take() {
    let folder = Folder::with(&[]);
    let tools = file_tools(&folder.root(), &FileTool::ALL).unwrap();
    let offers: Vec<_> = tools.iter().map(|tool| tool.offer().clone()).collect();
    assert_eq!(offers, file_offers(&FileTool::ALL));
    let classes: Vec<EffectClass> = tools.iter().map(|tool| tool.terms().class).collect();
    assert_eq!(classes, FileTool::ALL.map(FileTool::class));
    for tool in FileTool::ALL {
        assert_eq!(FileTool::from_name(tool.name()), Some(tool));
    }
    let text: String = offers.iter().map(|o| format!("{}: {}\n{}\n", o.name, o.description, o.parameters)).collect();
    expect![[r#"
        list_files: Lists the files and folders of a folder, sorted by name. Paths are relative to the one folder that can be seen.
        {"additionalProperties":false,"properties":{"depth":{"default":1,"description":"How many levels of folders to go down: 1 is the folder itself. Hidden folders are not entered.","format":"uint32","maximum":32,"minimum":1,"type":"integer"},"path":{"default":"","description":"The folder; without it, everything that can be seen.","type":"string"}},"type":"object"}
        read_file: Reads a text file, or a part of it, exactly as it is. A long file comes in parts: the answer says where the next one begins.
        {"additionalProperties":false,"properties":{"limit":{"description":"How many lines or bytes at most.","format":"uint64","minimum":1,"type":["integer","null"]},"offset":{"description":"Where to begin: a line, counted from 1, or with unit `bytes` a byte, counted from 0.","format":"uint64","minimum":0,"type":["integer","null"]},"path":{"description":"The file, as `list_files` names it.","type":"string"},"unit":{"default":"lines","description":"What offset and limit count.","enum":["lines","bytes"],"type":"string"}},"required":["path"],"type":"object"}
        search_files: Finds the lines that hold a text, word for word, in a file or in all files of a folder and the folders below it. Hidden files are left out.
        {"additionalProperties":false,"properties":{"ignore_case":{"default":false,"description":"Whether upper and lower case are the same.","type":"boolean"},"limit":{"default":50,"description":"How many matches to show, at most 200.","format":"uint64","maximum":200,"minimum":1,"type":"integer"},"path":{"default":"","description":"The file or folder to look into; without it, everything that can be seen.","type":"string"},"text":{"description":"The text to look for, within one line.","maxLength":1000,"minLength":1,"type":"string"}},"required":["text"],"type":"object"}
        write_file: Writes a whole text file: a new one, or in the place of the one that is there. Folders on the way are made. To change a part of a file, use `edit_file`.
        {"additionalProperties":false,"properties":{"content":{"description":"All that it is to hold, exactly; at most 1 MiB.","type":"string"},"must_not_exist":{"default":false,"description":"Whether it is an error when the file exists.","type":"boolean"},"path":{"description":"The file.","type":"string"}},"required":["path","content"],"type":"object"}
        edit_file: Replaces a text of a file by another one. The old text has to occur exactly once, white space included, or `all` has to be true. Everything else in the file stays as it is.
        {"additionalProperties":false,"properties":{"all":{"default":false,"description":"Whether to replace every occurrence.","type":"boolean"},"new":{"description":"The text to put in its place; empty to remove it.","type":"string"},"old":{"description":"The text that is there, exactly; with enough around it to occur once.","minLength":1,"type":"string"},"path":{"description":"The file.","type":"string"}},"required":["path","old","new"],"type":"object"}
    "#]].assert_eq(&text);
}

#[tokio::test]
async fn work_that_nobody_waits_for_stops() {
    let folder = Folder::with(TREE);
    let tool = folder.tool(FileTool::List);
    let cancelled = context();
    cancelled.cancel.cancel();
    assert_eq!(tool.call("{}", &cancelled).await.unwrap_err().failure.code, "tool.cancelled");
    let late = loopd_runtime::CallContext { timeout: Duration::ZERO, ..context() };
    assert_eq!(tool.call("{}", &late).await.unwrap_err().failure.code, "tool.timeout");
    assert!(call(tool.as_ref(), "{}").await.starts_with('{'));
}
