//! What runs in production: dialects and sources, the controller with its observers, and the server of the metrics
//! APIs. It knows neither the command line nor the embedded cluster nor simulations.
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

pub mod source;

pub mod serve;

pub mod controller;

pub mod scaled_jobs;

pub mod dashboard;
pub mod record;
pub mod telemetry;

pub mod admin;
