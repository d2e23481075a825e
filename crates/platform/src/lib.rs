//! The collaboration platform as a library: Conversations, Messages, Questions, Feeds and the Harness Engine over a
//! [`loopd_store::Store`]. It knows no HTTP, and no Operator.
//!
//! Everything that changes is one Batch: what the platform writes and what a Run commits stand in the same store, so a
//! Message and the decision that produced it never disagree ([`engine`]).
#![forbid(unsafe_code)]

mod access;
mod actors;
pub mod agents;
mod answers;
mod artifacts;
mod caller;
pub mod config;
mod conversations;
mod deletion;
pub mod engine;
mod error;
mod feeds;
mod lease;
mod messages;
mod pieces;
mod questions;
mod reading;
mod rows;
mod search;
mod streaming;
mod texts;
mod unhandled;

pub use agents::Roster;
pub use caller::Caller;
pub use config::Config;
pub use engine::Engine;
pub use error::Error;
pub use feeds::FeedName;
pub use messages::Window;
pub use rows::is_key;
pub use search::Exported;

pub use loopd_protocol::{Handled, Polled};

use loopd_runtime::{Clock, Entropy, SystemClock, SystemEntropy};
use loopd_store::Store;
use std::sync::Arc;

/// The platform over one store. Clones are handles to the same.
#[derive(Clone)]
pub struct Platform {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) config: Config,
}

impl std::fmt::Debug for Platform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Platform").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A part of a list that is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paging {
    /// Where the part before ended, as it said.
    pub cursor: Option<String>,
    /// At most this many; 0 is the usual number. More than the largest page is the largest page.
    pub limit: usize,
}

impl Platform {
    /// The platform over `store`, with the machine's clock and randomness.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, config: Config) -> Self {
        Self { store, clock: Arc::new(SystemClock), entropy: Arc::new(SystemEntropy::default()), config }
    }

    /// Replaces clock and randomness.
    #[must_use]
    pub fn world(mut self, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        (self.clock, self.entropy) = (clock, entropy);
        self
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The limits.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Now, in milliseconds since 1970.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.clock.now().0
    }
}
