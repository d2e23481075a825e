//! How an answer ends. Names of tests are those of the public reports behind them.

use super::super::assemble::{Assembler, Belongs};
use super::{assembler, check, check_whole};
use crate::heard::{self, render};
use crate::intake::whole;
use expect_test::expect;
use loopd_kernel::CallId;

const SAID: &str = r#"{"type":"message","content":[{"type":"output_text","text":"x"}]}"#;
const CALLED: &str = r#"{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}"#;

#[test]
fn oai_06_what_was_asked_for_decides() {
    let ended = |rest: &str, items: &str| {
        let body = format!(r#"{{{rest},"output":[{items}]}}"#);
        render(&whole(assembler(), body.as_bytes())).lines().last().unwrap_or_default().to_owned()
    };
    let both = format!("{SAID},{CALLED}");
    let complete = r#""status":"completed""#;
    assert_eq!(ended(complete, SAID), r#"EndTurn by "", usage unknown"#);
    assert_eq!(ended(complete, &both), r#"ToolUse by "", usage unknown"#);
    // All of the body is there, so a status may be missing.
    assert_eq!(ended(r#""status":null"#, CALLED), r#"ToolUse by "", usage unknown"#);
    assert_eq!(ended(complete, ""), r#"EndTurn by "", usage unknown"#);
    let cut = |reason: &str| format!(r#""status":"incomplete","incomplete_details":{{"reason":"{reason}"}}"#);
    for (reason, stop) in [
        ("max_output_tokens", "Length"),
        ("content_filter", "Refusal"),
        ("max_tool_calls", r#"Other("max_tool_calls")"#),
        ("", r#"Other("incomplete")"#),
    ] {
        assert_eq!(ended(&cut(reason), &both), format!(r#"{stop} by "", usage unknown"#));
    }
    assert_eq!(
        ended(r#""status":"incomplete","incomplete_details":null"#, SAID),
        r#"Other("incomplete") by "", usage unknown"#
    );
    let half = CALLED.replace(r#""type""#, r#""status":"incomplete","type""#);
    assert_eq!(ended(complete, &half), r#"Length by "", usage unknown"#);
}

#[test]
fn what_the_limit_cut_is_not_made_whole() {
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}
        {"type":"response.reasoning_text.delta","output_index":0,"delta":"hm"}
        {"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"a","name":"wipe","arguments":""}}
        {"type":"response.output_item.added","output_index":2,"item":{"id":"fc_2","type":"function_call","call_id":"b","name":"f","arguments":""}}
        {"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"a\":"}
        {"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[],"usage":{"input_tokens":3,"output_tokens":4,"output_tokens_details":{"reasoning_tokens":2}}}}
        "#,
        expect![[r#"
            reasoning {"id":"rs_1","type":"reasoning","summary":[]} of openai+responses/m
            use a wipe 
            use b f {"a":
            Length by "", usage 3+0+0 2+2
        "#]],
    );
}

/// As llama.cpp does it: the limit cut the answer, and the server calls it complete.
#[test]
fn at_the_limit_complete_is_not_believed_of_everybody() {
    let body = format!(r#"{{"status":"completed","output":[{SAID}],"usage":{{"input_tokens":3,"output_tokens":80}}}}"#);
    let stop = |limit: Option<u64>| {
        let belongs = Belongs { call: CallId(7), origin: "o", secrets: &[], names: Default::default(), limit };
        whole(Assembler::new(belongs), body.as_bytes()).map(|answer| format!("{:?}", answer.reply.stop))
    };
    let all = [None, Some(81), Some(80), Some(8)].map(stop);
    assert_eq!(all, ["EndTurn", "EndTurn", "Length", "Length"].map(|stop| Ok(stop.to_owned())));
}

#[test]
fn oai_07_usage_comes_with_the_end() {
    check(
        r#"
        {"type":"response.created","response":{"status":"in_progress","usage":{"input_tokens":1,"output_tokens":1}}}
        {"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":"a"}}
        {"type":"response.completed","response":{"status":"completed","model":"m-1","output":null,"usage":{"input_tokens":9,"input_tokens_details":null,"output_tokens":2,"total_tokens":11}}}
        "#,
        expect![[r#"
            text "a"
            EndTurn by "m-1", usage 9+0+0 2
        "#]],
    );
    check(
        r#"
        {"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":"a"}}
        {"type":"response.completed","response":{"status":"completed","usage":null}}
        "#,
        expect![[r#"
            text "a"
            EndTurn by "", usage unknown
        "#]],
    );
}

#[test]
fn refusals() {
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"id":"m","type":"message","content":[]}}
        {"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"I can"}
        {"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"not."}
        {"type":"response.refusal.done","output_index":0,"content_index":0,"refusal":"I cannot."}
        {"type":"response.output_item.done","output_index":0,"item":{"id":"m","type":"message","content":[{"type":"refusal","refusal":"I cannot."}]}}
        {"type":"response.completed","response":{"status":"completed","output":[{"id":"m","type":"message","content":[{"type":"refusal","refusal":"I cannot."}]}]}}
        "#,
        expect![[r#"
            text "I cannot."
            Refusal by "", usage unknown
        "#]],
    );
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"type":"message","content":[]}}
        {"type":"response.refusal.done","output_index":0,"refusal":"No."}
        {"type":"response.completed","response":{"status":"completed"}}
        "#,
        expect![[r#"
            text "No."
            Refusal by "", usage unknown
        "#]],
    );
    check_whole(
        r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Well, "},{"type":"refusal","refusal":"no."}]}]}"#,
        expect![[r#"
            text "Well, no."
            Refusal by "", usage unknown
        "#]],
    );
}

#[test]
fn oai_10_an_error_is_an_error_wherever_it_stands() {
    check(
        r#"{"type":"error","code":"invalid_request_error","message":"bad tool sk-1","param":null,"sequence_number":1}"#,
        expect![[r#"
            rejected: bad tool [secret]; usage Some(0)
        "#]],
    );
    check(
        r#"
        {"type":"response.created","response":{"status":"in_progress","error":null}}
        {"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Your input exceeds the context window"}}
        "#,
        expect![[r#"
            too large: Your input exceeds the context window; usage Some(0)
        "#]],
    );
    check(
        r#"{"error":{"message":"Loading model","code":503}}"#,
        expect![[r#"
        unavailable: Loading model; usage Some(0)
    "#]],
    );
    // Something was generated before, so its price is unknown.
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","summary":[]}}
        {"type":"error","code":"server_error","message":"later"}
        "#,
        expect![[r#"
            interrupted: later; usage None
        "#]],
    );
    check_whole(
        r#"{"error":{"message":"Loading model","code":503}}"#,
        expect![[r#"
        unavailable: Loading model; usage Some(0)
    "#]],
    );
    check_whole(
        r#"{"object":"error","message":"bad","type":"BadRequestError","code":400}"#,
        expect![[r#"
        rejected: bad; usage Some(0)
    "#]],
    );
    check_whole(
        r#"{"id":"x","choices":[]}"#,
        expect![[r#"
        malformed answer: no response: {"id":"x","choices":[]}; usage None
    "#]],
    );
    check_whole(
        r#"[1]"#,
        expect![[r#"
        malformed answer: invalid type: integer `1`, expected a string at line 1 column 2: [1]; usage None
    "#]],
    );
}

#[test]
fn a_response_that_failed_has_its_class() {
    let failed = |code: &str, before: &str, usage: &str| {
        let events = format!(
            r#"
            {{"type":"response.created","response":{{"status":"in_progress","instructions":"prompt is too long"}}}}
            {before}
            {{"type":"response.failed","response":{{"status":"failed","instructions":"prompt is too long","error":{{"code":"{code}","message":"because sk-1"}},"output":[],"usage":{usage}}}}}
            "#
        );
        heard::streamed(assembler, heard::stream(&events).as_bytes())
    };
    let all: String =
        ["rate_limit_exceeded", "server_error", "invalid_prompt", "cyber_policy", "insufficient_quota", "odd"]
            .map(|code| format!("{code}: {}", failed(code, "", "null")))
            .concat();
    expect![[r#"
        rate_limit_exceeded: rate limited: because [secret]; usage Some(0)
        server_error: unavailable: because [secret]; usage Some(0)
        invalid_prompt: rejected: because [secret]; usage Some(0)
        cyber_policy: rejected: because [secret]; usage Some(0)
        insufficient_quota: unauthorised: because [secret]; usage Some(0)
        odd: interrupted: because [secret]; usage None
    "#]]
    .assert_eq(&all);
    let begun = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","content":[]}}"#;
    let all: String = ["rate_limit_exceeded", "server_error", "invalid_prompt"]
        .map(|code| format!("{code}: {}", failed(code, begun, r#"{"input_tokens":9,"output_tokens":2}"#)))
        .concat();
    expect![[r#"
        rate_limit_exceeded: interrupted: because [secret]; usage Some(11)
        server_error: interrupted: because [secret]; usage Some(11)
        invalid_prompt: stopped: because [secret]; usage Some(11)
    "#]]
    .assert_eq(&all);
    check(
        r#"{"type":"response.failed","response":{"status":"failed","error":null}}"#,
        expect![[r#"
        interrupted: the server says that the response failed; usage None
    "#]],
    );
    check_whole(
        r#"{"object":"response","status":"failed","error":{"code":"server_error","message":"oops"},"output":[],"usage":null}"#,
        expect![[r#"
            unavailable: oops; usage Some(0)
        "#]],
    );
}

#[test]
fn what_was_cancelled_or_is_not_done_is_no_answer() {
    let usage = r#""usage":{"input_tokens":9,"output_tokens":2}"#;
    check(
        &format!(r#"{{"type":"response.cancelled","response":{{"status":"cancelled",{usage}}}}}"#),
        expect![[r#"
        interrupted: the response was cancelled at the server; usage Some(11)
    "#]],
    );
    // What it says about itself counts more than the name of the event.
    check(
        &format!(r#"{{"type":"response.completed","response":{{"status":"cancelled","output":[{SAID}]}}}}"#),
        expect![[r#"
        interrupted: the response was cancelled at the server; usage None
    "#]],
    );
    check(
        &format!(r#"{{"type":"response.completed","response":{{"status":"in_progress","output":[{SAID}]}}}}"#),
        expect![[r#"
        text "x"
        EndTurn by "", usage unknown
    "#]],
    );
    check_whole(
        &format!(r#"{{"status":"cancelled","output":[{SAID}],{usage}}}"#),
        expect![[r#"
        interrupted: the response was cancelled at the server; usage Some(11)
    "#]],
    );
    for status in ["queued", "in_progress"] {
        check_whole(
            &format!(r#"{{"status":"{status}","output":[]}}"#),
            expect![[r#"
            interrupted: the server answered before it was done; usage None
        "#]],
        );
    }
    check_whole(
        &format!(r#"{{"status":"pending_review","output":[{SAID}]}}"#),
        expect![[r#"
        malformed answer: the response ended with the unknown status "pending_review"; usage None
    "#]],
    );
}
