//! Models of load and of the workloads that bear it, in virtual time, and what decides their size.
//!
//! A [`trace`] is a recorded load, a [`load`] says how many requests arrive at any time, a
//! [`workload`] turns arrivals and pods into usage, queues and latency. An [`engine`] runs a [`plan`]:
//! it lets them pass through time in an [`environment`] with a [`policy`] that sets the size by what it
//! sees of the [`world`], and a [`score`] says what that was worth. For [`jobs`] that are created and end by themselves
//! there is an engine of its own. Everything is a function of values: nothing here reads a clock, waits or draws from a
//! random source that was not seeded.

pub mod engine;
pub mod environment;
pub mod jobs;
pub mod load;
pub mod plan;
pub mod policy;
pub mod random;
pub mod request_time;
pub mod score;
pub mod trace;
pub mod workload;
pub mod world;

pub use engine::simulate;
pub use environment::Environment;
pub use jobs::{known_jobs, simulate_jobs};
pub use load::{Load, LoadError, Shape};
pub use plan::{Plan, PlanError};
pub use podscale_core::Time;
pub use policy::Policy;
pub use score::{Run, Scores};
pub use trace::{Trace, TraceError};
pub use workload::{PodInput, PodUsage, Usage, Workload, WorkloadSpec};
