//! A small provider and a small adapter for it, which can be broken on purpose.

use async_trait::async_trait;
use loopd_kernel::Usage;
use loopd_kernel::machine::ModelTerms;
use loopd_kernel::model::{Message, ModelReply, Part, StopReason};
use loopd_providers::wire::{Body, SseEvent, SseReader, excerpt, exchange, retry_after, within};
use loopd_runtime::kit::{
    Dialect, Features, Frame, Heard, HeardResult, HeardUse, Reply, Said, Setup, Streamed, Subject, Turn,
};
use loopd_runtime::{CallContext, Delta, Model, ModelAnswer, ModelError, ModelRequest};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// What is wrong with the adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    None,
    /// Takes white space away from the ends of text.
    TrimsText,
    /// Sorts tool uses by their ids.
    SortsUses,
    /// Joins the names that stand in every piece of a tool use.
    JoinsNames,
    /// Reads arguments and writes them again.
    ParsesArgs,
    /// Counts cached tokens as input, too.
    CountsTwice,
    LosesUsage,
    UnknownIsZero,
    CutIsDone,
    RefusalIsDone,
    ShowsAtTheEnd,
    ShowsBackwards,
    ShowsFirstAttempt,
    NeedsAWatcher,
    /// Decodes UTF-8 piece by piece.
    DecodesPerRead,
    LfOnly,
    KeepsMark,
    CommentsAreData,
    LastDataLine,
    SmallEvents,
    KnownOnly,
    /// Reads nothing but a stream where it asked for one.
    StreamOnly,
    CutIsAnswer,
    NeedsNoEnd,
    HalfIsWhole,
    NothingIsAnAnswer,
    AnythingIsText,
    SkipsBadEvents,
    EarlyIsFree,
    ReadsOn,
    Patient,
    RateIsFinal,
    WantsWords,
    OverflowIsWrong,
    NoDates,
    RoundsDown,
    TrustsTheStatus,
    MiddleIsFree,
    TellsEverything,
    NobodyIsUnsure,
    TellsTheKey,
    Retries,
    KeyInAddress,
    IgnoresCancel,
    SendsAnyway,
    IgnoresTime,
    LosesInstructions,
    ForgetsReasoning,
    TellsEverybody,
    TamesNames,
    ResultsAsTheyCame,
    ArgsAsTheyAre,
    EmptyList,
}

/// The provider's wire: an event for each thing, `end` for the end.
pub struct Toy(pub Flaw);

impl Subject for Toy {
    fn features(&self) -> Features {
        Features { streams: true, whole: true, ends_itself: true, idle: true, reasoning: true }
    }

    fn dialect(&self) -> &dyn Dialect {
        self
    }

    fn model(&self, setup: &Setup) -> Result<Arc<dyn Model>, String> {
        let client = reqwest::Client::builder().retry(reqwest::retry::never()).no_proxy();
        let client = client.redirect(reqwest::redirect::Policy::none()).build().map_err(|error| error.to_string())?;
        Ok(Arc::new(ToyModel { flaw: self.0, client, setup: setup.clone() }))
    }
}

fn counts(usage: Usage) -> Value {
    json!([usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning])
}

impl Dialect for Toy {
    fn streamed(&self, reply: &Reply) -> Streamed {
        let mut frames = Vec::new();
        for said in &reply.said {
            match said {
                Said::Reasoning { text, mark } => frames.push(json!({ "t": "think", "s": text, "mark": mark })),
                Said::Text(pieces) => frames.extend(pieces.iter().map(|piece| json!({ "t": "text", "s": piece }))),
                Said::Use { id, name, args } => {
                    frames.extend(args.iter().map(|piece| json!({ "t": "use", "id": id, "name": name, "s": piece })));
                }
            }
        }
        let usage = reply.usage.map(counts);
        frames.push(json!({ "t": "end", "stop": reply.stop, "usage": usage, "model": reply.model }));
        Streamed { frames: frames.iter().map(|frame| Frame::data(frame.to_string())).collect(), ending: 1 }
    }

    fn whole(&self, reply: &Reply) -> String {
        let frames: Vec<String> = self.streamed(reply).frames.into_iter().map(|frame| frame.data).collect();
        format!("{{\"all\":[{}]}}", frames.join(","))
    }

    fn error(&self, _: u16, message: &str) -> String {
        json!({ "error": message }).to_string()
    }

    fn overflow(&self) -> (u16, String) {
        (400, json!({ "error": "more than fits" }).to_string())
    }

    fn error_event(&self, message: &str) -> Frame {
        Frame::data(json!({ "error": message }).to_string())
    }

