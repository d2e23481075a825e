//! `search_files`.

use crate::Folder;
use expect_test::{Expect, expect};
use loopd_tools::FileTool;
use loopd_tools::files::Found;

const TREE: &[(&str, &[u8])] = &[
    ("b.md", b"The cat.\r\nA Cat sat.\n"),
    ("a/z.md", b"no\ncat cat\n"),
    ("a/ü.md", "Größe, GRÖSSE, CAT".as_bytes()),
    (".git/x", b"cat"),
    ("bin", b"cat\0"),
    ("latin", b"cat caf\xe9"),
];

async fn check(args: &str, expected: Expect) {
    expected.assert_eq(&Folder::with(TREE).ask(FileTool::Search, args).await);
}

#[tokio::test]
async fn matches_come_by_path_and_line() {
    check(r#"{"text":"cat"}"#, expect![[r#"{"matches":[{"path":"a/z.md","line":2,"text":"cat cat"},{"path":"b.md","line":1,"text":"The cat."}],"files":3,"skipped":{"hidden":1,"not_text":2}}"#]]).await;
    check(r#"{"text":"cat","ignore_case":true,"path":"a"}"#, expect![[r#"{"matches":[{"path":"a/z.md","line":2,"text":"cat cat"},{"path":"a/ü.md","line":1,"text":"Größe, GRÖSSE, CAT"}],"files":2}"#]]).await;
    check(r#"{"text":"größe","ignore_case":true}"#, expect![[r#"{"matches":[{"path":"a/ü.md","line":1,"text":"Größe, GRÖSSE, CAT"}],"files":3,"skipped":{"hidden":1,"not_text":2}}"#]]).await;
    check(
        r#"{"text":"cat","path":"b.md"}"#,
        expect![[r#"{"matches":[{"path":"b.md","line":1,"text":"The cat."}],"files":1}"#]],
    )
    .await;
    check(
        r#"{"text":"cat","path":".git"}"#,
        expect![[r#"{"matches":[{"path":".git/x","line":1,"text":"cat"}],"files":1}"#]],
    )
    .await;
    check(r#"{"text":"cat","path":"bin"}"#, expect![[r#"{"matches":[],"files":0,"skipped":{"not_text":1}}"#]]).await;
    check(r#"{"text":"ca.*t"}"#, expect![[r#"{"matches":[],"files":3,"skipped":{"hidden":1,"not_text":2}}"#]]).await;
    check(r#"{"text":"cat","limit":1}"#, expect![[r#"{"matches":[{"path":"a/z.md","line":2,"text":"cat cat"}],"files":3,"truncated":"1 of 2 matches are shown; narrow the text or the path","skipped":{"hidden":1,"not_text":2}}"#]]).await;
}

#[tokio::test]
async fn wrong_arguments_are_typed_errors() {
    check("{}", expect!["! tool.invalid_args: missing field `text` at line 1 column 2"]).await;
    check(r#"{"text":""}"#, expect!["! tool.invalid_args: text: expected 1 to 1000 characters of one line"]).await;
    check(r#"{"text":"a\nb"}"#, expect!["! tool.invalid_args: text: expected 1 to 1000 characters of one line"]).await;
    check(r#"{"text":"a","limit":201}"#, expect!["! tool.invalid_args: limit: expected 1 to 200"]).await;
    check(r#"{"text":"a","path":"c"}"#, expect!["! file.not_found: c does not exist"]).await;
    check(r#"{"text":"a","regex":true}"#, expect!["! tool.invalid_args: unknown field `regex`, expected one of `text`, `path`, `ignore_case`, `limit` at line 1 column 19"]).await;
}

#[tokio::test]
async fn a_long_line_is_shown_around_the_match() {
    let line = format!("{}needle{}", "é".repeat(5000), "x".repeat(5000));
    let folder = Folder::with(&[("long", line.as_bytes())]);
    for text in ["needle", "NEEDLE"] {
        let args = format!(r#"{{"text":"{text}","ignore_case":true}}"#);
        let found: Found = serde_json::from_str(&folder.ask(FileTool::Search, &args).await).unwrap();
        let [found] = found.matches.as_slice() else { panic!("one match") };
        assert!(found.cut && found.text.contains("needle"));
        assert_eq!(found.text.chars().count(), 400);
    }
}

#[tokio::test]
async fn too_large_files_are_counted_and_not_read() {
    let folder = Folder::with(&[("a", b"cat")]);
    std::fs::File::create(folder.root().join("huge")).unwrap().set_len(10 << 30).unwrap();
    expect![[r#"{"matches":[{"path":"a","line":1,"text":"cat"}],"files":1,"skipped":{"too_large":1}}"#]]
        .assert_eq(&folder.ask(FileTool::Search, r#"{"text":"cat"}"#).await);
}
