//! The request on the wire.

use super::Gemini;
use super::history::{Content, contents};
use super::names::on_wire;
use super::schema::{self, Schema};
use loopd_kernel::model::ToolOffer;
use loopd_runtime::{ModelError, ModelRequest};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Members of a request that belong to this adapter: extra ones may not replace them.
pub(super) const OWN_MEMBERS: [&str; 6] =
    ["contents", "systemInstruction", "system_instruction", "tools", "generationConfig", "generation_config"];
/// The same of its `generationConfig`.
pub(super) const OWN_SETTINGS: [&str; 5] =
    ["maxOutputTokens", "temperature", "candidateCount", "responseMimeType", "responseSchema"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    contents: Vec<Content<'a>>,
    /// An empty list, and a list of nothing, is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    generation_config: Generation<'a>,
    #[serde(flatten)]
    extra: &'a BTreeMap<String, Value>,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: [InstructionText<'a>; 1],
}

#[derive(Serialize)]
struct InstructionText<'a> {
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
struct Declaration<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Schema>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Generation<'a> {
    max_output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_schema: Option<Schema>,
    #[serde(flatten)]
    extra: &'a BTreeMap<String, Value>,
}

/// The body of the request, as JSON.
///
/// # Errors
/// [`ModelError::Rejected`] when it has no message, or the schema of the answer is no JSON.
pub(super) fn encode(model: &Gemini, request: &ModelRequest) -> Result<String, ModelError> {
    let contents = contents(model, request);
    if contents.is_empty() {
        return Err(ModelError::Rejected("the request has no message that says anything".into()));
    }
    let constants = &request.constants;
    let system = constants.system.as_deref().filter(|text| !text.is_empty());
    let function_declarations: Vec<_> = constants.tools.iter().filter_map(declaration).collect();
    let (response_mime_type, response_schema) = format(model, request)?;
    let wire = WireRequest {
        system_instruction: system.map(|text| Instruction { parts: [InstructionText { text }] }),
        contents,
        tools: (!function_declarations.is_empty()).then_some([Tools { function_declarations }]),
        generation_config: Generation {
            max_output_tokens: request.max_output_tokens,
            temperature: request.temperature_milli.map(|milli| f64::from(milli) / 1000.0),
            response_mime_type,
            response_schema,
            extra: &model.generation_config,
        },
        extra: &model.extra_body,
    };
    serde_json::to_string(&wire).map_err(|error| ModelError::Rejected(error.to_string()))
}

/// A tool that the protocol cannot express is not offered: the server would refuse the whole request for it.
fn declaration(offer: &ToolOffer) -> Option<Declaration<'_>> {
    match schema::parameters(&offer.parameters) {
        Ok(parameters) => Some(Declaration { name: on_wire(&offer.name), description: &offer.description, parameters }),
        Err(why) => {
            tracing::warn!(tool = offer.name, why, "this tool cannot be offered to a Gemini model");
            None
        }
    }
}

/// The form of the answer. Whoever asked for it checks the answer against the full schema.
fn format(model: &Gemini, request: &ModelRequest) -> Result<(Option<&'static str>, Option<Schema>), ModelError> {
    let Some(text) = request.constants.output_schema.as_deref().filter(|_| model.structured_output) else {
        return Ok((None, None));
    };
    // Older models refuse a request that has both.
    if !request.constants.tools.is_empty() && !model.schema_with_tools {
        return Ok((None, None));
    }
    let schema = schema::answer(text)
        .map_err(|error| ModelError::Rejected(format!("the schema of the answer is no JSON: {error}")))?;
    Ok((Some("application/json"), schema))
}
