//! Benchmarks of loopd against the raw limits of the machine.

fn main() {}
