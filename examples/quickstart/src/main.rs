//! The loop of the README, compiled and tested.

fn main() {}
