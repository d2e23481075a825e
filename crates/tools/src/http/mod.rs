//! `http_get`: a page as text.
//!
//! # Guarantees
//! * Only `http` and `https`, without a user or password in the URL, and only hosts that are allowed.
//! * A name is resolved once per request. Every address that comes of it has to be public, or allowed by the
//!   configuration; the connection goes to one of just these addresses. No proxy is used, because it would resolve
//!   the name again.
//! * Redirects are followed here, at most five, and each is held to the same rules.
//! * Size and time are limited. What was cut is said; a body that broke off is an error, never a page.
//! * HTML becomes readable text, other text stays as it is, anything else is refused with its type and size.
//! * No cookie, no key and no header of the worker goes along.
//!
//! # Effect class
//! `read`: a GET changes nothing that anybody answers for. A server that acts on a GET all the same may be asked
//! twice after a crash.

mod address;
mod body;
mod fetch;
mod html;
mod page;

pub use address::{Resolve, SystemResolver};
pub use ipnet::IpNet;
pub use page::{Cut, Page};

use crate::args::{offer, parse};
use async_trait::async_trait;
use fetch::Fetch;
use loopd_kernel::EffectClass;
use loopd_kernel::machine::ToolTerms;
use loopd_kernel::model::ToolOffer;
use loopd_runtime::{CallContext, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// The name that a model uses.
pub const NAME: &str = "http_get";

/// What recovery may do with an open Call.
pub const CLASS: EffectClass = EffectClass::Read;

/// Bytes of a body that are read where nothing else is said.
pub const DEFAULT_MAX_BYTES: u64 = 2 * 1024 * 1024;

/// How long a call may take, redirects included, where nothing else is said.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for saying that there was too little of it.
const MARGIN: Duration = Duration::from_secs(2);

const DESCRIPTION: &str = "Gets a page or a text file from the web. HTML comes as readable text, with its links \
                           numbered at the end. A long text comes in parts: the answer says where the next one begins.";

/// What the tool may do.
#[derive(Clone)]
pub struct HttpConfig {
    /// The only hosts that may be asked: names, addresses, or `*.example.com` for what is below a name. Empty: any.
    pub hosts: Vec<String>,
    /// Networks that may be reached though they are not public.
    pub addresses: Vec<IpNet>,
    /// Bytes of a body that are read.
    pub max_bytes: u64,
    /// How long a call may take, redirects included.
    pub timeout: Duration,
    /// How names become addresses.
    pub resolver: Arc<dyn Resolve>,
}

impl std::fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpConfig")
            .field("hosts", &self.hosts)
            .field("addresses", &self.addresses)
            .field("max_bytes", &self.max_bytes)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Default for HttpConfig {
    /// Any public host, the default limits, and the operating system's names.
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            addresses: Vec::new(),
            max_bytes: DEFAULT_MAX_BYTES,
            timeout: DEFAULT_TIMEOUT,
            resolver: Arc::new(SystemResolver),
        }
    }
}

/// What to get.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The URL, with http:// or https://.
    url: String,
    /// The byte of the text to begin at, as the answer before said it.
    #[serde(default)]
    offset: u64,
}

/// The tool as a model sees it.
#[must_use]
pub fn http_offer(hosts: &[String]) -> ToolOffer {
    let only = if hosts.is_empty() { String::new() } else { format!(" Only from: {}.", hosts.join(", ")) };
    offer::<Args>(NAME, &format!("{DESCRIPTION}{only}"))
}

/// Makes the tool.
#[must_use]
pub fn http_tool(config: HttpConfig) -> Arc<dyn Tool> {
    Arc::new(HttpTool { offer: http_offer(&config.hosts), config })
}

#[derive(Debug)]
struct HttpTool {
    offer: ToolOffer,
    config: HttpConfig,
}

#[async_trait]
impl Tool for HttpTool {
    fn offer(&self) -> &ToolOffer {
        &self.offer
    }

    fn terms(&self) -> ToolTerms {
        let all = self.config.timeout.saturating_add(MARGIN);
        ToolTerms { class: CLASS, timeout_ms: u64::try_from(all.as_millis()).unwrap_or(u64::MAX) }
    }

    async fn call(&self, args: &str, context: &CallContext) -> Result<String, ToolError> {
        let Args { url, offset } = parse(args)?;
        let timeout = self.config.timeout.min(context.timeout);
        let work = async {
            let fetched = Fetch { config: &self.config }.get(&url).await?;
            page::make(fetched, offset).await
        };
        let page = tokio::select! {
            biased;
            () = context.cancel.cancelled() => {
                return Err(ToolError::did_not_happen("tool.cancelled", "nobody waits for the page any more"));
            }
            done = tokio::time::timeout(timeout, work) => done.map_err(|_| {
                let message = format!("no complete answer within {} ms", timeout.as_millis());
                ToolError::did_not_happen("http.timeout", message)
            })??,
        };
        serde_json::to_string(&page).map_err(|error| ToolError::did_not_happen("tool.output", error.to_string()))
    }
}
