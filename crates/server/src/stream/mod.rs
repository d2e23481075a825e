//! Server-sent events over one or many Feeds.
//!
//! Every durable event has an id: the positions of all Feeds of the stream after it ([`cursor`]). A stream that begins
//! with it gets exactly what follows, from any server over the same store. Text as it arrives has no id; it is for
//! watching only, and a new stream gets what there is so far.
//!
//! Events are read from the store, page by page, as fast as the client takes them: a slow client costs no memory. What
//! wakes a stream is a hint ([`hub`]), and hints may be lost: heads are compared again with every heartbeat.

mod cursor;
mod follow;
mod frame;
mod hub;

pub(crate) use hub::Hub;

use crate::App;
use crate::auth::Principal;
use crate::extract::Params;
use crate::refusal::{Answer, Refusal};
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use follow::{Begin, Followed};
use loopd_platform::{Error, FeedName};
use loopd_protocol::ActorKey;
use std::collections::BTreeMap;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What proxies have to know: they must neither wait for the end nor change what passes.
const SAID: [(HeaderName, &str); 3] = [
    (CONTENT_TYPE, "text/event-stream"),
    (CACHE_CONTROL, "no-cache, no-transform"),
    (HeaderName::from_static("x-accel-buffering"), "no"),
];

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(stream)).routes(routes!(wakes))
}

/// Follows Feeds: server-sent events. The first is `hello` with the positions where it begins. Durable events are named
/// after their type and carry a FeedEvent and an id; `delta` carries a Delta and no id; `reset` says that events are
/// missing before the positions it names, so that the client reads anew; `closed` says that nothing more comes from a Feed;
/// `stopping` says that the server stops: come back with the last id.
#[utoipa::path(get, path = "/v1/stream", tag = "streams",
    params(
        ("feed" = Vec<String>, Query, description = "`conversation/con_…` or `actor/kind/key`; many times for many"),
        ("cursor" = Option<String>, Query, description = "The id of an event: begins after it"),
        ("from" = Option<String>, Query, description = "Where a Feed that the cursor does not name begins: `now` or `start`"),
        ("Last-Event-ID" = Option<String>, Header, description = "As cursor, and stronger: browsers send it when they come back"),
    ),
    responses((status = 200, description = "Events", body = String, content_type = "text/event-stream")))]
async fn stream(
    State(app): State<App>,
    principal: Principal,
    headers: HeaderMap,
    Params(pairs): Params<Vec<(String, String)>>,
) -> Answer<Response> {
    let mut asked = Asked::default();
    for (name, value) in pairs {
        match name.as_str() {
            "feed" => asked.feeds.push(value.parse()?),
            _ => asked.take(&name, value)?,
        }
    }
    open(app, principal, &headers, asked).await
}

/// Follows the Feed of an Actor: that there is something for it. A hint; the cursor of each Conversation is the truth.
#[utoipa::path(get, path = "/v1/wakes", tag = "streams",
    params(
        ("actor" = Option<ActorKey>, Query, description = "Whose; without it the caller's"),
        ("cursor" = Option<String>, Query, description = "The id of an event: begins after it"),
        ("from" = Option<String>, Query, description = "Where it begins without a cursor: `now` or `start`"),
        ("Last-Event-ID" = Option<String>, Header, description = "As cursor, and stronger: browsers send it when they come back"),
    ),
    responses((status = 200, description = "Events", body = String, content_type = "text/event-stream")))]
async fn wakes(
    State(app): State<App>,
    principal: Principal,
    headers: HeaderMap,
    Params(pairs): Params<Vec<(String, String)>>,
) -> Answer<Response> {
    let mut asked = Asked::default();
    for (name, value) in pairs {
        match name.as_str() {
            "actor" if asked.feeds.is_empty() => {
                let actor = value
                    .parse()
                    .map_err(|wrong: loopd_protocol::NotAnActor| Refusal::invalid("actor", wrong.to_string()))?;
                asked.feeds.push(FeedName::Actor(actor));
            }
            _ => asked.take(&name, value)?,
        }
    }
    if asked.feeds.is_empty() {
        asked.feeds.push(FeedName::Actor(principal.caller.actor.clone()));
    }
    open(app, principal, &headers, asked).await
}

