//! Operators against a real platform: one script, many ways to die. No network, virtual time; `http` listens on
//! 127.0.0.1.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod flows;
mod http;
mod kills;
mod kit;
mod script;
#[path = "../../../platform/tests/stage/steps.rs"]
mod steps;
mod world;
