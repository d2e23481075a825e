//! What is special to each adapter over a connection: where its key and its headers go, and what it says of a refusal.

use expect_test::{Expect, expect};
use loopd_kernel::model::{Message, Part, StopReason};
use loopd_providers::{AnthropicConfig, GeminiConfig, ModelConfig, OpenAiConfig, ResponsesConfig, from_config_with};
use loopd_runtime::Model;
use loopd_runtime::kit::server::{Server, json, response};
use loopd_runtime::kit::{Step, call, context, request};
use std::sync::Arc;

/// The model of `config`; every key is `sk-secret-1`.
fn model(config: &ModelConfig) -> Arc<dyn Model> {
    from_config_with(config, &|_| Some("sk-secret-1".into())).expect("a model")
}

fn openai(url: &str) -> OpenAiConfig {
    let mut config = OpenAiConfig::new("m").at(format!("{url}/v1"));
    config.vendor = Some("test".into());
    config.api_key_env = Some("KEY".into());
    config
}

fn anthropic(url: &str) -> AnthropicConfig {
    let mut config = AnthropicConfig::new("m").at(url);
    config.api_key_env = Some("KEY".into());
    config
}

fn gemini(url: &str) -> GeminiConfig {
    let mut config = GeminiConfig::new("gemini-3-pro").at(format!("{url}/v1beta"));
    config.vendor = Some("gemini".into());
    config.api_key_env = Some("KEY".into());
    config
}

fn responses(url: &str) -> ResponsesConfig {
    let mut config = ResponsesConfig::new("m").at(format!("{url}/v1"));
    config.vendor = Some("test".into());
    config.api_key_env = Some("KEY".into());
    config
}

/// The heads of one request of each model, as far as they are our own, to a server that answers with `body`.
async fn heads(body: &str, configs: impl FnOnce(&str) -> Vec<ModelConfig>, expect: Expect) {
    let mut server = Server::always(json(body)).await.expect("a port");
    let mut heads = Vec::new();
    for config in configs(&server.url) {
        model(&config).call(request(), context()).await.expect("an answer");
        let seen = server.seen.recv().await.expect("a request");
        assert!(!seen.body.contains("sk-secret"), "{}", seen.body);
        let passed = ["host:", "content-length:"];
        let own = seen.head.lines().filter(|line| !passed.iter().any(|name| line.starts_with(name)));
        let mut own: Vec<&str> = own.collect();
        own[1..].sort_unstable();
        heads.push(own.join("\n") + "\n");
    }
    expect.assert_eq(&heads.join("\n"));
}

