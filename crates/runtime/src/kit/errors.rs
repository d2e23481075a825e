//! Errors have the class by which the runtime acts.

use super::server::{Step, chunk, json, last_chunk, response, stream, stream_head};
use super::stage::{Stage, rich, unsure, wire};
use super::{Finding, KEY, Outcome, Verdict, ensure, same};
use crate::ports::{CallContext, ModelError};
use loopd_kernel::Usage;
use std::time::Duration;

/// Statuses, and the codes that they may have.
const CLASSES: [(u16, &[&str]); 10] = [
    (400, &["model.rejected"]),
    (401, &["model.unauthorised"]),
    (403, &["model.unauthorised"]),
    (404, &["model.rejected"]),
    (413, &["model.too_large"]),
    (429, &["model.rate_limited"]),
    (500, &["model.unavailable", "model.interrupted"]),
    (503, &["model.unavailable"]),
    // A gateway gave up; whether the model behind it worked, and is paid, nobody says.
    (504, &["model.interrupted"]),
    (529, &["model.unavailable"]),
];

const WORDS: &str = "kit says no";

fn refusal(stage: &Stage, status: u16, headers: &[(&str, &str)]) -> Vec<Step> {
    let headers = [&[("content-type", "application/json")], headers].concat();
    response(&format!("{status} No"), &headers, &stage.dialect().error(status, WORDS))
}

fn has_class(status: u16, codes: &[&str], error: &ModelError) -> Result<(), Finding> {
    ensure(codes.contains(&error.code()), || format!("status {status} must be one of {codes:?}: {error:?}"))
}

