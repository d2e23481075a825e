//! Placeholders in the texts of a script.

use crate::scene::Scene;
use serde_json::Value;
use std::fmt;

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Slot(Slot),
}

/// What a placeholder stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Slot {
    Input,
    Line,
    First,
    Last,
    Turn,
    Step,
    /// The last result of a tool, or the part of it that a JSON pointer names.
    Tool {
        name: String,
        pointer: Option<String>,
    },
}

/// A placeholder that cannot be filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError(String);

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = "{{input}}, {{line}}, {{first}}, {{last}}, {{turn}}, {{step}}, {{tool.NAME}} and {{tool.NAME/json/pointer}}";
        write!(f, "the placeholder {:?} is unknown; there are {names}", self.0)
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, behind) = after.split_once("}}").ok_or_else(|| TemplateError(format!("{{{{{after}")))?;
            let slot = slot(name.trim()).ok_or_else(|| TemplateError(format!("{{{{{name}}}}}")))?;
            pieces.extend([Piece::Text(before.to_owned()), Piece::Slot(slot)]);
            rest = behind;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        Ok(Self(pieces))
    }

    /// The text with everything filled in. What is filled in is not looked at again.
    pub(crate) fn text(&self, scene: &Scene<'_>) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Slot(slot) => slot.text(scene),
        };
        self.0.iter().map(piece).collect()
    }

    /// A single placeholder with a pointer keeps the type of the value that it names.
    fn value(&self, scene: &Scene<'_>) -> Value {
        if let [Piece::Slot(Slot::Tool { name, pointer: Some(pointer) })] = self.0.as_slice()
            && let Some(value) = pointed(scene, name, pointer)
        {
            return value;
        }
        Value::String(self.text(scene))
    }
}

fn slot(name: &str) -> Option<Slot> {
    Some(match name {
        "input" => Slot::Input,
        "line" => Slot::Line,
        "first" => Slot::First,
        "last" => Slot::Last,
        "turn" => Slot::Turn,
        "step" => Slot::Step,
        _ => {
            let name = name.strip_prefix("tool.").filter(|name| !name.is_empty() && !name.starts_with('/'))?;
            let cut = name.find('/');
            let (name, pointer) = name.split_at(cut.unwrap_or(name.len()));
            Slot::Tool { name: name.to_owned(), pointer: cut.map(|_| pointer.to_owned()) }
        }
    })
}

impl Slot {
    fn text(&self, scene: &Scene<'_>) -> String {
        match self {
            Self::Input => scene.input.to_owned(),
            Self::Line => scene.line().to_owned(),
            Self::First => scene.first.to_owned(),
            Self::Last => scene.last.to_owned(),
            Self::Turn => scene.turn.to_string(),
            Self::Step => scene.step.to_string(),
            Self::Tool { name, pointer: None } => {
                scene.results.get(name.as_str()).and_then(|all| all.last()).map_or_else(
                    || format!("(no result of {name})"),
                    |text| match serde_json::from_str(text) {
                        Ok(Value::String(inner)) => inner,
                        _ => (*text).to_owned(),
                    },
                )
            }
            Self::Tool { name, pointer: Some(pointer) } => match pointed(scene, name, pointer) {
                Some(Value::String(text)) => text,
                Some(value) => value.to_string(),
                None => format!("(no {pointer} in the result of {name})"),
            },
        }
    }
}

fn pointed(scene: &Scene<'_>, name: &str, pointer: &str) -> Option<Value> {
    let text = scene.results.get(name)?.last()?;
    serde_json::from_str::<Value>(text).ok()?.pointer(pointer).cloned()
}

/// `value` with every text in it filled in. A placeholder that does not parse stays as it is; scripts are checked
/// before they are played.
pub(crate) fn fill(value: &Value, scene: &Scene<'_>) -> Value {
    match value {
        Value::String(text) => Template::parse(text).map_or_else(|_| value.clone(), |text| text.value(scene)),
        Value::Array(items) => items.iter().map(|item| fill(item, scene)).collect(),
        Value::Object(members) => members.iter().map(|(name, member)| (name.clone(), fill(member, scene))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
