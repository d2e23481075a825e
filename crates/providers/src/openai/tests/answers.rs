//! What servers send, and what becomes of it. Names of tests are those of the public reports behind them.

use super::super::assemble::{Assembler, Belongs};
use crate::intake::{End, Intake, whole};
use expect_test::{Expect, expect};
use loopd_kernel::CallId;
use loopd_kernel::model::Part;
use loopd_runtime::{ModelAnswer, ModelError};
use std::fmt::Write;

fn belongs() -> Belongs<'static> {
    Belongs { call: CallId(7), origin: "test/m", secrets: &["sk-1"] }
}

fn render(result: &Result<ModelAnswer, ModelError>) -> String {
    let mut text = String::new();
    let answer = match result {
        Ok(answer) => answer,
        Err(error) => return format!("{error}; usage {:?}\n", error.usage().map(|usage| usage.total())),
    };
    for part in &answer.reply.parts {
        let _ = match part {
            Part::Text { text: said } => writeln!(text, "text {said:?}"),
            Part::ToolUse { id, name, args } => writeln!(text, "use {id} {name} {args}"),
            Part::Reasoning { opaque, origin } => writeln!(text, "reasoning {opaque} of {origin}"),
        };
    }
    let usage = answer.usage.map(|u| format!("{}+{}", u.input + u.cache_read, u.output + u.reasoning));
    let _ = writeln!(text, "{:?} usage {}", answer.reply.stop, usage.unwrap_or_else(|| "unknown".into()));
    text
}

/// The result, and what was shown on the way.
fn read(pieces: &mut dyn Iterator<Item = &[u8]>) -> (Result<ModelAnswer, ModelError>, String) {
    let mut intake = Intake::new(Assembler::new(belongs()));
    let mut shown = String::new();
    for piece in pieces {
        if let Err(error) = intake.push(piece, &mut |text| shown.push_str(&text)) {
            return (Err(error), shown);
        }
        if intake.is_done() {
            break;
        }
    }
    (intake.end(End::Proper), shown)
}

/// `bytes` as the body of a stream. Its result must not depend on where it is cut into pieces, and a part of it is
/// the same answer, at most with unknown usage, or no answer at all.
#[track_caller]
fn check_bytes(bytes: &[u8], expect: Expect) {
    let (result, shown) = read(&mut [bytes].into_iter());
    expect.assert_eq(&render(&result));
    for size in 1..=bytes.len().max(1) {
        assert_eq!(read(&mut bytes.chunks(size)), (result.clone(), shown.clone()), "in pieces of {size}");
    }
    for at in 0..bytes.len() {
        let (part, _) = read(&mut [&bytes[..at]].into_iter());
        match (part, &result) {
            (Err(ModelError::Interrupted { .. }), _) => {}
            (Ok(part), Ok(all)) => {
                assert_eq!(part.reply, all.reply, "cut at {at}");
                assert!(part.usage.is_none() || part.usage == all.usage, "cut at {at}");
            }
            (part, _) => assert_eq!(part, result, "cut at {at}"),
        }
    }
}

/// Each line is the data of an event; a line that begins with `:` is a comment.
#[track_caller]
fn check(events: &str, expect: Expect) {
    let mut bytes = String::new();
    for line in events.trim().lines().map(str::trim) {
        let _ = if line.starts_with(':') { write!(bytes, "{line}\n\n") } else { write!(bytes, "data: {line}\n\n") };
    }
    check_bytes(bytes.as_bytes(), expect);
}

/// A completion that is not streamed.
#[track_caller]
fn check_whole(body: &str, expect: Expect) {
    let result = whole(Assembler::new(belongs()), body.as_bytes());
    expect.assert_eq(&render(&result));
    for at in 0..body.trim_end().len() {
        let part = whole(Assembler::new(belongs()), &body.as_bytes()[..at]);
        assert!(matches!(part, Err(ModelError::Interrupted { .. })), "cut at {at}: {part:?}");
    }
}

