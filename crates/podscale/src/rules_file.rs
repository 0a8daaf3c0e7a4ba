//! Rules for metrics in a file that is followed: what is written there is in use seconds later. A version
//! that is wrong is reported, and the last good one stays in use.

use crate::metrics::Metrics;
use podscale_metrics::rules::reload::{Reloaded, Reloader};
use podscale_metrics::rules::{RuleError, RuleSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often the file is read. Its contents are compared and not its times: a mounted ConfigMap changes by
/// exchanging links.
const EVERY: Duration = Duration::from_secs(2);
/// The largest file.
const MOST_BYTES: u64 = 4 << 20;
/// How many errors of one version are logged.
const LOGGED_ERRORS: usize = 20;

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
    let texts: Vec<String> = errors.iter().take(LOGGED_ERRORS).map(RuleError::to_string).collect();
    texts.join("; ")
}

/// Reads the rules of a file once.
///
/// # Errors
/// It cannot be read, or is wrong.
pub fn read(path: &Path) -> Result<RuleSet, RulesFileError> {
    let text =
        text(path).map_err(|cause| RulesFileError::Unreadable { path: path.to_owned(), cause })?;
    RuleSet::parse(&text).map_err(|errors| RulesFileError::Wrong { path: path.to_owned(), errors })
}

fn text(path: &Path) -> io::Result<String> {
    if std::fs::metadata(path)?.len() > MOST_BYTES {
        return Err(io::Error::other(format!("larger than {MOST_BYTES} bytes")));
    }
    std::fs::read_to_string(path)
}

/// Follows a file until dropped.
pub async fn follow(path: PathBuf, reloader: Arc<Reloader>, metrics: Metrics) {
    let mut follower = Follower { path, reloader, metrics, readable: true, errors: 0 };
    loop {
        follower.look().await;
        tokio::time::sleep(EVERY).await;
    }
}

struct Follower {
    path: PathBuf,
    reloader: Arc<Reloader>,
    metrics: Metrics,
    /// Whether it could be read the last time; each change is logged once.
    readable: bool,
    /// How many errors the last version that could be read has.
    errors: usize,
}

impl Follower {
    async fn look(&mut self) {
        let path = self.path.clone();
        let read = tokio::task::spawn_blocking(move || text(&path)).await;
        match read.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(text) => {
                let again = !std::mem::replace(&mut self.readable, true);
                self.take(&text, again);
            }
            Err(error) if self.readable => {
                self.readable = false;
                self.metrics.rules_loaded(1);
                let file = self.path.display();
                tracing::warn!(%file, %error, "the rules for metrics cannot be read; the last ones stay in use");
            }
            Err(_) => {}
        }
    }

    fn take(&mut self, text: &str, again: bool) {
        let file = self.path.display();
        match self.reloader.load(text) {
            Reloaded::Unchanged if again => self.metrics.rules_loaded(self.errors),
            Reloaded::Unchanged => {}
            Reloaded::Replaced { rules, warnings } => {
                self.errors = 0;
                self.metrics.rules_loaded(0);
                tracing::info!(%file, rules, "the rules for metrics are in use");
                for warning in warnings.iter().take(LOGGED_ERRORS) {
                    tracing::warn!(%file, %warning, "a rule for metrics is doubtful");
                }
            }
            Reloaded::Kept(errors) => {
                self.errors = errors.len();
                self.metrics.rules_loaded(self.errors);
                for error in errors.iter().take(LOGGED_ERRORS) {
                    tracing::error!(%file, %error, "the rules for metrics are wrong; the last good ones stay in use");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