/// What a stream is asked for.
#[derive(Debug, Default)]
struct Asked {
    feeds: Vec<FeedName>,
    cursor: Option<String>,
    from_start: Option<bool>,
}

impl Asked {
    fn take(&mut self, name: &str, value: String) -> Answer<()> {
        match (name, value.as_str()) {
            ("cursor", _) if self.cursor.is_none() => self.cursor = Some(value),
            ("from", "now") if self.from_start.is_none() => self.from_start = Some(false),
            ("from", "start") if self.from_start.is_none() => self.from_start = Some(true),
            ("from", _) => return Err(Refusal::invalid("from", "expected `now` or `start`, once")),
            _ => return Err(Refusal::invalid("query", format!("`{name}` is unknown here, or there twice"))),
        }
        Ok(())
    }
}

fn not_a_cursor(detail: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "cursor", detail).about("cursor")
}

/// Where the client stands. A browser that comes back sends the address of before, with the cursor of before, and the
/// header with the one of now.
fn cursor_of(headers: &HeaderMap, asked: Option<&str>) -> Answer<BTreeMap<FeedName, u64>> {
    let wrong = || not_a_cursor("this is no cursor: leave it out to begin anew");
    let header = headers.get("last-event-id").map(|id| id.to_str().map_err(|_| wrong())).transpose()?;
    match header.filter(|id| !id.is_empty()).or(asked) {
        Some(text) => cursor::decode(text).ok_or_else(wrong),
        None => Ok(BTreeMap::new()),
    }
}

/// Feeds, each with something that was found out about it.
type Named<T> = Vec<(FeedName, T)>;

/// The Feeds that the caller may follow, and whether because of another Conversation; and those that are not there for
/// them any more, with why.
async fn admitted(
    app: &App,
    principal: &Principal,
    names: Vec<FeedName>,
    cursor: &BTreeMap<FeedName, u64>,
) -> Answer<(Named<bool>, Named<&'static str>)> {
    let (mut open, mut closed, mut refused) = (Vec::new(), Vec::new(), None);
    let (platform, caller) = (app.platform(), &principal.caller);
    for name in names {
        match platform.may_follow(caller, &name).await {
            Ok(indirect) => open.push((name, indirect)),
            // It was there when the cursor was made: a client that comes back is told, and keeps its other Feeds.
            Err(error @ (Error::NotFound { .. } | Error::Forbidden(_))) if cursor.contains_key(&name) => {
                closed.push((name, error.code()));
                refused = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    match refused {
        Some(error) if open.is_empty() => Err(error.into()),
        Some(_) | None => Ok((open, closed)),
    }
}

async fn open(app: App, principal: Principal, headers: &HeaderMap, asked: Asked) -> Answer<Response> {
    if !app.is_ready() {
        return Err(Refusal::draining());
    }
    let mut names = asked.feeds;
    names.sort_unstable();
    names.dedup();
    let most = app.limits().feeds;
    if names.is_empty() || names.len() > most {
        return Err(Refusal::invalid("feed", format!("name 1 to {most} feeds")));
    }
    let cursor = cursor_of(headers, asked.cursor.as_deref())?;
    let slot = app
        .rates
        .stream(principal.who, app.limits())
        .inspect_err(|refusal| app.metrics.rate_limited(refusal.code()))?;
    let (open, closed) = admitted(&app, &principal, names, &cursor).await?;
    let mut begin = Begin { feeds: Vec::new(), closed };
    // Registered before heads are read, so that nothing falls between the two.
    let listener = app.hub.listen(open.iter().map(|(name, _)| name.feed()).collect());
    let names: Vec<_> = open.iter().map(|(name, _)| name.clone()).collect();
    let heads = app.platform().positions(&names).await?;
    for ((name, indirect), head) in open.into_iter().zip(heads) {
        let position = match cursor.get(&name) {
            Some(position) if *position > head => {
                return Err(not_a_cursor(&format!(
                    "the cursor is beyond the end of {name}: leave it out to begin anew"
                )));
            }
            Some(position) => *position,
            None if asked.from_start == Some(true) => 0,
            None => head,
        };
        begin.feeds.push(Followed::at(name, position, indirect));
    }
    let body = Body::from_stream(follow::follow(app, principal, begin, listener, slot));
    Ok((SAID, body).into_response())
}
