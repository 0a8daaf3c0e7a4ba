//! The parts of the `podscale` program; nothing but its own `main`, tests and benchmarks uses them.

pub mod act;
pub mod admin;

pub mod cli;

pub mod controller;
pub mod dashboard;
pub mod demo;

pub mod install;
pub mod keep;
pub mod metrics;
pub mod readiness;
pub mod record;
pub mod scenario;
pub mod scrape;
pub mod settings;
pub mod telemetry;

pub mod world;
