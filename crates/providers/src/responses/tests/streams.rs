//! How an answer arrives. Names of tests are those of the public reports behind them.

use super::{assembler, check, check_bytes};
use crate::heard::{read, render};
use crate::intake::{End, Intake};
use expect_test::expect;

#[test]
fn servers_that_do_not_number_are_understood() {
    // As llama.cpp streams: no place anywhere.
    check(
        r#"
        {"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress"}}
        {"type":"response.output_item.added","item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}
        {"type":"response.output_text.delta","item_id":"msg_1","delta":"Wait."}
        {"type":"response.output_text.done","item_id":"msg_1","text":"Wait."}
        {"type":"response.output_item.done","item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Wait."}]}}
        {"type":"response.output_item.added","item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"f","arguments":"","status":"in_progress"}}
        {"type":"response.function_call_arguments.delta","item_id":"fc_1","delta":"{\"a\":"}
        {"type":"response.function_call_arguments.delta","item_id":"fc_1","delta":"1}"}
        {"type":"response.output_item.done","item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"f","arguments":"{\"a\":1}","status":"completed"}}
        {"type":"response.completed","response":{"status":"completed","model":"m-1","output":[{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Wait."}]},{"id":"fc_1","type":"function_call","call_id":"call_1","name":"f","arguments":"{\"a\":1}"}],"usage":{"input_tokens":9,"output_tokens":2,"total_tokens":11}},"timings":{"n":1.5}}
        "#,
        expect![[r#"
            text "Wait."
            use call_1 f {"a":1}
            ToolUse by "m-1", usage 9+0+0 2
        "#]],
    );
}

#[test]
fn an_id_may_change_all_the_time() {
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"id":"r1","type":"function_call","call_id":"a","name":"f","arguments":""}}
        {"type":"response.function_call_arguments.delta","output_index":0,"item_id":"r2","delta":"{\"x\":"}
        {"type":"response.output_item.added","output_index":1,"item":{"id":"r3","type":"function_call","call_id":"b","name":"g","arguments":""}}
        {"type":"response.function_call_arguments.delta","output_index":1,"item_id":"r4","delta":"{}"}
        {"type":"response.function_call_arguments.delta","output_index":0,"item_id":"r5","delta":"1}"}
        {"type":"response.output_item.done","output_index":0,"item":{"id":"r6","type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"}}
        {"type":"response.output_item.done","output_index":1,"item":{"id":"r7","type":"function_call","call_id":"b","name":"g","arguments":"{}"}}
        {"type":"response.completed","response":{"status":"completed","output":[]}}
        "#,
        expect![[r#"
            use a f {"x":1}
            use b g {}
            ToolUse by "", usage unknown
        "#]],
    );
}

#[test]
fn oai_02_items_may_share_a_place() {
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"id":"x1","type":"function_call","call_id":"a","name":"w","arguments":""}}
        {"type":"response.function_call_arguments.delta","output_index":0,"item_id":"x1","delta":"{\"p\":1}"}
        {"type":"response.output_item.done","output_index":0,"item":{"id":"x1","type":"function_call","call_id":"a","name":"w","arguments":"{\"p\":1}"}}
        {"type":"response.output_item.added","output_index":0,"item":{"id":"x2","type":"function_call","call_id":"b","name":"w","arguments":""}}
        {"type":"response.function_call_arguments.delta","output_index":0,"item_id":"x2","delta":"{\"p\":2}"}
        {"type":"response.output_item.done","output_index":0,"item":{"id":"x2","type":"function_call","call_id":"b","name":"w","arguments":"{\"p\":2}"}}
        {"type":"response.completed","response":{"status":"completed"}}
        "#,
        expect![[r#"
            use a w {"p":1}
            use b w {"p":2}
            ToolUse by "", usage unknown
        "#]],
    );
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"id":"x1","type":"function_call","call_id":"a","name":"w","arguments":"{}"}}
        {"type":"response.output_item.added","output_index":1,"item":{"id":"x1","type":"function_call","call_id":"a","name":"w","arguments":"{}"}}
        "#,
        expect![[r#"
            malformed answer: item "x1" begins twice; usage None
        "#]],
    );
}

