//! The toolkit for Operators: an author writes [`Reconcile`], and an [`Operator`] runs it, inside the platform's process
//! or as a process of its own.
//!
//! Reading order: [`Reconcile`] and [`Cx`] (what an author writes and has), [`Operator`] (what runs it), [`Call`],
//! [`Asked`] and [`Telling`] (what goes on for longer than a Turn), [`Desk`] (the port to the platform) with [`Http`].
//! `docs/operators.md` is the guide.
//!
//! # Guarantees
//! One Reconcile of a Conversation is one Turn: what it says, calls and asks and how far it has come is committed
//! together, or nothing of it. What a key did is not done again, whatever dies in between. Of several processes of one
//! Operator, one commits. What is unhandled is looked at until it is handled.
#![forbid(unsafe_code)]

mod call;
mod counters;
mod cx;
mod desk;
mod error;
mod http;
mod lasting;
mod operator;
mod question;
mod queue;
mod telling;
mod turns;
mod words;

pub use call::Call;
pub use counters::Counted;
pub use cx::Cx;
pub use desk::{Desk, Ear, Heard};
pub use error::Error;
pub use http::Http;
pub use loopd_protocol::Place;
pub use operator::{Config, Next, Operator, Reconcile};
pub use question::Asked;
pub use telling::Telling;
pub use words::{ask, call, choose, confirm, form, markdown};
