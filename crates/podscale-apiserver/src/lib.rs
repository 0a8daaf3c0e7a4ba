//! Kubernetes' HTTP API over an in-memory store.

pub mod admission;
mod aggregate;
pub mod apply;
mod autoscaling;
mod backends;
mod bootstrap;
pub mod crd;
mod custom;
mod definitions;
mod http;
pub mod offline;
pub mod openapi;
pub mod patch;
mod registry;
pub mod resource;
mod rules;
pub mod serve;
pub mod server;
pub mod status;
pub mod store;
pub mod table;
mod tokens;
pub mod types;
mod value;
mod view;
mod wire;
mod write;

pub use serve::{Certificates, Serving};
pub use server::{ApiServer, Clock, Config};
