//! An answer exists only when the provider said that it was complete.

use super::dialect::{Frame, Reply};
use super::server::{Server, Step, chunk, json, response, stream, stream_head};
use super::stage::{Stage, context, rich, soon, unsure, wire, words};
use super::{Finding, Outcome, Verdict, ensure, same};
use crate::ports::{Model, ModelError};
use std::sync::Arc;
use std::time::Duration;

/// The stream breaks off after every single byte, in both ways in which HTTP can. Where HTTP itself shows that
/// something is missing, only the last event can make it an answer; where it does not, what came may say all of it.
pub(super) async fn a_stream_that_breaks_off_is_no_answer(stage: Stage) -> Outcome {
    if !stage.features.streams {
        return Ok(Verdict::NotApplicable);
    }
    let reply = rich(stage.features);
    let bytes = stage.bytes(&reply);
    let settled = bytes.trim_end().len();
    for chunked in [true, false] {
        let whole = bytes.clone();
        // Each request gets a byte less than the one before it.
        let server = Server::start(move |number, _| {
            let part = whole.as_bytes().get(..whole.len().saturating_sub(number)).unwrap_or_default();
            if chunked {
                return vec![stream_head(), chunk(part)];
            }
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            vec![Step::Send([head, part].concat())]
        })
        .await?;
        let model = stage.model(&server)?;
        for cut in (0..bytes.len()).rev() {
            let may_be_whole = !chunked || cut >= settled;
            let what = format!("a stream cut at {cut} of {}", bytes.len());
            broken(&stage, &model, &what, may_be_whole.then_some(&reply)).await?;
        }
    }
    Ok(Verdict::Passed)
}

/// A call is interrupted, or gives the very reply.
async fn broken(stage: &Stage, model: &Arc<dyn Model>, what: &str, whole: Option<&Reply>) -> Result<(), Finding> {
    let asked = stage.call(model, super::request()).await?;
    match (asked.result, whole) {
        (Ok(mut answer), Some(reply)) => {
            // What had not come yet is unknown.
            answer.usage = answer.usage.or_else(|| reply.usage.map(|usage| stage.dialect().counts(usage)));
            stage.is(what, &answer, reply)
        }
        (Err(ModelError::Interrupted { usage, .. }), _) => {
            let all = super::stage::usage();
            let known = usage.is_none() || usage == Some(stage.dialect().counts(all));
            ensure(known, || format!("{what} has a usage that was never said: {usage:?}"))
        }
        (result, _) => Err(Finding::new(format!("{what} must be interrupted: {result:?}"))),
    }
}

