//! Finding what was said.

use crate::App;
use crate::auth::By;
use crate::extract::{Params, Reply, number};
use crate::refusal::Answer;
use axum::extract::State;
use loopd_protocol::{ConversationId, Message, Page};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(search))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SearchQuery {
    /// Words; a Message that is found has all of them.
    q: String,
    /// Only in this Conversation.
    conversation: Option<ConversationId>,
    /// At most this many; 0, or nothing, is the usual number.
    limit: Option<u32>,
}

/// Finds Messages in one's own Conversations.
#[utoipa::path(get, path = "/v1/search", tag = "messages", params(SearchQuery),
    responses((status = 200, description = "Messages", body = Page<Message>)))]
async fn search(
    State(app): State<App>,
    By(by): By,
    Params(query): Params<SearchQuery>,
) -> Answer<Reply<Page<Message>>> {
    let items = app.platform().search(&by, &query.q, query.conversation, number(query.limit)).await?;
    Ok(Reply::ok(Page { items, next: None }))
}
