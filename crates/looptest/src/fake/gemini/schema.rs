//! Schemas: this protocol has a form of its own, and refuses a request for a single word that it does not know.

use super::read::{cannot_find, wrong};
use super::{member, stranger};
use crate::fake::checks::{list, members, text};
use crate::fake::refusal::Refusal;
use serde_json::Value;

const KNOWN: [&str; 23] = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
    "propertyOrdering",
    "default",
    "items",
    "minimum",
    "maximum",
    "additionalProperties",
];

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

/// Complains about the first thing that is wrong with a schema.
pub(super) fn check(schema: &Value, place: &str) -> Result<(), Refusal> {
    // Google's later servers know the last of them; clients that count on it fail at the others.
    let known = KNOWN.split_last().map_or(&KNOWN[..], |(_, older)| older);
    if let Some(name) = stranger(schema, known) {
        return Err(cannot_find(name, place));
    }
    if schema.get("type").is_some_and(Value::is_array) {
        return Err(Refusal::invalid(format!(
            "Invalid JSON payload received. Proto field is not repeating, cannot start list. at '{place}.type'"
        )));
    }
    let kind = text(schema, "type").to_lowercase();
    if !kind.is_empty() && !TYPES.contains(&kind.as_str()) {
        return Err(Refusal::invalid(format!(
            "Invalid value at '{place}.type' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), \"{kind}\""
        )));
    }
    let properties = schema.get("properties");
    if kind == "object" && properties.is_some_and(|own| members(own).next().is_none()) {
        return Err(wrong(&format!("{place}.properties"), "should be non-empty for OBJECT type"));
    }
    if kind == "array" && schema.get("items").is_none() {
        return Err(wrong(&format!("{place}.items"), "missing field."));
    }
    if schema.get("enum").is_some() {
        if !matches!(kind.as_str(), "string" | "") {
            return Err(wrong(&format!("{place}.enum"), "only allowed for STRING type"));
        }
        if list(schema, "enum").iter().any(|value| !value.is_string()) {
            return Err(Refusal::invalid(format!("Invalid value at '{place}.enum[0]' (TYPE_STRING)")));
        }
        if list(schema, "enum").iter().any(|value| value == "") {
            return Err(wrong(&format!("{place}.enum[0]"), "cannot be empty"));
        }
    }
    for (at, name) in list(schema, "required").iter().enumerate() {
        let is_there = name.as_str().is_some_and(|name| properties.is_some_and(|own| own.get(name).is_some()));
        if !is_there {
            return Err(wrong(&format!("{place}.required[{at}]"), "property is not defined"));
        }
    }
    for (name, inner) in properties.into_iter().flat_map(members) {
        check(inner, &format!("{place}.properties[{name}]"))?;
    }
    if let Some(items) = schema.get("items") {
        check(items, &format!("{place}.items"))?;
    }
    let alternatives = member(schema, "anyOf").and_then(Value::as_array);
    for (at, inner) in alternatives.into_iter().flatten().enumerate() {
        check(inner, &format!("{place}.any_of[{at}]"))?;
    }
    Ok(())
}
