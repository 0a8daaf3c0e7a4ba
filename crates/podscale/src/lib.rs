//! The parts of the `podscale` program; nothing but its own `main`, tests and benchmarks uses them.
//!
//! Imports go one way, from the top of this list to its bottom; `tidy` holds them to it.

pub mod admin;
pub mod cli;
pub mod controller;
pub mod dashboard;
pub mod demo;
pub mod dialect;
pub mod install;
pub mod metrics;
mod pods;
pub mod readiness;
pub mod record;
pub mod scenario;
pub mod settings;
mod source;
pub mod spans;
pub mod telemetry;
