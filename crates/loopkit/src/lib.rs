//! Durable agent loops for Rust programs.
//!
//! Write a [`Loop`], hand it to [`run`], and the run survives `kill -9`: start the program again with
//! the same [`Builder::key`] and it goes on where it was, with nothing repeated that may not be.
#![doc = include_str!("guide.md")]
#![forbid(unsafe_code)]

mod builder;

pub use builder::{Builder, End, Error, run};
pub use loopd_kernel::child::{ClosePolicy, Recipient};
pub use loopd_kernel::failure::Disposition;
pub use loopd_kernel::machine::Admission;
pub use loopd_kernel::model::{Constants, Message, ModelCall, ModelConstants, ModelReply, Part, StopReason, ToolOffer};
pub use loopd_kernel::projection::Waits;
pub use loopd_kernel::replay::Divergence;
pub use loopd_kernel::{
    Action, Cx, Decision, EffectClass, EffectKey, ErasedLoop, Event, Failure, Join, Limits, Loop, MicroUsd, Outcome,
    RunId, Spawn, TimeMs, ToolCall, Upgrade, Usage, erase,
};
pub use loopd_runtime::{
    CallContext, Config, FirstSignal, FixedPrograms, Forecast, Model, ModelAnswer, ModelError, ModelRequest,
    ProbeAnswer, Program, Programs, RunEnd, Runtime, StartError, Started, Tool, ToolError, forecast, keyed_tool_fn,
    probed_tool_fn, tool_fn,
};
pub use loopd_store::{MemoryStore, Store};
#[cfg(feature = "sqlite")]
pub use loopd_store_sqlite::SqliteStore;

/// What a Loop's file usually needs.
pub mod prelude {
    pub use crate::{Cx, Decision, EffectClass, End, Event, Failure, Loop, Outcome, ToolError, tool_fn};
    pub use serde::{Deserialize, Serialize};
}
