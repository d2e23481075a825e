//! Where a case plays: a model of the subject in front of a server.

use super::dialect::{Dialect, Frame, Heard, Reply, Said};
use super::server::{Seen, Server, Step, json, stream};
use super::{Features, Finding, KEY, Setup, Subject, ensure, same};
use crate::ports::{CallContext, Delta, Model, ModelAnswer, ModelError, ModelRequest};
use loopd_kernel::model::{Message, Part, StopReason};
use loopd_kernel::{CallId, Digest, EffectKey, RunId, Usage};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The model that is asked.
const MODEL: &str = "kit-model";
/// How long a call may take that ought to end at once, on a machine that is busy with other things.
pub(super) const SOON: Duration = Duration::from_secs(10);
/// What must go back with reasoning.
pub(super) const MARK: &str = "kit+mark/w==";

/// The subject, and what cases ask of it.
#[derive(Clone)]
pub(super) struct Stage {
    subject: Arc<dyn Subject>,
    pub(super) features: Features,
}

/// What a call came to.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its result.
    pub result: Result<ModelAnswer, ModelError>,
    /// What was shown meanwhile.
    pub shown: Vec<Delta>,
}

impl Asked {
    /// The text that was shown.
    #[must_use]
    pub fn text(&self) -> String {
        self.shown.iter().map(|delta| delta.text.as_str()).collect()
    }

    /// The error; an answer is a finding.
    pub(super) fn error(self, what: &str) -> Result<ModelError, Finding> {
        match self.result {
            Err(error) => Ok(error),
            Ok(answer) => Err(Finding::new(format!("{what} counts as an answer: {:?}", answer.reply))),
        }
    }

    /// The answer; an error is a finding.
    pub(super) fn answer(self, what: &str) -> Result<ModelAnswer, Finding> {
        self.result.map_err(|error| Finding::new(format!("{what} fails: {error}")))
    }
}

impl Stage {
    pub(super) fn new(subject: Arc<dyn Subject>) -> Self {
        Self { features: subject.features(), subject }
    }

    pub(super) fn dialect(&self) -> &dyn Dialect {
        self.subject.dialect()
    }

    /// What a model at `url` is built with.
    pub(super) fn setup(&self, url: &str) -> Setup {
        Setup {
            base_url: url.to_owned(),
            model: MODEL.to_owned(),
            key: KEY.to_owned(),
            stream: self.features.streams,
            // Longer than any case waits: what ends earlier has another reason.
            idle: Duration::from_secs(600),
        }
    }

    /// The model of this setup.
    pub(super) fn build(&self, setup: &Setup) -> Result<Arc<dyn Model>, Finding> {
        self.subject.model(setup).map_err(|error| Finding::new(format!("no model: {error}")))
    }

    /// The model in front of `server`.
    pub(super) fn model(&self, server: &Server) -> Result<Arc<dyn Model>, Finding> {
        self.build(&self.setup(&server.url))
    }

    /// The reply as the provider sends it: a stream where it can.
    pub(super) fn send(&self, reply: &Reply) -> Vec<Step> {
        if self.features.streams { stream([self.bytes(reply).as_bytes()]) } else { json(&self.dialect().whole(reply)) }
    }

    /// The reply as a stream of bytes.
    pub(super) fn bytes(&self, reply: &Reply) -> String {
        wire(&self.dialect().streamed(reply).frames)
    }

    /// One call to a server that always does `steps`, which may get one request only.
    pub(super) async fn ask(&self, steps: Vec<Step>) -> Result<Asked, Finding> {
        let (asked, seen) = self.ask_with(steps, request()).await?;
        same("requests of one call", &seen.len(), &1)?;
        Ok(asked)
    }

    /// One call with this request; what the server saw.
    pub(super) async fn ask_with(
        &self,
        steps: Vec<Step>,
        request: ModelRequest,
    ) -> Result<(Asked, Vec<Seen>), Finding> {
        let mut server = Server::always(steps).await?;
        let model = self.model(&server)?;
        let asked = self.call(&model, request).await?;
        let mut seen = Vec::new();
        while let Ok(one) = server.seen.try_recv() {
            seen.push(one);
        }
        Ok((asked, seen))
    }

    /// One call that ends soon.
    pub(super) async fn call(&self, model: &Arc<dyn Model>, request: ModelRequest) -> Result<Asked, Finding> {
        soon("the call", call(model, request, context())).await
    }

    /// What the provider hears in a request with these messages; it answers with a word.
    pub(super) async fn hear(&self, request: ModelRequest) -> Result<(Heard, String), Finding> {
        let (asked, seen) = self.ask_with(self.send(&words(&["yes"])), request).await?;
        asked.answer("a plain reply")?;
        let body = seen.into_iter().next().map(|seen| seen.body).unwrap_or_default();
        let value = serde_json::from_str(&body).map_err(|error| Finding::new(format!("no JSON: {error}: {body}")))?;
        Ok((self.dialect().hear(&value), body))
    }

