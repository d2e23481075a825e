//! The built-in agent loop: an LLM with tools, defined by data.
//!
//! [`Manifest`] is what a person writes (`kind: Agent`, YAML). [`Agent`] is the Loop made of it: per iteration it
//! calls the model with the Run's Transcript, runs what the model asks for, and ends with the model's answer. It
//! performs nothing and opens nothing; tools are known to it by their [`ToolOffer`](loopd_kernel::model::ToolOffer)s.
#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]

mod agent;
mod ask;
mod definition;
mod json;
pub mod manifest;
mod output;
mod reply;
mod schema;
mod state;
mod text;
mod toolset;
mod words;

pub use agent::{Agent, AgentError};
pub use manifest::{Manifest, ManifestError};
pub use schema::NotASchema;
