//! What the Transcript holds: capped results, attachments, and a summary in the place of what was said.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod steps;

use loopd_kernel::budget::Limits;
use loopd_kernel::machine::{Input, Settling};
use loopd_kernel::model::{Message, ModelCall, ModelReply};
use loopd_kernel::projection::Status;
use loopd_kernel::transcript::{Change, capped, changes};
use loopd_kernel::{Action, CallId, Decision, Event, Failure, Outcome, ToolCall};
use steps::{Bench, admission, landed, settle};

/// The messages as a runtime builds them from the Entries.
fn messages(bench: &Bench) -> Vec<String> {
    let mut said: Vec<(u64, String)> = Vec::new();
    for entry in &bench.entries {
        for change in changes(entry).unwrap() {
            match change {
                Change::Say(message) => said.push((entry.seq.0, show(&message))),
                Change::Compact { summary, after } => {
                    let first = said.first().cloned().map(|(_, text)| (after.0, text));
                    let late = said
                        .drain(..)
                        .filter(|(seq, text)| *seq > after.0 && text.starts_with("user"))
                        .collect::<Vec<_>>();
                    said = first.into_iter().chain([(after.0, show(&summary))]).chain(late).collect();
                }
            }
        }
    }
    assert_eq!(said.len() as u64, bench.projection().transcript.items, "the head counts what a request holds");
    said.into_iter().map(|(_, text)| text).collect()
}

fn show(message: &Message) -> String {
    match message {
        Message::User { text, attachments } if attachments.is_empty() => format!("user {text}"),
        Message::User { text, attachments } => format!("user {text} +{}", attachments.len()),
        Message::Assistant { parts } => format!("model {}", parts.len()),
        Message::Tool { id, text, error } => format!("{id}{} {text}", if *error { "!" } else { "" }),
    }
}

fn replied(call: u64, text: &str) -> Input {
    settle(call, Settling::Landed(serde_json::to_string(&ModelReply::text(text)).unwrap()))
}

fn aside() -> ModelCall {
    ModelCall { aside: true, ..ModelCall::transcript("m") }
}

/// A reply; then a summary is asked for, and takes the place of everything.
fn compacts(event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => Decision::model(ModelCall::transcript("m")),
        Event::IterationStarted { iteration: 2 } => Decision::model(aside()),
        Event::ModelReplied { reply, .. } if reply.joined_text() == "summary" => {
            Decision::none().and(Action::Compact("so far".into())).and(Action::CallModel(ModelCall::transcript("m")))
        }
        Event::IterationStarted { .. } => Decision::finish(&"done"),
        _ => Decision::none(),
    })
}

#[test]
fn a_summary_takes_the_place_of_what_it_has_read_and_nothing_else() {
    let mut bench = Bench::new(compacts, None);
    bench.start(Limits::default());
    bench.apply(replied(1, "long talk"));
    let before = bench.projection().transcript;
    assert_eq!(messages(&bench), ["user in", "model 1"]);
    // It comes while the summary is being written: no summary can hold it.
    bench.apply(Input::Signal { name: "message".into(), body: "\"and hurry\"".into() });
    bench.apply(replied(2, "summary"));
    assert_eq!(messages(&bench), ["user in", "user so far", "user and hurry"]);
    let after = bench.projection().transcript;
    assert_eq!(after.bytes, ("\"in\"".len() + "so far".len() + "\"and hurry\"".len()) as u64);
    assert!(after.start > before.start);
    bench.apply(replied(3, "answer"));
    assert_eq!(messages(&bench).last().unwrap(), "model 1");
}

#[test]
fn requests_over_different_summaries_differ() {
    let digest = |text: &str, late: Option<&str>| {
        let mut bench = Bench::new(compacts, None);
        bench.start(Limits::default());
        bench.apply(replied(1, text));
        if let Some(late) = late {
            bench.apply(Input::Signal { name: "message".into(), body: late.into() });
        }
        bench.apply(replied(2, "summary"));
        bench.projection().transcript.digest
    };
    assert_eq!(digest("a", None), digest("b", None), "what was replaced is not in it");
    assert_ne!(digest("a", None), digest("a", Some("\"x\"")));
    assert_ne!(digest("a", Some("\"x\"")), digest("a", Some("\"y\"")));
}

