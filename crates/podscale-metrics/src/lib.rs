//! Samples of what pods and nodes use: scraped from kubelets, stored with their times, turned into
//! rates, and given out in the forms of the metrics APIs. Knows no Kubernetes client.

pub mod answer;
pub mod custom;
pub mod directory;
pub mod exposition;
pub mod external;
pub mod kubelet;
pub mod openapi;
pub mod plain;
pub mod resource;
pub mod scrape;
pub mod scraper;
pub mod store;
