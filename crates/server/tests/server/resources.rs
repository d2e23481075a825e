//! What each operation refuses: tables that the description makes, so that a new operation is in them, too.

use crate::things::{Operation, Things};
use crate::world::{Ask, description};
use loopd_protocol::ActorKey;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[tokio::test(start_paused = true)]
async fn every_operation_does_what_it_is_asked_rightly() {
    for operation in Operation::all() {
        let things = Things::new().await;
        if operation.id == "delete_conversation" {
            things.settle().await;
        }
        let ask = things.ask(&operation).by(things.who(&operation));
        if operation.is_stream() {
            assert_eq!(things.world.response(ask).await.status().as_u16(), 200, "{}", operation.id);
            continue;
        }
        let got = things.world.send(ask).await;
        let good = got.status.is_success() || got.status.is_redirection();
        assert!(good, "{}: {} {}", operation.id, got.status, got.text());
    }
}

/// A schema without references, and without the choice of null.
fn resolved(mut schema: &'static Value) -> &'static Value {
    loop {
        let target = schema.get("$ref").and_then(Value::as_str);
        let choice = || {
            let all = schema.get("oneOf").or(schema.get("anyOf"))?.as_array()?;
            let mut real = all.iter().filter(|one| one["type"] != "null");
            real.next().filter(|_| real.next().is_none())
        };
        schema = match target {
            Some(target) => description().pointer(target.strip_prefix('#').unwrap()).unwrap(),
            None => match choice() {
                Some(one) => one,
                None => return schema,
            },
        };
    }
}

/// The types of JSON that a schema takes.
fn types(schema: &'static Value) -> BTreeSet<&'static str> {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        return types(description().pointer(target.strip_prefix('#').unwrap()).unwrap());
    }
    for several in ["oneOf", "anyOf"] {
        if let Some(all) = schema.get(several).and_then(Value::as_array) {
            return all.iter().flat_map(types).collect();
        }
    }
    match schema.get("type") {
        Some(Value::String(one)) => BTreeSet::from([one.as_str()]),
        Some(Value::Array(some)) => some.iter().map(|one| one.as_str().unwrap()).collect(),
        _ => ["null", "boolean", "integer", "string", "array", "object"].into(),
    }
}

fn bodies() -> Vec<(Operation, &'static Value)> {
    let schema = |operation: &Operation| &operation.says["requestBody"]["content"]["application/json"]["schema"];
    let all = Operation::all().into_iter().filter(Operation::takes_json);
    let all: Vec<_> = all.map(|operation| (operation, resolved(schema(&operation)))).collect();
    assert!(all.len() > 15);
    all
}

fn properties(schema: &'static Value) -> impl Iterator<Item = (&'static str, &'static Value)> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
}

/// The body with another value at this place.
fn with(body: &Value, name: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[name] = value;
    body
}

#[tokio::test(start_paused = true)]
async fn values_of_another_type_and_missing_and_unknown_ones_are_refused_with_their_place() {
    let things = Things::new().await;
    let mut tried = 0;
    for (operation, schema) in bodies() {
        let good = things.body(&operation).unwrap();
        let ask =
            |body: Value| Ask::new(operation.method, things.path(&operation)).by(things.who(&operation)).json(body);
        // A code is not told, so neither is what stood in its place.
        let place = |name: &str| if operation.id == "sign_in" { "code".to_owned() } else { name.to_owned() };
        for (name, schema) in properties(schema) {
            let wrong = [
                ("null", json!(null)),
                ("boolean", json!(true)),
                ("integer", json!(1.5)),
                ("string", json!("\u{1}?")),
                ("array", json!([[]])),
                ("object", json!({"?": 1})),
            ];
            let takes = types(schema);
            for (kind, value) in wrong {
                if takes.contains(kind) && kind != "integer" {
                    continue;
                }
                let got = things.refused(ask(with(&good, name, value.clone()))).await;
                let expected = format!("422 invalid {}", place(name));
                let at = format!("{} {name} {value}: {} {}", operation.id, got.brief(), got.text());
                assert!(got.brief().starts_with(&expected), "{at}");
                tried += 1;
            }
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            let mut body = good.clone();
            body.as_object_mut().unwrap().remove(name.as_str().unwrap());
            let got = things.refused(ask(body)).await;
            assert!(got.brief().starts_with("422 invalid"), "{} {name}: {}", operation.id, got.text());
            tried += 1;
        }
        let got = things.refused(ask(with(&good, "surprise", json!(1)))).await;
        assert!(got.brief().starts_with("422 invalid"), "{}: {}", operation.id, got.text());
    }
    assert!(tried > 150, "{tried}");
}

/// Some items of a list, each another.
fn items(name: &str, count: u64) -> Value {
    let item = |number: u64| match name {
        "blocks" => json!({"type": "text", "text": "x"}),
        "ops" => json!({"op": "append", "index": 0, "text": "x"}),
        "choices" => json!({"value": number.to_string()}),
        "roles" => json!("viewer"),
        "artifacts" => json!(format!("art_{number:032x}")),
        _ => json!(format!("person/p{number}")),
    };
    (0..count).map(item).collect()
}

#[tokio::test(start_paused = true)]
async fn what_passes_a_limit_of_the_description_is_refused() {
    let things = Things::new().await;
    let mut tried = BTreeSet::new();
    for (operation, schema) in bodies() {
        let good = things.body(&operation).unwrap();
        for (name, declared) in properties(schema) {
            let schema = resolved(declared);
            let limit = |name: &str| declared.get(name).or(schema.get(name)).and_then(Value::as_u64);
            let text = |length: u64| json!("x".repeat(usize::try_from(length).unwrap()));
            let mut wrong = Vec::new();
            wrong.extend(limit("maxLength").map(|most| text(most + 1)));
            wrong.extend(limit("minLength").map(|least| text(least - 1)));
            wrong.extend(limit("maxItems").map(|most| items(name, most + 1)));
            wrong.extend(limit("minItems").map(|least| items(name, least - 1)));
            wrong.extend(limit("maximum").map(|most| json!(most + 1)));
            wrong.extend(limit("minimum").filter(|least| *least > 0).map(|least| json!(least - 1)));
            wrong.extend(schema.get("pattern").map(|_| json!("Nobody's")));
            wrong.extend(schema.get("enum").map(|_| json!("never_heard_of")));
            if schema["type"] == "integer" {
                wrong.extend([json!(-1), json!(1e300), json!(18_446_744_073_709_551_616.0)]);
            }
            if schema["type"] == "array" {
                wrong.push(items(name, 20_000));
            }
            for value in wrong {
                let ask = Ask::new(operation.method, things.path(&operation)).by(things.who(&operation));
                let shown: String = value.to_string().chars().take(60).collect();
                let got = things.refused(ask.json(with(&good, name, value))).await;
                // A target that there cannot be is one that there is not.
                let fits = matches!(got.status.as_u16(), 413 | 422) || (name == "target" && got.status.as_u16() == 404);
                assert!(fits, "{} {name} {shown}: {}", operation.id, got.text());
                tried.insert(format!("{} {name}", operation.id));
            }
        }
    }
    assert!(tried.len() > 40, "{tried:?}");
}

#[tokio::test(start_paused = true)]
async fn texts_beyond_their_limit_are_too_large() {
    let things = Things::new().await;
    let table = [
        ("say", json!({"blocks": [{"type": "text", "text": "x".repeat((1 << 20) + 1)}]}), "413 too_large"),
        ("begin_message", json!({"blocks": [{"type": "text", "text": "x".repeat((1 << 20) + 1)}]}), "413 too_large"),
        (
            "update_message",
            json!({"revision": 1, "ops": [{"op": "append", "index": 0, "text": "x".repeat((1 << 20) + 1)}]}),
            "413 too_large",
        ),
        ("call", json!({"target": "steps", "prompt": "x".repeat(1_000_001)}), "413 too_large"),
        ("steer_call", json!({"text": "x".repeat(100_001)}), "413 too_large"),
        ("ask", json!({"kind": "ask", "prompt": "x".repeat(10_001), "timeout_s": 9}), "422 invalid prompt"),
        (
            "ask",
            json!({"kind": "ask", "prompt": "?", "timeout_s": 9, "schema": {"x": "x".repeat(70_000)}}),
            "413 too_large",
        ),
        ("register_actor", json!({"name": " "}), "422 invalid name"),
        ("open_conversation", json!({"members": items("members", 201)}), "422 invalid members"),
        ("open_conversation", json!({"title": "x".repeat(3 << 20)}), "413 too_large"),
        ("change_members", json!({"add": items("add", 201)}), "422 invalid add"),
        ("change_members", json!({"add": items("add", 200)}), "422 invalid members"),
        ("change_members", json!({"remove": items("remove", 201)}), "422 invalid remove"),
        (
            "end_message",
            json!({"status": "failed", "error": {"code": "x", "message": "x".repeat(2 << 20)}}),
            "413 too_large",
        ),
        ("cancel_call", json!({"reason": "x".repeat(3 << 20)}), "413 too_large"),
    ];
    for (id, body, expected) in table {
        let operation = Operation::all().into_iter().find(|one| one.id == id).unwrap();
        let ask = Ask::new(operation.method, things.path(&operation)).by(things.who(&operation)).json(body);
        assert_eq!(things.refused(ask).await.brief(), expected, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_may_not_is_told_the_same_about_what_is_there_and_what_is_not() {
    let things = Things::new().await;
    let digits = "0".repeat(32);
    for operation in Operation::all().iter().filter(|operation| operation.path.contains('{')) {
        // Who is there, and which agents, everybody may know.
        if operation.path.starts_with("/v1/actors") || operation.path.starts_with("/v1/agents") {
            continue;
        }
        let there = things.path(operation);
        let id = there.split('/').find(|part| part.contains('_') && part.len() >= 36).unwrap();
        let id = id.split('?').next().unwrap();
        let not_there = there.replace(&id[4..], &digits);
        for token in [&things.zoe, &things.world.eve] {
            let mut said = Vec::new();
            for (path, id) in [(&there, id.to_owned()), (&not_there, format!("{}{digits}", &id[..4]))] {
                let ask = Ask::new(operation.method, path).by(token);
                let ask = match (things.body(operation), operation.id) {
                    (Some(body), _) => ask.json(body),
                    (None, "attach") => ask.text("text/plain", "x"),
                    (None, _) => ask,
                };
                // eve is a member, who only reads.
                if token == &things.world.eve && (operation.method == "get" || operation.id == "commit") {
                    continue;
                }
                let got = things.refused(ask).await;
                said.push((got.status.as_u16(), got.text().replace(&id[4..], "ID")));
            }
            assert!(said.iter().all(|(status, _)| matches!(status, 403 | 404)), "{} {said:?}", operation.id);
            // Of what a member may see, only a member is told that it may not be changed.
            if token == &things.zoe {
                assert_eq!(said[0], said[1], "{}", operation.id);
            } else if let Some((status, _)) = said.first() {
                assert_eq!(*status, 403, "{} {said:?}", operation.id);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_revoked_and_an_expired_token_open_nothing() {
    let things = Things::new().await;
    let world = &things.world;
    let new = json!({"actor": "person/root", "roles": ["admin"], "days": 1});
    let mut secrets = Vec::new();
    for _ in 0..2 {
        secrets.push(world.send(Ask::post("/v1/tokens").by(&world.root).json(new.clone())).await.json());
    }
    let id = secrets[0]["token"]["id"].as_str().unwrap();
    world.send(Ask::new("delete", format!("/v1/tokens/{id}")).by(&world.root)).await;
    world.clock.pass(std::time::Duration::from_secs(24 * 3600));
    for operation in Operation::all().iter().filter(|operation| !operation.is_open()) {
        for (number, secret) in secrets.iter().enumerate() {
            let peer = format!("10.{number}.{}.{}", operation.path.len(), operation.id.len());
            let ask = things.ask(operation).by(secret["secret"].as_str().unwrap()).peer(&peer);
            let got = things.refused(ask).await;
            assert_eq!(got.brief(), "401 unauthenticated", "{}", operation.id);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn paths_that_name_nothing_lead_nowhere() {
    let things = Things::new().await;
    let zeros = "0".repeat(32);
    let long = "a".repeat(8000);
    let names = [
        "x",
        "%00",
        "%FF",
        "%C3%28",
        "%2e%2e",
        "..%2f..%2fetc%2fpasswd",
        "%0d%0aX:%20y",
        "%25%30%30",
        "con_",
        "null",
        "-1",
        "0",
        "con_0000000000000000000000000000000g",
        &zeros,
        &long,
        "%E2%80%AE",
        "con_%E2%82%AC",
        "*",
        "'or'1",
    ];
    for operation in Operation::all().iter().filter(|operation| operation.path.contains('{')) {
        let mut rest = operation.path;
        while let Some(start) = rest.find('{') {
            let end = rest[start..].find('}').unwrap() + start;
            let parameter = &rest[start..=end];
            rest = &rest[end..];
            for name in names {
                let is_key = matches!(parameter, "{key}" | "{role}" | "{agent}")
                    && format!("person/{name}").parse::<ActorKey>().is_ok();
                if is_key {
                    continue;
                }
                let only = Operation { path: parameter, ..*operation };
                let known = things.path(&only);
                let known = known.split('?').next().unwrap();
                let path = things.path(operation).replacen(known, name, 1);
                let ask = Ask::new(operation.method, &path).by(&things.world.root);
                let ask = match things.body(operation) {
                    Some(body) => ask.json(body),
                    None => ask,
                };
                let got = things.refused(ask).await;
                let status = got.status.as_u16();
                assert!(matches!(status, 400 | 404), "{} {path}: {}", operation.id, got.text());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_any_size_is_one_and_a_page_has_its_own() {
    let things = Things::new().await;
    for operation in Operation::all() {
        let Some(limit) = operation.query().into_iter().find(|parameter| parameter["name"] == "limit") else {
            continue;
        };
        let most = limit["schema"]["maximum"].as_u64().unwrap();
        for value in [0, 1, 2_147_483_648, most] {
            let path = things.path(&operation);
            let glue = if path.contains('?') { '&' } else { '?' };
            let ask = Ask::new(operation.method, format!("{path}{glue}limit={value}")).by(things.who(&operation));
            assert_eq!(things.world.send(ask).await.brief(), "200", "{} {value}", operation.id);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_may_be_left_out_is_left_out_whole() {
    // A file may be empty.
    let all = [("attach", "201"), ("cancel_call", "200"), ("end_message", "200"), ("steer_call", "415 media_type")];
    for (id, alone) in all {
        let things = Things::new().await;
        let operation = Operation::all().into_iter().find(|one| one.id == id).unwrap();
        let ask = || Ask::new(operation.method, things.path(&operation)).by(things.who(&operation));
        let nothing = [ask().json(json!(null)), ask().text("application/json", "")];
        for null in nothing.into_iter().filter(|_| operation.takes_json()) {
            let got = things.refused(null).await;
            assert!(matches!(got.status.as_u16(), 400 | 422), "{id} {}", got.brief());
        }
        let required = operation.says["requestBody"]["required"].as_bool().unwrap();
        assert_eq!(
            (things.world.send(ask()).await.brief().as_str(), required),
            (alone, alone == "415 media_type"),
            "{id}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_stands_behind_the_question_mark_is_read_exactly() {
    let things = Things::new().await;
    let mut tried = 0;
    for operation in Operation::all() {
        let parameters = operation.query();
        if parameters.is_empty() {
            continue;
        }
        let path = things.path(&operation);
        let glue = if path.contains('?') { '&' } else { '?' };
        let ask = |more: &str| Ask::new(operation.method, format!("{path}{glue}{more}")).by(things.who(&operation));
        let got = things.refused(ask("surprise=1")).await;
        assert!(got.brief().starts_with("422 invalid"), "{} {}", operation.id, got.brief());
        for parameter in parameters {
            let name = parameter["name"].as_str().unwrap();
            let wrong: &[&str] = match name {
                "limit" => &["-1", "x", "", "1.5", "4294967296", "%00"],
                "cursor" if operation.id == "list_runs" => &["x", "run_0"],
                "cursor" => {
                    &["x", "1.", "-1.00", "1.zz", "%00", "99999999999999999999.00000000000000000000000000000000"]
                }
                "after" | "before" => &["-1", "x", "18446744073709551616"],
                "archived" | "streaming" => &["maybe", "1", "TRUE"],
                "kind" => &["robot", ""],
                "format" => &["pdf", ""],
                "status" => &["asleep", ""],
                "parent" | "call" | "conversation" | "actor" => &["x", "con_0", "%FF"],
                "from" => &["yesterday", ""],
                "feed" => &["x", "conversation/x", "actor/x", "%00", ""],
                "name" => &["", "..", "a%2Fb", "a%5Cb", "a%0Ab", "a%00", "a%E2%80%AEb"],
                "key" => &[""],
                "place" => &["elsewhere", ""],
                "q" | "code" | "loop_name" => &[],
                name => panic!("say what `{name}` of {} refuses", operation.id),
            };
            for value in wrong {
                let replaced =
                    path.split_once(&format!("{name}=")).map(|(before, _)| format!("{before}{name}={value}"));
                let path = replaced.unwrap_or_else(|| format!("{path}{glue}{name}={value}"));
                let ask = Ask::new(operation.method, &path).by(things.who(&operation));
                let ask = if operation.id == "attach" { ask.text("text/plain", "x") } else { ask };
                let got = things.refused(ask).await;
                let fits = matches!(got.status.as_u16(), 400 | 422);
                assert!(fits, "{} {path}: {} {}", operation.id, got.brief(), got.text());
                tried += 1;
            }
            // Many Feeds are meant; anything else that is there twice is a mistake.
            if name != "feed" {
                let value = if name == "limit" { "1" } else { "a" };
                let got = things.refused(ask(&format!("{name}={value}&{name}={value}"))).await;
                assert!(matches!(got.status.as_u16(), 400 | 422), "{} {name}: {}", operation.id, got.text());
            }
        }
    }
    assert!(tried > 100, "{tried}");
}
