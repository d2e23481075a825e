//! Where Actors meet.

use crate::App;
use crate::auth::By;
use crate::extract::{IfMatch, Json, Key, Params, Reply, Segment, paging};
use crate::refusal::{Answer, Refusal};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use loopd_platform::Exported;
use loopd_protocol::{ChangeConversation, Conversation, ConversationId, MemberChange, NewConversation, Page};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_conversations, open_conversation))
        .routes(routes!(get_conversation, change_conversation, delete_conversation))
        .routes(routes!(change_members))
        .routes(routes!(list_work))
        .routes(routes!(export_conversation))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ConversationsQuery {
    /// Those that were put away, instead of the others.
    #[serde(default)]
    archived: bool,
    /// `next` of the part before.
    cursor: Option<String>,
    /// At most this many items; 0, or nothing, is the usual number.
    limit: Option<u32>,
}

/// Lists the caller's Conversations, the one where something happened last first. Work conversations are listed with what
/// they belong to.
#[utoipa::path(get, path = "/v1/conversations", tag = "conversations", params(ConversationsQuery),
    responses((status = 200, description = "Conversations", body = Page<Conversation>)))]
async fn list_conversations(
    State(app): State<App>,
    By(by): By,
    Params(query): Params<ConversationsQuery>,
) -> Answer<Reply<Page<Conversation>>> {
    let paging = paging(query.cursor, query.limit);
    Ok(Reply::ok(app.platform().conversations(&by, query.archived, paging).await?))
}

/// Opens a Conversation.
#[utoipa::path(post, path = "/v1/conversations", tag = "conversations", request_body = NewConversation, responses(
    (status = 201, description = "It is open", body = Conversation),
    (status = 200, description = "The same key opened it before", body = Conversation)))]
async fn open_conversation(
    State(app): State<App>,
    By(by): By,
    Key(key): Key,
    Json(new): Json<NewConversation>,
) -> Answer<Reply<Conversation>> {
    let (conversation, already) = app.platform().open(&by, &key, new).await?;
    let (location, revision) = (format!("/v1/conversations/{}", conversation.id), conversation.revision);
    Ok(Reply::made(conversation, already, location).revision(revision))
}

/// Reads what a Conversation says of itself.
#[utoipa::path(get, path = "/v1/conversations/{conversation}", tag = "conversations",
    params(("conversation" = ConversationId, Path, description = "Which one")),
    responses((status = 200, description = "The Conversation", body = Conversation)))]
async fn get_conversation(
    State(app): State<App>,
    By(by): By,
    Segment(id): Segment<ConversationId>,
) -> Answer<Reply<Conversation>> {
    Ok(described(app.platform().conversation(&by, id).await?))
}

fn described(conversation: Conversation) -> Reply<Conversation> {
    let revision = conversation.revision;
    Reply::ok(conversation).revision(revision)
}

/// Changes title or archive.
#[utoipa::path(patch, path = "/v1/conversations/{conversation}", tag = "conversations",
    params(("conversation" = ConversationId, Path, description = "Which one")),
    request_body = ChangeConversation,
    responses((status = 200, description = "As it is now", body = Conversation)))]
async fn change_conversation(
    State(app): State<App>,
    By(by): By,
    Segment(id): Segment<ConversationId>,
    IfMatch(revision): IfMatch,
    Json(change): Json<ChangeConversation>,
) -> Answer<Reply<Conversation>> {
    Ok(described(app.platform().change(&by, id, revision, change).await.map_err(Refusal::of_match)?))
}

/// Deletes a Conversation and erases what was said in it.
#[utoipa::path(delete, path = "/v1/conversations/{conversation}", tag = "conversations",
    params(("conversation" = ConversationId, Path, description = "Which one")),
    responses((status = 204, description = "It is gone")))]
async fn delete_conversation(
    State(app): State<App>,
    By(by): By,
    Segment(id): Segment<ConversationId>,
) -> Answer<StatusCode> {
    app.platform().delete(&by, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Changes who belongs to it.
#[utoipa::path(post, path = "/v1/conversations/{conversation}/members", tag = "conversations",
    params(("conversation" = ConversationId, Path, description = "Which one")),
    request_body = MemberChange, responses((status = 200, description = "As it is now", body = Conversation)))]
async fn change_members(
    State(app): State<App>,
    By(by): By,
    Segment(id): Segment<ConversationId>,
    IfMatch(revision): IfMatch,
    Json(change): Json<MemberChange>,
) -> Answer<Reply<Conversation>> {
    Ok(described(app.platform().change_members(&by, id, revision, change).await.map_err(Refusal::of_match)?))
}

/// Lists the Conversations in which Operators work on it.
#[utoipa::path(get, path = "/v1/conversations/{conversation}/work", tag = "conversations",
    params(("conversation" = ConversationId, Path, description = "Which one")),
    responses((status = 200, description = "Its work conversations", body = Page<Conversation>)))]
async fn list_work(
    State(app): State<App>,
    By(by): By,
    Segment(id): Segment<ConversationId>,
) -> Answer<Reply<Page<Conversation>>> {
    let items = app.platform().work_conversations(&by, id).await?;
    Ok(Reply::ok(Page { items, next: None }))
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Json,
    Markdown,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExportQuery {
    /// The form.
    #[serde(default)]
    #[param(inline)]
    format: Format,
}

/// Everything of a Conversation in one document.
#[utoipa::path(get, path = "/v1/conversations/{conversation}/export", tag = "conversations",
    params(("conversation" = ConversationId, Path, description = "Which one"), ExportQuery),
    responses((status = 200, description = "The document", content(
        (Exported = "application/json"), (String = "text/markdown")))))]
async fn export_conversation(
    State(app): State<App>,
    By(by): By,
    Segment(id): Segment<ConversationId>,
    Params(query): Params<ExportQuery>,
) -> Answer<Response> {
    let exported = app.platform().export(&by, id).await?;
    let named = |ending: &str| format!("attachment; filename=\"{id}.{ending}\"");
    Ok(match query.format {
        Format::Json => Reply::ok(exported).header(CONTENT_DISPOSITION, named("json")).into_response(),
        Format::Markdown => {
            let said = [(CONTENT_TYPE, "text/markdown; charset=utf-8".to_owned()), (CONTENT_DISPOSITION, named("md"))];
            (said, exported.markdown()).into_response()
        }
    })
}
