//! From a request to an answer: everything but the connection.

use super::answer::{Content, Piece, Said};
use super::checks::Taken;
use super::gates::Gates;
use super::journal::{Heard, Wire};
use super::plan::Way;
use super::refusal::Refusal;
use super::route::{Wish, route};
use super::{FakeConfig, completions, gemini, messages, responses};
use hyper::body::Bytes;
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use loopd_kernel::Digest;
use loopd_runtime::ModelRequest;
use loopd_script::{Asked, Fault, FaultKind, OnWire, Place, Scene, Script, ScriptTurn};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The model of the lists, where none is given.
const MODEL: &str = "fake-model";

/// The gate of a fault of kind `hang`, which names none.
const HANG: &str = "hang";

/// A response, and how it travels.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) content: Content,
    pub(super) way: Way,
}

impl Reply {
    fn json(status: u16, body: &Value) -> Self {
        Self { status, headers: Vec::new(), content: Content::Whole(body.to_string()), way: Way::default() }
    }

    fn refused(wire: Wire, refusal: &Refusal) -> Self {
        Self { headers: refusal.headers(wire), ..Self::json(refusal.status, &refusal.body(wire)) }
    }
}

#[derive(Debug, Default)]
struct State {
    heard: Vec<Heard>,
    /// How often each request came.
    attempts: BTreeMap<Digest, u32>,
    /// How often each turn was played.
    plays: BTreeMap<usize, u32>,
    /// By the id of a response: all items up to and with it, and the response.
    items: BTreeMap<String, Vec<Value>>,
    responses: BTreeMap<String, Value>,
}

/// The server without its connections.
#[derive(Debug)]
pub(super) struct Service {
    script: Script,
    config: FakeConfig,
    gates: Gates,
    state: Mutex<State>,
}

impl Service {
    pub(super) fn new(script: Script, config: FakeConfig, gates: Gates) -> Self {
        Self { script, config, gates, state: Mutex::default() }
    }

    pub(super) const fn gates(&self) -> &Gates {
        &self.gates
    }

