//! The request on the wire.

use super::blocks::ANSWER;
use super::history::{CacheMark, Turns, WireMessage, turns};
use super::schema::{self, AnswerShape};
use super::{AnswerFormat, Anthropic};
use crate::names::wire_name;
use loopd_kernel::model::{ModelConstants, ToolOffer};
use loopd_runtime::{ModelError, ModelRequest};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Members of a request that belong to this adapter: extra ones may not replace them.
pub(super) const OWN_MEMBERS: [&str; 8] =
    ["model", "messages", "system", "stream", "tools", "tool_choice", "max_tokens", "temperature"];

#[derive(Serialize)]
struct WireRequest<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<SystemBlock<'a>>,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    stream: bool,
    #[serde(flatten)]
    extra: BTreeMap<String, Value>,
}

#[derive(Serialize)]
struct SystemBlock<'a> {
    r#type: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheMark>,
}

#[derive(Serialize)]
struct WireTool<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: Cow<'a, str>,
    input_schema: Cow<'a, RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheMark>,
}

/// The tool by which an answer comes.
pub(super) struct AnswerTool<'a> {
    schema: Cow<'a, RawValue>,
    pub(super) shape: AnswerShape,
}

/// The tool by which the answer must come, where that is how its schema goes.
///
/// # Errors
/// [`ModelError::Rejected`] when the schema is no JSON.
pub(super) fn answer_tool<'a>(
    model: &Anthropic,
    constants: &'a ModelConstants,
) -> Result<Option<AnswerTool<'a>>, ModelError> {
    match &constants.output_schema {
        Some(text) if model.answer_format == AnswerFormat::Tool && constants.tools.is_empty() => {
            let (schema, shape) = schema::of_answer(text).map_err(|error| no_answer_schema(&error))?;
            Ok(Some(AnswerTool { schema, shape }))
        }
        Some(_) | None => Ok(None),
    }
}

fn no_answer_schema(error: &serde_json::Error) -> ModelError {
    ModelError::Rejected(format!("the schema of the answer is no JSON: {error}"))
}

/// The body of the request, as JSON.
///
/// # Errors
/// [`ModelError::Rejected`] when a schema in it is no JSON.
pub(super) fn encode(model: &Anthropic, request: &ModelRequest) -> Result<String, ModelError> {
    let constants = &request.constants;
    let mark = model.prompt_cache.then_some(CacheMark::EPHEMERAL);
    let system = constants.system.as_deref().filter(|text| !text.trim().is_empty());
    let turns = turns(model, request);
    let (mut tools, tool_choice) = tools(model, constants, &turns)?;
    if let Some(last) = tools.last_mut() {
        last.cache_control = mark;
    }
    let temperature = request.temperature_milli.filter(|_| model.temperature);
    let wire = WireRequest {
        model: &model.model,
        max_tokens: request.max_output_tokens,
        system: system.map(|text| SystemBlock { r#type: "text", text, cache_control: mark }).into_iter().collect(),
        messages: turns.messages,
        tools,
        tool_choice,
        temperature: temperature.map(|milli| f64::from(milli) / 1000.0),
        stream: model.stream,
        extra: extra(model, constants)?,
    };
    serde_json::to_string(&wire).map_err(|error| ModelError::Rejected(error.to_string()))
}

/// The tools, and what is said about their use where the protocol's own choice will not do.
fn tools<'a>(
    model: &Anthropic,
    constants: &'a ModelConstants,
    turns: &Turns<'a>,
) -> Result<(Vec<WireTool<'a>>, Option<Value>), ModelError> {
    if !constants.tools.is_empty() {
        let tools = constants.tools.iter().map(tool).collect::<Result<_, _>>()?;
        let parallel = model.parallel_tool_use;
        return Ok((tools, parallel.map(|parallel| json!({"type": "auto", "disable_parallel_tool_use": !parallel}))));
    }
    if let Some(answer) = answer_tool(model, constants)? {
        let description = "Gives the final answer.".into();
        let tool = WireTool { name: ANSWER.into(), description, input_schema: answer.schema, cache_control: None };
        return Ok((vec![tool], Some(json!({"type": "tool", "name": ANSWER}))));
    }
    // Tools that were used must be declared, even where they cannot be used any more.
    let gone = turns.used.iter().map(|name| {
        let (input_schema, _) = schema::of_tool("").map_err(|error| ModelError::Rejected(error.to_string()))?;
        Ok(WireTool { name: name.clone(), description: "".into(), input_schema, cache_control: None })
    });
    let gone: Vec<WireTool<'a>> = gone.collect::<Result<_, ModelError>>()?;
    let choice = (!gone.is_empty()).then(|| json!({"type": "none"}));
    Ok((gone, choice))
}

fn tool(offer: &ToolOffer) -> Result<WireTool<'_>, ModelError> {
    let (input_schema, left) = schema::of_tool(&offer.parameters)
        .map_err(|error| ModelError::Rejected(format!("the schema of tool {:?} is no JSON: {error}", offer.name)))?;
    let description = match left {
        None => Cow::Borrowed(offer.description.as_str()),
        Some(left) => format!("{}\n\nThe arguments must also match this JSON Schema: {left}", offer.description).into(),
    };
    Ok(WireTool { name: wire_name(&offer.name), description, input_schema, cache_control: None })
}

/// Members that the configuration adds, with the answer's format among them.
fn extra(model: &Anthropic, constants: &ModelConstants) -> Result<BTreeMap<String, Value>, ModelError> {
    let mut extra = model.extra_body.clone();
    let text = constants.output_schema.as_deref().filter(|_| model.answer_format == AnswerFormat::Format);
    let Some(text) = text else {
        return Ok(extra);
    };
    if let Some(schema) = schema::held(text).map_err(|error| no_answer_schema(&error))? {
        let config = extra.entry("output_config".into()).or_insert_with(|| json!({}));
        if let Some(config) = config.as_object_mut() {
            config.insert("format".into(), json!({"type": "json_schema", "schema": schema}));
        }
    }
    Ok(extra)
}
