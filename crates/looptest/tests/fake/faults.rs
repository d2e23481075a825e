//! Everything that can go wrong on the way, and the class that our adapters give it.

use crate::support::{ADAPTERS, adapter, call, render, user};
use expect_test::{Expect, expect};
use looptest::fake::{FakeModel, Fault, FaultKind, InnerError, OnWire, Place, Script, ScriptTurn};
use serde_json::json;
use std::fmt::Write as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const TEXT: &str = "one two three four";

fn turn() -> ScriptTurn {
    ScriptTurn::says(TEXT)
}

/// Each fault, for each adapter streamed and whole: what the first attempt comes to. The second is answered.
async fn check(faults: Vec<(&str, Fault)>, expect: Expect) {
    let mut table = String::new();
    for (label, fault) in faults {
        let _ = writeln!(table, "{label}");
        for name in ADAPTERS {
            for stream in [true, false] {
                let fake = FakeModel::start(Script::empty().turn(turn().fault(fault.clone()))).await;
                let model = adapter(name, &fake, stream);
                let first = call(&model, &[user("hi")]).await;
                let second = call(&model, &[user("hi")]).await.expect("the second attempt");
                assert_eq!(second.reply.joined_text(), TEXT, "{label} {name} {stream}");
                fake.expect_calls(2).expect_nothing_refused();
                let how = if stream { "streamed" } else { "whole" };
                let _ = writeln!(table, "  {name} {how}: {}", render(&first));
            }
        }
    }
    expect.assert_eq(&table);
}

fn kind(error: FaultKind) -> Fault {
    Fault { error: Some(error), ..Fault::default() }
}

fn wire(on_wire: OnWire) -> Fault {
    Fault { on_wire, ..Fault::default() }
}

