//! Whether one namespace is asked for at a time, or all at once.

use jiff::{SignedDuration, Timestamp};
use std::collections::HashSet;

/// More namespaces than this and one answer about all pods costs less than one for each.
const FEW_NAMESPACES: usize = 4;
/// How long namespaces are counted before the choice is made anew.
const COUNTING_WINDOW: SignedDuration = SignedDuration::from_secs(60);
/// How long it is remembered that all at once is not allowed.
const REFUSED_FOR: SignedDuration = SignedDuration::from_secs(600);

/// The namespaces that were asked for lately.
pub(super) struct Namespaces {
    since: Timestamp,
    known: HashSet<Box<str>>,
    all: bool,
    refused: Option<Timestamp>,
}

impl Namespaces {
    /// None was asked for yet.
    pub(super) fn new(now: Timestamp) -> Namespaces {
        Namespaces { since: now, known: HashSet::new(), all: false, refused: None }
    }

    /// Whether all are to be asked for, now that somebody asks for this one.
    pub(super) fn asks_for_all(&mut self, namespace: &str, now: Timestamp) -> bool {
        if now.duration_since(self.since) >= COUNTING_WINDOW {
            self.all = self.known.len() > FEW_NAMESPACES;
            self.known.clear();
            self.since = now;
        }
        // More need not be counted.
        if self.known.len() <= FEW_NAMESPACES && !self.known.contains(namespace) {
            self.known.insert(namespace.into());
        }
        self.all |= self.known.len() > FEW_NAMESPACES;
        let refused = self.refused.is_some_and(|at| now.duration_since(at) < REFUSED_FOR);
        self.all && !refused
    }

    /// All at once was refused.
    pub(super) fn refuse(&mut self, now: Timestamp) {
        self.refused = Some(now);
    }
}
