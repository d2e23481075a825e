//! What machines ask: whether it lives, whether it takes work, how much it did, and what it understands.

use crate::App;
use crate::metrics::Gauges;
use crate::openapi::document;
use crate::refusal::{Answer, Refusal};
use crate::serve::Peer;
use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use loopd_protocol::CallPhase;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(healthz))
        .routes(routes!(readyz))
        .routes(routes!(metrics))
        .routes(routes!(openapi_json))
}

/// Whether the process lives.
#[utoipa::path(get, path = "/healthz", tag = "probes", security(()),
    responses((status = 200, description = "It does", body = String, content_type = "text/plain")))]
async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether it takes work: not while it stops, and not without its store.
#[utoipa::path(get, path = "/readyz", tag = "probes", security(()),
    responses((status = 200, description = "It does", body = String, content_type = "text/plain")))]
async fn readyz(State(app): State<App>) -> Answer<&'static str> {
    if !app.is_ready() {
        return Err(Refusal::draining());
    }
    app.platform().store().feed_heads(&[]).await?;
    Ok("ready\n")
}

/// Counters in the text format of Prometheus. Where the server is so configured, for admins only.
#[utoipa::path(get, path = "/metrics", tag = "probes", security((), ("token" = []), ("cookie" = [])),
    responses((status = 200, description = "Counters", body = String, content_type = "text/plain; version=0.0.4")))]
async fn metrics(State(app): State<App>, peer: Option<Extension<Peer>>, headers: HeaderMap) -> Answer<Response> {
    if app.config.private_metrics {
        crate::auth::must_be_admin(&app, &headers, peer.as_deref()).await?;
    }
    let targets = app.engine.targets();
    let sum = |count: fn(&loopd_protocol::Target) -> u32| targets.iter().map(|target| u64::from(count(target))).sum();
    let (streams, ready, others) = (app.rates.open_streams(), app.is_ready(), app.samples());
    let mut gauges = Gauges { streams, ready, others, ..Gauges::default() };
    gauges.calls.insert(CallPhase::Running.name(), sum(|target| target.running));
    gauges.calls.insert(CallPhase::Queued.name(), sum(|target| target.queued));
    let text = app.metrics.text(&gauges);
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

/// This description.
#[utoipa::path(get, path = "/openapi.json", tag = "probes", security(()),
    responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value)))]
async fn openapi_json() -> Response {
    ([(CONTENT_TYPE, "application/json")], document()).into_response()
}
