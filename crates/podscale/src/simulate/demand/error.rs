//! Why no load can be recovered from Recordings.

use podscale_api::recording::RecordingError;
use podscale_controller::dialect::read::ReadError;
use std::path::PathBuf;

/// Why no load can be recovered; its text is one line.
#[derive(Debug, thiserror::Error)]
pub enum DemandError {
    /// A file or folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A line is no Recording.
    #[error("{}: {source}", path.display())]
    Recording {
        /// In which file.
        path: PathBuf,
        /// What is wrong with it.
        source: RecordingError,
    },
    /// There are no Recordings.
    #[error("there is no recording of an autoscaler with any step")]
    None,
    /// The recorded object makes no sense.
    #[error("{name}: {source}")]
    Object {
        /// Which autoscaler.
        name: String,
        /// What is wrong with it.
        source: ReadError,
    },
    /// The recording is too short.
    #[error(
        "{name}: {steps} steps are too few to recover a load from; at least {least} are needed"
    )]
    Short {
        /// Which autoscaler.
        name: String,
        /// How many there are.
        steps: usize,
        /// How many are needed.
        least: usize,
    },
    /// No metric tells the demand.
    #[error(
        "{0}: no metric tells how much there was to do: cpu, a rate of requests or the length of a \
         queue would"
    )]
    Unknown(String),
    /// No trigger of a ScaledJob tells how much there was to do.
    #[error(
        "{0}: no trigger tells how much there was to do: the length of a queue would, and cron, external, external-push, cpu and \
         memory do not"
    )]
    NoQueue(String),
    /// No Job of a ScaledJob was seen from its beginning to its end.
    #[error(
        "{0}: no Job was seen from its beginning to its end, so that nothing tells how long one works; give a longer recording"
    )]
    NoJobs(String),
    /// Jobs of a ScaledJob were not its own doing.
    #[error(
        "{0}: its Jobs were created by another controller (a dry run or a conflict), so that nothing tells how long one \
         works; give a recording of the controller that created them"
    )]
    Withheld(String),
}
