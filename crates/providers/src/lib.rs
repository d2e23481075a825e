//! Model providers: adapters between the runtime's [`Model`](loopd_runtime::Model) port and what serves models.
//!
//! [`from_config`] makes a model of a configuration. [`openai`] speaks chat completions, [`anthropic`] the Messages
//! API, [`gemini`] Gemini's `generateContent`, [`responses`] OpenAI's Responses API, [`demo`] plays a script without any
//! network, [`catalogue`] knows what models cost and how much they take, [`recorded`] reads recorded streams and [`wire`]
//! holds what adapters share.
#![forbid(unsafe_code)]

pub mod anthropic;
pub mod catalogue;
mod complaint;
mod config;
mod connect;
pub mod demo;
pub mod gemini;
#[cfg(test)]
mod heard;
mod history;
mod intake;
pub mod key;
mod media;
mod names;
pub mod openai;
pub mod price;
pub mod recorded;
pub mod responses;
#[cfg(test)]
mod said;
mod usage;
pub mod wire;

pub use anthropic::{Anthropic, AnthropicConfig};
pub use catalogue::{Catalogue, ModelFacts};
pub use config::{
    ConfigError, Connection, DemoConfig, Headers, ModelConfig, OpenAiConfig, from_config, from_config_in,
    from_config_with,
};
pub use demo::{Demo, DemoScript};
pub use gemini::{Gemini, GeminiConfig};
pub use key::ApiKey;
pub use openai::OpenAi;
pub use responses::{Responses, ResponsesConfig};
