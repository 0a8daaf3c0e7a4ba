//! Models of load and of the workloads that bear it, in virtual time.
//!
//! A [`trace`] is a recorded load, a [`load`] says how many requests arrive at any time, a
//! [`workload`] turns arrivals and pods into usage, queues and latency. Everything is a function of
//! values: nothing here reads a clock, waits or draws from a random source that was not seeded.

pub mod load;
pub mod random;
pub mod trace;
pub mod workload;

pub use load::{Load, LoadError, Shape};
pub use podscale_core::Time;
pub use trace::{Trace, TraceError};
pub use workload::{PodInput, PodUsage, Usage, Workload, WorkloadSpec};
