//! What Operators make of Conversations: leases, Turns, and what they have not handled yet.

use crate::App;
use crate::auth::By;
use crate::extract::{Json, ListQuery, Params, Reply, Segment, paging};
use crate::refusal::Answer;
use axum::extract::State;
use loopd_protocol::{Acted, ActorKey, ConversationId, Keyed, Lease, NewLease, Page, Place, Turn, Turned, Wake};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(lease))
        .routes(routes!(turn))
        .routes(routes!(get_keyed))
        .routes(routes!(list_unhandled))
}

/// Asks for the lease of the calling Operator on a Conversation, renews it, or gives it back. The answer says who has it.
#[utoipa::path(post, path = "/v1/conversations/{conversation}/lease", tag = "operators",
    params(("conversation" = ConversationId, Path, description = "Where")), request_body = NewLease,
    responses((status = 200, description = "Who has it", body = Lease)))]
async fn lease(
    State(app): State<App>,
    By(by): By,
    Segment(conversation): Segment<ConversationId>,
    Json(wish): Json<NewLease>,
) -> Answer<Reply<Lease>> {
    Ok(Reply::ok(app.platform().lease(&by, conversation, wish).await?))
}

/// Says, calls and asks, and moves the caller's cursor: all of it, or nothing. What a key did before is not done again.
#[utoipa::path(post, path = "/v1/conversations/{conversation}/turn", tag = "operators",
    params(("conversation" = ConversationId, Path, description = "Where")), request_body = Turn,
    responses((status = 200, description = "It is done", body = Turned)))]
async fn turn(
    State(app): State<App>,
    By(by): By,
    Segment(conversation): Segment<ConversationId>,
    Json(turn): Json<Turn>,
) -> Answer<Reply<Turned>> {
    let turned = app.engine.turn(&by, conversation, turn).await?;
    for act in &turned.acts {
        match act {
            Acted::Say { already: false, .. } => app.metrics.message(),
            Acted::Call { already: false, .. } => app.metrics.call(),
            Acted::Say { .. } | Acted::Call { .. } | Acted::Ask { .. } => {}
        }
    }
    Ok(Reply::ok(turned))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct KeyQuery {
    /// The key; or several, at most 50, with a space between them.
    key: String,
    /// Where in the Conversation: `here`, or `work` for the caller's work conversation.
    #[serde(default)]
    place: Place,
    /// Whose key, of what was said and asked: the caller's, or that of a role of theirs.
    actor: Option<ActorKey>,
}

/// Reads what was said, called and asked under each key, in the order of the keys.
#[utoipa::path(get, path = "/v1/conversations/{conversation}/keyed", tag = "operators",
    params(("conversation" = ConversationId, Path, description = "Where"), KeyQuery),
    responses((status = 200, description = "What there is", body = Page<Keyed>)))]
async fn get_keyed(
    State(app): State<App>,
    By(by): By,
    Segment(conversation): Segment<ConversationId>,
    Params(query): Params<KeyQuery>,
) -> Answer<Reply<Page<Keyed>>> {
    let KeyQuery { key, place, actor } = query;
    let keys: Vec<_> = key.split(' ').map(str::to_owned).collect();
    let items = app.engine.keyed(&by, conversation, (place, actor, &keys)).await?;
    Ok(Reply::ok(Page { items, next: None }))
}

/// Lists Conversations with whole Messages for the caller that its cursor has not passed. A part may be empty and not the
/// last: `next` tells.
#[utoipa::path(get, path = "/v1/unhandled", tag = "operators", params(ListQuery),
    responses((status = 200, description = "Where there is something", body = Page<Wake>)))]
async fn list_unhandled(
    State(app): State<App>,
    By(by): By,
    Params(query): Params<ListQuery>,
) -> Answer<Reply<Page<Wake>>> {
    Ok(Reply::ok(app.platform().unhandled(&by, paging(query.cursor, query.limit)).await?))
}
