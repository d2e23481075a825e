//! `spec.model`: which model, where, and at what price.

use super::scalar::{Dollars, Duration, Temperature};
use loopd_kernel::units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The model of an Agent. Plain data: whoever has the providers builds a client from it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Written", into = "Written")]
pub struct Model {
    /// Who runs it.
    pub provider: Provider,
    /// The sampling temperature.
    pub temperature: Option<Temperature>,
    /// The largest number of output tokens of one reply, reasoning included.
    pub max_output_tokens: u64,
    /// Whether replies are streamed to whoever watches.
    pub stream: bool,
    /// The price; without it the provider's list is asked.
    pub price: Option<Price>,
    /// The most tokens of one call, prompt and reply together; without it the provider's list is asked.
    pub context_window: Option<u64>,
    /// How long one attempt may take; without it the provider's default.
    pub timeout: Option<Duration>,
    /// Attempts before a call fails; without it the provider's default.
    pub attempts: Option<u32>,
    /// The file that holds the key, as written: relative to the manifest.
    pub api_key_file: Option<String>,
    /// How its server is reached beyond the address, and what is kept of what it says.
    pub connection: Connection,
}

/// How a server is reached beyond its address, and what is kept of what it says.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(
    default,
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "a mapping of caFile, proxy and keepExchange"
)]
pub struct Connection {
    /// A file of certificates in PEM form, relative to the manifest: authorities that are trusted besides the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// The proxy as a URL, or `none`; without it, that of the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Whether the exact bodies of requests and responses are kept in the store.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_exchange: bool,
}

impl Connection {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Who runs a model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Provider {
    /// Any server that speaks one of OpenAI's two protocols.
    OpenAi {
        /// Which one.
        api: OpenAiApi,
        /// The model's name there.
        name: String,
        /// Where the server is; without it OpenAI's own.
        base_url: Option<String>,
        /// The environment variable that holds the key; without it, no key is sent but to OpenAI's own server.
        api_key_env: Option<String>,
    },
    /// Any server that speaks Anthropic's Messages API.
    Anthropic {
        /// The model's name there.
        name: String,
        /// Where the server is; without it Anthropic's own.
        base_url: Option<String>,
        /// The environment variable that holds the key; without it, no key is sent but to Anthropic's own server.
        api_key_env: Option<String>,
    },
    /// Any server that speaks Gemini's `generateContent`.
    Gemini {
        /// The model's name there.
        name: String,
        /// Where the server is; without it Google's own.
        base_url: Option<String>,
        /// The environment variable that holds the key; without it, no key is sent but to Google's own server.
        api_key_env: Option<String>,
    },
    /// Scripted replies, for demonstrations without a model.
    Demo {
        /// The script's file, relative to the manifest.
        script: String,
    },
}

/// The protocol of a server with OpenAI's interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OpenAiApi {
    /// `chat`: chat completions, which almost every server has.
    #[default]
    #[serde(rename = "chat")]
    Completions,
    /// The Responses API, without anything stored at the server.
    Responses,
}

/// Output tokens of one reply where the manifest does not say.
pub const DEFAULT_MAX_OUTPUT_TOKENS: u64 = 4096;

impl Model {
    /// The name under which a Run calls the model and a worker offers it.
    #[must_use]
    pub fn key(&self) -> String {
        match &self.provider {
            Provider::OpenAi { api: OpenAiApi::Completions, name, .. } => format!("openai/{name}"),
            Provider::OpenAi { api: OpenAiApi::Responses, name, .. } => format!("openai+responses/{name}"),
            Provider::Anthropic { name, .. } => format!("anthropic/{name}"),
            Provider::Gemini { name, .. } => format!("gemini/{name}"),
            Provider::Demo { .. } => "demo".into(),
        }
    }
}

/// Prices in dollars per million tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "a mapping with inputPerMillion and outputPerMillion"
)]
pub struct Price {
    /// Uncached input.
    pub input_per_million: Dollars,
    /// Output.
    pub output_per_million: Dollars,
    /// Input read from the provider's cache; as `inputPerMillion` where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_per_million: Option<Dollars>,
    /// Input written to the provider's cache; as `inputPerMillion` where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_per_million: Option<Dollars>,
    /// Reasoning; as `outputPerMillion` where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_per_million: Option<Dollars>,
}

impl Price {
    /// The price of every usage class. A class without a price of its own costs what its nearest one costs,
    /// never nothing.
    #[must_use]
    pub fn to_kernel(&self) -> units::Price {
        let (input, output) = (self.input_per_million.0.0, self.output_per_million.0.0);
        let or = |own: Option<Dollars>, other: u64| own.map_or(other, |dollars| dollars.0.0);
        units::Price {
            input,
            cache_read: or(self.cache_read_per_million, input),
            cache_write: or(self.cache_write_per_million, input),
            output,
            reasoning: or(self.reasoning_per_million, output),
        }
    }
}

