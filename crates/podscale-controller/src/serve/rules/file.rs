//! Rules for metrics in a file that is followed: what is written there is in use seconds later.

use super::intake::{Found, Intake};
use crate::serve::rule_reports::RuleReports;
use podscale_metrics::rules::RuleError;
use podscale_metrics::rules::engine::Engine;
use podscale_metrics::rules::reload::Reloader;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often the file is read. Its contents are compared and not its times: a mounted ConfigMap changes by
/// exchanging links.
const EVERY: Duration = Duration::from_secs(2);
/// The largest file.
const MOST_BYTES: u64 = 4 << 20;
/// How many errors of a file are named at once.
const NAMED_ERRORS: usize = 20;

/// Why the rules of a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesFileError {
    /// It cannot be read.
    #[error("{}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// It is wrong.
    #[error("{}: {}", path.display(), list(errors))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// Everything that is wrong with it.
        errors: Vec<RuleError>,
    },
}

fn list(errors: &[RuleError]) -> String {
    let texts: Vec<String> = errors.iter().take(NAMED_ERRORS).map(RuleError::to_string).collect();
    texts.join("; ")
}

fn text(path: &Path) -> io::Result<String> {
    if std::fs::metadata(path)?.len() > MOST_BYTES {
        return Err(io::Error::other(format!("larger than {MOST_BYTES} bytes")));
    }
    std::fs::read_to_string(path)
}

/// A file with rules, which an engine has.
pub struct RuleFile {
    path: PathBuf,
    intake: Intake,
}

impl RuleFile {
    /// Gives an engine the rules of a file.
    ///
    /// # Errors
    /// It cannot be read, or is wrong.
    pub fn open(
        path: &Path,
        engine: Arc<Engine>,
        reports: Arc<RuleReports>,
    ) -> Result<RuleFile, RulesFileError> {
        let path = path.to_owned();
        let mut file = RuleFile::new(path.clone(), engine, reports);
        match text(&path) {
            Ok(text) => match file.intake.begin(&text) {
                Ok(()) => Ok(file),
                Err(errors) => Err(RulesFileError::Wrong { path, errors }),
            },
            Err(cause) => Err(RulesFileError::Unreadable { path, cause }),
        }
    }

    fn new(path: PathBuf, engine: Arc<Engine>, reports: Arc<RuleReports>) -> RuleFile {
        let place = path.display().to_string();
        RuleFile { path, intake: Intake::new(place, Reloader::new(engine), reports) }
    }

    /// Follows it until dropped.
    pub async fn follow(mut self) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.look().await;
        }
    }

    async fn look(&mut self) {
        let path = self.path.clone();
        let read = tokio::task::spawn_blocking(move || text(&path)).await;
        match read.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(text) => self.intake.take(Found::Text(&text)),
            Err(error) => self.intake.take(Found::Missing(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests;
