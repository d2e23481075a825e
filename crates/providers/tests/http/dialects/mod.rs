//! The conformance kit of the Model port on every adapter, with streams and without: how each provider writes.

mod anthropic;
mod gemini;
mod openai;
mod responses;

use loopd_providers::{ModelConfig, from_config_with};
use loopd_runtime::Model;
use loopd_runtime::kit::{Dialect, Features, HeardResult, Setup, Subject, Turn};
use serde_json::Value;
use std::sync::Arc;

/// An adapter: its dialect, its settings, and whether it streams.
pub struct Adapter<D> {
    pub dialect: D,
    pub config: fn(&Setup) -> ModelConfig,
    pub features: Features,
}

/// What all adapters here can do.
const STREAMS: Features = Features { streams: true, whole: true, ends_itself: true, idle: true, reasoning: true };
const WHOLE: Features = Features { streams: false, ends_itself: false, ..STREAMS };

impl<D: Dialect> Subject for Adapter<D> {
    fn features(&self) -> Features {
        self.features
    }

    fn dialect(&self) -> &dyn Dialect {
        &self.dialect
    }

    fn model(&self, setup: &Setup) -> Result<Arc<dyn Model>, String> {
        from_config_with(&(self.config)(setup), &|_| Some(setup.key.clone())).map_err(|error| error.to_string())
    }
}

fn idle_ms(setup: &Setup) -> Option<u64> {
    u64::try_from(setup.idle.as_millis()).ok()
}

/// A member that is text; nothing else counts.
fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

/// Adds a result to the turn of results that stands last, or begins one.
fn add_result(turns: &mut Vec<Turn>, id: String, text: String) {
    let result = HeardResult { id, text };
    match turns.last_mut() {
        Some(Turn::Results(results)) => results.push(result),
        _ => turns.push(Turn::Results(vec![result])),
    }
}
