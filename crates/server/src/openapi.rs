//! The description of the interface, from the code that serves it.

use crate::api;
use crate::refusal::PROBLEM_JSON;
use loopd_protocol::{
    ActorKey, ActorKind, ArtifactId, ConversationId, Delta, FeedEvent, HarnessCallId, MessageId, Problem, QuestionId,
    TokenId,
};
use serde_json::{Map, Value, json};
use std::sync::OnceLock;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

/// Refusals that every route knows.
const ALWAYS: [(u16, &str); 5] = [
    (400, "The request cannot be read"),
    (403, "The name in Host or Origin is not the server's, or the caller may not do this"),
    (431, "Too many headers, or too long ones"),
    (500, "The server made a mistake"),
    (503, "Not at this moment; see Retry-After"),
];
/// Those of routes that want to know who asks.
const KNOWN: [(u16, &str); 2] =
    [(401, "Send a token, or sign in"), (429, "Too many requests, or too much of them; see Retry-After")];
/// Those of routes with parameters in the path.
const NAMED: [(u16, &str); 1] = [(404, "There is no such thing, or the caller may not know of it")];
/// Those of routes that take something behind the question mark or as a body.
const READ: [(u16, &str); 1] = [(422, "The request contradicts itself or passes a limit; `field` says where")];
/// Those of routes that take a body.
const BODY: [(u16, &str); 3] = [
    (408, "The body did not arrive in time"),
    (413, "The body is too large"),
    (415, "The body has another media type"),
];
/// Those of routes that write.
const WRITE: [(u16, &str); 2] =
    [(409, "What it is about stands differently; `code` says how"), (507, "The store is full")];

/// Creations that take an `Idempotency-Key`, as tags name them in no other way.
const KEYED: [&str; 8] =
    ["open_conversation", "say", "begin_message", "ask", "call", "steer_call", "attach", "make_token"];
/// What the others say of it, behind what they say of themselves.
const UNKEYED: &str = "It takes no Idempotency-Key: the same request again changes nothing, or is refused.";
/// Changes that take `If-Match`.
const MATCHED: [&str; 2] = ["change_conversation", "change_members"];

/// Operations whose body may be left out.
const BODILESS: [&str; 3] = ["attach", "cancel_call", "end_message"];

