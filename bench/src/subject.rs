//! What is measured: the bare Loop.

use crate::noop::{self, Plan};
use crate::probe::Parameters;
use anyhow::Result;
use loopd_runtime::Program;
use std::sync::Arc;

/// Bytes that each call returns.
const PAYLOAD: usize = 512;

/// A Loop under measurement.
pub enum Subject {
    /// A Loop in Rust whose calls return at once.
    Bare,
}

impl Subject {
    /// What the parameters ask for.
    pub async fn of(_parameters: &Parameters) -> Result<Self> {
        Ok(Self::Bare)
    }

    /// Its Program.
    pub fn program(&self) -> Result<Arc<Program>> {
        Ok(noop::program(PAYLOAD))
    }

    /// The input of one Run.
    pub fn input(&self, iterations: u64, waits: bool) -> String {
        serde_json::to_string(&Plan { iterations, waits }).unwrap_or_default()
    }
}
