//! Who sends a request: a token or a cookie, and nobody gets past without either.

use crate::cookie::who_has;
use crate::rates::{Who, who_is};
use crate::refusal::{Answer, Refusal};
use crate::serve::Peer;
use crate::{App, Shared};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{AUTHORIZATION, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use loopd_platform::Caller;
use loopd_protocol::Role;
use std::sync::Arc;

/// The longest secret that is looked at.
const SECRET_BYTES: usize = 200;

/// Whoever sends the request.
#[derive(Debug, Clone)]
pub(crate) struct Principal {
    pub(crate) caller: Caller,
    pub(crate) who: Who,
    /// The token's secret; streams show it again from time to time.
    pub(crate) secret: Arc<str>,
    /// It came in a cookie.
    pub(crate) by_cookie: bool,
}

/// The layer over everything under `/v1` but signing in.
pub(crate) async fn authenticate(State(app): State<App>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let peer = peer_of(parts.extensions.get::<Peer>());
    let principal = match identify(&app, &parts.headers, &parts.method, peer).await {
        Ok(principal) => principal,
        Err(refusal) => return refusal.into_response(),
    };
    if let Err(refusal) = app.rates.request(principal.who, principal.caller.roles.contains(&Role::Operator)) {
        app.metrics.rate_limited(refusal.code());
        return refusal.into_response();
    }
    parts.extensions.insert(principal);
    next.run(Request::from_parts(parts, body)).await
}

pub(crate) fn peer_of(peer: Option<&Peer>) -> Who {
    who_is(peer.map(|peer| peer.0))
}

async fn identify(app: &Shared, headers: &HeaderMap, method: &Method, peer: Who) -> Answer<Principal> {
    let mut said = headers.get_all(AUTHORIZATION).iter();
    let Some(authorization) = said.next() else {
        return by_cookie(app, headers, method, peer).await;
    };
    let secret = authorization.to_str().ok().and_then(bearer);
    let (Some(secret), None) = (secret, said.next()) else {
        return Err(Refusal::unauthenticated("the header Authorization is not `Bearer loopd_…`"));
    };
    match find(app, &[secret], peer, false).await? {
        Some(principal) => Ok(principal),
        None => Err(Refusal::unauthenticated("the token is unknown, revoked or expired")),
    }
}

/// The first of these secrets that lets somebody in. If none does, that is held against the address; whom the
/// server knows from before is not held up by what strangers at the same address do.
async fn find(app: &Shared, secrets: &[&str], peer: Who, by_cookie: bool) -> Answer<Option<Principal>> {
    let shown: Vec<_> = secrets.iter().map(|secret| (*secret, who_has(secret))).collect();
    if !shown.iter().any(|(_, who)| app.rates.knows(*who)) {
        app.rates.may_try(peer).inspect_err(|refusal| app.metrics.rate_limited(refusal.code()))?;
    }
    for (secret, who) in shown.into_iter().filter(|(secret, _)| secret.len() <= SECRET_BYTES) {
        if let Some(caller) = app.platform().authenticate(secret).await? {
            return Ok(Some(Principal { caller, who, secret: secret.into(), by_cookie }));
        }
    }
    app.rates.failed(peer);
    Ok(None)
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, secret) = header.split_once(' ')?;
    let secret = secret.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !secret.is_empty()).then_some(secret)
}

async fn by_cookie(app: &Shared, headers: &HeaderMap, method: &Method, peer: Who) -> Answer<Principal> {
    let secrets = app.cookies.secrets(headers);
    if secrets.is_empty() {
        let detail = "send `Authorization: Bearer loopd_…`, or sign in with the address that the server printed";
        return Err(Refusal::unauthenticated(detail));
    }
    let Some(principal) = find(app, &secrets, peer, true).await? else {
        let detail =
            "this browser is signed out, or its time is over: sign in with the address that the server printed";
        return Err(Refusal::unauthenticated(detail));
    };
    // Ports of one machine are one site, so `SameSite` does not keep their pages out.
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    let other_page = matches!(site, Some(b"cross-site" | b"same-site"));
    let own_page = headers.contains_key(ORIGIN) || matches!(site, Some(b"same-origin" | b"none"));
    if other_page || !(method.is_safe() || own_page) {
        let detail = "a request with a cookie must come from the server's own page; programs send a token";
        return Err(Refusal::forbidden("origin", detail));
    }
    Ok(principal)
}

impl Principal {
    /// Whether the token still lets this caller in. A store that cannot be asked at this moment throws nobody out.
    pub(crate) async fn still_good(&self, app: &Shared) -> bool {
        match app.platform().authenticate(&self.secret).await {
            Ok(found) => found.as_ref() == Some(&self.caller),
            Err(_) => true,
        }
    }
}

fn shown(parts: &Parts) -> Answer<&Principal> {
    parts.extensions.get::<Principal>().ok_or_else(|| Refusal::unauthenticated("sign in first"))
}

/// Takes the principal out of a request that passed [`authenticate`].
impl FromRequestParts<App> for Principal {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Answer<Self> {
        shown(parts).cloned()
    }
}

/// The caller alone.
#[derive(Debug, Clone)]
pub(crate) struct By(pub(crate) Caller);

impl FromRequestParts<App> for By {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Answer<Self> {
        shown(parts).map(|principal| Self(principal.caller.clone()))
    }
}

/// Lets admins in where the layer does not stand before.
pub(crate) async fn must_be_admin(app: &Shared, headers: &HeaderMap, peer: Option<&Peer>) -> Answer<()> {
    let principal = identify(app, headers, &Method::GET, peer_of(peer)).await?;
    Ok(principal.caller.must_be(&[])?)
}
