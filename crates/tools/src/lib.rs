//! Built-in tools. So far: reading files inside one folder.
//!
//! Functions of your own program need nothing from here: `loopd_runtime::tool_fn` makes a tool of a closure.
#![forbid(unsafe_code)]

pub mod files;

pub use files::{FileTool, RootError, file_offers, file_tools};
