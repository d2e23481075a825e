//! What the server is told. Every limit has a setting.

use loopd_protocol::{ActorKey, Role};
use std::time::Duration;

/// What the server is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Tells this instance from others on the same machine; no secret. Its cookie is named after it, because cookies do
    /// not know ports: who keeps it over a restart finds browsers signed in.
    pub instance: [u8; 16],
    /// How long a browser stays signed in.
    pub signed_in: Duration,
    /// Whom a sign-in code makes of whoever has it.
    pub person: ActorKey,
    /// What they may do.
    pub roles: Vec<Role>,
    /// Names under which the server is reached besides those of loopback: `name`, or `name:port`.
    pub hosts: Vec<String>,
    /// Origins of pages that may send requests besides the server's own: `https://name`, for a proxy that changes `Host`.
    pub origins: Vec<String>,
    /// Whether `/metrics` wants a token of an admin.
    pub private_metrics: bool,
    /// What is too much.
    pub limits: Limits,
}

impl ServerConfig {
    /// The usual one: `person/me` is the admin, reached over loopback only.
    ///
    /// # Errors
    /// None in practice: the name of the person is well formed.
    pub fn new(instance: [u8; 16]) -> Result<Self, loopd_protocol::NotAnActor> {
        Ok(Self {
            instance,
            signed_in: Duration::from_secs(30 * 24 * 3600),
            person: "person/me".parse()?,
            roles: vec![Role::Admin],
            hosts: Vec::new(),
            origins: Vec::new(),
            private_metrics: false,
            limits: Limits::default(),
        })
    }
}

/// What is too much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a JSON body besides what the platform's Messages may have.
    pub json_bytes: usize,
    /// Bytes of all headers of a request.
    pub header_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
    /// How long a request's head may take.
    pub head_timeout: Duration,
    /// How long a request's body may take.
    pub body_timeout: Duration,
    /// Connections at once; more wait until they are accepted.
    pub connections: usize,
    /// Files that are received at once.
    pub uploads: usize,
    /// Streams at once.
    pub streams: usize,
    /// Streams at once of one token or one signed-in browser.
    pub streams_per_token: usize,
    /// Feeds of one stream.
    pub feeds: usize,
    /// How often a quiet stream says that it lives, and how late a lost hint is made up for.
    pub heartbeat: Duration,
    /// Requests per second of one token or one signed-in browser, in the long run.
    pub requests_per_s: u32,
    /// Requests that it may have saved up.
    pub requests_burst: u32,
    /// The same of the token of an Operator, which asks for many people.
    pub operator_requests_per_s: u32,
    /// Requests that it may have saved up.
    pub operator_requests_burst: u32,
    /// Failed attempts to authenticate per minute of one address, in the long run; as many may come at once.
    pub failures_per_minute: u32,
    /// How long a sign-in code is good.
    pub code: Duration,
    /// Sign-in codes that are good at once; the oldest goes first.
    pub codes: usize,
    /// How long a drain waits for requests that are under way.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            json_bytes: 1 << 20,
            header_bytes: 32 << 10,
            headers: 64,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(60),
            connections: 4096,
            uploads: 8,
            streams: 2048,
            streams_per_token: 64,
            feeds: 100,
            heartbeat: Duration::from_secs(15),
            requests_per_s: 100,
            requests_burst: 400,
            operator_requests_per_s: 2000,
            operator_requests_burst: 8000,
            failures_per_minute: 20,
            code: Duration::from_secs(60),
            codes: 16,
            grace: Duration::from_secs(10),
        }
    }
}
