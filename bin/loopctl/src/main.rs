//! The command line of loopd.

fn main() {}