    fn hear(&self, body: &Value) -> Heard {
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().map(|name| name.as_str().unwrap_or_default().to_owned()).collect()
        };
        let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let turn = |turn: &Value| match turn["by"].as_str() {
            Some("user") => Turn::User(text(turn, "s")),
            Some("model") => Turn::Assistant {
                text: text(turn, "s"),
                uses: turn["uses"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|used| HeardUse { id: text(used, "id"), name: text(used, "name"), args: text(used, "args") })
                    .collect(),
            },
            _ => Turn::Results(
                turn["results"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|result| HeardResult { id: text(result, "id"), text: text(result, "s") })
                    .collect(),
            ),
        };
        Heard {
            system: text(body, "system"),
            tools: body["tools"].is_array().then(|| texts(&body["tools"])),
            turns: body["turns"].as_array().into_iter().flatten().map(turn).collect(),
        }
    }
}

struct ToyModel {
    flaw: Flaw,
    client: reqwest::Client,
    setup: Setup,
}

/// What has come of an answer.
#[derive(Default)]
struct Coming {
    parts: Vec<Part>,
    shown: String,
    end: Option<(StopReason, Option<Usage>, String)>,
}

#[async_trait]
impl Model for ToyModel {
    fn terms(&self) -> ModelTerms {
        ModelTerms { price: None, timeout_ms: 1000, max_attempts: 1 }
    }

    async fn call(&self, request: ModelRequest, mut context: CallContext) -> Result<ModelAnswer, ModelError> {
        let watched = context.clone();
        match self.flaw {
            Flaw::SendsAnyway if context.cancel.is_cancelled() => {
                context.cancel = tokio_util::sync::CancellationToken::new();
            }
            Flaw::IgnoresCancel if !context.cancel.is_cancelled() => {
                context.cancel = tokio_util::sync::CancellationToken::new();
            }
            Flaw::IgnoresTime => context.timeout = Duration::from_secs(3600),
            _ => {}
        }
        let result = within(&context, self.perform(&request, &watched)).await;
        let again = self.is(Flaw::Retries) && matches!(result, Err(ModelError::Unavailable { .. }));
        let result = if again { within(&context, self.perform(&request, &watched)).await } else { result };
        match result {
            Err(ModelError::Unavailable { message, .. })
                if self.is(Flaw::NobodyIsUnsure) && !context.cancel.is_cancelled() =>
            {
                Err(ModelError::Interrupted { message, usage: None })
            }
            Err(ModelError::Interrupted { message, .. }) if self.is(Flaw::EarlyIsFree) => {
                Err(ModelError::Unavailable { message, retry_after: None })
            }
            result => result,
        }
    }
}

impl ToyModel {
    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn excerpt(&self, text: &str) -> String {
        match self.flaw {
            Flaw::TellsTheKey => excerpt(text, &[]),
            Flaw::TellsEverything => text.replace(&self.setup.key, ""),
            _ => excerpt(text, &[&self.setup.key]),
        }
    }

    fn malformed(&self, text: &str) -> ModelError {
        ModelError::Malformed { message: self.excerpt(text), usage: None }
    }

    fn interrupted(&self, text: &str) -> ModelError {
        ModelError::Interrupted { message: self.excerpt(text), usage: None }
    }

    async fn perform(&self, request: &ModelRequest, context: &CallContext) -> Result<ModelAnswer, ModelError> {
        let key = if self.is(Flaw::KeyInAddress) { format!("?key={}", self.setup.key) } else { String::new() };
        let post = self.client.post(format!("{}/{key}", self.setup.base_url)).header("x-key", &self.setup.key);
        let response = exchange(post.body(self.encode(request).to_string())).await?;
        let idle = if self.is(Flaw::Patient) { Duration::from_secs(3600) } else { self.setup.idle };
        if !response.status().is_success() {
            let wait = retry_after(response.headers(), || UNIX_EPOCH);
            let asked = response.headers().get("retry-after").and_then(|value| value.to_str().ok()).unwrap_or_default();
            let wait = match self.flaw {
                Flaw::NoDates if asked.contains(',') => None,
                Flaw::RoundsDown => wait.map(|wait| Duration::from_secs(wait.as_secs())),
                _ => wait,
            };
            let status = response.status().as_u16();
            let body = String::from_utf8_lossy(&Body::new(response, idle).start(65_536).await).into_owned();
            return Err(self.refused(status, &body, wait));
        }
        let is_json = response
            .headers()
            .get("content-type")
            .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
        let mut body = Body::new(response, idle);
        let mut coming = Coming::default();
        if is_json && !self.is(Flaw::StreamOnly) {
            let all = match body.all().await {
                Ok(all) => all,
                Err(_) if self.is(Flaw::HalfIsWhole) => return self.answer(coming, true, request),
                Err(why) => return Err(self.interrupted(&why)),
            };
            self.whole(&mut coming, &all, context)?;
            return self.answer(coming, false, request);
        }
        self.stream(&mut coming, &mut body, context).await?;
        let forgiving = self.is(Flaw::NeedsNoEnd) && !coming.parts.is_empty();
        self.answer(coming, forgiving, request)
    }

