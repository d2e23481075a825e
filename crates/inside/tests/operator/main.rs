//! Operators against a real platform: one script, many ways to die. No network, virtual time; `http` listens on
//! 127.0.0.1.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fate;
mod flows;
mod http;
mod kills;
mod script;
#[path = "../../../platform/tests/stage/mod.rs"]
mod stage;
mod world;
