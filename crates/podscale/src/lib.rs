//! The parts of the `podscale` program; nothing but its own `main`, tests and benchmarks uses them.
//!
//! Imports go one way, from the top of this list to its bottom; `tidy` holds them to it.

pub mod settings;
pub mod readiness;
pub mod metrics;
mod pods;
pub mod dialect;
mod source;
mod spans;
pub mod controller;
pub mod dashboard;
pub mod record;
pub mod telemetry;
pub mod admin;
pub mod install;
pub mod scenario;
pub mod demo;
pub mod cli;