    async fn stream(&self, coming: &mut Coming, body: &mut Body, context: &CallContext) -> Result<(), ModelError> {
        let (mut reader, mut before) = (SseReader::default(), Some(Vec::new()));
        loop {
            let piece = match body.next().await {
                Ok(Some(piece)) => self.spoil(&piece, before.as_ref().is_some_and(Vec::is_empty)),
                Ok(None) => break,
                Err(_) if self.is(Flaw::CutIsAnswer) && !coming.parts.is_empty() => {
                    coming.end = Some((StopReason::EndTurn, None, String::new()));
                    return Ok(());
                }
                Err(why) => return Err(self.interrupted(&why)),
            };
            let events = reader.push(&piece).map_err(|error| self.malformed(&error.to_string()))?;
            if let Some(before) = before.as_mut().filter(|_| events.is_empty()) {
                before.extend_from_slice(&piece);
            }
            for event in events {
                before = None;
                self.event(coming, &event, context)?;
            }
            if coming.end.is_some() && !self.is(Flaw::ReadsOn) {
                return Ok(());
            }
        }
        // No event at all.
        let instead = before.unwrap_or_default();
        let text = instead.trim_ascii();
        let is_stream = text.starts_with(b":") || text.starts_with(b"data") || b"data".starts_with(text);
        if is_stream || coming.end.is_some() || self.is(Flaw::StreamOnly) {
            return Ok(());
        }
        self.whole(coming, text, context)
    }

    /// What a careless reader makes of a piece.
    fn spoil(&self, piece: &[u8], first: bool) -> Vec<u8> {
        let text = || String::from_utf8_lossy(piece).into_owned();
        match self.flaw {
            Flaw::DecodesPerRead => text().into_bytes(),
            Flaw::LfOnly => text().replace('\r', " ").into_bytes(),
            Flaw::KeepsMark if first => text().replace('\u{feff}', "?").into_bytes(),
            Flaw::CommentsAreData => text().replace("\n: ", "\ndata: ").into_bytes(),
            _ => piece.to_vec(),
        }
    }

    fn event(&self, coming: &mut Coming, event: &SseEvent, context: &CallContext) -> Result<(), ModelError> {
        let data = match self.flaw {
            Flaw::LastDataLine => event.data.rsplit('\n').next().unwrap_or_default(),
            Flaw::SmallEvents if event.data.len() > 65_536 => return Err(self.malformed("too large")),
            _ => &event.data,
        };
        match serde_json::from_str(data) {
            Ok(value) => self.take(coming, &value, context),
            Err(_) if self.is(Flaw::SkipsBadEvents) => Ok(()),
            Err(error) => Err(self.malformed(&format!("{error}: {data}"))),
        }
    }

    fn whole(&self, coming: &mut Coming, body: &[u8], context: &CallContext) -> Result<(), ModelError> {
        if body.is_empty() {
            return Ok(());
        }
        if body.starts_with(b"data:") {
            let events = SseReader::default().push(body).map_err(|error| self.malformed(&error.to_string()))?;
            return events.iter().try_for_each(|event| self.event(coming, event, context));
        }
        match serde_json::from_slice::<Value>(body) {
            Ok(value) if !value["error"].is_null() => self.take(coming, &value, context),
            Ok(value) => {
                let all = value["all"].as_array().into_iter().flatten();
                let unwatched = CallContext { deltas: None, ..context.clone() };
                all.into_iter().try_for_each(|one| self.take(coming, one, &unwatched))
            }
            Err(_) if self.is(Flaw::AnythingIsText) => {
                coming.parts.push(Part::Text { text: String::from_utf8_lossy(body).into_owned() });
                coming.end = Some((StopReason::EndTurn, None, String::new()));
                Ok(())
            }
            Err(_) => Err(self.malformed(&String::from_utf8_lossy(body))),
        }
    }

