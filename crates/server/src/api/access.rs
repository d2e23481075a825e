//! Tokens, the audit log, and who one is.

use crate::App;
use crate::auth::{By, Principal};
use crate::extract::{Json, Key, ListQuery, Params, Reply, Segment, paging};
use crate::guard::Reached;
use crate::refusal::Answer;
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Response};
use loopd_protocol::{AuditEntry, NewToken, Page, Token, TokenId, TokenMade, WhoAmI};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(whoami))
        .routes(routes!(sign_out))
        .routes(routes!(list_tokens, make_token))
        .routes(routes!(revoke_token))
        .routes(routes!(list_audit))
}

/// Whom the server takes the caller for.
#[utoipa::path(get, path = "/v1/whoami", tag = "access",
    responses((status = 200, description = "The caller", body = WhoAmI)))]
async fn whoami(By(by): By) -> Reply<WhoAmI> {
    Reply::ok(WhoAmI { actor: by.actor, roles: by.roles })
}

/// Revokes the token of the cookie. With a token that is shown otherwise it does nothing: revoke that one.
#[utoipa::path(post, path = "/v1/sign-out", tag = "access",
    responses((status = 204, description = "The cookie is good for nothing any more")))]
async fn sign_out(
    State(app): State<App>,
    principal: Principal,
    Extension(reached): Extension<Reached>,
) -> Answer<Response> {
    if principal.by_cookie {
        app.platform().sign_out(&principal.caller, &principal.secret).await?;
    }
    let forget = app.cookies.forget(!reached.is_loopback());
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, forget)]).into_response())
}

/// Lists tokens, without their secrets: for admins.
#[utoipa::path(get, path = "/v1/tokens", tag = "access", params(ListQuery),
    responses((status = 200, description = "Tokens", body = Page<Token>)))]
async fn list_tokens(
    State(app): State<App>,
    By(by): By,
    Params(query): Params<ListQuery>,
) -> Answer<Reply<Page<Token>>> {
    Ok(Reply::ok(app.platform().tokens(&by, paging(query.cursor, query.limit)).await?))
}

/// Makes a token: for admins. Its secret is in this answer and nowhere else. The same key again cannot tell it: it is refused
/// with the identity of the token that it made, to be revoked where the answer was lost.
#[utoipa::path(post, path = "/v1/tokens", tag = "access", request_body = NewToken,
    responses((status = 201, description = "It is made", body = TokenMade)))]
async fn make_token(
    State(app): State<App>,
    By(by): By,
    Key(key): Key,
    Json(new): Json<NewToken>,
) -> Answer<Reply<TokenMade>> {
    let made = app.platform().make_token(&by, &key, new).await?;
    let location = format!("/v1/tokens/{}", made.token.id);
    Ok(Reply::made(made, false, location))
}

/// Revokes a token: for admins. It is good for nothing from now on.
#[utoipa::path(delete, path = "/v1/tokens/{token}", tag = "access",
    params(("token" = TokenId, Path, description = "Which one")),
    responses((status = 200, description = "As it is now", body = Token)))]
async fn revoke_token(State(app): State<App>, By(by): By, Segment(id): Segment<TokenId>) -> Answer<Reply<Token>> {
    Ok(Reply::ok(app.platform().revoke_token(&by, id).await?))
}

/// Lists who changed what, newest first: for admins.
#[utoipa::path(get, path = "/v1/audit", tag = "access", params(ListQuery),
    responses((status = 200, description = "Lines of the audit log", body = Page<AuditEntry>)))]
async fn list_audit(
    State(app): State<App>,
    By(by): By,
    Params(query): Params<ListQuery>,
) -> Answer<Reply<Page<AuditEntry>>> {
    Ok(Reply::ok(app.platform().audit(&by, paging(query.cursor, query.limit)).await?))
}