/// A message that nobody has answered is never only paraphrased, however often the conversation is summarised.
#[test]
fn what_nobody_has_answered_stays_word_for_word() {
    let mut bench = Bench::new(
        |event| {
            Ok(match event {
                Event::IterationStarted { iteration: 1 } => Decision::model(ModelCall::transcript("m")),
                Event::IterationStarted { iteration: 2 } => Decision::wait("message"),
                Event::SignalReceived { name, .. } if name == "shorten" => Decision::none()
                    .and(Action::Compact("so far".into()))
                    .and(Action::Wait { signals: vec!["message".into()], timeout_ms: None }),
                Event::SignalReceived { .. } => {
                    Decision::none().and(Action::Wait { signals: vec!["message".into()], timeout_ms: None })
                }
                _ => Decision::none(),
            })
        },
        None,
    );
    bench.start(Limits::default());
    bench.apply(replied(1, "hello"));
    let signal = |name: &str, body: &str| Input::Signal { name: name.into(), body: body.into() };
    bench.apply(signal("message", "\"rename foo\""));
    bench.apply(signal("shorten", "1"));
    assert_eq!(messages(&bench), ["user in", "user so far", "user rename foo"]);
    bench.apply(signal("shorten", "2"));
    assert_eq!(messages(&bench), ["user in", "user so far", "user rename foo"], "once");
}

/// A summary that is not the first of a decision would take what the decision says before it away.
#[test]
fn a_summary_comes_first_and_once() {
    let wrong: [steps::Step; 2] = [
        |_| Ok(Decision::none().and(Action::Note(Message::user("x"))).and(Action::Compact("so far".into()))),
        |_| Ok(Decision::none().and(Action::Compact("so".into())).and(Action::Compact("far".into()))),
    ];
    for step in wrong {
        let mut bench = Bench::new(step, None);
        bench.start(Limits::default());
        let Status::Ended(Outcome::Failed { failure }) = &bench.projection().status else { panic!("it failed") };
        assert_eq!(failure.code, "loop.compact");
    }
}

/// Wants a summary while a tool still has to reply to the model.
fn too_early(event: Event) -> Result<Decision, Failure> {
    let call = ToolCall { tool: "look".into(), args: "1".into(), reply_to: Some("use-1".into()), cap: None };
    Ok(match event {
        Event::IterationStarted { .. } => Decision::none().and(Action::CallTool(call)),
        Event::SignalReceived { .. } => Decision::none().and(Action::Compact("so far".into())),
        _ => Decision::none(),
    })
}

#[test]
fn a_summary_never_separates_a_result_from_its_use() {
    let mut bench = Bench::new(too_early, None);
    bench.start(Limits::default());
    bench.apply(Input::Signal { name: "message".into(), body: "1".into() });
    let Status::Ended(Outcome::Failed { failure }) = &bench.projection().status else { panic!("it failed") };
    assert_eq!(failure.code, "loop.compact");
}

fn capped_look(event: Event) -> Result<Decision, Failure> {
    let call = ToolCall { tool: "look".into(), args: "1".into(), reply_to: Some("use-1".into()), cap: Some(16) };
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => Decision::none().and(Action::CallTool(call)),
        Event::ToolReturned(returned) => Decision::none().and(Action::Speak(returned.output)),
        _ => Decision::wait("go"),
    })
}

#[test]
fn a_long_result_joins_with_its_ends_and_the_journal_keeps_all_of_it() {
    let whole = "0123456789abcdefghijklmnopqrstuvwxyz";
    let mut bench = Bench::new(capped_look, None);
    bench.start(Limits::default());
    bench.apply(landed(1, whole));
    let cut = "use-1 0123456789ab\n[bytes 12 to 32 of 36 are left out here; read_result reads them from call-1]\nwxyz";
    assert_eq!(messages(&bench)[1], cut);
    let settled = bench.entries.iter().find(|entry| entry.kind.name() == "settled").unwrap();
    assert_eq!(settled.payload, whole.as_bytes());
    let spoken = bench.entries.iter().find(|entry| entry.payload == whole.as_bytes() && entry.kind.name() == "decided");
    assert!(spoken.is_some(), "a transition sees all of it");
    assert_eq!(bench.projection().transcript.bytes, ("\"in\"".len() + cut.len() - "use-1 ".len()) as u64);
}

