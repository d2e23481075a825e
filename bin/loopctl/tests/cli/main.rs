//! The real program, driven as a person drives it: in a folder of its own, with the offline demo model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents;
mod conversations;
mod families;
mod fixtures;
mod input;
mod long;
mod models;
mod once;
mod operators;
mod processes;
mod questions;
mod runs;
mod served;
mod stores;
mod tools;
mod upgrades;
mod watching;
mod works;
mod world;

use expect_test::Expect;
use world::World;

/// What a command says in this world. `UPDATE_EXPECT=1` rewrites what is expected.
#[track_caller]
fn check(world: &World, args: &[&str], expected: Expect) {
    expected.assert_eq(&world.say(args));
}
