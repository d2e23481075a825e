//! What is checked before anything else looks at a request: sizes, `Host`, `Origin`; and what every response says.

use crate::App;
use crate::refusal::{Answer, PROBLEM_JSON, Refusal};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{self, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use std::panic::AssertUnwindSafe;

/// The policy of everything that is no page: it loads nothing and stands in no frame.
const API_POLICY: &str = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox";

/// Said by every response that says nothing else.
const SAID: [(HeaderName, &str); 8] = [
    (header::CONTENT_SECURITY_POLICY, API_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// The name under which this request reached the server; it is one of the allowed ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reached {
    name: String,
    port: Option<u16>,
}

impl Reached {
    fn parse(text: &str) -> Option<Self> {
        if text.contains('@') {
            return None;
        }
        let authority: Authority = text.parse().ok()?;
        let port = match authority.as_str().strip_prefix(authority.host())? {
            "" => None,
            port => Some(port.strip_prefix(':')?.parse().ok()?),
        };
        Some(Self { name: authority.host().to_ascii_lowercase(), port })
    }

    /// Whether it cannot have come over a network.
    pub(crate) fn is_loopback(&self) -> bool {
        matches!(self.name.as_str(), "localhost" | "127.0.0.1" | "[::1]")
    }

    fn is_allowed(&self, hosts: &[String]) -> bool {
        let fits = |host: &String| {
            Self::parse(host)
                .is_some_and(|host| host.name == self.name && (host.port.is_none() || host.port == self.port))
        };
        self.is_loopback() || hosts.iter().any(fits)
    }

    fn is_origin(&self, origin: &str) -> bool {
        let (usual, rest) = match origin.split_once("://") {
            Some(("http", rest)) => (80, rest),
            Some(("https", rest)) => (443, rest),
            Some(_) | None => return false,
        };
        let same = |other: Self| other.name == self.name && other.port.unwrap_or(usual) == self.port.unwrap_or(usual);
        Self::parse(rest).is_some_and(same)
    }
}

/// The outermost layer.
pub(crate) async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let mut response = match admit(&app, &mut request) {
        Ok(()) => match AssertUnwindSafe(next.run(request)).catch_unwind().await {
            Ok(response) => response,
            // What a panic says was logged where it happened.
            Err(_) => Refusal::internal("the server made a mistake; its log says which").into_response(),
        },
        Err(refusal) => refusal.into_response(),
    };
    if (response.status().is_client_error() || response.status().is_server_error()) && !is_problem(response.headers()) {
        response = as_problem(&response);
    }
    for (name, value) in SAID {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    app.metrics.request(route.as_deref(), response.status());
    response
}

fn is_problem(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind == PROBLEM_JSON)
}

/// Routers answer some requests themselves, with a status and little else.
fn as_problem(bare: &Response) -> Response {
    let mut response = Refusal::of_status(bare.status()).into_response();
    for name in [header::ALLOW, header::RETRY_AFTER, header::CONNECTION] {
        if let Some(value) = bare.headers().get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

fn admit(app: &App, request: &mut Request) -> Answer<()> {
    let headers = request.headers();
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if headers.len() > app.limits().headers || bytes > app.limits().header_bytes {
        let detail = "the request has too many headers, or too long ones";
        return Err(Refusal::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "headers", detail));
    }
    let reached = host(app, request)?;
    for origin in request.headers().get_all(ORIGIN) {
        let known = |origin: &str| reached.is_origin(origin) || app.config.origins.iter().any(|known| known == origin);
        if !origin.to_str().is_ok_and(known) {
            return Err(Refusal::forbidden("origin", "pages of other origins may send no requests to this server"));
        }
    }
    request.extensions_mut().insert(reached);
    Ok(())
}

/// A name that is not on the list may be a stranger's that was made to lead here (DNS rebinding).
fn host(app: &App, request: &Request) -> Answer<Reached> {
    let wrong = || {
        let detail =
            "this name does not belong to this server: use localhost, or add the name to `hosts` of its configuration";
        Refusal::forbidden("host", detail)
    };
    let mut said = request.headers().get_all(HOST).iter();
    let named = said.next().map(|host| host.to_str().ok().and_then(Reached::parse).ok_or_else(wrong)).transpose()?;
    let target = request.uri().authority().map(|host| Reached::parse(host.as_str()).ok_or_else(wrong)).transpose()?;
    if said.next().is_some() || (target.is_some() && named.is_some() && target != named) {
        return Err(wrong());
    }
    named.or(target).filter(|host| host.is_allowed(&app.config.hosts)).ok_or_else(wrong)
}
