//! Who there is.

use crate::App;
use crate::auth::By;
use crate::extract::{Json, Params, Reply, Segment, paging};
use crate::refusal::{Answer, Refusal};
use axum::extract::State;
use loopd_protocol::{Actor, ActorKey, ActorKind, Page, Registration};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_actors))
        .routes(routes!(get_actor, register_actor))
        .routes(routes!(get_role, register_role))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ActorsQuery {
    /// Only this kind.
    kind: Option<ActorKind>,
    /// `next` of the part before.
    cursor: Option<String>,
    /// At most this many items; 0, or nothing, is the usual number.
    limit: Option<u32>,
}

fn key(parts: &[&str]) -> Answer<ActorKey> {
    parts.join("/").parse().map_err(|wrong: loopd_protocol::NotAnActor| Refusal::not_found(wrong.to_string()))
}

/// Lists who can be addressed.
#[utoipa::path(get, path = "/v1/actors", tag = "actors", params(ActorsQuery),
    responses((status = 200, description = "Actors", body = Page<Actor>)))]
async fn list_actors(
    State(app): State<App>,
    By(_): By,
    Params(query): Params<ActorsQuery>,
) -> Answer<Reply<Page<Actor>>> {
    Ok(Reply::ok(app.platform().actors(query.kind, paging(query.cursor, query.limit)).await?))
}

/// Reads an Actor.
#[utoipa::path(get, path = "/v1/actors/{kind}/{key}", tag = "actors",
    params(("kind" = ActorKind, Path, description = "The kind"), ("key" = String, Path, description = "The key", pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")),
    responses((status = 200, description = "The Actor", body = Actor)))]
async fn get_actor(
    State(app): State<App>,
    By(_): By,
    Segment((kind, name)): Segment<(String, String)>,
) -> Answer<Reply<Actor>> {
    Ok(Reply::ok(app.platform().actor(&key(&[&kind, &name])?).await?))
}

/// Announces an Actor and renews its lease: one's own, or as an admin any.
#[utoipa::path(put, path = "/v1/actors/{kind}/{key}", tag = "actors",
    params(("kind" = ActorKind, Path, description = "The kind"), ("key" = String, Path, description = "The key", pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")),
    request_body = Registration, responses((status = 200, description = "The Actor as it is now", body = Actor)))]
async fn register_actor(
    State(app): State<App>,
    By(by): By,
    Segment((kind, name)): Segment<(String, String)>,
    Json(registration): Json<Registration>,
) -> Answer<Reply<Actor>> {
    Ok(Reply::ok(app.platform().register(&by, &key(&[&kind, &name])?, registration).await?))
}

/// Reads a role of an Operator.
#[utoipa::path(get, path = "/v1/actors/operator/{key}/{role}", tag = "actors",
    params(("key" = String, Path, description = "The Operator", pattern = "^[a-z0-9][a-z0-9._-]{0,63}$"), ("role" = String, Path, description = "The role", pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")),
    responses((status = 200, description = "The Actor", body = Actor)))]
async fn get_role(
    State(app): State<App>,
    By(_): By,
    Segment((name, role)): Segment<(String, String)>,
) -> Answer<Reply<Actor>> {
    Ok(Reply::ok(app.platform().actor(&key(&["operator", &name, &role])?).await?))
}

/// Announces a role of an Operator and renews its lease.
#[utoipa::path(put, path = "/v1/actors/operator/{key}/{role}", tag = "actors",
    params(("key" = String, Path, description = "The Operator", pattern = "^[a-z0-9][a-z0-9._-]{0,63}$"), ("role" = String, Path, description = "The role", pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")),
    request_body = Registration, responses((status = 200, description = "The Actor as it is now", body = Actor)))]
async fn register_role(
    State(app): State<App>,
    By(by): By,
    Segment((name, role)): Segment<(String, String)>,
    Json(registration): Json<Registration>,
) -> Answer<Reply<Actor>> {
    Ok(Reply::ok(app.platform().register(&by, &key(&["operator", &name, &role])?, registration).await?))
}
