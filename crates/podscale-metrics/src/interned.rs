//! Values that many have in common, each kept once.

use podscale_api::Labels;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// How many values there must be before those that nobody uses any more are dropped.
const FEW: usize = 1024;

/// The values that are shared.
#[derive(Debug)]
pub(crate) struct Interned<T: ?Sized> {
    known: HashSet<Arc<T>>,
    /// How many there were when the unused ones were last dropped.
    swept: usize,
}

impl<T: ?Sized> Default for Interned<T> {
    fn default() -> Interned<T> {
        Interned { known: HashSet::new(), swept: 0 }
    }
}

impl<T: ?Sized + Eq + Hash> Interned<T> {
    fn add(&mut self, value: Arc<T>) -> Arc<T> {
        if self.known.len() > self.swept.saturating_mul(2).max(FEW) {
            self.known.retain(|value| Arc::strong_count(value) > 1);
            self.swept = self.known.len();
        }
        self.known.insert(Arc::clone(&value));
        value
    }
}

impl Interned<str> {
    /// The shared form of a name.
    pub(crate) fn intern(&mut self, name: &str) -> Arc<str> {
        match self.known.get(name) {
            Some(known) => Arc::clone(known),
            None => self.add(name.into()),
        }
    }
}

impl Interned<Labels> {
    /// The shared form of labels.
    pub(crate) fn intern(&mut self, labels: Labels) -> Arc<Labels> {
        match self.known.get(&labels) {
            Some(known) => Arc::clone(known),
            None => self.add(Arc::new(labels)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_is_kept_once_and_what_nobody_uses_is_dropped() {
        let mut names = Interned::<str>::default();
        let web = names.intern("web");
        assert!(Arc::ptr_eq(&web, &names.intern("web")));
        for number in 0..10 * FEW {
            names.intern(&number.to_string());
        }
        assert!(names.known.len() <= 2 * FEW, "{}", names.known.len());
        assert!(Arc::ptr_eq(&web, &names.intern("web")), "it is still used");
        let mut all = Interned::<Labels>::default();
        let labels = |value: &str| -> Labels { [("app", value)].into_iter().collect() };
        let (one, same) = (all.intern(labels("web")), all.intern(labels("web")));
        assert!(Arc::ptr_eq(&one, &same) && *all.intern(labels("api")) == labels("api"));
    }
}
