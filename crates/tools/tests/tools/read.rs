//! `read_file`.

use crate::Folder;
use expect_test::{Expect, expect};
use loopd_tools::FileTool;
use loopd_tools::files::{Content, Unit};

async fn check(files: &[(&str, &[u8])], args: &str, expected: Expect) {
    expected.assert_eq(&Folder::with(files).ask(FileTool::Read, args).await);
}

#[tokio::test]
async fn text_comes_exactly_as_it_is() {
    check(
        &[("a.md", b"one\r\ntwo \xc3\xa9\n")],
        r#"{"path":"a.md"}"#,
        expect![[
            r#"{"path":"a.md","text":"one\r\ntwo é\n","first_line":1,"first_byte":0,"bytes":12,"total_bytes":12}"#
        ]],
    )
    .await;
    check(
        &[("a.md", b"")],
        r#"{"path":"./a.md"}"#,
        expect![[r#"{"path":"a.md","text":"","first_line":1,"first_byte":0,"bytes":0,"total_bytes":0}"#]],
    )
    .await;
    check(
        &[("sub/a.md", b"\xef\xbb\xbfno end")],
        r#"{"path":"sub//a.md"}"#,
        expect![[r#"{"path":"sub/a.md","text":"﻿no end","first_line":1,"first_byte":0,"bytes":9,"total_bytes":9}"#]],
    )
    .await;
}

#[tokio::test]
async fn a_part_is_named_in_lines_or_bytes() {
    let file: &[(&str, &[u8])] = &[("a", b"one\ntwo\nthree\nfour")];
    check(file, r#"{"path":"a","offset":2,"limit":2}"#, expect![[r#"{"path":"a","text":"two\nthree\n","first_line":2,"first_byte":4,"bytes":10,"total_bytes":18,"truncated":{"left_bytes":4,"next_offset":4,"next_unit":"lines"}}"#]]).await;
    check(
        file,
        r#"{"path":"a","offset":4}"#,
        expect![[r#"{"path":"a","text":"four","first_line":4,"first_byte":14,"bytes":4,"total_bytes":18}"#]],
    )
    .await;
    check(
        file,
        r#"{"path":"a","offset":5}"#,
        expect![[r#"{"path":"a","text":"","first_line":5,"first_byte":18,"bytes":0,"total_bytes":18}"#]],
    )
    .await;
    check(file, r#"{"path":"a","offset":6}"#, expect!["! file.past_end: a has 4 lines"]).await;
    check(file, r#"{"path":"a","offset":0}"#, expect!["! tool.invalid_args: offset: lines are counted from 1"]).await;
    check(file, r#"{"path":"a","limit":0}"#, expect!["! tool.invalid_args: limit: expected at least 1"]).await;
    check(
        file,
        r#"{"path":"a","offset":5,"limit":6,"unit":"bytes"}"#,
        expect![[r#"{"path":"a","text":"wo\nthr","first_byte":5,"bytes":6,"total_bytes":18,"truncated":{"left_bytes":7,"next_offset":11,"next_unit":"bytes"}}"#]],
    )
    .await;
    check(
        file,
        r#"{"path":"a","offset":18,"unit":"bytes"}"#,
        expect![[r#"{"path":"a","text":"","first_byte":18,"bytes":0,"total_bytes":18}"#]],
    )
    .await;
    check(file, r#"{"path":"a","offset":19,"unit":"bytes"}"#, expect!["! file.past_end: a has 18 bytes"]).await;
    check(
        &[("a", "é".as_bytes())],
        r#"{"path":"a","offset":1,"unit":"bytes"}"#,
        expect!["! file.not_text: a is not UTF-8 text: byte 1 is not valid there"],
    )
    .await;
}

#[tokio::test]
async fn what_is_not_text_is_named_by_its_byte() {
    check(
        &[("a", b"\x7fELF\x00\x01")],
        r#"{"path":"a"}"#,
        expect!["! file.not_text: a is not UTF-8 text: byte 4 is NUL, as in binary files and UTF-16"],
    )
    .await;
    check(
        &[("a", b"caf\xe9 au lait")],
        r#"{"path":"a"}"#,
        expect!["! file.not_text: a is not UTF-8 text: byte 3 is not valid there"],
    )
    .await;
    check(
        &[("a", b"h\0i\0")],
        r#"{"path":"a"}"#,
        expect!["! file.not_text: a is not UTF-8 text: byte 1 is NUL, as in binary files and UTF-16"],
    )
    .await;
    check(
        &[("a", b"cut \xc3")],
        r#"{"path":"a"}"#,
        expect!["! file.not_text: a is not UTF-8 text: byte 4 is not valid there"],
    )
    .await;
}

#[tokio::test]
async fn wrong_arguments_are_typed_errors() {
    check(&[], "{}", expect!["! tool.invalid_args: missing field `path` at line 1 column 2"]).await;
    check(&[], r#"{"path":"a","lines":3}"#, expect!["! tool.invalid_args: unknown field `lines`, expected one of `path`, `offset`, `limit`, `unit` at line 1 column 19"]).await;
    check(
        &[],
        r#"{"path":"a","offset":-1}"#,
        expect!["! tool.invalid_args: invalid value: integer `-1`, expected u64 at line 1 column 23"],
    )
    .await;
    check(
        &[],
        r#"{"path":"a","unit":"pages"}"#,
        expect!["! tool.invalid_args: unknown variant `pages`, expected `lines` or `bytes` at line 1 column 26"],
    )
    .await;
    check(&[], r#"{"path":"#, expect!["! tool.invalid_args: EOF while parsing a value at line 1 column 8"]).await;
    check(&[], r#"{"path":"a"}"#, expect!["! file.not_found: a does not exist"]).await;
    check(&[("a/b", b"")], r#"{"path":"a"}"#, expect!["! file.is_a_folder: a is a folder; list it"]).await;
    check(&[("a", b"")], r#"{"path":"a/b"}"#, expect!["! file.not_a_folder: a in a/b is not a folder"]).await;
    check(&[], r#"["a",1,1,"lines"]"#, expect!["! tool.invalid_args: expected a JSON object"]).await;
    check(&[], r#"{"path":"."}"#, expect!["! file.is_a_folder: . is a folder; list it"]).await;
}

/// Follows `truncated` to the end and joins the parts.
async fn all_parts(folder: &Folder, path: &str) -> (String, usize) {
    let (mut text, mut parts, mut next) = (String::new(), 0, (1, Unit::Lines));
    loop {
        let unit = if next.1 == Unit::Lines { "lines" } else { "bytes" };
        let args = format!(r#"{{"path":"{path}","offset":{},"unit":"{unit}"}}"#, next.0);
        let answer = folder.ask(FileTool::Read, &args).await;
        let content: Content = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer}"));
        assert_eq!(content.first_byte, text.len() as u64);
        assert_eq!(content.bytes, content.text.len() as u64);
        assert!(answer.len() < 200_000);
        text.push_str(&content.text);
        parts += 1;
        match content.truncated {
            Some(cut) => {
                assert_eq!(cut.left_bytes, content.total_bytes - text.len() as u64);
                next = (cut.next_offset, cut.next_unit);
            }
            None => return (text, parts),
        }
    }
}

#[tokio::test]
async fn the_parts_of_a_long_file_join_to_the_file() {
    let lines: String = (0..5000).map(|n| format!("line {n} is fünf\n")).collect();
    let one_line = "é€𝄞".repeat(30_000);
    let mixed = format!("short\n{one_line}\nshort\n{lines}");
    for (text, parts) in [(lines, 5), (one_line, 5), (mixed, 6)] {
        let folder = Folder::with(&[("long", text.as_bytes())]);
        let (joined, count) = all_parts(&folder, "long").await;
        assert!(joined == text, "the parts differ from the file");
        assert_eq!(count, parts);
    }
}

#[tokio::test]
async fn a_huge_file_costs_no_more_than_a_part() {
    let folder = Folder::with(&[("huge", b"begin\n")]);
    // Sparse: ten gigabytes that occupy nothing.
    std::fs::OpenOptions::new().write(true).open(folder.root().join("huge")).unwrap().set_len(10 << 30).unwrap();
    let first = folder.ask(FileTool::Read, r#"{"path":"huge","limit":1}"#).await;
    expect![[r#"{"path":"huge","text":"begin\n","first_line":1,"first_byte":0,"bytes":6,"total_bytes":10737418240,"truncated":{"left_bytes":10737418234,"next_offset":2,"next_unit":"lines"}}"#]].assert_eq(&first);
    let far = folder.ask(FileTool::Read, r#"{"path":"huge","offset":1000}"#).await;
    expect!["! file.too_large: line 1000 of huge lies too far from its beginning; read it with unit bytes"]
        .assert_eq(&far);
}
