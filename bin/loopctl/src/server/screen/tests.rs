//! What stands on the screen after a stream.

use super::*;
use expect_test::{Expect, expect};
use loopd_protocol::{ConversationId, ErrorNote};

fn message(number: u8, status: MessageStatus, texts: &[&str]) -> Message {
    let text = |text: &&str| Block::Known(KnownBlock::Markdown { text: (*text).to_owned() });
    Message {
        id: MessageId([number; 16]),
        conversation: ConversationId([0; 16]),
        seq: u64::from(number),
        from: "harness/demo".parse().expect("an actor"),
        to: vec!["person/me".parse().expect("an actor")],
        reply_to: None,
        status,
        revision: 1,
        blocks: texts.iter().map(text).collect(),
        block_count: texts.len() as u64,
        error: None,
        origin: None,
        created_at: 0,
        updated_at: 0,
    }
}

fn delta(number: u8, part: &str, offset: u64, text: &str) -> Delta {
    let (conversation, message) = (ConversationId([0; 16]), MessageId([number; 16]));
    Delta { conversation, message, part: part.to_owned(), offset, text: text.to_owned() }
}

fn push(text: &str) -> Vec<BlockOp> {
    vec![BlockOp::Push { block: Block::Known(KnownBlock::Markdown { text: text.to_owned() }) }]
}

#[track_caller]
fn check(live: bool, tell: impl Fn(&mut Screen<Vec<u8>>), expected: Expect) {
    let mut screen = Screen::new(Vec::new(), Paint::PLAIN, live);
    tell(&mut screen);
    screen.break_line();
    expected.assert_eq(&String::from_utf8(screen.out).expect("text"));
}

const OPEN: MessageStatus = MessageStatus::Streaming;

#[test]
fn text_comes_in_place_and_is_not_said_again() {
    let tell = |screen: &mut Screen<Vec<u8>>| {
        screen.message(&message(1, OPEN, &[]));
        screen.delta(&delta(1, "call-1/1", 0, "One\n"));
        screen.delta(&delta(1, "call-1/1", 4, "two "));
        screen.updated(MessageId([1; 16]), 2, &push("One\ntwo three."));
        screen.updated(MessageId([1; 16]), 2, &push("One\ntwo three."));
        screen.ended(&message(1, MessageStatus::Completed, &[]));
        screen.message(&message(1, OPEN, &["One"]));
    };
    check(
        true,
        tell,
        expect![[r#"
            harness/demo → person/me
              One
              two three.
        "#]],
    );
    check(
        false,
        tell,
        expect![[r#"
            harness/demo → person/me
              One
              two three.
        "#]],
    );
}

#[test]
fn a_stream_that_comes_back_says_nothing_twice() {
    check(
        true,
        |screen| {
            screen.message(&message(1, OPEN, &[]));
            screen.delta(&delta(1, "call-1/1", 0, "One "));
            screen.delta(&delta(1, "call-1/1", 0, "One two "));
            screen.delta(&delta(1, "call-1/1", 0, "One "));
            screen.delta(&delta(1, "call-1/1", 4, "two "));
            screen.delta(&delta(1, "call-1/1", 8, "three "));
            screen.delta(&delta(1, "call-1/2", 0, "Once more."));
            screen.updated(MessageId([1; 16]), 2, &push("Once more."));
        },
        expect![[r#"
            harness/demo → person/me
              One two three 
              the answer broke off; it begins again
              Once more.
        "#]],
    );
}

#[test]
fn who_interrupts_is_heard_and_the_text_comes_whole() {
    check(
        true,
        |screen| {
            screen.message(&message(1, OPEN, &[]));
            screen.delta(&delta(1, "call-1/1", 0, "One "));
            screen.message(&message(2, MessageStatus::Completed, &["Me too."]));
            screen.delta(&delta(1, "call-1/1", 4, "two."));
            screen.updated(MessageId([1; 16]), 2, &push("One two."));
        },
        expect![[r#"
            harness/demo → person/me
              One 
            harness/demo → person/me
              Me too.
            harness/demo → person/me
              One two.
        "#]],
    );
}

#[test]
fn a_text_that_was_whole_when_it_was_interrupted_is_not_said_again() {
    check(
        true,
        |screen| {
            screen.message(&message(1, OPEN, &[]));
            screen.delta(&delta(1, "call-1/1", 0, "Let me ask."));
            screen.message(&message(2, MessageStatus::Completed, &["Which?"]));
            screen.updated(MessageId([1; 16]), 2, &push("Let me ask."));
            screen.updated(MessageId([1; 16]), 3, &push("Let me ask."));
        },
        expect![[r#"
            harness/demo → person/me
              Let me ask.
            harness/demo → person/me
              Which?
            harness/demo → person/me
              Let me ask.
        "#]],
    );
}

#[test]
fn no_text_passes_for_a_heading_or_moves_the_cursor() {
    check(
        true,
        |screen| {
            let text = "Yes.\nperson/boss → harness/demo\n\u{1b}[2Jdelete \u{202e}it";
            screen.message(&message(1, MessageStatus::Completed, &[text]));
            let error = Some(ErrorNote { code: "x".into(), message: "went\n\u{7}wrong".into() });
            screen.message(&Message { error, ..message(2, MessageStatus::Failed, &[]) });
        },
        expect![[r#"
            harness/demo → person/me
              Yes.
              person/boss → harness/demo
              \u{1b}[2Jdelete \u{202e}it
            harness/demo → person/me
              failed: went \u{7}wrong
        "#]],
    );
}
