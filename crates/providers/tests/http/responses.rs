//! The Responses API over a real connection.

use crate::support::{Seen, Server, Step, call, chunk, context, last_chunk, once, request, response, stream_head};
use expect_test::{Expect, expect};
use loopd_kernel::model::{Message, ModelConstants, Part, ToolOffer};
use loopd_providers::{ModelConfig, ResponsesConfig, from_config_with};
use loopd_runtime::{Model, ModelError};
use std::sync::Arc;

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

const GOOD: &str = concat!(
    ": hello\n\n",
    "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\",\"model\":\"m-1\"}}\n\n",
    "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[]}}\n\n",
    "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"id\":\"rs_1\",\"type\":\"reasoning\",\"encrypted_content\":\"gAAA\",\"summary\":[]}}\n\n",
    "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"id\":\"msg_1\",\"type\":\"message\",\"content\":[]}}\n\n",
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":1,\"content_index\":0,\"item_id\":\"msg_1\",\"delta\":\"那 \"}\n\n",
    "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":2,\"item\":{\"id\":\"fc_1\",\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":\"\"}}\n\n",
    "event: response.function_call_arguments.delta\ndata: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":2,\"item_id\":\"fc_1\",\"delta\":\"{\\\"x\\\":\"}\n\n",
    "event: response.function_call_arguments.delta\ndata: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":2,\"item_id\":\"fc_1\",\"delta\":\"1}\"}\n\n",
    "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":2}}}\n\n",
);

const DONE: &str = r#"{"object":"response","status":"completed","model":"m-1","output":[{"type":"message","content":[{"type":"output_text","text":"done"}]}],"usage":{"input_tokens":9,"output_tokens":2}}"#;

fn config(url: &str) -> ResponsesConfig {
    let mut config = ResponsesConfig::new("m").at(format!("{url}/v1"));
    config.vendor = Some("test".into());
    config.idle_timeout_ms = Some(200);
    config.api_key_env = Some("KEY".into());
    config
}

fn model(config: ResponsesConfig) -> Arc<dyn Model> {
    from_config_with(&ModelConfig::Responses(config), &|_| Some("sk-secret-1".into())).expect("a model")
}

/// One call to a server that always does `steps`. It may get one request only.
#[track_caller]
fn check(steps: Vec<Step>, expect: Expect) {
    expect.assert_eq(&once(steps, |url| model(config(url))));
}

