//! From JSON Schema to schemas of the protocol.

use super::{Kind, Schema};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// How many schemas one schema may become, references included: two references in each of n definitions are 2^n.
const MOST_SCHEMAS: usize = 2000;
/// How deep they may be nested.
const DEEPEST: usize = 32;

/// The members of a JSON object, in their order.
#[derive(Default)]
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    /// No members where `raw` is no object.
    fn of(raw: &'a RawValue) -> Self {
        serde_json::from_str(raw.get()).unwrap_or_default()
    }

    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, raw)| *raw)
    }

    fn read<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    members.push(pair);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// Reads the schemas of one document.
pub(super) struct Reader<'a> {
    root: &'a RawValue,
    left: usize,
    /// References that are being followed.
    open: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(root: &'a RawValue) -> Self {
        Self { root, left: MOST_SCHEMAS, open: vec!["#".into()] }
    }

    pub(super) fn schema(&mut self, raw: &'a RawValue, depth: usize) -> Schema {
        let members = Members::of(raw);
        if self.left == 0 || depth > DEEPEST {
            return bare(&members);
        }
        self.left -= 1;
        let mut schema = match members.read::<String>("$ref") {
            Some(reference) => self.referred(reference, depth),
            None => self.own(&members, depth),
        };
        for part in members.read::<Vec<&RawValue>>("allOf").unwrap_or_default() {
            let part = self.schema(part, depth + 1);
            schema.absorb(part);
        }
        let variants = members.read::<Vec<&RawValue>>("anyOf").or_else(|| members.read("oneOf"));
        let variants = variants.unwrap_or_default().into_iter().map(|raw| self.schema(raw, depth + 1)).collect();
        schema.choose(variants);
        if let Some(description) = members.read::<String>("description").filter(|text| !text.is_empty()) {
            // It has the hints of its own members already, or it is the reference's.
            if !schema.description.starts_with(&description) {
                schema.describe(description);
            }
        }
        schema
    }

    fn referred(&mut self, reference: String, depth: usize) -> Schema {
        let Some(target) = find(self.root, &reference) else {
            return Schema::default();
        };
        if self.open.contains(&reference) {
            return bare(&Members::of(target));
        }
        self.open.push(reference);
        let schema = self.schema(target, depth + 1);
        self.open.pop();
        schema
    }

    /// What the schema says itself, references and combinations aside.
    fn own(&mut self, members: &Members<'a>, depth: usize) -> Schema {
        let (kinds, nullable) = kinds(members);
        let mut schema = match kinds.as_slice() {
            [] => Schema::default(),
            [kind] => self.of_kind(*kind, members, depth),
            several => {
                let variants = several.iter().map(|kind| self.of_kind(*kind, members, depth)).collect();
                let mut schema = Schema::default();
                schema.choose(variants);
                schema
            }
        };
        schema.nullable |= nullable;
        schema
    }

    fn of_kind(&mut self, kind: Kind, members: &Members<'a>, depth: usize) -> Schema {
        let mut schema = Schema { kind: Some(kind), ..Schema::default() };
        schema.description = members.read("description").unwrap_or_default();
        match kind {
            Kind::String => {
                schema.min_length = members.read("minLength");
                schema.max_length = members.read("maxLength");
                if let Some(pattern) = members.read::<String>("pattern") {
                    schema.hint(&format!("Pattern: {pattern}"));
                }
            }
            Kind::Number | Kind::Integer => {
                let number = |name: &str| members.get(name).filter(|raw| raw.get().parse::<f64>().is_ok());
                schema.minimum = number("minimum").map(ToOwned::to_owned);
                schema.maximum = number("maximum").map(ToOwned::to_owned);
            }
            Kind::Array => self.items(&mut schema, members, depth),
            Kind::Object => self.properties(&mut schema, members, depth),
            Kind::Boolean => {}
        }
        format(&mut schema, members);
        values(&mut schema, members);
        schema
    }

    fn items(&mut self, schema: &mut Schema, members: &Members<'a>, depth: usize) {
        schema.min_items = members.read("minItems");
        schema.max_items = members.read("maxItems");
        let tuple = members.read::<Vec<&RawValue>>("prefixItems").or_else(|| members.read("items"));
        let items = match (tuple, members.get("items")) {
            (Some(tuple), _) => {
                let variants = tuple.into_iter().map(|raw| self.schema(raw, depth + 1)).collect();
                let mut any = Schema::default();
                any.choose(variants);
                any
            }
            (None, Some(raw)) => self.schema(raw, depth + 1),
            (None, None) => Schema::default(),
        };
        schema.items = Some(Box::new(items.complete()));
    }

    fn properties(&mut self, schema: &mut Schema, members: &Members<'a>, depth: usize) {
        let properties = members.get("properties").map(Members::of).unwrap_or_default();
        for (name, raw) in properties.0 {
            // A property that may have no value is none.
            if raw.get() != "false" && !schema.properties.has(&name) {
                let property = self.schema(raw, depth + 1).complete();
                schema.properties.0.push((name, property));
            }
        }
        schema.required = members.read("required").unwrap_or_default();
        schema.put_in_order();
    }
}

