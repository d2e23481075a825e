//! From settings to a model.

use super::request::{OWN_MEMBERS, OWN_SETTINGS};
use super::{Gemini, KEY_HEADER};
use crate::catalogue::{Catalogue, ModelFacts};
use crate::config::{ConfigError, Connection, Headers};
use crate::connect::{self, terms, wrong};
use crate::price::DeclaredPrice;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

const GOOGLE: &str = "https://generativelanguage.googleapis.com/v1beta";
const GOOGLE_HOST: &str = "generativelanguage.googleapis.com";

/// Settings of a server that speaks Gemini's `generateContent`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeminiConfig {
    /// The model, by the server's name, with or without `models/` before it.
    pub model: String,
    /// Where the server is, up to and with `/v1beta`: Google's own when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Who serves it, as reasoning remembers it: `gemini`, or the host of `base_url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// The environment variable with the key: `GEMINI_API_KEY` for Google's own server, no key else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// The file with the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_file: Option<PathBuf>,
    /// More headers.
    #[serde(default)]
    pub headers: Headers,
    /// More members of `generationConfig`, for example `{"thinkingConfig": {"thinkingLevel": "LOW"}}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub generation_config: BTreeMap<String, serde_json::Value>,
    /// More members of the request, for example `safetySettings`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_body: BTreeMap<String, serde_json::Value>,
    /// Whether to stream: true. What is shown while it works depends on it, the answer does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Whether the schema of an answer is sent: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<bool>,
    /// Whether it is sent while tools are offered: true from Gemini 3 on; earlier models refuse both together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_with_tools: Option<bool>,
    /// Whether tool uses in the history that the model did not sign get the signature by which Google lets them pass:
    /// true from Gemini 3 on; earlier models demand none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in_signatures: Option<bool>,
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

impl GeminiConfig {
    /// `model` at Google's own server, everything else as usual.
    #[must_use]
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            base_url: None,
            vendor: None,
            api_key_env: None,
            api_key_file: None,
            headers: Headers::default(),
            generation_config: BTreeMap::new(),
            extra_body: BTreeMap::new(),
            stream: None,
            structured_output: None,
            schema_with_tools: None,
            stand_in_signatures: None,
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
        let base = self.base()?;
        let known = catalogue.lookup_at(base.as_str(), self.name()).unwrap_or_default();
        Ok(known.declared(self.price, self.context_window))
    }

    /// Makes the model; `variable` looks environment variables up.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn build(&self, variable: &dyn Fn(&str) -> Option<String>) -> Result<Gemini, ConfigError> {
        self.build_in(variable, &Catalogue::default())
    }

    /// [`GeminiConfig::build`] with what is known of models besides the embedded table.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn build_in(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
        catalogue: &Catalogue,
    ) -> Result<Gemini, ConfigError> {
        let model = self.name();
        if model.is_empty() {
            return Err(wrong("model", "is empty"));
        }
        connect::refuse_own("extra_body", &self.extra_body, &OWN_MEMBERS)?;
        connect::refuse_own("generation_config", &self.generation_config, &OWN_SETTINGS)?;
        let base = self.base()?;
        let headers = connect::headers(&self.headers)?;
        if headers.contains_key(KEY_HEADER) {
            return Err(wrong("headers", format!("{KEY_HEADER} is for the key; use api_key_env or api_key_file")));
        }
        let is_google = base.host_str() == Some(GOOGLE_HOST);
        let usual = is_google.then_some("GEMINI_API_KEY");
        let key = connect::key(self.api_key_env.as_deref(), self.api_key_file.as_deref(), usual, variable)?;
        connect::warn_of_open_keys(&base, key.as_ref());
        let vendor = connect::vendor(self.vendor.as_deref(), is_google.then_some("gemini"), &base);
        let stream = self.stream.unwrap_or(true);
        let is_early = !model.starts_with("gemini-") || model.starts_with("gemini-1") || model.starts_with("gemini-2");
        let facts = self.facts(catalogue)?;
        facts.warn(&self.model);
        Ok(Gemini {
            client: connect::client(&base, self.connect_timeout_ms, &self.connection)?,
            keep_exchange: self.connection.keep_exchange,
            endpoint: endpoint(base.clone(), model, stream),
            origin: format!("{vendor}/{model}"),
            account: connect::account(&base, key.as_ref()),
            key,
            headers,
            terms: terms(facts.price(), self.timeout_ms, self.max_attempts),
            facts,
            idle_timeout: Duration::from_millis(self.idle_timeout_ms.unwrap_or(60_000)),
            stream,
            structured_output: self.structured_output.unwrap_or(true),
            schema_with_tools: self.schema_with_tools.unwrap_or(!is_early),
            stand_in_signatures: self.stand_in_signatures.unwrap_or(!is_early),
            generation_config: self.generation_config.clone(),
            extra_body: self.extra_body.clone(),
        })
    }

    fn name(&self) -> &str {
        self.model.strip_prefix("models/").unwrap_or(&self.model)
    }

    fn base(&self) -> Result<Url, ConfigError> {
        let url = connect::base(self.base_url.as_deref(), GOOGLE)?;
        // Google's documents show the key there; an address ends up in logs.
        if url.query_pairs().any(|(name, _)| name == "key") {
            return Err(wrong("base_url", "must hold no key; use api_key_env or api_key_file"));
        }
        Ok(url)
    }
}

