//! JSON Schema, down to what this protocol takes of it.
//!
//! An unknown keyword makes the server refuse the whole request, so only what it documents goes out, and what it
//! cannot express becomes a hint in the description, or goes. What comes out allows more than the original rather than
//! less; whoever receives the arguments or the answer checks them against the original.

mod read;
mod union;

use read::Reader;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Kind {
    String,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
}

/// A schema in the form of the protocol.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Schema {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    values: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    nullable: bool,
    #[serde(skip_serializing_if = "Properties::is_empty")]
    properties: Properties,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    required: Vec<String>,
    /// What the author wrote first, the model should write first; the protocol itself knows no order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    property_ordering: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Box<Self>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maximum: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    any_of: Vec<Self>,
}

/// Properties in their order.
#[derive(Debug, Clone, Default)]
struct Properties(Vec<(String, Schema)>);

impl Properties {
    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }
}

impl Serialize for Properties {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, schema)| (name, schema)))
    }
}

/// The parameters of a tool; `None` where there are none to speak of.
///
/// # Errors
/// Why the protocol cannot express them.
pub(super) fn parameters(text: &str) -> Result<Option<Schema>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let root: &RawValue = serde_json::from_str(text).map_err(|error| format!("its schema is no JSON: {error}"))?;
    let mut schema = Reader::new(root).schema(root, 0);
    schema.unite_objects();
    match schema.kind {
        Some(Kind::Object) | None if schema.properties.is_empty() && schema.any_of.is_empty() => Ok(None),
        Some(Kind::Object) => Ok(Some(Schema { nullable: false, ..schema })),
        _ => Err("its arguments are no object".into()),
    }
}

/// The form of an answer; `None` where the schema says nothing that the protocol could enforce.
///
/// # Errors
/// It is no JSON.
pub(super) fn answer(text: &str) -> Result<Option<Schema>, serde_json::Error> {
    let root: &RawValue = serde_json::from_str(text)?;
    let schema = Reader::new(root).schema(root, 0);
    // An object of which nothing is known is refused here, or comes back empty.
    let says_something = schema.kind.is_some() || !schema.any_of.is_empty();
    Ok(Some(schema).filter(|schema| says_something && !schema.has_bare_object()))
}

impl Schema {
    fn has_bare_object(&self) -> bool {
        let bare = self.kind == Some(Kind::Object) && self.properties.is_empty();
        let inner = self.properties.0.iter().map(|(_, schema)| schema).chain(self.items.as_deref()).chain(&self.any_of);
        bare || inner.into_iter().any(Self::has_bare_object)
    }

    /// With a kind, as the protocol demands it of every inner schema. Anything at all is written as text.
    fn complete(mut self) -> Self {
        if self.kind.is_none() && self.any_of.is_empty() {
            self.kind = Some(Kind::String);
        }
        self
    }

    fn hint(&mut self, hint: &str) {
        if !self.description.is_empty() {
            self.description.push(' ');
        }
        self.description.push_str(hint);
    }
}
