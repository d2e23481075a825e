//! A model server for your own tests: four providers' protocols on one loopback port, played from a script.
//!
//! What it speaks, streamed and whole:
//!
//! | protocol | paths |
//! |---|---|
//! | OpenAI chat completions | `/v1/chat/completions` |
//! | OpenAI Responses | `/v1/responses`, `/v1/responses/ID` |
//! | Anthropic Messages | `/v1/messages`, `/v1/messages/count_tokens` |
//! | Gemini | `/v1` or `/v1beta` `/models/MODEL:generateContent`, `:streamGenerateContent` (`?alt=sse`), `:countTokens` |
//! | lists of models, in the form of whoever asks | `/v1/models`, `/v1beta/models` |
//!
//! It is strict: what a real provider refuses, for example a tool result without its call, is refused here in that
//! provider's words.
#![doc = include_str!("../../../../docs/testing.md")]

mod answer;
mod checks;
mod completions;
mod gates;
mod gemini;
mod journal;
mod messages;
mod plan;
mod refusal;
mod responses;
mod route;
mod send;
mod serve;
mod service;

pub use journal::{Heard, Wire};
pub use loopd_script::{
    Fault, FaultKind, InnerError, OnWire, Pace, Place, Script, ScriptError, ScriptTurn, ScriptUse, Stall, When,
};

use crate::fail::{fail, must};
use gates::Gates;
use service::Service;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Settings of a [`FakeModel`].
#[derive(Debug, Clone, Default)]
pub struct FakeConfig {
    /// The key that every request must bring; without one, none is needed and any is taken.
    pub key: Option<String>,
    /// The models that there are; without any, every name is taken, and the lists have `fake-model`.
    pub models: Vec<String>,
    /// The port on 127.0.0.1: a free one when 0.
    pub port: u16,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The script cannot be played.
    #[error("the script: {0}")]
    Script(#[from] ScriptError),
    /// The port cannot be had.
    #[error("port {port} of 127.0.0.1")]
    Port {
        /// The port that was asked for.
        port: u16,
        /// Why not.
        source: std::io::Error,
    },
}

/// A model server on 127.0.0.1. It ends, with all its connections, when it is dropped.
#[derive(Debug)]
pub struct FakeModel {
    service: Arc<Service>,
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl FakeModel {
    /// Starts a server that plays `script` and asks for no key.
    ///
    /// # Panics
    /// When the script cannot be played, or there is no free port.
    #[track_caller]
    pub fn start(script: Script) -> impl Future<Output = Self> {
        let caller = std::panic::Location::caller();
        async move {
            match Self::start_with(script, FakeConfig::default()).await {
                Ok(fake) => fake,
                Err(error) => fail(format!("{caller}: {error}")),
            }
        }
    }

    /// Starts a server.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn start_with(script: Script, config: FakeConfig) -> Result<Self, Error> {
        script.check()?;
        let port = config.port;
        let told = |source| Error::Port { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(told)?;
        let address = listener.local_addr().map_err(told)?;
        let service = Arc::new(Service::new(script, config, Gates::default()));
        let accepting = tokio::spawn(serve::accept(listener, service.clone()));
        Ok(Self { service, address, accepting })
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base address for clients of chat completions and of Responses: up to and with `/v1`.
    #[must_use]
    pub fn openai_url(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// The base address for clients of the Messages API: without `/v1`.
    #[must_use]
    pub fn anthropic_url(&self) -> String {
        self.url()
    }

    /// The base address for clients of Gemini that want the version in it: up to and with `/v1beta`. Google's own SDKs
    /// add the version themselves and want [`FakeModel::url`].
    #[must_use]
    pub fn gemini_url(&self) -> String {
        format!("{}/v1beta", self.url())
    }

    /// Every request so far, in order: also those for lists and counts, and those that were refused.
    #[must_use]
    pub fn journal(&self) -> Vec<Heard> {
        self.service.journal()
    }

    /// How many requests asked a model to say something, refused and failed ones included.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.journal().iter().filter(|heard| heard.is_call()).count()
    }

    /// Exactly so many requests asked a model to say something.
    ///
    /// # Panics
    /// When it was another number.
    #[track_caller]
    pub fn expect_calls(&self, expected: usize) -> &Self {
        let calls = self.calls();
        if calls != expected {
            fail(format!("expected {expected} calls of the model, and there were {calls}\n{}", self.listed()));
        }
        self
    }

    /// No request was one that the real provider would refuse.
    ///
    /// # Panics
    /// When one was.
    #[track_caller]
    pub fn expect_nothing_refused(&self) -> &Self {
        if self.journal().iter().any(|heard| heard.refused.is_some()) {
            fail(format!("a request was refused\n{}", self.listed()));
        }
        self
    }

    fn listed(&self) -> String {
        self.journal().iter().map(|heard| format!("  {heard}\n")).collect()
    }

    /// Opens a gate: whatever waits at it, and whatever comes to it later, goes on.
    pub fn open(&self, gate: &str) {
        self.service.gates().open(gate);
    }

    /// Waits until a response waits, or has waited, at this gate.
    pub async fn reached(&self, gate: &str) {
        self.service.gates().reached(gate).await;
    }

    /// Waits until the server ends, which it does when its runtime does.
    pub async fn wait(mut self) {
        // Nobody aborts it while this future has it; a panic in it would be shown by its runtime.
        let _ = (&mut self.accepting).await;
    }
}

/// Reads a script from a JSON file, as [`crate::replay`] finds its own: from the package of the test.
///
/// # Panics
/// When there is no such file, or no script in it.
#[track_caller]
#[must_use]
pub fn script(path: impl AsRef<std::path::Path>) -> Script {
    let path = path.as_ref();
    let caller = std::panic::Location::caller().file();
    let found = must("the script", crate::locate::find(path, caller));
    let text = must(&found.display().to_string(), std::fs::read_to_string(&found));
    must(&found.display().to_string(), Script::from_json(&text))
}
