//! `edit_file`: exactly what was meant, or nothing.

use crate::{Folder, context_of, said};
use expect_test::expect;
use loopd_tools::FileTool;
use loopd_tools::files::Edited;
use std::os::unix::fs::PermissionsExt as _;

fn args(old: &str, new: &str, all: bool) -> String {
    serde_json::json!({ "path": "a", "old": old, "new": new, "all": all }).to_string()
}

/// The answer to an edit of `content`, and the content afterwards.
async fn edit(content: &str, old: &str, new: &str, all: bool) -> String {
    let folder = Folder::with(&[("a", content.as_bytes())]);
    let answer = folder.ask(FileTool::Edit, &args(old, new, all)).await;
    let after = std::fs::read_to_string(folder.root().join("a")).unwrap();
    assert_eq!(answer.starts_with('!'), after == content, "{answer}: {after:?}");
    assert_eq!(folder.seen().lines().count(), 1, "something was left behind");
    if answer.starts_with('!') { answer } else { format!("{after:?} {answer}") }
}

#[tokio::test]
async fn one_place_or_all_and_nothing_else_changes() {
    let mut out = String::new();
    for (content, old, new, all) in [
        ("a b c\n", "b", "x", false),
        ("a b c", "c", "x", false),
        ("one\r\ntwo\r\nthree", "one\ntwo", "1\n2", false),
        ("one\r\ntwo\r\n", "one\r\n", "1\r\n1b\n", false),
        ("one\r\ntwo\nthree\n", "two\n", "2\n2b\n", false),
        ("x x x", "x", "xx", true),
        ("aaaa", "aa", "b", true),
        ("\u{feff}one\n", "one", "1", false),
        ("keep\ncut\n", "cut\n", "", false),
        ("tab\tend  \n", "\tend  ", " ", false),
    ] {
        out.push_str(&format!("{content:?}: {}\n", edit(content, old, new, all).await));
    }
    expect![[r#"
        "a b c\n": "a x c\n" {"path":"a","replaced":1,"first_line":1,"bytes":6}
        "a b c": "a b x" {"path":"a","replaced":1,"first_line":1,"bytes":5}
        "one\r\ntwo\r\nthree": "1\r\n2\r\nthree" {"path":"a","replaced":1,"first_line":1,"bytes":11}
        "one\r\ntwo\r\n": "1\r\n1b\r\ntwo\r\n" {"path":"a","replaced":1,"first_line":1,"bytes":12}
        "one\r\ntwo\nthree\n": "one\r\n2\n2b\nthree\n" {"path":"a","replaced":1,"first_line":2,"bytes":16}
        "x x x": "xx xx xx" {"path":"a","replaced":3,"first_line":1,"bytes":8}
        "aaaa": "bb" {"path":"a","replaced":2,"first_line":1,"bytes":2}
        "\u{feff}one\n": "\u{feff}1\n" {"path":"a","replaced":1,"first_line":1,"bytes":5}
        "keep\ncut\n": "keep\n" {"path":"a","replaced":1,"first_line":2,"bytes":5}
        "tab\tend  \n": "tab \n" {"path":"a","replaced":1,"first_line":1,"bytes":5}
    "#]]
    .assert_eq(&out);
}

#[tokio::test]
async fn what_is_not_clear_is_an_error_that_says_what_is_there() {
    let source =
        "fn main() {\n    let total = price * count;\n    print(total);\n}\n\nfn other() {\n    print(total);\n}\n";
    let many = "x\n".repeat(25);
    let mut out = String::new();
    for (content, old, new, all) in [
        (source, "print(total);", "print(1);", false),
        (source, "let total = prize * count;", "let total = 1;", false),
        (source, "  let total = price * count;\n  print(total);", "", false),
        (source, "let total = price * count;\nreturn", "", false),
        (source, "something else entirely", "", true),
        (source, "", "x", false),
        (source, "print", "print", false),
        ("aaa", "aa", "b", false),
        (&many, "x", "y", false),
        ("one\r\ntwo\nthree\n", "one\ntwo", "", false),
    ] {
        out.push_str(&format!("{old:?}: {}\n", edit(content, old, new, all).await));
    }
    expect![[r#"
        "print(total);": ! edit.ambiguous: the old text occurs 2 times in a, at lines 3, 7; nothing was written. Give more of the text around the place that is meant, or set `all`
        "let total = prize * count;": ! edit.not_found: the old text occurs 0 times in a; nothing was written. The nearest is line 2: `let total = price * count;`
        "  let total = price * count;\n  print(total);": ! edit.not_found: the old text occurs 0 times in a; nothing was written. Line 2 holds its first line: `let total = price * count;`
        "let total = price * count;\nreturn": ! edit.not_found: the old text occurs 0 times in a; nothing was written. Line 2 holds its first line: `let total = price * count;`
        "something else entirely": ! edit.not_found: the old text occurs 0 times in a; nothing was written.
        "": ! tool.invalid_args: old: expected the text that is to be replaced; to write a file, use write_file
        "print": ! tool.invalid_args: new: it is the same as `old`; there is nothing to replace
        "aa": ! edit.ambiguous: the old text occurs 2 times in a, at lines 1, 1; nothing was written. Give more of the text around the place that is meant, or set `all`
        "x": ! edit.ambiguous: the old text occurs 25 times in a, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …; nothing was written. Give more of the text around the place that is meant, or set `all`
        "one\ntwo": ! edit.not_found: the old text occurs 0 times in a; nothing was written. Line 1 holds its first line: `one`
    "#]].assert_eq(&out);
}

#[tokio::test]
async fn what_is_no_text_or_too_large_is_left_alone() {
    let large = vec![b'x'; 4 * 1024 * 1024 + 1];
    let folder = Folder::with(&[("a", b"ab\xffcd"), ("nul", b"a\0b"), ("large", &large), ("sub/x", b"")]);
    let before = folder.seen();
    let mut out = String::new();
    for path in ["a", "nul", "large", "sub", "none", "none/x", ""] {
        let args = serde_json::json!({ "path": path, "old": "a", "new": "b" }).to_string();
        out.push_str(&format!("{path}: {}\n", folder.ask(FileTool::Edit, &args).await));
    }
    expect![[r#"
        a: ! file.not_text: a is not UTF-8 text: byte 2 is not valid there
        nul: ! file.not_text: nul is not UTF-8 text: byte 1 is NUL, as in binary files and UTF-16
        large: ! file.too_large: large is longer than 4194304 bytes
        sub: ! file.is_a_folder: sub is a folder; list it
        none: ! file.not_found: none does not exist
        none/x: ! file.not_found: none/x does not exist
        : ! file.is_a_folder: . is a folder; list it
    "#]]
    .assert_eq(&out);
    assert_eq!(folder.seen(), before);
    // Small before, too large after.
    let folder = Folder::with(&[("a", &vec![b'x'; 1000])]);
    let answer = folder.ask(FileTool::Edit, &args("x", &"y".repeat(5000), true)).await;
    expect!["! file.too_large: a would have 5000000 bytes; at most 4194304 are written"].assert_eq(&answer);
}

#[tokio::test]
async fn an_edited_file_keeps_its_permissions() {
    let folder = Folder::with(&[("a", b"old\n")]);
    let file = folder.root().join("a");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    folder.ask(FileTool::Edit, &args("old", "new", false)).await;
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o7777, 0o640);
}

/// Many edits at once: each says whether it happened, and what happened is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_edit_takes_another_one_away() {
    let folder = Folder::with(&[("a", b"end\n")]);
    let tool = folder.tool(FileTool::Edit);
    let writers: Vec<_> = (0..4_u64)
        .map(|writer| {
            let tool = tool.clone();
            tokio::spawn(async move {
                let mut refused = 0;
                for line in 0..25 {
                    let wanted = args("end\n", &format!("{writer}-{line}\nend\n"), false);
                    let mut attempt = 0;
                    loop {
                        let context = context_of(writer * 1_000_000 + line * 1_000 + attempt);
                        let answer = said(tool.call(&wanted, &context).await);
                        if answer.starts_with('{') {
                            break;
                        }
                        assert!(answer.starts_with("! file.changed"), "{answer}");
                        (attempt, refused) = (attempt + 1, refused + 1);
                    }
                }
                refused
            })
        })
        .collect();
    let mut refused = 0;
    for writer in writers {
        refused += writer.await.unwrap();
    }
    let text = std::fs::read_to_string(folder.root().join("a")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines.pop()), (101, Some("end")), "{refused} refused");
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 100);
    assert_eq!(folder.seen().lines().count(), 1);
}

#[tokio::test]
async fn the_answer_reads_back() {
    let folder = Folder::with(&[("a", b"1\n2\n3\n2\n")]);
    let answer = folder.ask(FileTool::Edit, &args("2", "two", true)).await;
    let read: Edited = serde_json::from_str(&answer).unwrap();
    assert_eq!(read, Edited { path: "a".into(), replaced: 2, first_line: 2, bytes: 12 });
}
