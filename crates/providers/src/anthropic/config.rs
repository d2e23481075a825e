//! Settings of a server that speaks the Messages API.

use super::request::OWN_MEMBERS;
use super::{AnswerFormat, Anthropic};
use crate::catalogue::{Catalogue, ModelFacts};
use crate::config::{ConfigError, Connection, Headers};
use crate::connect::{self, terms, wrong};
use crate::price::DeclaredPrice;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

const ANTHROPIC: &str = "https://api.anthropic.com";
const ANTHROPIC_HOST: &str = "api.anthropic.com";

/// Settings of a server that speaks the Messages API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnthropicConfig {
    /// The model, by the server's name.
    pub model: String,
    /// Where the server is, without or with `/v1`: Anthropic's own when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Who serves it, as reasoning remembers it: `anthropic`, or the host of `base_url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// The environment variable with the key: `ANTHROPIC_API_KEY` for Anthropic's own server, no key else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// The file with the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_file: Option<PathBuf>,
    /// More headers, for example `anthropic-beta`, or another `anthropic-version` than `2023-06-01`.
    #[serde(default)]
    pub headers: Headers,
    /// More members of the request, for example `{"thinking": {"type": "adaptive"}}` or
    /// `{"output_config": {"effort": "low"}}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_body: BTreeMap<String, serde_json::Value>,
    /// Whether to stream: true. What is shown while it works depends on it, the answer does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Whether a temperature is sent when one is asked for: true, unless `extra_body` has `thinking`, which excludes
    /// one. Anthropic's models since 4.7 take none at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<bool>,
    /// Whether to mark system text, tools and the last message for the prompt cache: true. Writing to it costs more
    /// than plain input, reading from it much less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_cache: Option<bool>,
    /// Whether several tools may be asked for at once; not said when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_use: Option<bool>,
    /// How the schema of an answer goes: `format` at Anthropic's own server, `off` else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_format: Option<AnswerFormat>,
    /// The price; the catalogue's when not given, and unknown where that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<DeclaredPrice>,
    /// The most tokens of one call, prompt and reply together; the catalogue's when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Milliseconds until a Call is given up: 300,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Milliseconds to connect: 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_timeout_ms: Option<u64>,
    /// Milliseconds without a byte once the answer has begun: 60,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// How the server is reached beyond its address, and what is kept of it.
    #[serde(default, skip_serializing_if = "Connection::is_default")]
    pub connection: Connection,
    /// Lost or failed attempts before a Call fails: 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
}

impl AnthropicConfig {
    /// `model` at Anthropic's own server, everything else as usual.
    #[must_use]
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            base_url: None,
            vendor: None,
            api_key_env: None,
            api_key_file: None,
            headers: Headers::default(),
            extra_body: BTreeMap::new(),
            stream: None,
            temperature: None,
            prompt_cache: None,
            parallel_tool_use: None,
            answer_format: None,
            price: None,
            context_window: None,
            timeout_ms: None,
            connect_timeout_ms: None,
            idle_timeout_ms: None,
            connection: Connection::default(),
            max_attempts: None,
        }
    }

    /// The same model at another server.
    #[must_use]
    pub fn at(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self
    }

    /// What is known of the model, before it is made and without its key.
    ///
    /// # Errors
    /// [`ConfigError`] when the address is none.
    pub fn facts(&self, catalogue: &Catalogue) -> Result<ModelFacts, ConfigError> {
        let base = connect::base(self.base_url.as_deref(), ANTHROPIC)?;
        let known = catalogue.lookup_at(base.as_str(), &self.model).unwrap_or_default();
        Ok(known.declared(self.price, self.context_window))
    }

    /// Makes the model; `variable` looks environment variables up.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn build(&self, variable: &dyn Fn(&str) -> Option<String>) -> Result<Anthropic, ConfigError> {
        self.build_in(variable, &Catalogue::default())
    }

    /// [`AnthropicConfig::build`] with what is known of models besides the embedded table.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn build_in(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
        catalogue: &Catalogue,
    ) -> Result<Anthropic, ConfigError> {
        if self.model.is_empty() {
            return Err(wrong("model", "is empty"));
        }
        connect::refuse_own("extra_body", &self.extra_body, &OWN_MEMBERS)?;
        if self.extra_body.get("output_config").is_some_and(|value| !value.is_object()) {
            return Err(wrong("extra_body", "`output_config` must be an object"));
        }
        let base = connect::base(self.base_url.as_deref(), ANTHROPIC)?;
        let is_anthropic = base.host_str() == Some(ANTHROPIC_HOST);
        let usual = is_anthropic.then_some("ANTHROPIC_API_KEY");
        let key = connect::key(self.api_key_env.as_deref(), self.api_key_file.as_deref(), usual, variable)?;
        connect::warn_of_open_keys(&base, key.as_ref());
        let vendor = connect::vendor(self.vendor.as_deref(), is_anthropic.then_some("anthropic"), &base);
        // People write addresses both ways.
        let has_version = base.path().trim_end_matches('/').ends_with("/v1");
        let path: &[&str] = if has_version { &["messages"] } else { &["v1", "messages"] };
        let usual_format = if is_anthropic { AnswerFormat::Format } else { AnswerFormat::Off };
        let facts = self.facts(catalogue)?;
        facts.warn(&self.model);
        Ok(Anthropic {
            client: connect::client(&base, self.connect_timeout_ms, &self.connection)?,
            keep_exchange: self.connection.keep_exchange,
            endpoint: connect::endpoint(base.clone(), path),
            model: self.model.clone(),
            origin: format!("{vendor}/{}", self.model),
            account: connect::account(&base, key.as_ref()),
            key,
            headers: connect::headers(&self.headers)?,
            terms: terms(facts.price(), self.timeout_ms, self.max_attempts),
            facts,
            idle_timeout: Duration::from_millis(self.idle_timeout_ms.unwrap_or(60_000)),
            stream: self.stream.unwrap_or(true),
            temperature: self.temperature.unwrap_or(!self.extra_body.contains_key("thinking")),
            prompt_cache: self.prompt_cache.unwrap_or(true),
            parallel_tool_use: self.parallel_tool_use,
            answer_format: self.answer_format.unwrap_or(usual_format),
            extra_body: self.extra_body.clone(),
        })
    }
}
