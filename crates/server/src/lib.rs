//! The HTTP face of the collaboration platform: `/v1`, streams of Feeds, one built-in page.
//!
//! It is the only crate that knows status codes, and it decides nothing: every rule about Conversations, Questions and
//! calls is [`loopd_platform`]'s. What is its own is who may come in ([`ServerConfig`]), how much of it, and how a stream
//! resumes without loss and without doubles.
#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]

mod api;
mod auth;
mod config;
mod cookie;
mod extract;
mod guard;
mod metrics;
mod openapi;
mod page;
mod rates;
mod refusal;
mod serve;
mod stream;

pub use config::{Limits, ServerConfig};
pub use metrics::{Counts, Sample};
pub use openapi::openapi;
pub use serve::Peer;

use axum::Router;
use loopd_platform::{Engine, Platform, Roster};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio_util::sync::CancellationToken;

/// The server. Clones are handles to the same.
#[derive(Clone, Debug)]
pub struct Server {
    app: App,
}

/// What stands behind the lock. Nothing panics while it is half changed.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What handlers share.
pub(crate) type App = Arc<Shared>;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    /// What makes targets of manifests, when there is such a thing.
    agents: Option<Arc<dyn Roster>>,
    counts: OnceLock<Arc<dyn Counts>>,
    pub(crate) config: ServerConfig,
    pub(crate) cookies: cookie::Cookies,
    pub(crate) rates: rates::Rates,
    pub(crate) metrics: metrics::Metrics,
    pub(crate) hub: Arc<stream::Hub>,
    pub(crate) page: page::Page,
    /// `/readyz` says no.
    unready: AtomicBool,
    /// Streams end.
    pub(crate) ending: CancellationToken,
}

impl Shared {
    pub(crate) fn platform(&self) -> &Platform {
        self.engine.platform()
    }

    pub(crate) fn agents(&self) -> Option<&dyn Roster> {
        self.agents.as_deref()
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.counts.get().map(|counts| counts.samples()).unwrap_or_default()
    }

    pub(crate) const fn limits(&self) -> &Limits {
        &self.config.limits
    }

    pub(crate) fn is_ready(&self) -> bool {
        !self.unready.load(Ordering::Relaxed) && !self.engine.is_draining()
    }
}

impl Server {
    /// The server over this engine. It does nothing until it is asked.
    #[must_use]
    pub fn new(engine: Engine, config: ServerConfig) -> Self {
        Self::over(engine, config, None)
    }

    /// The same, and `/v1/agents` shows and changes these agents.
    #[must_use]
    pub fn keeping(engine: Engine, config: ServerConfig, agents: Arc<dyn Roster>) -> Self {
        Self::over(engine, config, Some(agents))
    }

    fn over(engine: Engine, config: ServerConfig, agents: Option<Arc<dyn Roster>>) -> Self {
        let app = Shared {
            cookies: cookie::Cookies::new(&config),
            rates: rates::Rates::new(&config.limits),
            metrics: metrics::Metrics::new(),
            hub: Arc::new(stream::Hub::new(Arc::clone(engine.platform().store()), config.limits.heartbeat)),
            page: page::Page::new(),
            unready: AtomicBool::new(false),
            ending: CancellationToken::new(),
            engine,
            agents,
            counts: OnceLock::new(),
            config,
        };
        Self { app: Arc::new(app) }
    }

    /// `/metrics` has the figures of these as well. Those that were given first stay.
    pub fn count(&self, counts: Arc<dyn Counts>) {
        // Given twice, the first ones count.
        let _ = self.app.counts.set(counts);
    }

    /// All routes, with everything that is checked before and said after.
    pub fn router(&self) -> Router {
        let v1 = api::router().layer(axum::middleware::from_fn_with_state(Arc::clone(&self.app), auth::authenticate));
        let (routes, _) = v1.merge(api::open_router()).split_for_parts();
        routes
            .merge(page::router())
            .fallback(|| async { refusal::Refusal::of_status(axum::http::StatusCode::NOT_FOUND) })
            .layer(axum::middleware::from_fn_with_state(Arc::clone(&self.app), guard::guard))
            .with_state(Arc::clone(&self.app))
    }

    /// A code that signs one browser in as [`ServerConfig::person`], once and soon. The address to print is
    /// `http://HOST:PORT/sign-in?code=CODE`.
    ///
    /// # Errors
    /// The operating system has no randomness.
    pub fn sign_in_code(&self) -> std::io::Result<String> {
        self.app.cookies.make_code().ok_or_else(|| std::io::Error::other("the system has no randomness"))
    }

    /// `/readyz` answers 503 from now on, everything else goes on: for load balancers that need a while to notice.
    pub fn unready(&self) {
        self.app.unready.store(true, Ordering::Relaxed);
    }
}
