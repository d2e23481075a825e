//! One call is one request, and it can be stopped.

use super::server::{Server, Step, chunk, response, stream, stream_head};
use super::stage::{Stage, rich, soon, unsure, words};
use super::{Finding, KEY, Outcome, Verdict, ensure, same};
use crate::ports::{CallContext, ModelError};
use loopd_kernel::Usage;
use std::time::Duration;
use tokio::sync::mpsc;

/// Retries belong to the runtime, which records them.
pub(super) async fn a_call_sends_one_request(stage: Stage) -> Outcome {
    let reply = rich(stage.features);
    let mut ways = vec![
        ("an answer", stage.send(&reply)),
        ("a rate limit", response("429 No", &[("retry-after", "0")], "")),
        ("an overload", response("503 No", &[], "")),
        ("a failure", response("500 No", &[], "")),
        ("a timeout of a gateway", response("504 No", &[], "")),
        ("a redirect", response("307 No", &[("location", "/elsewhere")], "")),
        ("a connection that closes early", vec![]),
        ("nothing", response("200 OK", &[], "")),
    ];
    if stage.features.streams {
        let bytes = stage.bytes(&reply);
        let half = bytes.as_bytes().get(..bytes.len() / 2).unwrap_or_default();
        ways.push(("half a stream", vec![stream_head(), chunk(half)]));
        ways.push(("a stream without an end", stream([half])));
    }
    for (what, steps) in ways {
        let (_, seen) = stage.ask_with(steps, super::request()).await?;
        same(&format!("requests of a call that gets {what}"), &seen.len(), &1)?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn a_key_goes_into_a_header_alone(stage: Stage) -> Outcome {
    let (_, seen) = stage.ask_with(stage.send(&words(&["ok"])), super::request()).await?;
    let Some(seen) = seen.first() else {
        return Err(Finding::new("no request came"));
    };
    let (line, headers) = seen.head.split_once("\r\n").unwrap_or((&seen.head, ""));
    ensure(!line.contains(KEY), || format!("the key is in the address, which ends up in logs: {line}"))?;
    ensure(!seen.body.contains(KEY), || "the key is in the body".to_owned())?;
    let holding = headers.lines().filter(|line| line.contains(KEY)).count();
    same("headers that hold the key", &holding, &1)?;
    Ok(Verdict::Passed)
}

pub(super) async fn an_unwanted_call_stops_at_once(stage: Stage) -> Outcome {
    let begun = stage.features.streams.then(|| {
        let bytes = stage.bytes(&words(&["one", "two"]));
        let half = bytes.as_bytes().get(..bytes.len() * 2 / 3).unwrap_or_default();
        vec![stream_head(), chunk(half), Step::Hang]
    });
    for steps in [Some(vec![Step::Hang]), begun].into_iter().flatten() {
        let watched = steps.len() > 1;
        let mut server = Server::always(steps).await?;
        let model = stage.model(&server)?;
        let (sender, mut deltas) = mpsc::unbounded_channel();
        let context = CallContext { deltas: Some(sender), ..super::context() };
        let cancel = context.cancel.clone();
        let calling = tokio::spawn(async move { model.call(super::request(), context).await });
        soon("the wait for the request", server.seen.recv()).await?;
        if watched {
            soon("the wait for the first text", deltas.recv()).await?;
        }
        cancel.cancel();
        match soon("a call that nobody wants", calling).await? {
            Ok(Err(error)) => unsure("a call that nobody wants", &error)?,
            other => return Err(Finding::new(format!("a call that nobody wants becomes {other:?}"))),
        }
    }
    Ok(Verdict::Passed)
}

pub(super) async fn an_unwanted_call_is_not_sent(stage: Stage) -> Outcome {
    let mut server = Server::always(stage.send(&words(&["ok"]))).await?;
    let context = super::context();
    context.cancel.cancel();
    let asked = soon("the call", super::call(&stage.model(&server)?, super::request(), context)).await?;
    let error = asked.error("a call that nobody wants")?;
    same("usage of what was not sent", &error.usage(), &Some(Usage::default()))?;
    ensure(server.seen.try_recv().is_err(), || "a call that nobody wants is sent".to_owned())?;
    Ok(Verdict::Passed)
}

pub(super) async fn an_attempt_ends_in_time(stage: Stage) -> Outcome {
    let mut ways = vec![vec![Step::Hang], vec![Step::Send(b"HTTP/1.1 200 OK\r\n".to_vec()), Step::Hang]];
    if stage.features.streams {
        ways.push(vec![stream_head(), Step::Hang]);
        ways.push(vec![stream_head(), chunk(b": hello\n\n"), Step::Hang]);
    }
    for steps in ways {
        let server = Server::always(steps).await?;
        let context = CallContext { timeout: Duration::from_millis(50), ..super::context() };
        let asked = soon("an attempt of 50 ms", super::call(&stage.model(&server)?, super::request(), context)).await?;
        let error = asked.error("an attempt without an answer")?;
        let interrupted = matches!(error, ModelError::Interrupted { usage: None, .. });
        ensure(interrupted, || format!("an attempt that ran out of time must be interrupted: {error:?}"))?;
    }
    Ok(Verdict::Passed)
}
