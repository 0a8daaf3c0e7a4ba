//! What the program must know before it can be trusted to decide, and what of it is still missing.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is still missing. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<BTreeSet<&'static str>>>);

impl Readiness {
    /// Nothing is missing yet.
    #[must_use]
    pub fn new() -> Readiness {
        Readiness::default()
    }

    /// Something, such as the list of pods, must be there first.
    pub fn needs(&self, what: &'static str) {
        self.0.lock().insert(what);
    }

    /// It is there now.
    pub fn has(&self, what: &'static str) {
        self.0.lock().remove(what);
    }

    /// What is missing, in the order of the alphabet.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        self.0.lock().iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_missing() {
        let readiness = Readiness::new();
        let other = readiness.clone();
        readiness.needs("pods");
        readiness.needs("autoscalers");
        assert_eq!(other.missing(), ["autoscalers", "pods"]);
        other.has("autoscalers");
        assert_eq!(readiness.missing(), ["pods"]);
        other.has("pods");
        assert!(readiness.missing().is_empty());
    }
}
