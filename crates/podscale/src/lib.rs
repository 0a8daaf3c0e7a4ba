//! The parts of the `podscale` program; nothing but its own `main`, tests and benchmarks uses them.

pub mod clock;
pub mod cluster;