#[test]
fn a_plain_answer() {
    check(
        r#"
        {"id":"x","object":"chat.completion.chunk","model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}
        {"model":"m-1","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}
        {"model":"m-1","choices":[{"index":0,"delta":{"content":"lo 那里 🎉"},"finish_reason":null}]}
        {"model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}
        {"model":"m-1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}
        [DONE]
        "#,
        expect![[r#"
            text "Hello 那里 🎉"
            EndTurn usage 9+2
        "#]],
    );
    check_whole(
        r#"{"model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"Hello 那里","refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2},"timings":{"a":1.5}}"#,
        expect![[r#"
            text "Hello 那里"
            EndTurn usage 9+2
        "#]],
    );
}

#[test]
fn oai_01_an_index_may_be_missing() {
    check(
        r#"
        {"choices":[{"delta":{"tool_calls":[{"id":"c1","type":"function","function":{"name":"now","arguments":"{\"tz\":"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"\"UTC\"}"}}]}}]}
        {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}
        [DONE]
        "#,
        expect![[r#"
            use c1 now {"tz":"UTC"}
            ToolUse usage unknown
        "#]],
    );
    // Two calls by id alone, their pieces interleaved.
    check(
        r#"
        {"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{\"y\""}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"arguments":":1}"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"arguments":":2}"}}]}}]}
        {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}
        "#,
        expect![[r#"
            use a f {"x":1}
            use b g {"y":2}
            ToolUse usage unknown
        "#]],
    );
    // Without index, id and name, behind a call that is whole: nobody can say what it is.
    check(
        r#"
        {"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\"y\":2}"}}]}}]}
        {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}
        "#,
        expect![[r#"
            malformed answer: a tool call without a name; usage None
        "#]],
    );
}

#[test]
fn oai_02_parallel_calls_may_share_an_index() {
    check(
        r#"
        {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x1","function":{"name":"write_file","arguments":"{\"p\":\"1\"}"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x2","function":{"name":"write_file","arguments":"{\"p\":\"2\"}"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x3","function":{"name":"write_file","arguments":"{\"p\":\"3\"}"}}]}}]}
        {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}
        "#,
        expect![[r#"
            use x1 write_file {"p":"1"}
            use x2 write_file {"p":"2"}
            use x3 write_file {"p":"3"}
            ToolUse usage unknown
        "#]],
    );
    // The same without ids: whole arguments and a name that starts again.
    check(
        r#"
        {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"write_file","arguments":"{\"p\":\"1\"}"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"write_file","arguments":"{\"p\":\"2\"}"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"read_file","arguments":""}}]}}]}
        {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}
        "#,
        expect![[r#"
            use call_7_0 write_file {"p":"1"}
            use call_7_1 write_file {"p":"2"}
            use call_7_2 read_file {}
            ToolUse usage unknown
        "#]],
    );
}

#[test]
fn oai_03_a_name_is_set_once() {
    check(
        r#"
        {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"read_file","arguments":"{\"pa"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"read_file","arguments":"th\":\"a\"}"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"read_file","arguments":""}}]}}]}
        {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}
        "#,
        expect![[r#"
            use a read_file {"path":"a"}
            ToolUse usage unknown
        "#]],
    );
    check(
        r#"
        {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"write","arguments":"}"}}]}}]}
        "#,
        expect![[r#"
            malformed answer: one tool call has two names, "read" and "write"; usage None
        "#]],
    );
}

#[test]
fn oai_04_no_arguments_are_an_empty_object() {
    for arguments in [r#""""#, r#"" \n""#, "null"] {
        check_whole(
            &format!(
                r#"{{"choices":[{{"message":{{"content":null,"tool_calls":[{{"id":"a","type":"function","function":{{"name":"now","arguments":{arguments}}}}}]}},"finish_reason":"tool_calls"}}]}}"#
            ),
            expect![[r#"
                use a now {}
                ToolUse usage unknown
            "#]],
        );
    }
}

#[test]
fn oai_05_arguments_may_be_an_object() {
    check_whole(
        r#"{"choices":[{"message":{"tool_calls":[{"function":{"name":"w","arguments":{"city":"Paris", "n":2512292042121000001,"y":1e400}}},{"function":{"name":"w","arguments":{}}}]}}]}"#,
        expect![[r#"
            use call_7_0 w {"city":"Paris", "n":2512292042121000001,"y":1e400}
            use call_7_1 w {}
            ToolUse usage unknown
        "#]],
    );
    check(
        r#"
        {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"w","arguments":{"a":1}}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}]},"finish_reason":"stop"}]}
        [DONE]
        "#,
        expect![[r#"
            use call_7_0 w {"a":1}
            ToolUse usage unknown
        "#]],
    );
}

