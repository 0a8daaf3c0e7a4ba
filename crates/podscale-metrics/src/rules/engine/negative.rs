//! Names that no series has: they are not looked up again for a while, however often they are asked for.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// How many names are remembered; beyond that none is looked up until others are forgotten.
const MOST_NAMES: usize = 4096;

/// The names that were looked up in vain.
pub(super) struct Unknown {
    kept: Duration,
    names: Mutex<HashMap<Box<str>, Instant>>,
}

impl Unknown {
    /// Remembers names for so long.
    pub(super) fn new(kept: Duration) -> Unknown {
        Unknown { kept, names: Mutex::default() }
    }

    /// Whether a name is to be looked up now; it is then remembered as unknown.
    pub(super) fn look_up(&self, name: &str) -> bool {
        let now = Instant::now();
        let mut names = self.names.lock();
        if names.get(name).is_some_and(|since| now.duration_since(*since) < self.kept) {
            return false;
        }
        if names.len() >= MOST_NAMES {
            names.retain(|_, since| now.duration_since(*since) < self.kept);
            if names.len() >= MOST_NAMES {
                return false;
            }
        }
        names.insert(name.into(), now);
        true
    }

    /// The name is known now.
    pub(super) fn forget(&self, name: &str) {
        self.names.lock().remove(name);
    }

    /// Nothing is known to be unknown any more.
    pub(super) fn clear(&self) {
        self.names.lock().clear();
    }
}
