//! From configuration to a model.

use crate::anthropic::AnthropicConfig;
use crate::catalogue::{Catalogue, ModelFacts};
use crate::connect::{self, terms, wrong};
use crate::demo::{Demo, DemoScript, ScriptError};
use crate::gemini::GeminiConfig;
use crate::key::KeyError;
use crate::openai::{OWN_MEMBERS, OpenAi, ReplayReasoning, StructuredOutput};
use crate::price::DeclaredPrice;
use crate::responses::ResponsesConfig;
use loopd_kernel::units::Price;
use loopd_runtime::Model;
use reqwest::header::HeaderName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const OPENAI: &str = "https://api.openai.com/v1";
pub(crate) const OPENAI_HOST: &str = "api.openai.com";

/// A model, by its provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "provider", rename_all = "snake_case")]
pub enum ModelConfig {
    /// A server that speaks chat completions.
    Openai(OpenAiConfig),
    /// A server that speaks the Responses API.
    Responses(ResponsesConfig),
    /// A server that speaks the Messages API.
    Anthropic(AnthropicConfig),
    /// A server that speaks Gemini's `generateContent`.
    Gemini(GeminiConfig),
    /// The scripted model that needs no network.
    Demo(DemoConfig),
}

impl ModelConfig {
    /// The same, with its key in a file.
    #[must_use]
    pub fn key_in(mut self, file: Option<PathBuf>) -> Self {
        match &mut self {
            Self::Openai(config) => config.api_key_file = file,
            Self::Responses(config) => config.api_key_file = file,
            Self::Anthropic(config) => config.api_key_file = file,
            Self::Gemini(config) => config.api_key_file = file,
            Self::Demo(_) => {}
        }
        self
    }

    /// The same, reached like this; the demo model has no server.
    #[must_use]
    pub fn reached(mut self, connection: Connection) -> Self {
        match &mut self {
            Self::Openai(config) => config.connection = connection,
            Self::Responses(config) => config.connection = connection,
            Self::Anthropic(config) => config.connection = connection,
            Self::Gemini(config) => config.connection = connection,
            Self::Demo(_) => {}
        }
        self
    }

    /// What is known of the model, before it is made and without its key.
    ///
    /// # Errors
    /// [`ConfigError`] when the address of its server is none.
    pub fn facts(&self, catalogue: &Catalogue) -> Result<ModelFacts, ConfigError> {
        match self {
            Self::Openai(config) => config.facts(catalogue),
            Self::Responses(config) => config.facts(catalogue),
            Self::Anthropic(config) => config.facts(catalogue),
            Self::Gemini(config) => config.facts(catalogue),
            Self::Demo(config) => Ok(config.facts()),
        }
    }
}

/// Why a configuration makes no model.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is no key where one should be.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A setting cannot be right.
    #[error("{setting}: {problem}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The script of the demo model cannot be read.
    #[error("script_file: {} cannot be read", path.display())]
    ScriptFile {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The script of the demo model is wrong.
    #[error("script of the demo model: {0}")]
    Script(#[from] ScriptError),
    /// The HTTP client cannot be made, for example because of a broken proxy setting.
    #[error("HTTP client")]
    Client(#[source] reqwest::Error),
}

/// Makes the model that `config` describes. Keys are read now, so that a missing one is known before any Run starts.
///
/// # Errors
/// [`ConfigError`].
pub fn from_config(config: &ModelConfig) -> Result<Arc<dyn Model>, ConfigError> {
    from_config_with(config, &|name| std::env::var(name).ok())
}

/// [`from_config`] with another look-up than this process's environment for `api_key_env`.
///
/// # Errors
/// [`ConfigError`].
pub fn from_config_with(
    config: &ModelConfig,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Arc<dyn Model>, ConfigError> {
    from_config_in(config, variable, &Catalogue::default())
}

/// [`from_config_with`] with what is known of models besides the embedded table.
///
/// # Errors
/// [`ConfigError`].
pub fn from_config_in(
    config: &ModelConfig,
    variable: &dyn Fn(&str) -> Option<String>,
    catalogue: &Catalogue,
) -> Result<Arc<dyn Model>, ConfigError> {
    Ok(match config {
        ModelConfig::Openai(config) => Arc::new(config.build_in(variable, catalogue)?),
        ModelConfig::Responses(config) => Arc::new(config.build_in(variable, catalogue)?),
        ModelConfig::Anthropic(config) => Arc::new(config.build_in(variable, catalogue)?),
        ModelConfig::Gemini(config) => Arc::new(config.build_in(variable, catalogue)?),
        ModelConfig::Demo(config) => Arc::new(config.build()?),
    })
}

/// How a server is reached, beyond its address, and what is kept of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Connection {
    /// A file of certificates in PEM form: authorities that are trusted besides those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// The proxy as a URL, or `none`: that of the environment when not given, and none for a server on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Whether the exact bodies of requests and responses are kept in the store with the settlement of each Call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_exchange: bool,
}

impl Connection {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Settings of the demo model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DemoConfig {
    /// The script itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<DemoScript>,
    /// A JSON file with the script. Without either, the default script answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script_file: Option<PathBuf>,
    /// A price to play with; else the demo model costs nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<DeclaredPrice>,
    /// A context window to play with; else it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Milliseconds until a Call is given up: 300,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Lost or failed attempts before a Call fails: 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
}

impl DemoConfig {
    /// Makes the model.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn build(&self) -> Result<Demo, ConfigError> {
        let script = match (&self.script, &self.script_file) {
            (Some(_), Some(_)) => {
                return Err(wrong("script_file", "there is a script besides; give one of them"));
            }
            (Some(script), None) => script.clone(),
            (None, Some(path)) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|source| ConfigError::ScriptFile { path: path.clone(), source })?;
                DemoScript::from_json(&text)?
            }
            (None, None) => DemoScript::default(),
        };
        // The demo model is known to cost nothing; that is not an unknown price.
        let price = self.price.map(Price::from).unwrap_or_default();
        let terms = terms(Some(price), self.timeout_ms, self.max_attempts);
        Ok(Demo::new(script)?.with_terms(terms).with_facts(self.facts()))
    }

    /// What is declared of the model. That it costs nothing else is part of its terms.
    fn facts(&self) -> ModelFacts {
        ModelFacts::default().declared(self.price, self.context_window)
    }
}

