//! From a URL to a response, by checked addresses only.

use super::HttpConfig;
use super::address::may_be_reached;
use super::body::{self, Fetched};
use loopd_runtime::ToolError;
use reqwest::dns::{Addrs, Name, Resolve as ReqwestResolve, Resolving};
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue, LOCATION, USER_AGENT};
use reqwest::{Client, Response, Url};
use std::error::Error as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// Bytes of a URL.
const MAX_URL: usize = 8 * 1024;

/// Characters of a URL that an error shows.
const SHOWN: usize = 200;

/// One call.
pub(super) struct Fetch<'a> {
    pub(super) config: &'a HttpConfig,
}

/// The addresses that were checked, whatever the name.
struct Pinned(Vec<IpAddr>);

impl ReqwestResolve for Pinned {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Vec<SocketAddr> = self.0.iter().map(|address| SocketAddr::new(*address, 0)).collect();
        Box::pin(async move { Ok(Box::new(addresses.into_iter()) as Addrs) })
    }
}

impl Fetch<'_> {
    /// Follows redirects to a response that is none, and reads it.
    pub(super) async fn get(&self, url: &str) -> Result<Fetched, ToolError> {
        if url.len() > MAX_URL {
            return Err(error("http.invalid_url", format!("a URL has at most {MAX_URL} bytes")));
        }
        let mut url =
            Url::parse(url).map_err(|why| error("http.invalid_url", format!("`{}` is no URL: {why}", shown(url))))?;
        for _ in 0..=MAX_REDIRECTS {
            url.set_fragment(None);
            let response = self.ask(&url).await?;
            match next(&url, &response)? {
                Some(next) => url = next,
                None => return body::read(url, response, self.config.max_bytes).await,
            }
        }
        Err(error(
            "http.redirects",
            format!("more than {MAX_REDIRECTS} redirects, the last one to {}", shown(url.as_str())),
        ))
    }

    async fn ask(&self, url: &Url) -> Result<Response, ToolError> {
        let addresses = self.check(url).await?;
        let client = Client::builder()
            .dns_resolver(Arc::new(Pinned(addresses)))
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .default_headers(headers())
            .build()
            .map_err(|why| error("http.client", because(&why)))?;
        client.get(url.clone()).send().await.map_err(|why| {
            error("http.unreachable", format!("{} did not answer: {}", shown(url.as_str()), because(&why)))
        })
    }

    /// The addresses of the URL's host, each of which may be reached.
    async fn check(&self, url: &Url) -> Result<Vec<IpAddr>, ToolError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(error("http.scheme", format!("`{}:` is not read, only http and https", shown(url.scheme()))));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(error("http.credentials", "a URL holds no user and no password here".into()));
        }
        let host = url.host_str().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if !self.is_allowed(host) {
            let message = format!("{} may not be asked; the hosts are {}", shown(host), self.config.hosts.join(", "));
            return Err(error("http.host", message));
        }
        let addresses = match host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => self
                .config
                .resolver
                .resolve(host)
                .await
                .map_err(|why| error("http.dns", format!("the name {} has no address: {why}", shown(host))))?,
        };
        if addresses.is_empty() {
            return Err(error("http.dns", format!("the name {} has no address", shown(host))));
        }
        match addresses.iter().find(|address| !may_be_reached(**address, &self.config.addresses)) {
            // One bad address spoils all: whoever runs the name chooses which one a client takes.
            Some(address) => {
                let message = format!("{} is at {address}, which is not a public address", shown(host));
                Err(error("http.address", message))
            }
            None => Ok(addresses),
        }
    }

    fn is_allowed(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        let fits = |pattern: &String| {
            let pattern = pattern.to_ascii_lowercase();
            match pattern.strip_prefix("*.") {
                Some(domain) => host.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
                None => host == pattern,
            }
        };
        self.config.hosts.is_empty() || self.config.hosts.iter().any(fits)
    }
}

fn headers() -> HeaderMap {
    let accept = "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.9,application/xml;q=0.8,*/*;q=0.1";
    [
        (ACCEPT, HeaderValue::from_static(accept)),
        (USER_AGENT, HeaderValue::from_static(concat!("loopd/", env!("CARGO_PKG_VERSION")))),
    ]
    .into_iter()
    .collect()
}

/// Where a redirect leads; `None` when the response is none.
fn next(url: &Url, response: &Response) -> Result<Option<Url>, ToolError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let location = String::from_utf8_lossy(location.as_bytes());
    let next = Some(&*location).filter(|location| location.len() <= MAX_URL).map(|location| url.join(location));
    match next {
        Some(Ok(next)) => Ok(Some(next)),
        Some(Err(_)) | None => {
            let message = format!("{} redirects to `{}`, which is no URL", shown(url.as_str()), shown(&location));
            Err(error("http.invalid_url", message))
        }
    }
}

pub(super) fn error(code: &str, message: String) -> ToolError {
    ToolError::did_not_happen(code, message)
}

/// The innermost reason says what happened, the outer ones only where.
pub(super) fn because(error: &reqwest::Error) -> String {
    let mut source = error.source();
    while let Some(inner) = source.and_then(std::error::Error::source) {
        source = Some(inner);
    }
    source.map_or_else(|| "it broke off".to_owned(), ToString::to_string)
}

pub(super) fn shown(text: &str) -> String {
    text.chars().take(SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