/// The endpoint below `base`, whose query stays. A name with a folder, for example of a tuned model, stands for itself.
fn endpoint(base: Url, model: &str, stream: bool) -> Url {
    let method = if stream { "streamGenerateContent" } else { "generateContent" };
    let folder = (!model.contains('/')).then_some("models");
    let path = format!("{model}:{method}");
    let path: Vec<&str> = folder.into_iter().chain(path.split('/')).collect();
    let mut endpoint = connect::endpoint(base, &path);
    if stream {
        endpoint.query_pairs_mut().append_pair("alt", "sse");
    }
    endpoint
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// A configuration in, what the model makes of it or the error out. `KEY` and `GEMINI_API_KEY` are set to `AIza-1`.
    #[track_caller]
    fn check(json: &str, expect: Expect) {
        let variable = |name: &str| (name == "KEY" || name == "GEMINI_API_KEY").then(|| "AIza-1".to_owned());
        let shown = match serde_json::from_str::<GeminiConfig>(json) {
            Err(error) => error.to_string(),
            Ok(config) => match config.build(&variable) {
                Err(error) => error.to_string(),
                Ok(model) => {
                    let debug = format!("{model:?}{config:?}");
                    assert!(!debug.contains("AIza-1") && !debug.contains("hush"), "{debug}");
                    let price = model.terms.price.map(|price| (price.input, price.cache_read, price.output));
                    format!(
                        "{}\nas {}, key {}, price {price:?}, stand-ins {}, schema with tools {}",
                        model.endpoint,
                        model.origin,
                        model.key.is_some(),
                        model.stand_in_signatures,
                        model.schema_with_tools,
                    )
                }
            },
        };
        expect.assert_eq(&shown);
    }

    #[test]
    fn google_needs_a_name_and_a_key() {
        check(
            r#"{"model": "gemini-2.5-flash"}"#,
            expect![[r#"
            https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse
            as gemini/gemini-2.5-flash, key true, price Some((300000, 30000, 2500000)), stand-ins false, schema with tools false"#]],
        );
        check(
            r#"{"model": "models/gemini-3-flash-preview", "stream": false}"#,
            expect![[r#"
            https://generativelanguage.googleapis.com/v1beta/models/gemini-3-flash-preview:generateContent
            as gemini/gemini-3-flash-preview, key true, price Some((500000, 50000, 3000000)), stand-ins true, schema with tools true"#]],
        );
        check(
            r#"{"model": "gemini-2.5-flash", "api_key_env": "NO_KEY"}"#,
            expect!["no API key: set the environment variable NO_KEY"],
        );
        check(
            r#"{"model": "gemini-99-imaginary"}"#,
            expect![[r#"
            https://generativelanguage.googleapis.com/v1beta/models/gemini-99-imaginary:streamGenerateContent?alt=sse
            as gemini/gemini-99-imaginary, key true, price None, stand-ins true, schema with tools true"#]],
        );
        check(
            r#"{"model": "tunedModels/a b", "stream": false}"#,
            expect![[r#"
            https://generativelanguage.googleapis.com/v1beta/tunedModels/a%20b:generateContent
            as gemini/tunedModels/a b, key true, price None, stand-ins false, schema with tools false"#]],
        );
    }

    #[test]
    fn other_servers_have_no_key_and_no_price_unless_told() {
        check(
            r#"{"model": "gemini-2.5-flash", "base_url": "http://127.0.0.1:8080/v1beta/?team=a"}"#,
            expect![[r#"
            http://127.0.0.1:8080/v1beta/models/gemini-2.5-flash:streamGenerateContent?team=a&alt=sse
            as 127.0.0.1:8080/gemini-2.5-flash, key false, price None, stand-ins false, schema with tools false"#]],
        );
        check(
            r#"{"model": "gemini-2.5-flash", "base_url": "https://models.example.com", "vendor": "me", "api_key_env": "KEY", "headers": {"x-a": "hush"}, "price": {"input": 1, "output": 2}}"#,
            expect![[r#"
                https://models.example.com/models/gemini-2.5-flash:streamGenerateContent?alt=sse
                as me/gemini-2.5-flash, key true, price Some((1000000, 1000000, 2000000)), stand-ins false, schema with tools false"#]],
        );
    }

    #[test]
    fn what_cannot_be_right_is_said() {
        for (json, problem) in [
            (r#"{"model": ""}"#, "model: is empty"),
            (r#"{"model": "m", "modle": 1}"#, "unknown field"),
            (r#"{"model": "m", "base_url": "https://a/?key=AIza-1"}"#, "no key"),
            (r#"{"model": "m", "base_url": "https://a:b@c/"}"#, "no password"),
            (r#"{"model": "m", "base_url": "file:///etc"}"#, "must begin with"),
            (r#"{"model": "m", "api_key_env": "KEY", "api_key_file": "k"}"#, "give one of them"),
            (r#"{"model": "m", "extra_body": {"tools": []}}"#, "extra_body: `tools` is not for you"),
            (r#"{"model": "m", "generation_config": {"temperature": 1}}"#, "generation_config: `temperature`"),
            (r#"{"model": "m", "headers": {"X-Goog-Api-Key": "hush"}}"#, "is for the key"),
        ] {
            let config = serde_json::from_str::<GeminiConfig>(json).map_err(|error| error.to_string());
            let error = match config {
                Ok(config) => config.build(&|_| Some("AIza-1".into())).expect_err(json).to_string(),
                Err(error) => error,
            };
            assert!(error.contains(problem) && !error.contains("hush"), "{json}: {error}");
        }
    }

    #[test]
    fn models_of_one_account_share_their_limits() {
        let account = |model: &str, key: &str| {
            GeminiConfig::new(model).build(&|_| Some(key.to_owned())).expect("a model").account
        };
        assert_eq!(account("gemini-a", "AIza-1"), account("gemini-b", "AIza-1"));
        assert_ne!(account("gemini-a", "AIza-1"), account("gemini-a", "AIza-2"));
        assert!(!account("gemini-a", "AIza-1").contains("AIza-1"));
    }

    #[test]
    fn settings_read_what_they_write() {
        let config = crate::ModelConfig::Gemini(GeminiConfig::new("m").at("http://localhost"));
        let text = serde_json::to_string(&config).expect("JSON");
        assert!(text.contains(r#""provider":"gemini""#), "{text}");
        assert_eq!(serde_json::from_str::<crate::ModelConfig>(&text).expect("again"), config);
    }
}
