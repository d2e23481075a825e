//! The Messages API over a real connection.

use crate::support::{Seen, Server, Step, chunk, context, last_chunk, once, request, response, stream_head};
use expect_test::{Expect, expect};
use loopd_kernel::model::{Message, ModelConstants, Part, ToolOffer};
use loopd_providers::{AnthropicConfig, ModelConfig, from_config_with};
use loopd_runtime::{Model, ModelError};
use std::sync::Arc;

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

const GOOD: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m-1\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n",
    ": alive\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"SIG\"}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"那 \"}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"x\\\":\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"1}\"}}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":2}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

const DONE: &str = r#"{"type":"message","model":"m-1","content":[{"type":"text","text":"done"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":2}}"#;

fn config(url: &str) -> AnthropicConfig {
    let mut config = AnthropicConfig::new("m").at(url);
    config.vendor = Some("test".into());
    config.idle_timeout_ms = Some(200);
    config.api_key_env = Some("KEY".into());
    config
}

fn model(config: AnthropicConfig) -> Arc<dyn Model> {
    from_config_with(&ModelConfig::Anthropic(config), &|_| Some("sk-secret-1".into())).expect("a model")
}

/// One call to a server that always does `steps`. It may get one request only.
#[track_caller]
fn check(steps: Vec<Step>, expect: Expect) {
    expect.assert_eq(&once(steps, |url| model(config(url))));
}

