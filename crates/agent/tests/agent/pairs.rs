//! Whatever a model says and in whatever order its tools return: every tool use has exactly one result before the
//! model is called again, the Run replays strictly, and State stays small.

use crate::harness::{Driven, Setup};
use loopd_kernel::machine::{Input, Settling};
use loopd_kernel::model::{Message, Part};
use loopd_kernel::projection::Status;
use loopd_kernel::question::QuestionEnd;
use loopd_kernel::transcript::{self, Change};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn part() -> impl Strategy<Value = Part> {
    let id = prop_oneof!["c[1-4]", Just(String::new())];
    let name = prop_oneof!["read_file", "now", "pay", "ask", "nope"];
    let args = prop_oneof![
        Just(String::new()),
        Just(r#"{"path":"a"}"#.to_owned()),
        Just(r#"{"id":1e400}"#.to_owned()),
        Just(r#"{"id":9007199254740993}"#.to_owned()),
        Just(r#"{"question":"Why?"}"#.to_owned()),
        Just("{".to_owned()),
        "[\\[\\]{}\":,0-9a-c]{0,12}",
    ];
    prop_oneof![
        4 => (id, name, args).prop_map(|(id, name, args)| Part::ToolUse { id, name, args }),
        1 => "[a-z \n]{0,8}".prop_map(|text| Part::Text { text }),
        1 => Just(Part::Reasoning { opaque: "{}".into(), origin: "openai/m".into() }),
    ]
}

fn reply() -> impl Strategy<Value = (&'static str, Vec<Part>)> {
    let stop = prop_oneof![6 => Just("tool_use"), 2 => Just("end"), 1 => Just("length")];
    (stop, prop::collection::vec(part(), 0..6))
}

/// Settles what is open, in the order that `choices` draws, with a message from a person in between.
fn settle(run: &mut Driven, choices: &mut impl Iterator<Item = u8>) {
    loop {
        let projection = run.machine.projection();
        let tools: Vec<_> = projection.open.iter().map(|call| (call.id, call.target.name() == "openai/m")).collect();
        if tools.iter().any(|(_, model)| *model) || (tools.is_empty() && projection.questions.is_empty()) {
            return;
        }
        let (count, choice) = (tools.len() + projection.questions.len(), usize::from(choices.next().unwrap_or(0)));
        let input = match tools.get(choice % count) {
            Some((call, _)) if choice % 3 == 0 => {
                let failure = loopd_kernel::Failure::new("tool.failed", "no");
                let settling = Settling::Failed(failure, loopd_kernel::failure::Disposition::DidNotHappen);
                Input::Settle { call: *call, settling, usage: None, cost: None }
            }
            Some((call, _)) => {
                Input::Settle { call: *call, settling: Settling::Landed("ok".into()), usage: None, cost: None }
            }
            None => {
                let question = projection.questions[(choice % count) - tools.len()].id;
                let end = if choice.is_multiple_of(2) { QuestionEnd::Answered } else { QuestionEnd::Declined };
                Input::Answer {
                    question,
                    end,
                    actor: "ann".into(),
                    value: "\"yes\"".into(),
                    given_at: loopd_kernel::TimeMs(i64::MAX),
                }
            }
        };
        if choice.is_multiple_of(5) {
            run.apply(Input::Signal { name: "message".into(), body: "hurry".into() });
        }
        run.apply(input);
    }
}

/// Checks that tool uses and results pair up between one model call and the next.
fn assert_paired(run: &Driven) {
    let mut open: BTreeMap<String, i64> = BTreeMap::new();
    let changes = run.entries.iter().flat_map(|entry| transcript::changes(entry).expect("reads"));
    let messages = changes.map(|change| match change {
        Change::Say(message) => message,
        Change::Compact { summary, .. } => summary,
    });
    for message in messages {
        match message {
            Message::Assistant { parts } => {
                assert!(open.values().all(|count| *count == 0), "a tool use without a result: {open:?}");
                for part in parts {
                    if let Part::ToolUse { id, .. } = part {
                        *open.entry(id).or_default() += 1;
                    }
                }
            }
            Message::Tool { id, .. } => {
                let count = open.entry(id).or_default();
                *count -= 1;
                assert!(*count >= 0, "a result without a tool use");
            }
            Message::User { .. } => {}
        }
    }
    assert!(open.values().all(|count| *count == 0), "a tool use without a result: {open:?}");
}

proptest! {
    #[test]
    fn every_tool_use_has_one_result(
        replies in prop::collection::vec(reply(), 1..8),
        choices in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut run = Driven::start(&Setup::default(), "\"Go\"");
        let mut choices = choices.into_iter();
        for (stop, parts) in replies {
            if run.machine.projection().status != Status::Open {
                break;
            }
            run.reply(stop, parts);
            settle(&mut run, &mut choices);
            prop_assert!(run.machine.projection().state.len() < 100);
        }
        assert_paired(&run);
        run.replays();
    }
}
