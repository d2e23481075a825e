//! Scripts and what they play.

use super::*;
use expect_test::{Expect, expect};
use loopd_kernel::model::{Message, ModelConstants, StopReason, ToolOffer};
use loopd_kernel::{CallId, Digest, EffectKey, RunId};
use std::fmt::Write;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// In it, time passes only where everybody waits for it.
fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime")
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        model: MODEL.into(),
        constants: Arc::default(),
        messages: messages.into_iter().map(Arc::new).collect(),
        max_output_tokens: 1000,
        temperature_milli: None,
    }
}

fn user(text: &str) -> Message {
    Message::user(text)
}

fn result(id: &str, text: &str, error: bool) -> Message {
    Message::Tool { id: id.into(), text: text.into(), error }
}

fn context(attempt: u32) -> CallContext {
    CallContext {
        run: RunId([1; 16]),
        call: CallId(1),
        key: EffectKey(Digest::default()),
        attempt,
        timeout: Duration::from_secs(60),
        cancel: tokio_util::sync::CancellationToken::new(),
        deltas: None,
    }
}

fn render(result: &Result<ModelAnswer, ModelError>) -> String {
    let mut text = String::new();
    match result {
        Err(error) => {
            let _ = writeln!(text, "{error}");
        }
        Ok(answer) => {
            for part in &answer.reply.parts {
                let _ = match part {
                    Part::Text { text: said } => writeln!(text, "text {said}"),
                    Part::ToolUse { id, name, args } => writeln!(text, "use {id} {name} {args}"),
                    Part::Reasoning { .. } => writeln!(text, "reasoning"),
                };
            }
            let usage = answer.usage.map(|u| (u.input, u.output)).expect("the demo knows its usage");
            let _ = writeln!(text, "{:?} {usage:?}", answer.reply.stop);
        }
    }
    text
}

/// Plays the attempts 1 to `attempts` of one request, in a process where time does not pass by itself. Each line has
/// the milliseconds that passed and what was shown.
async fn play(demo: &Demo, request: &ModelRequest, attempts: u32) -> String {
    let mut text = String::new();
    for attempt in 1..=attempts {
        let (sender, mut deltas) = mpsc::unbounded_channel();
        let started = Instant::now();
        let result = demo.call(request.clone(), CallContext { deltas: Some(sender), ..context(attempt) }).await;
        let mut shown = Vec::new();
        while let Ok(delta) = deltas.try_recv() {
            shown.push(delta.text);
        }
        let _ = writeln!(text, "after {} ms, shown {shown:?}", started.elapsed().as_millis());
        text.push_str(&render(&result));
    }
    text
}

#[track_caller]
fn check_request(script: &str, request: &ModelRequest, attempts: u32, expect: Expect) {
    let script = DemoScript::from_json(script).expect("JSON");
    let runtime = runtime();
    let first = runtime.block_on(play(&Demo::new(script.clone()).expect("a script"), request, attempts));
    // Another process, which knows nothing of the first, answers the same.
    let second = runtime.block_on(play(&Demo::new(script).expect("a script"), request, attempts));
    assert_eq!(first, second);
    expect.assert_eq(&first);
}

#[track_caller]
fn check(script: &str, messages: Vec<Message>, expect: Expect) {
    check_request(script, &request(messages), 1, expect);
}

/// Plays a whole conversation: after each turn the tools answer with `results`.
fn conversation(demo: &Demo, input: &str, results: &[&str]) -> String {
    let runtime = runtime();
    let mut request = request(vec![user(input)]);
    let mut results = results.iter();
    let mut text = String::new();
    for _ in 0..10 {
        let answer = runtime.block_on(demo.call(request.clone(), context(1)));
        text.push_str(&render(&answer));
        let Ok(ModelAnswer { reply, .. }) = answer else {
            break;
        };
        request.messages.push(Arc::new(Message::Assistant { parts: reply.parts.clone() }));
        for (id, ..) in reply.tool_uses() {
            let said = results.next().expect("a result");
            request.messages.push(Arc::new(result(id, said, false)));
        }
        if reply.stop == StopReason::EndTurn {
            break;
        }
    }
    text
}

