//! What an Operator does for an answer, as `conv` and `call` show it: with the Router of `loopd up` and its demo model.

use crate::served::Served;
use crate::world::{World, end};
use expect_test::{Expect, expect};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

const ASK: [&str; 7] = ["conv", "send", "last", "Tea or coffee?", "--to", "operator/router", "--wait"];

/// A question to the Router, answered.
fn answered() -> (World, Served) {
    let world = World::new();
    let served = Served::routed(&world);
    assert_eq!(world.loopctl(&["conv", "new", "Drinks"]).code, 0);
    let done = world.loopctl(&ASK);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(done.out.contains("now I sum them up"), "{}", done.out);
    (world, served)
}

/// The first words of each line: what models say is theirs.
#[track_caller]
fn check_lines(world: &World, args: &[&str], expected: Expect) {
    let said = world.say(args);
    let cut = |line: &str| format!("{}\n", line.chars().take(76).collect::<String>().trim_end());
    expected.assert_eq(&said.lines().map(cut).collect::<String>());
}

#[test]
fn work_is_shown_between_question_and_answer() {
    let (world, _served) = answered();
    check_lines(
        &world,
        &["conv", "show", "--work"],
        expect![[r#"
        CON1 “Drinks” with person/me, operator/router
        person/me → operator/router
          Tea or coffee?
            plan on demo: succeeded · TIME · 372 tokens
            operator/router/plan → operator/router
              {"kind":"complex","tasks":[{"agent":"demo","prompt":"What speaks for i
            operator/router
              2 tasks, done side by side.
              1. What speaks for it (demo)
              2. What speaks against it (demo)
              {
                "kind": "complex",
                "tasks": [
                  {
                    "agent": "demo",
                    "prompt": "What speaks for it?\npro: Tea or coffee?",
                    "title": "What speaks for it"
                  },
                  {
                    "agent": "demo",
                    "prompt": "What speaks against it?\ncontra: Tea or coffee?",
                    "title": "What speaks against it"
                  }
                ]
              }
            work/1 on demo: succeeded · TIME · 179 tokens
            harness/demo → operator/router
              (demo model) You said: pro: Tea or coffee? I play a script, offline, a
            work/2 on demo: succeeded · TIME · 182 tokens
            harness/demo → operator/router
              (demo model) You said: contra: Tea or coffee? I play a script, offline
            sum on demo: succeeded · TIME · 392 tokens
            operator/router/synthesise → operator/router
              (demo model) You asked: Tea or coffee? I was asked to plan, so I plann
        operator/router → person/me
          (demo model) You asked: Tea or coffee? I was asked to plan, so I planned;
    "#]],
    );
    let plain = world.loopctl(&["conv", "show", "-o", "jsonl"]).out.lines().count();
    let with_work = world.loopctl(&["conv", "show", "--work", "-o", "jsonl"]).out;
    assert_eq!((plain, with_work.lines().count()), (2, 7));
    let limited = world.loopctl(&["conv", "show", "--work", "--limit", "1", "-o", "name"]).out;
    assert_eq!(limited.lines().count(), 1, "what was done before the first message that is shown is left out");
}

#[test]
fn what_the_router_does_is_counted() {
    let (_world, served) = answered();
    let mut stream = TcpStream::connect(served.addr()).expect("a connection");
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").expect("asked");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let count = |name: &str| {
        let line =
            text.lines().find_map(|line| line.strip_prefix(&format!("loopd_operator_{name}{{operator=\"router\"}} ")));
        line.unwrap_or_else(|| panic!("{name}: {text}")).parse::<u64>().expect("a number")
    };
    // To plan; the plan with its two calls; to sum up; the answer.
    assert!(count("turns_total") >= 4 && count("acts_total") >= 6, "{text}");
    assert_eq!(count("failures_total"), 0);
}

#[test]
fn the_calls_of_the_work_are_listed_with_their_steps() {
    let (world, _served) = answered();
    let said = world.say(&["call", "list", "--work"]);
    let steps: Vec<_> =
        said.lines().map(|line| line.split(' ').skip(1).take(3).collect::<Vec<_>>().join(" ")).collect();
    let (head, mut rest) = (steps[0].clone(), steps[1..].to_vec());
    // Two that were made in one commit are in no order.
    rest.sort();
    assert_eq!(head, "STEP TARGET STATE");
    assert_eq!(rest, ["plan demo succeeded", "sum demo succeeded", "work/1 demo succeeded", "work/2 demo succeeded"]);
    assert_eq!(world.loopctl(&["call", "list"]).err, "no calls\n");
    assert_eq!(world.loopctl(&["call", "list", "--work", "--limit", "3", "-o", "name"]).out.lines().count(), 3);
}

#[test]
fn progress_goes_to_stderr_and_leaves_stdout_alone() {
    let world = World::new();
    let _served = Served::routed(&world);
    assert_eq!(world.loopctl(&["conv", "new", "Drinks"]).code, 0);
    let mut args = ASK.to_vec();
    args.extend(["--progress", "-o", "json"]);
    let done = world.loopctl(&args);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.starts_with('{') && !done.out.contains("succeeded"), "{}", done.out);
    let told = |what: &str| done.err.lines().filter(|line| line.contains(what)).count();
    for (what, times) in [
        ("… plan on demo: running", 1),
        ("… plan on demo: succeeded · ", 1),
        ("… 2 tasks, done side by side.", 1),
        ("… work/1 on demo: succeeded · ", 1),
        ("… work/2 on demo: succeeded · ", 1),
        ("… sum on demo: succeeded · ", 1),
    ] {
        assert_eq!(told(what), times, "{what}: {}", done.err);
    }
    // Of the work on an earlier answer nothing is told again.
    let again = world.loopctl(&args);
    assert_eq!((again.code, again.err.matches("… plan on demo: succeeded").count()), (0, 1), "{}", again.err);
}

#[test]
fn who_waits_is_told_that_a_person_is_asked_at_work() {
    let world = World::new();
    let _served = Served::routed(&world);
    assert_eq!(world.loopctl(&["conv", "new"]).code, 0);
    let send = ["conv", "send", "last", "ask me something", "--to", "operator/router", "--wait"];
    expect![[r#"
        err: harness/demo asks: Which colour do you like best?
        err: answer with loopctl ask answer QST1 red | green | blue
        err: and then loopctl conv watch CON1
        exit 5
    "#]]
    .assert_eq(&world.say(&send));
}

#[test]
fn a_call_tells_its_progress_too_where_that_is_wished() {
    let world = World::new();
    let _served = Served::start(&world);
    assert_eq!(world.loopctl(&["conv", "new"]).code, 0);
    let send = ["conv", "send", "last", "Hi.", "--to", "harness/quick", "--wait"];
    assert_eq!(world.loopctl(&send).err, "");
    let done = world.loopctl(&[&send[..], &["--progress"]].concat());
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "You said Hi.\n", "… quick: running\n"));
    assert_eq!(world.loopctl(&["conv", "send", "last", "Hi.", "--progress"]).code, 2);
}

#[test]
fn watching_shows_work_that_begins_meanwhile() {
    let world = World::new();
    let _served = Served::routed(&world);
    assert_eq!(world.loopctl(&["conv", "new", "Drinks"]).code, 0);
    let mut watch = world.start(&["conv", "watch", "--from", "start", "--work"]);
    let mut shown = BufReader::new(watch.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    assert_eq!(world.loopctl(&ASK).code, 0);
    let mut lines: Vec<String> = Vec::new();
    // Feeds are not in step: both the last of the work and the answer have to come.
    while !(lines.iter().any(|line| line == "operator/router → person/me")
        && lines.iter().any(|line| line.starts_with("    sum on demo: succeeded")))
    {
        lines.push(shown.next().expect("it goes on"));
    }
    for line in ["    plan on demo: running", "    operator/router", "      2 tasks, done side by side."] {
        assert!(lines.iter().any(|one| one == line), "`{line}` in {lines:#?}");
    }
    watch.kill().expect("killed");
    end(watch);
}
