//! `conv watch`, beside a server that dies and comes back.

use crate::served::{Served, words};
use crate::world::{World, end, signal};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, ChildStdout};

/// The lines of a process that goes on.
struct Lines<R>(BufReader<R>);

impl<R: std::io::Read> Lines<R> {
    /// Reads lines until one has this in it; all of them.
    #[track_caller]
    fn until(&mut self, text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).expect("reads"), 0, "it ended before `{text}`: {lines:#?}");
            lines.push(line.trim_end_matches('\n').to_owned());
            if lines.last().is_some_and(|line| line.contains(text)) {
                return lines;
            }
        }
    }
}

fn started(world: &World, args: &[&str]) -> (Child, Lines<ChildStdout>, Lines<ChildStderr>) {
    let mut child = world.start(args);
    let out = Lines(BufReader::new(child.stdout.take().expect("a pipe")));
    let err = Lines(BufReader::new(child.stderr.take().expect("a pipe")));
    (child, out, err)
}

fn position(line: &str) -> u64 {
    let number = line.split(r#""position":"#).nth(1).expect("a position");
    number.split(',').next().expect("a number").parse().expect("a number")
}

#[test]
fn a_server_that_is_killed_and_comes_back_loses_nothing_and_doubles_nothing() {
    let world = World::new();
    let served = Served::start(&world);
    let addr = served.addr();
    let conv = world.loopctl(&["conv", "new"]).out;
    let (jsonl, mut events, _jsonl_err) =
        started(&world, &["conv", "watch", conv.trim(), "--from", "start", "-o", "jsonl"]);
    let (table, mut shown, mut notes) = started(&world, &["conv", "watch", conv.trim(), "--from", "start"]);
    assert_eq!(world.loopctl(&["conv", "send", "last", "Count.", "--to", "harness/slow"]).code, 0);
    let mut lines = events.until(r#""phase":"running""#);
    let mut text = shown.until("Count.");
    served.kill();
    notes.until("the connection is lost; waiting for the server");
    let again = Served::at(&world, &addr);
    notes.until("the server is back; nothing was missed");
    lines.extend(events.until(r#""type":"message_ended""#));
    text.extend(shown.until("60"));
    let positions: Vec<_> = lines.iter().map(|line| position(line)).collect();
    assert_eq!(positions, (1..=positions.len() as u64).collect::<Vec<_>>());
    let heading = |from: &str, to: &str| format!("{from} → {to}");
    assert_eq!(
        text,
        [
            heading("person/me", "harness/slow"),
            "  Count.".into(),
            heading("harness/slow", "person/me"),
            format!("  {}", words()),
        ]
    );
    signal(&table, "INT");
    let again_with =
        format!("no longer watching; everything goes on. Watch again with  loopctl conv watch {}", &conv[..18]);
    notes.until(&again_with);
    assert_eq!(end(table).code, 130);
    // Nothing comes from a conversation that is gone, and whoever watches it is told.
    assert_eq!(world.loopctl(&["conv", "delete", conv.trim(), "--yes"]).code, 0);
    events.until(r#""type":"conversation_deleted""#);
    assert_eq!(end(jsonl).code, 0);
    drop(again);
}

#[test]
fn watching_begins_where_it_is_told_to() {
    let world = World::new();
    let _served = Served::start(&world);
    let conv = world.loopctl(&["conv", "new"]).out;
    let conv = conv.trim();
    for text in ["One.", "Two."] {
        assert_eq!(world.loopctl(&["conv", "send", conv, text]).code, 0);
    }
    let asked = world.loopctl(&["conv", "send", conv, "Ask.", "--to", "harness/asks", "--wait"]);
    assert_eq!(asked.code, 5, "{}", asked.err);
    let from = |start: &str| {
        let (watch, mut events, _notes) = started(&world, &["conv", "watch", conv, "--from", start, "-o", "jsonl"]);
        let lines = events.until(r#""phase":"waiting""#);
        signal(&watch, "INT");
        assert_eq!(end(watch).code, 130);
        lines
    };
    let all = from("start");
    assert_eq!(from("3"), all[3..]);
    assert_eq!(position(&all[0]), 1);
    // What is open now is shown first: a message that goes on, and who is asked.
    let (watch, mut shown, _notes) = started(&world, &["conv", "watch"]);
    let open = shown.until("answer with");
    assert!(!open.iter().any(|line| line.contains("One.")), "{open:#?}");
    assert!(open.iter().any(|line| line == "  Let me ask."), "{open:#?}");
    assert_eq!(world.loopctl(&["ask", "answer", "last", "red"]).code, 0);
    let text = shown.until("You chose red.");
    assert!(text.iter().any(|line| line == "  answers: red"), "{text:#?}");
    signal(&watch, "TERM");
    let mut rest = String::new();
    shown.0.read_to_string(&mut rest).expect("reads");
    assert_eq!((end(watch).code, rest.as_str()), (5, ""));
}
