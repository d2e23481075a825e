//! The request on the wire.

use super::Responses;
use super::history::{WireItem, items};
use crate::names::wire_name;
use crate::openai::StructuredOutput;
use loopd_kernel::model::{ModelConstants, ToolOffer};
use loopd_runtime::{ModelError, ModelRequest};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A smaller limit is refused. What comes beyond the asked one is recorded as overshoot.
const LEAST_OUTPUT: u64 = 16;

/// Members of a request that belong to this adapter: extra ones may not replace them. Those that would make the server
/// remember something, or work on behind the answer, belong to nobody.
pub(super) const OWN_MEMBERS: [&str; 14] = [
    "model",
    "instructions",
    "input",
    "stream",
    "tools",
    "max_output_tokens",
    "temperature",
    "parallel_tool_calls",
    "store",
    "include",
    "background",
    "conversation",
    "previous_response_id",
    "prompt",
];

#[derive(Serialize)]
struct WireRequest<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    input: Vec<WireItem<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<WireText<'a>>,
    max_output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    #[serde(flatten)]
    extra: BTreeMap<&'a str, &'a Value>,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    name: Cow<'a, str>,
    description: &'a str,
    parameters: &'a RawValue,
    /// Always said: where it is not, the server makes a strict schema of its own out of the given one.
    strict: bool,
}

#[derive(Serialize)]
struct WireText<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<WireFormat<'a>>,
    #[serde(flatten)]
    extra: BTreeMap<&'a str, &'a Value>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireFormat<'a> {
    JsonObject,
    JsonSchema { name: &'static str, strict: bool, schema: &'a RawValue },
}

/// The body of the request, as JSON.
///
/// # Errors
/// [`ModelError::Rejected`] when a schema in it is no JSON.
pub(super) fn encode(model: &Responses, request: &ModelRequest) -> Result<String, ModelError> {
    let constants = &request.constants;
    let include: &[&str] = if model.encrypted_reasoning { &["reasoning.encrypted_content"] } else { &[] };
    let extra = model.extra_body.iter().map(|(name, value)| (name.as_str(), value));
    let wire = WireRequest {
        model: &model.model,
        instructions: constants.system.as_deref().filter(|text| !text.is_empty()),
        input: items(model, request),
        tools: constants.tools.iter().map(tool).collect::<Result<_, _>>()?,
        parallel_tool_calls: model.parallel_tool_calls.filter(|_| !constants.tools.is_empty()),
        text: text(model, constants)?,
        max_output_tokens: request.max_output_tokens.max(LEAST_OUTPUT),
        temperature: request.temperature_milli.map(|milli| f64::from(milli) / 1000.0),
        stream: model.stream,
        store: false,
        include,
        extra: extra.filter(|(name, _)| *name != "text").collect(),
    };
    serde_json::to_string(&wire).map_err(|error| ModelError::Rejected(error.to_string()))
}

fn tool(offer: &ToolOffer) -> Result<WireTool<'_>, ModelError> {
    let text = match offer.parameters.trim() {
        "" => r#"{"type":"object","properties":{}}"#,
        text => text,
    };
    let parameters = serde_json::from_str(text)
        .map_err(|error| ModelError::Rejected(format!("the schema of tool {:?} is no JSON: {error}", offer.name)))?;
    let name = wire_name(&offer.name);
    Ok(WireTool { r#type: "function", name, description: &offer.description, parameters, strict: false })
}

/// What is said about the text of the answer: its schema, and what the configuration adds.
fn text<'a>(model: &'a Responses, constants: &'a ModelConstants) -> Result<Option<WireText<'a>>, ModelError> {
    let format = format(model, constants)?;
    let extra = model.extra_body.get("text").and_then(Value::as_object).into_iter().flatten();
    let extra: BTreeMap<&str, &Value> = extra.map(|(name, value)| (name.as_str(), value)).collect();
    let says_something = format.is_some() || !extra.is_empty();
    Ok(says_something.then_some(WireText { format, extra }))
}

fn format<'a>(model: &Responses, constants: &'a ModelConstants) -> Result<Option<WireFormat<'a>>, ModelError> {
    let Some(schema) = &constants.output_schema else {
        return Ok(None);
    };
    if !constants.tools.is_empty() && !model.schema_with_tools {
        return Ok(None);
    }
    let strict = match model.structured_output {
        StructuredOutput::Off => return Ok(None),
        StructuredOutput::JsonObject => return Ok(Some(WireFormat::JsonObject)),
        StructuredOutput::JsonSchema => false,
        StructuredOutput::Strict => true,
    };
    let schema = serde_json::from_str(schema)
        .map_err(|error| ModelError::Rejected(format!("the schema of the answer is no JSON: {error}")))?;
    Ok(Some(WireFormat::JsonSchema { name: "answer", strict, schema }))
}