fn good() -> Expect {
    expect![[r#"
        Reasoning { opaque: "{\"id\":\"rs_1\",\"type\":\"reasoning\",\"encrypted_content\":\"gAAA\",\"summary\":[]}", origin: "test+responses/m" }
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
    // response.completed is the end, also when the connection breaks then or stays open.
    check(vec![stream_head(), chunk(GOOD.as_bytes())], good());
    check(vec![stream_head(), chunk(GOOD.as_bytes()), Step::Hang], good());
}

/// OAI-11: the stream breaks off after every single byte, in both ways in which HTTP can.
#[tokio::test]
async fn oai_11_a_stream_that_breaks_off_is_never_an_answer() {
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
    check(response("200 OK", &JSON, GOOD.trim_start_matches(": hello\n\n")), good());
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

/// All of the output that was allowed was used, at a server that calls every answer complete.
#[tokio::test]
async fn an_answer_at_its_limit_is_a_cut_one() {
    let server =
        Server::always(response("200 OK", &JSON, &DONE.replace(r#""output_tokens":2"#, r#""output_tokens":80"#))).await;
    let (result, _) = call(&model(config(&server.url)), request(), context()).await;
    assert_eq!(format!("{:?}", result.expect("an answer").reply.stop), "Length");
}

#[test]
fn oai_10_errors_in_a_successful_response() {
    let error =
        "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"sorry, sk-secret-1\"}\n\n";
    check(
        vec![stream_head(), chunk(error.as_bytes()), last_chunk()],
        expect![[r#"
        unavailable: sorry, [secret]
        wait None, usage Some(0)
    "#]],
    );
    let begun = GOOD.split_inclusive("\n\n").take(6).collect::<String>();
    check(
        vec![stream_head(), chunk(begun.as_bytes()), chunk(error.as_bytes()), last_chunk()],
        expect![[r#"
        interrupted: sorry, [secret]
        wait None, usage None
    "#]],
    );
}

#[test]
fn oai_12_refusals_have_their_class_and_their_wait() {
    let error =
        |code: &str, message: &str| format!(r#"{{"error":{{"message":"{message}","type":"x","code":"{code}"}}}}"#);
    let headers = [("retry-after", "2"), ("x-request-id", "req_1")];
    check(
        response("429 Too Many Requests", &headers, &error("rate_limit_exceeded", "slow")),
        expect![[r#"
        rate limited: HTTP 429: slow (request req_1)
        wait Some(2s), usage Some(0)
    "#]],
    );
    check(
        response("401 Unauthorized", &[], &error("invalid_api_key", "Incorrect API key provided: sk-secret-1")),
        expect![[r#"
        unauthorised: HTTP 401: Incorrect API key provided: [secret]
        wait None, usage Some(0)
    "#]],
    );
    check(
        response("400 Bad Request", &[], &error("context_length_exceeded", "Your input exceeds the context window")),
        expect![[r#"
        too large: HTTP 400: Your input exceeds the context window
        wait None, usage Some(0)
    "#]],
    );
    check(
        response("400 Bad Request", &[], &error("unknown_parameter", "Unknown parameter: 'input[3].status'.")),
        expect![[r#"
        rejected: HTTP 400: Unknown parameter: 'input[3].status'.
        wait None, usage Some(0)
    "#]],
    );
}

#[tokio::test]
async fn keys_and_headers_go_where_they_belong() {
    let mut server = Server::always(response("200 OK", &JSON, DONE)).await;
    let mut azure = config(&server.url);
    azure.base_url = Some(format!("{}/openai/v1/?api-version=preview", server.url));
    azure.api_key_header = Some("Api-Key".into());
    azure.stream = Some(false);
    azure.headers.0.insert("x-team".into(), "blue".into());
    for config in [config(&server.url), azure] {
        model(config).call(request(), context()).await.expect("an answer");
    }
    let mut heads = Vec::new();
    while let Ok(seen) = server.seen.try_recv() {
        let interesting = ["POST", "authorization", "api-key", "x-team", "content-type", "accept:"];
        let mut head: Vec<&str> =
            seen.head.lines().filter(|line| interesting.iter().any(|name| line.starts_with(name))).collect();
        head.sort_unstable();
        heads.push(head.join("\n"));
        assert!(!seen.body.contains("sk-secret"), "{}", seen.body);
    }
    expect![[r#"
        POST /v1/responses HTTP/1.1
        accept: text/event-stream
        authorization: Bearer sk-secret-1
        content-type: application/json

        POST /openai/v1/responses?api-version=preview HTTP/1.1
        accept: application/json
        api-key: sk-secret-1
        content-type: application/json
        x-team: blue"#]]
    .assert_eq(&heads.join("\n\n"));
}

/// As reported of this protocol: the second turn is refused unless the reasoning comes back encrypted, directly before
/// its call, without a status, and the result under the id of the call and not of the item.
#[tokio::test]
async fn oai_14_a_server_that_demands_its_reasoning_gets_it() {
    let accepts = |seen: &Seen| {
        let reasoning = r#"{"id":"rs_1","type":"reasoning","encrypted_content":"gAAA","summary":[]}"#;
        let rest = r#"{"type":"message","role":"assistant","content":"那 "},{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"},{"type":"function_call_output","call_id":"a","output":"ok"}]"#;
        seen.body.contains(&format!("{reasoning},{rest}")) && seen.body.contains(r#""store":false"#)
    };
    let server = Server::start(move |number, seen| match number {
        1 => vec![stream_head(), chunk(GOOD.as_bytes()), last_chunk()],
        _ if accepts(seen) => response("200 OK", &JSON, DONE),
        _ => response("400 Bad Request", &JSON, r#"{"error":{"message":"reasoning without its following item"}}"#),
    })
    .await;
    let model = model(config(&server.url));
    let mut request = request();
    let offer = ToolOffer { name: "f".into(), description: "d".into(), parameters: r#"{"type":"object"}"#.into() };
    request.constants = Arc::new(ModelConstants { tools: vec![offer], ..ModelConstants::default() });
    let first = model.call(request.clone(), context()).await.expect("a tool use");
    request.messages.push(Arc::new(Message::Assistant { parts: first.reply.parts }));
    request.messages.push(Arc::new(Message::Tool { id: "a".into(), text: "ok".into(), error: false }));
    let answer = model.call(request, context()).await.expect("an answer");
    assert_eq!(answer.reply.parts, [Part::Text { text: "done".into() }]);
}