    pub(super) fn journal(&self) -> Vec<Heard> {
        self.state().heard.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one request, and writes it down.
    pub(super) fn answer(&self, head: &Parts, bytes: &Bytes) -> Reply {
        let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
        let (wire, wish) = route(&head.method, path, query, &head.headers);
        let mut state = self.state();
        match &wish {
            Wish::Journal => {
                return Reply::json(200, &state.heard.iter().map(Heard::to_json).collect());
            }
            Wish::Calls => {
                let calls = state.heard.iter().filter(|heard| heard.is_call()).count();
                return Reply::json(200, &json!({"calls": calls}));
            }
            Wish::Open(gate) => {
                self.gates.open(gate);
                return Reply::json(200, &json!({"open": gate}));
            }
            _ => {}
        }
        let identity = Digest::of("looptest-request/1", &[path.as_bytes(), query.as_bytes(), bytes]);
        let attempt = state.attempts.entry(identity).or_default();
        *attempt += 1;
        let mut heard = heard(head, bytes, wire, *attempt);
        heard.is_call = wish.is_call();
        let reply = self.reply(&wish, head, bytes, &mut heard, &mut state).unwrap_or_else(|refusal| {
            heard.refused = Some(refusal.message.clone());
            Reply::refused(wire, &refusal)
        });
        heard.status = if reply.way.on_wire.cut == Some(Place::Head) { 0 } else { reply.status };
        state.heard.push(heard);
        reply
    }

    fn reply(
        &self,
        wish: &Wish,
        head: &Parts,
        bytes: &Bytes,
        heard: &mut Heard,
        state: &mut State,
    ) -> Result<Reply, Refusal> {
        let wire = heard.wire;
        match wish {
            Wish::Unknown => {
                return Err(Refusal::new(404, format!("Invalid URL ({} {})", head.method, head.uri.path())));
            }
            Wish::WrongMethod => {
                return Err(Refusal::new(405, format!("Not allowed to {} on {}", head.method, head.uri.path())));
            }
            _ => {}
        }
        self.check_key(wire, &head.headers, head.uri.query().unwrap_or_default())?;
        if wire == Wire::Messages && !head.headers.contains_key("anthropic-version") {
            return Err(Refusal::invalid("anthropic-version: header is required"));
        }
        match wish {
            Wish::Models => return Ok(Reply::json(200, &self.models(wire))),
            Wish::Model(name) => {
                self.check_model(wire, name)?;
                return Ok(Reply::json(200, &model(wire, name)));
            }
            Wish::Stored(id) => {
                let gone = || Refusal::new(404, format!("Response with id '{id}' not found."));
                return state.responses.get(id).map(|response| Reply::json(200, response)).ok_or_else(gone);
            }
            _ => {}
        }
        let body = parse(bytes, wire)?;
        let taken = match wish {
            Wish::Completion => completions::read(&body)?,
            Wish::Response => responses::read(&body, &state.items)?,
            Wish::Message => messages::read(&body)?,
            Wish::CountMessage => messages::count(&body)?,
            Wish::Generate { model, stream, .. } => gemini::read(&body, model, *stream)?,
            Wish::CountContents { model } => gemini::count(&body, model)?,
            _ => return Err(Refusal::new(404, "there is nothing here")),
        };
        self.check_model(wire, &taken.request.model)?;
        let tokens = || Scene::of(asked(&taken.request)).input_tokens();
        match wish {
            Wish::CountMessage => return Ok(Reply::json(200, &json!({"input_tokens": tokens()}))),
            Wish::CountContents { .. } => return Ok(Reply::json(200, &json!({"totalTokens": tokens()}))),
            _ => {}
        }
        heard.request = Some(taken.request.clone());
        heard.stream = taken.stream;
        self.play(wish, &body, &taken, heard, state)
    }

    /// Plays the turn that fits.
    fn play(
        &self,
        wish: &Wish,
        body: &Value,
        taken: &Taken,
        heard: &mut Heard,
        state: &mut State,
    ) -> Result<Reply, Refusal> {
        let scene = Scene::of(asked(&taken.request));
        let left = |at: usize| {
            let times = self.script.turns.get(at).and_then(|turn| turn.times);
            times.is_none_or(|times| state.plays.get(&at).is_none_or(|played| *played < times))
        };
        let Some((at, turn)) = self.script.turn_for(&scene, left) else {
            return Err(Refusal::invalid(format!("fake model: no turn of the script fits: {}", scene.describe())));
        };
        heard.turn = Some(at + 1);
        let fault = turn.faults.iter().find(|fault| fault.attempt == heard.attempt);
        if fault.is_none() {
            *state.plays.entry(at).or_default() += 1;
        }
        let wire = heard.wire;
        let id = if wire == Wire::Messages { "toolu" } else { "call" };
        let played = turn.answer(&scene, self.script.label.as_deref().unwrap_or_default(), id);
        let said = Said::of(played, state.heard.len() + 1, &taken.request.model);
        let events = !matches!(wish, Wish::Generate { events: false, .. });
        let content = match wire {
            Wire::Completions => completions::write(&said, taken),
            Wire::Messages => messages::write(&said, taken),
            Wire::Gemini => gemini::write(&said, taken, events),
            Wire::Responses => {
                let written = responses::write(&said, taken, body);
                if let (Some(items), None) = (&taken.items, fault) {
                    let all = items.iter().chain(&written.output).cloned().collect();
                    state.items.insert(written.id.clone(), all);
                    state.responses.insert(written.id, written.whole);
                }
                written.content
            }
        };
        Ok(self.send(wire, turn, fault, content, events))
    }

    /// The answer with everything that the script does to it on its way.
    fn send(&self, wire: Wire, turn: &ScriptTurn, fault: Option<&Fault>, content: Content, events: bool) -> Reply {
        let mut on_wire =
            fault.filter(|fault| !fault.on_wire.is_usual()).map_or(&turn.on_wire, |fault| &fault.on_wire).clone();
        let kind = fault.and_then(|fault| fault.error);
        let mut way = Way { pace: turn.pace.unwrap_or(self.script.pace), ..Way::default() };
        let mut reply = match kind {
            Some(FaultKind::Cut) => {
                way.cut_after_words = fault.map(|fault| fault.after_words);
                Reply { status: 200, headers: Vec::new(), content, way: Way::default() }
            }
            Some(FaultKind::Hang) => {
                on_wire = OnWire::stall(Place::Head, HANG);
                Reply { status: 200, headers: Vec::new(), content, way: Way::default() }
            }
            Some(FaultKind::Malformed) => {
                on_wire.malformed = true;
                Reply { status: 200, headers: Vec::new(), content, way: Way::default() }
            }
            Some(kind) => {
                let mut refusal = Refusal::of_fault(wire, kind);
                refusal.retry_after_ms = fault.and_then(|fault| fault.retry_after_ms);
                Reply::refused(wire, &refusal)
            }
            None => Reply { status: 200, headers: Vec::new(), content, way: Way::default() },
        };
        if let Some(status) = on_wire.status {
            if on_wire.body.is_none() && status >= 300 {
                reply = Reply::refused(wire, &Refusal::of_status(wire, status));
            }
            reply.status = status;
        }
        if let Some(body) = &on_wire.body {
            reply.content = Content::Whole(body.as_str().map_or_else(|| body.to_string(), str::to_owned));
        }
        if let Some(inner) = on_wire.error_inside {
            let error = Refusal::of_fault(wire, inner.error);
            if let Content::Whole(text) = &mut reply.content {
                *text = error.body(wire).to_string();
            }
            way.error = Some(error_piece(wire, &error, events, inner.after_events == 0));
        }
        // The script's own headers win, whatever the case of their names.
        reply.headers.retain(|(name, _)| !on_wire.headers.keys().any(|own| own.eq_ignore_ascii_case(name)));
        reply.headers.extend(on_wire.headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone())));
        reply.way = Way { on_wire, ..way };
        reply
    }

    /// The key, where one is needed: each protocol has a place for it.
    fn check_key(&self, wire: Wire, headers: &HeaderMap, query: &str) -> Result<(), Refusal> {
        let Some(key) = &self.config.key else {
            return Ok(());
        };
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let given = match wire {
            Wire::Completions | Wire::Responses => bearer.or(header("api-key")),
            Wire::Messages => header("x-api-key").or(bearer),
            Wire::Gemini => {
                header("x-goog-api-key").or_else(|| query.split('&').find_map(|pair| pair.strip_prefix("key=")))
            }
        };
        match given {
            Some(given) if given == key => Ok(()),
            Some(_) => Err(Refusal::of_status(wire, 401)),
            None => Err(match wire {
                Wire::Completions | Wire::Responses => Refusal::new(
                    401,
                    "You didn't provide an API key. You need to provide your API key in an Authorization header using \
                     Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
                ),
                Wire::Messages => Refusal::new(401, "x-api-key header is required"),
                Wire::Gemini => Refusal::new(
                    403,
                    "Method doesn't allow unregistered callers (callers without established identity). Please use API \
                     Key or other form of API consumer identity to call this API.",
                ),
            }),
        }
    }

    fn check_model(&self, wire: Wire, name: &str) -> Result<(), Refusal> {
        if self.config.models.is_empty() || self.config.models.iter().any(|model| model == name) {
            return Ok(());
        }
        Err(match wire {
            Wire::Completions | Wire::Responses => {
                let text = format!("The model `{name}` does not exist or you do not have access to it.");
                Refusal::new(404, text).code("model_not_found")
            }
            Wire::Messages => Refusal::new(404, format!("model: {name}")),
            Wire::Gemini => Refusal::new(
                404,
                format!("models/{name} is not found for API version v1beta, or is not supported for generateContent."),
            ),
        })
    }

    fn models(&self, wire: Wire) -> Value {
        let names: Vec<&str> = match self.config.models.as_slice() {
            [] => vec![MODEL],
            names => names.iter().map(String::as_str).collect(),
        };
        let all: Vec<Value> = names.iter().map(|name| model(wire, name)).collect();
        match wire {
            Wire::Completions | Wire::Responses => json!({"object": "list", "data": all}),
            Wire::Messages => {
                json!({"data": all, "has_more": false, "first_id": names.first(), "last_id": names.last()})
            }
            Wire::Gemini => json!({"models": all}),
        }
    }
}

