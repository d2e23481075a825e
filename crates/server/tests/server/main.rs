//! The server through one door: a request goes in, a rendered answer comes out. No socket, no waiting.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod calls;
mod connections;
mod guards;
mod hostile;
mod openapi;
mod page;
mod resources;
mod resume;
mod sign_in;
mod streams;
mod world;
