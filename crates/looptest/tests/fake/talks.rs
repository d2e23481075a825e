//! Each adapter, streamed and whole: chat, tools, reasoning, structured answers, refusals, limits, usage.

use crate::support::{ADAPTERS, adapter, adapter_of, call, context, render, request, user};
use expect_test::{Expect, expect};
use loopd_kernel::Usage;
use loopd_kernel::model::{Message, Part, StopReason};
use looptest::fake::{FakeModel, Script, ScriptTurn, Wire};
use serde_json::json;
use std::sync::Arc;

/// What every adapter makes of the first answer, streamed and whole: it is the same everywhere.
async fn check(script: Script, expect: Expect) {
    let mut all = Vec::new();
    for name in ADAPTERS {
        for stream in [true, false] {
            let fake = FakeModel::start(script.clone()).await;
            let result = call(&adapter(name, &fake, stream), &[user("hi")]).await;
            fake.expect_calls(1).expect_nothing_refused();
            all.push(format!("{}, usage {:?}", render(&result), result.map(|answer| answer.usage)));
        }
    }
    let first = all.first().expect("an adapter").clone();
    assert!(all.iter().all(|one| *one == first), "{all:#?}");
    expect.assert_eq(&first);
}

fn counts() -> Usage {
    Usage { input: 100, output: 9, ..Usage::default() }
}