    fn take(&self, coming: &mut Coming, value: &Value, context: &CallContext) -> Result<(), ModelError> {
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        if !value["error"].is_null() && !self.is(Flaw::TrustsTheStatus) {
            let message = self.excerpt(&text("error"));
            let free = coming.parts.is_empty() || self.is(Flaw::MiddleIsFree);
            return Err(match free {
                true => ModelError::Unavailable { message, retry_after: None },
                false => ModelError::Interrupted { message, usage: None },
            });
        }
        let known = ["t", "s", "mark", "id", "name", "stop", "usage", "model"];
        let is_known = value.as_object().is_some_and(|object| object.keys().all(|name| known.contains(&name.as_str())));
        if self.is(Flaw::KnownOnly) && !is_known {
            return Err(self.malformed("something unknown"));
        }
        let more = text("s");
        match value["t"].as_str() {
            Some("think") => {
                let opaque = json!({ "s": more, "mark": value["mark"] }).to_string();
                coming.parts.push(Part::Reasoning { opaque, origin: self.origin() });
            }
            Some("text") => {
                self.show(coming, &more, context)?;
                match coming.parts.last_mut() {
                    Some(Part::Text { text }) => text.push_str(&more),
                    _ => coming.parts.push(Part::Text { text: more }),
                }
            }
            Some("use") => match coming.parts.last_mut() {
                Some(Part::ToolUse { id, name, args }) if *id == text("id") => {
                    args.push_str(&more);
                    if self.is(Flaw::JoinsNames) {
                        name.push_str(&text("name"));
                    }
                }
                _ => coming.parts.push(Part::ToolUse { id: text("id"), name: text("name"), args: more }),
            },
            Some("end") => {
                let stop = serde_json::from_value(value["stop"].clone()).map_err(|_| self.malformed("no reason"))?;
                coming.end = Some((stop, self.usage(&value["usage"]), text("model")));
                if self.is(Flaw::ShowsAtTheEnd) {
                    let all = std::mem::take(&mut coming.shown);
                    self.send(all, context)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn show(&self, coming: &mut Coming, text: &str, context: &CallContext) -> Result<(), ModelError> {
        match self.flaw {
            Flaw::ShowsAtTheEnd => {
                coming.shown.push_str(text);
                Ok(())
            }
            Flaw::ShowsBackwards => self.send(text.chars().rev().collect(), context),
            _ => self.send(text.to_owned(), context),
        }
    }

    fn send(&self, text: String, context: &CallContext) -> Result<(), ModelError> {
        let attempt = if self.is(Flaw::ShowsFirstAttempt) { 1 } else { context.attempt };
        let delta = Delta { run: context.run, call: context.call, attempt, text };
        let gone = context.deltas.as_ref().is_some_and(|deltas| deltas.send(delta).is_err());
        if gone && self.is(Flaw::NeedsAWatcher) { Err(self.interrupted("nobody watches")) } else { Ok(()) }
    }

    fn usage(&self, counts: &Value) -> Option<Usage> {
        let count = |at: usize| counts[at].as_u64().unwrap_or_default();
        let mut usage = Usage {
            input: count(0),
            cache_read: count(1),
            cache_write: count(2),
            output: count(3),
            reasoning: count(4),
        };
        if self.is(Flaw::CountsTwice) {
            usage.input += usage.cache_read;
        }
        let known = (counts.is_array() || self.is(Flaw::UnknownIsZero)) && !self.is(Flaw::LosesUsage);
        known.then_some(usage)
    }

    fn answer(&self, coming: Coming, forgiving: bool, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        let Coming { mut parts, end, .. } = coming;
        let forgiving = forgiving || (self.is(Flaw::NothingIsAnAnswer) && parts.is_empty());
        let end = end.or_else(|| forgiving.then(|| (StopReason::EndTurn, None, String::new())));
        let Some((stop, usage, model)) = end else {
            return Err(self.interrupted("there is no end"));
        };
        let stop = match (self.flaw, stop) {
            (Flaw::CutIsDone, StopReason::Length) | (Flaw::RefusalIsDone, StopReason::Refusal) => StopReason::EndTurn,
            (_, stop) => stop,
        };
        if self.is(Flaw::SortsUses) {
            parts.sort_by_key(|part| match part {
                Part::ToolUse { id, .. } => id.clone(),
                _ => String::new(),
            });
        }
        for part in &mut parts {
            match part {
                Part::Text { text } if self.is(Flaw::TrimsText) => *text = text.trim().to_owned(),
                Part::ToolUse { args, .. } if self.is(Flaw::ParsesArgs) => {
                    *args = serde_json::from_str::<Value>(args).map(|value| value.to_string()).unwrap_or_default();
                }
                Part::ToolUse { name, .. } => {
                    let own = request.constants.tools.iter().find(|tool| self.on_wire(&tool.name) == *name);
                    if let Some(own) = own.filter(|_| !self.is(Flaw::TamesNames)) {
                        *name = own.name.clone();
                    }
                }
                _ => {}
            }
        }
        Ok(ModelAnswer { reply: ModelReply { parts, stop, model }, usage })
    }

    fn refused(&self, status: u16, body: &str, retry_after: Option<Duration>) -> ModelError {
        let value: Value = serde_json::from_str(body).unwrap_or_default();
        if self.is(Flaw::WantsWords) && !value.is_object() {
            return self.malformed(body);
        }
        let message = self.excerpt(value["error"].as_str().unwrap_or(body));
        match status {
            400 if message.contains("more than fits") && !self.is(Flaw::OverflowIsWrong) => {
                ModelError::TooLarge(message)
            }
            413 => ModelError::TooLarge(message),
            401 | 403 => ModelError::Unauthorised(message),
            429 if self.is(Flaw::RateIsFinal) => ModelError::Rejected(message),
            429 => ModelError::RateLimited { message, retry_after },
            504 => ModelError::Interrupted { message, usage: None },
            500.. => ModelError::Unavailable { message, retry_after },
            _ => ModelError::Rejected(message),
        }
    }

    fn origin(&self) -> String {
        format!("toy/{}", self.setup.model)
    }

    /// Letters, digits and `-`; everything else by its number.
    fn on_wire(&self, name: &str) -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let tame = |c: char| match c {
            c if fits(c) => c.to_string(),
            _ if self.is(Flaw::TamesNames) => "_".into(),
            c => format!("_{}_", u32::from(c)),
        };
        name.chars().map(tame).collect()
    }

    fn encode(&self, request: &ModelRequest) -> Value {
        let mut body = json!({ "model": self.setup.model, "turns": self.turns(&request.messages) });
        let tools: Vec<String> = request.constants.tools.iter().map(|tool| self.on_wire(&tool.name)).collect();
        if !tools.is_empty() || self.is(Flaw::EmptyList) {
            body["tools"] = json!(tools);
        }
        if let Some(system) = request.constants.system.as_ref().filter(|_| !self.is(Flaw::LosesInstructions)) {
            body["system"] = json!(system);
        }
        body
    }

    fn turns(&self, messages: &[Arc<Message>]) -> Vec<Value> {
        let mut turns = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            match message.as_ref() {
                Message::User { text, .. } => turns.push(json!({ "by": "user", "s": text })),
                Message::Assistant { parts } => {
                    turns.push(self.said(parts));
                    let results: Vec<Value> =
                        parts.iter().filter_map(|part| self.result(part, &messages[at..])).collect();
                    if !results.is_empty() && !self.is(Flaw::ResultsAsTheyCame) {
                        turns.push(json!({ "by": "tools", "results": results }));
                    }
                }
                Message::Tool { id, text, .. } if self.is(Flaw::ResultsAsTheyCame) => {
                    turns.push(json!({ "by": "tools", "results": [{ "id": id, "s": text }] }));
                }
                Message::Tool { .. } => {}
            }
        }
        turns
    }

    fn result(&self, part: &Part, later: &[Arc<Message>]) -> Option<Value> {
        let Part::ToolUse { id, .. } = part else {
            return None;
        };
        let text = later.iter().find_map(|message| match message.as_ref() {
            Message::Tool { id: of, text, .. } if of == id => Some(text.as_str()),
            _ => None,
        });
        Some(json!({ "id": id, "s": text.unwrap_or("lost") }))
    }

    fn said(&self, parts: &[Part]) -> Value {
        let mut turn = json!({ "by": "model", "s": "", "uses": [], "marks": [] });
        let (mut said, mut uses, mut marks) = (String::new(), Vec::new(), Vec::new());
        for part in parts {
            match part {
                Part::Text { text } => said.push_str(text),
                Part::ToolUse { id, name, args } => {
                    let is_object = serde_json::from_str::<Value>(args).is_ok_and(|value| value.is_object());
                    let args = if is_object || self.is(Flaw::ArgsAsTheyAre) { args } else { "{}" };
                    uses.push(json!({ "id": id, "name": self.on_wire(name), "args": args }));
                }
                Part::Reasoning { opaque, origin } => {
                    let own = *origin == self.origin() || self.is(Flaw::TellsEverybody);
                    marks.extend((own && !self.is(Flaw::ForgetsReasoning)).then(|| opaque.clone()));
                }
            }
        }
        turn["s"] = json!(said);
        turn["uses"] = json!(uses);
        turn["marks"] = json!(marks);
        turn
    }
}