fn good() -> Expect {
    expect![[r#"
        Reasoning { opaque: "{\"type\":\"thinking\",\"signature\":\"SIG\",\"thinking\":\"\"}", origin: "test/m" }
        Text { text: "那 " }
        ToolUse { id: "a", name: "f", args: "{\"x\":1}" }
        ToolUse by "m-1", usage Some(11)
    "#]]
}

#[test]
fn a_stream_in_pieces() {
    check(vec![stream_head(), chunk(GOOD.as_bytes()), last_chunk()], good());
    let bytes = GOOD.as_bytes().chunks(1).map(chunk);
    check([stream_head()].into_iter().chain(bytes).chain([last_chunk()]).collect(), good());
    // message_stop is the end, also when the connection breaks then or stays open.
    check(vec![stream_head(), chunk(GOOD.as_bytes())], good());
    check(vec![stream_head(), chunk(GOOD.as_bytes()), Step::Hang], good());
}

/// The stream breaks off after every single byte, in both ways in which HTTP can.
#[tokio::test]
async fn a_stream_that_breaks_off_is_never_an_answer() {
    for chunked in [true, false] {
        // The first request gets everything, each further one a byte less.
        let server = Server::start(move |number, _| {
            let part = &GOOD.as_bytes()[..GOOD.len() + 1 - number];
            if chunked {
                return vec![stream_head(), chunk(part)];
            }
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            vec![Step::Send([head, part].concat())]
        })
        .await;
        let model = model(config(&server.url));
        model.call(request(), context()).await.expect("the answer");
        for cut in (0..GOOD.len()).rev() {
            let result = model.call(request(), context()).await;
            assert!(matches!(result, Err(ModelError::Interrupted { .. })), "cut at {cut}: {result:?}");
        }
    }
}

#[test]
fn answers_that_are_not_streamed() {
    let whole = || {
        expect![[r#"
            Text { text: "done" }
            EndTurn by "m-1", usage Some(11)
        "#]]
    };
    check(response("200 OK", &JSON, DONE), whole());
    check(response("200 OK", &[], DONE), whole());
    check(response("200 OK", &JSON, GOOD), good());
    let mut short = response("200 OK", &JSON, DONE);
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
fn ant_05_an_error_inside_of_a_successful_response() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let begun = GOOD.split_inclusive("\n\n").take(6).collect::<String>();
    check(
        vec![stream_head(), chunk(begun.as_bytes()), chunk(error.as_bytes()), last_chunk()],
        expect![[r#"
        interrupted: Overloaded
        wait None, usage None
    "#]],
    );
}

#[test]
fn refusals_have_their_class_and_their_wait() {
    let error = |kind: &str, message: &str| {
        format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_1"}}"#)
    };
    let wait = |value: &str| {
        response(
            "429 Too Many Requests",
            &[("retry-after", value), ("date", "Wed, 21 Oct 2037 07:27:00 GMT"), ("request-id", "req_1")],
            &error("rate_limit_error", "slow"),
        )
    };
    check(
        wait("2"),
        expect![[r#"
        rate limited: HTTP 429: slow (request req_1)
        wait Some(2s), usage Some(0)
    "#]],
    );
    check(
        wait("Wed, 21 Oct 2037 07:28:00 GMT"),
        expect![[r#"
        rate limited: HTTP 429: slow (request req_1)
        wait Some(60s), usage Some(0)
    "#]],
    );
    check(
        response("529 Overloaded", &[], &error("overloaded_error", "Overloaded")),
        expect![[r#"
        unavailable: HTTP 529: Overloaded
        wait None, usage Some(0)
    "#]],
    );
    check(
        response("500 Internal Server Error", &[("retry-after", "1")], &error("api_error", "oops")),
        expect![[r#"
            unavailable: HTTP 500: oops
            wait Some(1s), usage Some(0)
        "#]],
    );
    check(
        response("504 Gateway Timeout", &[], &error("timeout_error", "late")),
        expect![[r#"
        interrupted: HTTP 504: late
        wait None, usage None
    "#]],
    );
    check(
        response(
            "400 Bad Request",
            &[],
            &error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        ),
        expect![[r#"
            too large: HTTP 400: prompt is too long: 210000 tokens > 200000 maximum
            wait None, usage Some(0)
        "#]],
    );
    check(
        response(
            "400 Bad Request",
            &[],
            &error(
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000",
            ),
        ),
        expect![[r#"
            too large: HTTP 400: input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000
            wait None, usage Some(0)
        "#]],
    );
    check(
        response("413 Payload Too Large", &[], &error("request_too_large", "Request exceeds the maximum size")),
        expect![[r#"
            too large: HTTP 413: Request exceeds the maximum size
            wait None, usage Some(0)
        "#]],
    );
    check(
        response("400 Bad Request", &[], &error("invalid_request_error", "messages: at least one message is required")),
        expect![[r#"
            rejected: HTTP 400: messages: at least one message is required
            wait None, usage Some(0)
        "#]],
    );
    check(
        response("400 Bad Request", &[], &error("invalid_request_error", "Your credit balance is too low")),
        expect![[r#"
            unauthorised: HTTP 400: Your credit balance is too low
            wait None, usage Some(0)
        "#]],
    );
    check(
        response("401 Unauthorized", &[], &error("authentication_error", "invalid x-api-key sk-secret-1")),
        expect![[r#"
            unauthorised: HTTP 401: invalid x-api-key [secret]
            wait None, usage Some(0)
        "#]],
    );
    check(
        response("403 Forbidden", &[], &error("permission_error", "not for you")),
        expect![[r#"
        unauthorised: HTTP 403: not for you
        wait None, usage Some(0)
    "#]],
    );
    check(
        response("404 Not Found", &[], &error("not_found_error", "model: m")),
        expect![[r#"
        rejected: HTTP 404: model: m
        wait None, usage Some(0)
    "#]],
    );
}

#[tokio::test]
async fn keys_and_headers_go_where_they_belong() {
    let mut server = Server::always(response("200 OK", &JSON, DONE)).await;
    let mut other = config(&format!("{}/gateway/v1/", server.url));
    other.api_key_env = None;
    other.stream = Some(false);
    other.headers.0.insert("anthropic-version".into(), "2099-01-01".into());
    other.headers.0.insert("anthropic-beta".into(), "b-1".into());
    for config in [config(&server.url), other] {
        model(config).call(request(), context()).await.expect("an answer");
    }
    let mut heads = Vec::new();
    while let Ok(seen) = server.seen.try_recv() {
        let interesting = ["POST", "authorization", "x-api-key", "anthropic-", "content-type", "accept:"];
        let mut head: Vec<&str> =
            seen.head.lines().filter(|line| interesting.iter().any(|name| line.starts_with(name))).collect();
        head.sort_unstable();
        heads.push(head.join("\n"));
        assert!(!seen.body.contains("sk-secret"), "{}", seen.body);
    }
    expect![[r#"
        POST /v1/messages HTTP/1.1
        accept: text/event-stream
        anthropic-version: 2023-06-01
        content-type: application/json
        x-api-key: sk-secret-1

        POST /gateway/v1/messages HTTP/1.1
        accept: application/json
        anthropic-beta: b-1
        anthropic-version: 2099-01-01
        content-type: application/json"#]]
    .assert_eq(&heads.join("\n\n"));
}

/// A turn with a tool, for a server that judges the second request by `accepts`.
async fn second_turn(accepts: fn(&Seen) -> bool, finish: fn(Vec<Part>) -> Vec<Message>) {
    let server = Server::start(move |number, seen| match number {
        1 => vec![stream_head(), chunk(GOOD.as_bytes()), last_chunk()],
        _ if accepts(seen) => response("200 OK", &JSON, DONE),
        _ => response(
            "400 Bad Request",
            &JSON,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#,
        ),
    })
    .await;
    let model = model(config(&server.url));
    let mut request = request();
    let offer = ToolOffer { name: "f".into(), description: "d".into(), parameters: r#"{"type":"object"}"#.into() };
    request.constants = Arc::new(ModelConstants { tools: vec![offer], ..ModelConstants::default() });
    let first = model.call(request.clone(), context()).await.expect("a tool use");
    request.messages.extend(finish(first.reply.parts).into_iter().map(Arc::new));
    let answer = model.call(request, context()).await.expect("an answer");
    assert_eq!(answer.reply.joined_text(), "done");
}

/// As reported: the second turn is refused unless the thinking of the first comes back first and with its signature.
#[tokio::test]
async fn ant_01_a_server_that_demands_its_thinking_gets_it() {
    second_turn(
        |seen| {
            seen.body.contains(
                r#"{"role":"assistant","content":[{"type":"thinking","signature":"SIG","thinking":""},{"type":"text""#,
            )
        },
        |parts| vec![Message::Assistant { parts }, Message::Tool { id: "a".into(), text: "ok".into(), error: false }],
    )
    .await;
}

/// As reported: a tool use whose result was lost does not make every later request fail.
#[tokio::test]
async fn ant_02_a_lost_result_is_made_up_for() {
    second_turn(
        |seen| seen.body.contains(r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"This call was not made.","is_error":true}"#),
        |parts| vec![Message::Assistant { parts }, Message::user("go on")],
    )
    .await;
}
