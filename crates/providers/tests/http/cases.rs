//! The cases.

use crate::support::{
    Server, Step, chunk, config, context, last_chunk, model, once, render, request, response, stream_head,
};
use expect_test::{Expect, expect};
use loopd_kernel::model::{Message, Part};
use loopd_runtime::{CallContext, ModelError};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

const GOOD: &str = concat!(
    ": hello\n\n",
    "data: {\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"那 \"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"1}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"total_tokens\":11}}\n\n",
    "data: [DONE]\n\n",
);

/// One call to a server that always does `steps`. It may get one request only.
#[track_caller]
fn check(steps: Vec<Step>, expect: Expect) {
    let made = |url: &str| {
        let mut config = config(url);
        config.idle_timeout_ms = Some(200);
        config.api_key_env = Some("KEY".into());
        model(config)
    };
    expect.assert_eq(&once(steps, made));
}

fn good() -> Expect {
    expect![[r#"
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
    // OAI-09: within a character.
    let cut = GOOD.find('那').expect("there") + 1;
    let (left, right) = GOOD.as_bytes().split_at(cut);
    check(vec![stream_head(), chunk(left), chunk(right), last_chunk()], good());
    // [DONE] is the end, also when the connection breaks then.
    check(vec![stream_head(), chunk(GOOD.as_bytes())], good());
}

/// The idle time is longer than the attempt here, so whoever waited on would get nothing.
#[tokio::test]
async fn after_the_end_nothing_is_waited_for() {
    let server = Server::always(vec![stream_head(), chunk(GOOD.as_bytes()), Step::Hang]).await;
    let in_time = CallContext { timeout: Duration::from_secs(10), ..context() };
    let result = model(config(&server.url)).call(request(), in_time).await;
    good().assert_eq(&render(&result));
}

/// OAI-11: the stream breaks off after every single byte, in both ways in which HTTP can.
#[tokio::test]
async fn a_stream_that_breaks_off_is_never_another_answer() {
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
        let whole = model.call(request(), context()).await.expect("the answer");
        for cut in (0..GOOD.len()).rev() {
            match model.call(request(), context()).await {
                Ok(answer) => {
                    assert_eq!(answer.reply, whole.reply, "cut at {cut}");
                    assert!(answer.usage.is_none() || answer.usage == whole.usage, "cut at {cut}");
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
    let body = r#"{"model":"m-1","choices":[{"message":{"content":"whole"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    let whole = || {
        expect![[r#"
            Text { text: "whole" }
            EndTurn by "m-1", usage Some(2)
        "#]]
    };
    check(response("200 OK", &[("content-type", "application/json; charset=utf-8")], body), whole());
    check(response("200 OK", &[], body), whole());
    check(response("200 OK", &[("content-type", "application/json")], GOOD.trim_start_matches(": hello\n\n")), good());
    let mut short = response("200 OK", &[("content-type", "application/json")], body);
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
fn oai_10_errors_in_a_successful_response() {
    check(
        vec![
            stream_head(),
            chunk(b"data: {\"error\":{\"type\":\"invalid_request_error\",\"message\":\"bad tool\"}}\n\n"),
            last_chunk(),
        ],
        expect![[r#"
        rejected: bad tool
        wait None, usage Some(0)
    "#]],
    );
}

#[test]
fn oai_12_and_13_waits_and_statuses() {
    let wait = |value: &str| {
        response(
            "429 Too Many Requests",
            &[("retry-after", value), ("date", "Wed, 21 Oct 2037 07:27:00 GMT")],
            r#"{"error":{"message":"slow"}}"#,
        )
    };
    check(
        wait("Wed, 21 Oct 2037 07:28:00 GMT"),
        expect![[r#"
        rate limited: HTTP 429: slow
        wait Some(60s), usage Some(0)
    "#]],
    );
    check(
        wait("2"),
        expect![[r#"
        rate limited: HTTP 429: slow
        wait Some(2s), usage Some(0)
    "#]],
    );
    check(
        wait("soon"),
        expect![[r#"
        rate limited: HTTP 429: slow
        wait None, usage Some(0)
    "#]],
    );
    check(
        response("503 Service Unavailable", &[("retry-after", "1"), ("x-request-id", "r-1")], ""),
        expect![[r#"
        unavailable: HTTP 503 without a word (request r-1)
        wait Some(1s), usage Some(0)
    "#]],
    );
    check(
        response("401 Unauthorized", &[], r#"{"error":{"message":"Incorrect API key provided: sk-secret-1."}}"#),
        expect![[r#"
        unauthorised: HTTP 401: Incorrect API key provided: [secret].
        wait None, usage Some(0)
    "#]],
    );
    check(
        response("400 Bad Request", &[], r#"{"error":{"code":"context_length_exceeded","message":"no"}}"#),
        expect![[r#"
        too large: HTTP 400: no
        wait None, usage Some(0)
    "#]],
    );
    check(
        response("307 Temporary Redirect", &[("location", "http://127.0.0.1:9/v2")], ""),
        expect![[r#"
        rejected: HTTP 307 without a word (it redirects to http://HERE:9/v2: correct base_url)
        wait None, usage Some(0)
    "#]],
    );
}

#[test]
fn errors_are_bounded_and_arrive_even_when_cut() {
    let long = format!("y{}", " x".repeat(1 << 20));
    let shown = format!("y{}… (65535 bytes)", " x".repeat(300).trim_end_matches('x'));
    let expect = format!("unavailable: HTTP 500: {shown}\nwait None, usage Some(0)\n");
    let result = Runtime::new().expect("a runtime").block_on(async {
        let server = Server::always(response("500 Internal Server Error", &[], &long)).await;
        model(config(&server.url)).call(request(), context()).await
    });
    assert_eq!(render(&result), expect);
    let mut cut = response("500 Internal Server Error", &[], "half a message");
    let Some(Step::Send(bytes)) = cut.first_mut() else { panic!("a step") };
    bytes.truncate(bytes.len() - 8);
    check(
        cut,
        expect![[r#"
        unavailable: HTTP 500: half a
        wait None, usage Some(0)
    "#]],
    );
}

#[test]
fn silence_is_no_answer() {
    // Nothing at all: the request was there, so it may be paid.
    check(
        vec![],
        expect![[r#"
        interrupted: error sending request: client error (SendRequest): connection closed before message completed
        wait None, usage None
    "#]],
    );
    // A head, a piece, and then nothing for the idle time.
    let piece = GOOD.split_inclusive("\n\n").take(2).collect::<String>();
    check(
        vec![stream_head(), chunk(piece.as_bytes()), Step::Hang],
        expect![[r#"
        interrupted: nothing came for 200ms
        wait None, usage None
    "#]],
    );
}

#[tokio::test]
async fn what_was_not_reached_generated_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let error = model(config(&url)).call(request(), context()).await.expect_err("nobody listens");
    assert_eq!((error.code(), error.usage().map(|usage| usage.total())), ("model.unavailable", Some(0)), "{error}");
}

#[tokio::test]
async fn the_attempt_ends_in_time_and_when_nobody_wants_it() {
    let mut server = Server::always(vec![Step::Hang]).await;
    let model = model(config(&server.url));
    let mut short = context();
    short.timeout = Duration::from_millis(50);
    let error = model.call(request(), short).await.expect_err("no answer comes");
    assert_eq!(error, ModelError::Interrupted { message: "no answer within 50ms".into(), usage: None });
    server.seen.recv().await.expect("the request");

    let unwanted = context();
    let cancel = unwanted.cancel.clone();
    let calling = tokio::spawn({
        let model = model.clone();
        async move { model.call(request(), unwanted).await }
    });
    server.seen.recv().await.expect("the request");
    cancel.cancel();
    let error = calling.await.expect("no panic").expect_err("cancelled");
    assert_eq!(error, ModelError::Interrupted { message: "cancelled".into(), usage: None });

    let gone = context();
    gone.cancel.cancel();
    let error = model.call(request(), gone).await.expect_err("cancelled");
    assert_eq!((error.code(), error.usage().map(|usage| usage.total())), ("model.unavailable", Some(0)));
    assert!(server.seen.try_recv().is_err(), "nothing was sent");
}

#[tokio::test]
async fn keys_and_headers_go_where_they_belong() {
    let ok =
        response("200 OK", &[("content-type", "application/json")], r#"{"choices":[{"message":{"content":"a"}}]}"#);
    let mut server = Server::always(ok).await;
    let mut bearer = config(&server.url);
    bearer.api_key_env = Some("KEY".into());
    bearer.headers.0.insert("x-team".into(), "blue".into());
    assert!(!format!("{bearer:?}").contains("blue"), "{bearer:?}");
    let mut bare = config(&server.url);
    bare.base_url = Some(format!("{}/openai/deployments/d/?api-version=1", server.url));
    bare.api_key_env = Some("KEY".into());
    bare.api_key_header = Some("Api-Key".into());
    for config in [bearer, bare, config(&server.url)] {
        model(config).call(request(), context()).await.expect("an answer");
    }
    let mut heads = Vec::new();
    while let Ok(seen) = server.seen.try_recv() {
        let interesting = ["POST", "authorization", "api-key", "x-team", "content-type", "accept:", "user-agent"];
        let head = seen.head.lines().filter(|line| interesting.iter().any(|name| line.starts_with(name)));
        heads.push(head.collect::<Vec<_>>().join("\n"));
        assert!(!seen.body.contains("sk-secret"), "{}", seen.body);
    }
    expect![[r#"
        POST /v1/chat/completions HTTP/1.1
        x-team: blue
        content-type: application/json
        accept: text/event-stream
        authorization: Bearer sk-secret-1
        user-agent: loopd/0.1.0

        POST /openai/deployments/d/chat/completions?api-version=1 HTTP/1.1
        content-type: application/json
        accept: text/event-stream
        api-key: sk-secret-1
        user-agent: loopd/0.1.0

        POST /v1/chat/completions HTTP/1.1
        content-type: application/json
        accept: text/event-stream
        user-agent: loopd/0.1.0"#]]
    .assert_eq(&heads.join("\n\n"));
}

/// OAI-14 as reported: the second turn is refused unless the reasoning of the first comes back.
#[tokio::test]
async fn oai_14_a_server_that_demands_its_reasoning_gets_it() {
    let server = Server::start(|number, seen| {
        let json = [("content-type", "application/json")];
        if number == 1 {
            let said = r#"{"choices":[{"message":{"content":null,"reasoning_content":"r","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
            return response("200 OK", &json, said);
        }
        if !seen.body.contains(r#""reasoning_content":"r""#) {
            return response("400 Bad Request", &json, r#"{"error":{"message":"reasoning_content is missing"}}"#);
        }
        response("200 OK", &json, r#"{"choices":[{"message":{"content":"done"},"finish_reason":"stop"}]}"#)
    })
    .await;
    let model = model(config(&server.url));
    let first = model.call(request(), context()).await.expect("a tool use");
    let mut second = request();
    second.messages.push(Arc::new(Message::Assistant { parts: first.reply.parts }));
    second.messages.push(Arc::new(Message::Tool { id: "a".into(), text: "ok".into(), error: false }));
    let answer = model.call(second, context()).await.expect("an answer");
    assert_eq!(answer.reply.parts, [Part::Text { text: "done".into() }]);
}
