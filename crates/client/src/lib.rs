//! A client of the server's HTTP API: typed requests, typed refusals, and streams that resume.
//!
//! Reading order: [`Client`] (one request, one answer), [`Follow`] (a stream without loss and without doubles),
//! [`sse`] (the format under it).
#![forbid(unsafe_code)]

mod client;
mod error;
mod follow;
mod operating;
mod requests;
pub mod sse;

pub use client::Client;
pub use error::Error;
pub use follow::{Follow, Start, Told};
pub use requests::{Document, Part, Window};