/// The model as it is written: flat, so that YAML errors keep their place.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(
    rename = "Model",
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "a mapping with provider and name, or with provider `demo` and script"
)]
#[schemars(extend("oneOf" = [
    { "properties": { "provider": { "const": "openai" }, "script": false },
      "required": ["name"] },
    { "properties": { "provider": { "enum": ["anthropic", "gemini"] }, "api": false, "script": false },
      "required": ["name"] },
    { "properties": { "provider": { "const": "demo" }, "api": false, "name": false, "baseUrl": false, "apiKeyEnv": false, "apiKeyFile": false, "connection": false },
      "required": ["script"] },
]))]
struct Written {
    /// Who runs it: `openai`, `anthropic` and `gemini` are any server with their interface, `demo` answers from a script.
    provider: ProviderName,
    /// Which of OpenAI's protocols the server speaks: `chat` completions, or `responses`. Only for `openai`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    api: Option<OpenAiApi>,
    /// The model's name at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Where the server is, up to and with `/v1` (`gemini`: `/v1beta`); without it, the provider's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_url: Option<String>,
    /// The environment variable that holds the key, never the key itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    api_key_env: Option<String>,
    /// The file that holds the key and nothing else, relative to the manifest; in place of `apiKeyEnv`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    api_key_file: Option<String>,
    /// The file of scripted replies, relative to the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    script: Option<String>,
    /// The sampling temperature; without it, the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temperature: Option<Temperature>,
    /// The largest number of output tokens of one reply, reasoning included.
    #[serde(default = "max_output_tokens")]
    #[schemars(range(min = 1))]
    max_output_tokens: u64,
    /// Whether replies are streamed to whoever watches.
    #[serde(default = "yes")]
    stream: bool,
    /// The price. It is needed where a money limit is set and the provider's list does not know the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price: Option<Price>,
    /// The most tokens that the model takes in one call, prompt and reply together, where the provider's list does not
    /// know it or is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    context_window: Option<u64>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<Duration>,
    /// Attempts before a call fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    attempts: Option<u32>,
    /// How the server is reached beyond its address, and what is kept of what it says.
    #[serde(default, skip_serializing_if = "Connection::is_default")]
    connection: Connection,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ProviderName {
    OpenAi,
    Anthropic,
    Gemini,
    Demo,
}

impl ProviderName {
    const fn word(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Demo => "demo",
        }
    }
}

const fn yes() -> bool {
    true
}

const fn max_output_tokens() -> u64 {
    DEFAULT_MAX_OUTPUT_TOKENS
}

impl Written {
    /// Name, address and key variable of a model behind a server.
    fn server(&mut self) -> Result<(String, Option<String>, Option<String>), String> {
        if self.api_key_env.is_some() && self.api_key_file.is_some() {
            return Err("the key is in `apiKeyEnv` or in `apiKeyFile`, not in both".into());
        }
        if self.script.is_some() {
            return Err("`script` belongs to provider `demo`".into());
        }
        let word = self.provider.word();
        if self.api.is_some() {
            return Err(format!("`api` belongs to provider `openai`; `{word}` has one only"));
        }
        let missing = || format!("provider `{word}` needs `name`, the model's name at the server");
        let name = self.name.take().ok_or_else(missing)?;
        Ok((name, self.base_url.take(), self.api_key_env.take()))
    }
}

impl TryFrom<Written> for Model {
    type Error = String;

    fn try_from(mut written: Written) -> Result<Self, String> {
        let provider = match written.provider {
            ProviderName::OpenAi => {
                let api = written.api.take().unwrap_or_default();
                let (name, base_url, api_key_env) = written.server()?;
                Provider::OpenAi { api, name, base_url, api_key_env }
            }
            ProviderName::Anthropic => {
                let (name, base_url, api_key_env) = written.server()?;
                Provider::Anthropic { name, base_url, api_key_env }
            }
            ProviderName::Gemini => {
                let (name, base_url, api_key_env) = written.server()?;
                Provider::Gemini { name, base_url, api_key_env }
            }
            ProviderName::Demo => {
                let other = [
                    ("api", written.api.is_some()),
                    ("name", written.name.is_some()),
                    ("baseUrl", written.base_url.is_some()),
                    ("apiKeyEnv", written.api_key_env.is_some()),
                    ("apiKeyFile", written.api_key_file.is_some()),
                    ("connection", !written.connection.is_default()),
                ];
                if let Some((field, _)) = other.iter().find(|(_, given)| *given) {
                    return Err(format!("`{field}` does not belong to provider `demo`, which answers from its script"));
                }
                let script = written.script.ok_or("provider `demo` needs `script`, the file of its replies")?;
                Provider::Demo { script }
            }
        };
        Ok(Self {
            provider,
            temperature: written.temperature,
            max_output_tokens: written.max_output_tokens,
            stream: written.stream,
            price: written.price,
            context_window: written.context_window,
            timeout: written.timeout,
            attempts: written.attempts,
            api_key_file: written.api_key_file,
            connection: written.connection,
        })
    }
}

impl From<Model> for Written {
    fn from(model: Model) -> Self {
        let api = match &model.provider {
            // What is usual is not written: definitions that exist keep their bytes.
            Provider::OpenAi { api, .. } => Some(*api).filter(|api| *api != OpenAiApi::default()),
            Provider::Anthropic { .. } | Provider::Gemini { .. } | Provider::Demo { .. } => None,
        };
        let (provider, name, base_url, api_key_env, script) = match model.provider {
            Provider::OpenAi { name, base_url, api_key_env, .. } => {
                (ProviderName::OpenAi, Some(name), base_url, api_key_env, None)
            }
            Provider::Anthropic { name, base_url, api_key_env } => {
                (ProviderName::Anthropic, Some(name), base_url, api_key_env, None)
            }
            Provider::Gemini { name, base_url, api_key_env } => {
                (ProviderName::Gemini, Some(name), base_url, api_key_env, None)
            }
            Provider::Demo { script } => (ProviderName::Demo, None, None, None, Some(script)),
        };
        Self {
            provider,
            api,
            name,
            base_url,
            api_key_env,
            script,
            temperature: model.temperature,
            max_output_tokens: model.max_output_tokens,
            stream: model.stream,
            price: model.price,
            context_window: model.context_window,
            timeout: model.timeout,
            attempts: model.attempts,
            api_key_file: model.api_key_file,
            connection: model.connection,
        }
    }
}
