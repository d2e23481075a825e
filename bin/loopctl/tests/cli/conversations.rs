//! A person and a server: conversations, questions, calls, tokens; and every way in which there is no server.

use crate::check;
use crate::served::Served;
use crate::world::{Done, World};
use expect_test::{Expect, expect};
use std::net::TcpListener;

/// As [`check`], however long ago something is.
#[track_caller]
fn check_ago(world: &World, args: &[&str], expected: Expect) {
    let said = world.say(args).replace("TIME ago", "AGO");
    expected.assert_eq(&said.replace(" now ", " AGO ").replace("(now)", "(AGO)"));
}

#[track_caller]
fn ok(done: Done) -> String {
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    done.out
}

#[test]
fn the_first_minute() {
    let world = World::new();
    let _served = Served::start(&world);
    check(
        &world,
        &["conv", "list"],
        expect![[r#"
        err: no conversations
    "#]],
    );
    check(
        &world,
        &["conv", "new", "First try"],
        expect![[r#"
        CON1
    "#]],
    );
    check(
        &world,
        &["conv", "send", "last", "Hello.", "--to", "harness/demo", "--wait"],
        expect![[r#"
        (demo model) You said: Hello. I play a script, offline, and know nothing. Say `ask` and I ask you something; say `slow` and I take my time. Put the manifest of an agent into the folder of --agents to talk with a real one.
    "#]],
    );
    check(
        &world,
        &["conv", "show"],
        expect![[r#"
        CON1 “First try” with person/me
        person/me → harness/demo
          Hello.
        harness/demo → person/me
          (demo model) You said: Hello. I play a script, offline, and know nothing. Say `ask` and I ask you something; say `slow` and I take my time. Put the manifest of an agent into the folder of --agents to talk with a real one.
    "#]],
    );
    check_ago(
        &world,
        &["conv", "list"],
        expect![[r#"
        CONVERSATION TITLE MESSAGES LAST MEMBERS
        CON1 First try 2 AGO person/me
    "#]],
    );
    check_ago(
        &world,
        &["call", "list"],
        expect![[r#"
        CALL TARGET STATE TOKENS COST MADE PROMPT
        CALL1 demo succeeded 168 AGO Hello.
    "#]],
    );
    check(
        &world,
        &["actor", "list"],
        expect![[r#"
        ACTOR STATE WHAT IT DOES
        harness/asks online (demo)
        harness/demo online (demo) Plays a script, offline, and knows nothing. Shows how answers, questions and too…
        harness/endless online (demo)
        harness/quick online (demo)
        harness/slow online (demo)
    "#]],
    );
    check(
        &world,
        &["actor", "show", "harness/demo"],
        expect![[r#"
        harness/demo online (demo)
          Plays a script, offline, and knows nothing. Shows how answers, questions and tools look.
    "#]],
    );
    check(
        &world,
        &["actor", "show", "-o", "name"],
        expect![[r#"
        person/me
    "#]],
    );
    check(
        &world,
        &["call", "targets", "-o", "name"],
        expect![[r#"
        asks
        demo
        endless
        quick
        slow
    "#]],
    );
}

#[test]
fn a_question_is_asked_and_answered() {
    let world = World::new();
    let _served = Served::start(&world);
    ok(world.loopctl(&["conv", "new"]));
    check(
        &world,
        &["conv", "send", "last", "Ask me.", "--to", "harness/asks", "--wait"],
        expect![[r#"
        err: harness/asks asks: Which?
        err: answer with loopctl ask answer QST1 red | blue
        err: and then loopctl call show CALL1 --wait
        exit 5
    "#]],
    );
    check(
        &world,
        &["ask", "list"],
        expect![[r#"
        harness/asks asks: Which?
          answer with loopctl ask answer QST1 red | blue
    "#]],
    );
    check(
        &world,
        &["ask", "show", "last"],
        expect![[r#"
        QST1 open
        harness/asks asks: Which?
        err: answer with loopctl ask answer QST1 red | blue
    "#]],
    );
    check(
        &world,
        &["ask", "answer", "last", "purple"],
        expect![[r#"
        err: error[E-ANSWER]: the answer does not fit QST1: "purple" is not one of "red" or "blue"
        err: why: its schema is {"enum":["red","blue"]}
        err: fix: give an answer that fits; --json takes any JSON value
        exit 2
    "#]],
    );
    let question = ok(world.loopctl(&["ask", "list", "-o", "name"]));
    check(
        &world,
        &["ask", "answer", question.trim(), "blue"],
        expect![[r#"
        err: QST1 answered
    "#]],
    );
    check(
        &world,
        &["ask", "answer", question.trim(), "blue"],
        expect![[r#"
        err: QST1 answered
    "#]],
    );
    check(
        &world,
        &["ask", "answer", question.trim(), "red"],
        expect![[r#"
        err: error[E-SERVER-CONFLICT]: it has been answered
        err: why: the server says `question_closed`
        exit 8
    "#]],
    );
    check(
        &world,
        &["call", "show", "last", "--wait"],
        expect![[r#"
        You chose blue.
    "#]],
    );
    check(
        &world,
        &["ask", "list"],
        expect![[r#"
        err: no open questions
    "#]],
    );
    check(
        &world,
        &["conv", "show"],
        expect![[r#"
        CON1 with person/me
        person/me → harness/asks
          Ask me.
        harness/asks → person/me
          Let me ask.
          You chose blue.
        harness/asks
          asks: Which?
        person/me → harness/asks
          answers: blue
    "#]],
    );
}

#[test]
fn whoever_answers_may_wait_at_once() {
    let world = World::new();
    let _served = Served::start(&world);
    ok(world.loopctl(&["conv", "new"]));
    for round in 0..5 {
        let asked = world.loopctl(&["conv", "send", "last", "Ask me.", "--to", "harness/asks", "--wait"]);
        assert_eq!(asked.code, 5, "{}", asked.err);
        // Between the answer and the first step that has heard of it the call still waits.
        let both = format!("{0} ask answer last red && exec {0} call show last --wait", env!("CARGO_BIN_EXE_loopctl"));
        let mut command = std::process::Command::new("sh");
        let output = command.args(["-c", &both]).current_dir(world.path("")).env_clear().output().expect("it starts");
        let out = String::from_utf8_lossy(&output.stdout);
        assert_eq!((output.status.code(), out.as_ref()), (Some(0), "You chose red.\n"), "round {round}: {output:?}");
    }
}

#[test]
fn questions_of_runs_stand_beside_those_of_conversations() {
    let world = World::new();
    check(
        &world,
        &["run", "agent.yaml", "Which colour?"],
        expect![[r#"
        err: ? RUN1/q1 Which colour?
        err: one of red | blue
        err: answer loopctl ask answer RUN1/q1 red
        err: then loopctl run resume RUN1
        exit 5
    "#]],
    );
    let _served = Served::start(&world);
    ok(world.loopctl(&["conv", "new"]));
    assert_eq!(world.loopctl(&["conv", "send", "last", "Ask me.", "--to", "harness/asks", "--wait"]).code, 5);
    check(
        &world,
        &["ask", "list", "-o", "name"],
        expect![[r#"
        QST1
        RUN1/q1
    "#]],
    );
    // A name with a slash is one of the store, whoever runs.
    let names = ok(world.loopctl(&["ask", "list", "-o", "name"]));
    check(
        &world,
        &["ask", "answer", names.lines().last().expect("the run's"), "red"],
        expect![[r#"
        err: RUN1/q1 answered
    "#]],
    );
    check(
        &world,
        &["ask", "answer", "last", "red"],
        expect![[r#"
        err: QST1 answered
    "#]],
    );
}

#[test]
fn what_is_sent_again_is_said_once() {
    let world = World::new();
    let _served = Served::start(&world);
    let conv = ok(world.loopctl(&["conv", "new", "Once", "--key", "open-1"]));
    assert_eq!(ok(world.loopctl(&["conv", "new", "Once", "--key", "open-1"])), conv);
    let send = ["conv", "send", "last", "One.", "--to", "harness/quick", "--key", "one"];
    let first = ok(world.loopctl(&send));
    let again = world.loopctl(&send);
    assert_eq!((again.out.as_str(), again.err.as_str()), (first.as_str(), "it had been said before, with this key\n"));
    // Waiting for what was said before, and is done, works as well.
    let waited = world.loopctl(&[&send[..], &["--wait"]].concat());
    assert_eq!((waited.code, waited.out.as_str()), (0, "You said One.\n"));
    check(
        &world,
        &["conv", "send", "last", "Two.", "--to", "harness/quick", "--key", "one"],
        expect![[r#"
        err: error[E-SERVER-CONFLICT]: the key has said something else in this conversation
        err: why: the server says `key_taken`
        exit 8
    "#]],
    );
    let piped = world.piped(&["conv", "send", "last", "-", "--to", "harness/quick", "--wait"], "From\nstdin.\n");
    assert_eq!((piped.code, piped.out.as_str()), (0, "You said stdin.\n"), "{}", piped.err);
    check(
        &world,
        &["conv", "send", "last", " "],
        expect![[r#"
        err: error[E-INPUT]: the message is empty
        exit 2
    "#]],
    );
    check(
        &world,
        &["conv", "send", "last", "To nobody.", "--wait"],
        expect![[r#"
        err: it is said, and to nobody in particular: there is no answer to wait for
    "#]],
    );
    assert_eq!(ok(world.loopctl(&["conv", "show", "--all", "-o", "name"])).lines().count(), 5);
}

#[test]
fn a_conversation_is_kept_in_order() {
    let world = World::new();
    let _served = Served::start(&world);
    let conv = ok(world.loopctl(&["conv", "new", "Tea"]));
    let conv = conv.trim();
    world.write("order.txt", "tea: 2\n");
    ok(world.loopctl(&["conv", "send", conv, "Our order.", "--attach", "order.txt"]));
    check(
        &world,
        &["conv", "rename", &conv[..18], "Tea and coffee"],
        expect![[r#"
        err: CON1 is “Tea and coffee” now
    "#]],
    );
    check(
        &world,
        &["conv", "members", conv, "--add", "person/ann", "--add", "harness/quick"],
        expect![[r#"
        person/me organiser
        person/ann
        harness/quick
    "#]],
    );
    check(
        &world,
        &["conv", "members", conv, "--remove", "person/ann", "-o", "json"],
        expect![[r#"
        [
          "person/me",
          "harness/quick"
        ]
    "#]],
    );
    check_ago(
        &world,
        &["conv", "search", "order"],
        expect![[r#"
        CON1#1 person/me (AGO): Our order.
    "#]],
    );
    check(
        &world,
        &["conv", "search", "nobody"],
        expect![[r#"
        err: nothing was found
    "#]],
    );
    check(
        &world,
        &["conv", "export", conv],
        expect![[r#"
        # Tea and coffee

        ## 1 · person/me

        Our order.

        order.txt
    "#]],
    );
    check(
        &world,
        &["conv", "archive", conv],
        expect![[r#"
        err: CON1 is put away; take it out again with loopctl conv archive CON1 --undo
    "#]],
    );
    check(
        &world,
        &["conv", "list"],
        expect![[r#"
        err: no conversations
    "#]],
    );
    check(
        &world,
        &["conv", "list", "--archived", "-o", "name"],
        expect![[r#"
        CON1
    "#]],
    );
    check(
        &world,
        &["conv", "archive", conv, "--undo"],
        expect![[r#"
        err: CON1 is in the list again
    "#]],
    );
    check(
        &world,
        &["conv", "delete", "last", "--yes"],
        expect![[r#"
        err: error[E-USAGE]: `last` is not deleted
        err: why: which one is the last may have changed a moment ago
        err: fix: write its id; `loopctl conv list` has it
        exit 2
    "#]],
    );
    check(
        &world,
        &["conv", "delete", conv],
        expect![[r#"
        err: error[E-USAGE]: this would erase CON1 “Tea and coffee” with 1 message, for good
        err: fix: say so: loopctl conv delete CON1 --yes
        exit 2
    "#]],
    );
    check(
        &world,
        &["conv", "delete", conv, "--yes"],
        expect![[r#"
        err: CON1 is erased
    "#]],
    );
    check(
        &world,
        &["conv", "show", conv],
        expect![[r#"
        err: error[E-SERVER-NOT-FOUND]: there is no conversation CON1
        exit 8
    "#]],
    );
    check(
        &world,
        &["conv", "show", "con_0"],
        expect![[r#"
        err: error[E-SERVER-NOT-FOUND]: no conversation begins with `con_0`
        err: fix: list them with `loopctl conv list`
        exit 8
    "#]],
    );
    check(
        &world,
        &["conv", "show", "tea"],
        expect![[r#"
        err: error[E-SERVER-NOT-FOUND]: `tea` is no conversation
        err: why: it is named by its id, con_…, by the beginning of it, or by `last`
        err: fix: list them with `loopctl conv list`
        exit 8
    "#]],
    );
    check(
        &world,
        &["conv", "show"],
        expect![[r#"
        err: error[E-SERVER-NOT-FOUND]: there are no conversations yet
        err: fix: open one: loopctl conv new "First try"
        exit 8
    "#]],
    );
}

#[test]
fn calls_are_made_steered_waited_for_and_cancelled() {
    let world = World::new();
    let _served = Served::start(&world);
    ok(world.loopctl(&["conv", "new"]));
    let start = ["call", "start", "last", "quick", "Hello.", "--key", "k"];
    let call = ok(world.loopctl(&start));
    assert_eq!(ok(world.loopctl(&start)), call);
    let done = world.loopctl(&["call", "show", call.trim(), "--wait"]);
    assert_eq!((done.code, done.out.as_str()), (0, "You said Hello.\n"), "{}", done.err);
    check(
        &world,
        &["call", "start", "last", "nothing", "Hello."],
        expect![[r#"
        err: error[E-SERVER-NOT-FOUND]: there is no target nothing
        exit 8
    "#]],
    );
    check(
        &world,
        &["call", "start", "last", "endless", "Count.", "--wait", "--timeout", "1ms"],
        expect![[r#"
        err: error[E-TIMEOUT]: it is not done after TIME
        err: why: it goes on
        err: fix: see what comes of it: loopctl call show CALL1 --wait
        exit 124
    "#]],
    );
    check(
        &world,
        &["call", "steer", "last", "Faster."],
        expect![[r#"
        err: CALL1 will see it at its next step
    "#]],
    );
    check(
        &world,
        &["call", "cancel", "last", "--reason", "enough", "-o", "name"],
        expect![[r#"
        CALL1
    "#]],
    );
    check(
        &world,
        &["call", "show", "last", "--wait"],
        expect![[r#"
        err: CALL1 cancelled: person/me ended it: enough (call.cancelled)
        exit 5
    "#]],
    );
    check(
        &world,
        &["call", "steer", "last", "Faster."],
        expect![[r#"
        err: error[E-SERVER-CONFLICT]: the call has ended
        err: why: the server says `call_final`
        exit 8
    "#]],
    );
    check(
        &world,
        &["call", "resume", "last"],
        expect![[r#"
        err: error[E-USAGE]: which limit is to be higher?
        err: fix: say --max-iterations N, --max-tokens N or --max-usd DOLLARS
        exit 2
    "#]],
    );
    check(
        &world,
        &["call", "show", "hcl_00000000000000000000000000000000"],
        expect![[r#"
        err: error[E-SERVER-NOT-FOUND]: there is no call CALL2
        exit 8
    "#]],
    );
}

#[test]
fn what_others_write_does_nothing_to_the_terminal() {
    let world = World::new();
    let _served = Served::start(&world);
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}a\u{202e}b\nperson/boss → person/me\n\u{9b}31mred";
    ok(world.loopctl(&["conv", "new", "\u{1b}[31mtitle\u{202e}"]));
    ok(world.loopctl(&["conv", "send", "last", evil, "--to", "harness/quick", "--wait"]));
    for args in
        [&["conv", "list"][..], &["conv", "show"], &["conv", "search", "red"], &["call", "list"], &["call", "show"]]
    {
        let out = ok(world.loopctl(args));
        let bad = |character: &char| character.is_control() && *character != '\n' || *character == '\u{202e}';
        assert_eq!(out.chars().find(bad), None, "{args:?}\n{out}");
    }
    check(
        &world,
        &["conv", "show"],
        expect![[r#"
        CON1 “\u{1b}[31mtitle\u{202e}” with person/me
        person/me → harness/quick
          \u{1b}[2J\u{1b}]0;owned\u{7}a\u{202e}b
          person/boss → person/me
          \u{9b}31mred
        harness/quick → person/me
          You said \u{9b}31mred
    "#]],
    );
}

#[test]
fn without_a_server_nothing_is_sent_and_it_is_said_why() {
    let world = World::new();
    check(
        &world,
        &["conv", "list"],
        expect![[r#"
        err: error[E-SERVER-UNREACHABLE]: no server runs on ./.loopd
        err: fix: start one with `loopd up`, or name one with --server URL or LOOPD_SERVER
        exit 9
    "#]],
    );
    check(
        &world,
        &["ask", "show", "qst_1"],
        expect![[r#"
        err: error[E-SERVER-UNREACHABLE]: no server runs on ./.loopd
        err: fix: start one with `loopd up`, or name one with --server URL or LOOPD_SERVER
        exit 9
    "#]],
    );
    check(
        &world,
        &["conv", "list", "--server", "ftp://x", "--token-file", "agent.yaml"],
        expect![[r#"
        err: error[E-USAGE]: `ftp://x` is no address of a server: write http://HOST:PORT or https://HOST
        exit 2
    "#]],
    );
    check(
        &world,
        &["conv", "list", "--server", "http://127.0.0.1:1"],
        expect![[r#"
        err: error[E-SERVER-TOKEN]: there is no token for http://127.0.0.1:1
        err: fix: name a file with one with --token-file, or put it into LOOPD_TOKEN
        exit 2
    "#]],
    );
    world.write("token", "loopd_0000000000000000000000000000000000000000000\n");
    check(
        &world,
        &["conv", "list", "--server", "http://127.0.0.1:1", "--token-file", "token"],
        expect![[r#"
        err: error[E-SERVER-UNREACHABLE]: the server does not answer
        err: why: Connection refused
        err: fix: look whether a `loopd` runs there
        exit 9
    "#]],
    );
    check(
        &world,
        &["conv", "list", "--server", "http://127.0.0.1:1", "--token-file", "none"],
        expect![[r#"
        err: error[E-FILE]: none: No such file or directory
        exit 8
    "#]],
    );
    let served = Served::start(&world);
    check(
        &world,
        &["conv", "list", "--token-file", "token", "-o", "json"],
        expect![[r#"
        err: {"error":{"code":"E-SERVER-TOKEN","exit":2,"fix":"`loopctl token create` makes one for whoever is admin there","what":"the server does not know this token","why":"it was mistyped, revoked, has ended, or is for another server"}}
        exit 2
    "#]],
    );
    served.kill();
    let done = world.loopctl(&["conv", "list"]);
    assert_eq!(done.code, 9);
    assert!(done.err.contains("error[E-SERVER-UNREACHABLE]: no server runs on ./.loopd\n  why: the last one, process"));
}

#[test]
fn the_owners_token_goes_to_its_own_server_alone() {
    let world = World::new();
    let served = Served::start(&world);
    let stranger = TcpListener::bind("127.0.0.1:0").expect("a port");
    stranger.set_nonblocking(true).expect("set");
    let url = format!("http://{}", stranger.local_addr().expect("an address"));
    for url in [url.as_str(), "http://loopd.invalid"] {
        let done = world.loopctl(&["conv", "list", "--server", url]);
        assert_eq!(done.code, 2, "{}", done.err);
        let says =
            format!("error[E-SERVER-TOKEN]: there is no token for {url}\n  why: ./.loopd/admin.token goes only to");
        assert!(done.err.starts_with(&says), "{}", done.err);
    }
    assert!(stranger.accept().is_err(), "nobody came");
    ok(world.loopctl(&["conv", "list", "--server", &served.url]));
}

#[test]
fn tokens_are_made_and_revoked() {
    let world = World::new();
    let served = Served::start(&world);
    ok(world.loopctl(&["conv", "new", "Mine"]));
    let made = world.loopctl(&["token", "create", "--actor", "person/ann", "--role", "viewer", "--name", "to look"]);
    assert!(made.out.starts_with("loopd_") && made.out.lines().count() == 1);
    world.write("ann", &made.out);
    let ann = ["--token-file", "ann"];
    let with = |args: &[&str]| world.loopctl(&[args, &ann[..]].concat());
    assert_eq!(ok(with(&["actor", "show"])), format!("person/ann (viewer) at {}\n", served.url));
    assert_eq!(ok(with(&["conv", "list", "-o", "name"])), "", "she is no member");
    check(
        &world,
        &[&["conv", "new"][..], &ann].concat(),
        expect![[r#"
        err: error[E-SERVER-FORBIDDEN]: person/ann may not do this: it needs the role member or operator or harness
        err: why: the server says `forbidden`
        exit 6
    "#]],
    );
    check(
        &world,
        &[&["token", "list"][..], &ann].concat(),
        expect![[r#"
        err: error[E-SERVER-FORBIDDEN]: person/ann may not do this: it needs the role admin
        err: why: the server says `forbidden`
        exit 6
    "#]],
    );
    let tokens = ok(world.loopctl(&["token", "list", "-o", "json"]));
    assert!(!tokens.contains("loopd_"), "no secret is listed");
    check_ago(
        &world,
        &["token", "list"],
        expect![[r#"
        TOKEN ACTOR MAY STATE MADE FOR
        TOK1 person/me admin good AGO admin.token of this server's folder
        TOK2 person/ann viewer good AGO to look
    "#]],
    );
    let ids = ok(world.loopctl(&["token", "list", "-o", "name"]));
    check(
        &world,
        &["token", "revoke", ids.lines().last().expect("hers")],
        expect![[r#"
        err: TOK2 of person/ann is good for nothing now
    "#]],
    );
    check(
        &world,
        &[&["actor", "show"][..], &ann].concat(),
        expect![[r#"
        err: error[E-SERVER-TOKEN]: the server does not know this token
        err: why: it was mistyped, revoked, has ended, or is for another server
        err: fix: `loopctl token create` makes one for whoever is admin there
        exit 2
    "#]],
    );
}
