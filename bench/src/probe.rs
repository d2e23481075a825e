//! One workload in one process.

use crate::{floor, operated, routed, served, turnaround, wire, workload};
use anyhow::{Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Parameters of a workload.
#[derive(Debug, Clone, Default)]
pub struct Parameters(BTreeMap<String, String>);

impl Parameters {
    /// Reads `key=value` words.
    pub fn parse(words: &[String]) -> Self {
        Self(words.iter().filter_map(|word| word.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect())
    }

    /// A number, or its default.
    pub fn number(&self, key: &str, default: u64) -> u64 {
        self.0.get(key).and_then(|value| value.parse().ok()).unwrap_or(default)
    }

    /// The folder of this workload's files.
    pub fn folder(&self) -> PathBuf {
        self.0.get("dir").map_or_else(std::env::temp_dir, PathBuf::from)
    }
}

/// Runs the workload `name`.
pub fn run(name: &str, parameters: &Parameters) -> Result<Value> {
    match name {
        "append" => floor::append(parameters),
        "sqlite" => floor::sqlite(parameters),
        "floor" => floor::loop_floor(parameters),
        "steps" => workload::steps(parameters),
        "bytes" => workload::bytes(parameters),
        "build" => workload::build(parameters),
        "resume" => workload::resume(parameters),
        "suspended" => workload::suspended(parameters),
        "reopen" => workload::reopen(parameters),
        "stream" => wire::stream(parameters),
        "delivery" => served::delivery(parameters),
        "accepted" => served::accepted(parameters),
        "resumed" => served::resumed(parameters),
        "idle" => served::idle(parameters),
        "wake" => operated::wake(parameters),
        "answers" => routed::answers(parameters),
        "turnaround" => turnaround::turnaround(parameters),
        _ => bail!("there is no workload of this name"),
    }
}
