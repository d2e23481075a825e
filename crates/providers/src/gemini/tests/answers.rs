//! What servers send, and what becomes of it. Names of tests are those of the public reports behind them.

use super::super::assemble::{Assembler, Belongs, is_made_up};
use super::super::intake::{Intake, whole};
use super::super::names::{Names, on_wire};
use crate::intake::End;
use expect_test::{Expect, expect};
use loopd_kernel::CallId;
use loopd_kernel::model::{Part, ToolOffer};
use loopd_runtime::{ModelAnswer, ModelError};
use std::fmt::Write;

fn names() -> Names {
    let offer = ToolOffer { name: "fs.read".into(), description: String::new(), parameters: String::new() };
    Names::of(&[offer])
}

fn belongs(names: &Names) -> Belongs<'_> {
    Belongs { call: CallId(7), origin: "gemini/m", names, secrets: &["AIza-1"] }
}

fn render(result: &Result<ModelAnswer, ModelError>) -> String {
    let mut text = String::new();
    let answer = match result {
        Ok(answer) => answer,
        Err(error) => {
            let again = if error.is_retryable() { "again" } else { "final" };
            return format!("{error}; usage {:?}, {again}\n", error.usage().map(|usage| usage.total()));
        }
    };
    for part in &answer.reply.parts {
        let _ = match part {
            Part::Text { text: said } => writeln!(text, "text {said:?}"),
            Part::ToolUse { id, name, args } => writeln!(text, "use {id} {name} {args}"),
            Part::Reasoning { opaque, origin } => writeln!(text, "reasoning {opaque} of {origin}"),
        };
    }
    let usage = answer.usage.map(|u| format!("{}+{}+{}+{}", u.input, u.cache_read, u.output, u.reasoning));
    let _ = writeln!(text, "{:?} usage {}", answer.reply.stop, usage.unwrap_or_else(|| "unknown".into()));
    text
}

