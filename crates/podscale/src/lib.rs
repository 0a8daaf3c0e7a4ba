//! The parts of the `podscale` program; nothing but its own `main`, tests and benchmarks uses them.
//!
//! Imports go one way: each group of modules below may import those above it, and none of its own.
//! `tidy` holds them to it.

#[cfg(test)]
#[path = "../../podscale-controller/src/odd_values.rs"]
mod odd_values;

pub mod install;
pub mod scenario;

pub mod demo;
pub mod simulate;

pub mod cli;
