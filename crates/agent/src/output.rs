//! The final answer, when it has to be JSON of a certain shape.

use crate::json;
use crate::schema::{NotASchema, Schema};

/// The shape of the final answer.
#[derive(Debug)]
pub(crate) struct OutputShape {
    text: String,
    schema: Schema,
}

impl OutputShape {
    pub(crate) fn new(text: &str) -> Result<Self, NotASchema> {
        Ok(Self { text: text.into(), schema: Schema::compile(text)? })
    }

    /// The JSON Schema as text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What the model is told about it. Not every server takes a schema with its request, and some that do
    /// cannot combine it with tools.
    pub(crate) fn instruction(&self) -> String {
        format!(
            "When you are done, answer with one JSON value and nothing else. It must match this JSON Schema:\n{}",
            self.text
        )
    }

    /// The answer in `reply` exactly as the model wrote it, once it fits.
    pub(crate) fn accept<'a>(&self, reply: &'a str) -> Result<&'a str, String> {
        let answer = unfenced(reply);
        let value = json::value(answer).map_err(|why| format!("- {why}"))?;
        self.schema.check(&value).map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(|problem| format!("- {problem}")).collect();
            lines.join("\n")
        })?;
        Ok(answer)
    }
}

/// The text inside the one fenced block of a reply, or the whole reply when there is not exactly one.
fn unfenced(reply: &str) -> &str {
    let whole = reply.trim();
    let parts: Vec<&str> = whole.split("```").collect();
    let [_, block, _] = parts.as_slice() else {
        return whole;
    };
    // The fence may name its language on its own line.
    let body = match block.split_once('\n') {
        Some((language, body)) if language.trim().chars().all(|c| c.is_ascii_alphanumeric()) => body,
        Some(_) | None => block,
    };
    // JSON may hold three backticks inside a string: what reads as it stands is not taken apart.
    if serde_json::from_str::<&serde_json::value::RawValue>(whole).is_ok() { whole } else { body.trim() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fenced_block_is_taken_out() {
        for (reply, answer) in [
            (" {\"a\":1}\n", "{\"a\":1}"),
            ("```json\n{\"a\":1}\n```", "{\"a\":1}"),
            ("```\n[1]\n```", "[1]"),
            ("```JSON\r\n{}\r\n```", "{}"),
            ("Here it is:\n```json\n{\"a\": 1e400}\n```\nDone.", "{\"a\": 1e400}"),
            ("```{\"a\":1}```", "{\"a\":1}"),
            ("\"use ``` and ``` here\"", "\"use ``` and ``` here\""),
            ("```json\n{}\n```\nor\n```json\n[]\n```", "```json\n{}\n```\nor\n```json\n[]\n```"),
            ("```json\n{\"cut\":", "```json\n{\"cut\":"),
        ] {
            assert_eq!(unfenced(reply), answer, "{reply}");
        }
    }
}
