//! From what a manifest says of a model to one that can be called.

use crate::obstacle::{Kind, Obstacle};
use crate::tools;
use loopd_agent::manifest::{Model as ModelSpec, OpenAiApi, Price, Provider};
use loopd_fixture::excerpt;
use loopd_providers::key::KeyError;
use loopd_providers::price::{DeclaredPrice, DollarsPerMillion};
use loopd_providers::{
    AnthropicConfig, Catalogue, ConfigError, Connection, DemoConfig, DemoScript, GeminiConfig, ModelConfig,
    OpenAiConfig, ResponsesConfig, from_config_in,
};
use loopd_runtime::Model;
use std::path::Path;
use std::sync::Arc;

/// The model that a manifest describes.
///
/// # Errors
/// [`Obstacle`]; a missing key is named by its variable.
pub fn model(
    spec: &ModelSpec,
    demo_script: Option<&str>,
    folder: Option<&Path>,
    catalogue: &Catalogue,
) -> Result<Arc<dyn Model>, Obstacle> {
    let ca_file = spec.connection.ca_file.as_deref().map(|file| tools::place(file, folder)).transpose()?;
    let (proxy, keep_exchange) = (spec.connection.proxy.clone(), spec.connection.keep_exchange);
    let key_file = spec.api_key_file.as_deref().map(|file| tools::place(file, folder)).transpose()?;
    let config = config(spec, demo_script)?.reached(Connection { ca_file, proxy, keep_exchange }).key_in(key_file);
    let variable = |name: &str| std::env::var(name).ok();
    from_config_in(&config, &variable, catalogue).map_err(|error| match error {
        ConfigError::Key(KeyError::Variable(name)) => {
            Obstacle::new(Kind::Key, format!("the API key is missing: the variable {name} is not set"))
                .why(format!("{} needs it; nothing was started", excerpt::line(&spec.key(), 80)))
                .fix(format!("export {name}=…  and try again"))
        }
        ConfigError::Key(error) => Obstacle::new(Kind::Key, error.to_string()),
        other => cannot_set_up(&other),
    })
}

/// A model that cannot be made, whatever its key is.
pub(crate) fn cannot_set_up(error: &ConfigError) -> Obstacle {
    Obstacle::new(Kind::Model, format!("the model cannot be set up: {error}"))
}

/// The settings of the model that a manifest describes.
///
/// # Errors
/// [`Obstacle`] when the demo script does not read.
pub fn config(spec: &ModelSpec, demo_script: Option<&str>) -> Result<ModelConfig, Obstacle> {
    let context_window = spec.context_window;
    let price = spec.price.as_ref().map(price);
    let (timeout_ms, max_attempts) = (spec.timeout.map(|timeout| timeout.ms), spec.attempts);
    Ok(match &spec.provider {
        Provider::OpenAi { api: OpenAiApi::Completions, name, base_url, api_key_env } => {
            ModelConfig::Openai(OpenAiConfig {
                base_url: base_url.clone(),
                api_key_env: api_key_env.clone(),
                stream: Some(spec.stream),
                price,
                context_window,
                timeout_ms,
                max_attempts,
                ..OpenAiConfig::new(name)
            })
        }
        Provider::OpenAi { api: OpenAiApi::Responses, name, base_url, api_key_env } => {
            ModelConfig::Responses(ResponsesConfig {
                base_url: base_url.clone(),
                api_key_env: api_key_env.clone(),
                stream: Some(spec.stream),
                price,
                context_window,
                timeout_ms,
                max_attempts,
                ..ResponsesConfig::new(name)
            })
        }
        Provider::Anthropic { name, base_url, api_key_env } => ModelConfig::Anthropic(AnthropicConfig {
            base_url: base_url.clone(),
            api_key_env: api_key_env.clone(),
            stream: Some(spec.stream),
            price,
            context_window,
            timeout_ms,
            max_attempts,
            ..AnthropicConfig::new(name)
        }),
        Provider::Gemini { name, base_url, api_key_env } => ModelConfig::Gemini(GeminiConfig {
            base_url: base_url.clone(),
            api_key_env: api_key_env.clone(),
            stream: Some(spec.stream),
            price,
            context_window,
            timeout_ms,
            max_attempts,
            ..GeminiConfig::new(name)
        }),
        Provider::Demo { .. } => {
            let script = demo_script.map(DemoScript::from_json).transpose();
            let script = script.map_err(|error| Obstacle::new(Kind::Model, format!("the demo script: {error}")))?;
            ModelConfig::Demo(DemoConfig { script, script_file: None, price, context_window, timeout_ms, max_attempts })
        }
    })
}

fn price(price: &Price) -> DeclaredPrice {
    let dollars = |amount: loopd_agent::manifest::Dollars| DollarsPerMillion(amount.0);
    DeclaredPrice {
        input: dollars(price.input_per_million),
        output: dollars(price.output_per_million),
        cache_read: price.cache_read_per_million.map(dollars),
        cache_write: price.cache_write_per_million.map(dollars),
        reasoning: price.reasoning_per_million.map(dollars),
    }
}