#[test]
fn oai_06_what_was_asked_for_decides() {
    check_whole(
        r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}"#,
        expect![[r#"
            use a f {}
            ToolUse usage unknown
        "#]],
    );
    check_whole(
        r#"{"choices":[{"message":{"content":""},"finish_reason":"tool_calls"}]}"#,
        expect![[r#"
            malformed answer: the server announces tool calls and sends none; usage None
        "#]],
    );
    // Cut by the limit: whatever is there may be half.
    check_whole(
        r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"a\":"}}]},"finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#,
        expect![[r#"
            use a f {"a":
            Length usage 3+4
        "#]],
    );
    for (word, stop) in [("eos", "EndTurn"), ("content_filter", "Refusal"), ("pause", r#"Other("pause")"#)] {
        let body = format!(r#"{{"choices":[{{"message":{{"content":"x"}},"finish_reason":"{word}"}}]}}"#);
        let result = whole(Assembler::new(belongs()), body.as_bytes());
        assert_eq!(render(&result), format!("text \"x\"\n{stop} usage unknown\n"));
    }
    check_whole(
        r#"{"choices":[{"message":{"content":"x"},"finish_reason":"abort"}]}"#,
        expect![[r#"
            interrupted: the server stopped with "abort"; usage None
        "#]],
    );
}

#[test]
fn oai_07_usage_comes_without_a_choice_or_twice() {
    check(
        r#"
        {"choices":[{"delta":{"content":"a"}}],"usage":null}
        {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}
        {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}
        {"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}
        [DONE]
        "#,
        expect![[r#"
            text "a"
            EndTurn usage 9+2
        "#]],
    );
    check(
        r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop","usage":{"prompt_tokens":3,"completion_tokens":2}}]}"#,
        expect![[r#"
            text "a"
            EndTurn usage 3+2
        "#]],
    );
}

#[test]
fn oai_08_comments_are_no_data() {
    check(
        r#"
        : OPENROUTER PROCESSING
        :
        {"choices":[{"delta":{"content":"a"}}]}
        : OPENROUTER PROCESSING
        {}
        {"choices":[{"delta":{"reasoning_content":"","reasoning":null},"finish_reason":"stop"}]}
        [DONE]
        "#,
        expect![[r#"
            text "a"
            EndTurn usage unknown
        "#]],
    );
}

#[test]
fn oai_09_halves_of_characters_are_joined() {
    check(
        r#"
        {"choices":[{"delta":{"content":"a\ud83c"}}]}
        {"choices":[{"delta":{"content":"\udf89b \ud800"}}]}
        {"choices":[{"delta":{"content":"c\u0000"},"finish_reason":"stop"}]}
        "#,
        expect![[r#"
            text "a🎉b �c\0"
            EndTurn usage unknown
        "#]],
    );
}

#[test]
fn oai_10_an_error_is_an_error_wherever_it_stands() {
    check(
        r#"{"error":{"type":"invalid_request_error","message":"bad tool"}}"#,
        expect![[r#"
            rejected: bad tool; usage Some(0)
        "#]],
    );
    // Something was generated before, so its price is unknown.
    check(
        r#"
        {"choices":[{"delta":{"content":"Par"}}]}
        {"error":{"type":"overloaded_error","message":"later"}}
        "#,
        expect![[r#"
            interrupted: later; usage None
        "#]],
    );
    check(
        r#"
        {"choices":[{"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"Provider disconnected"},"usage":{"prompt_tokens":5,"completion_tokens":1}}
        [DONE]
        "#,
        expect![[r#"
            interrupted: Provider disconnected; usage Some(6)
        "#]],
    );
    check_bytes(
        b"event: error\ndata: {\"message\":\"the request exceeds the available context size\"}\n\n",
        expect![[r#"
        too large: the request exceeds the available context size; usage Some(0)
    "#]],
    );
    check_whole(
        r#"{"error":{"message":"Loading model","code":503}}"#,
        expect![[r#"
        unavailable: Loading model; usage Some(0)
    "#]],
    );
    check(
        r#"{"choices":[{"delta":{"content":"a"},"error":{"code":429,"message":"slow"}}]}"#,
        expect![[r#"
        rate limited: slow; usage Some(0)
    "#]],
    );
}

#[test]
fn oai_10_a_body_that_is_no_stream_is_shown() {
    let no_stream = |body: &str| render(&read(&mut [body.as_bytes()].into_iter()).0);
    assert_eq!(
        no_stream("<html>\n<b>sk-1</b> Bad gateway</html>"),
        "malformed answer: no event stream: <html> <b>[secret]</b> Bad gateway</html>; usage None\n"
    );
    assert_eq!(
        no_stream(r#"{"error":{"type":"invalid_request_error","message":"bad tool"}}"#),
        "rejected: bad tool; usage Some(0)\n"
    );
    assert_eq!(
        no_stream(r#"{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}"#),
        "text \"whole\"\nEndTurn usage unknown\n"
    );
    assert_eq!(no_stream("data: {oops}\n\n").split(':').next(), Some("malformed answer"));
    assert_eq!(
        no_stream("data: {}\n\ndata: [DONE]\n\n"),
        "malformed answer: an answer without any choice; usage None\n"
    );
}

#[test]
fn oai_11_without_its_end_it_is_no_answer() {
    check(
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"pay","arguments":"{\"amount\":5}"}}]}}]}"#,
        expect![[r#"
            interrupted: the stream ended without saying that the answer is complete; usage None
        "#]],
    );
    // A finish reason does not help when the connection broke: something may be missing behind it.
    let mut intake = Intake::new(Assembler::new(belongs()));
    let bytes = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n";
    assert_eq!(intake.push(bytes, &mut |text| assert_eq!(text, "a")), Ok(()));
    let result = intake.end(End::Broken("reset".into()));
    assert_eq!(render(&result), "interrupted: reset; usage Some(5)\n");
    // [DONE] does, without a finish reason.
    check(
        r#"
        {"choices":[{"delta":{"content":"a"}}]}
        [DONE]
        "#,
        expect![[r#"
            text "a"
            EndTurn usage unknown
        "#]],
    );
}

#[test]
fn oai_14_reasoning_is_kept_byte_for_byte() {
    check(
        r#"
        {"choices":[{"delta":{"role":"assistant","content":null,"reasoning_content":"so \u00e9"}}]}
        {"choices":[{"delta":{"reasoning_content":" then\n\ud83c"}}]}
        {"choices":[{"delta":{"reasoning_content":"\udf89"}}]}
        {"choices":[{"delta":{"content":"Yes."},"finish_reason":"stop"}]}
        "#,
        expect![[r#"
            reasoning {"reasoning_content":"so \u00e9 then\n\ud83c\udf89"} of test/m
            text "Yes."
            EndTurn usage unknown
        "#]],
    );
    check_whole(
        r#"{"choices":[{"message":{"content":"Yes.","reasoning":"r","reasoning_details":[{"type":"reasoning.encrypted", "data":"x=="}]},"finish_reason":"stop"}]}"#,
        expect![[r#"
            reasoning {"reasoning":"r","reasoning_details":[{"type":"reasoning.encrypted", "data":"x=="}]} of test/m
            text "Yes."
            EndTurn usage unknown
        "#]],
    );
}

#[test]
fn oai_15_broken_arguments_are_recorded_as_they_came() {
    check(
        r#"
        {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"city\":\"A\"}"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":\"B\"}"}}]}}]}
        {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}
        "#,
        expect![[r#"
            use a f {"city":"A"}{"city":"B"}
            ToolUse usage unknown
        "#]],
    );
}

#[test]
fn dur_10_and_11_the_text_of_arguments_is_exact() {
    check(
        r#"
        {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"id\":2512292042121000001,\"x\":1.0,"}}]}}]}
        {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"y\":1e400,\"z\":-0.0,\"s\":\"\\ud800\\u0000\"}"}}]},"finish_reason":"tool_calls"}]}
        "#,
        expect![[r#"
            use a f {"id":2512292042121000001,"x":1.0,"y":1e400,"z":-0.0,"s":"\ud800\u0000"}
            ToolUse usage unknown
        "#]],
    );
}

#[test]
fn refusals_lists_and_old_calls() {
    check(
        r#"
        {"choices":[{"delta":{"refusal":"I can"}}]}
        {"choices":[{"delta":{"refusal":"not."},"finish_reason":"stop"}]}
        "#,
        expect![[r#"
            text "I cannot."
            Refusal usage unknown
        "#]],
    );
    check_whole(
        r#"{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},"finish_reason":"stop"}]}"#,
        expect![[r#"
            text "ab"
            EndTurn usage unknown
        "#]],
    );
    check_whole(
        r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text", "text":"hm"}]},{"type":"text","text":"b"}]},"finish_reason":"stop"}]}"#,
        expect![[r#"
            reasoning {"thinking":[{"type":"thinking","thinking":[{"type":"text", "text":"hm"}]}]} of test/m
            text "b"
            EndTurn usage unknown
        "#]],
    );
    check_whole(
        r#"{"choices":[{"message":{"content":[{"type":"hologram"}]},"finish_reason":"stop"}]}"#,
        expect![[r#"
            malformed answer: content of the unknown type "hologram"; usage None
        "#]],
    );
    check_whole(
        r#"{"choices":[{"message":{"content":null,"function_call":{"name":"f","arguments":"{}"}},"finish_reason":"function_call"}]}"#,
        expect![[r#"
            use call_7_0 f {}
            ToolUse usage unknown
        "#]],
    );
    check_whole(
        r#"{"choices":[{"index":0,"message":{"content":"a"}},{"index":1,"message":{"content":"b"}}]}"#,
        expect![[r#"
            malformed answer: a second choice, which nobody asked for; usage None
        "#]],
    );
}

#[test]
fn parts_keep_their_order() {
    check(
        r#"
        {"choices":[{"delta":{"content":"First "}}]}
        {"choices":[{"delta":{"content":"this."}}]}
        {"choices":[{"delta":{"content":"","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]}}]}
        {"choices":[{"delta":{"content":"Then that."},"finish_reason":"tool_calls"}]}
        "#,
        expect![[r#"
            text "First this."
            use a f {}
            use b g {}
            text "Then that."
            ToolUse usage unknown
        "#]],
    );
}