/// Headers by name. A value may be a secret, so the `Debug` form has the names only.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Headers(pub BTreeMap<String, String>);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Settings of a server that speaks chat completions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenAiConfig {
    /// The model, by the server's name.
    pub model: String,
    /// Where the server is, up to and with `/v1`: OpenAI's own when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Who serves it, as reasoning remembers it: `openai`, or the host of `base_url`.
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
    /// More members of the request, for example `{"reasoning_effort": "low"}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_body: BTreeMap<String, serde_json::Value>,
    /// Whether to stream: true. What is shown while it works depends on it, the answer does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Whether to ask for usage in a stream: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_usage: Option<bool>,
    /// Whether the output limit is called `max_completion_tokens` and not `max_tokens`: true for OpenAI's own server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_completion_tokens: Option<bool>,
    /// What the server can do about the schema of an answer: `json_schema`.
    #[serde(default)]
    pub structured_output: StructuredOutput,
    /// Whether it can do so while tools are offered: true for OpenAI's own server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_with_tools: Option<bool>,
    /// Whether several tools may be asked for at once; not said when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// In which earlier messages the server gets its reasoning back: `tool_turns`.
    #[serde(default)]
    pub replay_reasoning: ReplayReasoning,
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

impl OpenAiConfig {
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
            stream_usage: None,
            max_completion_tokens: None,
            structured_output: StructuredOutput::default(),
            schema_with_tools: None,
            parallel_tool_calls: None,
            replay_reasoning: ReplayReasoning::default(),
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
    pub fn build(&self, variable: &dyn Fn(&str) -> Option<String>) -> Result<OpenAi, ConfigError> {
        self.build_in(variable, &Catalogue::default())
    }