/// The description, as JSON text with a line feed at its end.
#[must_use]
pub fn openapi() -> String {
    let (_, described) = api::router().merge(api::open_router()).split_for_parts();
    // What the code says of itself always serialises.
    let mut document = serde_json::to_value(described).unwrap_or_default();
    document["info"] = json!({
        "title": "loopd",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Conversations, Messages, Questions, calls to Harnesses, and streams of what happens.",
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    });
    document["servers"] = json!([{"url": "/"}]);
    document["security"] = json!([{"token": []}, {"cookie": []}]);
    document["components"]["securitySchemes"] = json!({
        "token": {"type": "http", "scheme": "bearer", "description": "An API token, `loopd_…`."},
        "cookie": {
            "type": "apiKey", "in": "cookie", "name": "loopd_00000000",
            "description": "A signed-in browser. The name ends in eight digits of the instance.",
        },
    });
    for (name, schema) in unnamed() {
        document["components"]["schemas"][name] = serde_json::to_value(schema).unwrap_or_default();
    }
    document["components"]["schemas"]["Block"] = block();
    exact(&mut document);
    let paths = document["paths"].as_object_mut().into_iter().flat_map(Map::iter_mut);
    for (path, item) in paths {
        for (method, operation) in item.as_object_mut().into_iter().flat_map(Map::iter_mut) {
            complete(path, method, operation);
        }
    }
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

/// A Block: one of this build, or any other object with a type. The first is one of the second, too.
fn block() -> Value {
    let kind = json!({"type": "string", "minLength": 1});
    let unknown = json!({
        "type": "object", "required": ["type"], "properties": {"type": kind},
        "description": "Anything else: it is kept as it came.",
    });
    let known = json!({"$ref": "#/components/schemas/KnownBlock"});
    json!({"description": "One part of a Message. `ask`, `confirm` and `reply` are written by the platform only.",
        "anyOf": [known, unknown]})
}

/// Says the true range of numbers without a sign: the usual formats are those of numbers with one.
fn exact(value: &mut Value) {
    let unsigned = value.get("minimum").and_then(Value::as_i64).is_some_and(|least| least >= 0);
    match value {
        Value::Object(map) => {
            if unsigned && map.get("format").is_some_and(|format| format == "int32") {
                map.insert("format".to_owned(), json!("uint32"));
                map.entry("maximum").or_insert(json!(u32::MAX));
            } else if unsigned && map.get("format").is_some_and(|format| format == "int64") {
                map.insert("format".to_owned(), json!("uint64"));
            }
            map.values_mut().for_each(exact);
        }
        Value::Array(all) => all.iter_mut().for_each(exact),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

type Named = (String, RefOr<Schema>);

/// Schemas that no body names: refusals, what streams carry, and what stands in paths.
fn unnamed() -> Vec<Named> {
    fn one<T: ToSchema>(all: &mut Vec<Named>) {
        all.push((T::name().into_owned(), T::schema()));
        T::schemas(all);
    }
    let mut all = Vec::new();
    one::<Problem>(&mut all);
    one::<FeedEvent>(&mut all);
    one::<Delta>(&mut all);
    one::<ActorKind>(&mut all);
    one::<ActorKey>(&mut all);
    one::<ConversationId>(&mut all);
    one::<MessageId>(&mut all);
    one::<QuestionId>(&mut all);
    one::<HarnessCallId>(&mut all);
    one::<ArtifactId>(&mut all);
    one::<TokenId>(&mut all);
    all
}

/// The same, made once.
pub(crate) fn document() -> &'static str {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    DOCUMENT.get_or_init(openapi)
}

/// Adds what every route of its kind has: said once here, it is forgotten nowhere.
fn complete(path: &str, method: &str, operation: &mut Value) {
    let named = operation["operationId"].as_str().unwrap_or_default().to_owned();
    let has_body = operation.get("requestBody").is_some();
    let has_query = operation["parameters"].as_array().is_some_and(|all| all.iter().any(|one| one["in"] == "query"));
    // Counters may be private.
    let is_open = operation.get("security").is_some() && path != "/metrics";
    let is_write = method != "get" && !is_open;
    let mut refusals = ALWAYS.to_vec();
    let mut add = |when: bool, some: &[(u16, &'static str)]| refusals.extend(some.iter().filter(|_| when));
    add(!is_open || path.contains("sign-in"), &KNOWN);
    add(path.contains('{') || has_query, &NAMED);
    add(has_body || has_query, &READ);
    add(has_body, &BODY);
    add(is_write, &WRITE);
    add(MATCHED.contains(&named.as_str()), &[(412, "Its revision is another one than If-Match says")]);
    for (status, description) in refusals {
        let content = json!({ PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}} });
        operation["responses"][status.to_string()] = json!({"description": description, "content": content});
    }
    if BODILESS.contains(&named.as_str()) {
        operation["requestBody"]["required"] = json!(false);
    }
    if KEYED.contains(&named.as_str()) {
        header(
            operation,
            "Idempotency-Key",
            "1 to 200 visible characters: the same request again changes nothing",
            json!({
                "type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$",
            }),
        );
    }
    if method == "post" && is_write && !KEYED.contains(&named.as_str()) {
        let said = operation["description"].as_str().unwrap_or_default();
        operation["description"] = json!(format!("{said}\n\n{UNKEYED}").trim_start());
    }
    if MATCHED.contains(&named.as_str()) {
        let schema = json!({"type": "string", "pattern": "^(\\*|(W/)?\"[0-9]{1,19}\")$"});
        header(operation, "If-Match", "The revision in quotes, as ETag says it", schema);
    }
}

fn header(operation: &mut Value, name: &str, description: &str, schema: Value) {
    let parameter =
        json!({"name": name, "in": "header", "required": false, "description": description, "schema": schema});
    match operation["parameters"].as_array_mut() {
        Some(parameters) => parameters.push(parameter),
        None => operation["parameters"] = json!([parameter]),
    }
}
