//! The loop kernel: a pure, sans-IO state machine for durable agent loops.
//!
//! The kernel consumes facts and says what must be committed or done next. It performs nothing: the
//! runtime performs and the store remembers. `#![no_std]` makes a clock, a socket, the environment or
//! a randomly ordered map a compile error here.
//!
//! Reading order: [`entry`] (what a journal holds), [`record`] (what each kind says), [`projection`]
//! (what a journal means: a fold), [`machine`] (how a journal grows), [`replay`] (how it is verified).
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]

extern crate alloc;

pub mod action;
pub mod base64url;
pub mod budget;
pub mod chain;
pub mod child;
pub mod definition;
pub mod digest;
pub mod effect;
pub mod entry;
pub mod event;
pub mod failure;
pub mod ids;
pub mod machine;
pub mod model;
pub mod outcome;
pub mod patch;
pub mod projection;
pub mod question;
pub mod record;
pub mod replay;
pub mod transcript;
pub mod units;
pub mod upgrade;

pub use action::{Action, Decision, Join, ParallelCall, ToolCall};
pub use budget::{Ledger, Limits};
pub use child::Spawn;
pub use definition::{Cx, ErasedLoop, Loop, Upgrade, erase};
pub use digest::Digest;
pub use effect::{EffectClass, EffectKey};
pub use entry::{Entry, Kind, Salt};
pub use event::Event;
pub use failure::Failure;
pub use ids::{CallId, Epoch, QuestionId, RunId, Seq};
pub use machine::{Machine, Permit};
pub use outcome::Outcome;
pub use projection::Projection;
pub use units::{MicroUsd, TimeMs, Usage};
