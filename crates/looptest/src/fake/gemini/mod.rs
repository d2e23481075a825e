//! Gemini's `generateContent`.

mod contents;
mod read;
mod schema;
mod write;

pub(super) use read::{count, read};
pub(super) use write::{error_piece, write};

/// The signature of a call or a text: what a real one is to whoever cannot read it. It belongs to its name or text.
fn signature(of: &str) -> String {
    let digest = loopd_kernel::Digest::of("looptest-thought/1", &[of.as_bytes()]);
    // Base64, whatever alphabet and padding a client has.
    digest.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a model signs its calls, and wants the signatures back.
fn signs(model: &str) -> bool {
    model.starts_with("gemini-3")
}

/// A member under its name in either style: the protocol takes both.
fn member<'a>(object: &'a serde_json::Value, camel: &str) -> Option<&'a serde_json::Value> {
    crate::fake::checks::get(object, camel).or_else(|| crate::fake::checks::get(object, &snake(camel)))
}

fn snake(camel: &str) -> String {
    let mut snake = String::new();
    for c in camel.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// The first member that is not among `known`, which are in camel case.
fn stranger<'a>(object: &'a serde_json::Value, known: &[&str]) -> Option<&'a str> {
    let is_known = |name: &str| known.iter().any(|own| *own == name || snake(own) == name);
    crate::fake::checks::members(object).map(|(name, _)| name.as_str()).find(|name| !is_known(name))
}
