//! The request on the wire.

use super::history::{WireMessage, messages};
use super::{OpenAi, StructuredOutput};
use loopd_kernel::model::ToolOffer;
use loopd_runtime::{ModelError, ModelRequest};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Members of a request that belong to this adapter: extra ones may not replace them.
pub(crate) const OWN_MEMBERS: [&str; 13] = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "functions",
    "response_format",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "parallel_tool_calls",
    "n",
    "store",
];

#[derive(Serialize)]
struct WireRequest<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    /// Some servers refuse an empty list, some go mad.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<WireFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(flatten)]
    extra: &'a BTreeMap<String, serde_json::Value>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireFormat<'a> {
    JsonObject,
    JsonSchema { json_schema: WireSchema<'a> },
}

#[derive(Serialize)]
struct WireSchema<'a> {
    name: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
    schema: &'a RawValue,
}

/// The body of the request, as JSON.
///
/// # Errors
/// [`ModelError::Rejected`] when a schema in it is no JSON.
pub(super) fn encode(model: &OpenAi, request: &ModelRequest) -> Result<String, ModelError> {
    let limit = Some(request.max_output_tokens);
    let (max_tokens, max_completion_tokens) = if model.completion_limit { (None, limit) } else { (limit, None) };
    let tools = &request.constants.tools;
    let wire = WireRequest {
        model: &model.model,
        messages: messages(model, request),
        tools: tools.iter().map(tool).collect::<Result<_, _>>()?,
        parallel_tool_calls: model.parallel_tool_calls.filter(|_| !tools.is_empty()),
        response_format: format(model, request)?,
        max_tokens,
        max_completion_tokens,
        temperature: request.temperature_milli.map(|milli| f64::from(milli) / 1000.0),
        stream: model.stream,
        stream_options: (model.stream && model.stream_usage).then_some(StreamOptions { include_usage: true }),
        extra: &model.extra_body,
    };
    serde_json::to_string(&wire).map_err(|error| ModelError::Rejected(error.to_string()))
}

fn tool(offer: &ToolOffer) -> Result<WireTool<'_>, ModelError> {
    let text = if offer.parameters.trim().is_empty() {
        r#"{"type":"object","properties":{}}"#
    } else {
        offer.parameters.as_str()
    };
    let parameters = serde_json::from_str(text)
        .map_err(|error| ModelError::Rejected(format!("the schema of tool {:?} is no JSON: {error}", offer.name)))?;
    let function = WireFunction { name: &offer.name, description: &offer.description, parameters };
    Ok(WireTool { r#type: "function", function })
}

fn format<'a>(model: &OpenAi, request: &'a ModelRequest) -> Result<Option<WireFormat<'a>>, ModelError> {
    let Some(schema) = &request.constants.output_schema else {
        return Ok(None);
    };
    if !request.constants.tools.is_empty() && !model.schema_with_tools {
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
    Ok(Some(WireFormat::JsonSchema { json_schema: WireSchema { name: "answer", strict, schema } }))
}
