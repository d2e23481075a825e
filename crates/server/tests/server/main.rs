//! The server through one door: a request goes in, a rendered answer comes out. No socket, no waiting.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod access;
mod agents;
mod calls;
mod connections;
mod guards;
mod hostile;
mod listening;
mod openapi;
mod order;
mod page;
mod resources;
mod resume;
mod roster;
mod sign_in;
#[path = "../../../platform/tests/stage/steps.rs"]
mod steps;
mod stores;
mod streams;
mod things;
mod world;