pub(super) async fn a_status_has_its_class(stage: Stage) -> Outcome {
    for (status, codes) in CLASSES {
        let error = stage.ask(refusal(&stage, status, &[])).await?.error("a refusal")?;
        has_class(status, codes, &error)?;
        ensure(error.to_string().contains(WORDS), || format!("the provider's words are lost: {error}"))?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn a_status_without_words_has_its_class(stage: Stage) -> Outcome {
    for (status, codes) in CLASSES {
        for body in ["", "<html>Bad Gateway</html>", "{", "null", "[]", "{\"error\":null}"] {
            let error = stage.ask(response(&format!("{status} No"), &[], body)).await?.error("a refusal")?;
            has_class(status, codes, &error)?;
        }
    }
    // The body breaks off; the status had come.
    let cut = b"HTTP/1.1 503 No\r\ncontent-length: 100\r\n\r\n{\"err".to_vec();
    has_class(503, &["model.unavailable"], &stage.ask(vec![Step::Send(cut)]).await?.error("a refusal")?)?;
    Ok(Verdict::Passed)
}

pub(super) async fn an_overflow_is_too_large(stage: Stage) -> Outcome {
    let (status, body) = stage.dialect().overflow();
    let headers = [("content-type", "application/json")];
    let error = stage.ask(response(&format!("{status} No"), &headers, &body)).await?.error("an overflow")?;
    same("code of an overflow", error.code(), "model.too_large")?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_wait_is_read(stage: Stage) -> Outcome {
    const SENT: (&str, &str) = ("date", "Wed, 21 Oct 2037 07:27:00 GMT");
    let waits: [(&str, Option<(u64, u64)>); 8] = [
        ("2", Some((2000, 2000))),
        ("0", Some((0, 0))),
        // Rounded up, never down.
        ("1.5", Some((1500, 2000))),
        ("Wed, 21 Oct 2037 07:28:00 GMT", Some((60_000, 60_000))),
        ("soon", None),
        ("-1", None),
        ("", None),
        ("99999999999999999999", Some((3_600_000, u64::MAX))),
    ];
    for status in [429, 503] {
        for (text, bounds) in waits {
            let steps = refusal(&stage, status, &[SENT, ("retry-after", text)]);
            let error = stage.ask(steps).await?.error("a refusal")?;
            let wait = error.retry_after().map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
            let fits = match (wait, bounds) {
                (None, None) => true,
                (Some(wait), Some((least, most))) => (least..=most).contains(&wait),
                (Some(_), None) | (None, Some(_)) => false,
            };
            ensure(fits, || format!("status {status}, retry-after {text:?} becomes a wait of {wait:?} ms"))?;
        }
    }
    Ok(Verdict::Passed)
}

pub(super) async fn an_error_inside_of_a_success_is_an_error(stage: Stage) -> Outcome {
    let mut ways = Vec::new();
    if stage.features.streams {
        let event = wire(&[stage.dialect().error_event(WORDS)]);
        ways.push(("an error in a stream", stream([event.as_bytes()])));
    }
    if stage.features.whole {
        ways.push(("an error in one piece", json(&stage.dialect().error(503, WORDS))));
    }
    for (what, steps) in ways {
        let error = stage.ask(steps).await?.error(what)?;
        let later = ["model.unavailable", "model.interrupted", "model.rate_limited"].contains(&error.code());
        ensure(later, || format!("{what} must be worth another attempt: {error:?}"))?;
        ensure(error.to_string().contains(WORDS), || format!("the provider's words are lost: {error}"))?;
    }
    Ok(Verdict::Passed)
}

/// Something was generated, so the price is unknown, whatever the provider says now.
pub(super) async fn an_error_in_the_middle_is_no_answer(stage: Stage) -> Outcome {
    if !stage.features.streams {
        return Ok(Verdict::NotApplicable);
    }
    let streamed = stage.dialect().streamed(&rich(stage.features));
    let before = streamed.frames.len().saturating_sub(streamed.ending);
    let begun = wire(streamed.frames.get(..before).unwrap_or_default());
    let event = wire(&[stage.dialect().error_event(WORDS)]);
    let steps = vec![stream_head(), chunk(begun.as_bytes()), chunk(event.as_bytes()), last_chunk()];
    let error = stage.ask(steps).await?.error("an error in the middle")?;
    unsure("an error in the middle", &error)?;
    ensure(error.to_string().contains(WORDS), || format!("the provider's words are lost: {error}"))?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_message_is_bounded(stage: Stage) -> Outcome {
    let long = "x \u{1b}[2J".repeat(200_000);
    let mut ways = vec![response("500 No", &[], &long), response("200 OK", &[("content-type", "text/html")], &long)];
    ways.push(response(
        "500 No",
        &[("content-type", "application/json")],
        &stage.dialect().error(500, &"y ".repeat(9999)),
    ));
    for steps in ways {
        let text = stage.ask(steps).await?.error("a long error")?.to_string();
        ensure(text.len() <= 4096, || format!("a message of {} bytes", text.len()))?;
        // It could write over a terminal or a log.
        ensure(!text.contains(char::is_control), || format!("control characters in a message: {text:?}"))?;
    }
    Ok(Verdict::Passed)
}

/// Nothing can have been generated.
pub(super) async fn nobody_there_is_unavailable(stage: Stage) -> Outcome {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    drop(listener);
    let model = stage.build(&stage.setup(&url))?;
    let error = stage.call(&model, super::request()).await?.error("nobody")?;
    same("code where nobody listens", error.code(), "model.unavailable")?;
    same("usage where nobody listens", &error.usage(), &Some(Usage::default()))?;
    Ok(Verdict::Passed)
}

/// Servers repeat what they were sent.
pub(super) async fn a_key_shows_in_no_error(stage: Stage) -> Outcome {
    let words = format!("key {KEY} is unknown");
    let stream_of = |text: &str| stream([format!("data: {text}\n\n").as_bytes()]);
    let mut ways = vec![
        response("401 No", &[("content-type", "application/json")], &stage.dialect().error(401, &words)),
        response("500 No", &[], &words),
        response("307 No", &[("location", &format!("http://127.0.0.1:9/?key={KEY}"))], ""),
        response("429 No", &[("x-request-id", KEY)], ""),
        response("200 OK", &[("content-type", "text/html")], &words),
        json(&format!("{{\"{KEY}\":")),
        json(&words),
    ];
    if stage.features.streams {
        ways.push(stream_of(&words));
        ways.push(stream_of(&format!("{{\"{KEY}\":")));
        ways.push(stream([wire(&[stage.dialect().error_event(&words)]).as_bytes()]));
    }
    for steps in ways {
        let error = stage.ask(steps.clone()).await?.error("an error")?;
        let text = format!("{error} {error:?}");
        ensure(!text.contains(KEY), || format!("a key shows in {text}"))?;
    }
    let server = super::Server::always(vec![Step::Hang]).await?;
    let context = CallContext { timeout: Duration::from_millis(20), ..super::context() };
    let late = super::call(&stage.model(&server)?, super::request(), context).await.error("silence")?;
    ensure(!format!("{late:?}").contains(KEY), || format!("a key shows in {late:?}"))?;
    Ok(Verdict::Passed)
}
