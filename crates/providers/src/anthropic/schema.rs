//! JSON Schemas within what the protocol takes. The full schema stays with whoever checks against it.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// What the protocol refuses at the top of a tool's schema, for the whole request.
const NOT_AT_TOP: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// Keywords that an answer can be held to. Everything else only narrows further, so leaving it out is sound.
const HELD: [&str; 12] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "allOf",
    "enum",
    "const",
    "$ref",
    "description",
    "title",
];

/// Members with schemas by name.
const NAMED: [&str; 3] = ["properties", "$defs", "definitions"];

/// How an answer lies in the arguments of its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerShape {
    /// It is the arguments.
    Plain,
    /// It is their one member, because arguments are objects and it need not be one.
    Wrapped,
}

impl AnswerShape {
    /// The answer in these arguments; what does not have the shape is for the caller to judge.
    pub(super) fn unwrap(self, args: String) -> String {
        match self {
            Self::Plain => args,
            Self::Wrapped => {
                let members: BTreeMap<String, &RawValue> = serde_json::from_str(&args).unwrap_or_default();
                members.get(super::blocks::ANSWER).map(|raw| raw.get().to_owned()).unwrap_or(args)
            }
        }
    }
}

/// The schema of a tool's arguments, and what had to be left out of it, as JSON.
///
/// # Errors
/// It is no JSON.
pub(super) fn of_tool(text: &str) -> Result<(Cow<'_, RawValue>, Option<String>), serde_json::Error> {
    let raw: &RawValue = match text.trim() {
        "" => serde_json::from_str(r#"{"type":"object","properties":{}}"#)?,
        text => serde_json::from_str(text)?,
    };
    if fits(raw) {
        return Ok((Cow::Borrowed(raw), None));
    }
    let mut members: BTreeMap<&str, &RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let object: &RawValue = serde_json::from_str("\"object\"")?;
    let left: BTreeMap<&str, &RawValue> =
        NOT_AT_TOP.iter().filter_map(|name| members.remove(name).map(|raw| (*name, raw))).collect();
    members.insert("type", object);
    let left = if left.is_empty() { None } else { Some(serde_json::to_string(&left)?) };
    Ok((Cow::Owned(to_raw_value(&members)?), left))
}

/// Whether the protocol takes the schema as it is.
fn fits(raw: &RawValue) -> bool {
    let members: BTreeMap<&str, &RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let is_object = members.get("type").is_some_and(|raw| raw.get() == "\"object\"");
    is_object && NOT_AT_TOP.iter().all(|name| !members.contains_key(name))
}

/// The schema of the arguments that carry an answer with schema `text`.
///
/// # Errors
/// It is no JSON.
pub(super) fn of_answer(text: &str) -> Result<(Cow<'_, RawValue>, AnswerShape), serde_json::Error> {
    let raw: &RawValue = serde_json::from_str(text)?;
    if fits(raw) {
        return Ok((Cow::Borrowed(raw), AnswerShape::Plain));
    }
    let members: BTreeMap<&str, &RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let mut outer: BTreeMap<&str, Box<RawValue>> = BTreeMap::new();
    outer.insert("type", to_raw_value("object")?);
    outer.insert("properties", to_raw_value(&BTreeMap::from([(super::blocks::ANSWER, raw)]))?);
    outer.insert("required", to_raw_value(&[super::blocks::ANSWER])?);
    // References count from the top.
    for name in ["$defs", "definitions"] {
        if let Some(definitions) = members.get(name) {
            outer.insert(name, (*definitions).to_owned());
        }
    }
    Ok((Cow::Owned(to_raw_value(&outer)?), AnswerShape::Wrapped))
}

/// The schema as the protocol's own answer format can hold to it: every object is closed and what it does not know is
/// left out. `None` where that would change what is asked for.
///
/// # Errors
/// It is no JSON.
pub(super) fn held(text: &str) -> Result<Option<Value>, serde_json::Error> {
    let schema: Value = serde_json::from_str(text)?;
    if contains_itself(&schema, &schema, &mut Vec::new(), &mut BTreeSet::new()) {
        return Ok(None);
    }
    Ok(close(&schema))
}

fn close(schema: &Value) -> Option<Value> {
    let schema = schema.as_object()?;
    let mut closed = Map::new();
    for (name, value) in schema {
        let value = match name.as_str() {
            name if NAMED.contains(&name) => {
                let entries = value.as_object()?.iter().map(|(name, inner)| Some((name.clone(), close(inner)?)));
                Value::Object(entries.collect::<Option<_>>()?)
            }
            "items" => close(value)?,
            "anyOf" | "allOf" => Value::Array(value.as_array()?.iter().map(close).collect::<Option<_>>()?),
            name if HELD.contains(&name) => value.clone(),
            _ => continue,
        };
        closed.insert(name.clone(), value);
    }
    let says_something =
        ["type", "anyOf", "allOf", "enum", "const", "$ref"].iter().any(|name| closed.contains_key(*name));
    if !says_something {
        return None;
    }
    if schema.get("type").is_some_and(names_object) {
        let free = match schema.get("additionalProperties") {
            None | Some(Value::Bool(_)) => !schema.contains_key("properties"),
            Some(_) => true,
        };
        if free {
            return None;
        }
        closed.insert("additionalProperties".into(), json!(false));
    }
    Some(Value::Object(closed))
}

fn names_object(kind: &Value) -> bool {
    kind == "object" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
}

/// Whether a reference leads back to where it stands, or nowhere. `path` holds the references on the way, `sound` those
/// that are known to end.
fn contains_itself<'a>(
    schema: &'a Value,
    root: &'a Value,
    path: &mut Vec<&'a str>,
    sound: &mut BTreeSet<&'a str>,
) -> bool {
    match schema {
        Value::Array(all) => all.iter().any(|inner| contains_itself(inner, root, path, sound)),
        Value::Object(members) => members.iter().any(|(name, inner)| match (name.as_str(), inner) {
            // They count where they are referred to.
            ("$defs" | "definitions", _) => false,
            ("$ref", Value::String(reference)) if sound.contains(reference.as_str()) => false,
            ("$ref", Value::String(reference)) => {
                let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
                let Some(target) = target.filter(|_| !path.contains(&reference.as_str())) else {
                    return true;
                };
                path.push(reference);
                let found = contains_itself(target, root, path, sound);
                path.pop();
                sound.insert(reference);
                found
            }
            _ => contains_itself(inner, root, path, sound),
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_tool(text: &str, sent: &str, left: Option<&str>) {
        let (schema, without) = of_tool(text).expect("JSON");
        assert_eq!((schema.get(), without.as_deref()), (sent, left));
    }

    #[test]
    fn a_tool_schema_that_fits_is_not_touched() {
        let exact = r#"{ "type":"object", "x":1.0, "properties":{"a":{"anyOf":[]}} }"#;
        check_tool(exact, exact, None);
        check_tool(" ", r#"{"type":"object","properties":{}}"#, None);
    }

    #[test]
    fn a_tool_schema_that_would_be_refused_is_made_to_fit() {
        check_tool(
            r#"{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]}]}"#,
            r#"{"properties":{"a":{"type":"string"}},"type":"object"}"#,
            Some(r#"{"anyOf":[{"required":["a"]}]}"#),
        );
        check_tool(r##"{"$ref":"#/$defs/A"}"##, r##"{"$ref":"#/$defs/A","type":"object"}"##, None);
        check_tool("true", r#"{"type":"object"}"#, None);
        check_tool(r#"{"type":["object","null"]}"#, r#"{"type":"object"}"#, None);
        assert!(of_tool("{").is_err());
    }

    #[test]
    fn an_answer_that_is_no_object_is_wrapped() {
        let (schema, shape) = of_answer(r##"{"$defs":{"A":{}},"anyOf":[{"$ref":"#/$defs/A"}]}"##).expect("JSON");
        let expect = r##"{"$defs":{"A":{}},"properties":{"answer":{"$defs":{"A":{}},"anyOf":[{"$ref":"#/$defs/A"}]}},"required":["answer"],"type":"object"}"##;
        assert_eq!((schema.get(), shape), (expect, AnswerShape::Wrapped));
        assert_eq!(shape.unwrap(r#"{"answer": [1.0, 2]}"#.into()), "[1.0, 2]");
        assert_eq!(shape.unwrap("[1".into()), "[1");
        let plain = r#"{"type":"object"}"#;
        let (schema, shape) = of_answer(plain).expect("JSON");
        assert_eq!((schema.get(), shape), (plain, AnswerShape::Plain));
        assert_eq!(shape.unwrap("{\"answer\":1}".into()), "{\"answer\":1}");
    }

    #[track_caller]
    fn check_held(schema: &str, expect: Option<&str>) {
        let held = held(schema).expect("JSON").map(|schema| schema.to_string());
        assert_eq!(held.as_deref(), expect, "{schema}");
    }

    #[test]
    fn an_answer_format_is_closed_and_without_what_is_unknown() {
        check_held(
            r#"{"$schema":"x","type":"object","properties":{"minimum":{"type":"integer","minimum":1}},"required":["minimum"]}"#,
            Some(
                r#"{"additionalProperties":false,"properties":{"minimum":{"type":"integer"}},"required":["minimum"],"type":"object"}"#,
            ),
        );
        check_held(
            r##"{"type":"array","items":{"$ref":"#/$defs/A"},"$defs":{"A":{"enum":[1]},"B":{"$ref":"#/$defs/A"}}}"##,
            Some(
                r##"{"$defs":{"A":{"enum":[1]},"B":{"$ref":"#/$defs/A"}},"items":{"$ref":"#/$defs/A"},"type":"array"}"##,
            ),
        );
    }

    #[test]
    fn what_cannot_be_held_to_is_not_sent() {
        for schema in [
            "true",
            "{}",
            r#"{"type":"object"}"#,
            r#"{"type":"object","properties":{},"additionalProperties":{"type":"string"}}"#,
            r#"{"oneOf":[{"type":"string"}]}"#,
            r#"{"type":"object","properties":{"any":{}}}"#,
            r##"{"$ref":"#/$defs/A","$defs":{"A":{"anyOf":[{"$ref":"#/$defs/A"}]}}}"##,
            r##"{"type":"array","items":{"$ref":"#"}}"##,
            r#"{"$ref":"https://example.com/schema"}"#,
        ] {
            check_held(schema, None);
        }
        assert!(held("{").is_err());
    }
}
