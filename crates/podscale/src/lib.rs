//! The parts of the `podscale` program; nothing but its own `main`, tests and benchmarks uses them.
//!
//! Imports go one way: each group of modules below may import those above it, and none of its own.
//! `tidy` holds them to it.

#[cfg(test)]
mod odd_values;

pub mod connections;
pub mod metrics;
mod pods;
pub mod readiness;
pub mod settings;
mod time;

pub mod triggers;

pub mod dialect;
pub mod kubelets;

pub mod spans;

mod source;

pub mod serve;

pub mod controller;

pub mod scaled_jobs;

pub mod dashboard;
pub mod record;
pub mod telemetry;

pub mod admin;
pub mod install;
pub mod scenario;

pub mod demo;
pub mod simulate;

pub mod cli;
