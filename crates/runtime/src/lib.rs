//! The runtime: performs what the kernel decides, and remembers through the Store.
#![forbid(unsafe_code)]

pub mod ports;
pub mod tool_fn;

pub use ports::{CallContext, Clock, Delta, Entropy, Model, ModelAnswer, ModelError, ModelRequest, Tool, ToolError};
pub use tool_fn::tool_fn;
