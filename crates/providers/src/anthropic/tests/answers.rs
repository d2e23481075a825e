//! What servers send, and what becomes of it. Names of tests are those of the public reports behind them.

use super::super::assemble::{Assembler, Belongs};
use super::super::schema::AnswerShape;
use crate::heard::{self, render, stream};
use crate::intake::{End, Intake};
use expect_test::{Expect, expect};
use loopd_kernel::CallId;
use loopd_runtime::{ModelAnswer, ModelError};

fn belongs(answer: Option<AnswerShape>) -> Belongs<'static> {
    let names = [("files_read_1".to_owned(), "files.read".to_owned())].into();
    Belongs { call: CallId(7), origin: "anthropic/m", secrets: &["sk-1"], names, answer }
}

/// The result, and what was shown on the way.
fn read(
    answer: Option<AnswerShape>,
    pieces: &mut dyn Iterator<Item = &[u8]>,
) -> (Result<ModelAnswer, ModelError>, String) {
    heard::read(Assembler::new(belongs(answer)), pieces)
}

#[track_caller]
fn check_bytes(answer: Option<AnswerShape>, bytes: &[u8], expect: Expect) {
    expect.assert_eq(&heard::streamed(|| Assembler::new(belongs(answer)), bytes));
}

#[track_caller]
fn check(events: &str, expect: Expect) {
    check_bytes(None, stream(events).as_bytes(), expect);
}

/// A message that is not streamed.
#[track_caller]
fn check_whole(body: &str, expect: Expect) {
    expect.assert_eq(&heard::in_one_piece(|| Assembler::new(belongs(None)), body));
}

const START: &str = r#"{"type":"message_start","message":{"type":"message","role":"assistant","model":"m-1","content":[],"stop_reason":null,"usage":{"input_tokens":9,"cache_creation_input_tokens":30,"cache_read_input_tokens":400,"output_tokens":1}}}"#;

/// A message of these events, up to its end for `reason`.
fn message(events: &str, reason: &str) -> String {
    format!(
        "{START}\n{}\n{{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{reason}\",\"stop_sequence\":null}},\"usage\":{{\"output_tokens\":12}}}}\n{{\"type\":\"message_stop\"}}",
        events.trim()
    )
}

const TEXT: &str = r#"
    {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
    {"type":"ping"}
    : alive
    {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello "}}
    {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"那里 🎉"}}
    {"type":"content_block_stop","index":0}
"#;

const USE: &str = r#"
    {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}
    {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}
    {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"x\": 1.0,"}}
    {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":" \"y\":1e400}"}}
    {"type":"content_block_stop","index":0}
"#;

