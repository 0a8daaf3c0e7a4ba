//! Samples of what pods and nodes use: scraped from kubelets, stored with their times, turned into rates,
//! or asked of Prometheus by rules; and given out in the forms of the metrics APIs. Knows no Kubernetes
//! client.

pub mod answer;
pub mod any_server;
pub mod circuit_breaker;
pub mod custom;
pub mod directory;
pub mod exposition;
pub mod external;
mod interned;
pub mod kubelet;
pub mod openapi;
pub mod plain;
pub mod prometheus;
pub mod resource;
pub mod rules;
pub mod scrape;
pub mod scraper;
pub mod store;
