//! Adapters that are pointed at a fake, and what they say.

use loopd_kernel::model::{Message, ModelConstants, Part, ToolOffer};
use loopd_kernel::{CallId, Digest, EffectKey, RunId};
use loopd_providers::anthropic::AnswerFormat;
use loopd_providers::{AnthropicConfig, GeminiConfig, ModelConfig, OpenAiConfig, ResponsesConfig, from_config_with};
use loopd_runtime::{CallContext, Model, ModelAnswer, ModelError, ModelRequest};
use looptest::fake::FakeModel;
use std::sync::Arc;
use std::time::Duration;

/// The adapters of this workspace.
pub const ADAPTERS: [&str; 4] = ["openai", "responses", "anthropic", "gemini"];

/// The adapter called `name`, pointed at `fake`. Its key is `sk-secret-1`.
pub fn adapter(name: &str, fake: &FakeModel, stream: bool) -> Arc<dyn Model> {
    adapter_of(name, "m", fake, stream)
}

/// The same for another model.
pub fn adapter_of(name: &str, model: &str, fake: &FakeModel, stream: bool) -> Arc<dyn Model> {
    let (stream, api_key_env) = (Some(stream), Some("KEY".to_owned()));
    let config = match name {
        "openai" => ModelConfig::Openai(OpenAiConfig {
            stream,
            api_key_env,
            max_completion_tokens: Some(true),
            schema_with_tools: Some(true),
            ..OpenAiConfig::new(model).at(fake.openai_url())
        }),
        "responses" => ModelConfig::Responses(ResponsesConfig {
            stream,
            api_key_env,
            schema_with_tools: Some(true),
            ..ResponsesConfig::new(model).at(fake.openai_url())
        }),
        "anthropic" => ModelConfig::Anthropic(AnthropicConfig {
            stream,
            api_key_env,
            answer_format: Some(AnswerFormat::Format),
            ..AnthropicConfig::new(model).at(fake.anthropic_url())
        }),
        _ => {
            ModelConfig::Gemini(GeminiConfig { stream, api_key_env, ..GeminiConfig::new(model).at(fake.gemini_url()) })
        }
    };
    from_config_with(&config, &|_| Some("sk-secret-1".into())).expect("a model")
}

pub fn user(text: &str) -> Message {
    Message::user(text)
}

/// A request that offers `get_weather`.
pub fn request(messages: &[Message]) -> ModelRequest {
    let weather = ToolOffer {
        name: "get_weather".into(),
        description: "The weather in a city.".into(),
        parameters: r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#.into(),
    };
    let constants =
        ModelConstants { system: Some("Be brief.".into()), tools: vec![weather], ..ModelConstants::default() };
    ModelRequest {
        model: "m".into(),
        constants: Arc::new(constants),
        messages: messages.iter().cloned().map(Arc::new).collect(),
        max_output_tokens: 4096,
        temperature_milli: None,
    }
}

pub fn context() -> CallContext {
    CallContext {
        run: RunId([1; 16]),
        call: CallId(7),
        key: EffectKey(Digest::default()),
        attempt: 1,
        timeout: Duration::from_secs(30),
        cancel: tokio_util::sync::CancellationToken::new(),
        deltas: None,
    }
}

pub async fn call(model: &Arc<dyn Model>, messages: &[Message]) -> Result<ModelAnswer, ModelError> {
    model.call(request(messages), context()).await
}

/// What a call came to, in words that do not depend on the provider.
pub fn render(result: &Result<ModelAnswer, ModelError>) -> String {
    match result {
        Err(error) => format!("{} wait {:?}", error.code(), error.retry_after()),
        Ok(answer) => {
            let part = |part: &Part| match part {
                Part::Text { text } => format!("{text:?}"),
                Part::ToolUse { name, args, .. } => format!("{name}{args}"),
                Part::Reasoning { .. } => "(reasoning)".into(),
            };
            let parts: Vec<String> = answer.reply.parts.iter().map(part).collect();
            format!("{} {:?}", parts.join(" "), answer.reply.stop)
        }
    }
}
