//! What people are asked.

use crate::App;
use crate::auth::By;
use crate::extract::{Json, Key, ListQuery, Params, Reply, Segment, paging};
use crate::refusal::Answer;
use axum::extract::State;
use loopd_protocol::{Answer as Given, ConversationId, NewQuestion, Page, Question, QuestionId};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_questions))
        .routes(routes!(list_questions_of, ask))
        .routes(routes!(get_question))
        .routes(routes!(answer))
        .routes(routes!(withdraw))
}

/// Lists the open Questions that the caller sees, over all Conversations: what needs a person.
#[utoipa::path(get, path = "/v1/questions", tag = "questions", params(ListQuery),
    responses((status = 200, description = "Open Questions", body = Page<Question>)))]
async fn list_questions(
    State(app): State<App>,
    By(by): By,
    Params(query): Params<ListQuery>,
) -> Answer<Reply<Page<Question>>> {
    Ok(Reply::ok(app.platform().questions(&by, None, paging(query.cursor, query.limit)).await?))
}

/// Lists the open Questions of a Conversation.
#[utoipa::path(get, path = "/v1/conversations/{conversation}/questions", tag = "questions",
    params(("conversation" = ConversationId, Path, description = "Where"), ListQuery),
    responses((status = 200, description = "Open Questions", body = Page<Question>)))]
async fn list_questions_of(
    State(app): State<App>,
    By(by): By,
    Segment(conversation): Segment<ConversationId>,
    Params(query): Params<ListQuery>,
) -> Answer<Reply<Page<Question>>> {
    let paging = paging(query.cursor, query.limit);
    Ok(Reply::ok(app.platform().questions(&by, Some(conversation), paging).await?))
}

/// Asks a person: for Operators and Harnesses. The deadline is fixed from now on.
#[utoipa::path(post, path = "/v1/conversations/{conversation}/questions", tag = "questions",
    params(("conversation" = ConversationId, Path, description = "Where")), request_body = NewQuestion, responses(
    (status = 201, description = "It is asked", body = Question),
    (status = 200, description = "The same key asked it before", body = Question)))]
async fn ask(
    State(app): State<App>,
    By(by): By,
    Segment(conversation): Segment<ConversationId>,
    Key(key): Key,
    Json(new): Json<NewQuestion>,
) -> Answer<Reply<Question>> {
    let (question, already) = app.platform().ask(&by, conversation, &key, new).await?;
    let location = format!("/v1/questions/{}", question.id);
    Ok(Reply::made(question, already, location))
}

/// Reads a Question.
#[utoipa::path(get, path = "/v1/questions/{question}", tag = "questions",
    params(("question" = QuestionId, Path, description = "Which one")),
    responses((status = 200, description = "The Question", body = Question)))]
async fn get_question(State(app): State<App>, By(by): By, Segment(id): Segment<QuestionId>) -> Answer<Reply<Question>> {
    Ok(Reply::ok(app.platform().question(&by, id).await?))
}

/// Answers, declines or dismisses a Question: for people. The same answer again changes nothing; another one, or one that comes too
/// late, is a conflict.
#[utoipa::path(post, path = "/v1/questions/{question}/answer", tag = "questions",
    params(("question" = QuestionId, Path, description = "Which one")), request_body = Given,
    responses((status = 200, description = "As it ended", body = Question)))]
async fn answer(
    State(app): State<App>,
    By(by): By,
    Segment(id): Segment<QuestionId>,
    Json(answer): Json<Given>,
) -> Answer<Reply<Question>> {
    Ok(Reply::ok(app.platform().answer(&by, id, answer).await?))
}

/// Takes a Question back: for whoever asked it.
#[utoipa::path(post, path = "/v1/questions/{question}/withdraw", tag = "questions",
    params(("question" = QuestionId, Path, description = "Which one")),
    responses((status = 200, description = "As it ended", body = Question)))]
async fn withdraw(State(app): State<App>, By(by): By, Segment(id): Segment<QuestionId>) -> Answer<Reply<Question>> {
    Ok(Reply::ok(app.platform().withdraw(&by, id).await?))
}
