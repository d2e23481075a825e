//! Calls to Harnesses, and what they may execute on.

use crate::App;
use crate::auth::By;
use crate::extract::{Json, JsonOr, Key, ListQuery, Params, Reply, Segment, paging};
use crate::refusal::{Answer, Refusal};
use axum::extract::State;
use loopd_protocol::{
    Budget, Called, ConversationId, HarnessCall, HarnessCallId, NewCall, Page, Steer, Steered, Target,
};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_calls, call))
        .routes(routes!(get_call))
        .routes(routes!(cancel_call))
        .routes(routes!(resume_call))
        .routes(routes!(steer_call))
        .routes(routes!(list_targets))
}

/// Calls a Harness: the call, its output Message and its Run, all or none. The same key answers with the same call, also
/// when nothing new is taken.
#[utoipa::path(post, path = "/v1/conversations/{conversation}/calls", tag = "calls",
    params(("conversation" = ConversationId, Path, description = "Where")), request_body = NewCall, responses(
    (status = 201, description = "It is accepted", body = Called),
    (status = 200, description = "The same key made it before", body = Called)))]
async fn call(
    State(app): State<App>,
    By(by): By,
    Segment(conversation): Segment<ConversationId>,
    Key(key): Key,
    Json(new): Json<NewCall>,
) -> Answer<Reply<Called>> {
    let called = app.engine.call(&by, conversation, &key, new).await?;
    if !called.already {
        app.metrics.call();
    }
    let (already, location) = (called.already, format!("/v1/calls/{}", called.call.id));
    Ok(Reply::made(called, already, location))
}

/// Lists the calls of a Conversation, newest first.
#[utoipa::path(get, path = "/v1/conversations/{conversation}/calls", tag = "calls",
    params(("conversation" = ConversationId, Path, description = "Where"), ListQuery),
    responses((status = 200, description = "Calls", body = Page<HarnessCall>)))]
async fn list_calls(
    State(app): State<App>,
    By(by): By,
    Segment(conversation): Segment<ConversationId>,
    Params(query): Params<ListQuery>,
) -> Answer<Reply<Page<HarnessCall>>> {
    let paging = paging(query.cursor, query.limit);
    Ok(Reply::ok(app.engine.harness_calls(&by, conversation, paging).await?))
}

/// Reads a call.
#[utoipa::path(get, path = "/v1/calls/{call}", tag = "calls",
    params(("call" = HarnessCallId, Path, description = "Which one")),
    responses((status = 200, description = "The call", body = HarnessCall)))]
async fn get_call(
    State(app): State<App>,
    By(by): By,
    Segment(id): Segment<HarnessCallId>,
) -> Answer<Reply<HarnessCall>> {
    Ok(Reply::ok(app.engine.harness_call(&by, id).await?))
}

/// The longest reason, in characters.
const REASON: usize = 1000;

/// Why somebody wishes an end.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Cancel {
    /// In words; at most 1,000 characters.
    #[serde(default)]
    #[schema(max_length = 1000)]
    reason: String,
}

/// Wishes that a call ends. Whether it did, its phase tells.
#[utoipa::path(post, path = "/v1/calls/{call}/cancel", tag = "calls",
    params(("call" = HarnessCallId, Path, description = "Which one")), request_body = Cancel,
    responses((status = 200, description = "As it is now", body = HarnessCall)))]
async fn cancel_call(
    State(app): State<App>,
    By(by): By,
    Segment(id): Segment<HarnessCallId>,
    JsonOr(cancel): JsonOr<Cancel>,
) -> Answer<Reply<HarnessCall>> {
    if cancel.reason.chars().count() > REASON {
        return Err(Refusal::invalid("reason", "at most 1,000 characters"));
    }
    Ok(Reply::ok(app.engine.cancel(&by, id, &cancel.reason).await?))
}

/// Goes on with a call whose Run is parked at a limit, with higher limits.
#[utoipa::path(post, path = "/v1/calls/{call}/resume", tag = "calls",
    params(("call" = HarnessCallId, Path, description = "Which one")), request_body = Budget,
    responses((status = 200, description = "As it is now", body = HarnessCall)))]
async fn resume_call(
    State(app): State<App>,
    By(by): By,
    Segment(id): Segment<HarnessCallId>,
    Json(raise): Json<Budget>,
) -> Answer<Reply<HarnessCall>> {
    Ok(Reply::ok(app.engine.resume(&by, id, raise).await?))
}

/// Sends text to a call that runs; it sees it at its next step, which the Feed tells.
#[utoipa::path(post, path = "/v1/calls/{call}/steer", tag = "calls",
    params(("call" = HarnessCallId, Path, description = "Which one")), request_body = Steer,
    responses((status = 202, description = "It is queued", body = Steered)))]
async fn steer_call(
    State(app): State<App>,
    By(by): By,
    Segment(id): Segment<HarnessCallId>,
    Key(key): Key,
    Json(steer): Json<Steer>,
) -> Answer<Reply<Steered>> {
    Ok(Reply::accepted(app.engine.steer(&by, id, &key, steer).await?))
}

/// Lists what calls may execute on.
#[utoipa::path(get, path = "/v1/targets", tag = "calls",
    responses((status = 200, description = "Targets", body = Page<Target>)))]
async fn list_targets(State(app): State<App>, By(_): By) -> Answer<Reply<Page<Target>>> {
    Ok(Reply::ok(Page { items: app.engine.targets(), next: None }))
}
