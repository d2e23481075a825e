//! `write_file`: whole or not at all, and what can be found out after a crash.

use crate::{Folder, call, context, context_of, said};
use expect_test::expect;
use loopd_kernel::EffectClass;
use loopd_runtime::ProbeAnswer;
use loopd_tools::FileTool;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::Duration;

#[tokio::test]
async fn files_are_made_and_replaced() {
    let folder = Folder::with(&[("a", b"old\n"), ("sub/b", b"b")]);
    let mut out = String::new();
    for args in [
        r#"{"path":"a","content":"new\n"}"#,
        r#"{"path":"x/y/z.txt","content":"deep"}"#,
        r#"{"path":"./x//y/w","content":""}"#,
        r#"{"path":"sub/b","content":"c","must_not_exist":true}"#,
        r#"{"path":"sub/c","content":"c","must_not_exist":true}"#,
        r#"{"path":"sub","content":"c"}"#,
        r#"{"path":"a/b","content":"c"}"#,
        r#"{"path":"","content":"c"}"#,
        r#"{"path":"../x","content":"c"}"#,
        r#"{"path":"/tmp/x","content":"c"}"#,
        r#"{"path":"n"}"#,
        r#"{"path":"n","content":"c","mode":1}"#,
    ] {
        out.push_str(&format!("{args}\n  {}\n", folder.ask(FileTool::Write, args).await));
    }
    expect![[r#"
        {"path":"a","content":"new\n"}
          {"path":"a","bytes":4,"created":false}
        {"path":"x/y/z.txt","content":"deep"}
          {"path":"x/y/z.txt","bytes":4,"created":true}
        {"path":"./x//y/w","content":""}
          {"path":"x/y/w","bytes":0,"created":true}
        {"path":"sub/b","content":"c","must_not_exist":true}
          ! file.exists: sub/b exists already; nothing was written
        {"path":"sub/c","content":"c","must_not_exist":true}
          {"path":"sub/c","bytes":1,"created":true}
        {"path":"sub","content":"c"}
          ! file.is_a_folder: sub is a folder; list it
        {"path":"a/b","content":"c"}
          ! file.not_a_folder: a in a/b is not a folder
        {"path":"","content":"c"}
          ! file.is_a_folder: . is a folder; list it
        {"path":"../x","content":"c"}
          ! file.outside: paths are relative to the folder of the tool, without `..`
        {"path":"/tmp/x","content":"c"}
          ! file.outside: paths are relative to the folder of the tool, without `..`
        {"path":"n"}
          ! tool.invalid_args: missing field `content` at line 1 column 12
        {"path":"n","content":"c","mode":1}
          ! tool.invalid_args: unknown field `mode`, expected one of `path`, `content`, `must_not_exist` at line 1 column 32
    "#]].assert_eq(&out);
    expect![[r#"
        a: "new\n"
        sub/
        sub/b: "b"
        sub/c: "c"
        x/
        x/y/
        x/y/w: ""
        x/y/z.txt: "deep"
    "#]]
    .assert_eq(&folder.seen());
}

/// MCP-06, of arguments: what was cut is not carried out in part.
#[tokio::test]
async fn cut_arguments_are_never_read() {
    let folder = Folder::with(&[("a", b"old\n")]);
    let whole = r#"{"path":"a","content":"a long new text","must_not_exist":false}"#;
    for end in 1..whole.len() {
        let answer = folder.ask(FileTool::Write, &whole[..end]).await;
        assert!(answer.starts_with("! tool.invalid_args"), "{end}: {answer}");
    }
    assert_eq!(folder.seen(), "a: \"old\\n\"\n");
}

#[tokio::test]
async fn what_is_too_large_is_refused_before_anything_happens() {
    let folder = Folder::with(&[]);
    let args = |bytes: usize| format!(r#"{{"path":"new/a","content":"{}"}}"#, "x".repeat(bytes));
    expect!["! file.too_large: the content has 1048577 bytes; at most 1048576 are written"]
        .assert_eq(&folder.ask(FileTool::Write, &args(1024 * 1024 + 1)).await);
    assert_eq!(folder.seen(), "");
    assert!(folder.ask(FileTool::Write, &args(1024 * 1024)).await.contains("1048576"));
}

#[tokio::test]
async fn a_replaced_file_keeps_its_permissions_and_readers_keep_theirs() {
    let folder = Folder::with(&[("a", b"old\n")]);
    let file = folder.root().join("a");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o750)).unwrap();
    std::fs::hard_link(&file, folder.root().join("b")).unwrap();
    let before = std::fs::metadata(&file).unwrap().ino();
    folder.ask(FileTool::Write, r#"{"path":"a","content":"new\n"}"#).await;
    let after = std::fs::metadata(&file).unwrap();
    assert_eq!(after.mode() & 0o7777, 0o750);
    assert_ne!(after.ino(), before, "it was overwritten in place");
    assert_eq!(std::fs::read(folder.root().join("b")).unwrap(), b"old\n");
}

/// How recovery sees the folder after a death at each point of a write.
#[tokio::test]
async fn after_a_crash_the_folder_says_what_it_can() {
    let args = r#"{"path":"a","content":"new"}"#;
    let key = context().key.0.to_string();
    let left = format!(".loopd-{}-1-0.tmp", &key[..16]);
    let only_new = r#"{"path":"a","content":"new","must_not_exist":true}"#;
    let mut out = String::new();
    for (what, args, files) in [
        ("never begun", args, vec![("a", "old")]),
        ("never begun, no file", args, vec![]),
        ("died while it wrote", args, vec![("a", "old"), (&left, "ne")]),
        ("died before the renaming", args, vec![("a", "old"), (&left, "new")]),
        ("died before the renaming, no file", args, vec![(&left, "new")]),
        ("landed", args, vec![("a", "new")]),
        ("landed and changed since", args, vec![("a", "newer")]),
        ("the file of another call", args, vec![("a", "old"), (".loopd-0123456789abcdef-1-0.tmp", "new")]),
        ("only new: died before the renaming", only_new, vec![(&left, "new")]),
        ("only new: landed, or somebody else's", only_new, vec![("a", "new")]),
        ("only new: nothing there", only_new, vec![]),
    ] {
        let files: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
        let folder = Folder::with(&files);
        let before = folder.seen();
        let answer = folder.tool(FileTool::Write).probe(args, &context()).await;
        assert_eq!(folder.seen(), before, "{what}: asking changed something");
        out.push_str(&format!("{what}: {answer:?}\n"));
        // What has not landed is sent again, and clears up behind the one that died.
        if answer == ProbeAnswer::NotLanded {
            call(folder.tool(FileTool::Write).as_ref(), args).await;
            assert_eq!(folder.seen(), "a: \"new\"\n", "{what}");
        }
    }
    expect![[r#"
        never begun: Unclear("a: it holds something else; it was never written, or somebody changed it since")
        never begun, no file: Unclear("a: it holds something else; it was never written, or somebody changed it since")
        died while it wrote: NotLanded
        died before the renaming: NotLanded
        died before the renaming, no file: NotLanded
        landed: Landed("{\"path\":\"a\",\"bytes\":3}")
        landed and changed since: Unclear("a: it holds something else; it was never written, or somebody changed it since")
        the file of another call: Unclear("a: it holds something else; it was never written, or somebody changed it since")
        only new: died before the renaming: NotLanded
        only new: landed, or somebody else's: Unclear("a: there is such a file; whether this call made it cannot be seen")
        only new: nothing there: Unclear("a: there is no such file; it was never made, or somebody removed it")
    "#]].assert_eq(&out);
}

#[test]
fn each_tool_says_its_class() {
    let folder = Folder::with(&[]);
    for tool in FileTool::ALL {
        let made = folder.tool(tool);
        assert_eq!(made.terms().class, tool.class());
        assert_eq!(made.landing_bound().is_some(), tool.class() == EffectClass::Probed, "{tool:?}");
    }
    assert_eq!(FileTool::ALL.map(|tool| tool.class().name()), ["read", "read", "read", "probed", "once"]);
    assert!(FileTool::READING.iter().all(|tool| tool.class() == EffectClass::Read));
}

#[tokio::test]
async fn what_nobody_waits_for_is_not_written() {
    let folder = Folder::with(&[("a", b"old\n")]);
    let (cancelled, late) = (context(), loopd_runtime::CallContext { timeout: Duration::ZERO, ..context() });
    cancelled.cancel.cancel();
    for (context, code) in [(cancelled, "! tool.cancelled"), (late, "! tool.timeout")] {
        for (tool, args) in [
            (FileTool::Write, r#"{"path":"a","content":"new\n"}"#),
            (FileTool::Edit, r#"{"path":"a","old":"old","new":"new"}"#),
        ] {
            let answer = said(folder.tool(tool).call(args, &context).await);
            assert!(answer.starts_with(code), "{answer}");
        }
    }
    assert_eq!(folder.seen(), "a: \"old\\n\"\n");
}

#[tokio::test]
async fn of_many_that_make_one_file_one_succeeds() {
    let folder = Folder::with(&[]);
    let tool = folder.tool(FileTool::Write);
    let made: Vec<_> = (0..16)
        .map(|number| {
            let tool = tool.clone();
            tokio::spawn(async move {
                let args = format!(r#"{{"path":"new/lock","content":"{number}","must_not_exist":true}}"#);
                said(tool.call(&args, &context_of(number)).await)
            })
        })
        .collect();
    let mut winners = Vec::new();
    for (number, one) in made.into_iter().enumerate() {
        match one.await.unwrap() {
            answer if answer.starts_with('{') => winners.push(number),
            answer => assert!(answer.starts_with("! file.exists"), "{answer}"),
        }
    }
    assert_eq!(folder.seen(), format!("new/\nnew/lock: \"{}\"\n", winners[0]));
    assert_eq!(winners.len(), 1);
}
