//! OpenAI chat completions.

mod read;
mod write;

pub(super) use read::read;
pub(super) use write::write;
