//! What settings of a server become: its address, its key, a client for it. The same for every provider.

use crate::config::{ConfigError, Connection, Headers};
use crate::key::ApiKey;
use loopd_kernel::Digest;
use loopd_kernel::machine::ModelTerms;
use loopd_kernel::units::Price;
use loopd_runtime::ModelError;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Url, redirect, retry};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// A setting that cannot be right.
pub(crate) fn wrong(setting: &'static str, problem: impl Into<String>) -> ConfigError {
    ConfigError::Setting { setting, problem: problem.into() }
}

/// How a call is bounded.
pub(crate) fn terms(price: Option<Price>, timeout_ms: Option<u64>, max_attempts: Option<u32>) -> ModelTerms {
    ModelTerms { price, timeout_ms: timeout_ms.unwrap_or(300_000), max_attempts: max_attempts.unwrap_or(4) }
}

/// The address of a server: the given one, or the provider's `own`.
pub(crate) fn base(given: Option<&str>, own: &str) -> Result<Url, ConfigError> {
    let url: Url = given.unwrap_or(own).parse().map_err(|error| wrong("base_url", format!("{error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("base_url", "must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("base_url", "must hold no password; use api_key_env or api_key_file"));
    }
    Ok(url)
}

/// The endpoint below `base`, whose query stays: Azure keeps its API version there.
pub(crate) fn endpoint(mut base: Url, path: &[&str]) -> Url {
    if let Ok(mut segments) = base.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    base
}

/// The key from where the settings say; `usual` is the variable where they say nothing.
pub(crate) fn key(
    name: Option<&str>,
    file: Option<&Path>,
    usual: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<ApiKey>, ConfigError> {
    Ok(match (name, file) {
        (Some(_), Some(_)) => return Err(wrong("api_key_file", "there is api_key_env besides; give one of them")),
        (None, Some(path)) => Some(ApiKey::from_file(path)?),
        (name, None) => name.or(usual).map(|name| ApiKey::from_variable(name, variable)).transpose()?,
    })
}

/// A key that goes over the network in the clear is worth a word.
pub(crate) fn warn_of_open_keys(base: &Url, key: Option<&ApiKey>) {
    if key.is_some() && base.scheme() == "http" && !is_loopback(base) {
        tracing::warn!(host = base.host_str(), "the API key goes over an unencrypted connection");
    }
}

/// Who serves the model, as reasoning remembers it: the given name, the provider's `own` at its own server, or the host.
pub(crate) fn vendor(given: Option<&str>, own: Option<&str>, base: &Url) -> String {
    let host = || base.authority().rsplit('@').next().unwrap_or_default();
    given.or(own).unwrap_or_else(host).to_owned()
}

/// What shares rate limits: the server and the account there. The key itself stays out of it.
pub(crate) fn account(base: &Url, key: Option<&ApiKey>) -> String {
    let key = key.map_or("", ApiKey::reveal);
    format!("{} {}", base.origin().ascii_serialization(), Digest::of("loopd-account/1", &[key.as_bytes()]).text())
}

/// Additional headers, as values that show nowhere.
pub(crate) fn headers(headers: &Headers) -> Result<HeaderMap, ConfigError> {
    let mut map = HeaderMap::new();
    for (name, text) in &headers.0 {
        // The value may be a secret: it is neither in the message nor in debugging output.
        let name: HeaderName =
            name.parse().map_err(|_| wrong("headers", format!("{name:?} is no name of a header")))?;
        let mut value = HeaderValue::from_str(text)
            .map_err(|_| wrong("headers", format!("the value of {name} holds what no header may hold")))?;
        value.set_sensitive(true);
        map.insert(name, value);
    }
    Ok(map)
}

/// A client for the server at `base`.
pub(crate) fn client(
    base: &Url,
    connect_timeout_ms: Option<u64>,
    connection: &Connection,
) -> Result<reqwest::Client, ConfigError> {
    let builder = reqwest::Client::builder()
        .user_agent(concat!("loopd/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(Duration::from_millis(connect_timeout_ms.unwrap_or(10_000)))
        // One call is one request: retries are the runtime's, which records them, and a key follows no redirect.
        .retry(retry::never())
        .redirect(redirect::Policy::none());
    // A proxy of the system has no business with a server on this machine.
    let builder = match connection.proxy.as_deref() {
        None if is_loopback(base) => builder.no_proxy(),
        None => builder,
        Some("none") => builder.no_proxy(),
        Some(proxy) => builder.proxy(self::proxy(proxy)?),
    };
    let builder = match &connection.ca_file {
        Some(file) => builder.tls_certs_merge(authorities(file)?),
        None => builder,
    };
    builder.build().map_err(ConfigError::Client)
}

fn proxy(text: &str) -> Result<reqwest::Proxy, ConfigError> {
    let url: Url = text.parse().map_err(|error| wrong("connection.proxy", format!("{error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("connection.proxy", "must begin with http:// or https://, or be `none`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("connection.proxy", "must hold no password; HTTPS_PROXY in the environment may"));
    }
    reqwest::Proxy::all(url).map_err(ConfigError::Client)
}

/// The certificates of a file.
fn authorities(file: &Path) -> Result<Vec<reqwest::Certificate>, ConfigError> {
    let name = file.display();
    let pem = std::fs::read(file).map_err(|error| wrong("connection.ca_file", format!("{name}: {error}")))?;
    let certificates = reqwest::Certificate::from_pem_bundle(&pem).unwrap_or_default();
    if certificates.is_empty() {
        return Err(wrong("connection.ca_file", format!("{name} holds no certificate in PEM form")));
    }
    Ok(certificates)
}

/// One request with a JSON body, without its key.
pub(crate) fn request(
    client: &reqwest::Client,
    endpoint: &Url,
    headers: &HeaderMap,
    stream: bool,
    body: String,
) -> reqwest::RequestBuilder {
    let accept = if stream { "text/event-stream" } else { "application/json" };
    let request = client.post(endpoint.clone()).headers(headers.clone());
    request.header(CONTENT_TYPE, "application/json").header(ACCEPT, accept).body(body)
}

/// The same with its key in the header `name`, as a value that shows nowhere.
///
/// # Errors
/// `Unauthorised` when no header may hold it.
pub(crate) fn with_key(
    request: reqwest::RequestBuilder,
    name: HeaderName,
    text: &str,
) -> Result<reqwest::RequestBuilder, ModelError> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| ModelError::Unauthorised("the API key holds characters that no header may hold".into()))?;
    value.set_sensitive(true);
    Ok(request.header(name, value))
}

/// The same with its key as OpenAI takes it: the bare key in the header `name` where there is one, else behind `Bearer`.
///
/// # Errors
/// `Unauthorised` when no header may hold it.
pub(crate) fn with_bearer(
    request: reqwest::RequestBuilder,
    key: Option<&ApiKey>,
    name: Option<&HeaderName>,
) -> Result<reqwest::RequestBuilder, ModelError> {
    match (key, name) {
        (None, _) => Ok(request),
        (Some(key), Some(name)) => with_key(request, name.clone(), key.reveal()),
        (Some(key), None) => with_key(request, AUTHORIZATION, &format!("Bearer {}", key.reveal())),
    }
}

/// What must not show in an error message, in case a server repeats it.
pub(crate) fn secrets<'a>(key: Option<&'a ApiKey>, headers: &'a HeaderMap) -> Vec<&'a str> {
    let headers = headers.values().filter_map(|value| value.to_str().ok()).filter(|text| text.len() >= 8);
    key.into_iter().map(ApiKey::reveal).chain(headers).collect()
}

/// Members that people may add to a request, unless the adapter writes them itself.
pub(crate) fn refuse_own(
    setting: &'static str,
    given: &BTreeMap<String, serde_json::Value>,
    own: &[&str],
) -> Result<(), ConfigError> {
    match given.keys().find(|name| own.contains(&name.as_str())) {
        Some(name) => Err(wrong(setting, format!("`{name}` is not for you to set here"))),
        None => Ok(()),
    }
}

/// Whether a server is on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    match address {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}