fn asked(request: &ModelRequest) -> Asked<'_> {
    Asked {
        model: &request.model,
        constants: &request.constants,
        messages: &request.messages,
        max_output_tokens: request.max_output_tokens,
    }
}

fn model(wire: Wire, name: &str) -> Value {
    match wire {
        Wire::Completions | Wire::Responses => {
            json!({"id": name, "object": "model", "created": super::answer::CREATED, "owned_by": "looptest"})
        }
        Wire::Messages => json!({
            "type": "model", "id": name, "display_name": name, "created_at": "2023-11-14T22:13:20Z",
            "lifecycle": "active",
        }),
        Wire::Gemini => json!({
            "name": format!("models/{name}"), "version": "001", "displayName": name, "inputTokenLimit": 1_048_576,
            "outputTokenLimit": 65_536, "supportedGenerationMethods": ["generateContent", "countTokens"],
        }),
    }
}

fn parse(bytes: &Bytes, wire: Wire) -> Result<Value, Refusal> {
    let told = |error: String| match wire {
        Wire::Completions | Wire::Responses => Refusal::invalid(format!(
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library \
             correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON: {error})"
        )),
        Wire::Messages => Refusal::invalid(format!("The request body is not valid JSON: {error}")),
        Wire::Gemini => Refusal::invalid(format!("Invalid JSON payload received. {error}")),
    };
    let value: Value = serde_json::from_slice(bytes).map_err(|error| told(error.to_string()))?;
    if value.is_object() { Ok(value) } else { Err(told("expected an object".into())) }
}

