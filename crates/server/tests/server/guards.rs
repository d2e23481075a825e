//! What no route lets through: tables over every route that the description knows.

use crate::world::{Ask, World, description};
use axum::http::StatusCode;
use serde_json::json;
use std::collections::BTreeSet;

struct Route {
    method: &'static str,
    path: &'static str,
    open: bool,
    body: Option<&'static str>,
}

fn routes() -> Vec<Route> {
    let mut routes = Vec::new();
    for (path, item) in description()["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let content = operation["requestBody"]["content"].as_object();
            let body = content.and_then(|content| content.keys().next()).map(String::as_str);
            // Counters may be private, and are not here.
            let open = operation.get("security").is_some() || path == "/metrics";
            routes.push(Route { method, path, open, body });
        }
    }
    assert!(routes.len() > 45);
    routes
}

/// The path with identities that are well formed, and that nothing has.
fn filled(path: &str) -> String {
    let zeros = "0".repeat(32);
    let ids = [
        ("{conversation}", format!("con_{zeros}")),
        ("{message}", format!("msg_{zeros}")),
        ("{question}", format!("qst_{zeros}")),
        ("{call}", format!("hcl_{zeros}")),
        ("{artifact}", format!("art_{zeros}")),
        ("{token}", format!("tok_{zeros}")),
        ("{run}", format!("run_{zeros}")),
        ("{kind}", "person".to_owned()),
        ("{key}", "nobody".to_owned()),
        ("{role}", "plan".to_owned()),
        ("{agent}", "nobody".to_owned()),
    ];
    ids.iter().fold(path.to_owned(), |path, (name, id)| path.replace(name, id))
}