#[tokio::test]
async fn every_adapter_hears_the_same() {
    check(
        Script::empty().turn(ScriptTurn::says("那 is a word.").usage(counts())),
        expect![[r#""那 is a word." EndTurn, usage Ok(Some(Usage { input: 100, cache_read: 0, cache_write: 0, output: 9, reasoning: 0 }))"#]],
    )
    .await;
    let two = ScriptTurn::says("Wait.")
        .and_asks("get_weather", json!({"city": "Rome \"那\""}))
        .and_asks("get_weather", json!({}))
        .usage(Usage { cache_read: 50, ..counts() });
    check(
        Script::empty().turn(two),
        expect![[r#""Wait." get_weather{"city":"Rome \"那\""} get_weather{} ToolUse, usage Ok(Some(Usage { input: 100, cache_read: 50, cache_write: 0, output: 9, reasoning: 0 }))"#]],
    )
    .await;
    check(
        Script::empty().turn(ScriptTurn::json(json!({"n": 1})).usage(counts()).stops(StopReason::Length)),
        expect![[r#""{\"n\":1}" Length, usage Ok(Some(Usage { input: 100, cache_read: 0, cache_write: 0, output: 9, reasoning: 0 }))"#]],
    )
    .await;
}

/// A refusal is one everywhere, with the model's words in it where the provider passes them on.
#[tokio::test]
async fn refusals_are_no_errors() {
    for name in ADAPTERS {
        for stream in [true, false] {
            let fake = FakeModel::start(Script::empty().turn(ScriptTurn::refuses("I will not."))).await;
            let answer = call(&adapter(name, &fake, stream), &[user("hi")]).await.expect("an answer");
            assert_eq!(answer.reply.stop, StopReason::Refusal, "{name}");
            assert!(answer.reply.joined_text().contains("I will not."), "{name}: {:?}", answer.reply);
        }
    }
}

/// Thinking, two tools, their results, and the answer: what an adapter sends back is taken.
async fn conversation(name: &str, model: &str, stream: bool) {
    let first = ScriptTurn::asks("get_weather", json!({"city": "Rome"}))
        .and_asks("get_weather", json!({"city": "Oslo"}))
        .thinks("Two cities, two questions.");
    let script = Script::empty().turn(first).says("{{tool.get_weather/degrees}} degrees there.");
    let fake = FakeModel::start(script).await;
    let model = adapter_of(name, model, &fake, stream);
    let answer = call(&model, &[user("Rome and Oslo?")]).await.expect("tool uses");
    assert_eq!(answer.reply.stop, StopReason::ToolUse);
    let reasons = answer.reply.parts.iter().any(|part| matches!(part, Part::Reasoning { .. }));
    assert!(reasons, "{name}: {:?}", answer.reply.parts);
    let ids: Vec<String> = answer.reply.tool_uses().map(|(id, ..)| id.to_owned()).collect();
    let result = |id: &String, text: &str| Message::Tool { id: id.clone(), text: text.into(), error: false };
    let messages = [
        user("Rome and Oslo?"),
        Message::Assistant { parts: answer.reply.parts },
        result(&ids[1], r#"{"degrees":3}"#),
        result(&ids[0], r#"{"degrees":21}"#),
        user("Well?"),
    ];
    let answer = call(&model, &messages).await.expect("an answer");
    // In the order of the calls, whatever came first.
    assert_eq!(answer.reply.joined_text(), "3 degrees there.", "{name}");
    fake.expect_calls(2).expect_nothing_refused();

    let journal = fake.journal();
    let [_, second] = journal.as_slice() else { panic!("two requests") };
    assert_eq!((second.turn, second.stream, second.status, second.attempt), (Some(2), stream, 200, 1));
    let neutral = second.request.as_ref().expect("a request");
    assert_eq!(neutral.constants.system.as_deref(), Some("Be brief."));
    let [tool] = neutral.constants.tools.as_slice() else { panic!("one tool") };
    assert_eq!(tool.name, "get_weather");
    let roles: Vec<&str> = neutral
        .messages
        .iter()
        .map(|message| match &**message {
            Message::User { .. } => "user",
            Message::Assistant { .. } => "assistant",
            Message::Tool { .. } => "tool",
        })
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "user"], "{name}");
    assert!(!format!("{journal:?}").contains("sk-secret"), "{journal:?}");
    let wire = match name {
        "openai" => Wire::Completions,
        "anthropic" => Wire::Messages,
        _ => Wire::Gemini,
    };
    assert_eq!(second.wire, wire);
}

/// ANT-01, GEM-01, OAI-14: what a model thought goes back with its calls, signed.
#[tokio::test]
async fn tools_and_their_results_and_what_was_thought() {
    for stream in [true, false] {
        conversation("openai", "deepseek-reasoner", stream).await;
        conversation("anthropic", "claude-opus-5", stream).await;
        conversation("gemini", "gemini-3-pro", stream).await;
    }
}

#[tokio::test]
async fn a_schema_arrives_and_is_one_that_the_provider_takes() {
    let schema =
        r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}"#;
    for name in ADAPTERS {
        let fake = FakeModel::start(Script::empty().turn(ScriptTurn::json(json!({"city": "Paris"})))).await;
        let mut asked = request(&[user("The capital of France?")]);
        let mut constants = (*asked.constants).clone();
        constants.output_schema = Some(schema.into());
        constants.tools.clear();
        asked.constants = Arc::new(constants);
        let answer = adapter(name, &fake, true).call(asked, context()).await.expect("an answer");
        assert_eq!(answer.reply.joined_text(), r#"{"city":"Paris"}"#);
        fake.expect_nothing_refused();
        let journal = fake.journal();
        let neutral = journal[0].request.as_ref().expect("a request");
        assert!(neutral.constants.output_schema.as_deref().is_some_and(|text| text.contains("city")), "{name}");
    }
}

#[tokio::test]
async fn the_output_limit_is_held() {
    for name in ADAPTERS {
        // The least that the Responses API takes is 16; a token is four letters here.
        let fake = FakeModel::start(Script::empty().says("eight + ".repeat(9))).await;
        let mut asked = request(&[user("hi")]);
        asked.max_output_tokens = 16;
        let answer = adapter(name, &fake, true).call(asked, context()).await.expect("an answer");
        assert_eq!((answer.reply.joined_text(), &answer.reply.stop), ("eight + ".repeat(8), &StopReason::Length));
        assert_eq!(answer.usage.map(|usage| usage.output), Some(16), "{name}");
    }
}

/// A budget that leaves room for less than the Responses API takes gets a cut answer, as everywhere, and no refusal.
#[tokio::test]
async fn hardly_any_room_is_no_wrong_request() {
    for name in ADAPTERS {
        let fake = FakeModel::start(Script::empty().says("eight + ".repeat(9))).await;
        let mut asked = request(&[user("hi")]);
        asked.max_output_tokens = 1;
        let answer = adapter(name, &fake, true).call(asked, context()).await.expect("an answer");
        assert_eq!(answer.reply.stop, StopReason::Length, "{name}");
        fake.expect_nothing_refused();
    }
}

/// A tool use whose result was lost is made up for by every adapter, so that the server takes what follows (ANT-02).
#[tokio::test]
async fn a_lost_result_bricks_nothing() {
    let lost = Message::Assistant {
        parts: vec![Part::ToolUse { id: "a".into(), name: "get_weather".into(), args: "{}".into() }],
    };
    for name in ADAPTERS {
        let fake = FakeModel::start(Script::empty().turn(ScriptTurn::says("ok").once())).await;
        let answer = call(&adapter(name, &fake, true), &[user("q"), lost.clone(), user("go on")]).await;
        assert_eq!(answer.expect("an answer").reply.joined_text(), "ok", "{name}");
        fake.expect_nothing_refused();
    }
}