#[test]
fn a_plain_answer() {
    check(
        &message(TEXT, "end_turn"),
        expect![[r#"
        text "Hello 那里 🎉"
        EndTurn by "m-1", usage 9+400+30 12
    "#]],
    );
    check_whole(
        r#"{"id":"x","type":"message","role":"assistant","model":"m-1","content":[{"type":"text","text":"Hello 那里"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":2},"timings":{"a":1.5}}"#,
        expect![[r#"
            text "Hello 那里"
            EndTurn by "m-1", usage 9+0+0 2
        "#]],
    );
}

#[test]
fn names_and_numbers_of_events_may_be_missing() {
    let answer = || {
        expect![[r#"
            text "Hello 那里 🎉"
            EndTurn by "m-1", usage 9+400+30 12
        "#]]
    };
    let plain = stream(&message(TEXT, "end_turn"));
    // Some gateways leave the names of events out, some add one more event.
    let unnamed: String = plain.split_inclusive('\n').filter(|line| !line.starts_with("event:")).collect();
    check_bytes(None, unnamed.as_bytes(), answer());
    check_bytes(
        None,
        plain.replace("event: ping", "event: news\ndata: {\"type\":\"news\"}\n\nevent: ping").as_bytes(),
        answer(),
    );
    check(&message(&TEXT.replace(r#""index":0,"#, ""), "end_turn"), answer());
    let halves = TEXT.replace("🎉", "\\ud83c\"}}\n{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\\udf89");
    check(&message(&halves, "end_turn"), answer());
}

#[test]
fn arguments_keep_their_exact_text() {
    check(
        &message(USE, "tool_use"),
        expect![[r#"
        use toolu_1 f {"x": 1.0, "y":1e400}
        ToolUse by "m-1", usage 9+400+30 12
    "#]],
    );
    // Nothing at all is how a tool without arguments is asked for.
    let none = USE.lines().filter(|line| !line.contains("partial_json")).collect::<Vec<_>>().join("\n");
    check(
        &message(&none, "tool_use"),
        expect![[r#"
        use toolu_1 f {}
        ToolUse by "m-1", usage 9+400+30 12
    "#]],
    );
    check_whole(
        r#"{"type":"message","model":"m-1","content":[{"type":"tool_use","id":"a","name":"files_read_1","input":{ "b":1,"a":1.0 }},{"type":"tool_use","name":"g","input":null}],"stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":2}}"#,
        expect![[r#"
            use a files.read { "b":1,"a":1.0 }
            use call_7_1 g {}
            ToolUse by "m-1", usage 9+0+0 2
        "#]],
    );
    // Behind the output limit nothing is what was cut off.
    check(
        &message(&none, "max_tokens"),
        expect![[r#"
        use toolu_1 f 
        Length by "m-1", usage 9+400+30 12
    "#]],
    );
}

#[test]
fn ant_01_thinking_is_kept_byte_for_byte() {
    let thinking = r#"
        {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
        {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"t\u00e9"}}
        {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" \ud83c"}}
        {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"\udf89"}}
        {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"SIG\/+="}}
        {"type":"content_block_stop","index":0}
        {"type":"content_block_start","index":1,"content_block":{ "type":"redacted_thinking", "data":"b\/c" }}
        {"type":"content_block_stop","index":1}
    "#;
    let text = TEXT.replace(r#""index":0"#, r#""index":2"#);
    let uses = USE.replace(r#""index":0"#, r#""index":3"#);
    check(
        &message(&format!("{thinking}{text}{uses}"), "tool_use"),
        expect![[r#"
        reasoning {"type":"thinking","signature":"SIG\/+=","thinking":"t\u00e9 \ud83c\udf89"} of anthropic/m
        reasoning {"type":"redacted_thinking","data":"b\/c"} of anthropic/m
        text "Hello 那里 🎉"
        use toolu_1 f {"x": 1.0, "y":1e400}
        ToolUse by "m-1", usage 9+400+30 12
    "#]],
    );
    // The text may be left out; the signature never is.
    let silent = thinking.lines().filter(|line| !line.contains("thinking_delta")).collect::<Vec<_>>().join("\n");
    check(
        &message(&silent, "end_turn"),
        expect![[r#"
        reasoning {"type":"thinking","signature":"SIG\/+=","thinking":""} of anthropic/m
        reasoning {"type":"redacted_thinking","data":"b\/c"} of anthropic/m
        EndTurn by "m-1", usage 9+400+30 12
    "#]],
    );
    check_whole(
        r#"{"type":"message","content":[{"type":"thinking","thinking":"t\u00e9","signature":"S"},{"type":"text","text":"a"}],"stop_reason":"end_turn"}"#,
        expect![[r#"
            reasoning {"type":"thinking","signature":"S","thinking":"t\u00e9"} of anthropic/m
            text "a"
            EndTurn by "", usage unknown
        "#]],
    );
}

#[test]
fn ant_03_a_pause_is_no_end_and_keeps_what_the_server_did() {
    let search = r#"
        {"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}
        {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":"}}
        {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\"x\"}"}}
        {"type":"content_block_stop","index":0}
        {"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"url":"u","n":1.0}]}}
        {"type":"content_block_stop","index":1}
    "#;
    check(
        &message(search, "pause_turn"),
        expect![[r#"
        reasoning {"type":"server_tool_use","id":"srvtoolu_1","input":{"query":"x"},"name":"web_search"} of anthropic/m
        reasoning {"type":"web_search_tool_result","content":[{"url":"u","n":1.0}],"tool_use_id":"srvtoolu_1"} of anthropic/m
        Other("pause_turn") by "m-1", usage 9+400+30 12
    "#]],
    );
}

#[test]
fn stop_reasons_are_typed_and_unknown_ones_keep_their_word() {
    for (reason, expect) in [
        ("stop_sequence", "EndTurn"),
        ("max_tokens", "Length"),
        ("model_context_window_exceeded", "Other(\"model_context_window_exceeded\")"),
        ("refusal", "Refusal"),
        ("tool_use", "Other(\"tool_use\")"),
        ("tired", "Other(\"tired\")"),
    ] {
        let (result, _) = read(None, &mut [stream(&message(TEXT, reason)).as_bytes()].into_iter());
        assert_eq!(format!("{:?}", result.expect("an answer").reply.stop), expect);
    }
    // Tool uses that are there decide.
    let (result, _) = read(None, &mut [stream(&message(USE, "end_turn")).as_bytes()].into_iter());
    assert_eq!(format!("{:?}", result.expect("an answer").reply.stop), "ToolUse");
    check(
        &message("", "tool_use"),
        expect![[r#"
        malformed answer: the server announces a tool use and sends none; usage Some(451)
    "#]],
    );
    check(
        &format!("{START}\n{{\"type\":\"message_stop\"}}"),
        expect![[r#"
            malformed answer: the answer does not say why it ended; usage None
        "#]],
    );
    check(
        r#"{"type":"message_stop"}"#,
        expect![[r#"
        malformed answer: an end without a message; usage None
    "#]],
    );
}

#[test]
fn ant_04_a_refusal_is_an_answer_with_its_explanation() {
    check(
        &message("", "refusal"),
        expect![[r#"
        Refusal by "m-1", usage 9+400+30 12
    "#]],
    );
    check_whole(
        r#"{"type":"message","model":"m-1","content":[],"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"Not this."},"usage":{"input_tokens":9,"output_tokens":1}}"#,
        expect![[r#"
            text "Not this."
            Refusal by "m-1", usage 9+0+0 1
        "#]],
    );
    // What the model said itself is not added to.
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"explanation":"Not this."}},"usage":{"output_tokens":3}}"#;
    check(
        &format!("{START}\n{}\n{end}\n{{\"type\":\"message_stop\"}}", TEXT.trim()),
        expect![[r#"
        text "Hello 那里 🎉"
        Refusal by "m-1", usage 9+400+30 3
    "#]],
    );
}

#[test]
fn ant_05_an_error_inside_of_a_stream_is_no_answer() {
    let begun = format!("{START}\n{}", TEXT.trim());
    let error = |kind: &str| format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"About sk-1"}}}}"#);
    check(
        &format!("{begun}\n{}", error("overloaded_error")),
        expect![[r#"
        interrupted: About [secret]; usage None
    "#]],
    );
    // Before anything has come it costs nothing.
    check(
        &error("overloaded_error"),
        expect![[r#"
        unavailable: About [secret]; usage Some(0)
    "#]],
    );
    check(
        &error("rate_limit_error"),
        expect![[r#"
        rate limited: About [secret]; usage Some(0)
    "#]],
    );
    check(
        &error("authentication_error"),
        expect![[r#"
        unauthorised: About [secret]; usage Some(0)
    "#]],
    );
    check(
        &error("billing_error"),
        expect![[r#"
        unauthorised: About [secret]; usage Some(0)
    "#]],
    );
    check(
        &error("invalid_request_error"),
        expect![[r#"
        rejected: About [secret]; usage Some(0)
    "#]],
    );
    check(
        &error("request_too_large"),
        expect![[r#"
        too large: About [secret]; usage Some(0)
    "#]],
    );
    check(
        &format!("{begun}\n{}", error("invalid_request_error")),
        expect![[r#"
        stopped: About [secret]; usage None
    "#]],
    );
    check_whole(
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"},"request_id":"r"}"#,
        expect![[r#"
            too large: prompt is too long: 210000 tokens > 200000 maximum; usage Some(0)
        "#]],
    );
    // Without a type, and without a name.
    check(
        r#"{"error":{"type":"overloaded_error","message":"later"}}"#,
        expect![[r#"
        unavailable: later; usage Some(0)
    "#]],
    );
}

#[test]
fn without_its_end_a_message_is_no_answer() {
    let all = message(TEXT, "end_turn");
    let without_stop = all.lines().filter(|line| !line.contains("message_stop")).collect::<Vec<_>>().join("\n");
    // The count is known where it had come.
    check(
        &without_stop,
        expect![[r#"
        interrupted: the stream ended without saying that the answer is complete; usage Some(451)
    "#]],
    );
    check(
        &format!("{without_stop}\n[DONE]"),
        expect![[r#"
        interrupted: the stream ended without saying that the answer is complete; usage Some(451)
    "#]],
    );
    check(
        &format!("{START}\n{}", USE.trim()),
        expect![[r#"
        interrupted: the stream ended without saying that the answer is complete; usage None
    "#]],
    );
    let mut intake = Intake::new(Assembler::new(belongs(None)));
    intake.push(stream(&without_stop).as_bytes(), &mut |_| {}).expect("events");
    let error = intake.end(End::Broken("reset".into()));
    assert_eq!(render(&error), "interrupted: reset; usage Some(451)\n");
    // What follows the end belongs to nobody.
    let (result, _) = read(None, &mut [stream(&format!("{all}\n{START}\n[DONE]")).as_bytes()].into_iter());
    assert!(result.is_ok(), "{result:?}");
}

#[test]
fn what_cannot_be_used_is_said() {
    let block = |start: &str, more: &str| {
        message(
            &format!("{{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{start}}}\n{more}"),
            "end_turn",
        )
    };
    let delta = |delta: &str| format!("{{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{delta}}}");
    check(
        &block(r#"{"type":"hologram"}"#, ""),
        expect![[r#"
        malformed answer: content of the unknown type "hologram"; usage None
    "#]],
    );
    check(
        &block(r#"{"type":"tool_use","id":"a","input":{}}"#, ""),
        expect![[r#"
        malformed answer: a tool use without a name; usage None
    "#]],
    );
    check(
        &block(r#"{"type":"text","text":"a"}"#, &delta(r#"{"type":"input_json_delta","partial_json":"{}"}"#)),
        expect![[r#"
            malformed answer: a piece of the unexpected type "input_json_delta"; usage None
        "#]],
    );
    check(
        &message(&delta(r#"{"type":"text_delta","text":"a"}"#), "end_turn"),
        expect![[r#"
        malformed answer: a piece of a block that has not begun; usage None
    "#]],
    );
    let twice = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#;
    check(
        &message(&format!("{twice}\n{twice}"), "end_turn"),
        expect![[r#"
        malformed answer: block 0 begins twice; usage None
    "#]],
    );
    check(
        "no JSON, sk-1",
        expect![[r#"
        malformed answer: expected ident at line 1 column 2: no JSON, [secret]; usage None
    "#]],
    );
    check_whole(
        "{}",
        expect![[r#"
        malformed answer: no message: {}; usage None
    "#]],
    );
    check_bytes(
        None,
        b"event: ping\ndata: \xE9\x82\n\n",
        expect![[r#"
        malformed answer: the stream is not UTF-8; usage None
    "#]],
    );
}

#[test]
fn a_first_count_is_no_total() {
    let delta = r#","usage":{"output_tokens":12}"#;
    check(
        &message(TEXT, "end_turn").replace(delta, ""),
        expect![[r#"
        text "Hello 那里 🎉"
        EndTurn by "m-1", usage unknown
    "#]],
    );
    // A count that runs along says nothing about the rest.
    let running = format!("{START}\n{{\"type\":\"message_delta\",\"delta\":{{}}{delta}}}");
    check(
        &running,
        expect![[r#"
        interrupted: the stream ended without saying that the answer is complete; usage None
    "#]],
    );
}

#[test]
fn citations_are_passed_over() {
    let cited = r#"
        {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","citations":[]}}
        {"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"url":"u"}}}
        {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}
    "#;
    check(
        &message(cited, "end_turn"),
        expect![[r#"
        text "a"
        EndTurn by "m-1", usage 9+400+30 12
    "#]],
    );
}

#[test]
fn an_answer_under_a_schema_is_text_again() {
    let answer = USE.replace(r#""name":"f""#, r#""name":"answer""#);
    check_bytes(
        Some(AnswerShape::Plain),
        stream(&message(&answer, "tool_use")).as_bytes(),
        expect![[r#"
        text "{\"x\": 1.0, \"y\":1e400}"
        EndTurn by "m-1", usage 9+400+30 12
    "#]],
    );
    let wrapped = answer.replace(r#"{\"x\": 1.0,"#, r#"{\"answer\": [1.0,"#).replace(r#" \"y\":1e400}"#, r#" 2]}"#);
    check_bytes(
        Some(AnswerShape::Wrapped),
        stream(&message(&wrapped, "tool_use")).as_bytes(),
        expect![[r#"
        text "[1.0, 2]"
        EndTurn by "m-1", usage 9+400+30 12
    "#]],
    );
    check_bytes(
        Some(AnswerShape::Wrapped),
        stream(&message(&answer, "max_tokens")).as_bytes(),
        expect![[r#"
        text "{\"x\": 1.0, \"y\":1e400}"
        Length by "m-1", usage 9+400+30 12
    "#]],
    );
    let talk = format!("{TEXT}{}", answer.replace(r#""index":0"#, r#""index":1"#));
    let (result, _) = read(Some(AnswerShape::Plain), &mut [stream(&message(&talk, "tool_use")).as_bytes()].into_iter());
    assert_eq!(result.expect("an answer").reply.joined_text(), r#"{"x": 1.0, "y":1e400}"#);
}
