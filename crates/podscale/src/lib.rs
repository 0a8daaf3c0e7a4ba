//! The parts of the `podscale` program; nothing but its own `main`, tests and benchmarks uses them.

pub mod act;
pub mod admin;
pub mod cause;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod controller;
pub mod dashboard;
pub mod demo;
pub mod election;
pub mod events;
pub mod install;
pub mod keep;
pub mod meters;
pub mod readiness;
pub mod record;
pub mod scenario;
pub mod scrape;
pub mod settings;
pub mod telemetry;
pub mod trouble;
pub mod watch;
