//! What all tools here do with arguments: offering their schema, and reading them.

use loopd_kernel::model::ToolOffer;
use loopd_runtime::ToolError;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// The offer of a tool with arguments of type `A`.
pub(crate) fn offer<A: JsonSchema>(name: &str, description: &str) -> ToolOffer {
    let mut schema = schemars::schema_for!(A);
    // Said of the tool already, and paid for with every request.
    for said in ["$schema", "title", "description"] {
        schema.remove(said);
    }
    ToolOffer { name: name.into(), description: description.into(), parameters: schema.as_value().to_string() }
}

/// Reads arguments. A cut or doubled text is an error, never a part of what was meant.
pub(crate) fn parse<A: DeserializeOwned>(args: &str) -> Result<A, ToolError> {
    let text = if args.trim().is_empty() { "{}" } else { args };
    // Serde would take an array for the fields in their order.
    if !text.trim_start().starts_with('{') {
        return Err(ToolError::invalid_args("expected a JSON object"));
    }
    serde_json::from_str(text).map_err(|error| ToolError::invalid_args(error.to_string()))
}
