//! The agents of the server, and the manifests that it keeps.

use crate::App;
use crate::auth::By;
use crate::extract::{Reply, Segment, essence, receive};
use crate::refusal::{Answer, Refusal};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use loopd_platform::agents::MANIFEST;
use loopd_protocol::{ActorKey, ActorKind, Agent, AgentApplied, AgentChange, Page, Role};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What YAML is called: by its standard, and before there was one.
const YAML: [&str; 4] = ["application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"];

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_agents)).routes(routes!(get_agent, apply_agent, delete_agent))
}

/// A manifest, as YAML: at most 1 MiB.
#[derive(ToSchema)]
#[schema(value_type = String)]
#[allow(dead_code, reason = "it is described, and never made")]
struct Manifest(String);

/// What cannot be a name is that of nothing.
fn named(name: &str) -> Answer<()> {
    match ActorKey::new(ActorKind::Harness, name) {
        Ok(_) => Ok(()),
        Err(wrong) => Err(Refusal::not_found(wrong.to_string())),
    }
}

/// Lists the agents of the server, by name: those of its folder, those that it keeps and those that it brings along. A file
/// whose manifest does not read is among them, with its error.
#[utoipa::path(get, path = "/v1/agents", tag = "agents",
    responses((status = 200, description = "Agents", body = Page<Agent>)))]
async fn list_agents(State(app): State<App>, By(_): By) -> Answer<Reply<Page<Agent>>> {
    Ok(Reply::ok(Page { items: app.platform().agents(app.agents()), next: None }))
}

/// Gets an agent.
#[utoipa::path(get, path = "/v1/agents/{agent}", tag = "agents",
    params(("agent" = String, Path, description = "Its name", pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")),
    responses((status = 200, description = "The agent", body = Agent)))]
async fn get_agent(State(app): State<App>, By(_): By, Segment(name): Segment<String>) -> Answer<Reply<Agent>> {
    named(&name)?;
    Ok(Reply::ok(app.platform().agent(app.agents(), &name)?))
}

/// Keeps the manifest of an agent and makes it a target: for admins. The body is the manifest, whose name is that of the
/// path; relative paths in it are taken from the server's folder of agents. What is not right is refused whole. One that
/// lacks something of the server's machine, a key for example, is kept, and the answer says why it takes no calls. A file
/// of that folder goes before: where one has the name, the manifest is refused.
#[utoipa::path(put, path = "/v1/agents/{agent}", tag = "agents",
    params(("agent" = String, Path, description = "Its name", pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")),
    request_body(content = Manifest, content_type = "application/yaml", description = "The manifest"),
    responses(
        (status = 201, description = "None of this name was kept", body = AgentApplied),
        (status = 200, description = "The manifest was replaced, or was the same", body = AgentApplied)))]
async fn apply_agent(
    State(app): State<App>,
    By(by): By,
    Segment(name): Segment<String>,
    request: Request,
) -> Answer<Reply<AgentApplied>> {
    // Whoever may not change it may not fill memory for it either.
    by.must_be(&[Role::Admin])?;
    named(&name)?;
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !YAML.contains(&essence(kind).as_str()) {
        let detail = "send the manifest, with `Content-Type: application/yaml`";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media_type", detail));
    }
    let manifest = receive(request, &app, MANIFEST).await?;
    let applied = app.platform().apply_agent(&by, app.agents(), (&name, &manifest)).await?;
    let already = applied.change != AgentChange::Created;
    Ok(Reply::made(applied, already, format!("/v1/agents/{name}")))
}

/// Keeps the manifest of an agent no longer: for admins. Calls to it are refused from now on, those that wait for a slot
/// end, and those that execute go on. One of the name that the server brings along is back then.
#[utoipa::path(delete, path = "/v1/agents/{agent}", tag = "agents",
    params(("agent" = String, Path, description = "Its name", pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")),
    responses((status = 204, description = "It is gone")))]
async fn delete_agent(State(app): State<App>, By(by): By, Segment(name): Segment<String>) -> Answer<StatusCode> {
    by.must_be(&[Role::Admin])?;
    named(&name)?;
    app.platform().remove_agent(&by, app.agents(), &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