/// The kind alone: where references go round in circles, or on and on.
fn bare(members: &Members<'_>) -> Schema {
    let (kinds, nullable) = kinds(members);
    let mut schema = Schema { kind: kinds.first().copied(), nullable, ..Schema::default() };
    if schema.kind == Some(Kind::Array) {
        schema.items = Some(Box::new(Schema::default().complete()));
    }
    schema
}

/// The kinds of value that are allowed, by the type or by what else is said, and whether null is.
fn kinds(members: &Members<'_>) -> (Vec<Kind>, bool) {
    let one = members.read::<String>("type").map(|word| vec![word]);
    let words = one.or_else(|| members.read("type")).unwrap_or_default();
    let mut kinds: Vec<Kind> = words.iter().filter_map(|word| kind(word)).collect();
    let mut nullable = words.iter().any(|word| word == "null") || members.read("nullable") == Some(true);
    if words.is_empty() {
        let values = listed(members);
        nullable |= values.iter().any(|raw| raw.get() == "null");
        kinds.extend(values.iter().filter_map(|raw| kind_of(raw)));
        if kinds.is_empty() {
            kinds.extend(guess(members));
        }
    }
    let mut distinct = Vec::new();
    for kind in kinds {
        if !distinct.contains(&kind) {
            distinct.push(kind);
        }
    }
    (distinct, nullable)
}

/// The kind of value that the keywords speak about.
fn guess(members: &Members<'_>) -> Option<Kind> {
    let keywords: [(Kind, &[&str]); 4] = [
        (Kind::Object, &["properties", "required", "additionalProperties", "patternProperties"]),
        (Kind::Array, &["items", "prefixItems", "minItems", "maxItems"]),
        (Kind::Number, &["minimum", "maximum", "multipleOf"]),
        (Kind::String, &["minLength", "maxLength", "pattern"]),
    ];
    let speaks = |names: &[&str]| names.iter().any(|name| members.get(name).is_some());
    keywords.into_iter().find(|(_, names)| speaks(names)).map(|(kind, _)| kind)
}

fn kind(word: &str) -> Option<Kind> {
    Some(match word.to_ascii_lowercase().as_str() {
        "string" => Kind::String,
        "number" => Kind::Number,
        "integer" => Kind::Integer,
        "boolean" => Kind::Boolean,
        "array" => Kind::Array,
        "object" => Kind::Object,
        _ => return None,
    })
}

fn kind_of(value: &RawValue) -> Option<Kind> {
    Some(match value.get().as_bytes().first()? {
        b'"' => Kind::String,
        b't' | b'f' => Kind::Boolean,
        b'[' => Kind::Array,
        b'{' => Kind::Object,
        b'n' => return None,
        _ if value.get().contains(['.', 'e', 'E']) => Kind::Number,
        _ => Kind::Integer,
    })
}

/// The values of `enum`, or the one of `const`.
fn listed<'a>(members: &Members<'a>) -> Vec<&'a RawValue> {
    members.get("const").map(|one| vec![one]).or_else(|| members.read("enum")).unwrap_or_default()
}

/// Only texts can be listed, and no empty one; other values are hinted at.
fn values(schema: &mut Schema, members: &Members<'_>) {
    let listed = listed(members);
    let kind = schema.kind;
    let own: Vec<&RawValue> = listed
        .into_iter()
        .filter(|raw| kind_of(raw) == kind || (kind == Some(Kind::Number) && kind_of(raw) == Some(Kind::Integer)))
        .collect();
    if own.is_empty() {
        return;
    }
    let texts: Option<Vec<String>> = own.iter().map(|raw| serde_json::from_str(raw.get()).ok()).collect();
    match texts.filter(|texts| texts.iter().all(|text| !text.is_empty())) {
        Some(texts) => schema.values = texts,
        None => {
            let all: Vec<&str> = own.iter().map(|raw| raw.get()).collect();
            schema.hint(&format!("One of: {}", all.join(", ")));
        }
    }
}

/// The formats that the protocol takes; others are hinted at.
fn format(schema: &mut Schema, members: &Members<'_>) {
    let Some(format) = members.read::<String>("format") else {
        return;
    };
    let known = match schema.kind {
        Some(Kind::String) => ["date-time", "date-time"],
        Some(Kind::Number) => ["float", "double"],
        Some(Kind::Integer) => ["int32", "int64"],
        Some(Kind::Boolean | Kind::Array | Kind::Object) | None => return,
    };
    match known.into_iter().find(|known| *known == format) {
        Some(known) => schema.format = Some(known),
        None => schema.hint(&format!("Format: {format}")),
    }
}

/// What a reference within the document points to.
fn find<'a>(root: &'a RawValue, reference: &str) -> Option<&'a RawValue> {
    let path = reference.strip_prefix('#')?;
    path.split('/').skip(1).try_fold(root, |at, step| {
        let step = step.replace("~1", "/").replace("~0", "~");
        let element =
            || serde_json::from_str::<Vec<&RawValue>>(at.get()).ok()?.get(step.parse::<usize>().ok()?).copied();
        Members::of(at).get(&step).or_else(element)
    })
}