#[test]
fn the_last_word_may_be_missing_or_say_less() {
    // Pieces alone.
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"type":"message","content":[]}}
        {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a"}
        {"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c","name":"f","arguments":""}}
        {"type":"response.function_call_arguments.delta","output_index":1,"delta":"{}"}
        {"type":"response.completed","response":{"status":"completed","output":[]}}
        "#,
        expect![[r#"
            text "a"
            use c f {}
            ToolUse by "", usage unknown
        "#]],
    );
    // An end without what came before.
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"id":"m","type":"message","content":[]}}
        {"type":"response.output_text.delta","output_index":0,"delta":"a"}
        {"type":"response.output_item.done","output_index":0,"item":{"id":"m","type":"message","content":[]}}
        {"type":"response.output_item.added","output_index":1,"item":{"id":"c","type":"function_call","call_id":"c","name":"f","arguments":""}}
        {"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"a\":1}"}
        {"type":"response.output_item.done","output_index":1,"item":{"id":"c","type":"function_call","arguments":""}}
        {"type":"response.completed","response":{"status":"completed","output":[]}}
        "#,
        expect![[r#"
            text "a"
            use c f {"a":1}
            ToolUse by "", usage unknown
        "#]],
    );
    // The end alone: of the texts, of an item, of the response.
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"id":"m","type":"message","content":[]}}
        {"type":"response.output_text.done","output_index":0,"content_index":0,"text":"a"}
        {"type":"response.output_item.done","output_index":1,"item":{"id":"n","type":"message","content":[{"type":"output_text","text":"b"}]}}
        {"type":"response.output_item.added","output_index":2,"item":{"id":"c","type":"function_call","call_id":"c","name":"f"}}
        {"type":"response.function_call_arguments.done","output_index":2,"arguments":"{\"a\":1}"}
        {"type":"response.completed","response":{"status":"completed","output":[]}}
        "#,
        expect![[r#"
            text "a"
            text "b"
            use c f {"a":1}
            ToolUse by "", usage unknown
        "#]],
    );
    check(
        r#"
        {"type":"response.created","response":{"status":"in_progress"}}
        {"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]}}
        "#,
        expect![[r#"
            text "a"
            EndTurn by "", usage unknown
        "#]],
    );
    // A list that knows of an item that was never announced: no item twice, none lost.
    check(
        r#"
        {"type":"response.output_item.done","item":{"id":"c","type":"function_call","call_id":"c","name":"f","arguments":"{}"}}
        {"type":"response.completed","response":{"status":"completed","output":[{"id":"r","type":"reasoning","encrypted_content":"g"},{"id":"c","type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}}
        "#,
        expect![[r#"
            reasoning {"id":"r","type":"reasoning","encrypted_content":"g"} of openai+responses/m
            use c f {}
            ToolUse by "", usage unknown
        "#]],
    );
}

#[test]
fn a_list_that_lost_a_call_is_not_believed() {
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f"}}
        {"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":"a"}]}}
        "#,
        expect![[r#"
            malformed answer: the list of all items lacks a call that came before; usage None
        "#]],
    );
}

#[test]
fn pieces_that_belong_nowhere_are_errors() {
    check(
        r#"{"type":"response.output_text.delta","output_index":0,"delta":"a"}"#,
        expect![[r#"
        malformed answer: a piece of an item that has not begun; usage None
    "#]],
    );
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"type":"message","content":[]}}
        {"type":"response.function_call_arguments.delta","output_index":0,"delta":"a"}
        "#,
        expect![[r#"
            malformed answer: a piece of arguments that belongs to no call; usage None
        "#]],
    );
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","name":"f"}}
        {"type":"response.output_text.delta","output_index":0,"delta":"a"}
        "#,
        expect![[r#"
            malformed answer: a piece of text that belongs to no message; usage None
        "#]],
    );
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","name":"f"}}
        {"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[]}}
        "#,
        expect![[r#"
            malformed answer: an item ends as another one; usage None
        "#]],
    );
    check(
        r#"{"type":"response.output_item.added","output_index":0}"#,
        expect![[r#"
        malformed answer: an item without content; usage None
    "#]],
    );
}

#[test]
fn oai_08_comments_and_unknown_events_are_passed_over() {
    check(
        r#"
        : OPENROUTER PROCESSING
        :
        {"type":"response.queued","response":{"status":"queued"}}
        {"type":"keepalive","sequence_number":3}
        {}
        {"type":"response.output_item.added","output_index":0,"item":{"id":"m","type":"message","content":[]}}
        {"type":"response.hologram.delta","output_index":0,"delta":{"x":1},"text":[1],"response":7,"item":"?"}
        {"type":"codex.rate_limits","limits":{}}
        {"type":"response.output_text.annotation.added","output_index":0,"annotation":{}}
        : OPENROUTER PROCESSING
        {"type":"response.output_text.delta","output_index":0,"delta":"a"}
        {"type":"response.completed","response":{"status":"completed","output":[]}}
        "#,
        expect![[r#"
            text "a"
            EndTurn by "", usage unknown
        "#]],
    );
    check_bytes(
        b"event: ping\ndata: still here\n\nevent: response.output_item.done\ndata: {\"item\":{\"type\":\"message\",\"content\":\"a\"}}\n\nevent: response.completed\ndata: {\"response\":{\"status\":\"completed\"}}\n\n",
        expect![[r#"
            text "a"
            EndTurn by "", usage unknown
        "#]],
    );
}

#[test]
fn oai_09_characters_may_be_cut_in_two() {
    // By bytes, with every line end there is and a byte order mark.
    check_bytes(
        "\u{feff}: hi\r\ndata: {\"type\":\"response.output_item.added\",\rdata: \"item\":{\"id\":\"m\",\"type\":\"message\"}}\n\r\nid: 1\rdata: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"delta\":\"那🎉\"}\r\n\r\ndata:{\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\r\r"
            .as_bytes(),
        expect![[r#"
            text "那🎉"
            EndTurn by "", usage unknown
        "#]],
    );
    // By UTF-16 units.
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"type":"message"}}
        {"type":"response.output_text.delta","output_index":0,"delta":"a\ud83c"}
        {"type":"response.output_text.delta","output_index":0,"delta":"\udf89b \ud800"}
        {"type":"response.output_text.delta","output_index":0,"delta":"c\u0000"}
        {"type":"response.completed","response":{"status":"completed"}}
        "#,
        expect![[r#"
            text "a🎉b �c\0"
            EndTurn by "", usage unknown
        "#]],
    );
    check_bytes(
        b"data: {\"type\":\"response.output_text.delta\",\"delta\":\"\xE9\x82\"}\n\n",
        expect![[r#"
        malformed answer: the stream is not UTF-8; usage None
    "#]],
    );
}

#[test]
fn oai_10_a_body_that_is_no_stream_is_shown() {
    let no_stream = |body: &str| render(&read(assembler(), &mut [body.as_bytes()].into_iter()).0);
    assert_eq!(
        no_stream("<html>\n<b>sk-1</b> Bad gateway</html>"),
        "malformed answer: no event stream: <html> <b>[secret]</b> Bad gateway</html>; usage None\n"
    );
    assert_eq!(
        no_stream(r#"{"error":{"type":"invalid_request_error","message":"bad tool"}}"#),
        "rejected: bad tool; usage Some(0)\n"
    );
    assert_eq!(
        no_stream(r#"{"status":"completed","output":[{"type":"message","content":"whole"}]}"#),
        "text \"whole\"\nEndTurn by \"\", usage unknown\n"
    );
    assert_eq!(no_stream("data: {oops}\n\n").split(':').next(), Some("malformed answer"));
    // Another protocol's answer is none here.
    assert_eq!(
        no_stream(
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
        ),
        "interrupted: the stream ended without saying that the answer is complete; usage None\n"
    );
}

#[test]
fn oai_11_without_its_end_it_is_no_answer() {
    let called = r#"
        {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"pay","arguments":""}}
        {"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"amount\":5}"}
        {"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","status":"completed","call_id":"a","name":"pay","arguments":"{\"amount\":5}"}}
        "#;
    check(
        called,
        expect![[r#"
        interrupted: the stream ended without saying that the answer is complete; usage None
    "#]],
    );
    // The word of another protocol proves nothing.
    check(
        &format!("{called}\n[DONE]"),
        expect![[r#"
        interrupted: the stream ended without saying that the answer is complete; usage None
    "#]],
    );
    let mut intake = Intake::new(assembler());
    assert_eq!(intake.push(crate::heard::stream(called).as_bytes(), &mut |text| assert_eq!(text, "")), Ok(()));
    assert_eq!(render(&intake.end(End::Broken("reset".into()))), "interrupted: reset; usage None\n");
    check(
        r#"{"type":"response.completed"}"#,
        expect![[r#"
        malformed answer: an end without a response; usage None
    "#]],
    );
}
