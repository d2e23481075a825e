//! JSON Schemas: compiled once, checked without network and without back-tracking.

use crate::text::bounded;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use std::fmt;

/// Problems that one report names; a model mends them one by one anyway.
const MAX_PROBLEMS: usize = 8;

/// Characters of a value of the schema that a problem shows.
const SHOWN: usize = 200;

/// A compiled JSON Schema.
pub(crate) struct Schema(Validator);

/// The text is no JSON Schema.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this is not a usable JSON Schema: {0}")]
pub struct NotASchema(String);

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

impl Schema {
    /// Compiles a schema. A reference to another document is refused: it would be a way into the network.
    pub(crate) fn compile(text: &str) -> Result<Self, NotASchema> {
        let schema: Value = serde_json::from_str(text).map_err(|error| NotASchema(error.to_string()))?;
        if !schema.is_object() && !schema.is_boolean() {
            return Err(NotASchema("expected an object, or true or false".into()));
        }
        let options = jsonschema::options().offline().with_pattern_options(PatternOptions::regex());
        options.build(&schema).map(Self).map_err(|error| {
            let at = error.instance_path().as_str();
            let at = if at.is_empty() { String::new() } else { format!(" (at {})", bounded(at, SHOWN)) };
            NotASchema(format!("{}{at}", bounded(&error.to_string(), SHOWN)))
        })
    }

    /// What does not fit, in an order and in words that do not depend on the library's version: the report
    /// becomes part of a Journal, and a replay has to find the same one.
    pub(crate) fn check(&self, value: &Value) -> Result<(), Vec<String>> {
        let mut problems: Vec<String> = self
            .0
            .iter_errors(value)
            .map(|error| {
                let at = error.instance_path().as_str();
                let at = if at.is_empty() { "the value".into() } else { bounded(at, SHOWN) };
                format!("{at}: {}", expected(error.kind()))
            })
            .collect();
        if problems.is_empty() {
            return Ok(());
        }
        problems.sort();
        problems.dedup();
        if problems.len() > MAX_PROBLEMS {
            let more = problems.len() - MAX_PROBLEMS;
            problems.truncate(MAX_PROBLEMS);
            problems.push(format!("and {more} more"));
        }
        Err(problems)
    }
}

fn expected(kind: &Kind) -> String {
    let json = |value: &Value| bounded(&value.to_string(), SHOWN);
    let names = |names: &[String]| {
        let mut names: Vec<String> = names.iter().map(|name| format!("`{}`", bounded(name, 64))).collect();
        names.sort();
        names.join(", ")
    };
    match kind {
        Kind::Required { property } => format!("the property {} is missing", json(property)),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("unknown: {}", names(unexpected))
        }
        Kind::Type { kind: TypeKind::Single(one) } => format!("expected type {one}"),
        Kind::Type { kind: TypeKind::Multiple(set) } => {
            let names: Vec<String> = set.iter().map(|one| one.to_string()).collect();
            format!("expected type {}", names.join(" or "))
        }
        Kind::Enum { options } => format!("expected one of {}", json(options)),
        Kind::Constant { expected_value } => format!("expected {}", json(expected_value)),
        Kind::Minimum { limit } => format!("expected at least {}", json(limit)),
        Kind::Maximum { limit } => format!("expected at most {}", json(limit)),
        Kind::ExclusiveMinimum { limit } => format!("expected more than {}", json(limit)),
        Kind::ExclusiveMaximum { limit } => format!("expected less than {}", json(limit)),
        Kind::MinLength { limit } => format!("expected at least {limit} characters"),
        Kind::MaxLength { limit } => format!("expected at most {limit} characters"),
        Kind::MinItems { limit } => format!("expected at least {limit} items"),
        Kind::MaxItems { limit } => format!("expected at most {limit} items"),
        Kind::MinProperties { limit } => format!("expected at least {limit} properties"),
        Kind::MaxProperties { limit } => format!("expected at most {limit} properties"),
        Kind::UniqueItems => "expected items that differ from each other".into(),
        Kind::Pattern { pattern } => format!("expected text that matches {}", bounded(pattern, SHOWN)),
        Kind::Format { format } => format!("expected the format {}", bounded(format, SHOWN)),
        Kind::AdditionalItems { .. }
        | Kind::AnyOf { .. }
        | Kind::BacktrackLimitExceeded { .. }
        | Kind::RegexEngineFailure { .. }
        | Kind::Contains
        | Kind::ContentEncoding { .. }
        | Kind::ContentMediaType { .. }
        | Kind::Custom { .. }
        | Kind::FalseSchema
        | Kind::FromUtf8 { .. }
        | Kind::MultipleOf { .. }
        | Kind::Not { .. }
        | Kind::OneOfMultipleValid { .. }
        | Kind::OneOfNotValid { .. }
        | Kind::PropertyNames { .. }
        | Kind::UnevaluatedItems { .. }
        | Kind::Referencing(_) => format!("it does not satisfy `{}`", kind.keyword()),
    }
}
