//! A one-time code becomes a token, which the browser keeps as a cookie.

use crate::App;
use crate::auth::peer_of;
use crate::extract::{Json, Params, Reply};
use crate::guard::Reached;
use crate::refusal::{Answer, Refusal};
use crate::serve::Peer;
use axum::Extension;
use axum::extract::State;
use axum::http::header::{ACCEPT, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use loopd_platform::Caller;
use loopd_protocol::{SignIn, WhoAmI};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(sign_in)).routes(routes!(sign_in_page))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CodeQuery {
    /// The code that the server printed.
    code: String,
}

/// Exchanges a one-time code for a cookie: for programs.
#[utoipa::path(post, path = "/v1/sign-in", tag = "access", request_body = SignIn, security(()),
    responses((status = 200, description = "Signed in; `Set-Cookie` has the cookie", body = WhoAmI)))]
async fn sign_in(
    State(app): State<App>,
    Extension(reached): Extension<Reached>,
    peer: Option<Extension<Peer>>,
    body: Answer<Json<SignIn>>,
) -> Answer<Reply<WhoAmI>> {
    // Refusals of bodies tell what was read; a code is not told.
    let Json(SignIn { code }) = body.map_err(|refusal| match refusal.status() {
        StatusCode::UNPROCESSABLE_ENTITY => {
            Refusal::invalid("code", "expected an object with the text `code` and nothing else")
        }
        _ => refusal,
    })?;
    let (caller, cookie) = exchange(&app, &reached, peer.as_deref(), &code).await?;
    Ok(Reply::ok(WhoAmI { actor: caller.actor, roles: caller.roles }).header(SET_COOKIE, cookie))
}

/// Exchanges a one-time code for a cookie: for the address that people open. The redirect takes the code out of it.
#[utoipa::path(get, path = "/sign-in", tag = "access", params(CodeQuery), security(()),
    responses((status = 303, description = "To the page, with the cookie; browsers also with a code that is no good")))]
async fn sign_in_page(
    State(app): State<App>,
    Extension(reached): Extension<Reached>,
    peer: Option<Extension<Peer>>,
    method: Method,
    headers: HeaderMap,
    Params(query): Params<CodeQuery>,
) -> Answer<Response> {
    // Whoever only looks whether there is something uses nothing up.
    if method == Method::HEAD {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let wants_page =
        headers.get(ACCEPT).and_then(|kinds| kinds.to_str().ok()).is_some_and(|kinds| kinds.contains("text/html"));
    match exchange(&app, &reached, peer.as_deref(), &query.code).await {
        Ok((_, cookie)) => {
            Ok((StatusCode::SEE_OTHER, [(LOCATION, "/".to_owned()), (SET_COOKIE, cookie)]).into_response())
        }
        // People get a page that says what to do.
        Err(refusal) if wants_page && refusal.status() == StatusCode::UNAUTHORIZED => {
            Ok((StatusCode::SEE_OTHER, [(LOCATION, "/#expired")]).into_response())
        }
        Err(refusal) => Err(refusal),
    }
}

async fn exchange(app: &App, reached: &Reached, peer: Option<&Peer>, code: &str) -> Answer<(Caller, String)> {
    let who = peer_of(peer);
    let from = peer.map_or_else(|| "unknown".to_owned(), |peer| peer.0.to_string());
    app.rates.may_try(who).inspect_err(|refusal| app.metrics.rate_limited(refusal.code()))?;
    let caller = Caller { actor: app.config.person.clone(), roles: app.config.roles.clone() };
    if !app.cookies.use_code(code) {
        app.rates.failed(who);
        app.platform().note(&caller, "sign_in.refused", caller.actor.as_str(), &format!("from {from}")).await?;
        let detail = "the code is unknown, used or older than a minute: start again for a new one";
        return Err(Refusal::unauthenticated(detail));
    }
    let made = app.platform().sign_in(&caller, app.config.signed_in, &from).await?;
    Ok((caller, app.cookies.keep(&made.secret, !reached.is_loopback())))
}
