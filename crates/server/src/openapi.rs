//! The description of the interface, from the code that serves it.

use crate::api;
use crate::refusal::PROBLEM_JSON;
use loopd_protocol::Problem;
use serde_json::{Map, Value, json};
use std::sync::OnceLock;
use utoipa::PartialSchema;

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
const KEYED: [&str; 6] = ["open_conversation", "say", "begin_message", "ask", "call", "steer_call"];
/// Changes that take `If-Match`.
const MATCHED: [&str; 2] = ["change_conversation", "change_members"];

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
    let problem = <Problem as PartialSchema>::schema();
    document["components"]["schemas"]["Problem"] = serde_json::to_value(problem).unwrap_or_default();
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
    let is_open = operation.get("security").is_some();
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
