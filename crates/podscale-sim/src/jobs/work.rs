//! What one Job does before it ends, as scenario files say it, and as a run knows it.

use crate::workload::SpecError;
use podscale_core::jobs::JobCounts;
use serde::{Deserialize, Serialize};

/// The longest time that a Job works or waits, in seconds (a year).
const MAX_SECONDS: f64 = 31_536_000.0;

/// What one Job does, as written in scenario files; what is absent is assumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct JobSpec {
    /// How many items a Job does at most before it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_per_job: Option<u64>,
    /// How long a Job works before it ends; an item that it has begun is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_seconds: Option<f64>,
    /// How long a Job waits for the next item while the queue is empty before it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<f64>,
    /// Whether an item that a Job has taken still counts in the length of the queue until it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts_taken: Option<bool>,
}

impl JobSpec {
    /// Checks every number.
    ///
    /// # Errors
    /// Names the first field that is out of range.
    pub fn check(&self) -> Result<(), SpecError> {
        // The conversion keeps what is compared with 1.
        let items = self.items_per_job.map(|items| items as f64);
        for (field, value, least, most) in [
            ("itemsPerJob", items, 1.0, 1e15),
            ("runSeconds", self.run_seconds, 0.001, MAX_SECONDS),
            ("idleSeconds", self.idle_seconds, 0.0, MAX_SECONDS),
        ] {
            if let Some(value) = value.filter(|value| !(*value >= least && *value <= most)) {
                return Err(SpecError { field, value, least, most });
            }
        }
        Ok(())
    }
}

/// What one Job does, with everything known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobWork {
    /// How many items it does at most.
    pub items: Option<u64>,
    /// How long it works, in seconds; for as long as there is anything to do if absent.
    pub run_seconds: Option<f64>,
    /// How long it waits for the next item.
    pub idle_seconds: f64,
    /// Whether an item that it has taken still counts in the length of the queue.
    pub counts_taken: bool,
    /// How many pods it has, all of which take items.
    pub pods: u32,
}

/// What is there when a run begins: nothing, unless it goes on from something that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inherited {
    /// Items that wait, and that no Job has taken.
    pub items: u64,
    /// The Jobs that are not finished; how much of its part each has done is not known, and they are taken to be spread evenly.
    pub jobs: JobCounts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_range_is_named() {
        let check = |json: &str| serde_json::from_str::<JobSpec>(json).unwrap().check();
        assert_eq!(check(r#"{"itemsPerJob":3,"runSeconds":40,"idleSeconds":0}"#), Ok(()));
        for (json, expected) in [
            (r#"{"itemsPerJob":0}"#, "itemsPerJob: 0 is not between 1 and 1000000000000000"),
            (r#"{"runSeconds":0}"#, "runSeconds: 0 is not between 0.001 and 31536000"),
            (r#"{"idleSeconds":-1}"#, "idleSeconds: -1 is not between 0 and 31536000"),
        ] {
            assert_eq!(check(json).unwrap_err().to_string(), expected);
        }
    }
}
