//! Durable agent loops for Rust programs.
//!
//! Write a [`Loop`], hand it to [`run`], and the run survives `kill -9`: start the program again with
//! the same [`Builder::key`] and it goes on where it was, with nothing repeated that may not be.
#![doc = include_str!("guide.md")]
#![forbid(unsafe_code)]

mod builder;

pub use builder::{Builder, End, Error, run};
pub use loopd_kernel::failure::Disposition;
pub use loopd_kernel::model::{Constants, Message, ModelCall, ModelConstants, ModelReply, Part, StopReason, ToolOffer};
pub use loopd_kernel::projection::Waits;
pub use loopd_kernel::{
    Action, Cx, Decision, EffectClass, EffectKey, Event, Failure, Limits, Loop, MicroUsd, Outcome, RunId, TimeMs,
    ToolCall, Usage,
};
pub use loopd_runtime::{
    CallContext, Config, Model, ModelAnswer, ModelError, ModelRequest, Program, RunEnd, Runtime, Tool, ToolError,
    keyed_tool_fn, tool_fn,
};
pub use loopd_store::{MemoryStore, Store};
#[cfg(feature = "sqlite")]
pub use loopd_store_sqlite::SqliteStore;

/// What a Loop's file usually needs.
pub mod prelude {
    pub use crate::{Cx, Decision, EffectClass, End, Event, Failure, Loop, Outcome, ToolError, tool_fn};
    pub use serde::{Deserialize, Serialize};
}
