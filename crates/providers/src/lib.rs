//! Model providers: adapters between the runtime's [`Model`](loopd_runtime::Model) port and what serves models.
//!
//! [`from_config`] makes a model of a configuration. [`openai`] speaks chat completions, [`anthropic`] the Messages
//! API, [`gemini`] Gemini's `generateContent`, [`demo`] plays a script without any network, [`price`] knows what models
//! cost [`recorded`] reads recorded
//! streams and [`wire`] holds what adapters share.
#![forbid(unsafe_code)]

pub mod anthropic;
mod complaint;
mod config;
mod connect;
pub mod demo;
pub mod gemini;
mod intake;
pub mod key;
pub mod openai;
pub mod price;
pub mod recorded;
#[cfg(test)]
mod said;
pub mod wire;

pub use anthropic::{Anthropic, AnthropicConfig};
pub use config::{ConfigError, DemoConfig, Headers, ModelConfig, OpenAiConfig, from_config, from_config_with};
pub use demo::{Demo, DemoScript};
pub use gemini::{Gemini, GeminiConfig};
pub use key::ApiKey;
pub use openai::OpenAi;