#[tokio::test]
async fn openai_keys_and_headers_go_where_they_belong() {
    let configs = |url: &str| {
        let mut bearer = openai(url);
        bearer.headers.0.insert("x-team".into(), "blue".into());
        assert!(!format!("{bearer:?}").contains("blue"), "{bearer:?}");
        let mut bare = openai(url);
        bare.base_url = Some(format!("{url}/openai/deployments/d/?api-version=1"));
        bare.api_key_header = Some("Api-Key".into());
        let mut none = openai(url);
        none.api_key_env = None;
        [bearer, bare, none].map(ModelConfig::Openai).to_vec()
    };
    heads(
        r#"{"choices":[{"message":{"content":"a"}}]}"#,
        configs,
        expect![[r#"
        POST /v1/chat/completions HTTP/1.1
        accept: text/event-stream
        authorization: Bearer sk-secret-1
        content-type: application/json
        user-agent: loopd/0.1.0
        x-team: blue

        POST /openai/deployments/d/chat/completions?api-version=1 HTTP/1.1
        accept: text/event-stream
        api-key: sk-secret-1
        content-type: application/json
        user-agent: loopd/0.1.0

        POST /v1/chat/completions HTTP/1.1
        accept: text/event-stream
        content-type: application/json
        user-agent: loopd/0.1.0
    "#]],
    )
    .await;
}

#[tokio::test]
async fn anthropic_keys_and_headers_go_where_they_belong() {
    let configs = |url: &str| {
        let mut other = anthropic(&format!("{url}/gateway/v1/"));
        other.api_key_env = None;
        other.stream = Some(false);
        other.headers.0.insert("anthropic-version".into(), "2099-01-01".into());
        other.headers.0.insert("anthropic-beta".into(), "b-1".into());
        [anthropic(url), other].map(ModelConfig::Anthropic).to_vec()
    };
    heads(
        r#"{"content":[],"stop_reason":"end_turn"}"#,
        configs,
        expect![[r#"
        POST /v1/messages HTTP/1.1
        accept: text/event-stream
        anthropic-version: 2023-06-01
        content-type: application/json
        user-agent: loopd/0.1.0
        x-api-key: sk-secret-1

        POST /gateway/v1/messages HTTP/1.1
        accept: application/json
        anthropic-beta: b-1
        anthropic-version: 2099-01-01
        content-type: application/json
        user-agent: loopd/0.1.0
    "#]],
    )
    .await;
}

#[tokio::test]
async fn gemini_keys_and_headers_go_where_they_belong() {
    let configs = |url: &str| {
        let mut bare = gemini(url);
        bare.api_key_env = None;
        bare.stream = Some(false);
        bare.headers.0.insert("x-team".into(), "blue".into());
        [gemini(url), bare].map(ModelConfig::Gemini).to_vec()
    };
    let body = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#;
    heads(
        body,
        configs,
        expect![[r#"
        POST /v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse HTTP/1.1
        accept: text/event-stream
        content-type: application/json
        user-agent: loopd/0.1.0
        x-goog-api-key: sk-secret-1

        POST /v1beta/models/gemini-3-pro:generateContent HTTP/1.1
        accept: application/json
        content-type: application/json
        user-agent: loopd/0.1.0
        x-team: blue
    "#]],
    )
    .await;
}

/// An answer of the Responses API that used this many tokens.
fn done(used: u64) -> String {
    let text = r#"{"type":"message","content":[{"type":"output_text","text":"done"}]}"#;
    format!(r#"{{"status":"completed","output":[{text}],"usage":{{"input_tokens":9,"output_tokens":{used}}}}}"#)
}

#[tokio::test]
async fn responses_keys_and_headers_go_where_they_belong() {
    let configs = |url: &str| {
        let mut azure = responses(url);
        azure.base_url = Some(format!("{url}/openai/v1/?api-version=preview"));
        azure.api_key_header = Some("Api-Key".into());
        azure.stream = Some(false);
        azure.headers.0.insert("x-team".into(), "blue".into());
        [responses(url), azure].map(ModelConfig::Responses).to_vec()
    };
    heads(
        &done(2),
        configs,
        expect![[r#"
        POST /v1/responses HTTP/1.1
        accept: text/event-stream
        authorization: Bearer sk-secret-1
        content-type: application/json
        user-agent: loopd/0.1.0

        POST /openai/v1/responses?api-version=preview HTTP/1.1
        accept: application/json
        api-key: sk-secret-1
        content-type: application/json
        user-agent: loopd/0.1.0
        x-team: blue
    "#]],
    )
    .await;
}

/// All of the output that was allowed was used, at a server that calls every answer complete.
#[tokio::test]
async fn an_answer_at_its_limit_is_a_cut_one() {
    for (used, stop) in [(79, StopReason::EndTurn), (80, StopReason::Length)] {
        let server = Server::always(json(&done(used))).await.expect("a port");
        let model = model(&ModelConfig::Responses(responses(&server.url)));
        assert_eq!(model.call(request(), context()).await.expect("an answer").reply.stop, stop, "{used}");
    }
}

async fn refused(config: impl FnOnce(&str) -> ModelConfig, steps: Vec<Step>, expect: Expect) {
    let server = Server::always(steps).await.expect("a port");
    let error = call(&model(&config(&server.url)), request(), context()).await.result.expect_err("a refusal");
    expect.assert_eq(&format!("{error}; wait {:?}", error.retry_after()).replace("127.0.0.1", "HERE"));
}

#[tokio::test]
async fn the_head_of_a_refusal_is_told() {
    let id = response("503 No", &[("x-request-id", "r-1"), ("retry-after-ms", "1500")], "");
    let told = expect!["unavailable: HTTP 503 without a word (request r-1); wait Some(1.5s)"];
    refused(|url| ModelConfig::Openai(openai(url)), id, told).await;
    let moved = || response("307 No", &[("location", "http://127.0.0.1:9/v2"), ("request-id", "r-2")], "");
    let told = || {
        expect![
            "rejected: HTTP 307 without a word (it redirects to http://HERE:9/v2: correct base_url) (request r-2); wait None"
        ]
    };
    refused(|url| ModelConfig::Anthropic(anthropic(url)), moved(), told()).await;
    refused(|url| ModelConfig::Gemini(gemini(url)), moved(), told()).await;
}

/// Where head and body disagree, the longer wait satisfies both.
#[tokio::test]
async fn gemini_says_in_the_body_how_long_to_wait() {
    let body = r#"{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"37.5s"}]}}"#;
    for (wait, longer) in [
        ("2", expect!["rate limited: HTTP 429: Quota exceeded.; wait Some(37.5s)"]),
        ("60", expect!["rate limited: HTTP 429: Quota exceeded.; wait Some(60s)"]),
    ] {
        let steps = response("429 No", &[("retry-after", wait)], body);
        refused(|url| ModelConfig::Gemini(gemini(url)), steps, longer).await;
    }
}

/// GEM-01 as reported: the second turn is refused unless parts, signature and responses stand as they must.
#[tokio::test]
async fn gem_01_a_server_that_demands_its_signatures_gets_them() {
    let server = Server::start(|number, seen| {
        if number == 1 {
            return json(r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":{}},"thoughtSignature":"S+/="},{"functionCall":{"name":"b","args":{}}}]},"finishReason":"STOP"}]}"#);
        }
        let turn = r#"{"role":"model","parts":[{"functionCall":{"name":"a","args":{}},"thoughtSignature":"S+/="},{"functionCall":{"name":"b","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"1"}}},{"functionResponse":{"name":"b","response":{"error":"2"}}}]}"#;
        if !seen.body.contains(turn) {
            return response("400 No", &[], r#"{"error":{"message":"Function call is missing a thought_signature"}}"#);
        }
        json(r#"{"candidates":[{"content":{"parts":[{"text":"done"}]},"finishReason":"STOP"}]}"#)
    })
    .await
    .expect("a port");
    let model = model(&ModelConfig::Gemini(gemini(&server.url)));
    let first = model.call(request(), context()).await.expect("tool uses");
    let ids: Vec<String> = first.reply.tool_uses().map(|(id, ..)| id.to_owned()).collect();
    assert_eq!(ids, ["gemini_7_0", "gemini_7_1"]);
    let mut second = request();
    second.messages.push(Arc::new(Message::Assistant { parts: first.reply.parts }));
    second.messages.push(Arc::new(Message::Tool { id: ids[1].clone(), text: "2".into(), error: true }));
    second.messages.push(Arc::new(Message::Tool { id: ids[0].clone(), text: "1".into(), error: false }));
    let answer = model.call(second, context()).await.expect("an answer");
    assert_eq!(answer.reply.parts, [Part::Text { text: "done".into() }]);
}

/// As reported of the Responses API: the second turn is refused unless the reasoning comes back encrypted, directly
/// before its call, without a status, and the result under the id of the call and not of the item.
#[tokio::test]
async fn oai_14_a_server_that_demands_its_reasoning_gets_it() {
    let server = Server::start(|number, seen| {
        if number == 1 {
            return json(r#"{"status":"completed","output":[{"type":"reasoning","id":"rs_1","status":"completed","encrypted_content":"gAAA","summary":[]},{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{\"x\":1}"}]}"#);
        }
        let turn = r#"{"encrypted_content":"gAAA","id":"rs_1","summary":[],"type":"reasoning"},{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"},{"type":"function_call_output","call_id":"a","output":"ok"}]"#;
        if !(seen.body.contains(turn) && seen.body.contains(r#""store":false"#)) {
            return response("400 No", &[], r#"{"error":{"message":"reasoning without its following item"}}"#);
        }
        json(&done(2))
    })
    .await
    .expect("a port");
    let model = model(&ModelConfig::Responses(responses(&server.url)));
    let first = model.call(request(), context()).await.expect("a tool use");
    let mut second = request();
    second.messages.push(Arc::new(Message::Assistant { parts: first.reply.parts }));
    second.messages.push(Arc::new(Message::Tool { id: "a".into(), text: "ok".into(), error: false }));
    let answer = model.call(second, context()).await.expect("an answer");
    assert_eq!(answer.reply.parts, [Part::Text { text: "done".into() }]);
}