/// The result, and what was shown on the way.
fn read(pieces: &mut dyn Iterator<Item = &[u8]>) -> (Result<ModelAnswer, ModelError>, String) {
    let names = names();
    let mut intake = Intake::new(belongs(&names));
    let mut shown = String::new();
    for piece in pieces {
        if let Err(error) = intake.push(piece, &mut |text| shown.push_str(&text)) {
            return (Err(error), shown);
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
        let (left, right) = bytes.split_at(at);
        assert_eq!(read(&mut [left, b"", right].into_iter()).0, result, "cut in two at {at}");
        let (part, _) = read(&mut [left].into_iter());
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
        let _ = if line.starts_with(':') { write!(bytes, "{line}\n\n") } else { write!(bytes, "data: {line}\r\n\r\n") };
    }
    check_bytes(bytes.as_bytes(), expect);
}

/// A response that is not streamed.
#[track_caller]
fn check_whole(body: &str, expect: Expect) {
    let names = names();
    let result = whole(Assembler::new(belongs(&names)), body.as_bytes());
    expect.assert_eq(&render(&result));
    for at in 0..body.trim_end().len() {
        let part = whole(Assembler::new(belongs(&names)), &body.as_bytes()[..at]);
        assert!(matches!(part, Err(ModelError::Interrupted { .. })), "cut at {at}: {part:?}");
    }
}

#[test]
fn a_plain_answer() {
    check(
        r#"
        {"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9},"modelVersion":"m-1","responseId":"r"}
        {"candidates":[{"content":{"parts":[{"text":"lo 那里 🎉"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1,"totalTokenCount":10},"modelVersion":"m-1"}
        {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0,"safetyRatings":[]}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"totalTokenCount":11},"modelVersion":"m-1"}
        "#,
        expect![[r#"
            text "Hello 那里 🎉"
            EndTurn usage 9+0+2+0
        "#]],
    );
    check_whole(
        r#"{"candidates":[{"content":{"parts":[{"text":"Hello 那里"}],"role":"model"},"finishReason":"STOP","avgLogprobs":-0.1}],"usageMetadata":{"promptTokenCount":9,"cachedContentTokenCount":4,"candidatesTokenCount":2,"thoughtsTokenCount":3,"totalTokenCount":14},"modelVersion":"m-1"}"#,
        expect![[r#"
            text "Hello 那里"
            EndTurn usage 5+4+2+3
        "#]],
    );
}

#[test]
fn gem_01_signatures_stay_with_their_part() {
    check(
        r#"
        {"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":{"x": 1.0,"n":2512292042121000001}},"thoughtSignature":"S+/\u003d="},{"functionCall":{"name":"b","args":{}}}]}}]}
        {"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":6,"totalTokenCount":11}}
        "#,
        expect![[r#"
            reasoning {"thoughtSignature":"S+/\u003d="} of gemini/m
            use gemini_7_0 a {"x": 1.0,"n":2512292042121000001}
            use gemini_7_1 b {}
            ToolUse usage 5+0+6+0
        "#]],
    );
    // In chunks of their own, with ids, and the last without arguments.
    check(
        r#"
        {"candidates":[{"content":{"parts":[{"thoughtSignature":"S1","functionCall":{"id":"c1","name":"a","args":{}}}]}}]}
        {"candidates":[{"content":{"parts":[{"functionCall":{"id":"c2","name":"b"}}]},"finishReason":"STOP"}]}
        "#,
        expect![[r#"
            reasoning {"thoughtSignature":"S1"} of gemini/m
            use c1 a {}
            use c2 b {}
            ToolUse usage unknown
        "#]],
    );
}

#[test]
fn gem_01_signed_text_and_thoughts_are_not_mixed_with_others() {
    check(
        r#"
        {"candidates":[{"content":{"parts":[{"text":"**Pl\u00e4n","thought":true}]}}]}
        {"candidates":[{"content":{"parts":[{"text":"ning**\n","thought":true}]}}]}
        {"candidates":[{"content":{"parts":[{"text":"So","thought":true,"thoughtSignature":"T"},{"text":"more","thought":true}]}}]}
        {"candidates":[{"content":{"parts":[{"text":"It "}]}}]}
        {"candidates":[{"content":{"parts":[{"text":"is"},{"text":" so","thoughtSignature":"S"},{"text":", "}]}}]}
        {"candidates":[{"content":{"parts":[{"text":"really."},{"text":"","thoughtSignature":"E"}]},"finishReason":"STOP"}]}
        "#,
        expect![[r#"
            reasoning {"text":"**Pl\u00e4nning**\nSo","thought":true,"thoughtSignature":"T"} of gemini/m
            reasoning {"text":"more","thought":true} of gemini/m
            text "It is"
            reasoning {"thoughtSignature":"S"} of gemini/m
            text " so"
            text ", really."
            reasoning {"text":"","thoughtSignature":"E"} of gemini/m
            EndTurn usage unknown
        "#]],
    );
    // A signature that comes alone.
    check_whole(
        r#"{"candidates":[{"content":{"parts":[{"text":"a"},{"thoughtSignature":"E"},{}]},"finishReason":"STOP"}]}"#,
        expect![[r#"
            text "a"
            reasoning {"text":"","thoughtSignature":"E"} of gemini/m
            EndTurn usage unknown
        "#]],
    );
}

#[test]
fn gem_02_a_malformed_call_is_no_success() {
    check(
        r#"{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL"}],"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5}}"#,
        expect![[r#"
            malformed answer: MALFORMED_FUNCTION_CALL; usage Some(5), again
        "#]],
    );
    check_whole(
        r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: print(AIza-1)"}],"usageMetadata":{"promptTokenCount":5,"totalTokenCount":9}}"#,
        expect![[r#"
            malformed answer: MALFORMED_FUNCTION_CALL: Malformed function call: print([secret]); usage Some(9), again
        "#]],
    );
    check_whole(
        r#"{"candidates":[{"finishReason":"UNEXPECTED_TOOL_CALL","content":{"parts":[{"text":"a"}]}}]}"#,
        expect![[r#"
            malformed answer: UNEXPECTED_TOOL_CALL; usage None, again
        "#]],
    );
}

#[test]
fn gem_03_every_finish_reason_keeps_its_words() {
    check(
        r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"OTHER","finishMessage":"empty call"}]}"#,
        expect![[r#"
            text "a"
            Other("OTHER: empty call") usage unknown
        "#]],
    );
    let said = |word: &str, parts: &str| {
        let body = format!(
            r#"{{"candidates":[{{"content":{{"parts":[{parts}]}},"finishReason":"{word}","finishMessage":"why"}}]}}"#
        );
        let names = names();
        render(&whole(Assembler::new(belongs(&names)), body.as_bytes()))
    };
    let (text, call) = (r#"{"text":"a"}"#, r#"{"functionCall":{"name":"f"}}"#);
    let mut all = String::new();
    // All that the Gemini API and Vertex know, and one that nobody knows.
    for word in [
        "STOP",
        "MAX_TOKENS",
        "CONTINUATION",
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "MODEL_ARMOR",
        "ESCALATION",
        "PUP_LIMITED_DISABLED",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "IMAGE_OTHER",
        "NO_IMAGE",
        "OTHER",
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "MALFORMED_RESPONSE",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
        "NEW_REASON",
        "FINISH_REASON_UNSPECIFIED",
    ] {
        for parts in [text, call] {
            let _ = writeln!(all, "{word}: {}", said(word, parts).trim_end().replace('\n', " | "));
        }
    }
    expect![[r#"
        STOP: text "a" | EndTurn usage unknown
        STOP: use gemini_7_0 f {} | ToolUse usage unknown
        MAX_TOKENS: text "a" | Length usage unknown
        MAX_TOKENS: use gemini_7_0 f  | Length usage unknown
        CONTINUATION: text "a" | Length usage unknown
        CONTINUATION: use gemini_7_0 f  | Length usage unknown
        SAFETY: text "a" | text "[the answer was blocked: SAFETY: why]" | Refusal usage unknown
        SAFETY: use gemini_7_0 f {} | text "[the answer was blocked: SAFETY: why]" | Refusal usage unknown
        RECITATION: text "a" | text "[the answer was blocked: RECITATION: why]" | Refusal usage unknown
        RECITATION: use gemini_7_0 f {} | text "[the answer was blocked: RECITATION: why]" | Refusal usage unknown
        LANGUAGE: text "a" | text "[the answer was blocked: LANGUAGE: why]" | Refusal usage unknown
        LANGUAGE: use gemini_7_0 f {} | text "[the answer was blocked: LANGUAGE: why]" | Refusal usage unknown
        BLOCKLIST: text "a" | text "[the answer was blocked: BLOCKLIST: why]" | Refusal usage unknown
        BLOCKLIST: use gemini_7_0 f {} | text "[the answer was blocked: BLOCKLIST: why]" | Refusal usage unknown
        PROHIBITED_CONTENT: text "a" | text "[the answer was blocked: PROHIBITED_CONTENT: why]" | Refusal usage unknown
        PROHIBITED_CONTENT: use gemini_7_0 f {} | text "[the answer was blocked: PROHIBITED_CONTENT: why]" | Refusal usage unknown
        SPII: text "a" | text "[the answer was blocked: SPII: why]" | Refusal usage unknown
        SPII: use gemini_7_0 f {} | text "[the answer was blocked: SPII: why]" | Refusal usage unknown
        MODEL_ARMOR: text "a" | text "[the answer was blocked: MODEL_ARMOR: why]" | Refusal usage unknown
        MODEL_ARMOR: use gemini_7_0 f {} | text "[the answer was blocked: MODEL_ARMOR: why]" | Refusal usage unknown
        ESCALATION: text "a" | text "[the answer was blocked: ESCALATION: why]" | Refusal usage unknown
        ESCALATION: use gemini_7_0 f {} | text "[the answer was blocked: ESCALATION: why]" | Refusal usage unknown
        PUP_LIMITED_DISABLED: text "a" | text "[the answer was blocked: PUP_LIMITED_DISABLED: why]" | Refusal usage unknown
        PUP_LIMITED_DISABLED: use gemini_7_0 f {} | text "[the answer was blocked: PUP_LIMITED_DISABLED: why]" | Refusal usage unknown
        IMAGE_SAFETY: text "a" | text "[the answer was blocked: IMAGE_SAFETY: why]" | Refusal usage unknown
        IMAGE_SAFETY: use gemini_7_0 f {} | text "[the answer was blocked: IMAGE_SAFETY: why]" | Refusal usage unknown
        IMAGE_PROHIBITED_CONTENT: text "a" | text "[the answer was blocked: IMAGE_PROHIBITED_CONTENT: why]" | Refusal usage unknown
        IMAGE_PROHIBITED_CONTENT: use gemini_7_0 f {} | text "[the answer was blocked: IMAGE_PROHIBITED_CONTENT: why]" | Refusal usage unknown
        IMAGE_RECITATION: text "a" | text "[the answer was blocked: IMAGE_RECITATION: why]" | Refusal usage unknown
        IMAGE_RECITATION: use gemini_7_0 f {} | text "[the answer was blocked: IMAGE_RECITATION: why]" | Refusal usage unknown
        IMAGE_OTHER: text "a" | Other("IMAGE_OTHER: why") usage unknown
        IMAGE_OTHER: stopped: IMAGE_OTHER: why; usage None, final
        NO_IMAGE: text "a" | Other("NO_IMAGE: why") usage unknown
        NO_IMAGE: stopped: NO_IMAGE: why; usage None, final
        OTHER: text "a" | Other("OTHER: why") usage unknown
        OTHER: stopped: OTHER: why; usage None, final
        MALFORMED_FUNCTION_CALL: malformed answer: MALFORMED_FUNCTION_CALL: why; usage None, again
        MALFORMED_FUNCTION_CALL: malformed answer: MALFORMED_FUNCTION_CALL: why; usage None, again
        UNEXPECTED_TOOL_CALL: malformed answer: UNEXPECTED_TOOL_CALL: why; usage None, again
        UNEXPECTED_TOOL_CALL: malformed answer: UNEXPECTED_TOOL_CALL: why; usage None, again
        MALFORMED_RESPONSE: malformed answer: MALFORMED_RESPONSE: why; usage None, again
        MALFORMED_RESPONSE: malformed answer: MALFORMED_RESPONSE: why; usage None, again
        TOO_MANY_TOOL_CALLS: stopped: TOO_MANY_TOOL_CALLS: why; usage None, final
        TOO_MANY_TOOL_CALLS: stopped: TOO_MANY_TOOL_CALLS: why; usage None, final
        MISSING_THOUGHT_SIGNATURE: stopped: MISSING_THOUGHT_SIGNATURE: why; usage None, final
        MISSING_THOUGHT_SIGNATURE: stopped: MISSING_THOUGHT_SIGNATURE: why; usage None, final
        NEW_REASON: text "a" | Other("NEW_REASON: why") usage unknown
        NEW_REASON: stopped: NEW_REASON: why; usage None, final
        FINISH_REASON_UNSPECIFIED: interrupted: the answer ended without a finish reason; usage None, again
        FINISH_REASON_UNSPECIFIED: interrupted: the answer ended without a finish reason; usage None, again
    "#]].assert_eq(&all);
}

#[test]
fn a_blocked_prompt_is_a_refusal() {
    check(
        r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT","blockReasonMessage":"No."},"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5},"modelVersion":"m-1"}"#,
        expect![[r#"
            text "[the prompt was blocked: PROHIBITED_CONTENT: No.]"
            Refusal usage 5+0+0+0
        "#]],
    );
    check_whole(
        r#"{"promptFeedback":{"blockReason":"SAFETY","safetyRatings":[]}}"#,
        expect![[r#"
        text "[the prompt was blocked: SAFETY]"
        Refusal usage unknown
    "#]],
    );
}

#[test]
fn nothing_is_never_an_answer() {
    check_whole(
        r#"{"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5}}"#,
        expect![[r#"
        malformed answer: an answer without any candidate; usage Some(5), again
    "#]],
    );
    check_whole(
        r#"{"candidates":[],"promptFeedback":{}}"#,
        expect![[r#"
        malformed answer: an answer without any candidate; usage None, again
    "#]],
    );
    check_whole(
        r#"{"candidates":[{"content":{"role":"model"},"finishReason":"STOP","index":0}]}"#,
        expect![[r#"
        malformed answer: the model stopped without a word; usage None, again
    "#]],
    );
    check(
        r#"{"candidates":[{"content":{"parts":[{"text":" "}]},"finishReason":"STOP"}]}"#,
        expect![[r#"
        malformed answer: the model stopped without a word; usage None, again
    "#]],
    );
    // All the limit went into thinking.
    check(
        r#"{"candidates":[{"content":{},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":5,"thoughtsTokenCount":80,"totalTokenCount":85}}"#,
        expect![[r#"
            Length usage 5+0+0+80
        "#]],
    );
}

#[test]
fn oai_07_counts_may_come_behind_the_finish_reason() {
    check(
        r#"
        {"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1,"totalTokenCount":6}}
        {"candidates":[{"content":{},"finishReason":"STOP"}]}
        {"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"totalTokenCount":7}}
        "#,
        expect![[r#"
            text "a"
            EndTurn usage 5+0+2+0
        "#]],
    );
}

#[test]
fn oai_08_comments_and_odd_events_are_no_data() {
    check(
        r#"
        : keep-alive
        :
        {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}
        {}
        : keep-alive
        {"candidates":[{"finishReason":"STOP"}]}
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
        {"candidates":[{"content":{"parts":[{"text":"a\ud83c"}]}}]}
        {"candidates":[{"content":{"parts":[{"text":"\udf89b \ud800"}]}}]}
        {"candidates":[{"content":{"parts":[{"text":"c\u0000"}]},"finishReason":"STOP"}]}
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
        r#"{"error":{"code":400,"message":"bad tool","status":"INVALID_ARGUMENT"}}"#,
        expect![[r#"
        rejected: bad tool; usage Some(0), final
    "#]],
    );
    check(
        r#"
        {"candidates":[{"content":{"parts":[{"text":"Par"}]}}]}
        {"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}
        "#,
        expect![[r#"
            interrupted: The model is overloaded.; usage None, again
        "#]],
    );
    // Without a frame, behind events: that is how this server breaks off.
    check_bytes(
        b"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Par\"}]}}]}\r\n\r\n{\n  \"error\": {\n    \"code\": 500,\n    \"message\": \"Internal error\",\n    \"status\": \"INTERNAL\"\n  }\n}\n",
        expect![[r#"
            interrupted: Internal error; usage None, again
        "#]],
    );
    check_bytes(
        b"[{\n  \"error\": {\n    \"code\": 429,\n    \"message\": \"slow\",\n    \"status\": \"RESOURCE_EXHAUSTED\",\n    \"details\": [{\"retryDelay\": \"2s\"}]\n  }\n}\n]\n",
        expect![[r#"
            rate limited: slow; usage Some(0), again
        "#]],
    );
    check_whole(
        r#"{"error":{"code":503,"message":"later AIza-1","status":"UNAVAILABLE"}}"#,
        expect![[r#"
        unavailable: later [secret]; usage Some(0), again
    "#]],
    );
}

#[test]
fn oai_10_a_body_that_is_no_stream_is_shown() {
    let no_stream = |body: &str| render(&read(&mut [body.as_bytes()].into_iter()).0);
    assert_eq!(
        no_stream("<html>\n<b>AIza-1</b> Bad gateway</html>"),
        "malformed answer: no event stream: <html> <b>[secret]</b> Bad gateway</html>; usage None, again\n"
    );
    let chunk = r#"{"candidates":[{"content":{"parts":[{"text":"whole"}]},"finishReason":"STOP"}]}"#;
    assert_eq!(no_stream(chunk), "text \"whole\"\nEndTurn usage unknown\n");
    // The form of a stream without `alt=sse`.
    let list = format!("[{},\n{chunk}\n]", chunk.replace(r#","finishReason":"STOP""#, ""));
    assert_eq!(no_stream(&list), "text \"wholewhole\"\nEndTurn usage unknown\n");
    assert_eq!(no_stream("data: {oops}\n\n").split(':').next(), Some("malformed answer"));
}

#[test]
fn oai_11_without_its_finish_reason_it_is_no_answer() {
    let call = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"pay","args":{"amount":5}}}]}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"totalTokenCount":7}}"#;
    check(
        call,
        expect![[r#"
        interrupted: the answer ended without a finish reason; usage None, again
    "#]],
    );
    check(
        &format!("{call}\n[DONE]"),
        expect![[r#"
        interrupted: the answer ended without a finish reason; usage None, again
    "#]],
    );
    check(
        "[DONE]",
        expect![[r#"
        interrupted: the answer ended without a finish reason; usage None, again
    "#]],
    );
    check_bytes(
        b"",
        expect![[r#"
        interrupted: the answer ended without a finish reason; usage None, again
    "#]],
    );
    check_whole(
        r#"{"candidates":[{"content":{"parts":[{"text":"half"}]}}]}"#,
        expect![[r#"
        interrupted: the answer ended without a finish reason; usage None, again
    "#]],
    );
    // A finish reason does not help when the connection broke: something may be missing behind it.
    let names = names();
    let mut intake = Intake::new(belongs(&names));
    let bytes = b"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":3,\"candidatesTokenCount\":2}}\n\n";
    assert_eq!(intake.push(bytes, &mut |text| assert_eq!(text, "a")), Ok(()));
    let result = intake.end(End::Broken("reset".into()));
    assert_eq!(render(&result), "interrupted: reset; usage Some(5), again\n");
}

#[test]
fn dur_10_and_11_the_text_of_arguments_is_exact() {
    check(
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"id":2512292042121000001, "x":1.0,"y":1e400,"z":-0.0,"s":"\ud800\u0000"}}}]},"finishReason":"STOP"}]}"#,
        expect![[r#"
            use gemini_7_0 f {"id":2512292042121000001, "x":1.0,"y":1e400,"z":-0.0,"s":"\ud800\u0000"}
            ToolUse usage unknown
        "#]],
    );
    check_whole(
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":null}},{"functionCall":{"name":"f","args":[1]}}]},"finishReason":"STOP"}]}"#,
        expect![[r#"
            use gemini_7_0 f {}
            use gemini_7_1 f [1]
            ToolUse usage unknown
        "#]],
    );
    // Cut by the limit: missing arguments are not none.
    check_whole(
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]},"finishReason":"MAX_TOKENS"}]}"#,
        expect![[r#"
            use gemini_7_0 f 
            Length usage unknown
        "#]],
    );
}

#[test]
fn names_and_ids_are_the_tools_own() {
    let body = format!(
        r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"{}"}}}},{{"functionCall":{{"name":"fs_other"}}}}]}},"finishReason":"STOP"}}]}}"#,
        on_wire("fs.read")
    );
    check_whole(
        &body,
        expect![[r#"
        use gemini_7_0 fs.read {}
        use gemini_7_1 fs_other {}
        ToolUse usage unknown
    "#]],
    );
    assert!(is_made_up("gemini_7_0"));
    for id in ["gemini_7", "gemini_7_", "gemini__0", "gemini_x_0", "call_7_0", ""] {
        assert!(!is_made_up(id), "{id}");
    }
}

#[test]
fn what_nobody_asked_for_is_not_dropped() {
    for part in [
        r#"{"inlineData":{"mimeType":"image/png","data":"AA=="}}"#,
        r#"{"executableCode":{"language":"PYTHON","code":"1"}}"#,
        r#"{"functionCall":{"name":"f","willContinue":true}}"#,
        r#"{"functionCall":{"args":{}}}"#,
        r#"{"text":1}"#,
        r#"{"text":"a","thoughtSignature":1}"#,
    ] {
        let body = format!(r#"{{"candidates":[{{"content":{{"parts":[{part}]}},"finishReason":"STOP"}}]}}"#);
        let names = names();
        let result = whole(Assembler::new(belongs(&names)), body.as_bytes());
        assert!(matches!(result, Err(ModelError::Malformed { .. })), "{part}: {result:?}");
    }
    check_whole(
        r#"{"candidates":[{"index":0,"finishReason":"STOP"},{"index":1,"finishReason":"STOP"}]}"#,
        expect![[r#"
            malformed answer: a second candidate, which nobody asked for; usage None, again
        "#]],
    );
}
