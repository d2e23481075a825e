//! The Gemini adapter over a connection.

use crate::support::{Server, Step, call, chunk, context, last_chunk, once, request, response, stream_head};
use expect_test::{Expect, expect};
use loopd_kernel::model::{Message, ModelConstants, Part, ToolOffer};
use loopd_providers::{GeminiConfig, ModelConfig, from_config_with};
use loopd_runtime::{Model, ModelError};
use std::sync::Arc;

const GOOD: &str = concat!(
    ": hello\r\n\r\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"那 \"}],\"role\":\"model\"}}],\"modelVersion\":\"m-1\"}\r\n\r\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"f\",\"args\":{\"x\": 1}},\"thoughtSignature\":\"S\"}]}}]}\r\n\r\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":2,\"totalTokenCount\":11}}\r\n\r\n",
);

fn config(url: &str) -> GeminiConfig {
    let mut config = GeminiConfig::new("gemini-3-pro").at(format!("{url}/v1beta"));
    config.vendor = Some("gemini".into());
    config.api_key_env = Some("KEY".into());
    config
}

/// The model of `config`; every key is `sk-secret-1`.
fn model(config: GeminiConfig) -> Arc<dyn Model> {
    from_config_with(&ModelConfig::Gemini(config), &|_| Some("sk-secret-1".into())).expect("a model")
}

/// One call to a server that always does `steps`. It may get one request only.
#[track_caller]
fn check(steps: Vec<Step>, expect: Expect) {
    let made = |url: &str| {
        let mut config = config(url);
        config.idle_timeout_ms = Some(200);
        model(config)
    };
    expect.assert_eq(&once(steps, made));
}