#[test]
fn the_default_script_answers_anything_and_says_what_it_is() {
    let script = serde_json::to_string(&DemoScript::default()).expect("JSON");
    check(
        &script,
        vec![user("Hello?")],
        expect![[r#"
        after 0 ms, shown ["(demo ", "model) ", "No ", "real ", "model ", "is ", "connected. ", "You ", "said: ", "Hello?"]
        text (demo model) No real model is connected. You said: Hello?
        EndTurn (2, 15)
    "#]],
    );
    check(
        &script,
        vec![user("q"), result("x", "{{input}} 22", false)],
        expect![[r#"
        after 0 ms, shown ["(demo ", "model) ", "The ", "tool ", "answered: ", "{{input}} ", "22"]
        text (demo model) The tool answered: {{input}} 22
        EndTurn (4, 11)
    "#]],
    );
    assert_eq!(Demo::default().terms().price, Some(Price::default()));
}

const WEATHER: &str = r#"{
  "label": "(demo)",
  "turns": [
    {"when": {"last_tool": "weather", "tool_failed": true}, "say": "No weather today."},
    {"when": {"last_tool": "weather", "results": {"weather": 2}},
     "say": "{{tool.weather/temp}} degrees in {{tool.weather/places/0}}, turn {{turn}}, step {{ step }}.",
     "usage": {"input": 100, "output": 9}},
    {"when": {"last_tool": "weather"}, "use": [{"tool": "weather", "args": {"again": "{{tool.weather/temp}}", "n": 1.50}}]},
    {"when": {"user_contains": "WEATHER", "step": 1}, "say": "Let me look.",
     "use": [{"tool": "weather", "args": {"place": "of {{input}}", "list": ["{{turn}}"]}}]},
    {"say": "Ask me about the weather."}
  ]
}"#;

#[test]
fn turns_follow_what_the_request_says() {
    let demo = Demo::new(DemoScript::from_json(WEATHER).expect("JSON")).expect("a script");
    expect![[r#"
        text (demo) Let me look.
        use demo_1_0 weather {"list":["1"],"place":"of the weather in Rome"}
        ToolUse (5, 19)
        use demo_2_0 weather {"again":22,"n":1.5}
        ToolUse (26, 7)
        text (demo) 23 degrees in Rome, turn 3, step 3.
        EndTurn (100, 9)
    "#]]
    .assert_eq(&conversation(&demo, "the weather in Rome", &[r#"{"temp":22}"#, r#"{"temp":23,"places":["Rome"]}"#]));
    check(
        WEATHER,
        vec![user("hi")],
        expect![[r#"
        after 0 ms, shown ["(demo) ", "Ask ", "me ", "about ", "the ", "weather."]
        text (demo) Ask me about the weather.
        EndTurn (1, 8)
    "#]],
    );
    let used =
        Message::Assistant { parts: vec![Part::ToolUse { id: "a".into(), name: "weather".into(), args: "{}".into() }] };
    check(
        WEATHER,
        vec![user("weather"), used, result("a", "timeout", true), user("well?")],
        expect![[r#"
        after 0 ms, shown ["(demo) ", "No ", "weather ", "today."]
        text (demo) No weather today.
        EndTurn (7, 6)
    "#]],
    );
}

#[test]
fn what_stands_above_the_last_line_is_context() {
    let script = r#"{"label": "", "turns": [
        {"when": {"line_contains": "ask me"}, "say": "What?"}, {"say": "You said: {{line}}"}
    ]}"#;
    check(
        script,
        vec![user("please Ask me\n")],
        expect![[r#"
            after 0 ms, shown ["What?"]
            text What?
            EndTurn (4, 2)
        "#]],
    );
    check(
        script,
        vec![user("person/ann: ask me\n\n---\n\nfine")],
        expect![[r#"
            after 0 ms, shown ["You ", "said: ", "fine"]
            text You said: fine
            EndTurn (8, 4)
        "#]],
    );
}

#[test]
fn conditions_on_what_surrounds_a_conversation() {
    let script = r#"{"label": "", "turns": [
        {"when": {"system_contains": "planner", "offers": ["search"]}, "json": {"plan": ["{{input}}", 1]}},
        {"when": {"turn": 2}, "say": "again"},
        {"when": {"turn": 1, "offers": []}, "use": [{"tool": "broken", "args": "{oops"}, {"tool": "bare"}]}
    ]}"#;
    let mut planner = request(vec![user("q")]);
    let search = ToolOffer { name: "search".into(), description: String::new(), parameters: "{}".into() };
    planner.constants = Arc::new(ModelConstants {
        system: Some("You are the Planner.".into()),
        tools: vec![search],
        output_schema: None,
    });
    check_request(
        script,
        &planner,
        1,
        expect![[r#"
        after 0 ms, shown ["{\"plan\":[\"q\",1]}"]
        text {"plan":["q",1]}
        EndTurn (8, 4)
    "#]],
    );
    check(
        script,
        vec![user("q")],
        expect![[r#"
        after 0 ms, shown []
        use demo_1_0 broken {oops
        use demo_1_1 bare {}
        ToolUse (1, 5)
    "#]],
    );
    let spoken = || Message::Assistant { parts: vec![] };
    check(
        script,
        vec![user("q"), spoken(), user("r")],
        expect![[r#"
        after 0 ms, shown ["again"]
        text again
        EndTurn (1, 2)
    "#]],
    );
    check(
        script,
        vec![user("q"), spoken(), spoken(), user("s")],
        expect![[r#"
        after 0 ms, shown []
        rejected: no turn of the demo script fits: turn 3, step 1, fresh results of [], last user message "s"
    "#]],
    );
}

#[test]
fn pace_and_faults_show_recovery() {
    let script = r#"{"label": "", "pace": {"delay_ms": 300, "word_ms": 50}, "turns": [{"say": "one two three four", "faults": [
        {"attempt": 1, "error": "rate_limited", "retry_after_ms": 1500},
        {"attempt": 2, "error": "cut", "after_words": 2},
        {"attempt": 3, "error": "hang"}
    ]}]}"#;
    check_request(
        script,
        &request(vec![user("q")]),
        4,
        expect![[r#"
        after 300 ms, shown []
        rate limited: (demo model) a fault of the script
        after 350 ms, shown ["one ", "two "]
        interrupted: (demo model) a fault of the script
        after 60000 ms, shown []
        interrupted: no answer within 60s
        after 450 ms, shown ["one ", "two ", "three ", "four"]
        text one two three four
        EndTurn (1, 5)
    "#]],
    );
    for (kind, code) in [
        ("unavailable", "model.unavailable"),
        ("malformed", "model.malformed"),
        ("rejected", "model.rejected"),
        ("too_large", "model.too_large"),
        ("unauthorised", "model.unauthorised"),
    ] {
        let script = format!(r#"{{"turns": [{{"say": "x", "faults": [{{"attempt": 1, "error": "{kind}"}}]}}]}}"#);
        let demo = Demo::new(DemoScript::from_json(&script).expect("JSON")).expect("a script");
        let runtime = runtime();
        let error = runtime.block_on(demo.call(request(vec![user("q")]), context(1))).expect_err("a fault");
        assert_eq!(error.code(), code);
    }
}

#[test]
fn what_it_thinks_is_reasoning_of_its_own() {
    check(
        r#"{"label": "", "turns": [{"when": {"model": "DEM"}, "reasoning": "about {{input}}", "say": "a"}, {"say": "b"}]}"#,
        vec![user("q")],
        expect![[r#"
            after 0 ms, shown ["a"]
            reasoning
            text a
            EndTurn (1, 1)
        "#]],
    );
}

#[test]
fn the_output_limit_is_held() {
    let mut small = request(vec![user("q")]);
    small.max_output_tokens = 3;
    let script = r#"{"label": "", "turns": [{"say": "é é é é é é é é", "use": [{"tool": "f"}]}]}"#;
    check_request(
        script,
        &small,
        1,
        expect![[r#"
        after 0 ms, shown ["é ", "é ", "é ", "é "]
        text é é é é 
        Length (1, 3)
    "#]],
    );
}

#[test]
fn a_wrong_script_says_what_is_wrong() {
    let check = |script: &str, expect: Expect| {
        let error = DemoScript::from_json(script).and_then(Demo::new).expect_err("a wrong script");
        expect.assert_eq(&error.to_string());
    };
    check(r#"{"turns": []}"#, expect!["it has no turns"]);
    check(
        r#"{"turns": [{"say": "a"}, {"when": {"turn": 1}}]}"#,
        expect!["turn 2 does nothing: it needs `say`, `json` or `use`"],
    );
    check(r#"{"turns": [{"say": "a", "json": 1}]}"#, expect!["turn 1 has `say` and `json`: it can have one text"]);
    check(
        r#"{"turns": [{"say": "{{inptu}}"}]}"#,
        expect![[
            r#"turn 1: the placeholder "{{inptu}}" is unknown; there are {{input}}, {{line}}, {{first}}, {{last}}, {{turn}}, {{step}}, {{tool.NAME}} and {{tool.NAME/json/pointer}}"#
        ]],
    );
    check(
        r#"{"turns": [{"use": [{"tool": "f", "args": {"a": ["{{input"]}}]}]}"#,
        expect![[
            r#"turn 1: the placeholder "{{input" is unknown; there are {{input}}, {{line}}, {{first}}, {{last}}, {{turn}}, {{step}}, {{tool.NAME}} and {{tool.NAME/json/pointer}}"#
        ]],
    );
    check(
        r#"{"turns": [{"say": "a", "wen": {}}]}"#,
        expect![
            "unknown field `wen`, expected one of `when`, `say`, `json`, `reasoning`, `use`, `pace`, `usage`, `stop`, `faults`, `times`, `on_wire` at line 1 column 29"
        ],
    );
    check(r#"{"turns": [{"say": "a", "times": 1}]}"#, expect!["turn 1 has `times`, which only a server can play"]);
    check(
        r#"{"turns": [{"say": "a", "faults": [{"attempt": 1, "on_wire": {"cut": {"bytes": 3}}}]}]}"#,
        expect!["turn 1 has `on_wire`, which only a server can play"],
    );
    check(
        r#"{"turns": [{"say": "a", "faults": [{"attempt": 2}]}]}"#,
        expect!["turn 1, attempt 2: the fault needs `error` or `on_wire`"],
    );
    check(
        r#"{"turns": [{"say": "a", "on_wire": {"chunk_bytes": 0}}]}"#,
        expect!["turn 1: `chunk_bytes` must be at least 1"],
    );
}

/// The script in the documentation is one.
#[test]
fn the_documented_script_plays() {
    let guide = include_str!("../../../../docs/demo-model.md");
    let mut scripts = 0;
    for block in guide.split("```json\n").skip(1) {
        let script = block.split("```").next().expect("an end");
        if script.contains("\"turns\"") {
            DemoScript::from_json(script).and_then(Demo::new).unwrap_or_else(|error| panic!("{error}: {script}"));
            scripts += 1;
        }
    }
    assert!(scripts >= 2, "the guide has no scripts");
    let walk = guide.split("```json\n").nth(1).and_then(|block| block.split("```").next()).expect("a script");
    let demo = Demo::new(DemoScript::from_json(walk).expect("JSON")).expect("a script");
    expect![[r#"
        text (demo model) I will look that up.
        use demo_1_0 get_weather {"city":"weather in Rome"}
        ToolUse (4, 18)
        text (demo model) It is 22 degrees.
        EndTurn (26, 8)
    "#]]
    .assert_eq(&conversation(&demo, "weather in Rome", &[r#"{"temperature":22}"#]));
}