    /// [`OpenAiConfig::build`] with what is known of models besides the embedded table.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn build_in(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
        catalogue: &Catalogue,
    ) -> Result<OpenAi, ConfigError> {
        if self.model.is_empty() {
            return Err(wrong("model", "is empty"));
        }
        connect::refuse_own("extra_body", &self.extra_body, &OWN_MEMBERS)?;
        let base = connect::base(self.base_url.as_deref(), OPENAI)?;
        let is_openai = base.host_str() == Some(OPENAI_HOST);
        let usual = is_openai.then_some("OPENAI_API_KEY");
        let key = connect::key(self.api_key_env.as_deref(), self.api_key_file.as_deref(), usual, variable)?;
        connect::warn_of_open_keys(&base, key.as_ref());
        let vendor = connect::vendor(self.vendor.as_deref(), is_openai.then_some("openai"), &base);
        let header = |name: &String| name.parse::<HeaderName>().map_err(|_| wrong("api_key_header", "is no header"));
        let facts = self.facts(catalogue)?;
        facts.warn(&self.model);
        Ok(OpenAi {
            client: connect::client(&base, self.connect_timeout_ms, &self.connection)?,
            keep_exchange: self.connection.keep_exchange,
            endpoint: connect::endpoint(base.clone(), &["chat", "completions"]),
            model: self.model.clone(),
            origin: format!("{vendor}/{}", self.model),
            account: connect::account(&base, key.as_ref()),
            key,
            key_header: self.api_key_header.as_ref().map(header).transpose()?,
            headers: connect::headers(&self.headers)?,
            terms: terms(facts.price(), self.timeout_ms, self.max_attempts),
            facts,
            idle_timeout: Duration::from_millis(self.idle_timeout_ms.unwrap_or(60_000)),
            stream: self.stream.unwrap_or(true),
            stream_usage: self.stream_usage.unwrap_or(true),
            completion_limit: self.max_completion_tokens.unwrap_or(is_openai),
            structured_output: self.structured_output,
            schema_with_tools: self.schema_with_tools.unwrap_or(is_openai),
            parallel_tool_calls: self.parallel_tool_calls,
            replay_reasoning: self.replay_reasoning,
            extra_body: self.extra_body.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// A configuration in, what the model makes of it or the error with its cause out. `KEY` is set to `sk-1`.
    #[track_caller]
    fn check(json: &str, expect: Expect) {
        let variable = |name: &str| (name == "KEY" || name == "OPENAI_API_KEY").then(|| "sk-1".to_owned());
        let shown = match serde_json::from_str(json) {
            Err(error) => error.to_string(),
            Ok(ModelConfig::Responses(_) | ModelConfig::Anthropic(_) | ModelConfig::Gemini(_)) => {
                "another provider".into()
            }
            Ok(ModelConfig::Demo(config)) => match config.build() {
                Err(error) => error.to_string(),
                Ok(demo) => format!("{:?}", demo.terms()),
            },
            Ok(ModelConfig::Openai(config)) => match config.build(&variable) {
                Err(error) => error.to_string(),
                Ok(model) => {
                    let terms = model.terms;
                    let price = terms.price.map(|price| (price.input, price.cache_read, price.output));
                    let debug = format!("{model:?}{config:?}");
                    assert!(!debug.contains("sk-1") && !debug.contains("hush"), "{debug}");
                    format!(
                        "{} as {}, key {}, price {price:?}, {} ms, {} attempts",
                        model.endpoint,
                        model.origin,
                        model.key.is_some(),
                        terms.timeout_ms,
                        terms.max_attempts
                    )
                }
            },
        };
        expect.assert_eq(&shown);
    }

    #[test]
    fn openai_needs_a_name_and_a_key() {
        check(
            r#"{"provider": "openai", "model": "gpt-5-mini"}"#,
            expect![
                "https://api.openai.com/v1/chat/completions as openai/gpt-5-mini, key true, price Some((250000, 25000, 2000000)), 300000 ms, 4 attempts"
            ],
        );
        check(
            r#"{"provider": "openai", "model": "gpt-5-mini", "api_key_env": "NO_KEY"}"#,
            expect!["no API key: set the environment variable NO_KEY"],
        );
        check(
            r#"{"provider": "openai", "model": "gpt-99-imaginary", "timeout_ms": 1000, "max_attempts": 2}"#,
            expect![
                "https://api.openai.com/v1/chat/completions as openai/gpt-99-imaginary, key true, price None, 1000 ms, 2 attempts"
            ],
        );
    }

    #[test]
    fn other_servers_have_no_key_and_no_price_unless_told() {
        // The table would know the address in its path.
        check(
            r#"{"provider": "openai", "model": "gpt-5-mini", "base_url": "http://localhost/https://api.openai.com/v1"}"#,
            expect![
                "http://localhost/https://api.openai.com/v1/chat/completions as localhost/gpt-5-mini, key false, price None, 300000 ms, 4 attempts"
            ],
        );
        check(
            r#"{"provider": "openai", "model": "gpt-5-mini", "base_url": "http://127.0.0.1:8080/v1"}"#,
            expect![
                "http://127.0.0.1:8080/v1/chat/completions as 127.0.0.1:8080/gpt-5-mini, key false, price None, 300000 ms, 4 attempts"
            ],
        );
        check(
            r#"{"provider": "openai", "model": "m", "base_url": "http://[::1]/", "price": {"input": 0.5, "output": "1"}}"#,
            expect![
                "http://[::1]/chat/completions as [::1]/m, key false, price Some((500000, 500000, 1000000)), 300000 ms, 4 attempts"
            ],
        );
        check(
            r#"{"provider": "openai", "model": "m", "base_url": "https://models.example.com", "vendor": "me", "api_key_env": "KEY", "headers": {"x-a": "hush"}}"#,
            expect!["https://models.example.com/chat/completions as me/m, key true, price None, 300000 ms, 4 attempts"],
        );
        check(
            r#"{"provider": "openai", "model": "gpt-5-mini", "base_url": "https://models.example.com/v1"}"#,
            expect![
                "https://models.example.com/v1/chat/completions as models.example.com/gpt-5-mini, key false, price None, 300000 ms, 4 attempts"
            ],
        );
    }

    #[test]
    fn what_cannot_be_right_is_refused() {
        check(r#"{"provider": "openai", "model": ""}"#, expect!["model: is empty"]);
        check(
            r#"{"provider": "openai", "model": "m", "base_url": "nowhere"}"#,
            expect!["base_url: relative URL without a base"],
        );
        check(
            r#"{"provider": "openai", "model": "m", "base_url": "file:///v1"}"#,
            expect!["base_url: must begin with http:// or https://"],
        );
        check(
            r#"{"provider": "openai", "model": "m", "base_url": "https://me:sk-1@example.com"}"#,
            expect!["base_url: must hold no password; use api_key_env or api_key_file"],
        );
        check(
            r#"{"provider": "openai", "model": "m", "extra_body": {"messages": []}}"#,
            expect!["extra_body: `messages` is not for you to set here"],
        );
        check(
            r#"{"provider": "openai", "model": "m", "headers": {"a b": "hush"}}"#,
            expect![[r#"headers: "a b" is no name of a header"#]],
        );
        check(
            r#"{"provider": "openai", "model": "m", "headers": {"x-a": "hush\n"}}"#,
            expect!["headers: the value of x-a holds what no header may hold"],
        );
        check(
            r#"{"provider": "openai", "model": "m", "api_key_env": "KEY", "api_key_file": "f"}"#,
            expect!["api_key_file: there is api_key_env besides; give one of them"],
        );
        check(
            r#"{"provider": "openai", "model": "m", "modle": 1}"#,
            expect![
                "unknown field `modle`, expected one of `model`, `base_url`, `vendor`, `api_key_env`, `api_key_file`, `api_key_header`, `headers`, `extra_body`, `stream`, `stream_usage`, `max_completion_tokens`, `structured_output`, `schema_with_tools`, `parallel_tool_calls`, `replay_reasoning`, `price`, `context_window`, `timeout_ms`, `connect_timeout_ms`, `idle_timeout_ms`, `connection`, `max_attempts`"
            ],
        );
        check(
            r#"{"provider": "mistral", "model": "m"}"#,
            expect![
                "unknown variant `mistral`, expected one of `openai`, `responses`, `anthropic`, `gemini`, `demo` at line 1 column 22"
            ],
        );
    }

    #[test]
    fn the_demo_model_is_known_to_cost_nothing() {
        check(
            r#"{"provider": "demo"}"#,
            expect![
                "ModelTerms { price: Some(Price { input: 0, cache_read: 0, cache_write: 0, output: 0, reasoning: 0 }), timeout_ms: 300000, max_attempts: 4 }"
            ],
        );
        check(
            r#"{"provider": "demo", "script": {"turns": [{"say": "x"}]}, "max_attempts": 9, "price": {"input": 1, "output": 2}}"#,
            expect![
                "ModelTerms { price: Some(Price { input: 1000000, cache_read: 1000000, cache_write: 1000000, output: 2000000, reasoning: 2000000 }), timeout_ms: 300000, max_attempts: 9 }"
            ],
        );
        check(r#"{"provider": "demo", "script": {"turns": []}}"#, expect!["script of the demo model: it has no turns"]);
        check(
            r#"{"provider": "demo", "script_file": "/no/such/file"}"#,
            expect!["script_file: /no/such/file cannot be read"],
        );
    }

    #[test]
    fn a_configuration_reads_what_it_writes() {
        let openai = ModelConfig::Openai(OpenAiConfig::new("m").at("http://localhost"));
        let demo = ModelConfig::Demo(DemoConfig { script: Some(DemoScript::default()), ..DemoConfig::default() });
        for config in [openai, demo] {
            let text = serde_json::to_string(&config).expect("JSON");
            assert_eq!(serde_json::from_str::<ModelConfig>(&text).expect("again"), config, "{text}");
        }
    }

    #[test]
    fn models_of_one_account_share_their_limits() {
        let account = |json: &str, key: &str| {
            let variable = |_: &str| Some(key.to_owned());
            let Ok(ModelConfig::Openai(config)) = serde_json::from_str(json) else { panic!("{json}") };
            config.build(&variable).unwrap().account
        };
        let small = r#"{"provider":"openai","model":"small","api_key_env":"KEY"}"#;
        let large = r#"{"provider":"openai","model":"large","api_key_env":"KEY"}"#;
        let elsewhere =
            r#"{"provider":"openai","model":"small","api_key_env":"KEY","base_url":"https://example.com/v1"}"#;
        assert_eq!(account(small, "sk-1"), account(large, "sk-1"));
        assert_ne!(account(small, "sk-1"), account(small, "sk-2"));
        assert_ne!(account(small, "sk-1"), account(elsewhere, "sk-1"));
        assert!(!account(small, "sk-1").contains("sk-1"));
    }
}