pub(super) async fn a_stream_without_its_end_is_no_answer(stage: Stage) -> Outcome {
    if !stage.features.streams {
        return Ok(Verdict::NotApplicable);
    }
    for reply in [rich(stage.features), words(&["all of it, it seems"])] {
        let streamed = stage.dialect().streamed(&reply);
        ensure(streamed.ending > 0, || "a dialect without an ending".to_owned())?;
        let before = streamed.frames.len().saturating_sub(streamed.ending);
        let bytes = wire(streamed.frames.get(..before).unwrap_or_default());
        let what = "a stream that closes properly without its end";
        let error = stage.expect_unsure(what, stream([bytes.as_bytes()])).await?;
        ensure(matches!(error, ModelError::Interrupted { .. }), || format!("{what} must be interrupted: {error:?}"))?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn half_a_body_is_no_answer(stage: Stage) -> Outcome {
    if !stage.features.whole {
        return Ok(Verdict::NotApplicable);
    }
    let steps = json(&stage.dialect().whole(&rich(stage.features)));
    let [Step::Send(bytes)] = steps.as_slice() else {
        return Err(Finding::new("a body in several steps"));
    };
    let bytes = bytes.clone();
    let body = bytes.windows(4).position(|end| end == b"\r\n\r\n").map_or(0, |at| at + 4);
    let length = bytes.len();
    let server = Server::start(move |number, _| {
        vec![Step::Send(bytes.get(..bytes.len().saturating_sub(number)).unwrap_or_default().to_vec())]
    })
    .await?;
    let model = stage.model(&server)?;
    for cut in (body..length).rev() {
        broken(&stage, &model, &format!("a body cut at {cut} of {length}"), None).await?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn an_empty_body_is_no_answer(stage: Stage) -> Outcome {
    if stage.features.streams {
        stage.expect_unsure("an empty stream", stream([])).await?;
        stage.expect_unsure("a stream of comments", stream([b": hello\n\n".as_slice()])).await?;
    }
    stage.expect_unsure("an empty body", response("200 OK", &[], "")).await?;
    stage.expect_unsure("an empty JSON body", json("")).await?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_body_of_another_kind_is_no_answer(stage: Stage) -> Outcome {
    let html = "<html><title>Sign in to the network</title></html>";
    for kind in ["text/html", "application/json", "text/event-stream"] {
        let steps = response("200 OK", &[("content-type", kind)], html);
        let error = stage.expect_unsure(&format!("a web page as {kind}"), steps).await?;
        ensure(error.to_string().contains("Sign in"), || format!("the error does not say what came: {error}"))?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn an_event_that_does_not_parse_is_no_answer(stage: Stage) -> Outcome {
    if !stage.features.streams {
        return Ok(Verdict::NotApplicable);
    }
    let streamed = stage.dialect().streamed(&words(&["one", "two"]));
    for bad in ["{\"a\":", "not JSON", "[\"odd\"]]"] {
        let mut frames = streamed.frames.clone();
        let at = frames.len().saturating_sub(streamed.ending);
        frames.insert(at, Frame::data(bad));
        let what = format!("a stream with the event {bad:?}");
        let error = stage.expect_unsure(&what, stream([wire(&frames).as_bytes()])).await?;
        ensure(matches!(error, ModelError::Malformed { .. }), || format!("{what} must be malformed: {error:?}"))?;
    }
    let mut bytes = stage.bytes(&words(&["text"])).into_bytes();
    if let Some(at) = bytes.windows(4).position(|four| four == b"text") {
        // Half of a character. Replacing it would damage what is recorded for ever.
        bytes.splice(at..at + 1, [0xE9]);
    }
    stage.expect_unsure("a stream that is not UTF-8", stream([bytes.as_slice()])).await?;
    Ok(Verdict::Passed)
}

/// The request was there, so what it cost is unknown.
pub(super) async fn a_connection_that_closes_early_is_no_answer(stage: Stage) -> Outcome {
    for steps in
        [vec![], vec![Step::Send(b"HTTP/1.1 200 O".to_vec())], vec![Step::Send(b"HTTP/1.1 200 OK\r\n".to_vec())]]
    {
        stage.expect_unsure("a connection that closes before its response", steps).await?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn after_the_end_nothing_is_waited_for(stage: Stage) -> Outcome {
    if !(stage.features.streams && stage.features.ends_itself) {
        return Ok(Verdict::NotApplicable);
    }
    let reply = rich(stage.features);
    let steps = vec![stream_head(), chunk(stage.bytes(&reply).as_bytes()), Step::Hang];
    stage.expect("a stream that stays open behind its end", steps, &reply).await?;
    Ok(Verdict::Passed)
}

pub(super) async fn silence_is_no_answer(stage: Stage) -> Outcome {
    if !stage.features.idle {
        return Ok(Verdict::NotApplicable);
    }
    let bytes = stage.bytes(&words(&["one", "two"]));
    let steps = if stage.features.streams {
        let half = bytes.as_bytes().get(..bytes.len() / 2).unwrap_or_default();
        vec![stream_head(), chunk(half), Step::Hang]
    } else {
        vec![Step::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{".to_vec()), Step::Hang]
    };
    let server = Server::always(steps).await?;
    let setup = super::Setup { idle: Duration::from_millis(100), ..stage.setup(&server.url) };
    let asked = soon("the call", super::call(&stage.build(&setup)?, super::request(), context())).await?;
    let error = asked.error("silence")?;
    unsure("silence", &error)?;
    same("code", error.code(), "model.interrupted")?;
    Ok(Verdict::Passed)
}
