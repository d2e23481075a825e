//! The routes, a file per resource.

mod access;
mod actors;
mod agents;
mod artifacts;
mod calls;
mod conversations;
mod messages;
mod probes;
mod questions;
mod runs;
mod search;
mod sign_in;
mod turns;

use crate::{App, stream};
use utoipa_axum::router::OpenApiRouter;

/// Everything that wants to know who asks.
pub(crate) fn router() -> OpenApiRouter<App> {
    actors::router()
        .merge(agents::router())
        .merge(conversations::router())
        .merge(messages::router())
        .merge(questions::router())
        .merge(calls::router())
        .merge(turns::router())
        .merge(artifacts::router())
        .merge(search::router())
        .merge(runs::router())
        .merge(access::router())
        .merge(stream::router())
}

/// What strangers may ask, too.
pub(crate) fn open_router() -> OpenApiRouter<App> {
    sign_in::router().merge(probes::router())
}
