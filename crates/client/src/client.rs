//! One request, one answer.

use crate::Error;
use loopd_protocol::Problem;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, IF_MATCH};
use reqwest::{Method, RequestBuilder, Response, Url, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::time::Duration;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a whole answer may take.
const ANSWER: Duration = Duration::from_secs(60);
/// The header of keys that make a request safe to send again.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A server and who asks it. Clones share their connections.
///
/// Redirects are not followed, and a server on loopback is reached without a proxy: the token goes where the address
/// says and nowhere else.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    server: Url,
    token: Option<HeaderValue>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.server.as_str()).finish_non_exhaustive()
    }
}

impl Client {
    /// A client of the server at this address, `http://HOST:PORT`, with this token.
    ///
    /// # Errors
    /// [`Error::Address`] when either cannot be used.
    pub fn new(server: &str, token: Option<&str>) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Address(format!("`{server}` is no address of a server: {why}"));
        let text = if server.contains("://") { server.to_owned() } else { format!("http://{server}") };
        let url = Url::parse(&text).map_err(|error| wrong(&error.to_string()))?;
        let is_bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        if !matches!(url.scheme(), "http" | "https") || !is_bare || !url.username().is_empty() {
            return Err(wrong("write http://HOST:PORT or https://HOST"));
        }
        let token = token.map(|token| HeaderValue::from_str(&format!("Bearer {}", token.trim()))).transpose();
        let mut token = token.map_err(|_| Error::Address("the token holds what no token holds".to_owned()))?;
        if let Some(token) = &mut token {
            token.set_sensitive(true);
        }
        let builder = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .redirect(redirect::Policy::none())
            .user_agent(concat!("loopd-client/", env!("CARGO_PKG_VERSION")));
        let builder = if is_loopback(&url) { builder.no_proxy() } else { builder };
        let http = builder.build().map_err(|error| Error::Address(error.to_string()))?;
        Ok(Self { http, server: url, token })
    }

    /// The address, as it is written for people.
    #[must_use]
    pub fn server(&self) -> &str {
        self.server.as_str().trim_end_matches('/')
    }

    /// Whether the server is on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        is_loopback(&self.server)
    }

    pub(crate) fn request(&self, method: Method, path: &str, query: &[(&str, &str)]) -> RequestBuilder {
        let mut url = self.server.clone();
        url.set_path(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url);
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, token.clone()),
            None => request,
        }
    }

    /// A body of JSON, and what makes it safe to send again or keeps it from overwriting.
    pub(crate) fn write(&self, method: Method, path: &str, body: &impl Serialize) -> Result<RequestBuilder, Error> {
        let body = serde_json::to_vec(body).map_err(|error| Error::Strange(error.to_string()))?;
        Ok(self.request(method, path, &[]).header(CONTENT_TYPE, "application/json").body(body))
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Names the request, so that sending it again does nothing twice.
pub(crate) fn keyed(request: RequestBuilder, key: &str) -> RequestBuilder {
    if key.is_empty() { request } else { request.header(IDEMPOTENCY_KEY, key) }
}

/// Lets the change pass only where nobody else was faster.
pub(crate) fn matching(request: RequestBuilder, revision: Option<u64>) -> RequestBuilder {
    match revision {
        Some(revision) => request.header(IF_MATCH, format!("\"{revision}\"")),
        None => request,
    }
}

/// Sends it, and reads the answer as JSON.
pub(crate) async fn read<T: DeserializeOwned>(request: RequestBuilder) -> Result<T, Error> {
    let response = send(request.header(ACCEPT, "application/json").timeout(ANSWER)).await?;
    let body = response.bytes().await.map_err(Error::unreachable)?;
    serde_json::from_slice(&body)
        .map_err(|error| Error::Strange(format!("the server answered with what this client does not know: {error}")))
}

/// Sends it, and reads the answer as it stands.
pub(crate) async fn read_text(request: RequestBuilder) -> Result<String, Error> {
    send(request.timeout(ANSWER)).await?.text().await.map_err(Error::unreachable)
}

/// Sends it; a refusal is an error.
pub(crate) async fn send(request: RequestBuilder) -> Result<Response, Error> {
    let response = request.send().await.map_err(Error::unreachable)?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = response.bytes().await.map_err(Error::unreachable)?;
    match serde_json::from_slice::<Problem>(&body) {
        Ok(problem) => Err(Error::Refused(Box::new(problem))),
        Err(_) => Err(Error::Strange(format!("the answer is {status}, and not one of a loopd server"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_server_and_nothing_more() {
        let server = |text: &str| Client::new(text, Some("loopd_x")).map(|client| client.server().to_owned());
        assert_eq!(server("127.0.0.1:7717"), Ok("http://127.0.0.1:7717".to_owned()));
        assert_eq!(server("https://loopd.example/"), Ok("https://loopd.example".to_owned()));
        for wrong in ["", "ftp://x", "http://", "http://a/b", "http://a?b=c", "http://me:pw@a"] {
            assert!(matches!(server(wrong), Err(Error::Address(_))), "{wrong}");
        }
        assert!(matches!(Client::new("http://a", Some("x\ny")), Err(Error::Address(_))));
    }

    #[test]
    fn a_token_never_shows() {
        let client = Client::new("http://localhost:1", Some("loopd_secret")).expect("an address");
        assert!(client.is_local());
        assert!(!format!("{client:?}").contains("secret"));
    }
}