#[test]
fn a_cut_falls_between_characters() {
    for (text, cap, expected) in [
        ("short", 5, "short"),
        ("ab\u{90a3}cd\u{90a3}ef", 8, "ab\u{90a3}c\n[bytes 6 to 10 of 12 are left out here]\nef"),
        ("\u{90a3}\u{90a3}\u{90a3}", 4, "\u{90a3}\n[bytes 3 to 9 of 9 are left out here]\n"),
        ("\u{90a3}\u{90a3}", 0, "\n[bytes 0 to 6 of 6 are left out here]\n"),
        ("abcdef", 3, "\n[bytes 0 to 3 of 6 are left out here]\ndef"),
    ] {
        assert_eq!(capped(text, cap, None), expected, "{text} {cap}");
    }
}

#[test]
fn an_input_with_attachments_is_a_message_and_counts_an_image_once() {
    let image = "A".repeat(100_000);
    let with = format!(
        r#"{{"role":"user","text":"look","attachments":[{{"media_type":"image/png","data":"{image}"}},{{"media_type":"text/csv","name":"a.csv","data":"YSxi"}}]}}"#
    );
    let started = |input: &str| {
        let mut bench = Bench::new(compacts, None);
        bench.definition = steps::build(|_| Ok(Decision::wait("go")), "1", 1, loopd_kernel::Upgrade::Adopt);
        let mut admission = admission("in", Limits::default());
        admission.input = serde_json::to_string(input).unwrap();
        bench.apply(Input::Start(admission));
        bench.apply(Input::Signal { name: "message".into(), body: input.into() });
        bench
    };
    let bench = started(&with);
    assert_eq!(messages(&bench)[1], "user look +2");
    let said = bench.projection().transcript;
    let origin = said.origin.unwrap();
    assert_eq!(said.bytes - origin.bytes, "look".len() as u64 + 16_384 + 4);
    for other in [r#"{"attachments":3}"#, r#"{"role":"user","text":"x","attachments":[],"more":1}"#] {
        assert_eq!(messages(&started(other))[1], format!("user {other}"), "what only looks alike stays text");
    }
}

/// Asks a person; a signal gives that up.
fn asked(event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => Decision::ask("which?"),
        Event::SignalReceived { .. } => Decision::none()
            .and(Action::CancelCalls)
            .and(Action::Ask(loopd_kernel::question::Ask::Confirm { prompt: "sure?".into(), expires_in_ms: None })),
        _ => Decision::none(),
    })
}

#[test]
fn a_question_of_what_was_given_up_waits_for_nobody() {
    let mut bench = Bench::new(asked, None);
    bench.start(Limits::default());
    bench.apply(Input::Signal { name: "stop".into(), body: "1".into() });
    let open: Vec<_> = bench.projection().questions.iter().map(|open| open.id.0).collect();
    assert_eq!(open, [2], "the new one is none of what was given up");
}

/// A model, a look and a payment at once; a signal gives up what may be cut, and looks again.
fn interrupted(event: Event) -> Result<Decision, Failure> {
    let tool =
        |tool: &str, id: &str| ToolCall { tool: tool.into(), args: "1".into(), reply_to: Some(id.into()), cap: None };
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => Decision::model(ModelCall::prompt("m", "x"))
            .and(Action::CallTool(tool("look", "use-1")))
            .and(Action::CallTool(tool("pay", "use-2"))),
        Event::SignalReceived { .. } => {
            Decision::none().and(Action::CancelCalls).and(Action::CallTool(tool("look", "use-3")))
        }
        Event::ToolReturned(returned) => Decision::none().and(Action::Speak(returned.tool)),
        Event::CallFailed { .. } => panic!("nobody hears of what was given up"),
        _ => Decision::none(),
    })
}

#[test]
fn what_may_be_cut_is_given_up_in_the_commit_that_wants_it() {
    let mut bench = Bench::new(interrupted, None);
    assert_eq!(bench.start(Limits::default()).len(), 3);
    let permits = bench.apply(Input::Signal { name: "stop".into(), body: "1".into() });
    assert_eq!(permits.iter().map(loopd_kernel::Permit::call).collect::<Vec<_>>(), [CallId(4)]);
    let open: Vec<_> = bench.projection().open.iter().map(|call| call.id.0).collect();
    assert_eq!(open, [3, 4], "the payment may have happened; the new look is none of what was given up");
    assert_eq!(messages(&bench)[1..], ["use-1! interrupted"]);
    bench.apply(landed(3, "paid"));
    assert_eq!(messages(&bench).last().unwrap(), "use-2 paid");
}
