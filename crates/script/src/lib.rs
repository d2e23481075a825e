//! Scripts of models that play: what a script may say, when a turn of it fits, and what it then answers.
//!
//! Two players share this form. The demo model of `loopd-providers` plays a script inside of a Run, without any
//! network; the fake server of `looptest` plays it over HTTP, in the words of four providers. What is played depends on
//! the [`Scene`], which is the request and nothing else. Pure: a player owns clocks, sockets and counters.
#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]

mod build;
mod on_wire;
mod play;
mod scene;
mod script;
mod template;

pub use on_wire::{InnerError, OnWire, Place, Stall};
pub use play::{Played, REASONING_TEXT};
pub use scene::{Asked, Scene};
pub use script::{Fault, FaultKind, Pace, Script, ScriptError, ScriptTurn, ScriptUse, When};
pub use template::TemplateError;
