//! OpenAI Responses.

mod items;
mod read;
mod write;

pub(super) use read::read;
pub(super) use write::write;
