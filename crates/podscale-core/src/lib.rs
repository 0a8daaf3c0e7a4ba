//! The heart of Podscale: values go in, a decision comes out.
//!
//! [`decide()`] turns one [`Snapshot`] of an autoscaler and its surroundings into one [`Decision`].
//! A [`Pass`] carries it through the writes that follow from it to what the [`History`] learns.
//! Nothing in this crate reads a clock, waits, logs or talks to anything; the same snapshot always
//! gives the same decision. Words are made from data in two places only: [`text`] holds the texts
//! that Kubernetes shows in conditions and events, [`explain`] puts a decision's steps into
//! plain language.

mod compact;
pub mod decide;
pub mod decision;
pub mod deletion_cost;
pub mod explain;
pub mod history;
pub mod jobs;
pub mod model;
pub mod pass;
pub mod pod;
pub mod predict;
pub mod snapshot;
pub mod status;
pub mod steps;
pub mod text;
pub mod time;

pub use decide::decide;
pub use decision::{Decision, Event, Rescale, StatusChange};
pub use history::History;
pub use model::{Autoscaler, Metric, Settings};
pub use pass::{CostsWrite, Outcome, Pass, ScaleWrite, StatusWrite, Withheld, Write};
pub use snapshot::Snapshot;
pub use status::Status;
pub use steps::Step;
pub use time::{Span, Time};
