//! Tests of the agent loop and its manifests, through the public interface.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod conversation;
mod errors;
mod harness;
mod lists;
mod long;
mod manifest;
mod pairs;
