//! Reading a request's JSON, and complaining about it: what the protocols have in common.

use super::refusal::Refusal;
use loopd_kernel::model::{Message, ModelConstants, Part, ToolOffer};
use loopd_runtime::ModelRequest;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A request that was taken.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) request: ModelRequest,
    pub(super) stream: bool,
    /// Chat completions: a stream ends with its usage.
    pub(super) stream_usage: bool,
    /// Responses: reasoning comes encrypted, too.
    pub(super) encrypted: bool,
    /// Responses: all items up to here, where the answer is to be stored with them.
    pub(super) items: Option<Vec<Value>>,
}

/// What a request says, while it is read.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) model: String,
    pub(super) constants: ModelConstants,
    pub(super) messages: Vec<Message>,
    pub(super) max_output_tokens: Option<u64>,
    pub(super) temperature: Option<f64>,
    pub(super) stream: bool,
}

impl Draft {
    pub(super) fn add_system(&mut self, text: &str) {
        let system = self.constants.system.get_or_insert_default();
        if !system.is_empty() {
            system.push('\n');
        }
        system.push_str(text);
    }

    pub(super) fn add_tool(&mut self, name: &str, description: &str, parameters: &Value) {
        let parameters = if parameters.is_null() { String::new() } else { parameters.to_string() };
        self.constants.tools.push(ToolOffer { name: name.into(), description: description.into(), parameters });
    }

    /// Adds to what the model said last, or begins it.
    pub(super) fn add_said(&mut self, parts: impl IntoIterator<Item = Part>) {
        if let Some(Message::Assistant { parts: said }) = self.messages.last_mut() {
            said.extend(parts);
        } else {
            self.messages.push(Message::Assistant { parts: parts.into_iter().collect() });
        }
    }

    pub(super) fn done(self) -> Taken {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be from 0 to 2")]
        let milli = |temperature: f64| (temperature * 1000.0).round() as u32;
        Taken {
            request: ModelRequest {
                model: self.model,
                constants: Arc::new(self.constants),
                messages: self.messages.into_iter().map(Arc::new).collect(),
                max_output_tokens: self.max_output_tokens.unwrap_or(u64::MAX),
                temperature_milli: self.temperature.map(milli),
            },
            stream: self.stream,
            stream_usage: false,
            encrypted: false,
            items: None,
        }
    }
}

/// Reasoning of a played model, as it comes back.
pub(super) fn reasoning(text: &str) -> Part {
    let opaque = serde_json::json!({ loopd_script::REASONING_TEXT: text }).to_string();
    Part::Reasoning { opaque, origin: String::new() }
}

/// The member `name`; null counts as absent.
pub(super) fn get<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

/// The member `name` as text; empty when it is none.
pub(super) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The member `name` as a list; empty when it is none.
pub(super) fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The members of an object; none when it is none.
pub(super) fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

/// The first member that is not known.
pub(super) fn unknown<'a>(object: &'a Value, known: &[&str]) -> Option<&'a str> {
    members(object).map(|(name, _)| name.as_str()).find(|name| !known.contains(name))
}

/// Whether a name has these lengths and nothing but letters, digits and `more`.
pub(super) fn is_name(name: &str, longest: usize, more: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
    (1..=longest).contains(&name.len()) && name.chars().all(fits)
}

/// The places of objects in a schema that do not say `additionalProperties: false`, for providers that hold an answer to
/// its schema; the first, as a list of steps.
pub(super) fn open_object(schema: &Value, path: &mut Vec<String>) -> bool {
    let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
    if is_object && schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return true;
    }
    for place in ["properties", "$defs", "definitions"] {
        for (name, inner) in schema.get(place).into_iter().flat_map(members) {
            path.extend([place.to_owned(), name.clone()]);
            if open_object(inner, path) {
                return true;
            }
            path.truncate(path.len() - 2);
        }
    }
    if let Some(items) = schema.get("items") {
        path.push("items".to_owned());
        if open_object(items, path) {
            return true;
        }
        path.pop();
    }
    for (at, inner) in list(schema, "anyOf").iter().enumerate() {
        path.extend(["anyOf".to_owned(), at.to_string()]);
        if open_object(inner, path) {
            return true;
        }
        path.truncate(path.len() - 2);
    }
    false
}

/// The first object of a schema that does not require all of its properties: its path, and the property.
pub(super) fn optional_property(schema: &Value) -> Option<String> {
    let required = list(schema, "required");
    let missing = |name: &str| !required.iter().any(|known| known.as_str() == Some(name));
    let properties = || schema.get("properties").into_iter().flat_map(members);
    let own = properties().find(|(name, _)| missing(name)).map(|(name, _)| name.clone());
    let items = || schema.get("items").and_then(optional_property);
    let definitions =
        || schema.get("$defs").into_iter().flat_map(members).find_map(|(_, inner)| optional_property(inner));
    let alternatives = || list(schema, "anyOf").iter().find_map(optional_property);
    own.or_else(|| properties().find_map(|(_, inner)| optional_property(inner)))
        .or_else(items)
        .or_else(definitions)
        .or_else(alternatives)
}

