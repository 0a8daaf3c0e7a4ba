//! The parts of the `podscale` program; nothing but its own `main`, tests and benchmarks uses them.

pub mod act;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod controller;
pub mod dashboard;
pub mod demo;
pub mod scenario;
pub mod scrape;
pub mod watch;
