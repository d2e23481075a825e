//! What is in an answer. Names of tests are those of the public reports behind them.

use super::{check, check_whole};
use expect_test::expect;

#[test]
fn a_plain_answer() {
    check(
        r#"
        {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"incomplete_details":null,"model":"m-1","output":[],"usage":null}}
        {"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","status":"in_progress","output":[]}}
        {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}
        {"type":"response.content_part.added","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}
        {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hel","logprobs":[],"obfuscation":"xx"}
        {"type":"response.output_text.delta","sequence_number":5,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"lo 那里 🎉"}
        {"type":"response.output_text.done","sequence_number":6,"item_id":"msg_1","output_index":0,"content_index":0,"text":"Hello 那里 🎉"}
        {"type":"response.content_part.done","sequence_number":7,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"Hello 那里 🎉"}}
        {"type":"response.output_item.done","sequence_number":8,"output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello 那里 🎉","annotations":[]}]}}
        {"type":"response.completed","sequence_number":9,"response":{"id":"resp_1","status":"completed","error":null,"model":"m-1","output":[{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello 那里 🎉"}]}],"usage":{"input_tokens":1000,"input_tokens_details":{"cached_tokens":400},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":30},"total_tokens":1050}}}
        "#,
        expect![[r#"
            text "Hello 那里 🎉"
            EndTurn by "m-1", usage 600+400+0 20+30
        "#]],
    );
    check_whole(
        r#"{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"model":"m-1","output":[{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello 那里","annotations":[]}]}],"usage":{"input_tokens":9,"output_tokens":2,"total_tokens":11}}"#,
        expect![[r#"
            text "Hello 那里"
            EndTurn by "m-1", usage 9+0+0 2
        "#]],
    );
}

#[test]
fn calls_side_by_side_are_known_by_their_call_id() {
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_a","name":"now","arguments":""}}
        {"type":"response.output_item.added","output_index":1,"item":{"id":"fc_2","type":"function_call","status":"in_progress","call_id":"call_b","name":"files_read_1","arguments":""}}
        {"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":1,"delta":"{\"p\":"}
        {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":"{\"tz\":\"U"}
        {"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":1,"delta":"1}"}
        {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":"TC\"}"}
        {"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":0,"arguments":"{\"tz\":\"UTC\"}"}
        {"type":"response.output_item.done","output_index":0,"item":{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_a","name":"now","arguments":"{\"tz\":\"UTC\"}"}}
        {"type":"response.output_item.done","output_index":1,"item":{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_b","name":"files_read_1","arguments":"{\"p\":1}"}}
        {"type":"response.completed","response":{"status":"completed","output":[]}}
        "#,
        expect![[r#"
            use call_a now {"tz":"UTC"}
            use call_b files.read {"p":1}
            ToolUse by "", usage unknown
        "#]],
    );
    // Without a call id, and a name that nobody offered.
    check_whole(
        r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Look."}]},{"id":"fc_1","type":"function_call","name":"other","arguments":"{}"}]}"#,
        expect![[r#"
            text "Look."
            use call_7_1 other {}
            ToolUse by "", usage unknown
        "#]],
    );
    check_whole(
        r#"{"status":"completed","output":[{"type":"function_call","call_id":"a","name":"","arguments":"{}"}]}"#,
        expect![[r#"
            malformed answer: a function call without a name; usage None
        "#]],
    );
}

#[test]
fn oai_04_no_arguments_are_an_empty_object() {
    for arguments in [r#""""#, r#"" \n""#, "null"] {
        check_whole(
            &format!(
                r#"{{"status":"completed","output":[{{"type":"function_call","call_id":"a","name":"now","arguments":{arguments}}}]}}"#
            ),
            expect![[r#"
                use a now {}
                ToolUse by "", usage unknown
            "#]],
        );
    }
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"now","arguments":""}}
        {"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"now"}}
        {"type":"response.completed","response":{"status":"completed"}}
        "#,
        expect![[r#"
            use a now {}
            ToolUse by "", usage unknown
        "#]],
    );
}

#[test]
fn oai_05_arguments_may_be_an_object() {
    check_whole(
        r#"{"status":"completed","output":[{"type":"function_call","name":"w","arguments":{"city":"Paris", "n":2512292042121000001,"y":1e400}}]}"#,
        expect![[r#"
            use call_7_0 w {"city":"Paris", "n":2512292042121000001,"y":1e400}
            ToolUse by "", usage unknown
        "#]],
    );
}

#[test]
fn oai_14_reasoning_is_kept_byte_for_byte() {
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}
        {"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}
        {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"so \u00e9"}
        {"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,"summary_index":0,"text":"so \u00e9"}
        {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1", "type":"reasoning","encrypted_content":"gAAA\u002b==","summary":[{"type":"summary_text","text":"so \u00e9"}]}}
        {"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"a","name":"f","arguments":""}}
        {"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"a","name":"f","arguments":"{}"}}
        {"type":"response.completed","response":{"status":"completed","output":[{"id":"rs_1","type":"reasoning","encrypted_content":"gBBB","summary":[]},{"id":"fc_1","type":"function_call","call_id":"a","name":"f","arguments":"{}"}]}}
        "#,
        expect![[r#"
            reasoning {"id":"rs_1", "type":"reasoning","encrypted_content":"gAAA\u002b==","summary":[{"type":"summary_text","text":"so \u00e9"}]} of openai+responses/m
            use a f {}
            ToolUse by "", usage unknown
        "#]],
    );
    // Its end is missing, and so is what goes back.
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}
        {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"delta":"hm"}
        {"type":"response.completed","response":{"status":"completed","output":[]}}
        "#,
        expect![[r#"
            malformed answer: an item "reasoning" has no end; usage None
        "#]],
    );
}

#[test]
fn items_of_other_kinds_are_kept_in_their_place() {
    check_whole(
        r#"{"status":"completed","output":[{"id":"ws_1","type":"web_search_call", "status":"completed","action":{"query":"x","n":1.0}},{"type":"message","content":[{"type":"output_text","text":"a"}]},{"type":"hologram","beam":"\ud83c"}]}"#,
        expect![[r#"
            reasoning {"id":"ws_1","type":"web_search_call", "status":"completed","action":{"query":"x","n":1.0}} of openai+responses/m
            text "a"
            reasoning {"type":"hologram","beam":"\ud83c"} of openai+responses/m
            EndTurn by "", usage unknown
        "#]],
    );
    // It waits for what nobody offered.
    check_whole(
        r#"{"status":"completed","output":[{"type":"custom_tool_call","call_id":"c","name":"n","input":"i"}]}"#,
        expect![[r#"
            reasoning {"type":"custom_tool_call","call_id":"c","name":"n","input":"i"} of openai+responses/m
            Other("custom_tool_call") by "", usage unknown
        "#]],
    );
    check_whole(
        r#"{"status":"completed","output":[{"id":"x"}]}"#,
        expect![[r#"
        malformed answer: an item without a type: {"id":"x"}; usage None
    "#]],
    );
    check_whole(
        r#"{"status":"completed","output":["x"]}"#,
        expect![[r#"
        malformed answer: invalid type: string "x", expected struct Kind at line 1 column 3: "x"; usage None
    "#]],
    );
}

#[test]
fn messages_keep_their_order_and_their_phase() {
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"id":"m_1","type":"message","role":"assistant","phase":"commentary","content":[]}}
        {"type":"response.output_text.delta","item_id":"m_1","output_index":0,"content_index":0,"delta":"First "}
        {"type":"response.output_text.delta","item_id":"m_1","output_index":0,"content_index":1,"delta":"this."}
        {"type":"response.output_item.done","output_index":0,"item":{"id":"m_1","type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"First "},{"type":"output_text","text":"this."}]}}
        {"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"a","name":"f","arguments":"{}"}}
        {"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"a","name":"f","arguments":"{}"}}
        {"type":"response.output_item.added","output_index":2,"item":{"id":"m_2","type":"message","role":"assistant","phase":null,"content":[]}}
        {"type":"response.output_text.delta","item_id":"m_2","output_index":2,"content_index":0,"delta":"Then that."}
        {"type":"response.output_item.done","output_index":2,"item":{"id":"m_2","type":"message","role":"assistant","content":[{"type":"output_text","text":"Then that."}]}}
        {"type":"response.completed","response":{"status":"completed","output":[]}}
        "#,
        expect![[r#"
            reasoning {"type":"message","phase":"commentary"} of openai+responses/m
            text "First this."
            use a f {}
            text "Then that."
            ToolUse by "", usage unknown
        "#]],
    );
    check_whole(
        r#"{"status":"completed","output":[{"type":"message","content":"a plain string"},{"type":"message","content":[]}]}"#,
        expect![[r#"
            text "a plain string"
            EndTurn by "", usage unknown
        "#]],
    );
    check_whole(
        r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_smell"}]}]}"#,
        expect![[r#"
            malformed answer: content of the unknown type "output_smell"; usage None
        "#]],
    );
}

#[test]
fn oai_15_broken_arguments_are_recorded_as_they_came() {
    check(
        r#"
        {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}
        {"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"city\":\"A\"}"}
        {"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"city\":\"B\"}"}
        {"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":"{\"city\":\"A\"}{\"city\":\"B\"}"}}
        {"type":"response.completed","response":{"status":"completed"}}
        "#,
        expect![[r#"
            use a f {"city":"A"}{"city":"B"}
            ToolUse by "", usage unknown
        "#]],
    );
}

#[test]
fn dur_10_and_11_the_text_of_arguments_is_exact() {
    check_whole(
        r#"{"status":"completed","output":[{"type":"function_call","call_id":"a","name":"f","arguments":"{\"id\":2512292042121000001,\"x\":1.0,\"y\":1e400,\"z\":-0.0,\"s\":\"\\ud800\\u0000\"}"}]}"#,
        expect![[r#"
            use a f {"id":2512292042121000001,"x":1.0,"y":1e400,"z":-0.0,"s":"\ud800\u0000"}
            ToolUse by "", usage unknown
        "#]],
    );
}