/// A temperature within OpenAI's and Google's range.
pub(super) fn temperature(body: &Value, highest: f64) -> Result<Option<f64>, f64> {
    match get(body, "temperature").and_then(Value::as_f64) {
        Some(value) if !(0.0..=highest).contains(&value) => Err(value),
        value => Ok(value),
    }
}

/// OpenAI: a required member is missing.
pub(super) fn missing(name: impl Into<String>) -> Refusal {
    let name = name.into();
    Refusal::invalid(format!("Missing required parameter: '{name}'.")).param(name).code("missing_required_parameter")
}

/// OpenAI: a value is none of those that are known.
pub(super) fn not_one_of(param: impl Into<String>, value: &str, known: &[&str]) -> Refusal {
    let known: Vec<String> = known.iter().map(|word| format!("'{word}'")).collect();
    let known = match known.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{}, and {last}", rest.join(", ")),
        _ => known.join(""),
    };
    Refusal::invalid(format!("Invalid value: '{value}'. Supported values are: {known}."))
        .param(param)
        .code("invalid_value")
}

/// OpenAI: models that reason take less.
pub(super) fn is_reasoning_model(model: &str) -> bool {
    ["o1", "o3", "o4", "gpt-5"].iter().any(|family| model.starts_with(family))
}

/// OpenAI: the name of a tool.
pub(super) fn openai_name(name: &str, param: String) -> Result<(), Refusal> {
    if name.is_empty() {
        return Err(missing(param));
    }
    if name.len() > 64 {
        let message = format!(
            "Invalid '{param}': string too long. Expected a string with maximum length 64, but got a string with \
             length {} instead.",
            name.len()
        );
        return Err(Refusal::invalid(message).param(param).code("string_above_max_length"));
    }
    if !is_name(name, 64, "_-") {
        let message = format!(
            "Invalid '{param}': string does not match pattern. Expected a string that matches the pattern \
             '^[a-zA-Z0-9_-]+$'."
        );
        return Err(Refusal::invalid(message).param(param).code("invalid_value"));
    }
    Ok(())
}

/// OpenAI: a schema that the answer, or the arguments, are held to.
pub(super) fn openai_strict(schema: &Value, param: &str, name: &str) -> Result<(), Refusal> {
    let wrong = |problem: String| {
        let kind = if param.starts_with("tools") { "function" } else { "response_format" };
        Refusal::invalid(format!("Invalid schema for {kind} '{name}': {problem}"))
            .param(param.to_owned())
            .code(if kind == "function" { "invalid_function_parameters" } else { "invalid_json_schema" })
    };
    let mut path = Vec::new();
    if open_object(schema, &mut path) {
        let path: Vec<String> = path.iter().map(|step| format!("'{step}'")).collect();
        let comma = if path.len() == 1 { "," } else { "" };
        return Err(wrong(format!(
            "In context=({}{comma}), 'additionalProperties' is required to be supplied and to be false.",
            path.join(", ")
        )));
    }
    match optional_property(schema) {
        Some(property) => Err(wrong(format!(
            "In context=(), 'required' is required to be supplied and to be an array including every key in \
             properties. Missing '{property}'."
        ))),
        None => Ok(()),
    }
}

/// OpenAI: a temperature, where the model takes one.
pub(super) fn openai_temperature(body: &Value, model: &str) -> Result<Option<f64>, Refusal> {
    let temperature = temperature(body, 2.0).map_err(|value| {
        let bound = if value < 0.0 { ("minimum", ">= 0") } else { ("maximum", "<= 2") };
        Refusal::invalid(format!(
            "Invalid 'temperature': decimal {} {} value. Expected a value {}, but got {value} instead.",
            if value < 0.0 { "below" } else { "above" },
            bound.0,
            bound.1
        ))
        .param("temperature")
        .code(if value < 0.0 { "decimal_below_min_value" } else { "decimal_above_max_value" })
    })?;
    #[expect(clippy::float_cmp, reason = "exactly the default is taken")]
    let is_default = temperature.is_none_or(|value| value == 1.0);
    if is_reasoning_model(model) && !is_default {
        let message = "Unsupported value: 'temperature' does not support this value with this model. Only the default \
                       (1) value is supported.";
        return Err(Refusal::invalid(message).param("temperature").code("unsupported_value"));
    }
    Ok(temperature)
}
