//! A server over a store in memory, people with tokens, and requests that are checked against the description.

use crate::roster::Shelf;
use crate::steps::{Paid, steps};
use crate::stores::Watched;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use jsonschema::Validator;
use loopd_kernel::{Limits, TimeMs};
use loopd_platform::engine::{Executes, TargetSpec};
use loopd_platform::{Caller, Config, Engine, Platform};
use loopd_protocol::{NewToken, Problem, Role};
use loopd_runtime::{Clock, Delta, Entropy, FixedPrograms, Runtime};
use loopd_server::{Peer, Server, ServerConfig};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// A clock that stands until it is moved.
#[derive(Debug)]
pub struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> TimeMs {
        TimeMs(self.0.load(Ordering::Relaxed))
    }

    fn steady_ms(&self) -> u64 {
        u64::try_from(self.now().0).unwrap()
    }
}

impl TestClock {
    pub fn pass(&self, time: Duration) {
        self.0.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

/// Numbers that never repeat.
#[derive(Debug, Default)]
pub struct Counted(AtomicU64);

impl Entropy for Counted {
    fn salt(&self) -> [u8; 32] {
        let mut salt = [7; 32];
        salt[..8].copy_from_slice(&self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        salt
    }
}

/// What a test needs to be different.
pub struct Options {
    pub config: Box<dyn FnOnce(&mut ServerConfig)>,
    pub platform: Config,
    /// Whether there is the target `steps`, whose calls do as they are told.
    pub agent: bool,
    pub store: Watched,
}

impl Default for Options {
    fn default() -> Self {
        Self { config: Box::new(|_| {}), platform: Config::default(), agent: false, store: Watched::default() }
    }
}

pub struct World {
    pub clock: Arc<TestClock>,
    pub store: Arc<Watched>,
    /// What the Runs of calls are said to write at this moment.
    pub deltas: UnboundedSender<Delta>,
    pub engine: Engine,
    pub server: Server,
    service: TowerToHyperService<axum::Router>,
    pub root: String,
    pub ann: String,
    pub ben: String,
    pub eve: String,
    pub op: String,
}

impl World {
    pub async fn new() -> Self {
        Self::with(Options::default()).await
    }

    /// With the target `steps`.
    pub async fn with_agent(platform: Config) -> Self {
        let config = Box::new(|config: &mut ServerConfig| config.limits.requests_burst = 100_000);
        Self::with(Options { config, platform, agent: true, ..Options::default() }).await
    }

    pub async fn configured(config: impl FnOnce(&mut ServerConfig) + 'static) -> Self {
        Self::with(Options { config: Box::new(config), ..Options::default() }).await
    }

    /// `root` is an admin, `ann` and `ben` are members, `eve` only reads, `op` is an Operator.
    pub async fn with(options: Options) -> Self {
        let store = Arc::new(options.store);
        let clock = Arc::new(TestClock(AtomicI64::new(1_700_000_000_000)));
        let entropy = Arc::new(Counted::default());
        let platform = Platform::new(store.clone(), options.platform).world(clock.clone(), entropy.clone());
        let program = steps(&Paid::default());
        let target = TargetSpec {
            name: "steps".into(),
            description: "Does as it is told.".into(),
            slots: None,
            executes: Ok(Executes::Loop { program: program.clone(), limits: Limits::default(), demo: true }),
        };
        let engine = Engine::new(platform, if options.agent { vec![target] } else { Vec::new() }).unwrap();
        let (told, deltas) = tokio::sync::mpsc::unbounded_channel();
        let sender = told.clone();
        let runtime = Runtime::builder(store.clone(), Arc::new(FixedPrograms::new([program])))
            .world(clock.clone(), entropy)
            .deltas(sender)
            .outlet(engine.outlet().await.unwrap());
        engine.start(runtime.start().await.unwrap(), deltas).await.unwrap();
        let mut config = ServerConfig::new([0xab; 16]).unwrap();
        (options.config)(&mut config);
        let server = Server::keeping(engine.clone(), config, Arc::new(Shelf::of(&engine)));
        let service = TowerToHyperService::new(server.router());
        let mut world = Self {
            clock,
            store,
            deltas: told,
            engine,
            server,
            service,
            root: String::new(),
            ann: String::new(),
            ben: String::new(),
            eve: String::new(),
            op: String::new(),
        };
        world.root = world.token("person/root", Role::Admin).await;
        world.ann = world.token("person/ann", Role::Member).await;
        world.ben = world.token("person/ben", Role::Member).await;
        world.eve = world.token("person/eve", Role::Viewer).await;
        world.op = world.token("operator/op", Role::Operator).await;
        world
    }

    /// Another server, as set at first and without agents of its own, over what the first one has left.
    pub fn restart(&mut self) {
        self.server = Server::new(self.engine.clone(), ServerConfig::new([0xab; 16]).unwrap());
        self.service = TowerToHyperService::new(self.server.router());
    }

    pub async fn token(&self, actor: &str, role: Role) -> String {
        let admin = Caller::new("person/root".parse().unwrap(), Role::Admin);
        let new = NewToken { name: String::new(), actor: actor.parse().unwrap(), roles: vec![role], days: None };
        self.engine.platform().make_token(&admin, "", new).await.unwrap().secret
    }

    /// Sends a request, and holds the answer against what holds for every answer.
    pub async fn send(&self, ask: Ask) -> Got {
        let described = (ask.method.clone(), ask.path.clone());
        let got = self.send_unchecked(ask).await;
        got.hold_to(&described.0, &described.1);
        got
    }

    /// Lets time pass, for the platform and for timers.
    pub async fn pass(&self, time: Duration) {
        self.clock.pass(time);
        tokio::time::sleep(time).await;
    }

    pub async fn send_unchecked(&self, ask: Ask) -> Got {
        let response = self.response(ask).await;
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        Got { status: parts.status, headers: parts.headers, body }
    }

    pub async fn response(&self, ask: Ask) -> axum::response::Response {
        let mut request = Request::builder().method(ask.method).uri(&ask.path);
        for (name, value) in &ask.headers {
            request = request.header(name, value);
        }
        if !ask.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request = request.header("host", "localhost:7777");
        }
        let mut request = request.body(ask.body).unwrap();
        request.extensions_mut().insert(Peer(ask.peer.parse().unwrap()));
        self.service.call(request).await.unwrap()
    }

    /// A new Conversation of ann and these.
    pub async fn conversation(&self, members: &[&str]) -> String {
        let got = self
            .send(Ask::post("/v1/conversations").by(&self.ann).json(json!({"title": "t", "members": members})))
            .await;
        assert_eq!(got.status, StatusCode::CREATED, "{}", got.text());
        got.json()["id"].as_str().unwrap().to_owned()
    }

    pub async fn say(&self, token: &str, conversation: &str, text: &str) -> Value {
        let ask = Ask::post(format!("/v1/conversations/{conversation}/messages"))
            .by(token)
            .json(json!({"blocks": [{"type": "text", "text": text}]}));
        let got = self.send(ask).await;
        assert_eq!(got.status, StatusCode::CREATED, "{}", got.text());
        got.json()["message"].clone()
    }
}

/// A request before it is sent.
#[derive(Debug)]
pub struct Ask {
    method: Method,
    path: String,
    headers: Vec<(String, String)>,
    body: Body,
    peer: String,
}

impl Ask {
    pub fn new(method: &str, path: impl Into<String>) -> Self {
        let method = method.to_uppercase().parse().unwrap();
        Self { method, path: path.into(), headers: Vec::new(), body: Body::empty(), peer: "127.0.0.1".to_owned() }
    }

    pub fn get(path: impl Into<String>) -> Self {
        Self::new("get", path)
    }

    pub fn post(path: impl Into<String>) -> Self {
        Self::new("post", path)
    }

    pub fn by(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub fn json(self, body: Value) -> Self {
        self.text("application/json", body.to_string())
    }

    pub fn text(self, kind: &str, body: impl Into<String>) -> Self {
        self.header("content-type", kind).bytes(body.into())
    }

    pub fn bytes(mut self, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        self.headers.push(("content-length".to_owned(), body.len().to_string()));
        self.body = Body::from(body);
        self
    }

    pub fn stream(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    pub fn peer(mut self, peer: &str) -> Self {
        peer.clone_into(&mut self.peer);
        self
    }
}

/// An answer.
#[derive(Debug)]
pub struct Got {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Got {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {} {}", self.status, self.text()))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Status, and the code and field of a refusal: `403 host`, `422 invalid title`.
    pub fn brief(&self) -> String {
        let mut out = self.status.as_u16().to_string();
        if self.status.as_u16() >= 400 {
            let problem: Problem = serde_json::from_slice(&self.body).unwrap();
            let _ = write!(out, " {}", problem.code);
            if let Some(field) = problem.field {
                let _ = write!(out, " {field}");
            }
        }
        out
    }

    fn hold_to(&self, method: &Method, path: &str) {
        let at = format!("{method} {path} -> {} {}", self.status, self.text());
        let said = [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ];
        for (name, value) in said {
            assert_eq!(self.header(name), value, "{name}: {at}");
        }
        assert!(self.header("content-security-policy").starts_with("default-src 'none'"), "{at}");
        assert!(self.header("content-security-policy").contains("frame-ancestors 'none'"), "{at}");
        if self.status.as_u16() >= 400 {
            assert_eq!(self.header("content-type"), "application/problem+json", "{at}");
            let problem: Problem = serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{at}"));
            assert_eq!(problem.status, self.status.as_u16(), "{at}");
            assert!(!problem.code.is_empty() && !problem.detail.is_empty(), "{at}");
        }
        let Some((route, operation)) = operation(method, path) else { return };
        let declared = operation["responses"].as_object().unwrap();
        let response = declared.get(self.status.as_str()).unwrap_or_else(|| panic!("not declared: {at}"));
        let kind = self.header("content-type").split(';').next().unwrap();
        let content = match response["content"].as_object() {
            Some(content) => content,
            None => return assert!(self.body.is_empty(), "no body is declared: {at}"),
        };
        let known = content.iter().find(|(known, _)| *known == "*/*" || known.split(';').next() == Some(kind));
        let (known, content) = known.unwrap_or_else(|| panic!("{kind} is not declared: {at}"));
        if kind.ends_with("json") && known != "*/*" {
            hold_to_schema(&format!("{method} {route} {}", self.status), &content["schema"], &self.json(), &at);
        }
    }
}

/// What the description says of a body is what is sent.
fn hold_to_schema(name: &str, schema: &Value, value: &Value, at: &str) {
    static KNOWN: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = known().get(name).cloned();
    let validator = before.unwrap_or_else(|| {
        let mut schema = schema.clone();
        schema["components"] = description()["components"].clone();
        Arc::new(jsonschema::validator_for(&schema).unwrap())
    });
    known().entry(name.to_owned()).or_insert_with(|| Arc::clone(&validator));
    if let Err(error) = validator.validate(value) {
        panic!("not as described: {error} at {}: {at}", error.instance_path());
    }
}

pub fn description() -> &'static Value {
    static DESCRIPTION: OnceLock<Value> = OnceLock::new();
    DESCRIPTION.get_or_init(|| serde_json::from_str(&loopd_server::openapi()).unwrap())
}

/// What the description says of a request, if it knows it.
fn operation(method: &Method, path: &str) -> Option<(&'static str, &'static Value)> {
    let path = path.split('?').next().unwrap();
    let parts: Vec<_> = path.split('/').collect();
    let fits = |known: &str| {
        let known: Vec<_> = known.split('/').collect();
        let same = |(known, part): (&&str, &&str)| known.starts_with('{') || known == part;
        known.len() == parts.len() && known.iter().zip(&parts).all(same)
    };
    let paths = description()["paths"].as_object().unwrap();
    // What is written out goes before what has parameters.
    let (route, item) = paths.get_key_value(path).or_else(|| paths.iter().find(|(known, _)| fits(known)))?;
    Some((route, item.get(method.as_str().to_lowercase())?))
}

/// Identities differ from run to run of the code base; their order does not.
pub fn plain(text: &str) -> String {
    let mut known: Vec<String> = Vec::new();
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) =
        ["con_", "msg_", "qst_", "hcl_", "art_", "tok_", "run_"].iter().filter_map(|p| rest.find(p)).min()
    {
        let id = rest.get(at..at + 36).filter(|id| id[4..].bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(id) = id else {
            out.push_str(&rest[..at + 4]);
            rest = &rest[at + 4..];
            continue;
        };
        let number = known.iter().position(|one| one == id).unwrap_or_else(|| {
            known.push(id.to_owned());
            known.len() - 1
        });
        let _ = write!(out, "{}{}{}", &rest[..at], &id[..4], number + 1);
        rest = &rest[at + 36..];
    }
    out.push_str(rest);
    out
}
