//! The built-in agent loop: an LLM with tools, defined by data.
//!
//! [`Manifest`] is what a person writes (`kind: Agent`, YAML). [`Agent`] is the Loop made of it: per iteration it
//! calls the model with the Run's Transcript, runs what the model asks for, and ends with the model's answer. It
//! performs nothing and opens nothing; tools are known to it by their [`ToolOffer`](loopd_kernel::model::ToolOffer)s.
//!
//! ```
//! use loopd_agent::{Agent, Manifest};
//! use loopd_kernel::ErasedLoop as _;
//!
//! let yaml = "
//! apiVersion: loopd.dev/v1alpha1
//! kind: Agent
//! metadata: { name: greeter }
//! spec:
//!   model: { provider: openai, name: gpt-5-mini, apiKeyEnv: OPENAI_API_KEY }
//!   instructions: Greet whoever asks.
//! ";
//! let manifest = Manifest::parse("greeter.yaml", yaml.as_bytes())?;
//! assert_eq!(manifest.spec.model.key(), "openai/gpt-5-mini");
//! let agent = Agent::from_manifest(manifest, Vec::new())?;
//! // Whoever has these bytes has the Agent.
//! assert_eq!(Agent::from_definition(agent.definition())?.name(), "greeter");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]

mod agent;
mod ask;
mod context;
mod definition;
mod helper;
mod json;
pub mod manifest;
mod output;
mod reply;
mod schema;
mod skill;
mod state;
mod text;
mod toolset;
mod turn;
mod words;

pub use agent::{Agent, AgentError};
pub use definition::{Document, Found};
pub use manifest::{Manifest, ManifestError};
pub use schema::NotASchema;
pub use skill::Skill;
