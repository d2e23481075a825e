//! What goes onto the wire.

use super::super::assemble::Assembler;
use super::super::assemble::Belongs;
use super::super::intake::whole;
use super::super::names::Names;
use super::super::request::encode;
use crate::GeminiConfig;
use crate::said::{assistant, reasoning, result, text, user, uses};
use expect_test::{Expect, expect};
use loopd_kernel::CallId;
use loopd_kernel::model::{Message, ModelConstants, ToolOffer};
use loopd_runtime::ModelRequest;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

fn local(model: &str) -> GeminiConfig {
    let mut config = GeminiConfig::new(model).at("http://127.0.0.1:1/v1beta");
    config.vendor = Some("gemini".into());
    config
}

fn offer(name: &str, parameters: &str) -> ToolOffer {
    ToolOffer { name: name.into(), description: "d".into(), parameters: parameters.into() }
}

fn request(messages: &[Message]) -> ModelRequest {
    ModelRequest {
        model: "registered name".into(),
        constants: Arc::default(),
        messages: messages.iter().cloned().map(Arc::new).collect(),
        max_output_tokens: 80,
        temperature_milli: None,
    }
}

fn with(constants: ModelConstants) -> ModelRequest {
    ModelRequest { constants: Arc::new(constants), ..request(&[user("hi")]) }
}

/// The body, one member or turn per line, in its exact text.
#[track_caller]
fn check(config: &GeminiConfig, request: &ModelRequest, expect: Expect) {
    let model = config.build(&|_| Some("AIza-1".into())).expect("a model");
    let shown = match encode(&model, request) {
        Err(error) => format!("{error}\n"),
        Ok(body) => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(&body).expect("an object");
            let line = |(name, raw): (String, &RawValue)| {
                if name != "contents" {
                    return format!("{name}: {raw}\n");
                }
                let turns: Vec<&RawValue> = serde_json::from_str(raw.get()).expect("a list");
                turns.iter().map(|turn| format!("- {turn}\n")).collect()
            };
            members.into_iter().map(line).collect()
        }
    };
    expect.assert_eq(&shown);
}

/// The turns alone, for a model that demands no signatures, or the one named.
#[track_caller]
fn check_turns(model: &str, messages: &[Message], expect: Expect) {
    let model = local(model).build(&|_| None).expect("a model");
    let body = encode(&model, &request(messages)).expect("a body");
    let body: BTreeMap<String, &RawValue> = serde_json::from_str(&body).expect("an object");
    let turns: Vec<&RawValue> = serde_json::from_str(body["contents"].get()).expect("a list");
    expect.assert_eq(&turns.iter().map(|turn| format!("{turn}\n")).collect::<String>());
}

