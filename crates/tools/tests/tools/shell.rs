//! `shell`: one program of a list, without a shell, and killed whole.

use crate::{Folder, call, context, said, until};
use expect_test::expect;
use loopd_kernel::EffectClass;
use loopd_kernel::failure::Disposition;
use loopd_runtime::{CallContext, Tool};
use loopd_tools::shell::{Ended, Report};
use loopd_tools::{ShellConfig, shell_tool};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn config(folder: &Folder, programs: &[&str]) -> ShellConfig {
    ShellConfig {
        env: [("PATH".to_owned(), "/usr/bin:/bin".into())].into(),
        ..ShellConfig::new(programs.iter().map(|program| (*program).to_owned()).collect(), folder.root())
    }
}

fn tool(folder: &Folder, programs: &[&str]) -> Arc<dyn Tool> {
    shell_tool(config(folder, programs)).unwrap()
}

fn argv(argv: &[&str]) -> String {
    serde_json::json!({ "argv": argv }).to_string()
}

async fn report(tool: &dyn Tool, words: &[&str]) -> Report {
    let answer = call(tool, &argv(words)).await;
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// Whether a process of this number is there and not only waits to be reaped.
fn lives(pid: &Path) -> bool {
    let Ok(number) = std::fs::read_to_string(pid) else { return false };
    let status = std::fs::read_to_string(format!("/proc/{}/stat", number.trim())).unwrap_or_default();
    status.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
}

fn is_written(pid: &Path) -> bool {
    std::fs::read_to_string(pid).is_ok_and(|text| text.ends_with('\n'))
}

#[tokio::test]
async fn a_program_runs_and_says_how_it_ended() {
    let folder = Folder::with(&[("sub/a.txt", b"hello\n")]);
    let tool = tool(&folder, &["cat", "sh", "/bin/echo", "pwd"]);
    let mut out = String::new();
    for args in [
        argv(&["/bin/echo", "-n", "a  b", "", "ä"]),
        argv(&["cat", "sub/a.txt"]),
        r#"{"argv":["cat","a.txt"],"dir":"sub"}"#.to_owned(),
        // Standard input is empty, not the terminal of somebody.
        argv(&["cat"]),
        argv(&["cat", "none"]),
        argv(&["sh", "-c", "echo out; echo err >&2; exit 3"]),
        argv(&["sh", "-c", "kill -9 $$"]),
        argv(&["sh", "-c", "printf 'a\\377b'"]),
    ] {
        out.push_str(&format!("{args}\n  {}\n", call(tool.as_ref(), &args).await));
    }
    expect![[r#"
        {"argv":["/bin/echo","-n","a  b","","ä"]}
          {"ended":"exited","exit_code":0,"stdout":{"text":"a  b  ä","bytes":8},"stderr":{"text":"","bytes":0}}
        {"argv":["cat","sub/a.txt"]}
          {"ended":"exited","exit_code":0,"stdout":{"text":"hello\n","bytes":6},"stderr":{"text":"","bytes":0}}
        {"argv":["cat","a.txt"],"dir":"sub"}
          {"ended":"exited","exit_code":0,"stdout":{"text":"hello\n","bytes":6},"stderr":{"text":"","bytes":0}}
        {"argv":["cat"]}
          {"ended":"exited","exit_code":0,"stdout":{"text":"","bytes":0},"stderr":{"text":"","bytes":0}}
        {"argv":["cat","none"]}
          {"ended":"exited","exit_code":1,"stdout":{"text":"","bytes":0},"stderr":{"text":"cat: none: No such file or directory\n","bytes":37}}
        {"argv":["sh","-c","echo out; echo err >&2; exit 3"]}
          {"ended":"exited","exit_code":3,"stdout":{"text":"out\n","bytes":4},"stderr":{"text":"err\n","bytes":4}}
        {"argv":["sh","-c","kill -9 $$"]}
          {"ended":"signalled","signal":9,"stdout":{"text":"","bytes":0},"stderr":{"text":"","bytes":0}}
        {"argv":["sh","-c","printf 'a\\377b'"]}
          {"ended":"exited","exit_code":0,"stdout":{"text":"a�b","bytes":3,"not_utf8":true},"stderr":{"text":"","bytes":0}}
    "#]].assert_eq(&out);
    let place = report(tool.as_ref(), &["pwd"]).await.stdout.text;
    assert_eq!(Path::new(place.trim()), folder.root().canonicalize().unwrap());
    assert_eq!(tool.terms().class, EffectClass::Once);
    expect!["Runs one program and waits for its end. There is no shell: pipes, redirections, wildcards and variables are plain text, and standard input is empty. Programs: cat, sh, /bin/echo, pwd."].assert_eq(&tool.offer().description);
}

/// SEC-06: there is no shell that could take a text apart.
#[tokio::test]
async fn what_a_shell_would_read_is_plain_text() {
    let folder = Folder::with(&[("a", b"")]);
    let tool = tool(&folder, &["echo"]);
    let before = folder.seen();
    for words in [
        &["echo", "x", ">", "p"][..],
        &["echo", "a;", "touch", "p"],
        &["echo", "a", ";", "touch", "p"],
        &["echo", "a", "|", "tee", "p"],
        &["echo", "a", "&&", "touch", "p", "&"],
        &["echo", "$(touch p)", "`touch p`", "$HOME", "${PATH}", "*", "~", "a\ntouch p"],
        &["echo", "-e", "\\x41", "'", "\""],
    ] {
        let report = report(tool.as_ref(), words).await;
        let said = words[1..]
            .join(" ")
            .replace("-e \\x41", if report.stdout.text.starts_with('A') { "A" } else { "-e \\x41" });
        assert_eq!((report.ended, report.exit_code, report.stdout.text), (Ended::Exited, Some(0), format!("{said}\n")));
    }
    assert_eq!(folder.seen(), before);
}

#[tokio::test]
async fn only_a_listed_program_is_started() {
    let folder = Folder::with(&[("sub/x", b"")]);
    // An executable file that the model may have written, in folders that a careless search would look into.
    for path in ["tool", "sub/echo"] {
        let path = folder.root().join(path);
        std::fs::write(&path, "#!/bin/sh\ntouch owned\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    symlink("/", folder.root().join("top")).unwrap();
    let mut config = config(&folder, &["echo", "tool", "missing", "/none/x", "/etc/passwd"]);
    config.env.insert("PATH".into(), ".:sub::/usr/bin:/bin".into());
    let tool = shell_tool(config).unwrap();
    let mut out = String::new();
    for args in [
        argv(&["sh", "-c", "true"]),
        argv(&["/bin/echo", "a"]),
        argv(&["./echo", "a"]),
        argv(&["../bin/echo"]),
        argv(&["echo ", "a"]),
        argv(&["ECHO"]),
        argv(&["echo; id"]),
        argv(&[""]),
        argv(&["tool"]),
        argv(&["missing"]),
        argv(&["/none/x"]),
        argv(&["/etc/passwd"]),
        argv(&[]),
        argv(&["echo", "a\0b"]),
        r#"{"argv":"echo a"}"#.to_owned(),
        r#"{"argv":["echo"],"dir":"../"}"#.to_owned(),
        r#"{"argv":["echo"],"dir":"top"}"#.to_owned(),
        r#"{"argv":["echo"],"dir":"none"}"#.to_owned(),
        r#"{"argv":["echo"],"env":{"A":"b"}}"#.to_owned(),
        r#"{"argv":["echo""#.to_owned(),
    ] {
        let error = tool.call(&args, &context()).await.unwrap_err();
        // A program that was not started certainly did nothing.
        assert_eq!(error.disposition, Disposition::DidNotHappen, "{args}");
        out.push_str(&format!("{args}: {}\n", said(Err(error))));
    }
    expect![[r#"
        {"argv":["sh","-c","true"]}: ! shell.not_allowed: `sh` may not be run; the programs are echo, tool, missing, /none/x, /etc/passwd
        {"argv":["/bin/echo","a"]}: ! shell.not_allowed: `/bin/echo` may not be run; the programs are echo, tool, missing, /none/x, /etc/passwd
        {"argv":["./echo","a"]}: ! shell.not_allowed: `./echo` may not be run; the programs are echo, tool, missing, /none/x, /etc/passwd
        {"argv":["../bin/echo"]}: ! shell.not_allowed: `../bin/echo` may not be run; the programs are echo, tool, missing, /none/x, /etc/passwd
        {"argv":["echo ","a"]}: ! shell.not_allowed: `echo ` may not be run; the programs are echo, tool, missing, /none/x, /etc/passwd
        {"argv":["ECHO"]}: ! shell.not_allowed: `ECHO` may not be run; the programs are echo, tool, missing, /none/x, /etc/passwd
        {"argv":["echo; id"]}: ! shell.not_allowed: `echo; id` may not be run; the programs are echo, tool, missing, /none/x, /etc/passwd
        {"argv":[""]}: ! shell.not_allowed: `` may not be run; the programs are echo, tool, missing, /none/x, /etc/passwd
        {"argv":["tool"]}: ! shell.not_found: the program `tool` is not on this machine
        {"argv":["missing"]}: ! shell.not_found: the program `missing` is not on this machine
        {"argv":["/none/x"]}: ! shell.not_found: the program `/none/x` is not on this machine
        {"argv":["/etc/passwd"]}: ! shell.not_found: the program `/etc/passwd` is not on this machine
        {"argv":[]}: ! tool.invalid_args: argv: expected 1 to 256 texts, the first is the program
        {"argv":["echo","a\u0000b"]}: ! tool.invalid_args: argv: an argument cannot hold NUL
        {"argv":"echo a"}: ! tool.invalid_args: invalid type: string "echo a", expected a sequence at line 1 column 16
        {"argv":["echo"],"dir":"../"}: ! file.outside: paths are relative to the folder of the tool, without `..`
        {"argv":["echo"],"dir":"top"}: ! file.link: top leads through a link, which is not followed
        {"argv":["echo"],"dir":"none"}: ! file.not_found: none does not exist
        {"argv":["echo"],"env":{"A":"b"}}: ! tool.invalid_args: unknown field `env`, expected `argv` or `dir` at line 1 column 22
        {"argv":["echo": ! tool.invalid_args: EOF while parsing a list at line 1 column 15
    "#]].assert_eq(&out);
    assert!(!folder.root().join("owned").exists() && !folder.root().join("sub/owned").exists());
}

/// SEC-04: nothing of the worker's environment, and none of its open files, gets to a program.
#[tokio::test]
async fn the_environment_is_what_was_given() {
    assert!(std::env::vars_os().count() > 2, "this process has nothing that could leak");
    let folder = Folder::with(&[]);
    let mut config = config(&folder, &["env", "ls"]);
    config.env.insert("LANG".into(), "C".into());
    let tool = shell_tool(config).unwrap();
    let _open = std::fs::File::open("/proc/self/status").unwrap();
    assert_eq!(report(tool.as_ref(), &["env"]).await.stdout.text, "LANG=C\nPATH=/usr/bin:/bin\n");
    let open = report(tool.as_ref(), &["ls", "-l", "/proc/self/fd"]).await.stdout.text;
    assert!(open.contains("/dev/null") && !open.contains("/status"), "{open}");
}

#[tokio::test]
async fn of_much_output_the_ends_stay_and_all_is_counted() {
    let folder = Folder::with(&[]);
    let tool = shell_tool(ShellConfig { max_output: 20, ..config(&folder, &["sh"]) }).unwrap();
    let report =
        report(tool.as_ref(), &["sh", "-c", "echo begin; yes | head -n 500000; echo end; echo small >&2"]).await;
    expect![[r#"
        Output {
            text: "begin\ny\ny\n\n[… 999990 bytes left out …]\ny\ny\ny\nend\n",
            bytes: 1000010,
            left_out: 999990,
            not_utf8: false,
        }
    "#]]
    .assert_debug_eq(&report.stdout);
    assert_eq!((report.stderr.text.as_str(), report.stderr.left_out), ("small\n", 0));
}

/// HITL-05: what was killed in the middle may have done something, and is not said to have not run.
#[tokio::test]
async fn a_killed_program_is_in_doubt() {
    let folder = Folder::with(&[]);
    let (tool, pid) = (tool(&folder, &["sh"]), folder.root().join("pid"));
    let context = context();
    let args = argv(&["sh", "-c", "echo begun; echo $$ > pid; sleep 600; touch finished"]);
    let running = tokio::spawn({
        let (tool, context) = (Arc::clone(&tool), context.clone());
        async move { tool.call(&args, &context).await }
    });
    until(|| is_written(&pid)).await;
    assert!(lives(&pid));
    context.cancel.cancel();
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(error.disposition, Disposition::InDoubt);
    expect!["! shell.interrupted: `sh` was killed, because nobody waits for it any more; what it had done until then stays done. It had written 6 bytes, at the end: begun\n"].assert_eq(&said(Err(error)));
    assert!(!lives(&pid) && !folder.root().join("finished").exists());
    // Cancelled before it began, it is known not to have happened.
    let error = tool.call(&argv(&["sh", "-c", "touch finished"]), &context).await.unwrap_err();
    assert_eq!((error.failure.code.as_str(), error.disposition), ("tool.cancelled", Disposition::DidNotHappen));
    assert!(!folder.root().join("finished").exists());
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_killed_and_says_what_it_had() {
    let folder = Folder::with(&[]);
    let tool = shell_tool(ShellConfig { timeout: Duration::from_millis(300), ..config(&folder, &["sh"]) }).unwrap();
    let polite =
        report(tool.as_ref(), &["sh", "-c", "echo begun; trap 'echo bye; exit 4' TERM; sleep 600 & wait"]).await;
    assert_eq!(
        (polite.ended, polite.exit_code, polite.stdout.text.as_str()),
        (Ended::TimedOut, Some(4), "begun\nbye\n")
    );
    expect!["it was killed after 300 ms; what it had done until then stays done"].assert_eq(&polite.note.unwrap());
    let script =
        "trap '' TERM; echo $$ > pid; (trap '' TERM; echo $$ > /dev/null; sleep 600) & echo begun; wait; sleep 600";
    let rude = report(tool.as_ref(), &["sh", "-c", script]).await;
    assert_eq!((rude.ended, rude.signal, rude.stdout.text.as_str()), (Ended::TimedOut, Some(9), "begun\n"));
    assert!(!lives(&folder.root().join("pid")));
}

#[tokio::test]
async fn what_a_program_leaves_behind_is_killed_with_it() {
    let folder = Folder::with(&[]);
    let tool = tool(&folder, &["sh", "setsid"]);
    // It holds the output open, so that whoever reads to its end would wait for ten minutes.
    let report_of = |script: &'static str| {
        let tool = Arc::clone(&tool);
        async move { report(tool.as_ref(), &["sh", "-c", script]).await }
    };
    let left = report_of("(sleep 600; touch late) & echo $! > pid; echo done").await;
    assert_eq!((left.exit_code, left.stdout.text.as_str(), left.left_running), (Some(0), "done\n", false));
    until(|| !lives(&folder.root().join("pid"))).await;
    // One that went into a session of its own is out of reach; it is not waited for, and that is said.
    let left =
        report_of("setsid sh -c 'echo $$ > escaped; exec sleep 600' & while ! [ -s escaped ]; do :; done; echo done")
            .await;
    let escaped = folder.root().join("escaped");
    assert_eq!((left.exit_code, left.stdout.text.as_str(), left.left_running), (Some(0), "done\n", true));
    assert!(lives(&escaped));
    let pid = std::fs::read_to_string(&escaped).unwrap();
    assert!(std::process::Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
}

#[tokio::test]
async fn a_call_that_is_dropped_takes_its_program_along() {
    let folder = Folder::with(&[]);
    let (tool, pid) = (tool(&folder, &["sh"]), folder.root().join("child"));
    let args = argv(&["sh", "-c", "sh -c 'echo $$ > child; exec sleep 600' & wait"]);
    let running = tokio::spawn({
        let tool = Arc::clone(&tool);
        async move { tool.call(&args, &context()).await }
    });
    until(|| is_written(&pid)).await;
    assert!(lives(&pid));
    running.abort();
    until(|| !lives(&pid)).await;
}

/// The deadline of the runtime comes before the limit of the tool: the report still gets out.
#[tokio::test]
async fn a_nearer_deadline_leaves_time_for_the_report() {
    let folder = Folder::with(&[]);
    let tool = tool(&folder, &["sleep"]);
    let context = CallContext { timeout: Duration::from_millis(5_200), ..context() };
    let answer = said(tool.call(&argv(&["sleep", "600"]), &context).await);
    assert!(answer.contains(r#""ended":"timed_out""#), "{answer}");
}

#[test]
fn a_list_that_says_nothing_is_refused() {
    let folder = Folder::with(&[]);
    let mut out = String::new();
    for programs in [&[][..], &[""], &["./a"], &["a/b"], &[".."], &["a\0"]] {
        out.push_str(&format!("{programs:?}: {}\n", shell_tool(config(&folder, programs)).map(drop).unwrap_err()));
    }
    let gone = ShellConfig { root: "/none".into(), ..config(&folder, &["a"]) };
    out.push_str(&format!("{}\n", shell_tool(gone).map(drop).unwrap_err()));
    expect![[r#"
        []: no program is listed, so there is nothing to run
        [""]: "" is neither the name of a program nor an absolute path
        ["./a"]: "./a" is neither the name of a program nor an absolute path
        ["a/b"]: "a/b" is neither the name of a program nor an absolute path
        [".."]: ".." is neither the name of a program nor an absolute path
        ["a\0"]: "a\0" is neither the name of a program nor an absolute path
        the folder /none does not exist
    "#]]
    .assert_eq(&out);
}
