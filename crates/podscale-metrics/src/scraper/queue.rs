//! Which nodes there are, when each is due, and how its last scrape went. Knows no clock.

use super::schedule;
use crate::kubelet::{Form, Target};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// The nodes that are scraped. Times are counted from the scraper's start.
pub(super) struct Queue {
    resolution: Duration,
    nodes: HashMap<Arc<str>, Entry>,
    /// Those that wait.
    due: BTreeSet<(Duration, Arc<str>)>,
    /// Counts the nodes that ever were, so that one of the same name is not taken for another.
    count: u64,
}

struct Entry {
    number: u64,
    target: Target,
    form: Form,
    /// When it is due; nothing while it is being scraped.
    due: Option<Duration>,
    /// Since when its scrapes fail, if they do.
    failing: Option<Duration>,
}

/// A scrape that is to be made.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) node: Arc<str>,
    pub(super) target: Target,
    pub(super) form: Form,
    /// Whether the one before failed.
    pub(super) doubtful: bool,
    number: u64,
    began: Duration,
}

impl Queue {
    pub(super) fn new(resolution: Duration) -> Queue {
        Queue { resolution, nodes: HashMap::new(), due: BTreeSet::new(), count: 0 }
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Arc<str>> {
        self.nodes.keys()
    }

    /// A node is to be scraped there. At a new address it is tried soon, and in the usual form.
    pub(super) fn set(&mut self, node: &str, target: Target, now: Duration) {
        let due = schedule::first(node, self.resolution, now);
        match self.nodes.get_mut(node) {
            Some(entry) if entry.target == target => {}
            Some(entry) => {
                (entry.target, entry.form) = (target, Form::default());
                if let Some(waiting) = &mut entry.due
                    && due < *waiting
                {
                    let name = self.due.take(&(*waiting, node.into()));
                    *waiting = due;
                    self.due.extend(name.map(|(_, name)| (due, name)));
                }
            }
            None => {
                let name: Arc<str> = node.into();
                self.count += 1;
                let (number, form) = (self.count, Form::default());
                let entry = Entry { number, target, form, due: Some(due), failing: None };
                self.due.insert((due, Arc::clone(&name)));
                self.nodes.insert(name, entry);
            }
        }
    }

    /// A node left; where it was.
    pub(super) fn remove(&mut self, node: &str) -> Option<Target> {
        let (name, Entry { due, target, .. }) = self.nodes.remove_entry(node)?;
        if let Some(due) = due {
            self.due.remove(&(due, name));
        }
        Some(target)
    }

    /// The next scrape, if one is due; else how long until one is, if any ever is.
    pub(super) fn due(&mut self, now: Duration) -> Result<Attempt, Option<Duration>> {
        let Some((due, _)) = self.due.first() else { return Err(None) };
        if *due > now {
            return Err(Some(due.saturating_sub(now)));
        }
        let Some((_, node)) = self.due.pop_first() else { return Err(None) };
        let Some(entry) = self.nodes.get_mut(&node) else { return Err(Some(Duration::ZERO)) };
        entry.due = None;
        let (target, form) = (entry.target.clone(), entry.form);
        let (number, doubtful) = (entry.number, entry.failing.is_some());
        Ok(Attempt { node, target, form, doubtful, number, began: now })
    }

    /// A scrape could not be tried.
    pub(super) fn skip(&mut self, attempt: &Attempt, now: Duration) {
        self.finish(attempt, now);
    }

    /// A scrape succeeded, in this form; how long those before failed. Nothing if the node is not
    /// there any more, or has moved meanwhile.
    pub(super) fn succeeded(
        &mut self,
        attempt: &Attempt,
        form: Form,
        now: Duration,
    ) -> Option<Option<Duration>> {
        let entry = self.finish(attempt, now)?;
        if entry.target != attempt.target {
            return None;
        }
        entry.form = form;
        Some(entry.failing.take().map(|since| now.saturating_sub(since)))
    }

    /// A scrape failed; whether it is the first to. Nothing if the node is not there any more, or has
    /// moved meanwhile.
    pub(super) fn failed(&mut self, attempt: &Attempt, now: Duration) -> Option<bool> {
        let entry = self.finish(attempt, now)?;
        if entry.target != attempt.target {
            return None;
        }
        let first = entry.failing.is_none();
        entry.failing.get_or_insert(attempt.began);
        Some(first)
    }

    /// Puts a node back for its next scrape.
    fn finish(&mut self, attempt: &Attempt, now: Duration) -> Option<&mut Entry> {
        let Queue { resolution, nodes, due, .. } = self;
        let entry = nodes.get_mut(&attempt.node).filter(|entry| entry.number == attempt.number)?;
        let moved = entry.target != attempt.target;
        let next = if moved {
            schedule::first(&attempt.node, *resolution, now)
        } else {
            // A moment that passed while it was being scraped is not made up for.
            let next = schedule::next(&attempt.node, *resolution, attempt.began);
            if next >= now { next } else { schedule::next(&attempt.node, *resolution, now) }
        };
        if entry.due.is_none() {
            entry.due = Some(next);
            due.insert((next, Arc::clone(&attempt.node)));
        }
        Some(entry)
    }
}
