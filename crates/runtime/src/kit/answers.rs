//! What a complete answer is.

use super::dialect::{Reply, Said};
use super::server::{Server, Step, chunk, last_chunk, stream_head};
use super::stage::{Stage, context, request, rich, soon, usage, uses, wire, words};
use super::{Outcome, Verdict, same};
use crate::ports::{CallContext, Delta};
use loopd_kernel::model::StopReason;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};

pub(super) async fn text_arrives_as_it_was_sent(stage: Stage) -> Outcome {
    for pieces in [&["ok"][..], &["a", "\n\n", "b"], &["\"\\", "\t\u{0}\u{1b}[2J", "那里🎉é"], &[" \r\n data: x\n\n "]]
    {
        let reply = words(pieces);
        stage.expect(&format!("{pieces:?}"), stage.send(&reply), &reply).await?;
    }
    let reply = rich(stage.features);
    stage.expect("a reply with tool uses", stage.send(&reply), &reply).await?;
    Ok(Verdict::Passed)
}

pub(super) async fn parallel_tool_uses_keep_their_order(stage: Stage) -> Outcome {
    let said = vec![
        uses("use_c", "second", &["{\"n\"", ":1}"]),
        uses("use_a", "first", &["{\"n\":", "2}"]),
        uses("use_b", "second", &["{", "\"n\":3}"]),
    ];
    let reply = Reply { said, stop: StopReason::ToolUse, ..words(&[]) };
    stage.expect("three tool uses", stage.send(&reply), &reply).await?;
    Ok(Verdict::Passed)
}

pub(super) async fn arguments_keep_their_exact_text(stage: Stage) -> Outcome {
    let args = r#"{"z":1.0,"a": 12345678901234567890123,"s":"\u00e9é\/\n","z2":[ ],"e":1e2}"#;
    let cut: Vec<&str> = args.split_inclusive([':', ' ', '[']).collect();
    for pieces in [&[args][..], &cut] {
        let reply = Reply { said: vec![uses("use_a", "f", pieces)], stop: StopReason::ToolUse, ..words(&[]) };
        stage.expect("arguments", stage.send(&reply), &reply).await?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn usage_is_counted_once(stage: Stage) -> Outcome {
    same("sum of the dialect's counts", &stage.dialect().counts(usage()).total(), &usage().total())?;
    let few = loopd_kernel::Usage { input: 9, output: 2, ..Default::default() };
    for usage in [usage(), few] {
        let reply = Reply { usage: Some(usage), ..words(&["ok"]) };
        stage.expect("a reply", stage.send(&reply), &reply).await?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn usage_that_was_not_said_is_unknown(stage: Stage) -> Outcome {
    let reply = Reply { usage: None, ..words(&["ok"]) };
    stage.expect("a reply without counts", stage.send(&reply), &reply).await?;
    Ok(Verdict::Passed)
}

pub(super) async fn a_cut_answer_says_so(stage: Stage) -> Outcome {
    let reply = Reply { stop: StopReason::Length, ..words(&["as far as it", " went"]) };
    stage.expect("a reply at its limit", stage.send(&reply), &reply).await?;
    Ok(Verdict::Passed)
}

/// An adapter may add to the text why, which the model does not say.
pub(super) async fn a_refusal_says_so(stage: Stage) -> Outcome {
    let reply = Reply { stop: StopReason::Refusal, ..words(&["I will not."]) };
    let answer = stage.ask(stage.send(&reply)).await?.answer("a refusal")?;
    same("stop reason", &answer.reply.stop, &StopReason::Refusal)?;
    same("usage", &answer.usage, &Some(stage.dialect().counts(usage())))?;
    Ok(Verdict::Passed)
}

pub(super) async fn text_is_shown_in_order_as_it_comes(stage: Stage) -> Outcome {
    if !stage.features.streams {
        return Ok(Verdict::NotApplicable);
    }
    let reply = words(&["one ", "two ", "three"]);
    let streamed = stage.dialect().streamed(&reply);
    let (before, ending) = streamed.frames.split_at(streamed.frames.len().saturating_sub(streamed.ending));
    let gate = Arc::new(Notify::new());
    let steps = vec![
        stream_head(),
        chunk(wire(before).as_bytes()),
        Step::Until(gate.clone()),
        chunk(wire(ending).as_bytes()),
        last_chunk(),
    ];
    let server = Server::always(steps).await?;
    let model = stage.model(&server)?;
    let (sender, mut deltas) = mpsc::unbounded_channel();
    let context = CallContext { deltas: Some(sender), ..context() };
    let expected = |text: String| Delta { run: context.run, call: context.call, attempt: context.attempt, text };
    let watched = context.clone();
    let calling = tokio::spawn(async move { model.call(request(), watched).await });
    // The end is sent only when the first text was seen.
    let first = soon("the wait for the first text", deltas.recv()).await?;
    gate.notify_one();
    let result = soon("the call", calling).await?;
    let mut shown = String::new();
    let mut next = first;
    while let Some(delta) = next {
        shown.push_str(&delta.text);
        same("what is shown", &delta, &expected(delta.text.clone()))?;
        next = deltas.try_recv().ok();
    }
    same("shown text", &shown, &pieces(&reply))?;
    match result {
        Ok(Ok(answer)) => stage.is("the reply", &answer, &reply)?,
        other => return Err(super::Finding::new(format!("no answer: {other:?}"))),
    }
    // Whoever watched may have gone.
    let (sender, deltas) = mpsc::unbounded_channel();
    drop(deltas);
    let server = Server::always(stage.send(&reply)).await?;
    let unwatched = CallContext { deltas: Some(sender), ..super::context() };
    let answer = soon("the call", stage.model(&server)?.call(request(), unwatched)).await?;
    let answer = answer.map_err(|error| super::Finding::new(format!("nobody watched, and it fails: {error}")))?;
    stage.is("what nobody watched", &answer, &reply)?;
    Ok(Verdict::Passed)
}

fn pieces(reply: &Reply) -> String {
    let text = |said: &Said| match said {
        Said::Text(pieces) => pieces.concat(),
        Said::Reasoning { .. } | Said::Use { .. } => String::new(),
    };
    reply.said.iter().map(text).collect()
}
