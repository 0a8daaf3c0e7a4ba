//! The flags about recordings.

use clap::Args;
use podscale_api::quantity::Quantity;
use podscale_controller::metrics::Metrics;
use podscale_controller::record::{Limits, RecordError, Recorder, Writing};
use podscale_controller::settings::duration;
use std::path::PathBuf;
use std::time::Duration;

/// Flags about recordings.
#[derive(Clone, Debug, Args)]
#[group(id = "recording")]
#[command(next_help_heading = "Recording")]
pub struct Arguments {
    /// Record every decision with its inputs in this folder; `podscale replay` reads it.
    #[arg(long, value_name = "DIR", env = "PODSCALE_RECORD")]
    record: Option<PathBuf>,

    /// The maximum total size of all recordings, such as 500Mi; the oldest are deleted first.
    #[arg(long, value_name = "SIZE", default_value = "1Gi", value_parser = size, env = "PODSCALE_RECORD_MAX_SIZE")]
    record_max_size: u64,

    /// The maximum age of recordings, such as 24h.
    #[arg(long, value_name = "DURATION", default_value = "168h", value_parser = age, env = "PODSCALE_RECORD_MAX_AGE")]
    record_max_age: Duration,
}

/// The least that is worth having: ten files of some decisions each.
const LEAST_BYTES: u64 = 1024 * 1024;

fn size(text: &str) -> Result<u64, String> {
    let quantity = Quantity::parse(text);
    let quantity = quantity.map_err(|_| "not a size such as 512Mi or 1Gi".to_owned())?;
    match u64::try_from(quantity.value()) {
        Ok(bytes) if bytes >= LEAST_BYTES => Ok(bytes),
        _ => Err("must be at least 1Mi".to_owned()),
    }
}

fn age(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        age if age >= Duration::from_secs(60) => Ok(age),
        _ => Err("must be at least 1m".to_owned()),
    }
}

impl Arguments {
    /// Begins to record, if that is asked for.
    ///
    /// # Errors
    /// The folder cannot be written into.
    pub fn start(&self, metrics: &Metrics) -> Result<Option<(Recorder, Writing)>, RecordError> {
        let Some(folder) = &self.record else { return Ok(None) };
        let limits = Limits { bytes: self.record_max_size, age: self.record_max_age };
        Recorder::start(folder, limits, metrics.clone()).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_kubernetes_writes_them() {
        assert_eq!(size("2Mi"), Ok(2 * 1024 * 1024));
        assert_eq!(size("1G"), Ok(1_000_000_000));
        assert_eq!(age("1h30m"), Ok(Duration::from_secs(5400)));
        for wrong in ["", "5", "-1Gi", "much"] {
            assert!(size(wrong).is_err() && age(wrong).is_err(), "{wrong}");
        }
    }
}