#[tokio::test(start_paused = true)]
async fn a_stranger_gets_nowhere() {
    let world = World::new().await;
    for Route { method, path, open, .. } in routes().iter().filter(|route| route.path != "/sign-in") {
        for (name, value) in [
            ("", ""),
            ("authorization", "Bearer loopd_wrong"),
            ("authorization", "Basic bG9vcGQ="),
            ("cookie", "loopd_abababab=a.b"),
        ] {
            // Each from an address of its own: too many failures of one are another test.
            let peer = format!("10.0.{}.{}", path.len(), method.len() + value.len());
            let ask = Ask::new(method, filled(path)).peer(&peer);
            let got = world.send(if name.is_empty() { ask } else { ask.header(name, value) }).await;
            assert_eq!(got.status == StatusCode::UNAUTHORIZED, !open, "{method} {path} {name} {value} {}", got.brief());
            if !open {
                assert_eq!((got.header("www-authenticate"), got.code().as_str()), ("Bearer", "unauthenticated"));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn other_names_and_other_origins_are_refused_on_every_route() {
    let world = World::configured(|config| {
        config.hosts = vec!["loopd.example.org".to_owned(), "two.example.org:8443".to_owned()];
        config.origins = vec!["https://front.example.org".to_owned()];
    })
    .await;
    let mut all = routes();
    all.push(Route { method: "get", path: "/", open: true, body: None });
    all.push(Route { method: "get", path: "/nothing/here", open: true, body: None });
    for Route { method, path, .. } in &all {
        for host in [
            "evil.test:8080",
            "localhost.evil.test",
            "evil.test",
            "ann@localhost",
            "local host",
            "",
            "[::2]:7777",
            "127.0.0.2",
        ] {
            let got = world.send(Ask::new(method, filled(path)).by(&world.root).header("host", host)).await;
            assert_eq!(got.brief(), "403 host", "{method} {path} {host}");
        }
        for origin in [
            "https://evil.test",
            "null",
            "http://localhost",
            "http://localhost:3000",
            "http://127.0.0.1:7777",
            "ftp://localhost:7777",
            "localhost:7777",
        ] {
            let got = world.send(Ask::new(method, filled(path)).by(&world.root).header("origin", origin)).await;
            assert_eq!(got.brief(), "403 origin", "{method} {path} {origin}");
        }
    }
    let allowed = [
        ("localhost:7777", "http://localhost:7777"),
        ("LOCALHOST:7777", "http://localhost:7777"),
        ("127.0.0.1:1", "http://127.0.0.1:1"),
        ("[::1]:7777", "http://[::1]:7777"),
        ("localhost", "http://localhost"),
        ("localhost:80", "http://localhost"),
        ("loopd.example.org", "https://loopd.example.org"),
        ("loopd.example.org:9", "https://loopd.example.org:9"),
        ("two.example.org:8443", "https://two.example.org:8443"),
        ("loopd.example.org", "https://front.example.org"),
    ];
    for (host, origin) in allowed {
        let got = world.send(Ask::get("/healthz").header("host", host).header("origin", origin)).await;
        assert_eq!(got.status, StatusCode::OK, "{host} {origin}");
    }
    for (host, origin) in
        [("two.example.org", "https://two.example.org"), ("loopd.example.org", "https://loopd.example.org:9")]
    {
        let got = world.send(Ask::get("/healthz").header("host", host).header("origin", origin)).await;
        assert_eq!(got.status, StatusCode::FORBIDDEN, "{host} {origin}");
    }
    let twice = Ask::get("/healthz").header("host", "localhost").header("host", "evil.test");
    assert_eq!(world.send(twice).await.brief(), "403 host");
    let absolute = Ask::get("http://evil.test/healthz").header("host", "localhost");
    assert_eq!(world.send_unchecked(absolute).await.brief(), "403 host");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_refused_with_the_place() {
    let world = World::configured(|config| config.limits.requests_burst = 10_000).await;
    for Route { method, path, body, .. } in routes() {
        let at = format!("{method} {path}");
        let ask = || Ask::new(method, filled(path)).by(&world.root);
        let json = body == Some("application/json");
        let got = world.send(Ask::new(method, format!("{}?surprise=1", filled(path))).by(&world.root)).await;
        assert!(got.status.as_u16() < 500, "{at}: {}", got.brief());
        if path.contains('{') {
            let wrong =
                filled(path).replace(&"0".repeat(32), "zzz").replace("person", "Robot").replace("nobody", "%FF");
            let got = world.send(Ask::new(method, wrong.clone()).by(&world.root)).await;
            assert!(matches!(got.status.as_u16(), 400 | 404), "{at} {wrong}: {}", got.brief());
        }
        if !json {
            continue;
        }
        let answers = [
            (ask().json(json!({"surprise": 1})), "422 invalid"),
            (ask().text("application/json", "{\"a\": }"), "4"),
            (ask().text("application/json", "{} {}"), "4"),
            (ask().text("application/json", ""), "400 malformed"),
            (ask().text("application/json", "[".repeat(100_000)), "4"),
            (ask().text("text/plain", "{}"), "415 media_type"),
            (ask().text("application/x-www-form-urlencoded", "a=b"), "415 media_type"),
            (ask().header("content-encoding", "gzip").json(json!({})), "415 media_type"),
            (ask().text("application/json", " ".repeat((2 << 20) + 1)), "413 too_large"),
            (ask().json(json!([])), "422 invalid"),
            (ask().json(json!(null)), "4"),
        ];
        for (ask, expected) in answers {
            let text = format!("{at} {:?}", ask);
            let got = world.send(ask).await;
            assert!(
                got.brief().starts_with(expected),
                "{} is not {expected}: {} {}",
                text.get(..200).unwrap_or(&text),
                got.brief(),
                got.text()
            );
        }
    }
    let said = |body: &str| {
        Ask::post(format!("/v1/conversations/con_{}/messages", "0".repeat(32)))
            .by(&world.ann)
            .text("application/json", body)
    };
    let got = world.send(said("{\"blocks\": [],\n \"to\": }")).await;
    assert!(got.json()["detail"].as_str().unwrap().contains("line 2 column 8"), "{}", got.text());
    let got = world.send(said("{\"blocks\": [], \"to\": [\"person/ann\", \"Ann\"]}")).await;
    assert_eq!(got.brief(), "422 invalid to[1]");
}

#[tokio::test(start_paused = true)]
async fn routes_and_methods_that_are_not_there_say_what_is() {
    let world = World::new().await;
    for path in
        ["/nothing", "/v1", "/v1/", "/v1/nothing", "/v2/actors", "/v1/actors/person", "/v1/conversations/", "//"]
    {
        assert_eq!(world.send(Ask::get(path).by(&world.ann)).await.brief(), "404 no_route", "{path}");
    }
    let mut known: std::collections::BTreeMap<&str, BTreeSet<String>> = std::collections::BTreeMap::new();
    for Route { method, path, .. } in routes() {
        known.entry(path).or_default().insert(method.to_uppercase());
    }
    for (path, methods) in known {
        for method in ["get", "post", "put", "patch", "delete", "options", "trace"] {
            if methods.contains(&method.to_uppercase()) {
                continue;
            }
            let got = world.send(Ask::new(method, filled(path)).by(&world.root)).await;
            assert_eq!(got.brief(), "405 method", "{method} {path}");
            let allowed: BTreeSet<String> =
                got.header("allow").split(',').filter(|one| *one != "HEAD").map(str::to_owned).collect();
            assert_eq!(allowed, methods, "{method} {path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_not_found_and_readers_change_nothing() {
    let world = World::configured(|config| config.limits.requests_burst = 10_000).await;
    let bodies = [
        ("/members", json!({"add": ["person/ben"]})),
        ("/messages", json!({"blocks": [{"type": "text", "text": "x"}]})),
        ("/messages/begin", json!({})),
        ("/commit", json!({"seq": 1})),
        ("/questions", json!({"kind": "ask", "prompt": "?", "timeout_s": 9})),
        ("/calls", json!({"target": "nobody", "prompt": "x"})),
        ("/answer", json!({"status": "answered", "value": "x"})),
        ("/end", json!({"status": "completed"})),
        ("/cancel", json!({"reason": "x"})),
        ("/steer", json!({"text": "x"})),
        ("/resume", json!({})),
        ("/lease", json!({"holder": "x", "lease_s": 1})),
        ("/turn", json!({"epoch": 1})),
        ("{conversation}", json!({"title": "x"})),
        ("{message}", json!({"revision": 1, "ops": [{"op": "push", "block": {"type": "text", "text": "x"}}]})),
    ];
    let open_to_all = |path: &str| path.contains("actors") || path.contains("agents");
    for Route { method, path, body, .. } in
        routes().iter().filter(|route| route.path.contains('{') && !open_to_all(route.path))
    {
        let json = bodies.iter().find(|(end, _)| path.ends_with(end)).map(|(_, body)| body.clone());
        let ask = |token: &str| {
            let behind = match path.rsplit('/').next() {
                Some("artifacts") => "?name=x",
                Some("keyed") => "?key=x",
                _ => "",
            };
            let target = format!("{}{behind}", filled(path));
            let ask = Ask::new(method, target).by(token);
            match (body, &json) {
                (Some("application/json"), Some(json)) => ask.json(json.clone()),
                (Some("application/json"), None) => panic!("no body for {path}"),
                _ => ask,
            }
        };
        for token in [&world.root, &world.op] {
            let got = world.send(ask(token)).await;
            let only_for = path.contains("{token}") || path.ends_with("/answer") || path.ends_with("/resume");
            let expected: &[u16] = if only_for { &[403, 404] } else { &[404] };
            assert!(expected.contains(&got.status.as_u16()), "{method} {path}: {}", got.text());
        }
        let got = world.send(ask(&world.eve)).await;
        assert!(matches!(got.status.as_u16(), 403 | 404), "{method} {path}: {}", got.text());
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_headers_are_too_many() {
    let world = World::new().await;
    let many = (0..80).fold(Ask::get("/healthz"), |ask, number| ask.header(&format!("x-{number}"), "1"));
    assert_eq!(world.send(many).await.brief(), "431 headers");
    let long = Ask::get("/healthz").header("x-long", "y".repeat(33 << 10));
    assert_eq!(world.send(long).await.brief(), "431 headers");
}

#[tokio::test(start_paused = true)]
async fn one_token_that_asks_too_often_waits_and_the_others_do_not() {
    let world = World::configured(|config| {
        (config.limits.requests_per_s, config.limits.requests_burst) = (2, 5);
        (config.limits.operator_requests_per_s, config.limits.operator_requests_burst) = (2, 7);
    })
    .await;
    let ask = |token: &str| Ask::get("/v1/whoami").by(token);
    for _ in 0..5 {
        assert_eq!(world.send(ask(&world.ann)).await.brief(), "200");
    }
    let got = world.send(ask(&world.ann)).await;
    assert_eq!((got.brief().as_str(), got.header("retry-after")), ("429 rate", "1"));
    assert_eq!(got.json()["retry_after_s"], 1);
    // An Operator asks for many.
    for _ in 0..7 {
        assert_eq!(world.send(ask(&world.op)).await.brief(), "200");
    }
    assert_eq!(world.send(ask(&world.op)).await.brief(), "429 rate");
    assert_eq!(world.send(ask(&world.ben)).await.brief(), "200");
    tokio::time::advance(std::time::Duration::from_millis(500)).await;
    assert_eq!(world.send(ask(&world.ann)).await.brief(), "200");
    assert_eq!(world.send(ask(&world.ann)).await.brief(), "429 rate");
    let text = world.send(Ask::get("/metrics")).await.text();
    assert!(text.contains("loopd_rate_limited_total{code=\"rate\"} 3"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let world = World::new().await;
    let ask = Ask::post("/v1/conversations").by(&world.ann).header("content-type", "application/json");
    let never = axum::body::Body::from_stream(futures::stream::pending::<Result<axum::body::Bytes, std::io::Error>>());
    assert_eq!(world.send(ask.stream(never)).await.brief(), "408 timeout");
    // Of a body without a length only its bytes tell that it is too large.
    let pieces =
        futures::stream::iter((0..5).map(|_| Ok::<_, std::io::Error>(axum::body::Bytes::from(vec![b' '; 1 << 20]))));
    let ask = Ask::post("/v1/conversations").by(&world.ann).header("content-type", "application/json");
    assert_eq!(world.send(ask.stream(axum::body::Body::from_stream(pieces))).await.brief(), "413 too_large");
}
