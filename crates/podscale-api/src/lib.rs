//! Kubernetes' wire forms and the values inside them: quantities, selectors, times, autoscalers,
//! pods, metrics and Recordings. Nothing here waits, fetches or reads a clock.

pub mod quantity;

pub use quantity::Quantity;
