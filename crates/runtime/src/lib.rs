//! The runtime: performs what the kernel decides, and remembers through the Store.
//!
//! A [`Program`] is a Loop with its models and tools, a [`Runtime`] is one worker. A step of a Run is:
//! take an input, apply it to the machine, commit one Batch, and only then perform what it permits.
#![forbid(unsafe_code)]

mod adopt;
pub mod config;
mod deadline;
pub mod driver;
mod family;
mod forecast;
mod handle;
mod keeper;
#[cfg(feature = "kit")]
pub mod kit;
mod limits;
mod outlet;
pub mod ports;
pub mod program;
mod results;
pub mod runtime;
mod seats;
mod start;
pub mod system;
mod tool_fn;
mod turns;

pub use config::Config;
pub use driver::{CommitError, DriveError, LoadError, load};
pub use forecast::{Forecast, forecast};
pub use handle::{Answer, AnswerError, Driven, RunEnd, StartError, Started, answer, tell};
pub use outlet::{Before, Outlet, Stepped};
pub use ports::{
    CallContext, Clock, Delta, Entropy, Exchange, Model, ModelAnswer, ModelError, ModelRequest, ProbeAnswer, Results,
    Tool, ToolError,
};
pub use program::{CannotRun, FixedPrograms, Program, Programs};
pub use runtime::Runtime;
pub use start::{Beginning, FirstSignal};
pub use system::{SystemClock, SystemEntropy};
pub use tool_fn::{ProbedFn, ToolFn, keyed_tool_fn, probed_tool_fn, tool_fn};
