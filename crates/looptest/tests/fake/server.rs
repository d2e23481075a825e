//! What a test asks the server, and what a script may ask of it.

use crate::support::{adapter, call, user};
use expect_test::expect;
use looptest::fake::{FakeModel, Script, ScriptTurn, When};
use serde_json::{Value, json};
use std::panic::AssertUnwindSafe;

#[tokio::test]
async fn turns_come_by_what_was_said_by_condition_or_in_order() {
    let by_model = When { model: Some("big".into()), ..When::default() };
    let script = Script::empty()
        .says("first")
        .says("second")
        .when("weather", ScriptTurn::says("sunny"))
        .turn(ScriptTurn::says("large").when(by_model));
    let fake = FakeModel::start(script).await;
    let model = adapter("openai", &fake, true);
    let mut said = Vec::new();
    // Twice the same question is another attempt, and gets the same answer.
    for text in ["hi", "hi", "the Weather?"] {
        said.push(call(&model, &[user(text)]).await.expect("an answer").reply.joined_text());
    }
    assert_eq!(said, ["first", "first", "sunny"]);

    let once = |text: &str| ScriptTurn::says(text).once();
    let fake = FakeModel::start(Script::empty().turn(once("a")).turn(once("b"))).await;
    let model = adapter("gemini", &fake, false);
    let mut said = Vec::new();
    for _ in 0..2 {
        said.push(call(&model, &[user("hi")]).await.expect("an answer").reply.joined_text());
    }
    assert_eq!(said, ["a", "b"]);
    let error = call(&model, &[user("hi")]).await.expect_err("the script is over");
    expect!["rejected: HTTP 400: fake model: no turn of the script fits: turn 1, step 1, fresh results of [], last user message \"hi\" (request req_fake)"]
        .assert_eq(&error.to_string());
}

#[tokio::test]
async fn expectations_fail_with_what_was_heard() {
    let fake = FakeModel::start(Script::empty().says("hello")).await;
    call(&adapter("anthropic", &fake, true), &[user("hi")]).await.expect("an answer");
    let body = json!({"model": "m", "messages": []});
    let request = reqwest::Client::new().post(format!("{}/chat/completions", fake.openai_url()));
    request.body(body.to_string()).send().await.expect("an answer");
    fake.expect_calls(2);
    let message = |result: Result<_, Box<dyn std::any::Any + Send>>| {
        let _: &FakeModel = match result {
            Ok(fake) => fake,
            Err(panic) => return panic.downcast_ref::<String>().cloned().expect("a message"),
        };
        panic!("it holds")
    };
    let calls = message(std::panic::catch_unwind(AssertUnwindSafe(|| fake.expect_calls(3))));
    let refused = message(std::panic::catch_unwind(AssertUnwindSafe(|| fake.expect_nothing_refused())));
    expect![[r#"
        expected 3 calls of the model, and there were 2
          POST /v1/messages attempt 1: 200, turn 1
          POST /v1/chat/completions attempt 1: 400, refused: Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.
        a request was refused
          POST /v1/messages attempt 1: 200, turn 1
          POST /v1/chat/completions attempt 1: 400, refused: Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.
    "#]].assert_eq(&format!("{calls}{refused}"));
}

/// What a program in another language does: it reads the journal and opens gates over HTTP.
#[tokio::test]
async fn the_server_answers_about_itself() {
    let fake = FakeModel::start(Script::empty().says("hello")).await;
    call(&adapter("openai", &fake, true), &[user("hi")]).await.expect("an answer");
    let get = async |path: &str| {
        let text = reqwest::get(format!("{}{path}", fake.url())).await.expect("an answer").text().await;
        serde_json::from_str::<Value>(&text.expect("a body")).expect("JSON")
    };
    assert_eq!(get("/_fake/calls").await, json!({"calls": 1}));
    let journal = get("/_fake/journal").await;
    assert_eq!(journal.pointer("/0/request/messages/0/text"), Some(&json!("hi")));
    assert_eq!(journal.pointer("/0/headers/authorization"), Some(&json!("[secret]")));
    reqwest::Client::new().post(format!("{}/_fake/open/g", fake.url())).send().await.expect("an answer");
    fake.expect_calls(1);
}

#[tokio::test]
async fn tokens_are_counted_without_a_call() {
    let fake = FakeModel::start(Script::empty().says("hello")).await;
    let client = reqwest::Client::new();
    let message = json!({"model": "m", "messages": [{"role": "user", "content": "12345678"}]});
    let request = client.post(format!("{}/v1/messages/count_tokens", fake.url())).body(message.to_string());
    let text = request.header("anthropic-version", "2023-06-01").send().await.expect("an answer").text().await;
    assert_eq!(text.expect("a body"), r#"{"input_tokens":2}"#);
    let contents = json!({"contents": [{"parts": [{"text": "12345678"}]}]});
    let request = client.post(format!("{}/models/m:countTokens", fake.gemini_url())).body(contents.to_string());
    let text = request.send().await.expect("an answer").text().await;
    assert_eq!(text.expect("a body"), r#"{"totalTokens":2}"#);
    fake.expect_calls(0).expect_nothing_refused();
}

/// A stream of Gemini that nobody wants as events is a JSON list.
#[tokio::test]
async fn a_list_that_grows() {
    let fake = FakeModel::start(Script::empty().says("one two")).await;
    let contents = json!({"contents": [{"parts": [{"text": "hi"}]}]});
    let url = format!("{}/v1/models/m:streamGenerateContent", fake.url());
    let text =
        reqwest::Client::new().post(url).body(contents.to_string()).send().await.expect("an answer").text().await;
    let chunks: Vec<Value> = serde_json::from_str(&text.expect("a body")).expect("a list");
    let words: Vec<&str> =
        chunks.iter().filter_map(|chunk| chunk.pointer("/candidates/0/content/parts/0/text")?.as_str()).collect();
    assert_eq!(words, ["one ", "two", ""]);
}

#[tokio::test]
async fn what_cannot_be_played_is_no_server() {
    let error = FakeModel::start_with(Script::empty(), looptest::fake::FakeConfig::default()).await.err();
    assert_eq!(error.map(|error| error.to_string()).as_deref(), Some("the script: it has no turns"));
    let script = Script::empty().says("hello");
    let taken = FakeModel::start(script.clone()).await;
    let port = taken.url().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let config = looptest::fake::FakeConfig { port, ..looptest::fake::FakeConfig::default() };
    let error = FakeModel::start_with(script, config).await.expect_err("the port is taken");
    assert_eq!(error.to_string(), format!("port {port} of 127.0.0.1"));
}
