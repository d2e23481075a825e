//! The tool by which a model asks a person.

use loopd_kernel::model::ToolOffer;
use loopd_kernel::question::Ask;
use serde::Deserialize;
use serde_json::json;

/// Its name.
pub(crate) const NAME: &str = "ask";

/// The tool as the model sees it.
pub(crate) fn offer() -> ToolOffer {
    let parameters = json!({
        "type": "object",
        "properties": {
            "question": { "type": "string", "minLength": 1, "description": "The question, complete in itself." },
            "choices": {
                "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 20,
                "description": "The possible answers, when there are only a few."
            }
        },
        "required": ["question"],
        "additionalProperties": false
    });
    ToolOffer {
        name: NAME.into(),
        description: "Asks the person you work for and waits for the answer. Use it only for what you cannot find \
                      out or decide yourself."
            .into(),
        parameters: parameters.to_string(),
    }
}

#[derive(Deserialize)]
struct Args {
    question: String,
    choices: Option<Vec<String>>,
}

/// The Question that the arguments mean; they have passed the schema.
pub(crate) fn question(args: &str, reply_to: String) -> Result<Ask, serde_json::Error> {
    let Args { question, choices } = serde_json::from_str(args)?;
    let schema = choices.map(|choices| json!({ "enum": choices }).to_string());
    Ok(Ask::Ask { prompt: question, schema, expires_in_ms: None, reply_to: Some(reply_to) })
}