#[test]
fn a_small_request_is_small() {
    check(
        &local("gemini-2.5-flash"),
        &request(&[user("hi")]),
        expect![[r#"
        - {"role":"user","parts":[{"text":"hi"}]}
        generationConfig: {"maxOutputTokens":80}
    "#]],
    );
    let mut config = GeminiConfig::new("gemini-2.5-flash");
    config.stream = Some(false);
    config.generation_config.insert("thinkingConfig".into(), serde_json::json!({"thinkingBudget": 0}));
    config.extra_body.insert("safetySettings".into(), serde_json::json!([]));
    let mut warm = with(ModelConstants { system: Some("Be brief.".into()), ..ModelConstants::default() });
    warm.temperature_milli = Some(700);
    check(
        &config,
        &warm,
        expect![[r#"
        - {"role":"user","parts":[{"text":"hi"}]}
        generationConfig: {"maxOutputTokens":80,"temperature":0.7,"thinkingConfig":{"thinkingBudget":0}}
        safetySettings: []
        systemInstruction: {"parts":[{"text":"Be brief."}]}
    "#]],
    );
    check(
        &config,
        &request(&[user("")]),
        expect![[r#"
        rejected: the request has no message that says anything
    "#]],
    );
}

#[test]
fn gem_01_the_parts_of_a_turn_stay_together() {
    // As reported: what came, goes back, signature on the part where it came.
    let answer = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":{"x": 1.0}},"thoughtSignature":"S\u003d"},{"functionCall":{"name":"b","args":{}}}]},"finishReason":"STOP"}]}"#;
    let names = Names::default();
    let belongs = Belongs { call: CallId(7), origin: "gemini/gemini-3-pro", names: &names, secrets: &[] };
    let parts = whole(Assembler::new(belongs), answer.as_bytes()).expect("an answer").reply.parts;
    let turn = [user("q"), assistant(&parts), result("gemini_7_1", "2"), user("hurry"), result("gemini_7_0", "1")];
    check_turns(
        "gemini-3-pro",
        &turn,
        expect![[r#"
        {"role":"user","parts":[{"text":"q"}]}
        {"role":"model","parts":[{"functionCall":{"name":"a","args":{"x": 1.0}},"thoughtSignature":"S\u003d"},{"functionCall":{"name":"b","args":{}}}]}
        {"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"1"}}},{"functionResponse":{"name":"b","response":{"output":"2"}}}]}
        {"role":"user","parts":[{"text":"hurry"}]}
    "#]],
    );
    // Another model gets no signature that it did not write, and its own word for that.
    check_turns(
        "gemini-3-flash",
        &turn,
        expect![[r#"
        {"role":"user","parts":[{"text":"q"}]}
        {"role":"model","parts":[{"functionCall":{"name":"a","args":{"x": 1.0}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"b","args":{}}}]}
        {"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"1"}}},{"functionResponse":{"name":"b","response":{"output":"2"}}}]}
        {"role":"user","parts":[{"text":"hurry"}]}
    "#]],
    );
    check_turns(
        "gemini-2.5-flash",
        &turn,
        expect![[r#"
        {"role":"user","parts":[{"text":"q"}]}
        {"role":"model","parts":[{"functionCall":{"name":"a","args":{"x": 1.0}}},{"functionCall":{"name":"b","args":{}}}]}
        {"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"1"}}},{"functionResponse":{"name":"b","response":{"output":"2"}}}]}
        {"role":"user","parts":[{"text":"hurry"}]}
    "#]],
    );
}

#[test]
fn gem_01_signatures_go_back_byte_for_byte_to_their_origin() {
    let own = "gemini/gemini-2.5-flash";
    check_turns(
        "gemini-2.5-flash",
        &[
            user("q"),
            assistant(&[
                reasoning(own, r#"{"text":"so \u00e9","thought":true,"thoughtSignature":"T\u003d"}"#),
                reasoning(own, r#"{"text":"unsigned","thought":true}"#),
                text("It "),
                reasoning(own, r#"{"thoughtSignature":"S"}"#),
                text("is."),
                reasoning(own, r#"{"text":"","thoughtSignature":"E"}"#),
            ]),
            user("more"),
            assistant(&[
                reasoning("gemini/gemini-3-pro", r#"{"thoughtSignature":"X"}"#),
                text("a"),
                reasoning("openai/m", r#"{"reasoning_content":"r"}"#),
                reasoning(own, r#"{"text":"","thoughtSignature":"Y","role":"user","functionCall":{"name":"evil"}}"#),
                reasoning(own, r#"{"text":{},"thoughtSignature":"Y"}"#),
                reasoning(own, r#"{"text":"t","thoughtSignature":{}}"#),
                reasoning(own, r#"{"text":"half \ud83c","thought":true,"thoughtSignature":"Z"}"#),
                reasoning(own, "?"),
            ]),
        ],
        expect![[r#"
            {"role":"user","parts":[{"text":"q"}]}
            {"role":"model","parts":[{"text":"so \u00e9","thought":true,"thoughtSignature":"T\u003d"},{"text":"It "},{"text":"is.","thoughtSignature":"S"},{"text":"","thoughtSignature":"E"}]}
            {"role":"user","parts":[{"text":"more"}]}
            {"role":"model","parts":[{"text":"a"},{"text":"","thoughtSignature":"Y"}]}
        "#]],
    );
}

#[test]
fn every_call_has_its_one_response_behind_it() {
    // A person spoke while tools ran, the results came in another order, and one use has none.
    check_turns(
        "gemini-2.5-flash",
        &[
            user("q"),
            user("and r"),
            assistant(&[text("Let me see."), uses("a", "f", "{}"), uses("b", "g", "{}"), uses("c", "h", "{}")]),
            result("b", "2"),
            user("hurry"),
            Message::Tool { id: "a".into(), text: "no".into(), error: true },
            assistant(&[text("done")]),
            assistant(&[text("really")]),
            result("c", "late"),
            assistant(&[]),
            assistant(&[text(""), reasoning("openai/m", "{}")]),
            user(""),
        ],
        expect![[r#"
            {"role":"user","parts":[{"text":"q"},{"text":"and r"}]}
            {"role":"model","parts":[{"text":"Let me see."},{"functionCall":{"id":"a","name":"f","args":{}}},{"functionCall":{"id":"b","name":"g","args":{}}},{"functionCall":{"id":"c","name":"h","args":{}}}]}
            {"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"error":"no"}}},{"functionResponse":{"id":"b","name":"g","response":{"output":"2"}}},{"functionResponse":{"id":"c","name":"h","response":{"error":"This call was not made."}}}]}
            {"role":"user","parts":[{"text":"hurry"}]}
            {"role":"model","parts":[{"text":"done"},{"text":"really"}]}
            {"role":"user","parts":[{"text":"Result of an earlier tool call: late"}]}
        "#]],
    );
    // Ids that are made up, empty or doubled are left to the order.
    check_turns(
        "gemini-2.5-flash",
        &[
            user("q"),
            assistant(&[uses("a", "f", "{}"), uses("a", "f", ""), uses("", "f", "[1]"), uses("gemini_1_0", "f", "{")]),
            result("a", "1"),
            result("a", "2"),
            result("", "3"),
            result("gemini_1_0", "4"),
        ],
        expect![[r#"
            {"role":"user","parts":[{"text":"q"}]}
            {"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}}},{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"f","args":{}}}]}
            {"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"f","response":{"output":"2"}}},{"functionResponse":{"name":"f","response":{"output":"3"}}},{"functionResponse":{"name":"f","response":{"output":"4"}}}]}
        "#]],
    );
}

#[test]
fn the_user_begins() {
    check_turns(
        "gemini-3-pro",
        &[assistant(&[uses("a", "f", "{}")]), result("a", "1")],
        expect![[r#"
        {"role":"user","parts":[{"text":"(The beginning of this conversation is not shown.)"}]}
        {"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]}
        {"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"1"}}}]}
    "#]],
    );
    check_turns(
        "gemini-3-pro",
        &[result("gone", "1"), assistant(&[text("a")])],
        expect![[r#"
        {"role":"user","parts":[{"text":"Result of an earlier tool call: 1"}]}
        {"role":"model","parts":[{"text":"a"}]}
    "#]],
    );
}

#[test]
fn names_are_within_the_alphabet_of_the_protocol() {
    let mut request = request(&[
        user("q"),
        assistant(&[uses("a", "fs.read", "{}"), uses("b", "made up()", "{}")]),
        result("a", "1"),
        result("b", "no such tool"),
    ]);
    let tools = vec![offer("fs.read", ""), offer("ok", " ")];
    request.constants = Arc::new(ModelConstants { tools, ..ModelConstants::default() });
    check(
        &local("gemini-2.5-flash"),
        &request,
        expect![[r#"
        - {"role":"user","parts":[{"text":"q"}]}
        - {"role":"model","parts":[{"functionCall":{"id":"a","name":"fs_read_h0WD5FG5","args":{}}},{"functionCall":{"id":"b","name":"made_up___c5DpWaHy","args":{}}}]}
        - {"role":"user","parts":[{"functionResponse":{"id":"a","name":"fs_read_h0WD5FG5","response":{"output":"1"}}},{"functionResponse":{"id":"b","name":"made_up___c5DpWaHy","response":{"output":"no such tool"}}}]}
        generationConfig: {"maxOutputTokens":80}
        tools: [{"functionDeclarations":[{"name":"fs_read_h0WD5FG5","description":"d"},{"name":"ok","description":"d"}]}]
    "#]],
    );
}

#[test]
fn gem_04_one_bad_tool_does_not_break_the_request() {
    let schema = r##"{"$defs":{"I":{"type":"object","properties":{"id":{"type":"string"}}}},"properties":{"x":{"anyOf":[{"$ref":"#/$defs/I"},{"type":"null"}]}},"additionalProperties":false}"##;
    let tools = vec![offer("good", schema), offer("no_json", "{"), offer("no_object", r#"{"type":"string"}"#)];
    let constants = ModelConstants { tools, ..ModelConstants::default() };
    check(
        &local("gemini-2.5-flash"),
        &with(constants),
        expect![[r#"
        - {"role":"user","parts":[{"text":"hi"}]}
        generationConfig: {"maxOutputTokens":80}
        tools: [{"functionDeclarations":[{"name":"good","description":"d","parameters":{"type":"OBJECT","properties":{"x":{"type":"OBJECT","nullable":true,"properties":{"id":{"type":"STRING"}}}}}}]}]
    "#]],
    );
}

#[test]
fn gem_05_without_tools_there_is_no_list_of_them() {
    for tools in [vec![], vec![offer("no_json", "{")]] {
        let constants = ModelConstants { tools, ..ModelConstants::default() };
        check(
            &local("gemini-2.5-flash"),
            &with(constants),
            expect![[r#"
                - {"role":"user","parts":[{"text":"hi"}]}
                generationConfig: {"maxOutputTokens":80}
            "#]],
        );
    }
}

#[test]
fn a_schema_goes_where_the_server_can_use_it() {
    let sent = |model: &str, tools: &[ToolOffer], schema: &str, set: &dyn Fn(&mut GeminiConfig)| {
        let mut config = local(model);
        set(&mut config);
        let constants = ModelConstants { system: None, tools: tools.to_vec(), output_schema: Some(schema.into()) };
        let body = encode(&config.build(&|_| None).expect("a model"), &with(constants)).map_err(|e| e.to_string());
        let body: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&body?).expect("an object");
        Ok::<_, String>(body["generationConfig"].get().to_owned())
    };
    let schema = r#"{"type":"object","properties":{"b":{"type":"string"},"a":{}},"required":["a"]}"#;
    let tool = [offer("f", "")];
    let as_is = |_: &mut GeminiConfig| {};
    let with_schema = r#"{"maxOutputTokens":80,"responseMimeType":"application/json","responseSchema":{"type":"OBJECT","properties":{"b":{"type":"STRING"},"a":{"type":"STRING"}},"required":["a"],"propertyOrdering":["b","a"]}}"#;
    let without = r#"{"maxOutputTokens":80}"#;
    let free = r#"{"maxOutputTokens":80,"responseMimeType":"application/json"}"#;
    assert_eq!(sent("gemini-2.5-flash", &[], schema, &as_is).as_deref(), Ok(with_schema));
    assert_eq!(sent("gemini-2.5-flash", &tool, schema, &as_is).as_deref(), Ok(without));
    assert_eq!(sent("gemini-3-pro", &tool, schema, &as_is).as_deref(), Ok(with_schema));
    let both = |config: &mut GeminiConfig| config.schema_with_tools = Some(true);
    assert_eq!(sent("gemini-2.5-flash", &tool, schema, &both).as_deref(), Ok(with_schema));
    let off = |config: &mut GeminiConfig| config.structured_output = Some(false);
    assert_eq!(sent("gemini-3-pro", &[], schema, &off).as_deref(), Ok(without));
    assert_eq!(sent("gemini-3-pro", &[], r#"{"type":"object"}"#, &as_is).as_deref(), Ok(free));
    assert!(sent("gemini-3-pro", &[], "{", &as_is).is_err_and(|error| error.contains("is no JSON")));
}

#[test]
fn dur_11_numbers_keep_their_text() {
    let exact = r#"{"id":2512292042121000001,"x":1.0, "y":1e300,"z":-0.0,"s":"\u00e9"}"#;
    let (beyond, half) = (r#"{"y":1e400}"#, r#"{"s":"\ud83c"}"#);
    check_turns(
        "gemini-2.5-flash",
        &[
            user("q"),
            assistant(&[uses("a", "f", exact), uses("b", "f", beyond), uses("c", "f", half)]),
            result("a", "a\u{0}b"),
            result("b", "bad"),
            result("c", "bad"),
        ],
        expect![[r#"
            {"role":"user","parts":[{"text":"q"}]}
            {"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{"id":2512292042121000001,"x":1.0, "y":1e300,"z":-0.0,"s":"\u00e9"}}},{"functionCall":{"id":"b","name":"f","args":{}}},{"functionCall":{"id":"c","name":"f","args":{}}}]}
            {"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"a\u0000b"}}},{"functionResponse":{"id":"b","name":"f","response":{"output":"bad"}}},{"functionResponse":{"id":"c","name":"f","response":{"output":"bad"}}}]}
        "#]],
    );
}