/// An error in the middle of a stream.
fn error_piece(wire: Wire, error: &Refusal, events: bool, is_first: bool) -> Piece {
    let body = error.body(wire);
    match wire {
        Wire::Completions => Piece::data(super::answer::Kind::Plain, &body),
        Wire::Messages => Piece::named(super::answer::Kind::Plain, &body),
        Wire::Gemini => gemini::error_piece(&body, events, is_first),
        Wire::Responses => {
            let event = json!({
                "type": "error", "code": error.code.unwrap_or("server_error"), "message": error.message,
                "param": error.param, "sequence_number": 0,
            });
            Piece::named(super::answer::Kind::Plain, &event)
        }
    }
}

const SECRET_HEADERS: [&str; 6] =
    ["authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "proxy-authorization"];

fn heard(head: &Parts, bytes: &Bytes, wire: Wire, attempt: u32) -> Heard {
    let value = |name: &str, value: &hyper::header::HeaderValue| {
        let is_secret = SECRET_HEADERS.contains(&name) || value.is_sensitive();
        if is_secret { "[secret]".to_owned() } else { String::from_utf8_lossy(value.as_bytes()).into_owned() }
    };
    let query = head.uri.query().map(|query| {
        let pair = |pair: &str| if pair.starts_with("key=") { "key=[secret]".to_owned() } else { pair.to_owned() };
        query.split('&').map(pair).collect::<Vec<_>>().join("&")
    });
    let text = || Value::String(String::from_utf8_lossy(bytes).into_owned());
    Heard {
        wire,
        method: head.method.to_string(),
        path: query.map_or_else(|| head.uri.path().to_owned(), |query| format!("{}?{query}", head.uri.path())),
        headers: head.headers.iter().map(|(name, own)| (name.to_string(), value(name.as_str(), own))).collect(),
        body: if bytes.is_empty() { Value::Null } else { serde_json::from_slice(bytes).unwrap_or_else(|_| text()) },
        attempt,
        request: None,
        stream: false,
        status: 0,
        turn: None,
        refused: None,
        is_call: false,
    }
}
