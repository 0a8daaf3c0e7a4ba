//! Kubernetes' wire forms and the values inside them: quantities, selectors, times, autoscalers,
//! pods, metrics and Recordings. Nothing here waits, fetches or reads a clock.

pub mod admission;
pub mod chpa;
pub mod convert;
pub mod crds;
pub mod document;
pub mod expression;
pub mod field_error;
pub mod hpa;
pub mod keda;
pub mod labels;
pub mod lint;
pub mod meta;
pub mod metrics;
pub mod names;
pub mod node;
pub mod observe;
pub mod pod;
pub mod pod_autoscaler;
pub mod quantity;
pub mod quote;
pub mod recording;
pub mod replay;
pub mod resources;
pub mod scale;
pub mod schedule;
pub mod selector;
mod serde_form;
pub mod singlecloud;
pub mod time;
pub mod translate;
pub mod written;

pub use labels::Labels;
pub use quantity::Quantity;
pub use selector::{LabelSelector, Selector};
