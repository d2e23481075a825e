//! Tests for durable agent loops: recorded Runs replayed as unit tests, and doubles for models and tools.
//!
//! ```no_run
//! # #[derive(serde::Deserialize)] struct Answer { text: String }
//! let run = looptest::replay("testdata/refund.loopfix").strict();
//! run.expect_tools(&["search", "refund"]).expect_iterations_at_most(4);
//! let answer: Answer = run.expect_completed();
//! assert!(answer.text.contains("refunded"));
//! ```
//!
//! A replay needs no key, no network and no clock. A recorded Agent needs nothing but the file, because its definition is
//! in it; a Loop in Rust is given by [`Recorded::with_loop`]. Everything here works under `cargo test` and nextest, and
//! fails the way tests fail: it panics, at the caller's line, with a message that says what was expected and what
//! happened. Snapshots are rewritten when `UPDATE_EXPECT` is set.
//!
//! With the feature `fake-model` there is a server, too, that speaks the protocols of four providers: see
//! `looptest::fake`.
#![forbid(unsafe_code)]

mod expect;
mod fail;
#[cfg(feature = "fake-model")]
pub mod fake;
mod locate;
mod ordered;
mod record;
mod replay;
mod scripted_model;
mod tool;

pub use ordered::state_is_ordered;
pub use record::record;
pub use replay::{Recorded, Replayed, replay, replay_fixture};
pub use scripted_model::{Asked, ScriptedModel};
pub use tool::{CountingTool, Sent};
