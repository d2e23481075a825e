//! Built-in tools: files inside one folder, pages over HTTP, and programs.
//!
//! Functions of your own program need nothing from here: `loopd_runtime::tool_fn` makes a tool of a closure.
#![forbid(unsafe_code)]

mod args;
pub mod files;
#[cfg(feature = "http")]
pub mod http;
pub mod shell;

pub use files::{FileTool, RootError, file_offers, file_tools};
#[cfg(feature = "http")]
pub use http::{HttpConfig, http_tool};
pub use shell::{ShellConfig, ShellError, shell_tool};