fn good() -> Expect {
    expect![[r#"
        Text { text: "那 " }
        Reasoning { opaque: "{\"thoughtSignature\":\"S\"}", origin: "gemini/gemini-3-pro" }
        ToolUse { id: "gemini_7_0", name: "f", args: "{\"x\": 1}" }
        ToolUse by "m-1", usage Some(11)
    "#]]
}

#[test]
fn a_stream_in_pieces() {
    check(vec![stream_head(), chunk(GOOD.as_bytes()), last_chunk()], good());
    let bytes = GOOD.as_bytes().chunks(1).map(chunk);
    check([stream_head()].into_iter().chain(bytes).chain([last_chunk()]).collect(), good());
    // OAI-09: within a character.
    let cut = GOOD.find('那').expect("there") + 1;
    let (left, right) = GOOD.as_bytes().split_at(cut);
    check(vec![stream_head(), chunk(left), chunk(right), last_chunk()], good());
}

#[tokio::test]
async fn text_is_shown_as_it_comes() {
    let server = Server::always(vec![stream_head(), chunk(GOOD.as_bytes()), last_chunk()]).await;
    let (_, shown) = call(&model(config(&server.url)), request(), context()).await;
    assert_eq!(shown, "那 ");
}

/// OAI-11: the stream breaks off after every single byte, in both ways in which HTTP can.
#[tokio::test]
async fn a_stream_that_breaks_off_is_never_another_answer() {
    for chunked in [true, false] {
        // The first request gets everything, each further one a byte less.
        let server = Server::start(move |number, _| {
            let part = &GOOD.as_bytes()[..GOOD.len() + 1 - number];
            if chunked {
                let end = (number == 1).then(last_chunk);
                return [stream_head(), chunk(part)].into_iter().chain(end).collect();
            }
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            vec![Step::Send([head, part].concat())]
        })
        .await;
        let model = model(config(&server.url));
        let whole = model.call(request(), context()).await.expect("the answer");
        for cut in (0..GOOD.len()).rev() {
            match model.call(request(), context()).await {
                Ok(answer) => {
                    assert_eq!(answer, whole, "cut at {cut}");
                    // Where HTTP shows that something is missing, a finish reason is not enough.
                    assert!(!chunked, "cut at {cut}");
                }
                Err(ModelError::Interrupted { .. }) => {}
                Err(error) => panic!("cut at {cut}: {error}"),
            }
        }
    }
}

#[test]
fn answers_that_are_not_streamed() {
    let body = r#"{"candidates":[{"content":{"parts":[{"text":"whole"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1},"modelVersion":"m-1"}"#;
    let json = [("content-type", "application/json; charset=UTF-8")];
    check(
        response("200 OK", &json, body),
        expect![[r#"
        Text { text: "whole" }
        EndTurn by "m-1", usage Some(2)
    "#]],
    );
    let mut short = response("200 OK", &json, body);
    let Some(Step::Send(bytes)) = short.first_mut() else { panic!("a step") };
    bytes.truncate(bytes.len() - 10);
    check(
        short,
        expect![[r#"
        interrupted: error decoding response body: error reading a body from connection: end of file before message length reached
        wait None, usage None
    "#]],
    );
    check(
        response("200 OK", &[("content-type", "text/html")], "<html>Sign in, sk-secret-1</html>"),
        expect![[r#"
        malformed answer: no event stream: <html>Sign in, [secret]</html>
        wait None, usage None
    "#]],
    );
}

#[test]
fn errors_have_their_class_and_their_wait() {
    let refused = |status: &str, headers: &[(&str, &str)], body: &str| {
        let json = [("content-type", "application/json")];
        response(status, &[&json, headers].concat(), body)
    };
    check(
        refused(
            "429 Too Many Requests",
            &[("retry-after", "2")],
            r#"{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"37.5s"}]}}"#,
        ),
        expect![[r#"
            rate limited: HTTP 429: Quota exceeded.
            wait Some(37.5s), usage Some(0)
        "#]],
    );
    check(
        refused(
            "503 Service Unavailable",
            &[("retry-after", "1")],
            r#"{"error":{"message":"overloaded","status":"UNAVAILABLE"}}"#,
        ),
        expect![[r#"
            unavailable: HTTP 503: overloaded
            wait Some(1s), usage Some(0)
        "#]],
    );
    check(
        refused(
            "400 Bad Request",
            &[],
            r#"{"error":{"message":"API key not valid: sk-secret-1","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
        ),
        expect![[r#"
            unauthorised: HTTP 400: API key not valid: [secret]
            wait None, usage Some(0)
        "#]],
    );
    check(
        refused("307 Temporary Redirect", &[("location", "http://127.0.0.1:9/v2")], ""),
        expect![[r#"
        rejected: HTTP 307 without a word (it redirects to http://HERE:9/v2: correct base_url)
        wait None, usage Some(0)
    "#]],
    );
    check(
        vec![
            stream_head(),
            chunk(b"data: {\"error\":{\"code\":400,\"message\":\"bad tool\",\"status\":\"INVALID_ARGUMENT\"}}\n\n"),
            last_chunk(),
        ],
        expect![[r#"
            rejected: bad tool
            wait None, usage Some(0)
        "#]],
    );
}

#[test]
fn silence_is_no_answer() {
    let piece = GOOD.split_inclusive("\r\n\r\n").take(2).collect::<String>();
    check(
        vec![stream_head(), chunk(piece.as_bytes()), Step::Hang],
        expect![[r#"
        interrupted: nothing came for 200ms
        wait None, usage None
    "#]],
    );
}

#[tokio::test]
async fn keys_go_into_their_header_and_nowhere_else() {
    let ok = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#;
    let mut server = Server::always(response("200 OK", &[("content-type", "application/json")], ok)).await;
    let mut bare = config(&server.url);
    bare.api_key_env = None;
    bare.stream = Some(false);
    bare.headers.0.insert("x-team".into(), "blue".into());
    for config in [config(&server.url), bare] {
        model(config).call(request(), context()).await.expect("an answer");
    }
    let mut heads = Vec::new();
    while let Ok(seen) = server.seen.try_recv() {
        let interesting =
            ["POST", "authorization", "x-goog-api-key", "x-team", "content-type", "accept:", "user-agent"];
        let head = seen.head.lines().filter(|line| interesting.iter().any(|name| line.starts_with(name)));
        heads.push(head.collect::<Vec<_>>().join("\n"));
        assert!(!seen.body.contains("sk-secret"), "{}", seen.body);
    }
    expect![[r#"
        POST /v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse HTTP/1.1
        content-type: application/json
        accept: text/event-stream
        x-goog-api-key: sk-secret-1
        user-agent: loopd/0.1.0

        POST /v1beta/models/gemini-3-pro:generateContent HTTP/1.1
        x-team: blue
        content-type: application/json
        accept: application/json
        user-agent: loopd/0.1.0"#]]
    .assert_eq(&heads.join("\n\n"));
}

/// GEM-01 as reported: the second turn is refused unless parts, signature and responses stand as they must.
#[tokio::test]
async fn gem_01_a_server_that_demands_its_signatures_gets_them() {
    let server = Server::start(|number, seen| {
        let json = [("content-type", "application/json")];
        if number == 1 {
            let said = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":{}},"thoughtSignature":"S+/="},{"functionCall":{"name":"b","args":{}}}]},"finishReason":"STOP"}]}"#;
            return response("200 OK", &json, said);
        }
        let turn = r#"{"role":"model","parts":[{"functionCall":{"name":"a","args":{}},"thoughtSignature":"S+/="},{"functionCall":{"name":"b","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"1"}}},{"functionResponse":{"name":"b","response":{"error":"2"}}}]}"#;
        if !seen.body.contains(turn) {
            return response("400 Bad Request", &json, r#"{"error":{"message":"Function call is missing a thought_signature"}}"#);
        }
        let said = r#"{"candidates":[{"content":{"parts":[{"text":"done"}]},"finishReason":"STOP"}]}"#;
        response("200 OK", &json, said)
    })
    .await;
    let model = model(config(&server.url));
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

/// A tool whose name the protocol forbids is called by its own name.
#[tokio::test]
async fn names_of_tools_come_back() {
    let server = Server::start(|_, seen| {
        let (_, rest) = seen.body.split_once(r#""functionDeclarations":[{"name":""#).expect("a tool");
        let (name, _) = rest.split_once('"').expect("its end");
        let said = format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"{name}"}}}}]}},"finishReason":"STOP"}}]}}"#
        );
        response("200 OK", &[("content-type", "application/json")], &said)
    })
    .await;
    let offer = ToolOffer { name: "fs.read".into(), description: "d".into(), parameters: String::new() };
    let mut request = request();
    request.constants = Arc::new(ModelConstants { tools: vec![offer], ..ModelConstants::default() });
    let answer = model(config(&server.url)).call(request, context()).await.expect("a tool use");
    let uses: Vec<_> = answer.reply.tool_uses().map(|(_, name, args)| (name.to_owned(), args.to_owned())).collect();
    assert_eq!(uses, [("fs.read".to_owned(), "{}".to_owned())]);
}
