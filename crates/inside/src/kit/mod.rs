//! A whole platform in memory, for tests of Operators: store, engine, worker and desk are the real ones, the models of its
//! agents play scripts, and time is tokio's, which a test pauses. So nothing sleeps, and every test comes out the same.
//!
//! It stands here, behind the feature `kit`, because it needs what this crate needs: the engine and a desk in its process.
//! A test that talks to a server over HTTP is written with `loopd-server` and `loopd-client` instead.
//!
//! # Expected flow
//! ```
//! use async_trait::async_trait;
//! use loopd_inside::kit::{Agent, World, survives};
//! use loopd_operator::{Cx, Error, Next, Place, Reconcile, call};
//! use loopd_protocol::ConversationId;
//!
//! struct Brief;
//!
//! #[async_trait]
//! impl Reconcile for Brief {
//!     async fn reconcile(&self, cx: &mut Cx, _: ConversationId) -> Result<Next, Error> {
//!         let inputs = cx.inputs();
//!         let Some(input) = inputs.first() else { return Ok(Next::Done) };
//!         let made = cx.prompt(Place::Work, &format!("{}/sum", input.id), call("sum", "Sum it up.")).await?;
//!         let Some(made) = made.filter(|made| made.is_over()) else { return Ok(Next::Done) };
//!         cx.answer(input, format!("{}/answer", input.id), made.text().unwrap_or_default());
//!         cx.handle(input);
//!         Ok(Next::Done)
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! // In a test: #[tokio::test(start_paused = true)]
//! let world = World::new([Agent::says("sum", "All is well.")]).await;
//! let room = world.room().await;
//! let _running = world.start("operator/brief", Brief);
//! let said = world.say(room, "operator/brief", "How is it?").await;
//! assert_eq!(world.answer_of(&said).await, "All is well.");
//! assert_eq!(world.asked("sum").len(), 1);
//!
//! // The same, and the process dies before and after each of its requests.
//! let make = async || World::new([Agent::says("sum", "All is well.")]).await;
//! survives(make, "operator/brief", || Brief, async |world, room| {
//!     let said = world.say(room, "operator/brief", "How is it?").await;
//!     world.answer_of(&said).await;
//! })
//! .await;
//! # }
//! ```
//!
//! # Guarantees
//! With paused time and a runtime of one thread the same test sees the same transcript, identities included. A
//! [`World`] keeps nothing outside of the memory of its test.
//!
//! # Panics
//! A test that cannot go on fails: every function here panics with what happened and with what was said so far.
//!
//! # Caveats
//! Without paused time everything takes as long as it says: a wait that is in vain is given up after
//! [`Builder::patience`].

mod agent;
mod fail;
mod fated;
mod running;
mod story;
mod told;
mod world;

pub use agent::Agent;
pub use fated::{Fate, Fated};
pub use loopd_providers::demo::{DemoScript as Script, DemoTurn as Turn};
pub use running::{Process, Running};
pub use story::{Story, survives};
pub use world::{Builder, World};