    /// Whether the answer is this reply.
    pub(super) fn is(&self, what: &str, answer: &ModelAnswer, reply: &Reply) -> Result<(), Finding> {
        same(&format!("parts of {what}"), &neutral(&answer.reply.parts), &expected(reply))?;
        same(&format!("stop reason of {what}"), &answer.reply.stop, &reply.stop)?;
        let model = &answer.reply.model;
        ensure(model.is_empty() || *model == reply.model, || format!("{what} comes from another model: {model}"))?;
        same(&format!("usage of {what}"), &answer.usage, &reply.usage.map(|usage| self.dialect().counts(usage)))
    }

    /// Asks for these steps and expects this reply.
    pub(super) async fn expect(&self, what: &str, steps: Vec<Step>, reply: &Reply) -> Result<Asked, Finding> {
        let asked = self.ask(steps).await?;
        self.is(what, &asked.clone().answer(what)?, reply)?;
        Ok(asked)
    }

    /// Asks for these steps and expects an error that does not say that nothing was generated.
    pub(super) async fn expect_unsure(&self, what: &str, steps: Vec<Step>) -> Result<ModelError, Finding> {
        let error = self.ask(steps).await?.error(what)?;
        unsure(what, &error)?;
        Ok(error)
    }
}

/// The error is one of those after which something may have been generated, and nobody knows how much.
pub(super) fn unsure(what: &str, error: &ModelError) -> Result<(), Finding> {
    let is_unsure = matches!(error, ModelError::Interrupted { .. } | ModelError::Malformed { .. });
    ensure(is_unsure && error.usage().is_none(), || {
        format!("{what} must be interrupted or malformed, at an unknown price: {error:?}")
    })
}

/// Waits for what ought to end at once.
pub(super) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> Result<T, Finding> {
    let late = |_| Finding::new(format!("{what} does not end"));
    tokio::time::timeout(SOON, future).await.map_err(late)
}

/// Events as bytes.
pub(super) fn wire(frames: &[Frame]) -> String {
    frames.iter().map(|frame| frame.wire("\n")).collect()
}

/// A reply of text in these pieces.
pub(super) fn words(pieces: &[&str]) -> Reply {
    let text = Said::Text(pieces.iter().map(|piece| (*piece).to_owned()).collect());
    Reply { said: vec![text], stop: StopReason::EndTurn, usage: Some(usage()), model: "kit-1".into() }
}

/// The use of a tool with arguments in these pieces.
pub(super) fn uses(id: &str, name: &str, args: &[&str]) -> Said {
    Said::Use { id: id.into(), name: name.into(), args: args.iter().map(|piece| (*piece).to_owned()).collect() }
}

/// A reply with something of everything.
pub(super) fn rich(features: Features) -> Reply {
    let mut reply = words(&["那 ", "里 🎉", " é"]);
    if features.reasoning {
        reply.said.insert(0, Said::Reasoning { text: "hm ".into(), mark: MARK.into() });
    }
    reply.said.push(uses("use_a", "f", &["{\"x\":", " \"é\"", "}"]));
    reply.said.push(uses("use_b", "g", &["{", "}"]));
    Reply { stop: StopReason::ToolUse, ..reply }
}

/// A usage whose classes cannot be mistaken for each other.
pub(super) fn usage() -> Usage {
    Usage { input: 1000, cache_read: 400, cache_write: 30, output: 50, reasoning: 7 }
}

/// What a reply becomes. Of reasoning only its place is known: its form is the adapter's.
fn expected(reply: &Reply) -> Vec<Part> {
    let part = |said: &Said| match said {
        Said::Reasoning { .. } => Part::Reasoning { opaque: MARK.into(), origin: String::new() },
        Said::Text(pieces) => Part::Text { text: pieces.concat() },
        Said::Use { id, name, args } => Part::ToolUse { id: id.clone(), name: name.clone(), args: args.concat() },
    };
    reply.said.iter().map(part).collect()
}

/// Parts with reasoning reduced to whether it holds the mark.
fn neutral(parts: &[Part]) -> Vec<Part> {
    let part = |part: &Part| match part {
        Part::Reasoning { opaque, .. } if opaque.contains(MARK) => {
            Part::Reasoning { opaque: MARK.into(), origin: String::new() }
        }
        other => other.clone(),
    };
    parts.iter().map(part).collect()
}

/// A person's words.
pub(super) fn user(text: &str) -> Message {
    Message::user(text)
}

/// A request with one message and no tools.
#[must_use]
pub fn request() -> ModelRequest {
    ModelRequest {
        model: MODEL.into(),
        constants: Arc::default(),
        messages: vec![Arc::new(user("hi"))],
        max_output_tokens: 80,
        temperature_milli: Some(0),
    }
}

/// The third attempt of Call 7, with time enough.
#[must_use]
pub fn context() -> CallContext {
    CallContext {
        run: RunId([1; 16]),
        call: CallId(7),
        key: EffectKey(Digest::default()),
        attempt: 3,
        timeout: Duration::from_secs(600),
        cancel: CancellationToken::new(),
        deltas: None,
    }
}

/// Calls, and collects what is shown meanwhile.
pub async fn call(model: &Arc<dyn Model>, request: ModelRequest, mut context: CallContext) -> Asked {
    let (sender, mut deltas) = mpsc::unbounded_channel();
    context.deltas = Some(sender);
    let result = model.call(request, context).await;
    let mut shown = Vec::new();
    while let Ok(delta) = deltas.try_recv() {
        shown.push(delta);
    }
    Asked { result, shown }
}
