//! Settings of a server that speaks the Responses API.

use super::Responses;
use super::request::OWN_MEMBERS;
use crate::catalogue::{Catalogue, ModelFacts};
use crate::config::{ConfigError, Connection, Headers, OPENAI, OPENAI_HOST};
use crate::connect::{self, terms, wrong};
use crate::openai::StructuredOutput;
use crate::price::DeclaredPrice;
use reqwest::header::HeaderName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Models whose reasoning cannot be encrypted because they have none, by how OpenAI's names begin. They refuse a
/// request that asks for it.
const WITHOUT_REASONING: [&str; 3] = ["gpt-3", "gpt-4", "chatgpt-4"];

/// Settings of a server that speaks the Responses API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponsesConfig {
    /// The model, by the server's name.
    pub model: String,
    /// Where the server is, up to and with `/v1`: OpenAI's own when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Who serves it, as reasoning remembers it: `openai`, or the host of `base_url`. That it came by this protocol is
    /// remembered besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// The environment variable with the key: `OPENAI_API_KEY` for OpenAI's own server, no key else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// The file with the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_file: Option<PathBuf>,
    /// The header that takes the bare key, for example `api-key` for Azure: `Authorization: Bearer KEY` else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_header: Option<String>,
    /// More headers.
    #[serde(default)]
    pub headers: Headers,
    /// More members of the request, for example `{"reasoning": {"effort": "low"}}` or `{"text": {"verbosity": "low"}}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_body: BTreeMap<String, serde_json::Value>,
    /// Whether to stream: true. What is shown while it works depends on it, the answer does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// What the server can do about the schema of an answer: `json_schema`.
    #[serde(default)]
    pub structured_output: StructuredOutput,
    /// Whether it can do so while tools are offered: true for OpenAI's own server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_with_tools: Option<bool>,
    /// Whether several tools may be asked for at once; not said when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Whether to ask for reasoning in the encrypted form that can go back: true, but not for models whose name begins
    /// with `gpt-3`, `gpt-4` or `chatgpt-4`, which do not reason and refuse to be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted_reasoning: Option<bool>,
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

impl ResponsesConfig {
    /// `model` at OpenAI's own server, everything else as usual.
    #[must_use]
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            base_url: None,
            vendor: None,
            api_key_env: None,
            api_key_file: None,
            api_key_header: None,
            headers: Headers::default(),
            extra_body: BTreeMap::new(),
            stream: None,
            structured_output: StructuredOutput::default(),
            schema_with_tools: None,
            parallel_tool_calls: None,
            encrypted_reasoning: None,
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
        let base = connect::base(self.base_url.as_deref(), OPENAI)?;
        let known = catalogue.lookup_at(base.as_str(), &self.model).unwrap_or_default();
        Ok(known.declared(self.price, self.context_window))
    }

    /// Makes the model; `variable` looks environment variables up.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn build(&self, variable: &dyn Fn(&str) -> Option<String>) -> Result<Responses, ConfigError> {
        self.build_in(variable, &Catalogue::default())
    }

    /// [`ResponsesConfig::build`] with what is known of models besides the embedded table.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn build_in(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
        catalogue: &Catalogue,
    ) -> Result<Responses, ConfigError> {
        if self.model.is_empty() {
            return Err(wrong("model", "is empty"));
        }
        connect::refuse_own("extra_body", &self.extra_body, &OWN_MEMBERS)?;
        if self.extra_body.get("text").is_some_and(|text| !text.is_object() || text.get("format").is_some()) {
            return Err(wrong("extra_body", "`text` must be an object without `format`"));
        }
        let base = connect::base(self.base_url.as_deref(), OPENAI)?;
        let is_openai = base.host_str() == Some(OPENAI_HOST);
        let usual = is_openai.then_some("OPENAI_API_KEY");
        let key = connect::key(self.api_key_env.as_deref(), self.api_key_file.as_deref(), usual, variable)?;
        connect::warn_of_open_keys(&base, key.as_ref());
        let vendor = connect::vendor(self.vendor.as_deref(), is_openai.then_some("openai"), &base);
        let header = |name: &String| name.parse::<HeaderName>().map_err(|_| wrong("api_key_header", "is no header"));
        let facts = self.facts(catalogue)?;
        facts.warn(&self.model);
        let reasons = !WITHOUT_REASONING.iter().any(|start| self.model.starts_with(start));
        Ok(Responses {
            client: connect::client(&base, self.connect_timeout_ms, &self.connection)?,
            keep_exchange: self.connection.keep_exchange,
            endpoint: connect::endpoint(base.clone(), &["responses"]),
            model: self.model.clone(),
            // What one protocol calls reasoning, the other one cannot read.
            origin: format!("{vendor}+responses/{}", self.model),
            account: connect::account(&base, key.as_ref()),
            key,
            key_header: self.api_key_header.as_ref().map(header).transpose()?,
            headers: connect::headers(&self.headers)?,
            terms: terms(facts.price(), self.timeout_ms, self.max_attempts),
            facts,
            idle_timeout: Duration::from_millis(self.idle_timeout_ms.unwrap_or(60_000)),
            stream: self.stream.unwrap_or(true),
            tells_cuts: is_openai,
            structured_output: self.structured_output,
            schema_with_tools: self.schema_with_tools.unwrap_or(is_openai),
            parallel_tool_calls: self.parallel_tool_calls,
            encrypted_reasoning: self.encrypted_reasoning.unwrap_or(reasons),
            extra_body: self.extra_body.clone(),
        })
    }
}