#[tokio::test]
async fn refusals_have_the_form_of_their_provider() {
    let waits = |retry_after_ms| Fault { retry_after_ms: Some(retry_after_ms), ..kind(FaultKind::RateLimited) };
    check(
        vec![
            ("rate limited", kind(FaultKind::RateLimited)),
            ("rate limited, wait", waits(2_500)),
            ("unavailable", kind(FaultKind::Unavailable)),
            ("rejected", kind(FaultKind::Rejected)),
            ("too large", kind(FaultKind::TooLarge)),
            ("unauthorised", kind(FaultKind::Unauthorised)),
        ],
        expect![[r#"
            rate limited
              openai streamed: model.rate_limited wait None
              openai whole: model.rate_limited wait None
              responses streamed: model.rate_limited wait None
              responses whole: model.rate_limited wait None
              anthropic streamed: model.rate_limited wait None
              anthropic whole: model.rate_limited wait None
              gemini streamed: model.rate_limited wait None
              gemini whole: model.rate_limited wait None
            rate limited, wait
              openai streamed: model.rate_limited wait Some(2.5s)
              openai whole: model.rate_limited wait Some(2.5s)
              responses streamed: model.rate_limited wait Some(2.5s)
              responses whole: model.rate_limited wait Some(2.5s)
              anthropic streamed: model.rate_limited wait Some(3s)
              anthropic whole: model.rate_limited wait Some(3s)
              gemini streamed: model.rate_limited wait Some(2.5s)
              gemini whole: model.rate_limited wait Some(2.5s)
            unavailable
              openai streamed: model.unavailable wait None
              openai whole: model.unavailable wait None
              responses streamed: model.unavailable wait None
              responses whole: model.unavailable wait None
              anthropic streamed: model.unavailable wait None
              anthropic whole: model.unavailable wait None
              gemini streamed: model.unavailable wait None
              gemini whole: model.unavailable wait None
            rejected
              openai streamed: model.rejected wait None
              openai whole: model.rejected wait None
              responses streamed: model.rejected wait None
              responses whole: model.rejected wait None
              anthropic streamed: model.rejected wait None
              anthropic whole: model.rejected wait None
              gemini streamed: model.rejected wait None
              gemini whole: model.rejected wait None
            too large
              openai streamed: model.too_large wait None
              openai whole: model.too_large wait None
              responses streamed: model.too_large wait None
              responses whole: model.too_large wait None
              anthropic streamed: model.too_large wait None
              anthropic whole: model.too_large wait None
              gemini streamed: model.too_large wait None
              gemini whole: model.too_large wait None
            unauthorised
              openai streamed: model.unauthorised wait None
              openai whole: model.unauthorised wait None
              responses streamed: model.unauthorised wait None
              responses whole: model.unauthorised wait None
              anthropic streamed: model.unauthorised wait None
              anthropic whole: model.unauthorised wait None
              gemini streamed: model.unauthorised wait None
              gemini whole: model.unauthorised wait None
        "#]],
    )
    .await;
}

#[tokio::test]
async fn broken_connections_and_broken_answers() {
    let inside =
        |error, after_events| OnWire { error_inside: Some(InnerError { error, after_events }), ..OnWire::default() };
    check(
        vec![
            ("cut", Fault { after_words: 2, ..kind(FaultKind::Cut) }),
            ("cut before the head", wire(OnWire::cut(Place::Head))),
            ("cut in event 3", wire(OnWire::cut(Place::InEvent(3)))),
            ("malformed", kind(FaultKind::Malformed)),
            ("error inside, overloaded", wire(inside(FaultKind::Unavailable, 0))),
            ("error inside, late", wire(inside(FaultKind::Unavailable, 4))),
            ("no end", wire(OnWire { no_end: true, ..OnWire::default() })),
            ("a page of a proxy", wire(OnWire { body: Some(json!("<html>502</html>")), ..OnWire::status(502) })),
            (
                "a date to wait for",
                wire(
                    OnWire::status(429)
                        .header("Retry-After", "Wed, 21 Oct 2037 07:28:00 GMT")
                        .header("date", "Wed, 21 Oct 2037 07:27:00 GMT"),
                ),
            ),
        ],
        expect![[r#"
            cut
              openai streamed: model.interrupted wait None
              openai whole: model.interrupted wait None
              responses streamed: model.interrupted wait None
              responses whole: model.interrupted wait None
              anthropic streamed: model.interrupted wait None
              anthropic whole: model.interrupted wait None
              gemini streamed: model.interrupted wait None
              gemini whole: model.interrupted wait None
            cut before the head
              openai streamed: model.interrupted wait None
              openai whole: model.interrupted wait None
              responses streamed: model.interrupted wait None
              responses whole: model.interrupted wait None
              anthropic streamed: model.interrupted wait None
              anthropic whole: model.interrupted wait None
              gemini streamed: model.interrupted wait None
              gemini whole: model.interrupted wait None
            cut in event 3
              openai streamed: model.interrupted wait None
              openai whole: "one two three four" EndTurn
              responses streamed: model.interrupted wait None
              responses whole: "one two three four" EndTurn
              anthropic streamed: model.interrupted wait None
              anthropic whole: "one two three four" EndTurn
              gemini streamed: model.interrupted wait None
              gemini whole: "one two three four" EndTurn
            malformed
              openai streamed: model.malformed wait None
              openai whole: model.malformed wait None
              responses streamed: model.malformed wait None
              responses whole: model.malformed wait None
              anthropic streamed: model.malformed wait None
              anthropic whole: model.malformed wait None
              gemini streamed: model.malformed wait None
              gemini whole: model.malformed wait None
            error inside, overloaded
              openai streamed: model.unavailable wait None
              openai whole: model.unavailable wait None
              responses streamed: model.unavailable wait None
              responses whole: model.unavailable wait None
              anthropic streamed: model.unavailable wait None
              anthropic whole: model.unavailable wait None
              gemini streamed: model.unavailable wait None
              gemini whole: model.unavailable wait None
            error inside, late
              openai streamed: model.interrupted wait None
              openai whole: model.unavailable wait None
              responses streamed: model.interrupted wait None
              responses whole: model.unavailable wait None
              anthropic streamed: model.interrupted wait None
              anthropic whole: model.unavailable wait None
              gemini streamed: model.interrupted wait None
              gemini whole: model.unavailable wait None
            no end
              openai streamed: "one two three four" EndTurn
              openai whole: "one two three four" EndTurn
              responses streamed: model.interrupted wait None
              responses whole: "one two three four" EndTurn
              anthropic streamed: model.interrupted wait None
              anthropic whole: "one two three four" EndTurn
              gemini streamed: model.interrupted wait None
              gemini whole: "one two three four" EndTurn
            a page of a proxy
              openai streamed: model.unavailable wait None
              openai whole: model.unavailable wait None
              responses streamed: model.unavailable wait None
              responses whole: model.unavailable wait None
              anthropic streamed: model.unavailable wait None
              anthropic whole: model.unavailable wait None
              gemini streamed: model.unavailable wait None
              gemini whole: model.unavailable wait None
            a date to wait for
              openai streamed: model.rate_limited wait Some(60s)
              openai whole: model.rate_limited wait Some(60s)
              responses streamed: model.rate_limited wait Some(60s)
              responses whole: model.rate_limited wait Some(60s)
              anthropic streamed: model.rate_limited wait Some(60s)
              anthropic whole: model.rate_limited wait Some(60s)
              gemini streamed: model.rate_limited wait Some(60s)
              gemini whole: model.rate_limited wait Some(60s)
        "#]],
    )
    .await;
}

/// What merely travels differently comes to the same answer.
#[tokio::test]
async fn manners_change_nothing() {
    let ways = [
        OnWire::chunks(1),
        OnWire::chunks(3),
        OnWire { comments: true, ..OnWire::default() },
        OnWire { usage_twice: true, ..OnWire::default() },
        OnWire { comments: true, usage_twice: true, ..OnWire::chunks(5) },
    ];
    for name in ADAPTERS {
        for stream in [true, false] {
            let ask = || ScriptTurn::says("那 a b").and_asks("get_weather", json!({"city": "那"}));
            let plain = FakeModel::start(Script::empty().turn(ask())).await;
            let expected = call(&adapter(name, &plain, stream), &[user("hi")]).await.expect("an answer");
            for way in &ways {
                let fake = FakeModel::start(Script::empty().turn(ask().on_wire(way.clone()))).await;
                let answer = call(&adapter(name, &fake, stream), &[user("hi")]).await;
                assert_eq!(answer.as_ref(), Ok(&expected), "{name} {stream} {way:?}");
            }
        }
    }
}

/// The connection breaks after every single byte: that is never another answer.
#[tokio::test]
async fn a_stream_cut_at_every_byte_is_never_another_answer() {
    for name in ADAPTERS {
        let bytes = {
            let fake = FakeModel::start(Script::empty().says("one")).await;
            let path = match name {
                "openai" => "/v1/chat/completions",
                "responses" => "/v1/responses",
                "anthropic" => "/v1/messages",
                _ => "/v1beta/models/m:streamGenerateContent?alt=sse",
            };
            call(&adapter(name, &fake, true), &[user("hi")]).await.expect("an answer");
            let body = fake.journal()[0].body.to_string();
            let request = reqwest::Client::new().post(format!("{}{path}", fake.url())).body(body);
            request
                .header("anthropic-version", "2023-06-01")
                .send()
                .await
                .expect("sent")
                .text()
                .await
                .expect("a body")
                .len()
        };
        assert!(bytes > 200, "{name}: {bytes}");
        let turns = (0..bytes).map(|at| ScriptTurn::says("one").once().on_wire(OnWire::cut(Place::Bytes(at))));
        let fake = FakeModel::start(turns.fold(Script::empty(), Script::turn)).await;
        let model = adapter(name, &fake, true);
        for at in 0..bytes {
            match call(&model, &[user("hi")]).await {
                Err(error) => assert_eq!(error.code(), "model.interrupted", "{name} cut at {at}: {error}"),
                // What is complete is complete: chat completions say so before the connection ends.
                Ok(answer) => assert_eq!((answer.reply.joined_text().as_str(), name), ("one", "openai"), "cut at {at}"),
            }
        }
        fake.expect_calls(bytes);
    }
}

/// Byte for byte what stands before the cut, and nothing else, is on the connection.
#[tokio::test]
async fn what_was_sent_before_a_cut_arrives() {
    let body = OnWire { body: Some(json!("0123456789")), ..OnWire::cut(Place::Bytes(4)) };
    let fake = FakeModel::start(Script::empty().turn(ScriptTurn::fails(body))).await;
    let mut stream = tokio::net::TcpStream::connect(fake.url().trim_start_matches("http://")).await.expect("connected");
    let request = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
    let head = format!("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", request.len());
    stream.write_all(format!("{head}{request}").as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("read to the end");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains("content-length: 10"), "{head}");
    assert_eq!(body, "0123");
}

/// A response stands still until the test opens its gate. No time is involved.
#[tokio::test]
async fn a_stall_lasts_until_its_gate_is_opened() {
    for name in ADAPTERS {
        for at in [Place::Head, Place::Events(2), Place::InEvent(3), Place::Bytes(1)] {
            let fake = FakeModel::start(Script::empty().turn(turn().on_wire(OnWire::stall(at, "g")))).await;
            let model = adapter(name, &fake, true);
            let calling = tokio::spawn(async move { call(&model, &[user("hi")]).await });
            fake.reached("g").await;
            assert!(!calling.is_finished(), "{name} {at:?}");
            fake.open("g");
            let answer = calling.await.expect("no panic").expect("an answer");
            assert_eq!(answer.reply.joined_text(), TEXT, "{name} {at:?}");
        }
    }
}

#[tokio::test]
async fn whoever_gives_up_at_a_stall_is_let_go_and_the_server_ends_with_its_test() {
    let fake = FakeModel::start(Script::empty().turn(turn().fails_first(FaultKind::Hang))).await;
    let model = adapter("anthropic", &fake, true);
    let unwanted = crate::support::context();
    let cancel = unwanted.cancel.clone();
    let calling = tokio::spawn({
        let model = model.clone();
        async move { model.call(crate::support::request(&[user("hi")]), unwanted).await }
    });
    fake.reached("hang").await;
    cancel.cancel();
    let error = calling.await.expect("no panic").expect_err("cancelled");
    assert_eq!(error.code(), "model.interrupted");
    // The same request again is the next attempt.
    call(&model, &[user("hi")]).await.expect("an answer");
    fake.expect_calls(2);

    let stalled = FakeModel::start(Script::empty().turn(turn().on_wire(OnWire::stall(Place::Events(1), "g")))).await;
    let model = adapter("anthropic", &stalled, true);
    let calling = tokio::spawn(async move { call(&model, &[user("hi")]).await });
    stalled.reached("g").await;
    drop(stalled);
    let error = calling.await.expect("no panic").expect_err("the server is gone");
    assert_eq!(error.code(), "model.interrupted");
}
