//! `loopd serve` as a real process: its first minute, its folder, its ends, and what it makes of rubbish.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod curl;
mod ends;
mod live;
mod rubbish;
mod world;
