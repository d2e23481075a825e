//! What is said, and how far somebody has read it.

use crate::App;
use crate::auth::By;
use crate::extract::{Json, JsonOr, Key, Params, Reply, Segment, number};
use crate::refusal::{Answer, Refusal};
use axum::extract::State;
use loopd_platform::{Handled, Polled, Window};
use loopd_protocol::{ConversationId, End, Message, MessageId, MessageStatus, Open, Page, Said, Say, Update};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_messages, say))
        .routes(routes!(begin_message))
        .routes(routes!(get_message, update_message))
        .routes(routes!(end_message))
        .routes(routes!(poll))
        .routes(routes!(commit))
}

/// A Message that was said or begun, with where it can be read.
pub(crate) fn said(app: &App, said: Said) -> Reply<Said> {
    if !said.already {
        app.metrics.message();
        said.calls.iter().for_each(|_| app.metrics.call());
    }
    let (already, location) = (said.already, format!("/v1/messages/{}", said.message.id));
    Reply::made(said, already, location)
}

/// Says a whole Message. One of a person that addresses Harnesses calls them, too.
#[utoipa::path(post, path = "/v1/conversations/{conversation}/messages", tag = "messages",
    params(("conversation" = ConversationId, Path, description = "Where")), request_body = Say, responses(
    (status = 201, description = "It is said", body = Said),
    (status = 200, description = "The same key said it before", body = Said)))]
async fn say(
    State(app): State<App>,
    By(by): By,
    Segment(conversation): Segment<ConversationId>,
    Key(key): Key,
    Json(say): Json<Say>,
) -> Answer<Reply<Said>> {
    let done = app.engine.say(&by, conversation, &key, say).await?;
    Ok(said(&app, done))
}

/// Begins a Message that goes on: `PATCH` it, and end it.
#[utoipa::path(post, path = "/v1/conversations/{conversation}/messages/begin", tag = "messages",
    params(("conversation" = ConversationId, Path, description = "Where")), request_body = Open, responses(
    (status = 201, description = "It is begun", body = Said),
    (status = 200, description = "The same key began it before", body = Said)))]
async fn begin_message(
    State(app): State<App>,
    By(by): By,
    Segment(conversation): Segment<ConversationId>,
    Key(key): Key,
    Json(open): Json<Open>,
) -> Answer<Reply<Said>> {
    let done = app.platform().begin(&by, conversation, &key, open).await?;
    Ok(said(&app, done))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct MessagesQuery {
    /// Those after this seq.
    after: Option<u64>,
    /// Those before this seq, the last ones of them.
    before: Option<u64>,
    /// At most this many; 0, or nothing, is the usual number.
    limit: Option<u32>,
}

/// Lists Messages in the order of their seq: after one, before one, or the latest.
#[utoipa::path(get, path = "/v1/conversations/{conversation}/messages", tag = "messages",
    params(("conversation" = ConversationId, Path, description = "Where"), MessagesQuery),
    responses((status = 200, description = "Messages; the next part begins after the last seq", body = Page<Message>)))]
async fn list_messages(
    State(app): State<App>,
    By(by): By,
    Segment(conversation): Segment<ConversationId>,
    Params(query): Params<MessagesQuery>,
) -> Answer<Reply<Page<Message>>> {
    let window = match (query.after, query.before) {
        (Some(_), Some(_)) => return Err(Refusal::invalid("before", "say after or before, not both")),
        (Some(after), None) => Window::After(after),
        (None, Some(before)) => Window::Before(before),
        (None, None) => Window::Latest,
    };
    let items = app.platform().messages(&by, conversation, window, number(query.limit)).await?;
    Ok(Reply::ok(Page { items, next: None }))
}

/// Reads a Message with all its Blocks.
#[utoipa::path(get, path = "/v1/messages/{message}", tag = "messages",
    params(("message" = MessageId, Path, description = "Which one")),
    responses((status = 200, description = "The Message", body = Message)))]
async fn get_message(State(app): State<App>, By(by): By, Segment(id): Segment<MessageId>) -> Answer<Reply<Message>> {
    Ok(Reply::ok(app.platform().message(&by, id).await?))
}

/// Goes on with an open Message.
#[utoipa::path(patch, path = "/v1/messages/{message}", tag = "messages",
    params(("message" = MessageId, Path, description = "Which one")), request_body = Update,
    responses((status = 200, description = "As it is now", body = Message)))]
async fn update_message(
    State(app): State<App>,
    By(by): By,
    Segment(id): Segment<MessageId>,
    Json(update): Json<Update>,
) -> Answer<Reply<Message>> {
    if update.revision == 0 {
        return Err(Refusal::invalid("revision", "that of the message as it was read: 1 or more"));
    }
    Ok(Reply::ok(app.platform().update(&by, id, update).await?))
}

/// Ends an open Message.
#[utoipa::path(post, path = "/v1/messages/{message}/end", tag = "messages",
    params(("message" = MessageId, Path, description = "Which one")), request_body = End,
    responses((status = 200, description = "As it is now", body = Message)))]
async fn end_message(
    State(app): State<App>,
    By(by): By,
    Segment(id): Segment<MessageId>,
    JsonOr(end): JsonOr<EndOr>,
) -> Answer<Reply<Message>> {
    Ok(Reply::ok(app.platform().end(&by, id, end.0).await?))
}

/// Nothing said is: it is complete.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct EndOr(End);

impl Default for EndOr {
    fn default() -> Self {
        Self(End { status: MessageStatus::Completed, error: None })
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PollQuery {
    /// At most this many; 0, or nothing, is the usual number.
    limit: Option<u32>,
    /// Messages that still go on, too.
    #[serde(default)]
    streaming: bool,
}

/// What the caller has not committed yet, at least once. Nothing is consumed.
#[utoipa::path(get, path = "/v1/conversations/{conversation}/poll", tag = "reading",
    params(("conversation" = ConversationId, Path, description = "Where"), PollQuery),
    responses((status = 200, description = "Messages behind the caller's cursor", body = Polled)))]
async fn poll(
    State(app): State<App>,
    By(by): By,
    Segment(conversation): Segment<ConversationId>,
    Params(query): Params<PollQuery>,
) -> Answer<Reply<Polled>> {
    let limit = number(query.limit);
    Ok(Reply::ok(app.platform().poll(&by, conversation, limit, query.streaming).await?))
}

/// Moves the caller's cursor forward over what it has handled; it never moves back.
#[utoipa::path(post, path = "/v1/conversations/{conversation}/commit", tag = "reading",
    params(("conversation" = ConversationId, Path, description = "Where")), request_body = Handled,
    responses((status = 200, description = "Where the cursor stands", body = Handled)))]
async fn commit(
    State(app): State<App>,
    By(by): By,
    Segment(conversation): Segment<ConversationId>,
    Json(handled): Json<Handled>,
) -> Answer<Reply<Handled>> {
    Ok(Reply::ok(app.platform().commit(&by, conversation, handled).await?))
}
